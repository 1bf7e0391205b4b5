//! `recover_abandoned` and `archive_zombies`: what happens to the rows of workers that are gone.

use crate::prelude::*;

claims!(
    a_row_fetched_for_too_long_is_pending_again,
    a_row_fetched_lately_stays_fetched,
    recovery_does_not_touch_running_rows,
    recovery_is_bounded_by_its_batch,
    one_scan_never_moves_a_row,
    a_second_scan_within_the_suspicion_never_moves_a_row,
    a_second_scan_after_the_suspicion_moves_the_row,
    a_beat_in_between_clears_the_suspicion,
    a_row_that_beats_is_never_suspected,
    suspicion_does_not_outlive_the_attempt,
    a_fetched_row_is_never_a_zombie,
    a_queues_own_limit_is_shorter,
    a_queues_own_limit_is_longer,
    a_limit_raised_between_the_strikes_spares_the_row,
    a_zombie_is_dead_with_its_attempt_and_its_error,
    a_zombie_that_may_be_retried_is_pending_with_its_attempt_counted,
    a_zombie_without_attempts_left_is_dead,
    moving_zombies_is_bounded_by_its_batch,
    every_zombie_moves_in_the_end,
);

/// The strikes of [`scan`] on a row whose worker is silent.
async fn first_strike(db: &Db, job: JobId) {
    db.age(job, LEASE + SECOND).await;
    assert_eq!(db.scan().await, []);
}

async fn a_row_fetched_for_too_long_is_pending_again(db: &Db) {
    let id = db.enqueue(job()).await;
    db.fetch_one("w").await;
    db.age(id, Duration::from_mins(11)).await;
    assert_eq!(db.recover(Duration::from_mins(10), 100).await, 1);
    let detail = db.detail(id).await;
    assert_eq!((detail.state, detail.attempts, detail.worker), (PENDING, 0, None));
    assert_eq!(db.recover(Duration::from_mins(10), 100).await, 0);
    assert_eq!(db.fetch_one("another").await.job(), id);
}

async fn a_row_fetched_lately_stays_fetched(db: &Db) {
    let id = db.enqueue(job()).await;
    // Old, and fetched only now.
    db.age(id, Duration::from_hours(3)).await;
    db.fetch_one("w").await;
    db.age(id, Duration::from_mins(9)).await;
    assert_eq!(db.recover(Duration::from_mins(10), 100).await, 0);
    assert_eq!(db.state(id).await, FETCHED);
}

async fn recovery_does_not_touch_running_rows(db: &Db) {
    let lease = db.running(job()).await;
    db.age(lease.job(), Duration::from_hours(1)).await;
    let recovery = db.recover(Duration::from_mins(10), 100);
    assert_eq!(db.changes_nothing("a recovery", recovery).await, 0);
}

async fn recovery_is_bounded_by_its_batch(db: &Db) {
    db.enqueue_all(jobs(7, job)).await;
    for id in db.fetch_ids(7).await {
        db.age(id, Duration::from_mins(11)).await;
    }
    let mut recovered = Vec::new();
    for _ in 0..4 {
        recovered.push(db.recover(Duration::from_mins(10), 3).await);
    }
    assert_eq!(recovered, [3, 3, 1, 0]);
    assert_eq!(db.fetch_ids(10).await.len(), 7);
}

async fn one_scan_never_moves_a_row(db: &Db) {
    let lease = db.running(job()).await;
    db.age(lease.job(), Duration::from_hours(5)).await;
    assert_eq!(db.scan().await, [], "as after a database that was away for hours");
    assert_eq!(db.state(lease.job()).await, PROCESSING);
    assert!(db.hot(lease.job(), "SuspectUtc").await.is_some(), "the scan noted it");
}

async fn a_second_scan_within_the_suspicion_never_moves_a_row(db: &Db) {
    let lease = db.running(job()).await;
    first_strike(db, lease.job()).await;
    for _ in 0..3 {
        assert_eq!(db.scan().await, []);
    }
    db.age(lease.job(), SUSPICION / 4 * 3).await;
    assert_eq!(db.scan().await, []);
    assert_eq!(db.state(lease.job()).await, PROCESSING);
    // The note is of the first scan, not of the last: another quarter, and it moves.
    db.age(lease.job(), SUSPICION / 4).await;
    assert_eq!(db.scan().await.len(), 1);
}

async fn a_second_scan_after_the_suspicion_moves_the_row(db: &Db) {
    let lease = db.running(NewJob { job_type: "mail".to_owned(), ..job_on("slow") }).await;
    first_strike(db, lease.job()).await;
    db.age(lease.job(), SUSPICION).await;
    let zombie = db.scan().await.remove(0);
    assert_eq!((zombie.job, zombie.reason.is_none()), (lease.job(), false));
    assert_eq!((zombie.queue.as_str(), zombie.job_type.as_str()), ("slow", "mail"));
    assert_eq!(zombie.worker.as_deref(), Some("w"));
    assert_eq!(db.places(lease.job()).await, ["JobsDLQ"]);
    assert_eq!(db.scan().await, []);
}

async fn a_beat_in_between_clears_the_suspicion(db: &Db) {
    let lease = db.running(job()).await;
    first_strike(db, lease.job()).await;
    assert_eq!(db.beat(&lease).await, BeatOutcome::Alive);
    assert_eq!(db.hot(lease.job(), "SuspectUtc").await, None);
    // Silent again: the strikes start over.
    first_strike(db, lease.job()).await;
    assert_eq!(db.state(lease.job()).await, PROCESSING);
    db.age(lease.job(), SUSPICION).await;
    assert_eq!(db.scan().await.len(), 1);
}

async fn a_row_that_beats_is_never_suspected(db: &Db) {
    let lease = db.running(job()).await;
    db.age(lease.job(), LEASE / 12 * 11).await;
    assert_eq!(db.changes_nothing("a scan", db.scan()).await, []);
}

async fn suspicion_does_not_outlive_the_attempt(db: &Db) {
    for outcome in [retry(Duration::ZERO), snooze(Duration::ZERO)] {
        let lease = db.running(job()).await;
        first_strike(db, lease.job()).await;
        db.done(&lease, outcome).await;
        // A waiting row is no suspect; the check says so.
        db.check().await;
        let lease = db.start_one("w").await;
        first_strike(db, lease.job()).await;
        assert_eq!(db.state(lease.job()).await, PROCESSING);
        db.done(&lease, succeeded()).await;
    }
}

async fn a_fetched_row_is_never_a_zombie(db: &Db) {
    let id = db.enqueue(job()).await;
    db.fetch_one("w").await;
    for _ in 0..3 {
        db.age(id, LEASE * 3).await;
        assert_eq!(db.changes_nothing("a scan", db.scan()).await, []);
    }
}

async fn zombie_timeout(db: &Db, queue: &str, limit: Duration) {
    let zombie_timeout = Some(Some(limit));
    db.set(queue, QueueSettings { zombie_timeout, ..QueueSettings::default() }).await;
}

async fn a_queues_own_limit_is_shorter(db: &Db) {
    zombie_timeout(db, "quick", SECOND * 30).await;
    let lease = db.running(job_on("quick")).await;
    db.age(lease.job(), SECOND * 31).await;
    assert_eq!(db.scan().await, []);
    db.age(lease.job(), SUSPICION).await;
    assert_eq!(db.scan().await.len(), 1);
}

async fn a_queues_own_limit_is_longer(db: &Db) {
    zombie_timeout(db, "slow", LEASE * 10).await;
    let lease = db.running(job_on("slow")).await;
    for _ in 0..3 {
        db.age(lease.job(), LEASE * 3).await;
        assert_eq!(db.changes_nothing("a scan", db.scan()).await, []);
    }
    db.age(lease.job(), LEASE * 2).await;
    assert_eq!(db.scan().await, []);
    db.age(lease.job(), SUSPICION).await;
    assert_eq!(db.scan().await.len(), 1);
}

async fn a_limit_raised_between_the_strikes_spares_the_row(db: &Db) {
    let lease = db.running(job()).await;
    first_strike(db, lease.job()).await;
    zombie_timeout(db, "default", LEASE * 10).await;
    db.age(lease.job(), SUSPICION).await;
    assert_eq!(db.scan().await, []);
    assert_eq!(db.state(lease.job()).await, PROCESSING);
    assert_eq!(db.beat(&lease).await, BeatOutcome::Alive);
}

async fn a_zombie_is_dead_with_its_attempt_and_its_error(db: &Db) {
    let lease = db.running(job()).await;
    let started = db.detail(lease.job()).await.started_at;
    first_strike(db, lease.job()).await;
    db.age(lease.job(), SUSPICION).await;
    db.scan().await;
    let detail = db.detail(lease.job()).await;
    assert_eq!(detail.state, JobState::Dead(FailureReason::Zombie));
    assert_eq!((detail.attempts, detail.worker.as_deref()), (1, Some("w")));
    assert!(detail.started_at.is_some() && detail.started_at < started, "it was aged");
    let last = detail.errors.last().expect("rescue says why");
    assert_eq!((last.attempt, last.kind.as_str()), (1, "zombie"));
    assert_eq!(db.totals().await, (0, 1, 0));
}

async fn a_zombie_that_may_be_retried_is_pending_with_its_attempt_counted(db: &Db) {
    let lease = db.running(NewJob { on_crash: OnCrash::Retry, retries: 1, ..job() }).await;
    first_strike(db, lease.job()).await;
    db.age(lease.job(), SUSPICION).await;
    let zombie = db.scan().await.remove(0);
    assert!(zombie.reason.is_none());
    assert_eq!((zombie.job, zombie.worker.as_deref()), (lease.job(), Some("w")));
    let detail = db.detail(lease.job()).await;
    assert_eq!((detail.state, detail.attempts, detail.worker), (PENDING, 1, None));
    assert_eq!(detail.errors.last().map(|error| error.kind.as_str()), Some("zombie"));
    assert_eq!(db.totals().await, (0, 0, 1));
    let lease = db.fetch_one("another").await;
    assert_eq!(db.start(&lease).await, 2);
}

async fn a_zombie_without_attempts_left_is_dead(db: &Db) {
    let mut lease = db.running(NewJob { on_crash: OnCrash::Retry, retries: 1, ..job() }).await;
    for retried in [true, false] {
        first_strike(db, lease.job()).await;
        db.age(lease.job(), SUSPICION).await;
        assert_eq!(db.scan().await[0].reason.is_none(), retried);
        if retried {
            lease = db.start_one("w").await;
        }
    }
    let detail = db.detail(lease.job()).await;
    assert_eq!((detail.state, detail.attempts), (JobState::Dead(FailureReason::Zombie), 2));
    assert_eq!(detail.errors.len(), 2);
}

async fn seven_zombies(db: &Db) -> Vec<JobId> {
    db.enqueue_all(jobs(7, job)).await;
    let leases: Vec<_> = db.fetch("w", 7).await.into_iter().map(|job| job.lease).collect();
    db.storage.mark_as_processing(leases.clone()).await.expect("the storage answers");
    leases.iter().map(Lease::job).collect()
}

async fn moving_zombies_is_bounded_by_its_batch(db: &Db) {
    let ids = seven_zombies(db).await;
    for id in &ids {
        db.age(*id, LEASE + SECOND).await;
    }
    assert_eq!(db.scan().await, []);
    for id in &ids {
        db.age(*id, SUSPICION).await;
    }
    let mut moved = Vec::new();
    for _ in 0..4 {
        moved.push(db.scan_with(ZombieScan { batch: 3, ..scan() }).await.len());
    }
    assert_eq!(moved, [3, 3, 1, 0]);
    assert_eq!(db.rows().await, [0, 0, 7]);
}

async fn every_zombie_moves_in_the_end(db: &Db) {
    let ids = seven_zombies(db).await;
    let mut moved = 0;
    // Small batches bound the notes as well as the moves: whatever a scan skips, a later one finds.
    for _ in 0..20 {
        for id in &ids {
            if db.places(*id).await == ["JobsHot"] {
                db.age(*id, LEASE + SUSPICION).await;
            }
        }
        moved += db.scan_with(ZombieScan { batch: 2, ..scan() }).await.len();
    }
    assert_eq!(moved, 7);
}
