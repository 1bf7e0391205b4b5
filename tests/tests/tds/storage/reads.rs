//! What people look at.

use std::time::Duration;

use chokaq::{
    FailureReason, JobDetail, JobState, JobStatus, Timestamp, model::SummaryStats,
    storage::OperatorStorage,
};

use crate::{
    answers::{Cell, text},
    storage::{
        columns::empty,
        stage::{NULL, Replies, Stage, int, job_cell, job_id},
    },
    within,
};

const MS: i64 = 1_772_366_400_250;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(ms)
}

/// A job with nothing in what may be NULL.
fn job(place: i64, status: Cell, reason: Cell) -> [Cell; 25] {
    let mut row = [(); 25].map(|()| NULL);
    (row[0], row[1], row[2], row[3]) = (int(place), status, reason, job_cell(1));
    (row[4], row[5], row[6]) = (text("mail"), text("send"), text("{}"));
    (row[10], row[11], row[12]) = (int(-5), int(2), int(3));
    (row[13], row[14], row[15]) = (int(MS), int(MS + 1), int(MS + 2));
    row
}

async fn find(rows: Vec<[Cell; 25]>) -> chokaq::Result<Option<JobDetail>> {
    let stage = Stage::new(Replies::new().rows("find_job", rows)).await;
    let found = within(stage.storage.find_job(job_id(1))).await;
    assert_eq!(
        stage.only("find_job", "page"),
        ["@id uniqueidentifier = 00112233-4455-6677-8899-aabbccdd0001"]
    );
    found
}

async fn found(row: [Cell; 25]) -> JobDetail {
    find(vec![row]).await.expect("an answer").expect("the job")
}

#[tokio::test]
async fn a_job_is_found_in_every_state() {
    for (status, expected) in
        [(0, JobStatus::Pending), (1, JobStatus::Fetched), (2, JobStatus::Processing)]
    {
        assert_eq!(found(job(0, int(status), NULL)).await.state, JobState::Active(expected));
    }
    assert_eq!(found(job(1, NULL, NULL)).await.state, JobState::Succeeded);
    for reason in FailureReason::ALL {
        let job = found(job(2, NULL, text(reason.as_str()))).await;
        assert_eq!(job.state, JobState::Dead(reason));
    }
}

#[tokio::test]
async fn a_job_is_read_with_and_without_what_may_be_null() {
    let plain = found(job(0, int(0), NULL)).await;
    assert_eq!(
        (plain.id, &*plain.queue, &*plain.job_type, &*plain.payload),
        (job_id(1), "mail", "send", "{}")
    );
    assert_eq!((plain.priority, plain.attempts, plain.retries), (-5, 2, 3));
    assert_eq!(
        (plain.created_at, plain.due_at, plain.deadline_at),
        (at(MS), at(MS + 1), at(MS + 2))
    );
    let texts = [
        &plain.tags,
        &plain.idempotency_key,
        &plain.created_by,
        &plain.worker,
        &plain.output,
        &plain.output_note,
    ];
    assert!(texts.into_iter().all(Option::is_none));
    let times = [plain.started_at, plain.finished_at, plain.cancel_requested_at];
    assert_eq!(times, [None; 3]);
    assert!(plain.progress.is_none() && plain.errors.is_empty());

    let mut row = job(0, int(2), NULL);
    (row[7], row[8], row[9]) = (text(r#"["🏷"]"#), text("Order-7"), text("Ünal"));
    (row[16], row[17], row[18]) = (int(MS + 3), int(MS + 4), text("wörker 🔑"));
    (row[19], row[20], row[21]) = (int(MS + 5), Cell::Float(0.5), text("hälfte 🏃"));
    (row[22], row[23]) = (text(r#""🔑""#), text("zu groß"));
    let errors = r#"[{"attempt":1,"at_ms":7,"kind":"error","text":"böse 🔥"},{"attempt":2,"at_ms":8,"kind":"panic","text":""}]"#;
    row[24] = text(errors);
    let full = found(row).await;
    assert_eq!(full.tags.as_deref(), Some(r#"["🏷"]"#));
    assert_eq!(full.idempotency_key.as_deref(), Some("Order-7"));
    assert_eq!(full.created_by.as_deref(), Some("Ünal"));
    assert_eq!((full.started_at, full.finished_at), (Some(at(MS + 3)), Some(at(MS + 4))));
    assert_eq!(full.worker.as_deref(), Some("wörker 🔑"));
    assert_eq!(full.cancel_requested_at, Some(at(MS + 5)));
    assert_eq!(full.progress, Some((0.5, "hälfte 🏃".to_owned())));
    assert_eq!(full.output.as_deref(), Some(r#""🔑""#));
    assert_eq!(full.output_note.as_deref(), Some("zu groß"));
    let errors: Vec<_> = full.errors.iter().map(|e| (e.attempt, e.at_ms, &*e.text)).collect();
    assert_eq!(errors, [(1, 7, "böse 🔥"), (2, 8, "")]);
}

#[tokio::test]
async fn a_payload_and_an_output_of_a_megabyte_are_read_whole() {
    let large = format!("\"{}\"", "Zoë 🔑 ".repeat(100_000));
    let mut row = job(1, NULL, NULL);
    (row[6], row[22]) = (text(&*large), text(&*large));
    let job = found(row).await;
    assert_eq!((&job.payload, job.output.as_ref()), (&large, Some(&large)));
}

#[tokio::test]
async fn a_job_that_moved_while_it_was_read_is_where_it_came_last() {
    let dead = || job(2, NULL, text("Zombie"));
    for rows in [vec![job(0, int(2), NULL), dead()], vec![dead(), job(0, int(2), NULL)]] {
        let job = find(rows).await.expect("an answer").expect("the job");
        assert_eq!(job.state, JobState::Dead(FailureReason::Zombie));
    }
}

#[tokio::test]
async fn a_job_that_is_nowhere_is_looked_for_twice() {
    let replies = Replies::new().to("find_job", empty("find_job"));
    let stage = Stage::new(replies.rows("find_job", vec![job(0, int(0), NULL)])).await;
    let found = within(stage.storage.find_job(job_id(1))).await.expect("an answer");
    assert!(found.is_some(), "it was on its way back when the first look passed");

    let stage = Stage::new(Replies::nothing_found()).await;
    assert!(within(stage.storage.find_job(job_id(1))).await.expect("an answer").is_none());
    assert_eq!(stage.names(), ["find_job", "find_job"]);
}

#[tokio::test]
async fn a_row_that_this_program_would_not_have_written_is_an_error_that_shows_it() {
    let mut broken_errors = job(0, int(0), NULL);
    broken_errors[24] = text("not JSON");
    for (row, parts) in [
        (job(0, int(7), NULL), ["\"Status\"", "7"]),
        (job(0, NULL, NULL), ["\"Status\"", "NULL"]),
        (job(2, NULL, text("Böse")), ["\"Reason\"", "\"Böse\""]),
        (broken_errors, ["\"Errors\"", "no list of errors"]),
    ] {
        let error = find(vec![row]).await.expect_err("it cannot be read");
        let text = error.to_string();
        assert!(!error.is_transient() && text.contains("find_job"), "{text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text}");
    }
}

#[tokio::test]
async fn summary_counts_are_read_and_no_row_is_zero_everywhere() {
    let row = [1, 2, 3, i64::MAX, 5, 6, 7].map(int);
    let stage = Stage::new(Replies::new().rows("get_summary_stats", vec![row])).await;
    let stats = within(stage.storage.get_summary_stats()).await.expect("an answer");
    assert_eq!((stats.pending, stats.fetched, stats.processing, stats.dead), (1, 2, 3, 7));
    assert_eq!(stats.succeeded_total, u64::try_from(i64::MAX).expect("positive"));
    assert_eq!((stats.failed_total, stats.retried_total), (5, 6));
    assert!(stage.only("get_summary_stats", "page").is_empty());

    let stage = Stage::new(Replies::nothing_found()).await;
    let stats = within(stage.storage.get_summary_stats()).await.expect("an answer");
    assert_eq!(stats, SummaryStats::default());
}

#[tokio::test]
async fn queue_counts_and_settings_are_read_in_the_order_of_the_answer() {
    let mut plain = [0; 13].map(int);
    (plain[0], plain[2], plain[3], plain[4], plain[12]) = (text("a"), int(1), NULL, NULL, NULL);
    let mut full = [0, 1, 0, 5, 61_250, 6, 7, 8, 9, 10, 11, 12, MS].map(int);
    full[0] = text("prüfen 🔎");
    let stage = Stage::new(Replies::new().rows("get_queue_stats", vec![plain, full])).await;
    let queues = within(stage.storage.get_queue_stats()).await.expect("an answer");
    assert!(stage.only("get_queue_stats", "page").is_empty());
    let (plain, full) = (&queues[0], &queues[1]);
    assert_eq!((&*plain.queue, plain.paused, plain.active), ("a", false, true));
    assert_eq!((plain.max_workers, plain.zombie_timeout, plain.last_activity), (None, None, None));
    assert_eq!((&*full.queue, full.paused, full.active), ("prüfen 🔎", true, false));
    assert_eq!(
        (full.max_workers, full.zombie_timeout),
        (Some(5), Some(Duration::from_millis(61_250)))
    );
    assert_eq!((full.ready, full.delayed, full.fetched, full.processing), (6, 7, 8, 9));
    assert_eq!((full.succeeded_total, full.failed_total, full.retried_total), (10, 11, 12));
    assert_eq!(full.last_activity, Some(at(MS)));
}

#[tokio::test]
async fn lag_and_saturation_are_read_also_of_a_queue_that_admits_nobody() {
    let row = |name: &str, max, lag| [text(name), max, int(7), int(3), lag];
    let rows = vec![row("a", NULL, NULL), row("b", int(4), int(61_250)), row("c", int(0), int(0))];
    let stage = Stage::new(Replies::new().rows("get_queue_health", rows)).await;
    let health = within(stage.storage.get_queue_health()).await.expect("an answer");
    assert!(stage.only("get_queue_health", "page").is_empty());
    let read: Vec<_> = health
        .iter()
        .map(|q| (&*q.queue, q.ready, q.worst_lag.as_millis(), q.saturation_percent))
        .collect();
    assert_eq!(read, [("a", 7, 0, None), ("b", 7, 61_250, Some(75)), ("c", 7, 0, Some(100))]);
}

#[tokio::test]
async fn throughput_is_asked_by_its_window() {
    let row = [text("prüfen 🔎"), int(MS), int(5), int(2), int(61_250)];
    let stage = Stage::new(Replies::new().rows("get_throughput_stats", vec![row])).await;
    let points = stage.storage.get_throughput_stats(Duration::from_millis(60_250));
    let points = within(points).await.expect("an answer");
    assert_eq!(stage.only("get_throughput_stats", "page"), ["@window_ms bigint = 60250"]);
    let point = &points[0];
    assert_eq!((&*point.queue, point.bucket), ("prüfen 🔎", at(MS)));
    assert_eq!((point.succeeded, point.failed), (5, 2));
    assert_eq!(point.duration, Duration::from_millis(61_250));
}

#[tokio::test]
async fn a_window_of_all_time_is_one_that_the_server_can_count() {
    let stage = Stage::new(Replies::nothing_found()).await;
    within(stage.storage.get_throughput_stats(Duration::MAX)).await.expect("an answer");
    // 50 years: DATEADD counts seconds as an int.
    assert_eq!(stage.sent(0), ["@window_ms bigint = 1576800000000"]);
}

#[tokio::test]
async fn the_commonest_errors_are_read_up_to_the_limit() {
    let row = |reason: &str| [text("send"), text(reason), text("böse 🔥"), int(7), int(MS)];
    let replies = Replies::new().rows("get_top_dlq_errors", vec![row("Timeout")]);
    let stage = Stage::new(replies).await;
    let groups = within(stage.storage.get_top_dlq_errors(10)).await.expect("an answer");
    assert_eq!(stage.only("get_top_dlq_errors", "page"), ["@limit int = 10"]);
    let group = &groups[0];
    assert_eq!((&*group.job_type, group.reason), ("send", FailureReason::Timeout));
    assert_eq!((&*group.error, group.count, group.last_failed_at), ("böse 🔥", 7, at(MS)));

    let replies = Replies::new().rows("get_top_dlq_errors", vec![row("Böse")]);
    let stage = Stage::new(replies).await;
    let error = within(stage.storage.get_top_dlq_errors(10)).await.expect_err("no such reason");
    assert!(error.to_string().contains("\"Böse\""), "{error}");
}
