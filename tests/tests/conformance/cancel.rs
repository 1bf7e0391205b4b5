//! cancel: waiting rows are dead at once, running rows are flagged until their worker hears it.

use crate::prelude::*;

claims!(
    a_pending_job_is_dead_at_once,
    a_delayed_job_is_dead_at_once,
    a_fetched_job_is_dead_at_once_and_its_worker_cannot_start_it,
    a_running_job_goes_on_and_is_flagged,
    a_cancel_reaches_the_worker_that_runs_the_job_and_no_other,
    a_cancel_is_told_as_long_as_the_job_runs,
    a_cancel_of_a_rescheduled_job_is_not_lost,
    a_cancel_of_a_snoozed_job_is_not_lost,
    a_cancel_of_a_job_whose_worker_died_is_not_lost,
    a_cancelled_job_that_succeeds_all_the_same_is_archived,
    a_job_that_is_not_active_cannot_be_cancelled,
    a_batch_answers_in_its_order,
    a_repeated_cancel_doubles_nothing,
    a_thousand_jobs_are_cancelled_in_one_call,
    a_resurrected_job_is_not_cancelled_any_more,
);

const CANCELLED: JobState = JobState::Dead(FailureReason::Cancelled);

async fn a_pending_job_is_dead_at_once(db: &Db) {
    let id = db.enqueue(keyed("k")).await;
    let before = db.now().await;
    assert_eq!(db.cancel(id).await, CancelOutcome::Cancelled);
    let detail = db.detail(id).await;
    assert_eq!((detail.state, detail.attempts), (CANCELLED, 0));
    assert_eq!(detail.started_at, None, "it never started");
    assert!(detail.finished_at >= Some(before));
    let page = db.storage.get_dlq_paged(None, None, 10).await.expect("the storage answers");
    let error = page[0].error.as_deref().expect("the reason is kept");
    assert!(error.contains("not wanted"), "{error}");
    assert_eq!((db.rows().await, db.totals().await), ([0, 0, 1], (0, 1, 0)));
}

async fn a_delayed_job_is_dead_at_once(db: &Db) {
    let id = db.enqueue(NewJob { due: Due::After(SECOND * 60), ..job() }).await;
    assert_eq!(db.cancel(id).await, CancelOutcome::Cancelled);
    assert_eq!(db.state(id).await, CANCELLED);
}

async fn a_fetched_job_is_dead_at_once_and_its_worker_cannot_start_it(db: &Db) {
    db.enqueue(job()).await;
    let lease = db.fetch_one("w").await;
    assert_eq!(db.cancel(lease.job()).await, CancelOutcome::Cancelled);
    assert_eq!(db.state(lease.job()).await, CANCELLED);
    assert_eq!(db.mark(&lease).await, MarkOutcome::LeaseLost);
}

async fn a_running_job_goes_on_and_is_flagged(db: &Db) {
    let lease = db.running(job()).await;
    assert_eq!(db.detail(lease.job()).await.cancel_requested_at, None);
    let before = db.now().await;
    assert_eq!(db.cancel(lease.job()).await, CancelOutcome::Requested);
    let detail = db.detail(lease.job()).await;
    assert_eq!(detail.state, PROCESSING);
    assert!(detail.cancel_requested_at >= Some(before));
    assert_eq!(db.totals().await, (0, 0, 0));
    db.done(&lease, dead(FailureReason::Cancelled)).await;
    assert_eq!(db.state(lease.job()).await, CANCELLED);
}

async fn a_cancel_reaches_the_worker_that_runs_the_job_and_no_other(db: &Db) {
    let lease = db.running(job()).await;
    db.enqueue(job()).await;
    let other = db.start_one("other").await;
    db.cancel(lease.job()).await;
    assert_eq!(db.control("w").await.cancels, [lease.job()]);
    assert_eq!(db.control("other").await.cancels, []);
    assert_eq!(db.beat(&lease).await, BeatOutcome::CancelRequested);
    assert_eq!(db.beat(&other).await, BeatOutcome::Alive);
}

async fn a_cancel_is_told_as_long_as_the_job_runs(db: &Db) {
    let lease = db.running(job()).await;
    db.cancel(lease.job()).await;
    for _ in 0..3 {
        assert_eq!(db.control("w").await.cancels, [lease.job()]);
    }
    db.done(&lease, dead(FailureReason::Cancelled)).await;
    assert_eq!(db.control("w").await.cancels, []);
}

/// Either the job is dead as Cancelled, or the worker that runs it next is told.
async fn not_lost(db: &Db, job: JobId) {
    if db.state(job).await == CANCELLED {
        return;
    }
    assert_eq!(db.state(job).await, PENDING);
    let lease = db.start_one("next").await;
    assert_eq!(db.beat(&lease).await, BeatOutcome::CancelRequested);
    assert_eq!(db.control("next").await.cancels, [job]);
}

async fn a_cancel_of_a_rescheduled_job_is_not_lost(db: &Db) {
    let lease = db.running(job()).await;
    db.cancel(lease.job()).await;
    assert_eq!(db.finish(&lease, retry(Duration::ZERO)).await, FinishOutcome::Cancelled);
    not_lost(db, lease.job()).await;
}

async fn a_cancel_of_a_snoozed_job_is_not_lost(db: &Db) {
    let lease = db.running(job()).await;
    db.cancel(lease.job()).await;
    assert_eq!(db.finish(&lease, snooze(Duration::ZERO)).await, FinishOutcome::Cancelled);
    not_lost(db, lease.job()).await;
}

async fn a_cancel_of_a_job_whose_worker_died_is_not_lost(db: &Db) {
    let lease = db.running(NewJob { on_crash: OnCrash::Retry, ..job() }).await;
    db.cancel(lease.job()).await;
    db.age(lease.job(), LEASE + SECOND).await;
    db.scan().await;
    db.age(lease.job(), SUSPICION).await;
    assert_eq!(db.scan().await.len(), 1);
    not_lost(db, lease.job()).await;
}

async fn a_cancelled_job_that_succeeds_all_the_same_is_archived(db: &Db) {
    let lease = db.running(job()).await;
    db.cancel(lease.job()).await;
    db.done(&lease, succeeded()).await;
    assert_eq!(db.state(lease.job()).await, JobState::Succeeded);
}

async fn a_job_that_is_not_active_cannot_be_cancelled(db: &Db) {
    let lease = db.running(job()).await;
    db.done(&lease, succeeded()).await;
    let dead = db.buried(job()).await;
    for id in [lease.job(), dead, JobId::new()] {
        let answer = db.changes_nothing("a late cancel", db.cancel(id)).await;
        assert_eq!(answer, CancelOutcome::NotActive);
    }
}

async fn a_batch_answers_in_its_order(db: &Db) {
    use CancelOutcome::{Cancelled, NotActive, Requested};

    let running = db.running(job()).await.job();
    let unknown = JobId::new();
    let pending = db.enqueue(job()).await;
    let batch = vec![running, unknown, pending];
    let answers = db.storage.cancel(batch, "all of them".to_owned()).await;
    assert_eq!(answers.expect("the storage answers"), [Requested, NotActive, Cancelled]);
    let nothing = db.storage.cancel(vec![], "none".to_owned()).await;
    assert_eq!(nothing.expect("the storage answers"), []);
}

async fn a_repeated_cancel_doubles_nothing(db: &Db) {
    let id = db.enqueue(job()).await;
    db.cancel(id).await;
    db.changes_nothing("a repeated cancel", db.cancel(id)).await;
    let other = db.enqueue(job()).await;
    let batch = vec![other, other];
    db.storage.cancel(batch, "twice".to_owned()).await.expect("the storage answers");
    assert_eq!((db.rows().await, db.totals().await), ([0, 0, 2], (0, 2, 0)));
}

async fn a_thousand_jobs_are_cancelled_in_one_call(db: &Db) {
    let batch = jobs(1_000, job);
    let ids = ids(&batch);
    db.enqueue_all(batch).await;
    let answers = db.storage.cancel(ids, "all".to_owned()).await.expect("the storage answers");
    assert_eq!(answers, vec![CancelOutcome::Cancelled; 1_000]);
    assert_eq!((db.rows().await, db.totals().await), ([0, 0, 1_000], (0, 1_000, 0)));
}

async fn a_resurrected_job_is_not_cancelled_any_more(db: &Db) {
    let lease = db.running(job()).await;
    db.cancel(lease.job()).await;
    db.done(&lease, dead(FailureReason::Cancelled)).await;
    assert_eq!(db.resurrect(lease.job()).await, ResurrectOutcome::Resurrected);
    let lease = db.start_one("w").await;
    assert_eq!(db.beat(&lease).await, BeatOutcome::Alive);
    assert_eq!(db.control("w").await.cancels, []);
}
