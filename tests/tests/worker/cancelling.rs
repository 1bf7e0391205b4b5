//! Cancelling jobs that wait and jobs that run.

use chokaq::{
    CancelCause, FailureReason,
    model::{CancelOutcome, JobState},
    prelude::*,
};

use crate::support::{Gate, Gated, Log, death, detail, memory, note, worker};

#[tokio::test]
async fn a_waiting_job_that_is_cancelled_never_runs() {
    let pool = memory().await;
    let log = Log::default();
    let id = note("cancelled").enqueue(&pool).await.unwrap().id;
    assert_eq!(pool.cancel(id).await.unwrap(), CancelOutcome::Cancelled);
    assert_eq!(pool.cancel(id).await.unwrap(), CancelOutcome::Cancelled, "again is the same");
    let nobody = chokaq::JobId::new();
    assert_eq!(pool.cancel(nobody).await.unwrap(), CancelOutcome::NotActive);
    let worker = worker(&pool).only::<(crate::support::Note,)>().state(log.clone());
    worker.build().unwrap().run_until_idle().await.unwrap();
    assert_eq!(death(&pool, id).await.0, FailureReason::Cancelled);
    assert!(log.lines().is_empty());
}

#[tokio::test]
async fn a_running_job_that_is_cancelled_is_told_and_dies_as_cancelled() {
    let pool = memory().await;
    let (gate, mut starts) = Gate::new();
    let id = Gated { cooperative: true }.enqueue(&pool).await.unwrap().id;
    let worker = worker(&pool).only::<(Gated,)>().state(gate).build().unwrap();
    let running = tokio::spawn(worker.run_until_idle());
    let ctx = starts.recv().await.expect("it starts");
    assert_eq!(pool.cancel(id).await.unwrap(), CancelOutcome::Requested);
    ctx.cancelled().await;
    assert_eq!(ctx.cancel_cause(), Some(CancelCause::Requested));
    running.await.unwrap().unwrap();
    let (reason, job) = death(&pool, id).await;
    assert_eq!(reason, FailureReason::Cancelled);
    assert_eq!(job.errors[0].text, "told to stop");
}

#[tokio::test]
async fn a_handler_that_does_not_stop_is_dropped_after_the_grace() {
    let pool = memory().await;
    let (gate, mut starts) = Gate::new();
    let id = Gated { cooperative: false }.enqueue(&pool).await.unwrap().id;
    let worker = worker(&pool).only::<(Gated,)>().state(gate);
    let worker = worker.cancel_grace(std::time::Duration::from_millis(10)).build().unwrap();
    let running = tokio::spawn(worker.run_until_idle());
    starts.recv().await.expect("it starts");
    pool.cancel(id).await.unwrap();
    running.await.unwrap().unwrap();
    assert_eq!(death(&pool, id).await.0, FailureReason::Cancelled);
}

#[tokio::test]
async fn a_job_that_finishes_although_it_was_cancelled_has_succeeded() {
    let pool = memory().await;
    let (gate, mut starts) = Gate::new();
    let id = Gated { cooperative: false }.enqueue(&pool).await.unwrap().id;
    let worker = worker(&pool).only::<(Gated,)>().state(gate.clone()).build().unwrap();
    let running = tokio::spawn(worker.run_until_idle());
    let ctx = starts.recv().await.expect("it starts");
    pool.cancel(id).await.unwrap();
    ctx.cancelled().await;
    gate.open.add_permits(1);
    running.await.unwrap().unwrap();
    assert_eq!(detail(&pool, id).await.state, JobState::Succeeded);
}
