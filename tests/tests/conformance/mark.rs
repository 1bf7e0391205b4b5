//! `mark_as_processing`: the last guard before user code; counts the attempt, once.

use crate::prelude::*;

claims!(
    a_mark_counts_the_attempt_and_starts_the_heartbeat,
    the_second_attempt_is_number_two,
    a_repeated_mark_counts_nothing_twice,
    one_lease_twice_in_a_batch_counts_one_attempt,
    a_released_row_cannot_be_marked,
    a_recovered_row_cannot_be_marked,
    a_cancelled_row_cannot_be_marked,
    a_finished_row_cannot_be_marked,
    a_row_waiting_for_its_retry_cannot_be_marked,
    a_batch_marks_what_is_owned_and_answers_in_its_order,
    an_empty_batch_is_answered,
    a_mark_ends_the_round_of_an_unknown_type,
    the_worker_is_part_of_the_fence,
    a_reused_row_number_is_not_taken_for_the_job_that_left,
);

async fn a_mark_counts_the_attempt_and_starts_the_heartbeat(db: &Db) {
    let id = db.enqueue(job()).await;
    let lease = db.fetch_one("w").await;
    let before = db.now().await;
    let MarkOutcome::Started { attempt, started_at } = db.mark(&lease).await else {
        panic!("the owner may start it");
    };
    assert_eq!(attempt, 1);
    assert!(before <= started_at && started_at <= db.now().await);
    let detail = db.detail(id).await;
    assert_eq!((detail.state, detail.attempts), (PROCESSING, 1));
    assert_eq!(detail.started_at, Some(started_at));
    assert_eq!(db.hot_ms(id, "HeartbeatUtc").await, Some(started_at.as_unix_ms()));
}

async fn the_second_attempt_is_number_two(db: &Db) {
    let lease = db.running(job()).await;
    db.done(&lease, retry(Duration::ZERO)).await;
    let fetched = db.fetch("w", 1).await.remove(0);
    assert_eq!(fetched.attempts, 1);
    assert_eq!(db.start(&fetched.lease).await, 2);
}

async fn a_repeated_mark_counts_nothing_twice(db: &Db) {
    db.enqueue(job()).await;
    let lease = db.fetch_one("w").await;
    let first = db.mark(&lease).await;
    assert_eq!(db.mark(&lease).await, first);
    assert_eq!(db.detail(lease.job()).await.attempts, 1);
}

async fn one_lease_twice_in_a_batch_counts_one_attempt(db: &Db) {
    db.enqueue(job()).await;
    let lease = db.fetch_one("w").await;
    let answers = db.storage.mark_as_processing(vec![lease.clone(), lease.clone()]).await;
    let answers = answers.expect("the storage answers");
    assert!(
        matches!(answers[..], [MarkOutcome::Started { attempt: 1, .. }, second] if second == answers[0])
    );
    assert_eq!(db.detail(lease.job()).await.attempts, 1);
}

async fn refused(db: &Db, lease: &Lease) {
    let answer = db.changes_nothing("a mark without the lease", db.mark(lease)).await;
    assert_eq!(answer, MarkOutcome::LeaseLost);
}

async fn a_released_row_cannot_be_marked(db: &Db) {
    db.enqueue(job()).await;
    let lease = db.fetch_one("w").await;
    db.release(&lease).await;
    refused(db, &lease).await;
}

async fn a_recovered_row_cannot_be_marked(db: &Db) {
    db.enqueue(job()).await;
    let lease = db.fetch_one("w").await;
    db.age(lease.job(), SECOND * 60).await;
    assert_eq!(db.recover(SECOND * 30, 10).await, 1);
    refused(db, &lease).await;
}

async fn a_cancelled_row_cannot_be_marked(db: &Db) {
    db.enqueue(job()).await;
    let lease = db.fetch_one("w").await;
    assert_eq!(db.cancel(lease.job()).await, CancelOutcome::Cancelled);
    refused(db, &lease).await;
}

async fn a_finished_row_cannot_be_marked(db: &Db) {
    for outcome in [succeeded(), dead(FailureReason::FatalError)] {
        let lease = db.running(job()).await;
        db.done(&lease, outcome).await;
        refused(db, &lease).await;
    }
}

async fn a_row_waiting_for_its_retry_cannot_be_marked(db: &Db) {
    for outcome in [retry(SECOND * 60), snooze(SECOND * 60)] {
        let lease = db.running(job()).await;
        db.done(&lease, outcome).await;
        refused(db, &lease).await;
    }
}

async fn a_batch_marks_what_is_owned_and_answers_in_its_order(db: &Db) {
    db.enqueue_all(jobs(4, job)).await;
    let leases: Vec<_> = db.fetch("w", 4).await.into_iter().map(|job| job.lease).collect();
    db.release(&leases[1]).await;
    db.cancel(leases[3].job()).await;
    let mut batch = leases.clone();
    batch.reverse();
    let answers = db.storage.mark_as_processing(batch).await.expect("the storage answers");
    let started: Vec<_> =
        answers.iter().map(|answer| matches!(answer, MarkOutcome::Started { .. })).collect();
    assert_eq!(started, [false, true, false, true]);
    assert_eq!(db.state(leases[1].job()).await, PENDING);
}

async fn an_empty_batch_is_answered(db: &Db) {
    let answers = db.storage.mark_as_processing(vec![]).await.expect("the storage answers");
    assert_eq!(answers, []);
}

async fn a_mark_ends_the_round_of_an_unknown_type(db: &Db) {
    db.enqueue(job()).await;
    let lease = db.fetch_one("w").await;
    let unknown = Release { unknown_type: true, ..release_of(&lease) };
    assert!(db.release_with(unknown).await);
    assert!(db.hot(lease.job(), "UnknownSinceUtc").await.is_some());
    let lease = db.start_one("knows it").await;
    assert_eq!(db.hot(lease.job(), "UnknownSinceUtc").await, None);
    db.done(&lease, snooze(Duration::ZERO)).await;
    assert_eq!(db.fetch("w", 1).await[0].unknown_for, None);
}

async fn the_worker_is_part_of_the_fence(db: &Db) {
    db.enqueue(job()).await;
    let first = request("first", 1);
    let old = db.fetch_with(first.clone()).await.remove(0).lease;
    db.release(&old).await;
    // Against the rule, another worker reuses the lease id.
    let second = FetchRequest { worker: WorkerId::new("second"), ..first };
    let new = db.fetch_with(second).await.remove(0).lease;
    refused(db, &old).await;
    db.start(&new).await;
    refused(db, &old).await;
    assert_eq!(db.beat(&old).await, BeatOutcome::LeaseLost);
    assert_eq!(db.finish(&old, succeeded()).await, FinishOutcome::LeaseLost);
    db.done(&new, succeeded()).await;
}

async fn a_reused_row_number_is_not_taken_for_the_job_that_left(db: &Db) {
    let gone = db.running(job()).await;
    db.done(&gone, succeeded()).await;
    // A backend may give the freed row number to the next job.
    db.enqueue(job()).await;
    let next = db.fetch_one("w").await;
    assert_ne!(next.job(), gone.job());
    refused(db, &gone).await;
    db.start(&next).await;
    refused(db, &gone).await;
    let again = db.changes_nothing("a repeated finish", db.finish(&gone, succeeded())).await;
    assert_eq!(again, FinishOutcome::Done);
    db.done(&next, succeeded()).await;
}
