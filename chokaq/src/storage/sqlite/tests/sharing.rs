//! Claims over several queues, limits, due times, wake-ups.

use super::*;
use crate::model::QueueSettings;

async fn limit(storage: &SqliteStorage, queue: &str, max_workers: u32) {
    let change = QueueSettings { max_workers: Some(Some(max_workers)), ..QueueSettings::default() };
    storage.set_queue(queue.into(), change).await.unwrap();
}

async fn pause(storage: &SqliteStorage, queue: &str, paused: bool) {
    let change = QueueSettings { paused: Some(paused), ..QueueSettings::default() };
    storage.set_queue(queue.into(), change).await.unwrap();
}

fn queues(reply: &FetchReply) -> Vec<&str> {
    reply.jobs.iter().map(|job| job.queue.as_str()).collect()
}

#[tokio::test]
async fn queues_take_turns_and_priority_is_strict_within_each() {
    let storage = memory();
    let jobs = [("a", 1), ("a", 9), ("b", 5), ("a", 5), ("b", 7)];
    let batch = jobs.map(|(queue, priority)| NewJob { priority, ..job(queue) });
    storage.enqueue(batch.to_vec()).await.unwrap();
    let reply = fetch(&storage, 10).await;
    assert_eq!(queues(&reply), ["a", "b", "a", "b", "a"]);
    let priorities: Vec<_> = reply.jobs.iter().map(|job| job.priority).collect();
    assert_eq!(priorities, [9, 7, 5, 5, 1]);
}

#[tokio::test]
async fn a_limit_holds_over_fetched_and_running_rows() {
    let storage = memory();
    storage.enqueue((0..9).map(|_| job("mail")).collect()).await.unwrap();
    limit(&storage, "mail", 3).await;
    assert_eq!(fetch(&storage, 2).await.jobs.len(), 2);
    let second = fetch(&storage, 10).await;
    assert_eq!(second.jobs.len(), 1);
    let third = fetch(&storage, 10).await;
    assert!(third.jobs.is_empty() && third.passed_over.is_empty());
    let due = storage.next_due(None, Duration::from_mins(1)).await.unwrap();
    assert_eq!(due, None, "a full queue does not count");
    let release = Release { lease: second.jobs[0].lease.clone(), delay: None, unknown_type: false };
    storage.release(vec![release]).await.unwrap();
    assert_eq!(fetch(&storage, 10).await.jobs.len(), 1);
}

#[tokio::test]
async fn a_paused_queue_gives_nothing_and_is_told_to_its_workers() {
    let storage = memory();
    storage.enqueue(vec![job("mail")]).await.unwrap();
    pause(&storage, "mail", true).await;
    assert!(fetch(&storage, 1).await.jobs.is_empty());
    let serves = Some(vec!["mail".to_owned()]);
    let control = storage.read_control(WorkerId::new("w"), serves.clone()).await.unwrap();
    assert_eq!(control.stopped_queues, ["mail"]);
    assert_eq!(storage.next_due(serves.clone(), Duration::from_mins(1)).await.unwrap(), None);
    pause(&storage, "mail", false).await;
    let due = storage.next_due(serves, Duration::from_mins(1)).await.unwrap();
    assert_eq!(due, Some(Duration::ZERO));
}

#[tokio::test]
async fn a_lost_reply_of_a_fetch_is_answered_again_with_the_same_rows() {
    let storage = memory();
    storage.enqueue((0..3).map(|_| job("mail")).collect()).await.unwrap();
    storage.lose_replies(1);
    let mut request = request(2);
    assert!(storage.fetch_next_batch(request.clone()).await.unwrap_err().is_transient());
    request.is_repeat = true;
    let again = storage.fetch_next_batch(request.clone()).await.unwrap();
    assert_eq!(again.jobs.len(), 2);
    assert!(again.jobs.iter().all(|job| job.lease.lease == request.lease));
    assert_eq!(fetch(&storage, 9).await.jobs.len(), 1);
}

#[tokio::test]
async fn a_delayed_row_is_announced_and_claimed_once_it_is_due() {
    let storage = memory();
    let soon = NewJob { due: Due::After(Duration::from_millis(30)), ..job("mail") };
    let later = NewJob { due: Due::After(Duration::from_hours(1)), ..job("other") };
    storage.enqueue(vec![soon, later]).await.unwrap();
    let reply = fetch(&storage, 9).await;
    let due = reply.next_due.unwrap();
    assert!(reply.jobs.is_empty() && due <= Duration::from_millis(30));
    let other = Some(vec!["other".to_owned()]);
    assert_eq!(storage.next_due(other, Duration::from_mins(1)).await.unwrap(), None);
    tokio::time::sleep(due + Duration::from_millis(1)).await;
    assert_eq!(queues(&fetch(&storage, 9).await), ["mail"]);
}

#[tokio::test]
async fn what_may_be_claimed_wakes_and_heartbeats_do_not() {
    let storage = memory();
    let mut arrived = storage.work_arrived();
    storage.enqueue(vec![job("mail")]).await.unwrap();
    assert!(arrived.has_changed().unwrap());
    arrived.mark_unchanged();
    let running = start(&storage).await;
    let beat = Beat { lease: running.lease.clone(), progress: None };
    storage.keep_alive(vec![beat]).await.unwrap();
    assert!(!arrived.has_changed().unwrap());
    limit(&storage, "mail", 1).await;
    arrived.mark_unchanged();
    storage.finalise(vec![succeeded(&running)]).await.unwrap();
    assert!(arrived.has_changed().unwrap(), "a limited queue has room again");
}

#[tokio::test]
async fn an_unknown_type_goes_round_and_keeps_since_when() {
    let storage = memory();
    storage.enqueue(vec![job("mail")]).await.unwrap();
    for round in 0..3 {
        let fetched = fetch(&storage, 1).await.jobs.remove(0);
        assert_eq!(fetched.unknown_for.is_some(), round > 0);
        assert_eq!(fetched.attempts, 0);
        let release =
            Release { lease: fetched.lease, delay: Some(Duration::ZERO), unknown_type: true };
        assert_eq!(storage.release(vec![release]).await.unwrap(), [true]);
    }
    start(&storage).await;
    storage.recover_abandoned(Duration::ZERO, 1).await.unwrap();
}
