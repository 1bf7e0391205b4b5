//! `find_job`, totals, health, rates and error groups.

use std::collections::BTreeMap;

use crate::prelude::*;

claims!(
    an_unknown_job_is_none,
    a_job_is_found_whole_in_every_place,
    any_text_comes_back_as_it_went_in,
    a_payload_of_a_megabyte_comes_back,
    the_summary_counts_every_state,
    queue_stats_count_per_queue,
    a_row_counts_as_ready_from_the_moment_it_is_due,
    queue_stats_are_by_name,
    health_says_the_worst_lag,
    health_hides_inactive_queues_and_delayed_rows,
    health_says_how_full_a_limited_queue_is,
    throughput_adds_up_to_the_totals,
    throughput_forgets_what_is_older_than_its_window,
    top_errors_are_grouped_and_counted,
    top_errors_are_told_apart_by_their_first_characters,
    top_errors_are_bounded,
);

/// Text that breaks careless quoting, encoding and length counting.
const TEXT: &str = "it's \"quoted\" \\ 🚀𝄞 e\u{301}é\nline\ttab ' ; -- % _ \u{7f} ☃";

fn decorated() -> NewJob {
    NewJob {
        queue: format!("q {TEXT} q"),
        job_type: format!("t {TEXT} t"),
        payload: serde_json::json!({ TEXT: [TEXT, 1, null] }).to_string(),
        tags: Some(serde_json::json!([TEXT, "b"]).to_string()),
        idempotency_key: Some(format!("k {TEXT} k")),
        created_by: Some(format!("c {TEXT} c")),
        priority: -3,
        retries: 7,
        ..job()
    }
}

async fn an_unknown_job_is_none(db: &Db) {
    db.enqueue(job()).await;
    let found = db.storage.find_job(JobId::new()).await.expect("the storage answers");
    assert!(found.is_none());
}

/// The fields that stay the same for the whole life of a job.
async fn assert_found_whole(db: &Db, new: &NewJob, state: JobState) {
    let found = db.detail(new.id).await;
    assert_eq!((found.id, found.state), (new.id, state));
    assert_eq!((&found.queue, &found.job_type), (&new.queue, &new.job_type));
    assert_eq!((&found.payload, &found.tags), (&new.payload, &new.tags));
    assert_eq!(found.idempotency_key, new.idempotency_key);
    assert_eq!(found.created_by, new.created_by);
    assert_eq!((found.priority, found.retries), (new.priority, new.retries));
    assert!(found.created_at <= db.now().await);
    assert!(found.deadline_at > found.created_at);
}

async fn a_job_is_found_whole_in_every_place(db: &Db) {
    let new = decorated();
    db.enqueue(new.clone()).await;
    assert_found_whole(db, &new, PENDING).await;
    let lease = db.fetch_one("w").await;
    assert_found_whole(db, &new, FETCHED).await;
    db.start(&lease).await;
    assert_found_whole(db, &new, PROCESSING).await;
    db.done(&lease, dead(FailureReason::Timeout)).await;
    assert_found_whole(db, &new, JobState::Dead(FailureReason::Timeout)).await;
    db.resurrect(new.id).await;
    assert_found_whole(db, &new, PENDING).await;
    let lease = db.start_one("w").await;
    db.done(&lease, succeeded()).await;
    assert_found_whole(db, &new, JobState::Succeeded).await;
}

async fn any_text_comes_back_as_it_went_in(db: &Db) {
    let new = decorated();
    db.enqueue(new.clone()).await;
    let worker = format!("w {TEXT} w");
    let fetched = db.fetch(&worker, 1).await.remove(0);
    assert_eq!((&fetched.queue, &fetched.job_type), (&new.queue, &new.job_type));
    assert_eq!((&fetched.payload, &fetched.tags), (&new.payload, &new.tags));
    assert_eq!((fetched.priority, fetched.retries, fetched.timeout), (-3, 7, new.timeout));
    db.start(&fetched.lease).await;
    let output = Some(serde_json::json!(TEXT).to_string());
    let note = Some(TEXT.to_owned());
    db.done(&fetched.lease, Outcome::Succeeded { output: output.clone(), note: note.clone() })
        .await;
    let found = db.detail(new.id).await;
    assert_eq!((found.output, found.output_note), (output, note));
    assert_eq!(found.worker, Some(worker));
}

async fn a_payload_of_a_megabyte_comes_back(db: &Db) {
    // Four bytes a character, and none that a compressor or a cut at a boundary would forgive.
    let text: String = "🚀𝄞🦀😀".chars().cycle().take(249_999).collect();
    let payload = format!("\"{text}\"");
    let id = db.enqueue(NewJob { payload: payload.clone(), ..job() }).await;
    let fetched = db.fetch("w", 1).await.remove(0);
    assert!(fetched.payload == payload, "the payload is fetched as it was");
    db.start(&fetched.lease).await;
    let output = Some(payload.clone());
    db.done(&fetched.lease, Outcome::Succeeded { output, note: None }).await;
    let found = db.detail(id).await;
    assert!(found.payload == payload && found.output == Some(payload), "and archived");
}

async fn the_summary_counts_every_state(db: &Db) {
    let success = db.running(job()).await;
    db.done(&success, succeeded()).await;
    db.buried(job()).await;
    let again = db.running(job()).await;
    db.done(&again, retry(Duration::from_hours(1))).await;
    db.running(job()).await;
    db.enqueue(job()).await;
    db.fetch_one("w").await;
    db.enqueue(job()).await;
    let summary = db.summary().await;
    assert_eq!((summary.pending, summary.fetched, summary.processing), (2, 1, 1));
    assert_eq!((summary.succeeded_total, summary.failed_total), (1, 1));
    assert_eq!((summary.retried_total, summary.dead), (1, 1));
}

async fn queue_stats_count_per_queue(db: &Db) {
    db.enqueue(job_on("other")).await;
    let queues = Some(vec!["mail".to_owned()]);
    db.enqueue_all(jobs(4, || job_on("mail"))).await;
    db.enqueue(NewJob { due: Due::After(SECOND * 60), ..job_on("mail") }).await;
    assert_eq!(db.queue_stats("mail").await.last_activity, None);
    let fetched = db.fetch_with(FetchRequest { queues, ..request("w", 3) }).await;
    db.start(&fetched[0].lease).await;
    db.start(&fetched[1].lease).await;
    let before = db.now().await;
    db.done(&fetched[0].lease, succeeded()).await;
    let stats = db.queue_stats("mail").await;
    assert_eq!((stats.ready, stats.delayed, stats.fetched, stats.processing), (1, 1, 1, 1));
    assert_eq!((stats.succeeded_total, stats.failed_total, stats.retried_total), (1, 0, 0));
    assert!(stats.last_activity >= Some(before));
    let other = db.queue_stats("other").await;
    assert_eq!((other.ready, other.succeeded_total, other.last_activity), (1, 0, None));
}

async fn a_row_counts_as_ready_from_the_moment_it_is_due(db: &Db) {
    let id = db.enqueue(NewJob { due: Due::After(SECOND * 60), ..job() }).await;
    let counts = async || {
        let stats = db.queue_stats("default").await;
        (stats.ready, stats.delayed)
    };
    assert_eq!(counts().await, (0, 1));
    // No fetch has promoted it: there may be no worker at all, which is when an operator looks.
    db.age(id, SECOND * 60).await;
    assert_eq!(counts().await, (1, 0));
    assert_eq!(db.summary().await.pending, 1);
}

async fn queue_stats_are_by_name(db: &Db) {
    for queue in ["b", "a", "c", "B"] {
        db.enqueue(job_on(queue)).await;
    }
    let names = |queues: Vec<String>| assert_eq!(queues, ["B", "a", "b", "c"]);
    let stats = db.storage.get_queue_stats().await.expect("the storage answers");
    names(stats.into_iter().map(|stats| stats.queue).collect());
    let health = db.storage.get_queue_health().await.expect("the storage answers");
    names(health.into_iter().map(|health| health.queue).collect());
}

async fn health(db: &Db) -> BTreeMap<String, (u64, Duration, Option<u32>)> {
    let health = db.storage.get_queue_health().await.expect("the storage answers");
    let facts =
        |h: chokaq::model::QueueHealth| (h.queue, (h.ready, h.worst_lag, h.saturation_percent));
    health.into_iter().map(facts).collect()
}

async fn health_says_the_worst_lag(db: &Db) {
    let waiting = db.enqueue(job_on("behind")).await;
    db.enqueue(NewJob { priority: 99, ..job_on("behind") }).await;
    db.age(waiting, SECOND * 500).await;
    db.set("idle", QueueSettings::default()).await;
    let health = health(db).await;
    let (ready, lag, _) = health["behind"];
    assert_eq!(ready, 2);
    assert!(lag >= SECOND * 500 && lag < SECOND * 700, "{lag:?}");
    assert_eq!(health["idle"], (0, Duration::ZERO, None));
}

async fn health_hides_inactive_queues_and_delayed_rows(db: &Db) {
    let id = db.enqueue(NewJob { due: Due::After(SECOND * 600), ..job() }).await;
    db.enqueue(job_on("inactive")).await;
    db.activate("inactive", false).await;
    assert_eq!(
        health(db).await,
        BTreeMap::from([("default".to_owned(), (0, Duration::ZERO, None))])
    );
    // Due, and not promoted yet: it waits all the same.
    db.age(id, SECOND * 700).await;
    let (ready, lag, _) = health(db).await["default"];
    assert!(ready == 1 && lag >= SECOND * 100, "{ready} {lag:?}");
}

async fn health_says_how_full_a_limited_queue_is(db: &Db) {
    db.limit("limited", 4).await;
    db.enqueue_all(jobs(4, || job_on("limited"))).await;
    for percent in [0, 25, 50] {
        assert_eq!(health(db).await["limited"].2, Some(percent));
        let lease = db.fetch("w", 1).await.remove(0).lease;
        if percent == 0 {
            db.start(&lease).await;
        }
    }
}

async fn throughput(db: &Db, window: Duration) -> (u64, u64) {
    let points = db.storage.get_throughput_stats(window).await.expect("the storage answers");
    assert!(points.is_sorted_by_key(|point| point.bucket), "oldest first");
    for point in &points {
        assert_eq!(point.bucket.as_unix_ms() % 10_000, 0, "buckets are 10 s wide");
    }
    points.iter().fold((0, 0), |(ok, failed), point| (ok + point.succeeded, failed + point.failed))
}

async fn throughput_adds_up_to_the_totals(db: &Db) {
    for n in 0..9 {
        let lease = db.running(job_on(["a", "b", "c"][n % 3])).await;
        let outcome = if n < 5 { succeeded() } else { dead(FailureReason::FatalError) };
        db.done(&lease, outcome).await;
    }
    let snoozed = db.running(job()).await;
    db.done(&snoozed, snooze(SECOND * 60)).await;
    assert_eq!(throughput(db, Duration::from_mins(10)).await, (5, 4));
    assert_eq!(db.totals().await, (5, 4, 0));
}

async fn throughput_forgets_what_is_older_than_its_window(db: &Db) {
    let old = db.running(job()).await;
    db.age(old.job(), SECOND * 30).await;
    db.done(&old, succeeded()).await;
    let points = db.storage.get_throughput_stats(Duration::from_mins(1)).await;
    let duration = points.expect("the storage answers")[0].duration;
    assert!(duration >= SECOND * 30 && duration < SECOND * 200, "it ran for {duration:?}");
    db.age_buckets(Duration::from_mins(20)).await;
    let new = db.running(job()).await;
    db.done(&new, succeeded()).await;
    assert_eq!(throughput(db, Duration::from_mins(10)).await, (1, 0));
    assert_eq!(throughput(db, Duration::from_hours(1)).await, (2, 0));
}

async fn bury(db: &Db, job_type: &str, reason: FailureReason, text: &str) {
    let lease = db.running(NewJob { job_type: job_type.to_owned(), ..job() }).await;
    db.done(&lease, Outcome::Dead { reason, error: error(text) }).await;
}

async fn top_errors(db: &Db, limit: usize) -> Vec<(String, FailureReason, String, u64)> {
    let groups = db.storage.get_top_dlq_errors(limit).await.expect("the storage answers");
    groups.into_iter().map(|g| (g.job_type, g.reason, g.error, g.count)).collect()
}

async fn top_errors_are_grouped_and_counted(db: &Db) {
    use FailureReason::{FatalError, Timeout};
    for (n, job_type, reason, text) in [
        (4, "mail", FatalError, "smtp 🚀 down"),
        (3, "mail", Timeout, "smtp 🚀 down"),
        (2, "report", FatalError, "smtp 🚀 down"),
        (1, "mail", FatalError, "disk full"),
    ] {
        for _ in 0..n {
            bury(db, job_type, reason, text).await;
        }
    }
    let group = |t: &str, r, e: &str, n| (t.to_owned(), r, e.to_owned(), n);
    let expected = [
        group("mail", FatalError, "smtp 🚀 down", 4),
        group("mail", Timeout, "smtp 🚀 down", 3),
        group("report", FatalError, "smtp 🚀 down", 2),
        group("mail", FatalError, "disk full", 1),
    ];
    assert_eq!(top_errors(db, 10).await, expected);
    assert_eq!(top_errors(db, 2).await, expected[..2]);
    assert_eq!(top_errors(db, 0).await, []);
}

async fn top_errors_are_told_apart_by_their_first_characters(db: &Db) {
    let start = "é".repeat(200);
    for end in ["one", "two"] {
        bury(db, "mail", FailureReason::FatalError, &format!("{start}{end}")).await;
    }
    let groups = top_errors(db, 10).await;
    assert_eq!(groups, [("mail".to_owned(), FailureReason::FatalError, start, 2)]);
}

async fn top_errors_are_bounded(db: &Db) {
    let batch = jobs(1_100, job);
    let ids = ids(&batch);
    db.enqueue_all(batch).await;
    db.storage.cancel(ids, "all".to_owned()).await.expect("the storage answers");
    let counted: u64 = top_errors(db, 10).await.into_iter().map(|group| group.3).sum();
    assert_eq!(counted, 1_000, "the newest 1,000 are looked at");
}
