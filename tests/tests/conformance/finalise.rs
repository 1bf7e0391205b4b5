//! finalise: `archive_succeeded`, `move_to_dlq`, `reschedule_for_retry` and snooze, in one transaction with their totals.

use crate::prelude::*;

claims!(
    a_success_moves_to_the_archive,
    an_output_is_kept,
    the_reason_for_a_missing_output_is_kept,
    a_death_moves_to_the_dead_letter_queue,
    every_reason_is_kept,
    a_retry_is_pending_with_its_attempt_counted,
    a_retry_is_not_fetched_before_its_delay,
    a_retry_past_the_deadline_is_dead,
    a_retry_just_before_the_deadline_lives,
    a_snooze_gives_the_attempt_back,
    a_snooze_past_the_deadline_is_no_retry,
    a_snooze_is_not_fetched_before_its_delay,
    repeating_each_finish_doubles_nothing,
    one_finish_twice_in_a_batch_doubles_nothing,
    a_mixed_batch_answers_in_its_order,
    a_lost_lease_does_not_fail_the_others_of_its_batch,
    an_empty_batch_is_answered,
    a_hundred_finishes_in_one_call_are_all_done,
    a_delay_of_fifty_years_is_kept,
);

async fn a_success_moves_to_the_archive(db: &Db) {
    let lease = db.running(keyed("k")).await;
    let started = db.detail(lease.job()).await.started_at;
    let before = db.now().await;
    db.done(&lease, succeeded()).await;
    let detail = db.detail(lease.job()).await;
    assert_eq!((detail.state, detail.attempts), (JobState::Succeeded, 1));
    assert_eq!((detail.started_at, detail.worker.as_deref()), (started, Some("w")));
    assert!(detail.finished_at >= Some(before) && detail.finished_at <= Some(db.now().await));
    assert_eq!((detail.output, detail.output_note), (None, None));
    assert_eq!(detail.idempotency_key.as_deref(), Some("k"));
    assert_eq!((db.rows().await, db.totals().await), ([0, 1, 0], (1, 0, 0)));
}

async fn an_output_is_kept(db: &Db) {
    let lease = db.running(job()).await;
    let output = format!("{{\"text\":\"{}\"}}", "☃'\\\"🚀".repeat(10_000));
    db.done(&lease, Outcome::Succeeded { output: Some(output.clone()), note: None }).await;
    assert_eq!(db.detail(lease.job()).await.output, Some(output));
}

async fn the_reason_for_a_missing_output_is_kept(db: &Db) {
    let lease = db.running(job()).await;
    let note = Some("too large".to_owned());
    db.done(&lease, Outcome::Succeeded { output: None, note: note.clone() }).await;
    let detail = db.detail(lease.job()).await;
    assert_eq!(
        (detail.state, detail.output, detail.output_note),
        (JobState::Succeeded, None, note)
    );
}

async fn a_death_moves_to_the_dead_letter_queue(db: &Db) {
    let lease = db.running(job()).await;
    let before = db.now().await;
    db.done(&lease, dead(FailureReason::MaxRetriesExceeded)).await;
    let detail = db.detail(lease.job()).await;
    assert_eq!(detail.state, JobState::Dead(FailureReason::MaxRetriesExceeded));
    assert_eq!((detail.attempts, detail.worker.as_deref()), (1, Some("w")));
    assert!(detail.finished_at >= Some(before) && detail.finished_at <= Some(db.now().await));
    assert_eq!(detail.errors.len(), 1);
    assert_eq!((detail.errors[0].kind.as_str(), detail.errors[0].text.as_str()), ("error", "boom"));
    assert_eq!((db.rows().await, db.totals().await), ([0, 0, 1], (0, 1, 0)));
}

async fn every_reason_is_kept(db: &Db) {
    for reason in FailureReason::ALL {
        let lease = db.running(job()).await;
        db.done(&lease, dead(reason)).await;
        assert_eq!(db.state(lease.job()).await, JobState::Dead(reason));
    }
}

async fn a_retry_is_pending_with_its_attempt_counted(db: &Db) {
    let lease = db.running(job()).await;
    let delay = SECOND * 60;
    let before = db.now().await;
    db.done(&lease, retry(delay)).await;
    let after = db.now().await;
    let detail = db.detail(lease.job()).await;
    assert_eq!((detail.state, detail.attempts, detail.worker), (PENDING, 1, None));
    assert!(detail.due_at.since(before) >= delay && detail.due_at.since(after) <= delay);
    assert_eq!(detail.errors.len(), 1);
    assert_eq!(detail.errors[0].attempt, 1);
    assert_eq!((db.rows().await, db.totals().await), ([1, 0, 0], (0, 0, 1)));
}

async fn a_retry_is_not_fetched_before_its_delay(db: &Db) {
    let lease = db.running(job()).await;
    db.done(&lease, retry(SECOND * 60)).await;
    assert_eq!(db.fetch_ids(1).await, []);
    db.age(lease.job(), SECOND * 60).await;
    assert_eq!(db.fetch_ids(1).await, [lease.job()]);
}

async fn a_retry_past_the_deadline_is_dead(db: &Db) {
    let lease = db.running(NewJob { max_age: SECOND * 60, ..job() }).await;
    let late = retry(SECOND * 61);
    assert_eq!(db.finish(&lease, late).await, FinishOutcome::LifetimeExpired);
    let detail = db.detail(lease.job()).await;
    assert_eq!(detail.state, JobState::Dead(FailureReason::RetryLifetimeExpired));
    assert_eq!((detail.attempts, detail.errors.len()), (1, 1));
    assert_eq!(detail.errors[0].text, "boom");
    assert_eq!((db.rows().await, db.totals().await), ([0, 0, 1], (0, 1, 0)));
}

async fn a_retry_just_before_the_deadline_lives(db: &Db) {
    let lease = db.running(NewJob { max_age: Duration::from_hours(2), ..job() }).await;
    db.age(lease.job(), Duration::from_mins(59)).await;
    db.done(&lease, retry(Duration::from_hours(1))).await;
    assert_eq!(db.state(lease.job()).await, PENDING);
    // The deadline does not move with a retry: the next one, an hour later, comes too late.
    db.age(lease.job(), Duration::from_hours(1)).await;
    let lease = db.start_one("w").await;
    let late = db.finish(&lease, retry(Duration::from_hours(1))).await;
    assert_eq!(late, FinishOutcome::LifetimeExpired);
}

async fn a_snooze_gives_the_attempt_back(db: &Db) {
    let lease = db.running(job()).await;
    let delay = SECOND * 60;
    let before = db.now().await;
    db.done(&lease, snooze(delay)).await;
    let after = db.now().await;
    let detail = db.detail(lease.job()).await;
    assert_eq!((detail.state, detail.attempts, detail.worker), (PENDING, 0, None));
    assert!(detail.due_at.since(before) >= delay && detail.due_at.since(after) <= delay);
    assert!(detail.errors.is_empty(), "a snooze is no error");
    assert_eq!(db.totals().await, (0, 0, 0), "a snooze is no retry");
    db.age(lease.job(), delay).await;
    let lease = db.fetch_one("w").await;
    assert_eq!(db.start(&lease).await, 1);
}

async fn a_snooze_past_the_deadline_is_no_retry(db: &Db) {
    let lease = db.running(NewJob { max_age: SECOND, ..job() }).await;
    db.done(&lease, snooze(SECOND * 60)).await;
    assert_eq!(db.state(lease.job()).await, PENDING);
}

async fn a_snooze_is_not_fetched_before_its_delay(db: &Db) {
    let lease = db.running(job()).await;
    db.done(&lease, snooze(SECOND * 60)).await;
    assert_eq!(db.fetch_ids(1).await, []);
    db.age(lease.job(), SECOND * 60).await;
    assert_eq!(db.fetch_ids(1).await, [lease.job()]);
}

async fn repeating_each_finish_doubles_nothing(db: &Db) {
    for outcome in every_outcome() {
        let lease = db.running(job()).await;
        db.done(&lease, outcome.clone()).await;
        for _ in 0..2 {
            let again = db.finish(&lease, outcome.clone());
            let again = db.changes_nothing("a repeated finish", again).await;
            assert_eq!(again, FinishOutcome::Done, "{outcome:?}");
        }
        if db.places(lease.job()).await == ["JobsHot"] {
            db.cancel(lease.job()).await;
        }
    }
}

async fn one_finish_twice_in_a_batch_doubles_nothing(db: &Db) {
    for outcome in every_outcome() {
        let lease = db.running(job()).await;
        let batch = vec![finish_of(&lease, outcome.clone()), finish_of(&lease, outcome)];
        let answers = db.storage.finalise(batch).await.expect("the storage answers");
        assert_eq!(answers, [FinishOutcome::Done; 2]);
        if db.places(lease.job()).await == ["JobsHot"] {
            db.cancel(lease.job()).await;
        }
    }
    // One success, one death and two cancels of what waited; one retry.
    assert_eq!(db.totals().await, (1, 3, 1));
}

async fn a_mixed_batch_answers_in_its_order(db: &Db) {
    use FinishOutcome::{Done, LifetimeExpired};

    let batch = jobs(5, || NewJob { max_age: Duration::from_hours(2), ..job() });
    db.enqueue_all(batch).await;
    let leases: Vec<_> = db.fetch("w", 5).await.into_iter().map(|job| job.lease).collect();
    db.storage.mark_as_processing(leases.clone()).await.expect("the storage answers");
    let outcomes = [
        retry(Duration::from_hours(3)),
        succeeded(),
        snooze(SECOND),
        dead(FailureReason::Timeout),
        retry(SECOND),
    ];
    let batch = leases.iter().zip(outcomes).map(|(lease, o)| finish_of(lease, o)).collect();
    let answers = db.storage.finalise(batch).await.expect("the storage answers");
    assert_eq!(answers, [LifetimeExpired, Done, Done, Done, Done]);
    let mut states = Vec::new();
    for lease in &leases {
        states.push(db.state(lease.job()).await);
    }
    let gone = JobState::Dead;
    assert_eq!(states[..2], [gone(FailureReason::RetryLifetimeExpired), JobState::Succeeded]);
    assert_eq!(states[2..], [PENDING, gone(FailureReason::Timeout), PENDING]);
    assert_eq!(db.totals().await, (1, 2, 1));
}

async fn a_lost_lease_does_not_fail_the_others_of_its_batch(db: &Db) {
    use FinishOutcome::{Done, LeaseLost};

    db.enqueue_all(jobs(3, job)).await;
    let leases: Vec<_> = db.fetch("w", 3).await.into_iter().map(|job| job.lease).collect();
    // The middle one was never started.
    db.start(&leases[0]).await;
    db.start(&leases[2]).await;
    let batch = leases.iter().map(|lease| finish_of(lease, succeeded())).collect();
    let answers = db.storage.finalise(batch).await.expect("the storage answers");
    assert_eq!(answers, [Done, LeaseLost, Done]);
    assert_eq!((db.rows().await, db.totals().await), ([1, 2, 0], (2, 0, 0)));
}

async fn an_empty_batch_is_answered(db: &Db) {
    let call = async { db.storage.finalise(vec![]).await.expect("the storage answers") };
    assert_eq!(db.changes_nothing("an empty batch", call).await, []);
}

async fn a_hundred_finishes_in_one_call_are_all_done(db: &Db) {
    let batch: Vec<_> = (0..100).map(|n| job_on(&format!("queue-{}", n % 3))).collect();
    db.enqueue_all(batch).await;
    let leases: Vec<_> = db.fetch("w", 100).await.into_iter().map(|job| job.lease).collect();
    db.storage.mark_as_processing(leases.clone()).await.expect("the storage answers");
    let batch = leases.iter().map(|lease| finish_of(lease, succeeded())).collect();
    let answers = db.storage.finalise(batch).await.expect("the storage answers");
    assert_eq!(answers, [FinishOutcome::Done; 100]);
    assert_eq!((db.rows().await, db.totals().await), ([0, 100, 0], (100, 0, 0)));
}

async fn a_delay_of_fifty_years_is_kept(db: &Db) {
    let years = Duration::from_hours(24 * 365 * 50);
    let new = NewJob { due: Due::After(years), max_age: years, ..job() };
    let id = db.enqueue(new).await;
    let detail = db.detail(id).await;
    assert_eq!(detail.due_at.since(detail.created_at), years);
    assert_eq!(detail.deadline_at.since(detail.due_at), years);
    assert_eq!(db.cancel(id).await, CancelOutcome::Cancelled);
}
