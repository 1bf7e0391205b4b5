//! About a thousand jobs of several kinds, run to the end in a fresh SQLite file, and what became of them.
//!
//! ```sh
//! cargo run --release --example quickstart
//! ```

use std::{error::Error, sync::mpsc, time::Duration};

use chokaq::{JobCall, Pool, Worker, prelude::*};
use indicatif::ProgressBar;
use tokio::time::{interval, sleep};
use tower::util::MapRequestLayer;

/// The usual case: it waits a little for a mail server, and succeeds.
#[job(queue = "mail")]
struct SendReceipt {
    order_id: u64,
}

impl Job for SendReceipt {
    type Output = String;
    async fn run(self, _: &JobContext) -> Result<String, JobError> {
        sleep(Duration::from_millis(2)).await;
        Ok(format!("receipt of order {}", self.order_id))
    }
}

/// It computes; one of them is enqueued with a payload that is not a `ResizeImage`.
#[job(queue = "images")]
struct ResizeImage {
    width: u32,
}

impl Job for ResizeImage {
    type Output = u32;
    async fn run(self, _: &JobContext) -> Result<u32, JobError> {
        Ok(self.width / 2)
    }
}

/// It fails twice, and succeeds on its third attempt.
#[job(backoff = fixed("50ms"))]
struct CallFlakyApi;

impl Job for CallFlakyApi {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        if ctx.attempt() < 3 { Err("503 Service Unavailable".into()) } else { Ok(()) }
    }
}

/// No retry can help.
#[job]
struct ChargeCard;

impl Job for ChargeCard {
    type Output = ();
    async fn run(self, _: &JobContext) -> Result<(), JobError> {
        Err(JobError::fatal("the card has expired"))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("quickstart.db");
    let pool = Pool::connect(format!("sqlite:{}", file.display())).await?;
    let jobs = enqueue(&pool).await?;

    // A layer sees every run: this one hands its context out, for the times in the report.
    let (runs, ran) = mpsc::channel();
    let watch = MapRequestLayer::new(move |call: JobCall| {
        let _ = runs.send(call.context.clone());
        call
    });
    // Forty failures in a row are what this program is about: a circuit breaker would take them for an outage, and wait.
    let worker = Worker::builder(&pool).layer(watch).circuit_failures(0).build()?;
    let bar = tokio::spawn(show_progress(pool.clone(), jobs));
    worker.run_until_idle().await?;
    bar.abort();
    report(&pool, &ran.try_iter().collect::<Vec<_>>()).await
}

/// Some of every kind; answers how many.
async fn enqueue(pool: &Pool) -> chokaq::Result<u64> {
    let receipts = (1..=600).map(|order_id| SendReceipt { order_id });
    let images = (1..=380).map(|width| ResizeImage { width });
    let mut jobs = SendReceipt::enqueue_all(pool, receipts).await?.added;
    jobs += ResizeImage::enqueue_all(pool, images).await?.added;
    jobs += CallFlakyApi::enqueue_all(pool, (0..20).map(|_| CallFlakyApi)).await?.added;
    ChargeCard::enqueue(pool).await?;
    pool.enqueue_raw("resize_image", r#"{"width": "wide"}"#).await?;
    SendReceipt { order_id: 601 }.enqueue(pool).delay(Duration::from_secs(1)).await?;
    let first = SendReceipt { order_id: 602 }.enqueue(pool).idempotency_key("602").await?;
    let again = SendReceipt { order_id: 602 }.enqueue(pool).idempotency_key("602").await?;
    jobs += 4;
    println!("enqueued    {jobs:>6}");
    let refused = u8::from(again.duplicate && again.id == first.id);
    println!("duplicates  {refused:>6}  (the same key twice is one job)");
    Ok(jobs)
}

/// What became of them, as the database has it, and how long they waited.
async fn report(pool: &Pool, runs: &[JobContext]) -> Result<(), Box<dyn Error>> {
    let stats = pool.operator().summary_stats().await?;
    println!("archived    {:>6}", stats.succeeded_total);
    println!("retried     {:>6}", stats.retried_total);
    println!("dead        {:>6}", stats.dead);
    for job in pool.operator().dlq_page(None, None, 100).await? {
        let reason = job.reason.as_str();
        println!("  {:<14}{reason:<12}{}", job.job_type, job.error.unwrap_or_default());
    }

    // Of what was due when the first one started: without the retries and the delayed one.
    let first = runs.iter().map(JobContext::started_at).min().ok_or("nothing ran")?;
    let due = runs.iter().filter(|run| run.due_at() <= first);
    let last = due.clone().map(JobContext::started_at).max().unwrap_or(first);
    let jobs = f64::from(u32::try_from(due.count())?);
    println!("throughput  {:>6.0}  jobs/s", jobs / last.since(first).as_secs_f64());
    let mut waits: Vec<_> = runs.iter().map(|run| run.started_at().since(run.due_at())).collect();
    waits.sort();
    for percent in [50, 99] {
        let wait = waits.get(waits.len() * percent / 100).copied().unwrap_or_default();
        println!(
            "p{percent}         {:>6}  ms from due to start (they all came at once)",
            wait.as_millis()
        );
    }
    Ok(())
}

/// A bar on standard error, only where that is a terminal.
async fn show_progress(pool: Pool, jobs: u64) {
    let bar = ProgressBar::new(jobs);
    let mut tick = interval(Duration::from_millis(50));
    loop {
        tick.tick().await;
        if let Ok(stats) = pool.operator().summary_stats().await {
            bar.set_position(stats.succeeded_total + stats.failed_total);
        }
    }
}
