//! Queue settings, and names that compare byte for byte.

use std::collections::BTreeSet;

use crate::prelude::*;

claims!(
    queue_names_compare_byte_for_byte,
    types_and_workers_compare_byte_for_byte,
    a_paused_queue_is_not_fetched,
    what_runs_on_a_paused_queue_goes_on,
    an_inactive_queue_is_not_fetched,
    a_stopped_queue_is_named_in_the_control_read,
    a_lease_of_its_own_is_named_in_the_control_read_and_in_a_fetch,
    the_control_read_is_about_the_served_queues,
    a_change_of_one_setting_keeps_the_others,
    a_limit_can_be_removed,
    setting_a_queue_makes_it,
    a_queue_can_be_set_before_its_first_job,
    another_process_obeys_a_pause_at_once,
);

const NAMES: [&str; 11] = [
    "mail",
    "Mail",
    "MAIL",
    "mail/é",
    "mail/e\u{301}",
    "🚀",
    "🛸",
    "mail\u{200b}",
    "straße",
    "strasse",
    "a'b\"c;--",
];

async fn queue_names_compare_byte_for_byte(db: &Db) {
    for name in NAMES {
        db.enqueue(job_on(name)).await;
    }
    for name in NAMES {
        let queues = Some(vec![name.to_owned()]);
        let fetched = db.fetch_with(FetchRequest { queues, ..request("w", 100) }).await;
        let queues: Vec<_> = fetched.iter().map(|job| job.queue.as_str()).collect();
        assert_eq!(queues, [name]);
        let stats = db.queue_stats(name).await;
        assert_eq!((stats.fetched, stats.ready), (1, 0));
    }
    let stats = db.storage.get_queue_stats().await.expect("the storage answers");
    let listed: BTreeSet<_> = stats.iter().map(|stats| stats.queue.as_str()).collect();
    assert_eq!((stats.len(), listed), (NAMES.len(), BTreeSet::from(NAMES)));
}

async fn types_and_workers_compare_byte_for_byte(db: &Db) {
    for name in NAMES {
        let id = db.enqueue(NewJob { job_type: name.to_owned(), ..job() }).await;
        let fetched = db.fetch(name, 1).await.remove(0);
        assert_eq!((fetched.job_type.as_str(), fetched.lease.worker().as_str()), (name, name));
        db.start(&fetched.lease).await;
        db.cancel(id).await;
    }
    for name in NAMES {
        assert_eq!(db.control(name).await.cancels.len(), 1, "the cancel of {name:?}'s job only");
    }
}

async fn a_paused_queue_is_not_fetched(db: &Db) {
    db.pause("mail", true).await;
    let mail = db.enqueue(job_on("mail")).await;
    let other = db.enqueue(job()).await;
    assert_eq!(db.fetch_ids(10).await, [other]);
    let queues = Some(vec!["mail".to_owned()]);
    let asked = db.fetch_with(FetchRequest { queues, ..request("w", 10) }).await;
    assert!(asked.is_empty(), "not even when it is asked for by name");
    db.pause("mail", false).await;
    assert_eq!(db.fetch_ids(10).await, [mail]);
}

async fn what_runs_on_a_paused_queue_goes_on(db: &Db) {
    let lease = db.running(job()).await;
    db.pause("default", true).await;
    assert_eq!(db.beat(&lease).await, BeatOutcome::Alive);
    db.done(&lease, succeeded()).await;
}

async fn an_inactive_queue_is_not_fetched(db: &Db) {
    let mail = db.enqueue(job_on("mail")).await;
    db.activate("mail", false).await;
    assert_eq!(db.fetch_ids(10).await, []);
    db.activate("mail", true).await;
    assert_eq!(db.fetch_ids(10).await, [mail]);
}

async fn a_stopped_queue_is_named_in_the_control_read(db: &Db) {
    for queue in ["paused", "inactive", "both", "neither"] {
        db.enqueue(job_on(queue)).await;
    }
    db.pause("paused", true).await;
    db.activate("inactive", false).await;
    db.pause("both", true).await;
    db.activate("both", false).await;
    let mut stopped = db.control("w").await.stopped_queues;
    stopped.sort_unstable();
    assert_eq!(stopped, ["both", "inactive", "paused"]);
}

async fn a_lease_of_its_own_is_named_in_the_control_read_and_in_a_fetch(db: &Db) {
    let lease = |lease| QueueSettings { zombie_timeout: Some(lease), ..QueueSettings::default() };
    db.enqueue(job_on("without")).await;
    db.set("short", lease(Some(SECOND * 7))).await;
    db.set("taken back", lease(Some(SECOND * 7))).await;
    db.set("taken back", lease(None)).await;
    db.pause("short", true).await;
    let expected = [("short".to_owned(), SECOND * 7)];
    let control = db.control("w").await;
    assert_eq!(control.queue_leases, expected);
    assert_eq!(control.stopped_queues, ["short"]);
    let request = FetchRequest { with_control: true, ..request("w", 0) };
    let fetched = db.storage.fetch_next_batch(request).await.expect("the storage answers");
    assert_eq!(fetched.control.expect("it was asked").queue_leases, expected);
}

async fn the_control_read_is_about_the_served_queues(db: &Db) {
    db.pause("mine", true).await;
    db.pause("Mine", true).await;
    let queues = Some(vec!["mine".to_owned(), "free".to_owned()]);
    let control = db.storage.read_control(WorkerId::new("w"), queues).await;
    assert_eq!(control.expect("the storage answers").stopped_queues, ["mine"]);
}

async fn a_change_of_one_setting_keeps_the_others(db: &Db) {
    let all = QueueSettings {
        paused: Some(true),
        active: Some(false),
        max_workers: Some(Some(3)),
        zombie_timeout: Some(Some(SECOND * 45)),
    };
    db.set("mail", all).await;
    db.set("mail", QueueSettings::default()).await;
    db.pause("mail", false).await;
    let stats = db.queue_stats("mail").await;
    assert_eq!((stats.paused, stats.active), (false, false));
    assert_eq!((stats.max_workers, stats.zombie_timeout), (Some(3), Some(SECOND * 45)));
}

async fn a_limit_can_be_removed(db: &Db) {
    db.limit("mail", 1).await;
    db.enqueue_all(jobs(3, || job_on("mail"))).await;
    assert_eq!(db.fetch_ids(10).await.len(), 1);
    let none = QueueSettings {
        max_workers: Some(None),
        zombie_timeout: Some(None),
        ..QueueSettings::default()
    };
    db.set("mail", none).await;
    let stats = db.queue_stats("mail").await;
    assert_eq!((stats.max_workers, stats.zombie_timeout), (None, None));
    assert_eq!(db.fetch_ids(10).await.len(), 2);
}

async fn setting_a_queue_makes_it(db: &Db) {
    db.set("new", QueueSettings::default()).await;
    let stats = db.queue_stats("new").await;
    assert_eq!((stats.paused, stats.active, stats.ready), (false, true, 0));
    assert_eq!(stats.last_activity, None);
}

async fn a_queue_can_be_set_before_its_first_job(db: &Db) {
    db.pause("later", true).await;
    db.enqueue(job_on("later")).await;
    assert_eq!(db.fetch_ids(10).await, []);
}

async fn another_process_obeys_a_pause_at_once(db: &Db) {
    let other = db.reopen().await;
    let id = db.enqueue(job()).await;
    assert_eq!(other.fetch("other", 0).await.len(), 0);
    db.pause("default", true).await;
    assert!(other.fetch("other", 10).await.is_empty());
    assert_eq!(other.control("other").await.stopped_queues, ["default"]);
    db.pause("default", false).await;
    assert_eq!(other.fetch_one("other").await.job(), id);
}
