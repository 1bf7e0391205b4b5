//! A real worker over each backend, through the public API.

use chokaq::{Pool, Worker, prelude::*};

use crate::prelude::{Db, Duration, FailureReason, JobState};

claims!(a_worker_runs_succeeds_retries_buries_and_cancels, a_worker_keeps_the_lease_of_a_long_job);

#[job(queue = "flaky", retries = 2, backoff = fixed("10ms"))]
struct Flaky {
    fails: u32,
}

impl Job for Flaky {
    type Output = u32;

    async fn run(self, ctx: &JobContext) -> Result<u32, JobError> {
        if ctx.attempt() <= self.fails {
            return Err("not yet".into());
        }
        Ok(ctx.attempt())
    }
}

#[job(queue = "long")]
struct Long;

impl Job for Long {
    type Output = ();

    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        ctx.progress(0.5, "half way");
        // Longer than its lease, were it not renewed.
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok(())
    }
}

async fn a_worker_runs_succeeds_retries_buries_and_cancels(db: &Db) {
    let pool = Pool::over(db.storage.clone());
    let flaky = (0..60).map(|n| Flaky { fails: n % 4 });
    let total =
        Flaky::enqueue_all(&pool, flaky.collect::<Vec<_>>()).await.expect("they are stored");
    assert_eq!(total.added, 60);
    let twice = Flaky { fails: 1 }.enqueue(&pool).idempotency_key("k").await.expect("stored");
    let again = Flaky { fails: 1 }.enqueue(&pool).idempotency_key("k").await.expect("answered");
    assert!(again.duplicate && again.id == twice.id);
    let later =
        Flaky { fails: 0 }.enqueue(&pool).delay(Duration::from_hours(1)).await.expect("stored");
    let cancelled = pool.cancel(later.id).await.expect("answered");
    assert_eq!(cancelled, chokaq::CancelOutcome::Cancelled);

    // Most attempts fail here: an open circuit would be right, and slow.
    let worker = Worker::builder(&pool).only::<(Flaky,)>().concurrency(8).circuit_failures(0);
    let worker = worker.build().expect("a worker");
    worker.run_until_idle().await.expect("it stops by itself");

    let done = pool.job(twice.id).await.expect("answered").expect("known");
    assert_eq!((done.state, done.attempts), (JobState::Succeeded, 2));
    assert_eq!(done.output::<u32>().expect("a number"), Some(2));
    assert_eq!(done.errors.len(), 1);
    let dead = pool.operator().dlq_page(None, None, 100).await.expect("a page");
    let exhausted = dead.iter().filter(|row| row.reason == FailureReason::MaxRetriesExceeded);
    assert_eq!((exhausted.count(), dead.len()), (15, 16), "every fourth, and the cancelled one");
    assert_eq!(db.rows().await, [0, 46, 16]);
}

async fn a_worker_keeps_the_lease_of_a_long_job(db: &Db) {
    let pool = Pool::over(db.storage.clone());
    let job = Long.enqueue(&pool).await.expect("stored");
    let worker = Worker::builder(&pool)
        .only::<(Long,)>()
        .heartbeat_interval(Duration::from_millis(500))
        .lease(Duration::from_secs(2))
        .build()
        .expect("a worker");
    worker.run_until_idle().await.expect("it stops by itself");
    let job = pool.job(job.id).await.expect("answered").expect("known");
    assert_eq!((job.state, job.attempts), (JobState::Succeeded, 1));
}
