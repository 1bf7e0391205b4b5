//! Heartbeats, lost leases and lost replies.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use chokaq::{
    Pool,
    model::JobState,
    prelude::*,
    storage::sqlite::{Location, SqliteOptions, SqliteStorage},
};

use crate::support::{Gate, Gated, Log, NEVER, detail, file, memory, note, worker};

/// Blocks its thread, as code that does not know of async does.
#[job(retries = 0)]
struct Block;

impl Job for Block {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        ctx.state::<Arc<AtomicU32>>()?.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_secs(4));
        Ok(())
    }
}

/// The runtime has one thread, and each of two handlers blocks it for four times the lease.
#[tokio::test]
async fn handlers_that_block_the_whole_runtime_keep_their_leases() {
    let (pool, _folder) = file().await;
    let starts = Arc::new(AtomicU32::new(0));
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(Block::enqueue(&pool).await.unwrap().id);
    }
    let worker = worker(&pool)
        .only::<(Block,)>()
        .state(Arc::clone(&starts))
        .heartbeat_interval(Duration::from_millis(100))
        .lease(Duration::from_secs(1))
        .scan_interval(Duration::from_millis(50));
    worker.build().unwrap().run_until_idle().await.unwrap();
    for id in ids {
        let job = detail(&pool, id).await;
        assert_eq!((job.state, job.attempts), (JobState::Succeeded, 1));
    }
    assert_eq!(starts.load(Ordering::SeqCst), 2);
}

/// The general lease is an hour: without the queue's own the handler would go on.
#[tokio::test]
async fn a_worker_that_cannot_beat_gives_up_by_the_lease_of_the_queue() {
    let (pool, folder) = file().await;
    pool.operator().set_zombie_timeout("gated", Some(Duration::from_secs(1))).await.unwrap();
    let (gate, mut starts) = Gate::new();
    let id = Gated { cooperative: true }.enqueue(&pool).await.unwrap().id;
    let worker = worker(&pool).only::<(Gated,)>().state(gate.clone()).lease(NEVER);
    let worker = worker.heartbeat_interval(NEVER / 4).build().unwrap();
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    let ctx = starts.recv().await.expect("it starts");
    let lock = rusqlite::Connection::open(folder.path().join("jobs.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    ctx.cancelled().await;
    assert_eq!(ctx.cancel_cause(), Some(chokaq::CancelCause::LeaseLost));
    lock.execute_batch("COMMIT").unwrap();
    // Nobody took the job meanwhile: it is tried again.
    let again = starts.recv().await.expect("it starts again");
    assert_eq!((again.id(), again.attempt()), (id, 2));
    gate.open.add_permits(1);
    while detail(&pool, id).await.state != JobState::Succeeded {
        tokio::task::yield_now().await;
    }
    handle.stop();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_handler_whose_row_is_gone_is_told_and_its_result_is_discarded() {
    let (pool, folder) = file().await;
    let (gate, mut starts) = Gate::new();
    Gated { cooperative: true }.enqueue(&pool).await.unwrap();
    let worker = worker(&pool).only::<(Gated,)>().state(gate);
    let worker = worker.heartbeat_interval(Duration::from_millis(50)).build().unwrap();
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    let ctx = starts.recv().await.expect("it starts");
    let direct = rusqlite::Connection::open(folder.path().join("jobs.db")).unwrap();
    direct.busy_timeout(NEVER).unwrap();
    assert_eq!(direct.execute("DELETE FROM JobsHot", []).unwrap(), 1);
    ctx.cancelled().await;
    assert_eq!(ctx.cancel_cause(), Some(chokaq::CancelCause::LeaseLost));
    while handle.running() > 0 {
        tokio::task::yield_now().await;
    }
    let stats = pool.operator().summary_stats().await.unwrap();
    assert_eq!(
        (stats.pending, stats.succeeded_total, stats.failed_total, stats.dead),
        (0, 0, 0, 0)
    );
    handle.stop();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn progress_reaches_the_database_with_a_heartbeat() {
    let pool = memory().await;
    let (gate, mut starts) = Gate::new();
    let id = Gated { cooperative: true }.enqueue(&pool).await.unwrap().id;
    let worker = worker(&pool)
        .only::<(Gated,)>()
        .state(gate.clone())
        .heartbeat_interval(Duration::from_millis(20))
        .build()
        .unwrap();
    let running = tokio::spawn(worker.run_until_idle());
    let ctx = starts.recv().await.expect("it starts");
    ctx.progress(0.25, "a quarter");
    loop {
        if let Some(progress) = detail(&pool, id).await.progress {
            assert_eq!(progress, (0.25, "a quarter".to_owned()));
            break;
        }
        tokio::task::yield_now().await;
    }
    gate.open.add_permits(1);
    running.await.unwrap().unwrap();
}

/// Replies are lost, many times, in all parts of the worker's path: each job still runs once, and none is left behind.
#[tokio::test]
async fn lost_replies_double_lose_and_strand_nothing() {
    let storage = SqliteStorage::open(Location::Memory, SqliteOptions::default()).unwrap();
    let pool = Pool::over(storage.clone());
    let log = Log::default();
    let worker = worker(&pool).only::<(crate::support::Note,)>().state(log.clone());
    let worker = worker.concurrency(5).batch(10).build().unwrap();
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    for n in 0..200 {
        storage.lose_replies(1 + n % 3);
        note(n.to_string()).enqueue(&pool).idempotency_key(n.to_string()).await.unwrap();
    }
    loop {
        let stats = pool.operator().summary_stats().await.unwrap();
        if stats.succeeded_total == 200 {
            break;
        }
        tokio::task::yield_now().await;
    }
    handle.stop();
    running.await.unwrap().unwrap();
    let mut lines = log.lines();
    lines.sort();
    let mut expected: Vec<_> = (0..200).map(|n| format!("{n} 1")).collect();
    expected.sort();
    assert_eq!(lines, expected);
    let stats = pool.operator().summary_stats().await.unwrap();
    assert_eq!((stats.pending, stats.fetched, stats.processing, stats.dead), (0, 0, 0, 0));
    assert_eq!((stats.succeeded_total, stats.retried_total), (200, 0));
}
