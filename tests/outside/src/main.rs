//! The public API, used from outside: neither serde nor inventory is a dependency here.
#![deny(warnings)]

use std::time::{Duration, SystemTime};

use chokaq::{
    CancelOutcome, Edits, FailureReason, JobState, Pool, ResurrectOutcome, Worker, prelude::*,
    serde::{Deserialize, Serialize},
};

#[derive(Clone)]
struct Mailer;

impl Mailer {
    async fn send(&self, to: &str) -> std::io::Result<String> {
        Ok(format!("sent to {to}"))
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(crate = "chokaq::serde")]
pub struct Receipt {
    text: String,
}

#[job(queue = "mail", retries = 5, timeout = "30s", priority = 20, max_age = "2h", aliases = ["send"])]
pub struct SendReceipt {
    pub order_id: u64,
    pub to: String,
}

impl Job for SendReceipt {
    type Output = Receipt;
    async fn run(self, ctx: &JobContext) -> Result<Receipt, JobError> {
        let mailer = ctx.state::<Mailer>()?;
        ctx.progress(0.5, "half");
        Ok(Receipt { text: mailer.send(&self.to).await? })
    }
}

#[job(backoff = fixed("1ms"), on_crash = "retry")]
struct Flaky(u32);

impl Job for Flaky {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        if ctx.attempt() < self.0 { Err("not yet".into()) } else { Ok(()) }
    }
}

#[job]
struct Tick;

impl Job for Tick {
    type Output = ();
    async fn run(self, _: &JobContext) -> Result<(), JobError> {
        Err(JobError::fatal("no clock"))
    }
}

#[job(type_key = "elsewhere", enqueue_only)]
struct Elsewhere;

#[tokio::main]
async fn main() -> chokaq::Result<()> {
    let pool = Pool::builder("sqlite::memory:").retries(4).connect().await?;
    let receipt = || SendReceipt { order_id: 7, to: "ada@example.com".into() };
    let keyed = receipt().enqueue(&pool).idempotency_key("order-7").tags(["a"]).created_by("me").await?;
    assert!(receipt().enqueue(&pool).idempotency_key("order-7").await?.duplicate);
    let by_type = Tick::enqueue(&pool).await?;
    Tick.enqueue(&pool).delay(Duration::from_millis(1)).await?;
    let flaky = Flaky(3).enqueue(&pool).at(SystemTime::now()).await?;
    let waiting = Elsewhere.enqueue(&pool).queue("elsewhere").priority(1).await?;
    assert_eq!(pool.cancel(waiting.id).await?, CancelOutcome::Cancelled);
    pool.enqueue_raw("send", r#"{"order_id":8,"to":"grace@example.com"}"#).await?;
    let all = SendReceipt::enqueue_all(&pool, (0..1_000).map(|order_id| SendReceipt { order_id, to: "x".into() }));
    assert_eq!(all.await?.added, 1_000);

    let work = || Worker::builder(&pool).state(Mailer).concurrency(8).on_dead_letter(|_| {}).build();
    work()?.run_until_idle().await?;

    let job = pool.job(keyed.id).await?.expect("it is archived");
    assert_eq!(job.output::<Receipt>()?, Some(Receipt { text: "sent to ada@example.com".into() }));
    assert_eq!(pool.job(flaky.id).await?.expect("it is archived").attempts, 3);
    let dead = pool.job(by_type.id).await?.expect("it is dead");
    assert_eq!(dead.state, JobState::Dead(FailureReason::FatalError));
    let edits = Edits::default().priority(1);
    assert_eq!(pool.operator().resurrect(&[by_type.id], edits).await?, [ResurrectOutcome::Resurrected]);
    let worker = work()?;
    let handle = worker.handle();
    handle.set_concurrency(1);
    handle.stop();
    worker.run().await?;
    let stats = pool.operator().summary_stats().await?;
    println!("{} succeeded, {} dead, {} pending", stats.succeeded_total, stats.dead, stats.pending);
    assert_eq!((stats.succeeded_total, stats.pending), (1_003, 1));
    Ok(())
}
