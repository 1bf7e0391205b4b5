//! Queues and permits, steered while the worker runs.

use std::time::Duration;

use chokaq::{
    Backoff,
    model::{JobState, JobStatus},
    prelude::*,
};

use crate::support::{Gate, Gated, Log, NEVER, detail, file, memory, note, worker};

#[tokio::test]
async fn nothing_of_a_paused_queue_starts_until_it_is_resumed() {
    let pool = memory().await;
    let log = Log::default();
    pool.operator().pause_queue("notes").await.unwrap();
    let id = note("held").enqueue(&pool).await.unwrap().id;
    let build = || worker(&pool).only::<(crate::support::Note,)>().state(log.clone()).build();
    // A paused queue does not keep an idle worker: this returns.
    build().unwrap().run_until_idle().await.unwrap();
    assert_eq!(detail(&pool, id).await.state, JobState::Active(JobStatus::Pending));
    pool.operator().resume_queue("notes").await.unwrap();
    build().unwrap().run_until_idle().await.unwrap();
    assert_eq!(log.lines(), ["held 1"]);
}

#[tokio::test]
async fn buffered_rows_of_a_queue_that_is_paused_go_back() {
    let pool = memory().await;
    let (gate, mut starts) = Gate::new();
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(Gated { cooperative: true }.enqueue(&pool).await.unwrap().id);
    }
    let worker = worker(&pool).only::<(Gated,)>().state(gate.clone()).concurrency(2);
    let worker = worker.build().unwrap();
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    starts.recv().await.expect("one starts");
    starts.recv().await.expect("another starts");
    pool.operator().pause_queue("gated").await.unwrap();
    // Whatever was fetched ahead goes back; nothing more starts when permits come free.
    loop {
        let stats = pool.operator().summary_stats().await.unwrap();
        if (stats.fetched, stats.pending) == (0, 2) {
            break;
        }
        tokio::task::yield_now().await;
    }
    gate.open.add_permits(2);
    while handle.running() > 0 {
        tokio::task::yield_now().await;
    }
    handle.stop();
    running.await.unwrap().unwrap();
    assert_eq!(pool.operator().summary_stats().await.unwrap().pending, 2);
    assert!(starts.try_recv().is_err(), "no third one started");
}

#[tokio::test]
async fn max_workers_of_a_queue_is_never_exceeded_by_several_workers() {
    let (pool, _folder) = file().await;
    let (gate, mut starts) = Gate::new();
    pool.operator().set_max_workers("gated", Some(3)).await.unwrap();
    for _ in 0..40 {
        Gated { cooperative: true }.enqueue(&pool).await.unwrap();
    }
    let mut running = Vec::new();
    for _ in 0..4 {
        let worker = worker(&pool).only::<(Gated,)>().state(gate.clone()).concurrency(8);
        running.push(tokio::spawn(worker.build().unwrap().run_until_idle()));
    }
    for _ in 0..40 {
        starts.recv().await.expect("it starts");
        gate.open.add_permits(1);
    }
    for worker in running {
        worker.await.unwrap().unwrap();
    }
    assert!(gate.most() <= 3, "{} at once", gate.most());
    assert_eq!(pool.operator().summary_stats().await.unwrap().succeeded_total, 40);
}

#[tokio::test]
async fn the_number_of_permits_changes_while_jobs_run() {
    let pool = memory().await;
    let (gate, mut starts) = Gate::new();
    for _ in 0..6 {
        Gated { cooperative: true }.enqueue(&pool).await.unwrap();
    }
    let worker = worker(&pool).only::<(Gated,)>().state(gate.clone()).concurrency(1);
    let worker = worker.build().unwrap();
    let handle = worker.handle();
    let running = tokio::spawn(worker.run_until_idle());
    starts.recv().await.expect("one starts");
    handle.set_concurrency(3);
    starts.recv().await.expect("a second starts beside the first");
    starts.recv().await.expect("and a third");
    gate.open.add_permits(6);
    running.await.unwrap().unwrap();
    assert_eq!(gate.most(), 3);
}

/// Fails once; how long it waits is up to the worker.
#[job(queue = "once")]
struct Once;

impl Job for Once {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        if ctx.attempt() == 1 { Err("not yet".into()) } else { Ok(()) }
    }
}

#[tokio::test]
async fn the_backoff_and_its_jitter_change_while_the_worker_runs() {
    let pool = memory().await;
    let worker = worker(&pool).only::<(Once,)>().build().unwrap();
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    let waits = async || {
        let id = Once::enqueue(&pool).await.unwrap().id;
        loop {
            let job = detail(&pool, id).await;
            if let Some(error) = job.errors.first() {
                return job.due_at.as_unix_ms() - error.at_ms;
            }
            tokio::task::yield_now().await;
        }
    };
    handle.set_jitter(0.0).unwrap();
    assert_eq!(waits().await, 3_000, "the default");
    handle.set_backoff(Backoff::Fixed(Duration::from_mins(1))).unwrap();
    assert_eq!(waits().await, 60_000);
    handle.set_jitter(1.0).unwrap();
    assert!((60_000..=120_000).contains(&waits().await));
    for refused in [
        handle.set_jitter(1.5),
        handle.set_backoff(Backoff::Fixed(Duration::ZERO)),
        handle.set_backoff(Backoff::Exponential { base: NEVER, max: NEVER, factor: 0.5 }),
    ] {
        let error = refused.unwrap_err();
        assert!(error.is_config() && error.to_string().contains("it must be"), "{error}");
    }
    handle.stop();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_paused_worker_starts_nothing_and_holds_nothing() {
    let pool = memory().await;
    let (gate, mut starts) = Gate::new();
    let worker = worker(&pool).only::<(Gated,)>().state(gate.clone()).build().unwrap();
    let handle = worker.handle();
    handle.pause().await;
    let running = tokio::spawn(worker.run());
    let id = Gated { cooperative: true }.enqueue(&pool).await.unwrap().id;
    assert_eq!(detail(&pool, id).await.state, JobState::Active(JobStatus::Pending));
    handle.resume();
    assert_eq!(starts.recv().await.expect("it starts now").id(), id);
    gate.open.add_permits(1);
    handle.stop();
    running.await.unwrap().unwrap();
    assert_eq!(detail(&pool, id).await.state, JobState::Succeeded);
}
