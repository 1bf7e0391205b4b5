//! `work_arrived`: a fetcher of this process that found nothing is woken by whatever may have made a row claimable.

use tokio::sync::watch;

use crate::prelude::*;

claims!(
    an_enqueue_wakes,
    a_waiting_fetcher_is_woken_by_an_enqueue,
    a_release_wakes,
    a_retry_without_delay_wakes,
    a_resurrect_wakes,
    a_recovery_wakes,
    an_unpaused_queue_wakes,
    a_raised_limit_wakes,
    room_in_a_full_queue_wakes,
    a_duplicate_makes_no_row_claimable,
);

/// A receiver that has seen everything so far.
fn watching(db: &Db) -> watch::Receiver<u64> {
    let mut arrived = db.storage.work_arrived();
    arrived.mark_unchanged();
    arrived
}

fn woken(arrived: &watch::Receiver<u64>) -> bool {
    arrived.has_changed().expect("the storage is there")
}

async fn an_enqueue_wakes(db: &Db) {
    let arrived = watching(db);
    db.enqueue(job()).await;
    assert!(woken(&arrived));
}

async fn a_waiting_fetcher_is_woken_by_an_enqueue(db: &Db) {
    let mut arrived = watching(db);
    let fetcher = Calls::clone(db);
    let waiting = tokio::spawn(async move {
        arrived.changed().await.expect("the storage is there");
        fetcher.fetch_one("w").await
    });
    let id = db.enqueue(job()).await;
    assert_eq!(waiting.await.expect("the fetcher does not panic").job(), id);
}

async fn a_release_wakes(db: &Db) {
    db.enqueue(job()).await;
    let lease = db.fetch_one("w").await;
    let arrived = watching(db);
    db.release(&lease).await;
    assert!(woken(&arrived));
}

async fn a_retry_without_delay_wakes(db: &Db) {
    for outcome in [retry(Duration::ZERO), snooze(Duration::ZERO)] {
        let lease = db.running(job()).await;
        let arrived = watching(db);
        db.done(&lease, outcome).await;
        assert!(woken(&arrived));
        db.cancel(lease.job()).await;
    }
}

async fn a_resurrect_wakes(db: &Db) {
    let id = db.buried(job()).await;
    let arrived = watching(db);
    db.resurrect(id).await;
    assert!(woken(&arrived));
}

async fn a_recovery_wakes(db: &Db) {
    let id = db.enqueue(job()).await;
    db.fetch_one("w").await;
    db.age(id, SECOND * 60).await;
    let arrived = watching(db);
    assert_eq!(db.recover(SECOND * 30, 10).await, 1);
    assert!(woken(&arrived));
}

async fn an_unpaused_queue_wakes(db: &Db) {
    db.pause("default", true).await;
    db.enqueue(job()).await;
    let arrived = watching(db);
    db.pause("default", false).await;
    assert!(woken(&arrived));
}

async fn a_raised_limit_wakes(db: &Db) {
    db.limit("default", 0).await;
    db.enqueue(job()).await;
    let arrived = watching(db);
    db.limit("default", 1).await;
    assert!(woken(&arrived));
}

async fn room_in_a_full_queue_wakes(db: &Db) {
    db.limit("default", 1).await;
    let lease = db.running(job()).await;
    db.enqueue(job()).await;
    let arrived = watching(db);
    db.done(&lease, succeeded()).await;
    assert!(woken(&arrived));
}

async fn a_duplicate_makes_no_row_claimable(db: &Db) {
    let of = db.enqueue(keyed("k")).await;
    let answer = db.changes_nothing("a duplicate", db.try_enqueue(keyed("k"))).await;
    assert_eq!(answer, EnqueueOutcome::Duplicate { of });
    assert_eq!(db.fetch_ids(10).await, [of]);
}
