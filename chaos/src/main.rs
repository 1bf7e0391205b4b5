//! Chaos: workers that are killed, stopped and cut off from their database, operators that pause, cancel and resurrect, and
//! an observer that checks the invariants all the time. `--help` tells the modes.

mod args;
#[path = "../../tests/tests/conformance/babelfish.rs"]
#[expect(dead_code, reason = "its list of claims is for the conformance suite")]
mod babelfish;
mod blocked;
mod chaos;
mod database;
mod fleet;
mod jobs;
mod journal;
mod mssql;
mod observer;
mod operators;
mod stall;
mod verdict;
mod worker;

use std::process::ExitCode;

use args::Args;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(Some(args)) => args,
        Ok(None) => {
            println!("{}", args::USAGE);
            return ExitCode::SUCCESS;
        }
        Err(problem) => {
            eprintln!("{problem}\n\n{}", args::USAGE);
            return ExitCode::from(2);
        }
    };
    let threads = if args.mode == "blocked" { args.threads } else { 2 };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .expect("a runtime");
    let ended = runtime.block_on(async {
        match args.mode.as_str() {
            "worker" => worker::run(&args).await.map(|()| true),
            "blocked" => blocked::run(&args).await,
            "stall" => stall::run(&args).await,
            _ => chaos::run(&args).await,
        }
    });
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
