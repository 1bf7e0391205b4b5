//! About a thousand jobs of several kinds, run to the end in a fresh SQLite file, and what became of them.
//!
//! ```sh
//! cargo run --release --example quickstart
//! ```

use std::{collections::BTreeMap, error::Error, sync::mpsc, time::Duration};

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
    let pool = Pool::connect(&format!("sqlite:{}", file.display())).await?;

    let receipts = (1..=600).map(|order_id| SendReceipt { order_id });
    let images = (1..=380).map(|width| ResizeImage { width });
    let mut jobs = SendReceipt::enqueue_all(&pool, receipts).await?.added;
    jobs += ResizeImage::enqueue_all(&pool, images).await?.added;
    jobs += CallFlakyApi::enqueue_all(&pool, (0..20).map(|_| CallFlakyApi)).await?.added;
    ChargeCard::enqueue(&pool).await?;
    pool.enqueue_raw("resize_image", r#"{"width": "wide"}"#).queue("images").await?;
    SendReceipt { order_id: 601 }.enqueue(&pool).delay(Duration::from_secs(1)).await?;
    SendReceipt { order_id: 602 }.enqueue(&pool).idempotency_key("order 602").await?;
    let again = SendReceipt { order_id: 602 }.enqueue(&pool).idempotency_key("order 602").await?;
    jobs += 4;

    // A layer sees every run: this one hands its context out, for the times below.
    let (runs, ran) = mpsc::channel();
    let watch = MapRequestLayer::new(move |call: JobCall| {
        let _ = runs.send(call.context.clone());
        call
    });
    let worker = Worker::builder(&pool).layer(watch).build()?;
    let bar = tokio::spawn(show_progress(pool.clone(), jobs));
    worker.run_until_idle().await?;
    bar.abort();

    let stats = pool.operator().summary_stats().await?;
    let dead = pool.operator().dlq_page(None, None, 100).await?;
    let mut reasons = BTreeMap::new();
    for job in &dead {
        *reasons.entry(job.reason.as_str()).or_insert(0) += 1;
    }
    let runs: Vec<JobContext> = ran.try_iter().collect();
    let mut waits: Vec<_> = runs.iter().map(|run| run.started_at().since(run.due_at())).collect();
    waits.sort();

    println!("enqueued   {jobs:>7}   and {} refused as a duplicate", u32::from(again.duplicate));
    println!("archived   {:>7}", stats.succeeded_total);
    println!("retried    {:>7}", stats.retried_total);
    println!("dead       {:>7}", stats.dead);
    for (reason, count) in reasons {
        println!("  {reason:<20} {count}");
    }
    println!(
        "p50 from due to start {:?}, p99 {:?}",
        waits[waits.len() / 2],
        waits[waits.len() * 99 / 100]
    );
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
