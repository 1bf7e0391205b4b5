//! Shutdown.

use std::time::Duration;

use chokaq::{
    CancelCause,
    model::{JobState, JobStatus},
    prelude::*,
};

use crate::support::{Gate, Gated, NEVER, detail, memory, worker};

#[tokio::test]
async fn a_job_that_finishes_inside_the_grace_is_archived() {
    let pool = memory().await;
    let (gate, mut starts) = Gate::new();
    let id = Gated { cooperative: true }.enqueue(&pool).await.unwrap().id;
    let worker = worker(&pool).only::<(Gated,)>().state(gate.clone()).shutdown_grace(NEVER);
    let worker = worker.build().unwrap();
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    let ctx = starts.recv().await.expect("it starts");
    handle.stop();
    assert!(!ctx.is_cancelled());
    gate.open.add_permits(1);
    running.await.unwrap().unwrap();
    assert_eq!(detail(&pool, id).await.state, JobState::Succeeded);
}

#[tokio::test]
async fn a_job_that_is_stopped_by_a_shutdown_goes_back_with_no_attempt_used() {
    let pool = memory().await;
    let (gate, mut starts) = Gate::new();
    let ids = [
        Gated { cooperative: true }.enqueue(&pool).await.unwrap().id,
        Gated { cooperative: false }.enqueue(&pool).await.unwrap().id,
    ];
    let worker = worker(&pool)
        .only::<(Gated,)>()
        .state(gate.clone())
        .shutdown_grace(Duration::ZERO)
        .cancel_grace(Duration::from_millis(10))
        .build()
        .unwrap();
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    let ctx = starts.recv().await.expect("one starts");
    starts.recv().await.expect("the other starts");
    handle.stop();
    running.await.unwrap().unwrap();
    assert_eq!(ctx.cancel_cause(), Some(CancelCause::Shutdown));
    for id in ids {
        let job = detail(&pool, id).await;
        assert_eq!(job.state, JobState::Active(JobStatus::Pending));
        assert_eq!((job.attempts, job.worker), (0, None));
        assert!(job.errors.is_empty());
    }
}

#[tokio::test]
async fn rows_that_were_fetched_ahead_go_back_at_a_shutdown() {
    let pool = memory().await;
    let (gate, mut starts) = Gate::new();
    for _ in 0..50 {
        Gated { cooperative: true }.enqueue(&pool).await.unwrap();
    }
    let worker = worker(&pool).only::<(Gated,)>().state(gate.clone()).concurrency(2);
    let worker = worker.shutdown_grace(NEVER).build().unwrap();
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());
    starts.recv().await.expect("one starts");
    starts.recv().await.expect("another starts");
    gate.open.add_permits(10);
    for _ in 0..8 {
        starts.recv().await.expect("more start");
    }
    handle.stop();
    gate.open.add_permits(100);
    running.await.unwrap().unwrap();
    let stats = pool.operator().summary_stats().await.unwrap();
    assert_eq!((stats.fetched, stats.processing), (0, 0));
    assert_eq!(stats.pending + stats.succeeded_total, 50);
}

#[tokio::test]
async fn the_builders_shutdown_future_stops_the_worker() {
    let pool = memory().await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = worker(&pool).only::<(Gated,)>().shutdown(async {
        let _ = stopped.await;
    });
    let running = tokio::spawn(worker.build().unwrap().run());
    stop.send(()).expect("the worker listens");
    running.await.unwrap().unwrap();
}

#[test]
fn a_runtime_that_ends_under_a_worker_gives_its_jobs_back() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("jobs.db").display());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (pool, id) = runtime.block_on(async {
        let pool = chokaq::Pool::connect(&url).await.unwrap();
        let (gate, mut starts) = Gate::new();
        let id = Gated { cooperative: false }.enqueue(&pool).await.unwrap().id;
        let worker = worker(&pool).only::<(Gated,)>().state(gate).build().unwrap();
        tokio::spawn(worker.run());
        starts.recv().await.expect("it starts");
        (pool, id)
    });
    drop(runtime);
    // The worker's own thread ends by itself and gives back what the dropped runtime interrupted.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        loop {
            let job = detail(&pool, id).await;
            if job.state == JobState::Active(JobStatus::Pending) {
                assert_eq!(job.attempts, 0);
                break;
            }
            tokio::task::yield_now().await;
        }
    });
}
