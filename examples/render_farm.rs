//! A render farm: nodes, each a process, claim video renders from one queue; a table shows what each of them does.
//!
//! ```sh
//! cargo run --example render_farm -- demo             # 24 renders of 3 s on 4 nodes, and two with troubles
//! cargo run --example render_farm -- demo 40 10 4     # as many renders, of so many seconds, on so many nodes
//! cargo run --example render_farm -- node extra       # in another terminal: one more node for the same farm
//! cargo run --example render_farm -- watch            # likewise: the table
//! ```
//!
//! Kill a node while it renders (`kill -9`; its process stands in the table): its render goes back to the queue when its
//! lease has expired, and another node does it. The queue is in `render-farm/farm.db`, or where `CHOKAQ_DATABASE_URL`
//! says; for a SQL Server add `--features mssql`. With `ffmpeg` installed the clips are real ones.

#[path = "render_farm/demo.rs"]
mod demo;
#[path = "render_farm/farm.rs"]
mod farm;
#[path = "render_farm/renderer.rs"]
mod renderer;
#[path = "render_farm/table.rs"]
mod table;

use std::{
    env,
    error::Error,
    io::{self, IsTerminal},
    path::PathBuf,
    process::ExitCode,
    str::FromStr,
    time::Duration,
};

use chokaq::{
    Pool,
    prelude::*,
    serde::{Deserialize, Serialize},
};
use renderer::Studio;
use tracing_subscriber::filter::LevelFilter;

const USAGE: &str = "\
usage: render_farm demo [RENDERS [SECONDS [NODES]]]   a whole farm, until every render is done
       render_farm enqueue RENDERS [SECONDS]          more work
       render_farm node NAME                          a node, until ctrl-c
       render_farm watch                              the table, until ctrl-c
The clips go to the folder render-farm, or to the one that RENDER_FARM_DIR names.";

/// The queue of the farm: a database that has other queues too keeps them apart.
const QUEUE: &str = "render";

/// A composition to render. Its row returns to the queue when the node that renders it dies: rendering again does no harm.
#[job(queue = "render", retries = 3, backoff = exponential(base = "1s", max = "1m"), on_crash = "retry")]
struct RenderVideo {
    composition: String,
    seconds: u16,
    /// What it shows; a node fetches it before it renders.
    asset: String,
}

/// What the archive keeps of a render.
#[derive(Serialize, Deserialize)]
#[serde(crate = "chokaq::serde")]
struct Rendered {
    url: String,
    node: String,
}

impl Job for RenderVideo {
    type Output = Rendered;
    async fn run(self, ctx: &JobContext) -> Result<Rendered, JobError> {
        let studio = ctx.state::<Studio>()?;
        fetch_asset(&self.asset, ctx.attempt())
            .map_err(|e| format!("{}: {e}", self.composition))?;
        let url = studio.render(&self, ctx).await?;
        Ok(Rendered { url, node: studio.node().to_owned() })
    }
}

/// Stands for the download of an asset: one store has bad moments, one asset is gone.
fn fetch_asset(asset: &str, attempt: u32) -> Result<(), String> {
    match asset {
        "flaky.png" if attempt < 3 => Err(format!("asset {asset}: 503 Service Unavailable")),
        "missing.png" => Err(format!("asset {asset}: 404 Not Found")),
        _ => Ok(()),
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::WARN)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
    let words: Vec<String> = env::args().skip(1).collect();
    match run(&words.iter().map(String::as_str).collect::<Vec<_>>()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(words: &[&str]) -> Result<(), Box<dyn Error>> {
    match *words {
        ["demo", ref numbers @ ..] if numbers.len() <= 3 => {
            let word = |at: usize, default| numbers.get(at).copied().unwrap_or(default);
            demo::run(parse(word(0, "24"))?, parse(word(1, "3"))?, parse(word(2, "4"))?).await
        }
        ["enqueue", renders] => enqueue(&open().await?, parse(renders)?, 3).await,
        ["enqueue", renders, seconds] => {
            enqueue(&open().await?, parse(renders)?, parse(seconds)?).await
        }
        ["node", name] => node(name, std::future::pending()).await,
        ["node", name, demo::WITH_PARENT] => node(name, demo::parent_gone()).await,
        ["watch"] => demo::watch().await,
        _ => Err(USAGE.into()),
    }
}

fn parse<T: FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word} is not a number that can be used here\n{USAGE}"))
}

/// The farm's own folder, for the clips and, by default, the database.
fn folder() -> PathBuf {
    env::var_os("RENDER_FARM_DIR").map_or_else(|| "render-farm".into(), PathBuf::from)
}

async fn open() -> Result<Pool, Box<dyn Error>> {
    let folder = folder();
    std::fs::create_dir_all(folder.join("clips"))
        .map_err(|e| format!("{}: {e}", folder.display()))?;
    let pool = match env::var("CHOKAQ_DATABASE_URL") {
        Ok(url) if !url.is_empty() => Pool::from_env().await?,
        _ => Pool::connect(format!("sqlite:{}", folder.join("farm.db").display())).await?,
    };
    pool.migrate().await?;
    Ok(pool)
}

/// Renders that work; every eighth one is urgent.
async fn enqueue(pool: &Pool, renders: u32, seconds: u16) -> Result<(), Box<dyn Error>> {
    for number in 1..=renders {
        let (kind, priority) = if number % 8 == 0 { ("urgent", 20) } else { ("clip", 10) };
        let composition = format!("{kind}-{number:03}");
        let job = RenderVideo { composition, seconds, asset: "logo.png".into() };
        job.enqueue(pool).priority(priority).created_by("webhook").await?;
    }
    println!("{renders} renders of {seconds} s enqueued");
    Ok(())
}

/// One render at a time. The heartbeat carries the progress, so it is quick here, and the lease is short: a killed
/// node's render is not waited for as long as the usual 2 minutes.
async fn node(
    name: &str,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Box<dyn Error>> {
    let studio = Studio::new(folder().join("clips"), name).await?;
    let app = chokaq::app().pool(&open().await?).concurrency(1).state(studio).worker(|worker| {
        worker
            .only::<(RenderVideo,)>()
            .heartbeat_interval(Duration::from_millis(500))
            .lease(Duration::from_secs(10))
            .scan_interval(Duration::from_secs(2))
            .shutdown_grace(Duration::from_secs(2))
            .shutdown(stop)
    });
    println!("node {name} is ready");
    Ok(app.run().await?)
}
