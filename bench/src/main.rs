//! Measures chokaq; prints one line of JSON a measurement. `--help` tells the modes.

#![expect(clippy::cast_precision_loss, reason = "a rate need not be exact")]

mod args;
mod memory;
mod scale;

use std::{
    future::IntoFuture,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use args::Args;
use chokaq::{Enqueue, Pool, Worker, prelude::*};
use serde_json::json;
use tokio::sync::mpsc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The payload of all the compared programs: an id, an address of 24 characters, a text of 200.
#[job(retries = 0)]
struct Noop {
    id: u64,
    email: String,
    body: String,
}

static HANDLED: AtomicU64 = AtomicU64::new(0);
static STARTS: OnceLock<mpsc::UnboundedSender<(u64, Instant)>> = OnceLock::new();

impl Job for Noop {
    type Output = ();
    async fn run(self, _: &JobContext) -> Result<(), JobError> {
        let now = Instant::now();
        HANDLED.fetch_add(1, Ordering::Relaxed);
        if let Some(starts) = STARTS.get() {
            starts.send((self.id, now))?;
        }
        Ok(())
    }
}

fn noop(id: u64) -> Noop {
    let mut random = fastrand::Rng::with_seed(id);
    Noop {
        id,
        email: format!("user{:08}@example.com", id % 100_000_000),
        body: (0..200).map(|_| random.lowercase()).collect(),
    }
}

fn main() -> Result<(), Failure> {
    if std::env::args().any(|word| word == "--help") {
        println!("{}", args::USAGE);
        return Ok(());
    }
    let args = Args::parse().map_err(|e| format!("{e}\n{}", args::USAGE))?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = args.option("threads") {
        runtime.worker_threads(threads.parse()?);
    }
    runtime.enable_all().build()?.block_on(measure(&args))
}

async fn measure(args: &Args) -> Result<(), Failure> {
    let pool = Pool::connect(args.url()).await?;
    match args.mode.as_str() {
        "drain" => drain(args, &pool).await,
        "enqueue-one" => enqueue_one(args, &pool).await,
        "enqueue-batch" => enqueue_batch(args, &pool).await,
        "enqueue-many" => enqueue_many(args, &pool).await,
        "latency" => latency(args, &pool).await,
        "memory" => memory::run(args, &pool).await,
        "scale" => scale::run(args).await,
        mode => Err(format!("unknown mode {mode:?}\n{}", args::USAGE).into()),
    }
}

fn report(args: &Args, seconds: f64) {
    let line = json!({
        "peer": "chokaq", "version": env!("CARGO_PKG_VERSION"), "mode": args.mode, "jobs": args.jobs,
        "concurrency": args.concurrency, "seconds": round(seconds),
        "jobs_per_s": round(args.jobs as f64 / seconds),
        "notes": format!("SQLite, WAL, synchronous={}", args.synchronous()),
    });
    println!("{line}");
}

fn round(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}

async fn drain(args: &Args, pool: &Pool) -> Result<(), Failure> {
    Noop::enqueue_all(pool, (0..args.jobs as u64).map(noop)).await?;
    let worker = Worker::builder(pool).concurrency(args.concurrency).build()?;
    let handle = worker.handle();
    let start = Instant::now();
    let running = tokio::spawn(worker.run());
    while HANDLED.load(Ordering::Relaxed) < args.jobs as u64 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    while pool.operator().summary_stats().await?.succeeded_total < args.jobs as u64 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let seconds = start.elapsed().as_secs_f64();
    handle.stop();
    running.await??;
    report(args, seconds);
    Ok(())
}

async fn enqueue_one(args: &Args, pool: &Pool) -> Result<(), Failure> {
    let jobs: Vec<_> = (0..args.jobs as u64).map(noop).collect();
    let start = Instant::now();
    for job in jobs {
        job.enqueue(pool).await?;
    }
    report(args, start.elapsed().as_secs_f64());
    Ok(())
}

async fn enqueue_batch(args: &Args, pool: &Pool) -> Result<(), Failure> {
    let jobs: Vec<_> = (0..args.jobs as u64).map(noop).collect();
    let start = Instant::now();
    Noop::enqueue_all(pool, jobs).await?;
    report(args, start.elapsed().as_secs_f64());
    Ok(())
}

async fn enqueue_many(args: &Args, pool: &Pool) -> Result<(), Failure> {
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..args.concurrency as u64 {
        let pool = pool.clone();
        let (jobs, step) = (args.jobs as u64, args.concurrency as u64);
        tasks.spawn(async move {
            for id in (task..jobs).step_by(usize::try_from(step).unwrap_or(1)) {
                noop(id).enqueue(&pool).into_future().await?;
            }
            Ok::<_, chokaq::Error>(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    report(args, start.elapsed().as_secs_f64());
    Ok(())
}

async fn latency(args: &Args, pool: &Pool) -> Result<(), Failure> {
    const WARM_UP: u64 = 10;
    let (sender, mut starts) = mpsc::unbounded_channel();
    STARTS.set(sender).map_err(|_| "measured twice")?;
    let worker = Worker::builder(pool).concurrency(args.concurrency).build()?;
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    let mut micros = Vec::new();
    for id in 0..args.jobs as u64 + WARM_UP {
        let job = noop(id);
        let call = Instant::now();
        job.enqueue(pool).await?;
        let (started, at) = starts.recv().await.ok_or("the worker ended")?;
        assert_eq!(started, id);
        if id >= WARM_UP {
            micros.push(at.saturating_duration_since(call).as_micros());
        }
        tokio::time::sleep(Duration::from_micros(fastrand::u64(0..20_000))).await;
    }
    handle.stop();
    running.await??;
    micros.sort_unstable();
    let percentile = |p: usize| micros[(micros.len() * p).div_ceil(100).max(1) - 1];
    let line = json!({
        "peer": "chokaq", "version": env!("CARGO_PKG_VERSION"), "mode": args.mode, "jobs": args.jobs,
        "concurrency": args.concurrency, "p50_us": percentile(50), "p95_us": percentile(95),
        "p99_us": percentile(99), "notes": format!("SQLite, WAL, synchronous={}", args.synchronous()),
    });
    println!("{line}");
    Ok(())
}
