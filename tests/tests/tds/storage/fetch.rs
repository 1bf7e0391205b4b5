//! Claims.

use std::{collections::HashMap, time::Duration};

use chokaq::{
    Timestamp,
    model::{FetchReply, FetchRequest},
    storage::WorkerStorage,
};

use crate::{
    answers::{Cell, Step, text},
    storage::{
        columns::{empty, rows, set},
        stage::{
            NULL, Replies, Stage, WORKER, batch, claimed, fence, fence_cell, int, job_cell, job_id,
            request,
        },
    },
    within,
};

const FETCH: &str = "fetch_next_batch";

async fn fetch(stage: &Stage, request: FetchRequest) -> chokaq::Result<FetchReply> {
    within(stage.storage.fetch_next_batch(request)).await
}

/// The reply to one fetch with this answer.
async fn reply(answer: Vec<Step>, request: FetchRequest) -> chokaq::Result<FetchReply> {
    fetch(&Stage::new(Replies::new().to(FETCH, answer)).await, request).await
}

/// An answer with rows in one more of its sets.
fn with<const N: usize>(mut answer: Vec<Step>, index: usize, cells: Vec<[Cell; N]>) -> Vec<Step> {
    answer[index] = set(FETCH, index, cells);
    answer
}

fn seqs(reply: &FetchReply) -> Vec<u8> {
    reply.jobs.iter().map(|job| job.lease.job().as_bytes()[15]).collect()
}

#[tokio::test]
async fn a_claim_says_who_asks_for_what() {
    let stage = Stage::new(Replies::nothing_found()).await;
    fetch(&stage, request(5)).await.expect("nothing");
    let full = FetchRequest {
        queues: Some(vec!["mail".to_owned(), "prüfen 🔎".to_owned()]),
        take_limited: 2,
        max_bytes: usize::MAX,
        passed_over: HashMap::from([("mäil".to_owned(), 3)]),
        with_control: true,
        ..request(100)
    };
    fetch(&stage, full).await.expect("nothing");
    assert_eq!(stage.names(), [FETCH, FETCH]);
    assert_eq!(
        stage.sent(0),
        [
            "@worker nvarchar(255) = wörker 🔑",
            "@lease uniqueidentifier = f0e1d2c3-b4a5-7687-a879-6a5b4c3d0000",
            "@queues nvarchar(max) = NULL",
            "@passed_over nvarchar(max) = []",
            "@take int = 5",
            "@take_limited int = 5",
            "@max_bytes bigint = 1048576",
            "@with_control bit = 0",
        ]
    );
    assert_eq!(
        stage.sent(1)[2..],
        [
            r#"@queues nvarchar(max) = ["mail","prüfen 🔎"]"#,
            r#"@passed_over nvarchar(max) = [{"q":"mäil","n":3}]"#,
            "@take int = 100",
            "@take_limited int = 2",
            "@max_bytes bigint = 9223372036854775807",
            "@with_control bit = 1",
        ]
    );
}

#[tokio::test]
async fn a_claimed_row_is_read_with_and_without_what_may_be_null() {
    let full = [
        int(i64::MAX),
        job_cell(2),
        fence_cell(9),
        text("prüfen 🔎"),
        text("sénd"),
        text(r#"{"to":"Zoë 🔑"}"#),
        text(r#"["🏷"]"#),
        int(i32::MIN.into()),
        int(2),
        int(0),
        int(i64::MAX),
        int(-1),
        int(253_402_300_799_999),
        int(61_250),
        int(-1),
        int(1),
        int(1),
    ];
    let reply = reply(batch(vec![full, claimed(1)]), request(5)).await.expect("two rows");
    assert_eq!((reply.jobs.len(), reply.next_due), (2, None));
    assert!(reply.passed_over.is_empty() && reply.control.is_none());
    let plain = &reply.jobs[1];
    assert_eq!((plain.lease.job(), plain.lease.lease_id()), (job_id(1), fence(1)));
    assert_eq!(plain.lease.worker().as_str(), WORKER);
    assert_eq!((&*plain.queue, &*plain.job_type, &*plain.payload), ("mail", "send", "{}"));
    assert_eq!((plain.tags.as_deref(), plain.unknown_for), (None, None));
    assert_eq!((plain.priority, plain.attempts, plain.retries), (10, 0, 3));
    assert_eq!(plain.timeout, Duration::from_mins(15));
    assert_eq!(plain.created_at, Timestamp::from_unix_ms(1_772_366_400_250));
    assert_eq!(plain.due_at, Timestamp::from_unix_ms(1_772_366_400_251));
    let full = &reply.jobs[0];
    assert_eq!((full.lease.job(), full.lease.lease_id()), (job_id(2), fence(9)));
    assert_eq!((&*full.queue, &*full.payload), ("prüfen 🔎", r#"{"to":"Zoë 🔑"}"#));
    assert_eq!(full.tags.as_deref(), Some(r#"["🏷"]"#));
    assert_eq!((full.priority, full.attempts, full.retries), (i32::MIN, 2, 0));
    assert_eq!(full.created_at, Timestamp::from_unix_ms(-1));
    assert_eq!(full.due_at, Timestamp::from_unix_ms(253_402_300_799_999));
    assert_eq!(full.unknown_for, Some(Duration::from_millis(61_250)));
    assert_eq!((plain.expires_in, full.expires_in), (Duration::from_hours(24), Duration::ZERO));
}

#[tokio::test]
async fn rows_in_any_order_are_run_by_turn_then_by_place() {
    let row = |number, turn, place| {
        let mut row = claimed(number);
        (row[15], row[16]) = (int(turn), int(place));
        row
    };
    let answer = batch(vec![row(1, 2, 1), row(2, 10, 1), row(3, 1, 2), row(4, 1, 1), row(5, 2, 2)]);
    let reply = reply(answer, request(5)).await.expect("rows");
    assert_eq!(seqs(&reply), [4, 3, 1, 5, 2]);
}

#[tokio::test]
async fn payloads_of_a_megabyte_arrive_whole() {
    let payload = format!("\"{}\"", "Zoë 🔑 ".repeat(100_000));
    let row = |number| {
        let mut row = claimed(number);
        row[5] = text(&*payload);
        row
    };
    let reply = reply(batch((1..=4).map(row).collect()), request(5)).await.expect("four rows");
    assert_eq!(seqs(&reply), [1, 2, 3, 4]);
    assert!(reply.jobs.iter().all(|job| job.payload == payload));
}

#[tokio::test]
async fn what_operators_ask_comes_with_a_claim_that_asks_for_it() {
    let settings = || vec![[text("mäil"), int(1), int(45_000)]];
    let answer = || with(with(empty(FETCH), 0, settings()), 1, vec![[job_cell(7)]]);
    let asked = FetchRequest { with_control: true, ..request(5) };
    let control = reply(answer(), asked).await.expect("an answer").control.expect("it was asked");
    assert_eq!(
        (control.stopped_queues, control.queue_leases, control.cancels),
        (
            vec!["mäil".to_owned()],
            vec![("mäil".to_owned(), Duration::from_secs(45))],
            vec![job_id(7)]
        )
    );
    assert!(reply(answer(), request(5)).await.expect("an answer").control.is_none());
}

#[tokio::test]
async fn the_next_due_time_is_read_whether_or_not_there_is_one() {
    for (cell, expected) in [
        (NULL, None),
        (int(0), Some(Duration::ZERO)),
        (int(61_250), Some(Duration::from_millis(61_250))),
    ] {
        let answer = with(empty(FETCH), 4, vec![[cell]]);
        assert_eq!(reply(answer, request(5)).await.expect("an answer").next_due, expected);
    }
}

#[tokio::test]
async fn a_queue_whose_row_is_busy_is_looked_at_again_soon_unless_something_was_claimed() {
    let busy = vec![[text("mäil"), int(2), int(1)], [text("other"), int(1), int(0)]];
    let found = reply(with(empty(FETCH), 3, busy.clone()), request(5)).await.expect("an answer");
    assert_eq!(found.next_due, Some(Duration::from_millis(20)));
    assert_eq!(found.passed_over, HashMap::from([("mäil".to_owned(), 2), ("other".to_owned(), 1)]));

    let sooner = with(with(empty(FETCH), 3, busy.clone()), 4, vec![[int(3)]]);
    let found = reply(sooner, request(5)).await.expect("an answer");
    assert_eq!(found.next_due, Some(Duration::from_millis(3)));

    let claimed = with(batch(vec![claimed(1)]), 3, busy);
    assert_eq!(reply(claimed, request(5)).await.expect("a row").next_due, None);
}

#[tokio::test]
async fn a_repeat_looks_for_what_its_lease_holds_and_claims_no_more() {
    let mut found: Vec<[Cell; 15]> = Vec::new();
    for number in [2, 1, 3] {
        let row: Vec<Cell> = claimed(number).into_iter().take(15).collect();
        found.push(row.try_into().expect("15 columns"));
    }
    found[2][7] = int(99);
    let replies = Replies::new()
        .to("find_claimed", vec![rows("find_claimed", found)])
        .to(FETCH, with(empty(FETCH), 1, vec![[job_cell(7)]]));
    let stage = Stage::new(replies).await;
    let passed_over = HashMap::from([("mail".to_owned(), 3)]);
    let repeat = FetchRequest {
        is_repeat: true,
        with_control: true,
        passed_over: passed_over.clone(),
        ..request(5)
    };
    let reply = fetch(&stage, repeat).await.expect("the rows of the first call");
    assert_eq!(seqs(&reply), [3, 1, 2], "by priority, then by age");
    assert_eq!(reply.passed_over, passed_over, "nobody was passed over by this call");
    assert_eq!(reply.control.expect("it was asked").cancels, [job_id(7)]);
    assert_eq!(stage.names(), ["find_claimed", FETCH]);
    assert_eq!(stage.sent(0), stage.sent(1)[..2]);
    assert_eq!(stage.sent(1)[4], "@take int = 0");
}

#[tokio::test]
async fn a_repeat_whose_lease_holds_nothing_claims_under_it() {
    let replies =
        Replies::new().to("find_claimed", empty("find_claimed")).to(FETCH, batch(vec![claimed(1)]));
    let stage = Stage::new(replies).await;
    let repeat = FetchRequest { is_repeat: true, ..request(5) };
    assert_eq!(seqs(&fetch(&stage, repeat).await.expect("a row")), [1]);
    assert_eq!(stage.names(), ["find_claimed", FETCH]);
    assert_eq!(stage.sent(1)[4], "@take int = 5");
}

#[tokio::test]
async fn an_answer_with_a_set_too_few_is_an_error_that_names_the_statement() {
    let mut answer = empty(FETCH);
    answer.pop();
    let error = reply(answer, request(5)).await.expect_err("four sets");
    assert!(!error.is_transient(), "{error}");
    assert!(error.to_string().contains(FETCH) && error.to_string().contains('4'), "{error}");
}
