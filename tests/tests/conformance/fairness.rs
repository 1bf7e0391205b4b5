//! A batch is shared among the queues that have work: a flood in one starves no other.

use std::collections::{HashMap, HashSet};

use crate::prelude::*;

claims!(
    a_flood_in_one_queue_leaves_room_in_the_first_batch,
    a_flood_of_high_priority_leaves_room_for_a_low_one,
    a_flood_cannot_starve_a_fetcher_of_single_rows,
    many_queues_each_get_a_share_in_bounded_batches,
    a_queue_alone_gets_the_whole_batch,
    what_a_small_queue_leaves_goes_to_the_others,
    a_full_queue_is_not_passed_over,
);

async fn flood(db: &Db, priority: i32) {
    let batch = jobs(5_000, || NewJob { priority, ..job_on("flood") });
    db.enqueue_all(batch).await;
}

async fn a_flood_in_one_queue_leaves_room_in_the_first_batch(db: &Db) {
    flood(db, 10).await;
    let mail = db.enqueue(job_on("mail")).await;
    let first = db.fetch_ids(100).await;
    assert!(first.contains(&mail));
    assert_eq!(first.len(), 100, "what the small queue leaves is used");
}

async fn a_flood_of_high_priority_leaves_room_for_a_low_one(db: &Db) {
    flood(db, 1_000).await;
    let mail = db.enqueue(NewJob { priority: -5, ..job_on("mail") }).await;
    assert!(db.fetch_ids(10).await.contains(&mail));
}

async fn a_flood_cannot_starve_a_fetcher_of_single_rows(db: &Db) {
    flood(db, 1_000).await;
    let mail = db.enqueue(job_on("mail")).await;
    let first = db.reply(request("w", 1)).await;
    let passed_over = first.passed_over;
    let second = db.reply(FetchRequest { passed_over, ..request("w", 1) }).await;
    let came: Vec<_> = first.jobs.iter().chain(&second.jobs).map(|job| job.lease.job()).collect();
    assert!(came.contains(&mail), "it came within two batches");
    assert_eq!(came.len(), 2);
}

async fn many_queues_each_get_a_share_in_bounded_batches(db: &Db) {
    let batch: Vec<_> = (0..1_500)
        .map(|n| NewJob { priority: n % 7, ..job_on(&format!("queue-{}", n / 10)) })
        .collect();
    db.enqueue_all(batch).await;
    let mut served = HashSet::new();
    let mut passed_over = HashMap::new();
    // 150 queues, 10 rows a batch: 15 batches would do; twice that is the bound.
    for _ in 0..30 {
        let reply = db.reply(FetchRequest { passed_over, ..request("w", 10) }).await;
        assert_eq!(reply.jobs.len(), 10);
        served.extend(reply.jobs.into_iter().map(|job| job.queue));
        passed_over = reply.passed_over;
    }
    assert_eq!(served.len(), 150);
}

async fn a_queue_alone_gets_the_whole_batch(db: &Db) {
    db.enqueue_all(jobs(100, job)).await;
    let reply = db.reply(request("w", 100)).await;
    assert_eq!(reply.jobs.len(), 100);
    assert!(reply.passed_over.is_empty(), "nothing was passed over: {:?}", reply.passed_over);
}

async fn what_a_small_queue_leaves_goes_to_the_others(db: &Db) {
    db.enqueue_all(jobs(3, || job_on("a"))).await;
    db.enqueue_all(jobs(40, || job_on("b"))).await;
    db.enqueue_all(jobs(2, || job_on("c"))).await;
    let fetched = db.fetch("w", 30).await;
    let of = |queue: &str| fetched.iter().filter(|job| job.queue == queue).count();
    assert_eq!((of("a"), of("b"), of("c")), (3, 25, 2));
}

async fn a_full_queue_is_not_passed_over(db: &Db) {
    db.limit("full", 1).await;
    db.enqueue_all(jobs(5, || job_on("full"))).await;
    db.fetch_one("w").await;
    let reply = db.reply(request("w", 10)).await;
    assert!(reply.jobs.is_empty());
    assert!(reply.passed_over.is_empty(), "it had no room: {:?}", reply.passed_over);
}
