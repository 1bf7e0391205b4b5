//! SQLite in memory: private to one storage, gone with it, and otherwise the same.
//!
//! No second connection can look at it, so the claims run on files, and here stands only what differs.

use std::sync::Arc;

use chokaq::storage::sqlite::{Location, SqliteOptions, SqliteStorage};

use crate::prelude::*;

fn open() -> (Arc<SqliteStorage>, Calls) {
    let storage = SqliteStorage::open(Location::Memory, SqliteOptions::default())
        .expect("memory can always be opened");
    let calls = Calls::new(storage.clone());
    (storage, calls)
}

#[tokio::test]
async fn a_job_lives_its_life_in_memory() {
    let (_storage, db) = open();
    let lease = db.running(keyed("k")).await;
    db.done(&lease, retry(Duration::ZERO)).await;
    let lease = db.start_one("w").await;
    db.done(&lease, dead(FailureReason::FatalError)).await;
    assert_eq!(db.resurrect(lease.job()).await, ResurrectOutcome::Resurrected);
    let lease = db.start_one("w").await;
    db.done(&lease, succeeded()).await;
    assert_eq!(db.state(lease.job()).await, JobState::Succeeded);
    assert_eq!(db.totals().await, (1, 1, 1));
}

#[tokio::test]
async fn two_memories_know_nothing_of_each_other() {
    let ((_a, first), (_b, second)) = (open(), open());
    first.enqueue(job()).await;
    assert_eq!(second.fetch_ids(10).await, []);
    assert_eq!(second.summary().await.pending, 0);
    assert_eq!(first.fetch_ids(10).await.len(), 1);
}

#[tokio::test]
async fn a_memory_is_read_while_it_is_written() {
    let (_storage, db) = open();
    let writer = db.clone();
    let producing = tokio::spawn(async move {
        for _ in 0..200 {
            writer.enqueue(job()).await;
        }
    });
    let mut seen = 0;
    while !producing.is_finished() {
        let pending = db.summary().await.pending;
        assert!(pending >= seen && pending <= 200);
        seen = pending;
    }
    producing.await.expect("the writer does not panic");
    assert_eq!(db.summary().await.pending, 200);
}

#[tokio::test]
async fn a_lost_reply_is_recognised_in_memory() {
    let (storage, db) = open();
    let new = job();
    storage.lose_replies(1);
    let lost = db.storage.enqueue(vec![new.clone()]).await;
    assert!(lost.expect_err("the reply is lost").is_transient());
    db.enqueue(new).await;
    assert_eq!(db.summary().await.pending, 1);
}
