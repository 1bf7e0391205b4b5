//! Idempotency keys: unique per type among active jobs, compared byte for byte.

use crate::prelude::*;

claims!(
    a_duplicate_key_returns_the_first_id,
    a_key_is_held_in_every_active_state,
    a_key_is_held_by_a_delayed_job,
    a_key_is_free_again_after_success,
    a_key_is_free_again_after_death,
    a_key_is_free_again_after_a_cancel,
    the_same_key_serves_two_types,
    a_key_is_held_across_queues,
    keys_differ_by_case_accent_and_trailing_nul,
    types_of_a_key_are_case_sensitive,
    duplicates_inside_one_batch_name_the_first,
    a_repeat_behind_its_own_key_is_not_a_duplicate,
    a_finished_job_recognises_its_repeat_although_another_holds_its_key,
    producers_racing_for_a_key_store_one_job,
);

async fn a_duplicate_key_returns_the_first_id(db: &Db) {
    let first = db.enqueue(keyed("order-7")).await;
    for _ in 0..3 {
        let answer = db.try_enqueue(keyed("order-7")).await;
        assert_eq!(answer, EnqueueOutcome::Duplicate { of: first });
    }
    assert_eq!(db.rows().await, [1, 0, 0]);
}

async fn assert_held(db: &Db, by: JobId) {
    let answer = db.changes_nothing("a duplicate", db.try_enqueue(keyed("k"))).await;
    assert_eq!(answer, EnqueueOutcome::Duplicate { of: by });
}

async fn a_key_is_held_in_every_active_state(db: &Db) {
    let id = db.enqueue(keyed("k")).await;
    assert_held(db, id).await;
    let lease = db.fetch_one("w").await;
    assert_held(db, id).await;
    db.start(&lease).await;
    assert_held(db, id).await;
    db.done(&lease, retry(Duration::from_mins(1))).await;
    assert_held(db, id).await;
}

async fn a_key_is_held_by_a_delayed_job(db: &Db) {
    let id = db.enqueue(NewJob { due: Due::After(Duration::from_hours(1)), ..keyed("k") }).await;
    assert_held(db, id).await;
}

async fn a_key_is_free_again_after_success(db: &Db) {
    let lease = db.running(keyed("k")).await;
    db.done(&lease, succeeded()).await;
    db.enqueue(keyed("k")).await;
    assert_eq!(db.rows().await, [1, 1, 0]);
}

async fn a_key_is_free_again_after_death(db: &Db) {
    db.buried(keyed("k")).await;
    db.enqueue(keyed("k")).await;
    assert_eq!(db.rows().await, [1, 0, 1]);
}

async fn a_key_is_free_again_after_a_cancel(db: &Db) {
    let id = db.enqueue(keyed("k")).await;
    db.cancel(id).await;
    db.enqueue(keyed("k")).await;
    assert_eq!(db.rows().await, [1, 0, 1]);
}

async fn the_same_key_serves_two_types(db: &Db) {
    let of_type = |job_type: &str| NewJob { job_type: job_type.to_owned(), ..keyed("k") };
    let mail = db.enqueue(of_type("mail")).await;
    let report = db.enqueue(of_type("report")).await;
    for (job_type, of) in [("mail", mail), ("report", report)] {
        assert_eq!(db.try_enqueue(of_type(job_type)).await, EnqueueOutcome::Duplicate { of });
    }
}

async fn a_key_is_held_across_queues(db: &Db) {
    let of = db.enqueue(NewJob { queue: "a".to_owned(), ..keyed("k") }).await;
    let other = NewJob { queue: "b".to_owned(), ..keyed("k") };
    assert_eq!(db.try_enqueue(other).await, EnqueueOutcome::Duplicate { of });
}

async fn keys_differ_by_case_accent_and_trailing_nul(db: &Db) {
    let keys =
        ["order-é", "Order-é", "order-e\u{301}", "order-e", "order-e\0", "order-ß", "order-ss"];
    for key in keys {
        db.enqueue(keyed(key)).await;
    }
    assert_eq!(db.rows().await, [keys.len(), 0, 0]);
}

async fn types_of_a_key_are_case_sensitive(db: &Db) {
    db.enqueue(NewJob { job_type: "mail".to_owned(), ..keyed("k") }).await;
    db.enqueue(NewJob { job_type: "Mail".to_owned(), ..keyed("k") }).await;
    assert_eq!(db.rows().await, [2, 0, 0]);
}

async fn duplicates_inside_one_batch_name_the_first(db: &Db) {
    let batch = vec![keyed("a"), keyed("b"), keyed("a"), keyed("b"), keyed("a")];
    let (a, b) = (batch[0].id, batch[1].id);
    let (stored, dup) = (EnqueueOutcome::Stored, |of| EnqueueOutcome::Duplicate { of });
    let answers = db.enqueue_all(batch.clone()).await;
    assert_eq!(answers, [stored, stored, dup(a), dup(b), dup(a)]);
    let again = db.changes_nothing("the same batch", db.enqueue_all(batch)).await;
    assert_eq!(again, answers, "a repeat of the batch answers the same");
}

async fn a_repeat_behind_its_own_key_is_not_a_duplicate(db: &Db) {
    let new = keyed("k");
    let lease = db.running(new.clone()).await;
    assert_eq!(db.try_enqueue(new).await, EnqueueOutcome::Stored);
    assert_eq!(db.state(lease.job()).await, PROCESSING);
}

async fn a_finished_job_recognises_its_repeat_although_another_holds_its_key(db: &Db) {
    let new = keyed("k");
    let lease = db.running(new.clone()).await;
    db.done(&lease, succeeded()).await;
    let holder = db.enqueue(keyed("k")).await;
    let again = db.changes_nothing("a repeated enqueue", db.try_enqueue(new)).await;
    assert_eq!(again, EnqueueOutcome::Stored);
    assert_eq!(db.state(holder).await, PENDING);
}

async fn producers_racing_for_a_key_store_one_job(db: &Db) {
    let other = db.reopen().await;
    let mut tasks = Vec::new();
    for n in 0..40 {
        let producer = if n % 2 == 0 { Calls::clone(db) } else { other.clone() };
        tasks.push(tokio::spawn(async move {
            let new = keyed("k");
            (new.id, producer.try_enqueue(new).await)
        }));
    }
    let (mut stored, mut named) = (Vec::new(), Vec::new());
    for task in tasks {
        match task.await.expect("a producer does not panic") {
            (id, EnqueueOutcome::Stored) => stored.push(id),
            (_, EnqueueOutcome::Duplicate { of }) => named.push(of),
        }
    }
    assert_eq!(stored.len(), 1, "one producer wins");
    assert_eq!(named, [stored[0]; 39], "the others are told who");
}
