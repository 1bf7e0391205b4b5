//! `fetch_next_batch`: Pending, due rows, by priority, under a fresh lease; no attempt used.

use std::collections::{BTreeSet, HashSet};

use crate::prelude::*;

claims!(
    a_fetch_claims_and_uses_no_attempt,
    a_claimed_row_is_not_claimed_again,
    a_running_row_is_not_claimed_again,
    a_fetch_takes_at_most_what_was_asked,
    a_fetch_of_nothing_claims_nothing,
    an_empty_database_answers_an_empty_batch,
    every_fetch_stamps_its_own_lease,
    priority_is_strict_within_a_queue,
    priorities_go_from_negative_to_largest,
    equal_priority_goes_first_in_first_out,
    the_earlier_due_goes_first_among_equal_priority,
    a_delayed_row_is_not_fetched_before_it_is_due,
    a_delayed_row_is_promoted_when_it_is_due,
    two_thousand_rows_that_fall_due_together_all_come,
    a_promoted_row_keeps_its_priority,
    only_served_queues_are_fetched,
    no_served_queue_means_no_work,
    a_queue_that_does_not_exist_is_no_error,
    a_queue_named_twice_is_served_once,
    a_batch_stops_at_its_bytes,
    one_row_larger_than_the_bytes_is_still_claimed,
    the_reply_says_when_the_next_delayed_row_is_due,
    a_repeat_returns_the_rows_of_its_lease_and_claims_no_more,
    a_repeat_of_a_fetch_that_never_happened_loses_nothing,
    a_repeat_never_returns_a_row_that_went_back,
);

const HOUR: Duration = Duration::from_hours(1);

async fn a_fetch_claims_and_uses_no_attempt(db: &Db) {
    let id = db.enqueue(job()).await;
    let fetched = db.fetch("w", 1).await.remove(0);
    assert_eq!((fetched.lease.job(), fetched.attempts, fetched.unknown_for), (id, 0, None));
    assert_eq!(fetched.lease.worker().as_str(), "w");
    let detail = db.detail(id).await;
    assert_eq!((detail.state, detail.attempts), (FETCHED, 0));
    assert_eq!((detail.worker.as_deref(), detail.started_at), (Some("w"), None));
}

async fn a_claimed_row_is_not_claimed_again(db: &Db) {
    db.enqueue_all(jobs(3, job)).await;
    let first = db.fetch_ids(2).await;
    let second = db.fetch_ids(10).await;
    let all: HashSet<_> = first.iter().chain(&second).collect();
    assert_eq!((first.len(), second.len(), all.len()), (2, 1, 3));
    assert_eq!(db.fetch_ids(10).await, []);
}

async fn a_running_row_is_not_claimed_again(db: &Db) {
    db.running(job()).await;
    assert_eq!(db.fetch_ids(10).await, []);
}

async fn a_fetch_takes_at_most_what_was_asked(db: &Db) {
    db.enqueue_all(jobs(30, job)).await;
    for take in [1, 7, 22] {
        assert_eq!(db.fetch_ids(take).await.len(), take);
    }
}

async fn a_fetch_of_nothing_claims_nothing(db: &Db) {
    db.enqueue(job()).await;
    db.changes_nothing("a fetch of 0 rows", db.fetch("w", 0)).await;
    assert_eq!(db.fetch_ids(1).await.len(), 1);
}

async fn an_empty_database_answers_an_empty_batch(db: &Db) {
    let reply = db.reply(request("w", 100)).await;
    assert!(reply.jobs.is_empty() && reply.passed_over.is_empty());
    assert_eq!(reply.next_due, None);
}

async fn every_fetch_stamps_its_own_lease(db: &Db) {
    let id = db.enqueue(job()).await;
    let mut stamped = HashSet::new();
    for _ in 0..3 {
        let request = request("w", 1);
        let lease = db.fetch_with(request.clone()).await.remove(0).lease;
        assert_eq!((lease.job(), lease.lease_id()), (id, request.lease));
        assert!(stamped.insert(lease.lease_id()));
        assert!(db.release(&lease).await);
    }
}

async fn priority_is_strict_within_a_queue(db: &Db) {
    let batch: Vec<_> =
        [5, 20, 10, 20, 0].map(|priority| NewJob { priority, ..job() }).into_iter().collect();
    let id = ids(&batch);
    db.enqueue_all(batch).await;
    assert_eq!(db.fetch_ids(2).await, [id[1], id[3]]);
    let late = db.enqueue(NewJob { priority: 15, ..job() }).await;
    assert_eq!(db.fetch_ids(10).await, [late, id[2], id[0], id[4]]);
}

async fn priorities_go_from_negative_to_largest(db: &Db) {
    let batch: Vec<_> = [i32::MIN, -1, 0, 1, i32::MAX]
        .map(|priority| NewJob { priority, ..job() })
        .into_iter()
        .collect();
    let mut expected = ids(&batch);
    expected.reverse();
    db.enqueue_all(batch).await;
    assert_eq!(db.fetch_ids(10).await, expected);
}

async fn equal_priority_goes_first_in_first_out(db: &Db) {
    let mut expected = Vec::new();
    for _ in 0..4 {
        let batch = jobs(25, job);
        expected.extend(ids(&batch));
        db.enqueue_all(batch).await;
    }
    let mut order = Vec::new();
    while order.len() < 100 {
        let some = db.fetch_ids(15).await;
        assert!(!some.is_empty(), "{} of 100 rows came", order.len());
        order.extend(some);
    }
    assert_eq!(order, expected);
}

async fn the_earlier_due_goes_first_among_equal_priority(db: &Db) {
    let younger = db.enqueue(job()).await;
    let older = db.enqueue(job()).await;
    db.age(older, SECOND * 10).await;
    assert_eq!(db.fetch_ids(2).await, [older, younger]);
}

fn delayed(delay: Duration) -> NewJob {
    NewJob { due: Due::After(delay), ..job() }
}

async fn a_delayed_row_is_not_fetched_before_it_is_due(db: &Db) {
    let id = db.enqueue(delayed(HOUR)).await;
    assert_eq!(db.fetch_ids(10).await, []);
    db.age(id, Duration::from_mins(55)).await;
    assert_eq!(db.fetch_ids(10).await, []);
    assert_eq!(db.state(id).await, PENDING);
}

async fn a_delayed_row_is_promoted_when_it_is_due(db: &Db) {
    let id = db.enqueue(delayed(HOUR)).await;
    db.enqueue(delayed(HOUR)).await;
    db.age(id, HOUR).await;
    assert_eq!(db.fetch_ids(10).await, [id]);
}

async fn two_thousand_rows_that_fall_due_together_all_come(db: &Db) {
    let batch = jobs(2_000, || NewJob { due: Due::After(Duration::from_millis(1)), ..job() });
    let last = batch[1_999].id;
    db.enqueue_all(batch).await;
    let due = db.detail(last).await.due_at;
    while db.now().await <= due {
        tokio::task::yield_now().await;
    }
    let mut seen = HashSet::new();
    // Each fetch promotes a bounded number: rows come, if not all of them at once.
    for _ in 0..40 {
        seen.extend(db.fetch_ids(100).await);
    }
    assert_eq!(seen.len(), 2_000);
}

async fn a_promoted_row_keeps_its_priority(db: &Db) {
    let urgent = db.enqueue(NewJob { priority: 99, ..delayed(SECOND * 60) }).await;
    let plain = db.enqueue(job()).await;
    db.age(urgent, SECOND * 60).await;
    assert_eq!(db.fetch_ids(2).await, [urgent, plain]);
}

fn serving(queues: &[&str], take: usize) -> FetchRequest {
    let queues = queues.iter().map(|&queue| queue.to_owned()).collect();
    FetchRequest { queues: Some(queues), ..request("w", take) }
}

async fn only_served_queues_are_fetched(db: &Db) {
    for queue in ["a", "b", "c"] {
        db.enqueue(job_on(queue)).await;
    }
    let fetched = db.fetch_with(serving(&["a", "c"], 10)).await;
    let queues: BTreeSet<_> = fetched.iter().map(|job| job.queue.as_str()).collect();
    assert_eq!((fetched.len(), queues), (2, BTreeSet::from(["a", "c"])));
    assert_eq!(db.fetch("w", 10).await.remove(0).queue, "b");
}

async fn no_served_queue_means_no_work(db: &Db) {
    db.enqueue(job()).await;
    let fetched = db.changes_nothing("a fetch of no queue", db.fetch_with(serving(&[], 10))).await;
    assert!(fetched.is_empty());
}

async fn a_queue_that_does_not_exist_is_no_error(db: &Db) {
    let id = db.enqueue(job_on("real")).await;
    assert!(db.fetch_with(serving(&["imaginary"], 10)).await.is_empty());
    let fetched = db.fetch_with(serving(&["imaginary", "real"], 10)).await;
    assert_eq!(fetched[0].lease.job(), id);
}

async fn a_queue_named_twice_is_served_once(db: &Db) {
    db.enqueue_all(jobs(4, || job_on("a"))).await;
    let fetched = db.fetch_with(serving(&["a", "a"], 3)).await;
    let claimed: HashSet<_> = fetched.iter().map(|job| job.lease.job()).collect();
    assert_eq!((fetched.len(), claimed.len()), (3, 3));
}

fn payload_of(bytes: usize) -> NewJob {
    NewJob { payload: format!("\"{}\"", "x".repeat(bytes - 2)), ..job() }
}

async fn a_batch_stops_at_its_bytes(db: &Db) {
    db.enqueue_all(jobs(10, || payload_of(1_000))).await;
    let small = FetchRequest { max_bytes: 2_500, ..request("w", 10) };
    let mut seen = 0;
    while seen < 10 {
        let fetched = db.fetch_with(FetchRequest { lease: LeaseId::new(), ..small.clone() }).await;
        let bytes: usize = fetched.iter().map(|job| job.payload.len()).sum();
        assert!((1_000..=3_000).contains(&bytes), "{bytes} bytes in a batch of 2,500");
        seen += fetched.len();
    }
    // What did not fit was never claimed.
    assert_eq!((seen, db.active("default").await), (10, 10));
}

async fn one_row_larger_than_the_bytes_is_still_claimed(db: &Db) {
    db.enqueue_all(jobs(2, || payload_of(50_000))).await;
    for _ in 0..2 {
        let tiny = FetchRequest { max_bytes: 10, ..request("w", 10) };
        assert_eq!(db.fetch_with(tiny).await.len(), 1);
    }
}

async fn the_reply_says_when_the_next_delayed_row_is_due(db: &Db) {
    let hour = Duration::from_hours(1);
    let before = db.now().await;
    db.enqueue(NewJob { due: Due::After(hour * 2), ..job() }).await;
    db.enqueue(NewJob { due: Due::After(hour), ..job() }).await;
    let next = db.reply(request("w", 10)).await.next_due.expect("a delayed row is known");
    let spent = db.now().await.since(before);
    assert!(next <= hour && next + spent >= hour, "{next:?}");
}

async fn a_repeat_returns_the_rows_of_its_lease_and_claims_no_more(db: &Db) {
    db.enqueue_all(jobs(5, job)).await;
    let request = request("w", 3);
    let first: Vec<_> = db.fetch_with(request.clone()).await.into_iter().map(|j| j.lease).collect();
    let repeat = FetchRequest { is_repeat: true, ..request };
    let again = db.changes_nothing("a repeated fetch", db.fetch_with(repeat)).await;
    let again: Vec<_> = again.into_iter().map(|job| job.lease).collect();
    assert_eq!(again, first);
}

async fn a_repeat_of_a_fetch_that_never_happened_loses_nothing(db: &Db) {
    db.enqueue_all(jobs(5, job)).await;
    let repeat = FetchRequest { is_repeat: true, ..request("w", 3) };
    let lease = repeat.lease;
    let claimed = db.fetch_with(repeat).await;
    assert!(claimed.iter().all(|job| job.lease.lease_id() == lease));
    assert_eq!(claimed.len() + db.fetch("w", 10).await.len(), 5);
}

async fn a_repeat_never_returns_a_row_that_went_back(db: &Db) {
    db.enqueue(job()).await;
    let request = request("w", 1);
    let lease = db.fetch_with(request.clone()).await.remove(0).lease;
    assert!(db.release(&lease).await);
    // The row still names its last lease, and is nobody's: returned or not, it must be claimed to be run.
    for again in db.fetch_with(FetchRequest { is_repeat: true, ..request }).await {
        assert_eq!(db.state(again.lease.job()).await, FETCHED);
    }
}
