//! Retries, snoozes, deaths and rescue.

use super::*;
use crate::model::{AttemptError, FailureReason, JobState, JobStatus, ZombieScan};

fn error(attempt: u32, text: &str) -> AttemptError {
    AttemptError::new(attempt, "error", text)
}

fn retry(delay: Duration, attempt: u32) -> Ending {
    Ending::Retry { delay, error: error(attempt, "boom") }
}

const NO_TIME: ZombieScan =
    ZombieScan { lease: Duration::ZERO, suspicion: Duration::ZERO, batch: 100 };

/// Heartbeats are compared by the millisecond.
async fn age() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

#[tokio::test]
async fn a_retry_counts_its_attempt_and_keeps_its_error() {
    let storage = memory();
    let new = job("mail");
    let id = new.id;
    storage.enqueue(vec![new]).await.unwrap();
    let first = start(&storage).await;
    assert_eq!(finish(&storage, &first, retry(Duration::ZERO, 1)).await, FinishOutcome::Done);
    assert_eq!(finish(&storage, &first, retry(Duration::ZERO, 1)).await, FinishOutcome::Done);
    let waiting = detail(&storage, id).await;
    assert_eq!((waiting.attempts, waiting.worker, waiting.errors.len()), (1, None, 1));
    assert_eq!(storage.get_summary_stats().await.unwrap().retried_total, 1);
    let second = start(&storage).await;
    assert_eq!(second.attempts, 1);
    assert_eq!(finish(&storage, &first, retry(Duration::ZERO, 1)).await, FinishOutcome::LeaseLost);
    let dead = Ending::Dead { reason: FailureReason::FatalError, error: error(2, "the end") };
    assert_eq!(finish(&storage, &second, dead.clone()).await, FinishOutcome::Done);
    assert_eq!(finish(&storage, &second, dead).await, FinishOutcome::Done);
    let buried = detail(&storage, id).await;
    assert_eq!(buried.state, JobState::Dead(FailureReason::FatalError));
    assert_eq!(buried.errors.iter().map(|e| e.attempt).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(storage.get_summary_stats().await.unwrap().failed_total, 1);
}

#[tokio::test]
async fn only_the_newest_errors_are_kept() {
    let storage = memory();
    let mut new = job("mail");
    new.retries = 100;
    let id = new.id;
    storage.enqueue(vec![new]).await.unwrap();
    for attempt in 1..=30 {
        let running = start(&storage).await;
        finish(&storage, &running, retry(Duration::ZERO, attempt)).await;
    }
    let errors = detail(&storage, id).await.errors;
    assert_eq!(errors.len(), AttemptError::MAX_KEPT);
    assert_eq!((errors[0].attempt, errors[24].attempt), (6, 30));
}

#[tokio::test]
async fn a_retry_past_the_deadline_is_the_end() {
    let storage = memory();
    let new = job("mail");
    let id = new.id;
    storage.enqueue(vec![new]).await.unwrap();
    let running = start(&storage).await;
    let late = retry(Duration::from_hours(25), 1);
    assert_eq!(finish(&storage, &running, late.clone()).await, FinishOutcome::LifetimeExpired);
    assert_eq!(finish(&storage, &running, late).await, FinishOutcome::LifetimeExpired);
    let state = detail(&storage, id).await.state;
    assert_eq!(state, JobState::Dead(FailureReason::RetryLifetimeExpired));
}

#[tokio::test]
async fn a_snooze_gives_the_attempt_back_and_waits() {
    let storage = memory();
    storage.enqueue(vec![job("mail")]).await.unwrap();
    let running = start(&storage).await;
    let snooze = Ending::Snooze { delay: Duration::from_hours(48) };
    assert_eq!(finish(&storage, &running, snooze.clone()).await, FinishOutcome::Done);
    assert_eq!(finish(&storage, &running, snooze).await, FinishOutcome::Done);
    let reply = fetch(&storage, 1).await;
    assert!(reply.jobs.is_empty());
    assert!(reply.next_due.is_some_and(|due| due > Duration::from_hours(47)));
    assert_eq!(detail(&storage, running.lease.job).await.attempts, 0);
    assert_eq!(storage.get_summary_stats().await.unwrap().retried_total, 0);
}

#[tokio::test]
async fn an_asked_cancel_wins_over_a_retry_and_over_a_snooze() {
    let storage = memory();
    for ending in [retry(Duration::ZERO, 1), Ending::Snooze { delay: Duration::ZERO }] {
        storage.enqueue(vec![job("mail")]).await.unwrap();
        let running = start(&storage).await;
        storage.cancel(vec![running.lease.job], "stop".into()).await.unwrap();
        assert_eq!(finish(&storage, &running, ending.clone()).await, FinishOutcome::Cancelled);
        assert_eq!(finish(&storage, &running, ending).await, FinishOutcome::Cancelled);
        let state = detail(&storage, running.lease.job).await.state;
        assert_eq!(state, JobState::Dead(FailureReason::Cancelled));
    }
}

#[tokio::test]
async fn a_zombie_needs_two_scans_and_a_heartbeat_between_them_saves_it() {
    let storage = memory();
    storage.enqueue(vec![job("mail")]).await.unwrap();
    let running = start(&storage).await;
    age().await;
    assert!(storage.archive_zombies(NO_TIME).await.unwrap().is_empty());
    storage.keep_alive(vec![Beat { lease: running.lease.clone(), progress: None }]).await.unwrap();
    age().await;
    assert!(storage.archive_zombies(NO_TIME).await.unwrap().is_empty());
    let zombies = storage.archive_zombies(NO_TIME).await.unwrap();
    assert_eq!((zombies.len(), zombies[0].reason.is_none()), (1, false));
    let buried = detail(&storage, running.lease.job).await;
    assert_eq!(buried.state, JobState::Dead(FailureReason::Zombie));
    assert!(buried.errors[0].text.contains("worker-1 died"), "{:?}", buried.errors);
    assert_eq!(
        storage.finalise(vec![succeeded(&running)]).await.unwrap(),
        [FinishOutcome::LeaseLost]
    );
}

#[tokio::test]
async fn a_zombie_that_may_run_again_does_until_its_attempts_are_used() {
    let storage = memory();
    let mut new = job("mail");
    (new.on_crash, new.retries) = (OnCrash::Retry, 1);
    storage.enqueue(vec![new]).await.unwrap();
    for retried in [true, false] {
        let running = start(&storage).await;
        age().await;
        storage.archive_zombies(NO_TIME).await.unwrap();
        let zombies = storage.archive_zombies(NO_TIME).await.unwrap();
        assert_eq!(zombies.iter().map(|z| z.reason.is_none()).collect::<Vec<_>>(), [retried]);
        let late = finish(&storage, &running, retry(Duration::ZERO, 1)).await;
        assert_eq!(late, FinishOutcome::LeaseLost);
    }
    let stats = storage.get_summary_stats().await.unwrap();
    assert_eq!((stats.retried_total, stats.failed_total), (1, 1));
}

#[tokio::test]
async fn an_abandoned_row_is_pending_again_and_its_old_lease_is_worth_nothing() {
    let storage = memory();
    storage.enqueue(vec![job("mail")]).await.unwrap();
    let fetched = fetch(&storage, 1).await.jobs.remove(0);
    assert_eq!(storage.recover_abandoned(Duration::from_mins(10), 100).await.unwrap(), 0);
    assert_eq!(storage.recover_abandoned(Duration::ZERO, 100).await.unwrap(), 1);
    let state = detail(&storage, fetched.lease.job).await.state;
    assert_eq!(state, JobState::Active(JobStatus::Pending));
    let release = Release { lease: fetched.lease, delay: None, unknown_type: false };
    assert_eq!(storage.release(vec![release]).await.unwrap(), [false]);
}

#[tokio::test]
async fn one_batch_of_every_ending_is_answered_in_its_order() {
    let storage = memory();
    storage.enqueue((0..5).map(|_| job("mail")).collect()).await.unwrap();
    let jobs = fetch(&storage, 5).await.jobs;
    let leases: Vec<_> = jobs.iter().map(|job| job.lease.clone()).collect();
    storage.mark_as_processing(leases[..4].to_vec()).await.unwrap();
    let ending = |index: usize| match index {
        0 => Ending::Succeeded { output: Some("7".into()), note: None },
        1 => retry(Duration::from_hours(30), 1),
        2 => Ending::Snooze { delay: Duration::ZERO },
        3 => Ending::Dead { reason: FailureReason::Rejected, error: error(1, "no") },
        _ => Ending::Succeeded { output: None, note: None },
    };
    let batch: Vec<Finish> = (0..5)
        .map(|index| Finish { lease: leases[index].clone(), outcome: ending(index) })
        .collect();
    let expected = [
        FinishOutcome::Done,
        FinishOutcome::LifetimeExpired,
        FinishOutcome::Done,
        FinishOutcome::Done,
        FinishOutcome::LeaseLost,
    ];
    assert_eq!(storage.finalise(batch.clone()).await.unwrap(), expected);
    assert_eq!(storage.finalise(batch).await.unwrap(), expected);
    assert_eq!(detail(&storage, leases[0].job).await.output.as_deref(), Some("7"));
    let stats = storage.get_summary_stats().await.unwrap();
    assert_eq!((stats.succeeded_total, stats.failed_total, stats.dead), (1, 2, 2));
    assert_eq!((stats.pending, stats.fetched, stats.processing), (1, 1, 0));
}
