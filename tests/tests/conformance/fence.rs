//! The fence: a lease from before a row went back is refused everywhere, even when the same worker fetched it again;
//! and a lease that is current is refused in every status but the expected one.

use crate::prelude::*;

claims!(
    a_lease_from_before_a_release_is_refused,
    a_lease_from_before_a_recovery_is_refused,
    a_lease_from_before_a_retry_is_refused,
    a_lease_from_before_a_snooze_is_refused,
    a_lease_from_before_a_rescue_is_refused,
    a_lease_from_before_a_resurrect_is_refused,
    stale_worker_cannot_finish_a_reclaimed_job,
    a_fetched_row_cannot_be_beaten_or_finished,
    a_running_row_cannot_be_released,
    a_waiting_row_cannot_be_beaten_or_finished,
    a_succeeded_job_takes_no_other_outcome,
    a_dead_job_takes_no_other_outcome,
    a_cancelled_job_takes_no_outcome,
    a_rescued_job_takes_no_outcome_from_its_worker,
    a_job_rescued_for_another_attempt_takes_no_outcome_from_its_worker,
    a_job_past_its_lifetime_takes_no_other_outcome,
);

/// The row is fetched again, by the same worker: `old` must be refused while it is Fetched and while it runs.
async fn refused_after_refetch(db: &Db, old: &Lease) {
    let new = db.fetch_one(old.worker().as_str()).await;
    assert_eq!(new.job(), old.job());
    refused_in_every_call(db, old).await;
    db.start(&new).await;
    refused_in_every_call(db, old).await;
    db.done(&new, succeeded()).await;
}

async fn refused_in_every_call(db: &Db, lease: &Lease) {
    let calls = async {
        assert_eq!(db.mark(lease).await, MarkOutcome::LeaseLost);
        assert_eq!(db.beat_with(lease, Some((0.5, "still here"))).await, BeatOutcome::LeaseLost);
        assert!(!db.release(lease).await, "a release without the lease");
        for outcome in every_outcome() {
            let answer = db.finish(lease, outcome.clone()).await;
            assert_eq!(answer, FinishOutcome::LeaseLost, "{outcome:?}");
        }
    };
    db.changes_nothing("a call without the lease", calls).await;
}

async fn a_lease_from_before_a_release_is_refused(db: &Db) {
    db.enqueue(job()).await;
    let old = db.fetch_one("w").await;
    db.release(&old).await;
    refused_after_refetch(db, &old).await;
}

async fn a_lease_from_before_a_recovery_is_refused(db: &Db) {
    db.enqueue(job()).await;
    let old = db.fetch_one("w").await;
    db.age(old.job(), SECOND * 60).await;
    db.recover(SECOND * 30, 10).await;
    refused_after_refetch(db, &old).await;
}

async fn a_lease_from_before_a_retry_is_refused(db: &Db) {
    let old = db.running(job()).await;
    db.done(&old, retry(Duration::ZERO)).await;
    refused_after_refetch(db, &old).await;
}

async fn a_lease_from_before_a_snooze_is_refused(db: &Db) {
    let old = db.running(job()).await;
    db.done(&old, snooze(Duration::ZERO)).await;
    refused_after_refetch(db, &old).await;
}

/// Two strikes: the job's worker is dead.
async fn rescue(db: &Db, job: JobId) {
    db.age(job, LEASE + SECOND).await;
    assert_eq!(db.scan().await, []);
    db.age(job, SUSPICION).await;
    assert_eq!(db.scan().await.len(), 1);
}

async fn a_lease_from_before_a_rescue_is_refused(db: &Db) {
    let old = db.running(NewJob { on_crash: OnCrash::Retry, ..job() }).await;
    rescue(db, old.job()).await;
    refused_after_refetch(db, &old).await;
}

async fn a_lease_from_before_a_resurrect_is_refused(db: &Db) {
    let old = db.running(job()).await;
    db.done(&old, dead(FailureReason::FatalError)).await;
    assert_eq!(db.resurrect(old.job()).await, ResurrectOutcome::Resurrected);
    refused_in_every_call(db, &old).await;
    refused_after_refetch(db, &old).await;
}

async fn stale_worker_cannot_finish_a_reclaimed_job(db: &Db) {
    db.enqueue(job()).await;
    let stale = db.fetch_one("stale").await;
    db.age(stale.job(), SECOND * 60).await;
    db.recover(SECOND * 30, 10).await;
    let owner = db.start_one("owner").await;
    refused_in_every_call(db, &stale).await;
    assert_eq!(db.beat(&owner).await, BeatOutcome::Alive);
    db.done(&owner, succeeded()).await;
}

/// No heartbeat and no outcome is accepted: only a running row takes them.
async fn neither_beaten_nor_finished(db: &Db, lease: &Lease) {
    let calls = async {
        assert_eq!(db.beat_with(lease, Some((0.5, "early"))).await, BeatOutcome::LeaseLost);
        for outcome in [succeeded(), dead(FailureReason::FatalError)] {
            assert_eq!(db.finish(lease, outcome).await, FinishOutcome::LeaseLost);
        }
    };
    db.changes_nothing("a call on a row that does not run", calls).await;
}

async fn a_fetched_row_cannot_be_beaten_or_finished(db: &Db) {
    db.enqueue(job()).await;
    let lease = db.fetch_one("w").await;
    neither_beaten_nor_finished(db, &lease).await;
    let calls = async {
        for outcome in [retry(Duration::ZERO), snooze(Duration::ZERO)] {
            assert_eq!(db.finish(&lease, outcome).await, FinishOutcome::LeaseLost);
        }
    };
    db.changes_nothing("a retry or snooze of a fetched row", calls).await;
    db.start(&lease).await;
    db.done(&lease, succeeded()).await;
}

async fn a_running_row_cannot_be_released(db: &Db) {
    let lease = db.running(job()).await;
    let answer = db.changes_nothing("a release of a running row", db.release(&lease)).await;
    assert!(!answer);
    db.done(&lease, succeeded()).await;
}

async fn a_waiting_row_cannot_be_beaten_or_finished(db: &Db) {
    db.enqueue(job()).await;
    let released = db.fetch_one("w").await;
    db.release(&released).await;
    neither_beaten_nor_finished(db, &released).await;
    let snoozed = db.start_one("w").await;
    db.done(&snoozed, snooze(SECOND * 60)).await;
    neither_beaten_nor_finished(db, &snoozed).await;
    let retried = db.running(job()).await;
    db.done(&retried, retry(SECOND * 60)).await;
    neither_beaten_nor_finished(db, &retried).await;
}

/// `Done` is said of what an earlier call of this same finish did, and of nothing else.
async fn takes_none_of(db: &Db, lease: &Lease, outcomes: impl IntoIterator<Item = Outcome>) {
    for outcome in outcomes {
        let call = db.finish(lease, outcome.clone());
        let answer = db.changes_nothing("an outcome that comes late", call).await;
        assert_eq!(answer, FinishOutcome::LeaseLost, "{outcome:?}");
    }
}

async fn a_succeeded_job_takes_no_other_outcome(db: &Db) {
    let lease = db.running(job()).await;
    db.done(&lease, succeeded()).await;
    takes_none_of(db, &lease, every_outcome().into_iter().skip(1)).await;
    assert_eq!(db.finish(&lease, succeeded()).await, FinishOutcome::Done);
}

async fn a_dead_job_takes_no_other_outcome(db: &Db) {
    let lease = db.running(job()).await;
    let fatal = dead(FailureReason::FatalError);
    db.done(&lease, fatal.clone()).await;
    let others = [succeeded(), retry(Duration::ZERO), snooze(Duration::ZERO)];
    takes_none_of(db, &lease, others).await;
    assert_eq!(db.finish(&lease, fatal).await, FinishOutcome::Done);
}

async fn a_cancelled_job_takes_no_outcome(db: &Db) {
    db.enqueue(job()).await;
    let lease = db.fetch_one("w").await;
    db.cancel(lease.job()).await;
    takes_none_of(db, &lease, [succeeded(), dead(FailureReason::FatalError)]).await;
    // A retry or snooze may be told that it is done with: a cancel wins over both. It must change nothing.
    for outcome in [retry(Duration::ZERO), snooze(Duration::ZERO)] {
        db.changes_nothing("an outcome that comes late", db.finish(&lease, outcome)).await;
    }
}

async fn a_rescued_job_takes_no_outcome_from_its_worker(db: &Db) {
    let lease = db.running(job()).await;
    rescue(db, lease.job()).await;
    assert_eq!(db.beat(&lease).await, BeatOutcome::LeaseLost);
    takes_none_of(db, &lease, every_outcome()).await;
    assert_eq!(db.state(lease.job()).await, JobState::Dead(FailureReason::Zombie));
}

async fn a_job_rescued_for_another_attempt_takes_no_outcome_from_its_worker(db: &Db) {
    let lease = db.running(NewJob { on_crash: OnCrash::Retry, ..job() }).await;
    rescue(db, lease.job()).await;
    assert_eq!(db.beat(&lease).await, BeatOutcome::LeaseLost);
    takes_none_of(db, &lease, [succeeded(), dead(FailureReason::FatalError)]).await;
    for outcome in [retry(Duration::ZERO), snooze(Duration::ZERO)] {
        db.changes_nothing("an outcome that comes late", db.finish(&lease, outcome)).await;
    }
    assert_eq!(db.state(lease.job()).await, PENDING);
}

async fn a_job_past_its_lifetime_takes_no_other_outcome(db: &Db) {
    let lease = db.running(NewJob { max_age: SECOND, ..job() }).await;
    let late = retry(SECOND * 60);
    assert_eq!(db.finish(&lease, late.clone()).await, FinishOutcome::LifetimeExpired);
    takes_none_of(db, &lease, [succeeded(), snooze(Duration::ZERO)]).await;
    assert_eq!(db.finish(&lease, late).await, FinishOutcome::LifetimeExpired);
}
