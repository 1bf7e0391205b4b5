//! release: Fetched -> Pending, no attempt used.

use crate::prelude::*;

claims!(
    a_released_row_is_pending_and_nobodys,
    a_released_row_keeps_its_place_in_the_order,
    a_release_with_a_delay_is_due_later,
    a_release_without_a_delay_keeps_the_due_time,
    a_repeated_release_says_the_same,
    a_repeated_release_does_not_delay_again,
    a_cancelled_row_cannot_be_released,
    a_batch_answers_in_its_order,
    an_unknown_type_is_noted_and_its_round_grows,
    an_unknown_type_keeps_when_its_round_began,
    an_unknown_type_uses_no_attempt,
);

async fn a_released_row_is_pending_and_nobodys(db: &Db) {
    let id = db.enqueue(job()).await;
    let lease = db.fetch_one("w").await;
    assert!(db.release(&lease).await);
    let detail = db.detail(id).await;
    assert_eq!((detail.state, detail.attempts, detail.worker), (PENDING, 0, None));
    assert_eq!(db.fetch_one("another").await.job(), id);
}

async fn a_released_row_keeps_its_place_in_the_order(db: &Db) {
    let batch = jobs(3, job);
    let expected = ids(&batch);
    db.enqueue_all(batch).await;
    let lease = db.fetch_one("w").await;
    db.release(&lease).await;
    assert_eq!(db.fetch_ids(3).await, expected);
}

async fn a_release_with_a_delay_is_due_later(db: &Db) {
    let id = db.enqueue(job()).await;
    let lease = db.fetch_one("w").await;
    let delay = SECOND * 30;
    let before = db.now().await;
    assert!(db.release_with(Release { delay: Some(delay), ..release_of(&lease) }).await);
    let after = db.now().await;
    let due = db.detail(id).await.due_at;
    assert!(due.since(before) >= delay && due.since(after) <= delay, "due {due}");
    assert_eq!(db.fetch_ids(1).await, []);
    db.age(id, delay).await;
    assert_eq!(db.fetch_ids(1).await, [id]);
}

async fn a_release_without_a_delay_keeps_the_due_time(db: &Db) {
    let id = db.enqueue(job()).await;
    let due = db.detail(id).await.due_at;
    let lease = db.fetch_one("w").await;
    db.release(&lease).await;
    assert_eq!(db.detail(id).await.due_at, due);
}

async fn a_repeated_release_says_the_same(db: &Db) {
    db.enqueue(job()).await;
    let lease = db.fetch_one("w").await;
    assert!(db.release(&lease).await);
    assert!(db.changes_nothing("a repeated release", db.release(&lease)).await);
}

async fn a_repeated_release_does_not_delay_again(db: &Db) {
    let id = db.enqueue(job()).await;
    let lease = db.fetch_one("w").await;
    let release = Release { delay: Some(SECOND * 30), ..release_of(&lease) };
    assert!(db.release_with(release.clone()).await);
    db.age(id, SECOND * 30).await;
    assert!(db.changes_nothing("a repeated release", db.release_with(release)).await);
    assert_eq!(db.fetch_ids(1).await, [id]);
}

async fn a_cancelled_row_cannot_be_released(db: &Db) {
    db.enqueue(job()).await;
    let lease = db.fetch_one("w").await;
    db.cancel(lease.job()).await;
    assert!(!db.changes_nothing("a release of a cancelled row", db.release(&lease)).await);
}

async fn a_batch_answers_in_its_order(db: &Db) {
    db.enqueue_all(jobs(3, job)).await;
    let leases: Vec<_> = db.fetch("w", 3).await.into_iter().map(|job| job.lease).collect();
    db.start(&leases[1]).await;
    let batch = leases.iter().map(release_of).collect();
    let answers = db.storage.release(batch).await.expect("the storage answers");
    assert_eq!(answers, [true, false, true]);
    let nothing = db.storage.release(vec![]).await.expect("the storage answers");
    assert!(nothing.is_empty());
}

async fn release_unknown(db: &Db) -> JobId {
    let lease = db.fetch_one("w").await;
    let delay = Some(SECOND * 30);
    let release = Release { delay, unknown_type: true, ..release_of(&lease) };
    assert!(db.release_with(release).await);
    lease.job()
}

async fn an_unknown_type_is_noted_and_its_round_grows(db: &Db) {
    db.enqueue(job()).await;
    let id = release_unknown(db).await;
    db.age(id, Duration::from_mins(10)).await;
    let fetched = db.fetch("w", 1).await.remove(0);
    let round = fetched.unknown_for.expect("the round is known");
    assert!(round >= Duration::from_mins(10) && round < Duration::from_mins(20), "{round:?}");
}

async fn an_unknown_type_keeps_when_its_round_began(db: &Db) {
    db.enqueue(job()).await;
    for _ in 0..3 {
        let id = release_unknown(db).await;
        db.age(id, Duration::from_mins(10)).await;
    }
    let round = db.fetch("w", 1).await[0].unknown_for.expect("the round is known");
    assert!(round >= Duration::from_mins(30), "{round:?}");
}

async fn an_unknown_type_uses_no_attempt(db: &Db) {
    db.enqueue(job()).await;
    let id = release_unknown(db).await;
    assert_eq!(db.detail(id).await.attempts, 0);
    assert_eq!(db.totals().await, (0, 0, 0));
}
