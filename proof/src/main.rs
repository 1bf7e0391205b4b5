//! Proves chokaq's statements on a real SQL Server: what each costs, locks and reads as the tables grow, what its plan says,
//! and which pairs deadlock. `--help` tells how to call it, `docs/sql-server.md` what for.

mod args;
mod cases;
mod deadlocks;
mod fill;
mod measure;
mod report;
mod server;
mod showplan;
mod supply;

use std::process::ExitCode;

use args::Args;
use cases::Case;
use fill::{Sizes, fill};
use server::Server;
use supply::Supply;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Of rows that stand in one call.
const BATCH: usize = 100;

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        println!("{}", args::USAGE);
        return ExitCode::SUCCESS;
    }
    let result = match Args::parse(words) {
        Ok(args) => prove(&args).await,
        Err(error) => Err(format!("{error}\n\n{}", args::USAGE).into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// Makes the schema, measures, and drops it, whatever became of the measuring.
async fn prove(args: &Args) -> Result<(), Failure> {
    let mut server = Server::connect(&args.url).await?;
    eprintln!("{}: {}, schema {}", server.describe(), server.facts.version, server.schema());
    for (what, why) in [("locks", &server.no_locks), ("plans", &server.no_plans)] {
        if let Some(why) = why {
            println!("\n> **{what} were not looked at**: {why}");
        }
    }
    let rcsi = server.facts.rcsi;
    let measured = tokio::select! {
        measured = with_schema(args, &mut server) => measured,
        _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
    };
    let set_back = server.set_rcsi(rcsi).await;
    let dropped = server.drop_schema().await;
    if dropped.is_err() {
        eprintln!("the schema {} is still there: drop it by hand", server.schema());
    }
    measured.and(set_back).and(dropped)
}

async fn with_schema(args: &Args, server: &mut Server) -> Result<(), Failure> {
    server.make_schema().await?;
    let settings = if args.rcsi.is_empty() { vec![server.facts.rcsi] } else { args.rcsi.clone() };
    for rcsi in settings {
        if let Err(failure) = server.set_rcsi(rcsi).await {
            let word = if rcsi { "on" } else { "off" };
            println!("\n> **READ_COMMITTED_SNAPSHOT {word} was not tried**: {failure}");
            continue;
        }
        for rows in &args.rows {
            statements(args, server, *rows).await?;
        }
        pairs(args, server).await?;
    }
    Ok(())
}

async fn statements(args: &Args, server: &Server, rows: u64) -> Result<(), Failure> {
    eprintln!("filling {rows} rows");
    fill(server, &Sizes::of(rows)).await?;
    let mut supply = Supply::of(server, BATCH).await?;
    println!("{}\n{}", report::heading(&server.facts, rows), report::STATEMENTS);
    for case in cases::all().iter().filter(|case| args.wants(case.name)) {
        let measured = measure::measure(server, case, &mut supply).await;
        println!("{}", report::statement(case, &measured));
    }
    Ok(())
}

async fn pairs(args: &Args, server: &Server) -> Result<(), Failure> {
    if args.each_pair.is_zero() {
        return Ok(());
    }
    if !server.facts.is_sql_server && !args.any_engine {
        println!(
            "\n> **pairs of statements were not run**: the engine is Babelfish, which ignores READPAST and UPDLOCK"
        );
        return Ok(());
    }
    let cases = cases::all();
    let writers: Vec<&Case> =
        cases.iter().filter(|case| case.writes && args.wants(case.name)).collect();
    println!(
        "\n### Pairs at the same rows, READ_COMMITTED_SNAPSHOT {}",
        if server.facts.rcsi { "on" } else { "off" }
    );
    let mut outcomes = Vec::new();
    for (place, first) in writers.iter().enumerate() {
        eprintln!("pairs with {} {}", first.name, first.variant);
        for second in &writers[place..] {
            let outcome = deadlocks::provoke(server, first, second, args.each_pair).await?;
            outcomes.push((format!("{} + {}", title(first), title(second)), outcome));
        }
    }
    println!("{}", report::deadlocks(&outcomes));
    Ok(())
}

fn title(case: &Case) -> String {
    let Case { name, variant, .. } = case;
    if variant.is_empty() { format!("`{name}`") } else { format!("`{name}` ({variant})") }
}
