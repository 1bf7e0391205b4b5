//! `next_due`: how long a worker with nothing to do may sleep, and whether it may stop.

use crate::prelude::*;

claims!(
    nothing_is_due_in_an_empty_database,
    a_ready_row_is_due_now,
    a_delayed_row_is_due_when_its_delay_ends,
    a_delayed_row_whose_time_has_come_is_due_now,
    what_lies_beyond_the_horizon_does_not_count,
    the_earliest_row_decides,
    claimed_and_running_rows_are_not_due,
    a_retry_is_due_after_its_delay,
    paused_and_inactive_queues_do_not_count,
    full_queues_do_not_count,
    only_the_asked_queues_count,
    a_fetch_never_answers_a_later_due_time_than_the_next,
);

const HORIZON: Duration = Duration::from_hours(1);

async fn nothing_is_due_in_an_empty_database(db: &Db) {
    assert_eq!(db.next_due(HORIZON).await, None);
}

async fn a_ready_row_is_due_now(db: &Db) {
    db.enqueue(job()).await;
    assert_eq!(db.next_due(HORIZON).await, Some(Duration::ZERO));
    assert_eq!(db.next_due(Duration::ZERO).await, Some(Duration::ZERO));
}

fn delayed(delay: Duration) -> NewJob {
    NewJob { due: Due::After(delay), ..job() }
}

/// Holds the answer to a row that fell due `delay` after `since`.
async fn assert_due(db: &Db, since: Timestamp, delay: Duration) {
    let next = db.next_due(HORIZON).await.expect("a row is due within the hour");
    let spent = db.now().await.since(since);
    assert!(next <= delay && next + spent >= delay, "{next:?}, {spent:?} of {delay:?} spent");
}

async fn a_delayed_row_is_due_when_its_delay_ends(db: &Db) {
    let since = db.now().await;
    db.enqueue(delayed(SECOND * 600)).await;
    assert_due(db, since, SECOND * 600).await;
}

async fn a_delayed_row_whose_time_has_come_is_due_now(db: &Db) {
    let id = db.enqueue(delayed(SECOND * 600)).await;
    db.age(id, SECOND * 700).await;
    assert_eq!(db.next_due(HORIZON).await, Some(Duration::ZERO));
}

async fn what_lies_beyond_the_horizon_does_not_count(db: &Db) {
    let id = db.enqueue(delayed(HORIZON * 3)).await;
    assert_eq!(db.next_due(HORIZON).await, None);
    db.age(id, HORIZON * 2 + SECOND).await;
    assert!(db.next_due(HORIZON).await.is_some());
}

async fn the_earliest_row_decides(db: &Db) {
    let since = db.now().await;
    for seconds in [900, 300, 600] {
        db.enqueue(delayed(Duration::from_secs(seconds))).await;
    }
    assert_due(db, since, SECOND * 300).await;
}

async fn claimed_and_running_rows_are_not_due(db: &Db) {
    db.running(job()).await;
    assert_eq!(db.next_due(HORIZON).await, None);
    db.enqueue(job()).await;
    db.fetch_one("w").await;
    assert_eq!(db.next_due(HORIZON).await, None);
}

async fn a_retry_is_due_after_its_delay(db: &Db) {
    let lease = db.running(job()).await;
    let since = db.now().await;
    db.done(&lease, retry(SECOND * 60)).await;
    assert_due(db, since, SECOND * 60).await;
}

async fn paused_and_inactive_queues_do_not_count(db: &Db) {
    for queue in ["paused", "inactive"] {
        db.enqueue(job_on(queue)).await;
        db.enqueue(NewJob { queue: queue.to_owned(), ..delayed(SECOND) }).await;
    }
    db.pause("paused", true).await;
    db.activate("inactive", false).await;
    assert_eq!(db.next_due(HORIZON).await, None);
    db.activate("inactive", true).await;
    assert_eq!(db.next_due(HORIZON).await, Some(Duration::ZERO));
}

async fn full_queues_do_not_count(db: &Db) {
    db.limit("full", 1).await;
    db.enqueue_all(jobs(2, || job_on("full"))).await;
    let lease = db.fetch("w", 2).await.remove(0).lease;
    assert_eq!(db.next_due(HORIZON).await, None);
    db.start(&lease).await;
    db.done(&lease, succeeded()).await;
    assert_eq!(db.next_due(HORIZON).await, Some(Duration::ZERO));
}

async fn only_the_asked_queues_count(db: &Db) {
    db.enqueue(job_on("other")).await;
    let asked = |queue: &str| db.storage.next_due(Some(vec![queue.to_owned()]), HORIZON);
    assert_eq!(asked("mine").await.expect("the storage answers"), None);
    assert_eq!(asked("Other").await.expect("the storage answers"), None);
    assert_eq!(asked("other").await.expect("the storage answers"), Some(Duration::ZERO));
    let none = db.storage.next_due(Some(vec![]), HORIZON).await;
    assert_eq!(none.expect("the storage answers"), None);
}

async fn a_fetch_never_answers_a_later_due_time_than_the_next(db: &Db) {
    let minute = Duration::from_mins(1);
    for (queue, minutes) in [("mine", 9), ("other", 3), ("paused", 1)] {
        db.enqueue(NewJob { queue: queue.to_owned(), ..delayed(minute * minutes) }).await;
    }
    db.pause("paused", true).await;
    // A worker may wake too early for a queue that is not its own, and never too late for one that is.
    let queues = Some(vec!["mine".to_owned()]);
    let mine = db.reply(FetchRequest { queues, ..request("w", 1) }).await.next_due;
    assert!(mine.is_some_and(|next| next <= minute * 9), "{mine:?}");
    let all = db.reply(request("w", 1)).await.next_due;
    assert!(all.is_some_and(|next| next <= minute * 3), "{all:?}");
}
