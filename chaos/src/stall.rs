//! A database that stands still for twice the lease while jobs run: two strikes keep the living from being buried.

use std::time::Duration;

use chokaq::{FailureReason, Worker, prelude::*};
use tokio::time::sleep;

use crate::{
    Failure,
    args::Args,
    database::{self, Database},
};

/// Runs through the stall, unless its worker gives it up.
#[job(queue = "long", retries = 3, backoff = fixed("100ms"))]
struct Long {
    ms: u64,
}

impl Job for Long {
    type Output = ();
    async fn run(self, _ctx: &JobContext) -> Result<(), JobError> {
        sleep(Duration::from_millis(self.ms)).await;
        Ok(())
    }
}

/// Answers whether none became a zombie and all succeeded.
pub(crate) async fn run(args: &Args) -> Result<bool, Failure> {
    let folder = tempfile::tempdir()?;
    let file = format!("sqlite:{}", folder.path().join("stall.db").display());
    let url = args.url.clone().unwrap_or(file);
    let pool = database::pool(&url).await?;
    let lease = Duration::from_secs(args.lease);
    let jobs = args.jobs.unwrap_or(50);
    println!(
        "{jobs} jobs run while the database stands still for {:?}; the lease is {lease:?}",
        2 * lease
    );
    let ms = u64::try_from(lease.as_millis())? * 3;
    Long::enqueue_all(&pool, (0..jobs).map(move |_| Long { ms })).await?;
    let worker = Worker::builder(&pool)
        .only::<(Long,)>()
        .concurrency(jobs)
        .heartbeat_interval(lease / 5)
        .lease(lease)
        .scan_interval(lease / 5)
        .build()?;
    let handle = worker.handle();
    let running = tokio::spawn(worker.run_until_idle());
    while handle.running() < jobs {
        sleep(Duration::from_millis(10)).await;
    }
    Database::of(&url).await?.stall(2 * lease).await?;
    running.await??;
    let stats = pool.operator().summary_stats().await?;
    let dead = pool.operator().dlq_page(None, None, 1_000).await?;
    let zombies = dead.iter().filter(|row| row.reason == FailureReason::Zombie).count();
    println!(
        "{} succeeded, {} are dead, {zombies} of them zombies",
        stats.succeeded_total,
        dead.len()
    );
    Ok(zombies == 0 && stats.succeeded_total == jobs as u64)
}
