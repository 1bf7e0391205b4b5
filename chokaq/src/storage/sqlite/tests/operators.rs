//! Keys, cancels, resurrections, pages.

use super::*;
use crate::model::{
    CancelOutcome, FailureReason, JobState, PageCursor, QueueSettings, ResurrectEdits,
    ResurrectOutcome,
};
use crate::storage::sqlite::{tx::Tx, waiting::Class};

fn keyed(key: &str) -> NewJob {
    NewJob { idempotency_key: Some(key.into()), ..job("mail") }
}

async fn kill(storage: &SqliteStorage, new: NewJob) -> JobId {
    let id = new.id;
    storage.enqueue(vec![new]).await.unwrap();
    let cancelled = storage.cancel(vec![id], "stop".into()).await.unwrap();
    assert_eq!(cancelled, [CancelOutcome::Cancelled]);
    id
}

async fn resurrect(storage: &SqliteStorage, ids: Vec<JobId>) -> Vec<ResurrectOutcome> {
    storage.resurrect(ids, ResurrectEdits::default()).await.unwrap()
}

#[tokio::test]
async fn a_key_is_held_by_one_active_job_and_an_own_id_is_no_duplicate() {
    let storage = memory();
    let (first, second) = (keyed("k"), keyed("k"));
    let of = first.id;
    let batch = vec![first.clone(), second];
    let expected = [EnqueueOutcome::Stored, EnqueueOutcome::Duplicate { of }];
    assert_eq!(storage.enqueue(batch.clone()).await.unwrap(), expected);
    assert_eq!(storage.enqueue(batch).await.unwrap(), expected);
    let running = start(&storage).await;
    storage.finalise(vec![succeeded(&running)]).await.unwrap();
    let stored = [EnqueueOutcome::Stored];
    assert_eq!(storage.enqueue(vec![first]).await.unwrap(), stored, "it has finished");
    assert!(fetch(&storage, 1).await.jobs.is_empty(), "and does not run again");
    assert_eq!(storage.enqueue(vec![keyed("k")]).await.unwrap(), stored, "the key is free");
}

#[tokio::test]
async fn a_cancel_recognises_itself_and_no_other_death() {
    let storage = memory();
    let id = kill(&storage, job("mail")).await;
    let cancel = |reason: &str| storage.cancel(vec![id], reason.into());
    assert_eq!(cancel("stop").await.unwrap(), [CancelOutcome::Cancelled]);
    assert_eq!(cancel("for another reason").await.unwrap(), [CancelOutcome::NotActive]);
    assert_eq!(storage.get_summary_stats().await.unwrap().failed_total, 1);
}

#[tokio::test]
async fn a_running_job_is_flagged_and_its_worker_told() {
    let storage = memory();
    storage.enqueue(vec![job("mail")]).await.unwrap();
    let running = start(&storage).await;
    let id = running.lease.job;
    let asked = storage.cancel(vec![id], "stop".into()).await.unwrap();
    assert_eq!(asked, [CancelOutcome::Requested]);
    let control = storage.read_control(WorkerId::new("worker-1"), None).await.unwrap();
    assert_eq!(control.cancels, [id]);
    let other = storage.read_control(WorkerId::new("worker-2"), None).await.unwrap();
    assert!(other.cancels.is_empty());
    let beat = Beat { lease: running.lease, progress: None };
    assert_eq!(storage.keep_alive(vec![beat]).await.unwrap(), [BeatOutcome::CancelRequested]);
}

#[tokio::test]
async fn a_resurrected_job_starts_anew_and_a_repeated_call_recognises_itself() {
    let storage = memory();
    let id = kill(&storage, job("mail")).await;
    let edits = ResurrectEdits {
        queue: Some("other".into()),
        priority: Some(77),
        tags: Some(Some("[\"a\"]".into())),
        payload: None,
    };
    for _ in 0..2 {
        let outcome = storage.resurrect(vec![id], edits.clone()).await.unwrap();
        assert_eq!(outcome, [ResurrectOutcome::Resurrected]);
    }
    let waiting = detail(&storage, id).await;
    assert_eq!((waiting.queue.as_str(), waiting.priority, waiting.attempts), ("other", 77, 0));
    assert_eq!((waiting.errors.len(), waiting.tags.as_deref()), (1, Some("[\"a\"]")));
    assert_eq!(storage.get_summary_stats().await.unwrap().failed_total, 1);
    let running = start(&storage).await;
    assert_eq!(running.lease.job, id);
    assert_eq!(resurrect(&storage, vec![id, JobId::new()]).await, [ResurrectOutcome::NotDead; 2]);
}

#[tokio::test]
async fn a_key_that_is_held_again_keeps_a_job_dead() {
    let storage = memory();
    let (first, second) = (kill(&storage, keyed("k")).await, kill(&storage, keyed("k")).await);
    let held = ResurrectOutcome::KeyHeld { by: first };
    assert_eq!(
        resurrect(&storage, vec![first, second]).await,
        [ResurrectOutcome::Resurrected, held]
    );
    let state = detail(&storage, second).await.state;
    assert_eq!(state, JobState::Dead(FailureReason::Cancelled));
}

#[tokio::test]
async fn pages_go_on_where_they_ended_even_when_their_last_row_has_left() {
    let storage = memory();
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(kill(&storage, job("mail")).await);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    ids.reverse();
    let page = |after| storage.get_dlq_paged(Some("mail".into()), after, 2);
    let first = page(None).await.unwrap();
    assert_eq!(first.iter().map(|row| row.id).collect::<Vec<_>>(), ids[..2]);
    let after = PageCursor { at: first[1].failed_at, id: first[1].id };
    let second: Vec<_> = page(Some(after)).await.unwrap().iter().map(|row| row.id).collect();
    assert_eq!(second, ids[2..4]);
    resurrect(&storage, vec![ids[1]]).await;
    let again: Vec<_> = page(Some(after)).await.unwrap().iter().map(|row| row.id).collect();
    assert_eq!(again, ids[2..4]);
}

#[tokio::test]
async fn settings_that_are_not_named_stay() {
    let storage = memory();
    let change = QueueSettings {
        paused: Some(true),
        max_workers: Some(Some(4)),
        ..QueueSettings::default()
    };
    storage.set_queue("mail".into(), change).await.unwrap();
    let change = QueueSettings { paused: Some(false), ..QueueSettings::default() };
    storage.set_queue("mail".into(), change).await.unwrap();
    let stats = storage.get_queue_stats().await.unwrap();
    assert_eq!((stats[0].paused, stats[0].max_workers), (false, Some(4)));
    let change = QueueSettings { max_workers: Some(None), ..QueueSettings::default() };
    storage.set_queue("mail".into(), change).await.unwrap();
    assert_eq!(storage.get_queue_stats().await.unwrap()[0].max_workers, None);
}

#[tokio::test]
async fn the_worst_lag_of_a_queue_is_found_below_its_higher_priorities() {
    let storage = memory();
    let batch = vec![
        NewJob { priority: 30, ..job("mail") },
        NewJob { priority: 20, ..job("mail") },
        NewJob { priority: 10, ..job("mail") },
    ];
    storage.enqueue(batch).await.unwrap();
    let age = |tx: &Tx<'_>| {
        let age = "UPDATE JobsHot SET ScheduledAtUtc = 1000 WHERE Priority = 20";
        Ok(tx.connection().execute(age, [])?)
    };
    assert_eq!(storage.write(Class::Operator, age).await.unwrap(), 1);
    let health = storage.get_queue_health().await.unwrap();
    assert_eq!(health[0].ready, 3);
    assert!(health[0].worst_lag > Duration::from_hours(24));
}
