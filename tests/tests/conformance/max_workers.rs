//! MaxWorkers: at most so many rows of a queue fetched or running, over all workers (I7).

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::prelude::*;

claims!(
    fetched_rows_count,
    running_rows_count,
    a_finished_row_makes_room,
    a_released_row_makes_room,
    a_rescheduled_row_makes_room,
    a_limit_of_zero_stops_the_queue,
    a_limit_lowered_below_what_runs_claims_nothing,
    a_raised_limit_makes_room,
    limits_are_per_queue,
    limited_queues_are_claimed_only_for_idle_permits,
    a_full_queue_hands_its_share_to_the_others,
    fetchers_of_two_processes_never_exceed_the_limit,
);

/// A queue of twenty jobs that runs at most three.
async fn limited(db: &Db) {
    db.limit("limited", 3).await;
    db.enqueue_all(jobs(20, || job_on("limited"))).await;
}

async fn fetched_rows_count(db: &Db) {
    limited(db).await;
    assert_eq!(db.fetch_ids(2).await.len(), 2);
    assert_eq!(db.fetch_ids(10).await.len(), 1);
    assert_eq!(db.fetch("another", 10).await.len(), 0);
    assert_eq!(db.active("limited").await, 3);
}

async fn three_running(db: &Db) -> Vec<Lease> {
    limited(db).await;
    let leases: Vec<_> = db.fetch("w", 10).await.into_iter().map(|job| job.lease).collect();
    for lease in &leases {
        db.start(lease).await;
    }
    assert_eq!(leases.len(), 3);
    leases
}

async fn running_rows_count(db: &Db) {
    three_running(db).await;
    assert_eq!(db.fetch_ids(10).await, []);
}

async fn a_finished_row_makes_room(db: &Db) {
    let leases = three_running(db).await;
    db.done(&leases[0], succeeded()).await;
    db.done(&leases[1], dead(FailureReason::FatalError)).await;
    assert_eq!(db.fetch_ids(10).await.len(), 2);
}

async fn a_released_row_makes_room(db: &Db) {
    limited(db).await;
    let fetched = db.fetch("w", 10).await;
    db.release(&fetched[1].lease).await;
    assert_eq!(db.fetch_ids(10).await.len(), 1);
}

async fn a_rescheduled_row_makes_room(db: &Db) {
    let leases = three_running(db).await;
    db.done(&leases[0], retry(SECOND * 60)).await;
    db.done(&leases[1], snooze(SECOND * 60)).await;
    assert_eq!(db.fetch_ids(10).await.len(), 2);
}

async fn a_limit_of_zero_stops_the_queue(db: &Db) {
    db.limit("limited", 0).await;
    db.enqueue(job_on("limited")).await;
    assert_eq!(db.fetch_ids(10).await, []);
}

async fn a_limit_lowered_below_what_runs_claims_nothing(db: &Db) {
    let leases = three_running(db).await;
    db.limit("limited", 1).await;
    assert_eq!(db.fetch_ids(10).await, []);
    for lease in &leases[..2] {
        db.done(lease, succeeded()).await;
        assert_eq!(db.fetch_ids(10).await, []);
    }
    db.done(&leases[2], succeeded()).await;
    assert_eq!(db.fetch_ids(10).await.len(), 1);
}

async fn a_raised_limit_makes_room(db: &Db) {
    three_running(db).await;
    db.limit("limited", 5).await;
    assert_eq!(db.fetch_ids(10).await.len(), 2);
}

async fn limits_are_per_queue(db: &Db) {
    for (queue, limit) in [("one", 1), ("two", 2)] {
        db.limit(queue, limit).await;
        db.enqueue_all(jobs(5, || job_on(queue))).await;
    }
    db.enqueue_all(jobs(5, || job_on("free"))).await;
    let fetched = db.fetch("w", 15).await;
    let of = |queue: &str| fetched.iter().filter(|job| job.queue == queue).count();
    assert_eq!((of("one"), of("two"), of("free")), (1, 2, 5));
}

async fn limited_queues_are_claimed_only_for_idle_permits(db: &Db) {
    for queue in ["one", "two"] {
        db.limit(queue, 10).await;
        db.enqueue_all(jobs(10, || job_on(queue))).await;
    }
    db.enqueue_all(jobs(10, || job_on("free"))).await;
    for (take_limited, limited) in [(0, 0), (3, 3)] {
        let fetched = db.fetch_with(FetchRequest { take_limited, ..request("w", 8) }).await;
        let free = fetched.iter().filter(|job| job.queue == "free").count();
        assert_eq!(fetched.len() - free, limited, "rows of both limited queues together");
    }
}

async fn a_full_queue_hands_its_share_to_the_others(db: &Db) {
    limited(db).await;
    db.enqueue_all(jobs(20, || job_on("free"))).await;
    assert_eq!(db.fetch_ids(20).await.len(), 20);
    assert_eq!(db.active("limited").await, 3);
}

/// How often a fetcher may find nothing before the claim gives up.
const PATIENCE: usize = 20_000;

async fn fetchers_of_two_processes_never_exceed_the_limit(db: &Db) {
    limited(db).await;
    let other = db.reopen().await;
    let done = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for n in 0..8 {
        let process = if n % 2 == 0 { Calls::clone(db) } else { other.clone() };
        let (db, done) = (db.clone(), done.clone());
        tasks.push(tokio::spawn(async move {
            let mut most = 0;
            for _ in 0..PATIENCE {
                for job in process.fetch(&format!("w{n}"), 2).await {
                    most = most.max(db.active("limited").await);
                    process.start(&job.lease).await;
                    process.done(&job.lease, succeeded()).await;
                    done.fetch_add(1, Ordering::SeqCst);
                }
                most = most.max(db.active("limited").await);
                if done.load(Ordering::SeqCst) == 20 {
                    return most;
                }
                tokio::task::yield_now().await;
            }
            panic!("{} of 20 jobs were done", done.load(Ordering::SeqCst));
        }));
    }
    for task in tasks {
        let most = task.await.expect("a fetcher does not panic");
        assert!(most <= 3, "{most} rows of a queue that runs three");
    }
    assert_eq!(db.totals().await, (20, 0, 0));
}
