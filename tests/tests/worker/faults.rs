//! Code that misbehaves, and a storage that does: each was a fault once.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use chokaq::{
    FailureReason, JobState, JobStatus, Pool,
    prelude::*,
    storage::sqlite::{Location, SqliteOptions, SqliteStorage},
};

use crate::support::{
    Gate, Gated, Log, Note, death, detail, file, memory, note, worker, worker_log,
};

/// How often handlers were entered.
type Runs = Arc<AtomicU32>;

fn count(ctx: &JobContext) -> Result<(), JobError> {
    ctx.state::<Runs>()?.fetch_add(1, Ordering::SeqCst);
    Ok(())
}

fn panicking_backoff(failed_attempt: u32) -> Duration {
    [Duration::ZERO][failed_attempt as usize]
}

#[job(retries = 1, backoff = panicking_backoff)]
struct BadBackoff;

impl Job for BadBackoff {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        count(ctx)?;
        Err("no".into())
    }
}

#[derive(Debug)]
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("an error without words")
    }
}

impl std::error::Error for Unspeakable {}

#[job(retries = 0)]
struct BadError;

impl Job for BadError {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        count(ctx)?;
        Err(Unspeakable.into())
    }
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "a destructor that panics");
    }
}

#[job(retries = 0, timeout = "10ms")]
struct BadDestructor;

impl Job for BadDestructor {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        count(ctx)?;
        let _bomb = Bomb;
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_panic_outside_the_handlers_code_is_a_failed_attempt_not_a_free_one() {
    let pool = memory().await;
    let runs = Runs::default();
    let ids = [
        BadError::enqueue(&pool).await.unwrap().id,
        BadDestructor::enqueue(&pool).await.unwrap().id,
    ];
    let worker = worker(&pool).only::<(BadError, BadDestructor)>().state(Arc::clone(&runs));
    let worker = worker.cancel_grace(Duration::from_millis(10));
    worker.build().unwrap().run_until_idle().await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 2, "each ran once");
    let (reason, job) = death(&pool, ids[0]).await;
    assert_eq!((reason, job.attempts), (FailureReason::MaxRetriesExceeded, 1));
    assert!(job.errors[0].text.contains("an error without words"), "{:?}", job.errors);
    let (reason, job) = death(&pool, ids[1]).await;
    assert_eq!((reason, job.attempts), (FailureReason::Timeout, 1));
}

#[tokio::test]
async fn a_backoff_function_that_panics_is_replaced_by_the_default() {
    let pool = memory().await;
    let runs = Runs::default();
    let id = BadBackoff::enqueue(&pool).await.unwrap().id;
    let worker = worker(&pool).only::<(BadBackoff,)>().state(Arc::clone(&runs)).build().unwrap();
    worker.run_until_idle().await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    let (_, job) = death(&pool, id).await;
    assert_eq!(job.attempts, 2);
    // The default waits three seconds at least.
    let waited = job.errors[1].at_ms - job.errors[0].at_ms;
    assert!(waited >= 3_000, "{waited}");
}

#[tokio::test]
async fn an_outcome_that_the_database_refuses_for_a_while_is_stored_in_the_end() {
    let log = worker_log();
    let (pool, folder) = file().await;
    let (gate, mut starts) = Gate::new();
    let id = Gated { cooperative: true }.enqueue(&pool).await.unwrap().id;
    let worker = worker(&pool).only::<(Gated,)>().state(gate.clone()).build().unwrap();
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    starts.recv().await.expect("it starts");
    let db = rusqlite::Connection::open(folder.path().join("jobs.db")).unwrap();
    db.busy_timeout(Duration::from_secs(10)).unwrap();
    db.execute_batch("ALTER TABLE JobsArchive RENAME TO Hidden").unwrap();
    gate.open.add_permits(1);
    let refused = |line: &String| {
        line.contains("the outcome of a job cannot be stored") && line.contains(&id.to_string())
    };
    while !log.lines().iter().any(refused) {
        tokio::task::yield_now().await;
    }
    assert_eq!(handle.running(), 1, "the job is still this worker's");
    db.execute_batch("ALTER TABLE Hidden RENAME TO JobsArchive").unwrap();
    while handle.running() > 0 {
        tokio::task::yield_now().await;
    }
    let job = detail(&pool, id).await;
    assert_eq!((job.state, job.attempts), (JobState::Succeeded, 1));
    handle.stop();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_stop_in_the_middle_of_lost_replies_leaves_nothing_fetched_or_processing() {
    for round in 0..20 {
        let storage = SqliteStorage::open(Location::Memory, SqliteOptions::default()).unwrap();
        let pool = Pool::over(storage.clone());
        let log = Log::default();
        for n in 0..30 {
            note(n.to_string()).enqueue(&pool).await.unwrap();
        }
        let worker = worker(&pool).only::<(Note,)>().state(log.clone()).build().unwrap();
        let handle = worker.handle();
        storage.lose_replies(1 + round % 5);
        let running = tokio::spawn(worker.run());
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        handle.stop();
        running.await.unwrap().unwrap();
        let stats = pool.operator().summary_stats().await.unwrap();
        assert_eq!((stats.fetched, stats.processing), (0, 0), "round {round}");
        let ran = log.lines().len() as u64;
        assert_eq!((stats.succeeded_total, stats.pending), (ran, 30 - ran), "round {round}");
    }
}

/// Rows that were fetched ahead while jobs were short do not wait for a worker whose jobs are long now.
#[tokio::test]
async fn rows_that_wait_behind_long_jobs_go_to_a_worker_with_a_free_permit() {
    let (pool, _folder) = file().await;
    let (gate, mut starts) = Gate::new();
    let log = Log::default();
    for n in 0..300 {
        note(format!("before {n}")).enqueue(&pool).queue("shared").await.unwrap();
    }
    let build = |concurrency| {
        let worker =
            worker(&pool).only::<(Note, Gated)>().queues(["shared"]).concurrency(concurrency);
        worker.state(log.clone()).state(gate.clone()).build().unwrap()
    };
    let first = build(2);
    let first_handle = first.handle();
    let first = tokio::spawn(first.run());
    while log.lines().len() < 300 {
        tokio::task::yield_now().await;
    }
    for _ in 0..2 {
        Gated { cooperative: true }.enqueue(&pool).queue("shared").await.unwrap();
    }
    for n in 0..50 {
        note(format!("after {n}")).enqueue(&pool).queue("shared").await.unwrap();
    }
    // Both permits of the first worker are held by jobs that go on until the test lets them.
    starts.recv().await.expect("one long job runs");
    starts.recv().await.expect("and another");
    let second = build(2);
    let second_handle = second.handle();
    let second = tokio::spawn(second.run());
    while log.lines().len() < 350 {
        tokio::task::yield_now().await;
    }
    gate.open.add_permits(2);
    for (handle, worker) in [(first_handle, first), (second_handle, second)] {
        handle.stop();
        worker.await.unwrap().unwrap();
    }
}

/// Takes longer than quick jobs, and not as long as a buffer that stands still would be noticed by.
#[job(queue = "shared")]
struct Slow;

impl Job for Slow {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        ctx.state::<Log>()?.add("slow");
        tokio::time::sleep(Duration::from_millis(500)).await;
        Ok(())
    }
}

/// What was claimed while jobs were quick is not kept by one worker once they are slow, though it moves all the time.
#[tokio::test]
async fn rows_claimed_ahead_of_slow_jobs_are_shared_with_an_idle_worker() {
    let (pool, _folder) = file().await;
    let quick = (0..300).map(|n| note(n.to_string()));
    chokaq::Enqueue::enqueue_all(&pool, quick).queue("shared").await.unwrap();
    Slow::enqueue_all(&pool, (0..30).map(|_| Slow)).await.unwrap();
    let start = || {
        let log = Log::default();
        let worker = worker(&pool).only::<(Note, Slow)>().queues(["shared"]).concurrency(1);
        let worker = worker.state(log.clone()).build().unwrap();
        (log, worker.handle(), tokio::spawn(worker.run()))
    };
    let slow = |log: &Log| log.lines().iter().filter(|line| *line == "slow").count();
    let (first_log, first_handle, first) = start();
    while slow(&first_log) == 0 {
        tokio::task::yield_now().await;
    }
    let (second_log, second_handle, second) = start();
    while slow(&first_log) + slow(&second_log) < 30 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for (handle, worker) in [(first_handle, first), (second_handle, second)] {
        handle.stop();
        worker.await.unwrap().unwrap();
    }
    let first = slow(&first_log);
    assert!(first <= 20, "the worker that came first did {first} of 30");
}

#[tokio::test]
async fn a_job_that_is_cancelled_between_fetch_and_start_does_not_run() {
    let pool = memory().await;
    let log = Log::default();
    let id = note("late").enqueue(&pool).await.unwrap().id;
    let worker = worker(&pool).only::<(Note,)>().state(log.clone()).build().unwrap();
    let handle = worker.handle();
    handle.stop();
    worker.run().await.unwrap();
    assert!(log.lines().is_empty(), "a stopped worker starts nothing");
    assert_eq!(detail(&pool, id).await.state, JobState::Active(JobStatus::Pending));
}
