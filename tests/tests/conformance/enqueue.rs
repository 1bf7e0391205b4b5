//! enqueue: Pending, in one transaction, with its queue; a repeat recognises itself.

use crate::prelude::*;

claims!(
    enqueued_job_is_pending_and_no_attempt_is_used,
    the_queue_exists_after_an_enqueue,
    enqueue_keeps_the_settings_of_a_queue_that_exists,
    a_batch_answers_in_its_order,
    an_empty_batch_is_answered,
    a_batch_of_a_thousand_jobs_on_many_queues_is_stored_whole,
    a_delay_counts_from_the_databases_now,
    a_due_time_is_kept_to_the_millisecond,
    a_due_time_in_the_past_is_due_now,
    the_deadline_is_the_maximum_age_after_the_first_due_time,
    the_same_enqueue_twice_is_one_job,
    one_id_twice_in_a_batch_is_one_job,
    repeating_the_enqueue_of_a_running_job_leaves_it_running,
    repeating_the_enqueue_of_a_succeeded_job_does_not_run_it_again,
    repeating_the_enqueue_of_a_dead_job_does_not_run_it_again,
);

async fn enqueued_job_is_pending_and_no_attempt_is_used(db: &Db) {
    let id = db.enqueue(job()).await;
    let detail = db.detail(id).await;
    assert_eq!((detail.state, detail.attempts), (PENDING, 0));
    assert_eq!((detail.worker, detail.started_at, detail.finished_at), (None, None, None));
    assert!(detail.errors.is_empty());
}

async fn the_queue_exists_after_an_enqueue(db: &Db) {
    db.enqueue(job_on("mail")).await;
    let stats = db.queue_stats("mail").await;
    assert!(stats.active && !stats.paused);
    assert_eq!((stats.max_workers, stats.zombie_timeout), (None, None));
}

async fn enqueue_keeps_the_settings_of_a_queue_that_exists(db: &Db) {
    db.limit("mail", 7).await;
    db.pause("mail", true).await;
    db.enqueue(job_on("mail")).await;
    let stats = db.queue_stats("mail").await;
    assert_eq!((stats.paused, stats.max_workers), (true, Some(7)));
}

async fn a_batch_answers_in_its_order(db: &Db) {
    let held = db.enqueue(keyed("k")).await;
    let batch = vec![job(), keyed("k"), job(), keyed("other")];
    let stored = EnqueueOutcome::Stored;
    let answers = db.enqueue_all(batch).await;
    assert_eq!(answers, [stored, EnqueueOutcome::Duplicate { of: held }, stored, stored]);
    assert_eq!(db.rows().await, [4, 0, 0]);
}

async fn an_empty_batch_is_answered(db: &Db) {
    assert_eq!(db.changes_nothing("an empty enqueue", db.enqueue_all(vec![])).await, []);
}

async fn a_batch_of_a_thousand_jobs_on_many_queues_is_stored_whole(db: &Db) {
    let batch: Vec<_> = (0..1_000).map(|n| job_on(&format!("queue-{}", n % 50))).collect();
    let answers = db.enqueue_all(batch).await;
    assert_eq!(answers, vec![EnqueueOutcome::Stored; 1_000]);
    assert_eq!(db.rows().await, [1_000, 0, 0]);
    assert_eq!(db.queue_stats("queue-49").await.ready, 20);
}

async fn a_delay_counts_from_the_databases_now(db: &Db) {
    let delay = Duration::from_millis(90_061_001);
    let before = db.now().await;
    let id = db.enqueue(NewJob { due: Due::After(delay), ..job() }).await;
    let after = db.now().await;
    let due = db.detail(id).await.due_at;
    assert!(due.since(before) >= delay && due.since(after) <= delay, "due {due}");
}

async fn a_due_time_is_kept_to_the_millisecond(db: &Db) {
    let due = Timestamp::from_unix_ms(4_102_444_800_123);
    let id = db.enqueue(NewJob { due: Due::At(due), ..job() }).await;
    assert_eq!(db.detail(id).await.due_at, due);
    assert_eq!(db.fetch_ids(1).await, []);
}

async fn a_due_time_in_the_past_is_due_now(db: &Db) {
    let due = Due::At(Timestamp::from_unix_ms(86_400_000));
    let id = db.enqueue(NewJob { due, ..job() }).await;
    let lease = db.start_one("w").await;
    assert_eq!(lease.job(), id);
    // Its lifetime starts now too: it can still be retried.
    db.done(&lease, retry(Duration::ZERO)).await;
    assert_eq!(db.state(id).await, PENDING);
}

async fn the_deadline_is_the_maximum_age_after_the_first_due_time(db: &Db) {
    let max_age = Duration::from_hours(5);
    for due in [Due::Now, Due::After(Duration::from_hours(2))] {
        let id = db.enqueue(NewJob { due, max_age, ..job() }).await;
        let detail = db.detail(id).await;
        assert_eq!(detail.deadline_at.since(detail.due_at), max_age, "{due:?}");
    }
}

async fn the_same_enqueue_twice_is_one_job(db: &Db) {
    let new = NewJob { due: Due::After(SECOND), ..keyed("k") };
    db.enqueue(new.clone()).await;
    let again = db.changes_nothing("a repeated enqueue", db.try_enqueue(new)).await;
    assert_eq!(again, EnqueueOutcome::Stored);
    assert_eq!(db.rows().await, [1, 0, 0]);
}

async fn one_id_twice_in_a_batch_is_one_job(db: &Db) {
    let new = keyed("k");
    let answers = db.enqueue_all(vec![new.clone(), new]).await;
    assert_eq!(answers, [EnqueueOutcome::Stored; 2]);
    assert_eq!(db.rows().await, [1, 0, 0]);
}

async fn repeating_the_enqueue_of_a_running_job_leaves_it_running(db: &Db) {
    let new = job();
    let lease = db.running(new.clone()).await;
    db.changes_nothing("a repeated enqueue", db.enqueue(new)).await;
    assert_eq!(db.state(lease.job()).await, PROCESSING);
    db.done(&lease, succeeded()).await;
}

async fn repeating_the_enqueue_of_a_succeeded_job_does_not_run_it_again(db: &Db) {
    let new = job();
    let lease = db.running(new.clone()).await;
    db.done(&lease, succeeded()).await;
    db.changes_nothing("a repeated enqueue", db.enqueue(new)).await;
    assert_eq!(db.places(lease.job()).await, ["JobsArchive"]);
}

async fn repeating_the_enqueue_of_a_dead_job_does_not_run_it_again(db: &Db) {
    let new = job();
    let id = db.buried(new.clone()).await;
    db.changes_nothing("a repeated enqueue", db.enqueue(new)).await;
    assert_eq!(db.places(id).await, ["JobsDLQ"]);
}
