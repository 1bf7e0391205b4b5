//! resurrect: Dead -> Pending with attempts 0 and a fresh lifetime.

use chokaq::model::{Limits, PayloadEdit};

use crate::prelude::*;

claims!(
    a_resurrected_job_starts_from_the_beginning,
    a_resurrected_job_keeps_what_was_not_edited,
    edits_are_applied,
    a_job_moved_to_a_new_queue_makes_the_queue,
    a_resurrected_job_has_a_fresh_lifetime,
    a_resurrected_job_can_finish_again,
    a_key_held_by_an_active_job_is_a_refusal,
    a_key_held_by_another_type_is_no_refusal,
    two_dead_jobs_of_one_key_come_back_one_at_a_time,
    a_job_that_is_not_dead_cannot_be_resurrected,
    a_batch_answers_in_its_order,
    a_repeated_resurrect_doubles_nothing,
    totals_stay_through_a_resurrect,
    a_zombie_and_a_cancelled_job_can_be_resurrected,
);

async fn a_resurrected_job_starts_from_the_beginning(db: &Db) {
    let id = db.buried(job()).await;
    assert_eq!(db.resurrect(id).await, ResurrectOutcome::Resurrected);
    assert_eq!(db.places(id).await, ["JobsHot"]);
    let detail = db.detail(id).await;
    assert_eq!((detail.state, detail.attempts), (PENDING, 0));
    assert_eq!((detail.worker, detail.finished_at), (None, None));
    let lease = db.fetch_one("w").await;
    assert_eq!((lease.job(), db.start(&lease).await), (id, 1));
}

fn decorated() -> NewJob {
    NewJob {
        queue: "mail".to_owned(),
        job_type: "send".to_owned(),
        payload: r#"{"to":"ada"}"#.to_owned(),
        tags: Some(r#"["a","b"]"#.to_owned()),
        created_by: Some("ada".to_owned()),
        priority: 42,
        retries: 5,
        timeout: SECOND * 7,
        on_crash: OnCrash::Retry,
        ..keyed("k")
    }
}

async fn a_resurrected_job_keeps_what_was_not_edited(db: &Db) {
    let new = decorated();
    let id = db.buried(new.clone()).await;
    db.resurrect(id).await;
    let detail = db.detail(id).await;
    assert_eq!((detail.queue, detail.job_type), (new.queue, new.job_type));
    assert_eq!((detail.payload, detail.tags), (new.payload, new.tags));
    assert_eq!((detail.priority, detail.retries), (42, 5));
    assert_eq!((detail.idempotency_key, detail.created_by), (new.idempotency_key, new.created_by));
    assert_eq!(db.fetch("w", 1).await[0].timeout, new.timeout);
    assert_eq!(db.hot(id, "OnCrash").await.as_deref(), Some("1"));
    // The key is held again.
    let send = NewJob { job_type: "send".to_owned(), ..keyed("k") };
    assert_eq!(db.try_enqueue(send).await, EnqueueOutcome::Duplicate { of: id });
}

async fn edits_are_applied(db: &Db) {
    let id = db.buried(decorated()).await;
    let payload = PayloadEdit::new(&Limits::default(), r#"{"to":"grace"}"#).expect("it is JSON");
    let edits = ResurrectEdits {
        payload: Some(payload),
        tags: Some(Some(r#"["c"]"#.to_owned())),
        priority: Some(-1),
        queue: Some("default".to_owned()),
    };
    assert_eq!(db.resurrect_with(id, edits).await, ResurrectOutcome::Resurrected);
    let detail = db.detail(id).await;
    assert_eq!(
        (detail.payload.as_str(), detail.tags.as_deref()),
        (r#"{"to":"grace"}"#, Some(r#"["c"]"#))
    );
    assert_eq!((detail.priority, detail.queue.as_str()), (-1, "default"));
    let lease = db.start_one("w").await;
    db.done(&lease, dead(FailureReason::FatalError)).await;
    let no_tags = ResurrectEdits { tags: Some(None), ..ResurrectEdits::default() };
    db.resurrect_with(id, no_tags).await;
    assert_eq!(db.detail(id).await.tags, None);
}

async fn a_job_moved_to_a_new_queue_makes_the_queue(db: &Db) {
    let id = db.buried(job()).await;
    let queue = Some("brand new".to_owned());
    db.resurrect_with(id, ResurrectEdits { queue, ..ResurrectEdits::default() }).await;
    assert_eq!(db.queue_stats("brand new").await.ready, 1);
}

async fn a_resurrected_job_has_a_fresh_lifetime(db: &Db) {
    let max_age = Duration::from_hours(24);
    let id = db.buried(NewJob { max_age, ..job() }).await;
    db.age(id, max_age * 10).await;
    let before = db.now().await;
    db.resurrect(id).await;
    let detail = db.detail(id).await;
    assert!(before <= detail.due_at && detail.due_at <= db.now().await, "due now");
    assert_eq!(detail.deadline_at.since(detail.due_at), max_age);
    let lease = db.start_one("w").await;
    db.done(&lease, retry(SECOND)).await;
    assert_eq!(db.state(id).await, PENDING);
}

async fn a_resurrected_job_can_finish_again(db: &Db) {
    let id = db.buried(job()).await;
    for outcome in [dead(FailureReason::Timeout), succeeded()] {
        db.resurrect(id).await;
        let lease = db.start_one("w").await;
        db.done(&lease, outcome).await;
    }
    assert_eq!((db.rows().await, db.totals().await), ([0, 1, 0], (1, 2, 0)));
}

async fn a_key_held_by_an_active_job_is_a_refusal(db: &Db) {
    let id = db.buried(keyed("k")).await;
    let by = db.enqueue(keyed("k")).await;
    let answer = db.changes_nothing("a refused resurrect", db.resurrect(id)).await;
    assert_eq!(answer, ResurrectOutcome::KeyHeld { by });
    assert_eq!(db.places(id).await, ["JobsDLQ"]);
    db.cancel(by).await;
    assert_eq!(db.resurrect(id).await, ResurrectOutcome::Resurrected);
}

async fn a_key_held_by_another_type_is_no_refusal(db: &Db) {
    let id = db.buried(keyed("k")).await;
    db.enqueue(NewJob { job_type: "other".to_owned(), ..keyed("k") }).await;
    assert_eq!(db.resurrect(id).await, ResurrectOutcome::Resurrected);
}

async fn two_dead_jobs_of_one_key_come_back_one_at_a_time(db: &Db) {
    let (first, second) = (db.buried(keyed("k")).await, db.buried(keyed("k")).await);
    let batch = vec![second, first];
    let answers = db.storage.resurrect(batch, ResurrectEdits::default()).await;
    let answers = answers.expect("the storage answers");
    match answers[..] {
        [ResurrectOutcome::Resurrected, ResurrectOutcome::KeyHeld { by }] => assert_eq!(by, second),
        [ResurrectOutcome::KeyHeld { by }, ResurrectOutcome::Resurrected] => assert_eq!(by, first),
        _ => panic!("exactly one comes back: {answers:?}"),
    }
    assert_eq!(db.rows().await, [1, 0, 1]);
}

async fn a_job_that_is_not_dead_cannot_be_resurrected(db: &Db) {
    let archived = db.running(job()).await;
    db.done(&archived, succeeded()).await;
    let running = db.running(job()).await;
    let pending = db.enqueue(job()).await;
    for id in [archived.job(), running.job(), pending, JobId::new()] {
        let answer = db.changes_nothing("a refused resurrect", db.resurrect(id)).await;
        assert_eq!(answer, ResurrectOutcome::NotDead);
    }
}

async fn a_batch_answers_in_its_order(db: &Db) {
    use ResurrectOutcome::{KeyHeld, NotDead, Resurrected};

    let dead = [db.buried(job()).await, db.buried(keyed("k")).await, db.buried(job()).await];
    let by = db.enqueue(keyed("k")).await;
    let batch = vec![dead[2], dead[1], JobId::new(), dead[0]];
    let answers = db.storage.resurrect(batch, ResurrectEdits::default()).await;
    assert_eq!(
        answers.expect("the storage answers"),
        [Resurrected, KeyHeld { by }, NotDead, Resurrected]
    );
    let nothing = db.storage.resurrect(vec![], ResurrectEdits::default()).await;
    assert_eq!(nothing.expect("the storage answers"), []);
}

async fn a_repeated_resurrect_doubles_nothing(db: &Db) {
    let id = db.buried(job()).await;
    db.resurrect(id).await;
    db.changes_nothing("a repeated resurrect", db.resurrect(id)).await;
    let other = db.buried_beside(job()).await;
    let batch = vec![other, other];
    db.storage.resurrect(batch, ResurrectEdits::default()).await.expect("the storage answers");
    assert_eq!(db.rows().await, [2, 0, 0]);
}

async fn totals_stay_through_a_resurrect(db: &Db) {
    let id = db.buried(job()).await;
    let before = db.totals().await;
    db.resurrect(id).await;
    assert_eq!(db.totals().await, before);
    assert_eq!(db.summary().await.dead, 0);
}

async fn a_zombie_and_a_cancelled_job_can_be_resurrected(db: &Db) {
    let zombie = db.running(job()).await.job();
    db.age(zombie, LEASE + SECOND).await;
    db.scan().await;
    db.age(zombie, SUSPICION).await;
    db.scan().await;
    let cancelled = db.enqueue(job()).await;
    db.cancel(cancelled).await;
    for id in [zombie, cancelled] {
        assert_eq!(db.resurrect(id).await, ResurrectOutcome::Resurrected);
    }
    assert_eq!(db.fetch_ids(10).await.len(), 2);
}
