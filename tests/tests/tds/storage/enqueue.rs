//! New jobs in.

use std::time::Duration;

use chokaq::{
    OnCrash, Timestamp,
    model::{Due, EnqueueOutcome, NewJob},
    storage::{ProducerStorage, WorkerStorage},
};

use crate::{
    answers::Cell,
    storage::stage::{NULL, Replies, Stage, int, job_cell, job_id, json},
    within,
};

pub(crate) fn job(number: i64) -> NewJob {
    NewJob {
        id: job_id(number),
        queue: "mail".to_owned(),
        job_type: "send".to_owned(),
        payload: "{}".to_owned(),
        tags: None,
        idempotency_key: None,
        created_by: None,
        priority: 10,
        due: Due::Now,
        retries: 3,
        timeout: Duration::from_mins(15),
        max_age: Duration::from_hours(24),
        on_crash: OnCrash::DeadLetter,
    }
}

fn stored(place: i64) -> [Cell; 3] {
    [int(place), int(1), NULL]
}

async fn enqueue(stage: &Stage, jobs: Vec<NewJob>) -> chokaq::Result<Vec<EnqueueOutcome>> {
    within(stage.storage.enqueue(jobs)).await
}

#[tokio::test]
async fn a_job_travels_with_all_that_later_decisions_need() {
    let stage =
        Stage::new(Replies::new().rows("enqueue", vec![stored(0), stored(1), stored(2)])).await;
    let full = NewJob {
        queue: "prüfen".to_owned(),
        payload: r#"{"to":"Zoë 🔑\n"}"#.to_owned(),
        tags: Some(r#"["a","🏷"]"#.to_owned()),
        idempotency_key: Some("Order-7".to_owned()),
        created_by: Some("Ünal".to_owned()),
        priority: -5,
        due: Due::After(Duration::from_millis(61_250)),
        retries: 0,
        timeout: Duration::from_millis(1_500),
        on_crash: OnCrash::Retry,
        ..job(1)
    };
    let timed = NewJob { due: Due::At(Timestamp::from_unix_ms(1_772_366_400_250)), ..job(2) };
    let outcomes = enqueue(&stage, vec![full, timed, job(3)]).await.expect("they are stored");
    assert_eq!(outcomes, [EnqueueOutcome::Stored; 3]);
    assert_eq!(
        stage.only("enqueue", "worker"),
        [concat!(
            r#"@jobs nvarchar(max) = [{"i":"00112233-4455-6677-8899-aabbccdd0001","q":"prüfen","y":"send","#,
            r#""b":"{\"to\":\"Zoë 🔑\\n\"}","g":"[\"a\",\"🏷\"]","k":"Order-7","c":"Ünal","p":-5,"r":0,"to":1500,"#,
            r#""ma":86400000,"oc":1,"ds":61,"dm":250},"#,
            r#"{"i":"00112233-4455-6677-8899-aabbccdd0002","q":"mail","y":"send","b":"{}","p":10,"r":3,"to":900000,"#,
            r#""ma":86400000,"oc":0,"at":"2026-03-01T12:00:00.250"},"#,
            r#"{"i":"00112233-4455-6677-8899-aabbccdd0003","q":"mail","y":"send","b":"{}","p":10,"r":3,"to":900000,"#,
            r#""ma":86400000,"oc":0}]"#
        )]
    );
}

#[tokio::test]
async fn answers_in_any_order_come_back_in_the_order_of_the_call() {
    let duplicate = [int(1), int(0), job_cell(77)];
    let stage =
        Stage::new(Replies::new().rows("enqueue", vec![stored(2), duplicate, stored(0)])).await;
    let outcomes = enqueue(&stage, vec![job(1), job(2), job(3)]).await.expect("an answer");
    let of = job_id(77);
    let stored = EnqueueOutcome::Stored;
    assert_eq!(outcomes, [stored, EnqueueOutcome::Duplicate { of }, stored]);
}

#[tokio::test]
async fn a_payload_of_a_megabyte_arrives_whole() {
    let stage = Stage::new(Replies::new().rows("enqueue", vec![stored(0)])).await;
    let payload = format!("\"{}\"", "Zoë 🔑 ".repeat(100_000));
    assert!(payload.len() > 1_000_000);
    let large = NewJob { payload: payload.clone(), ..job(1) };
    enqueue(&stage, vec![large]).await.expect("it is stored");
    assert_eq!(json(&stage.sent(0)[0])[0]["b"], payload);
}

#[tokio::test]
async fn a_key_whose_holder_has_just_finished_is_tried_again() {
    let replies = Replies::new()
        .rows("enqueue", vec![stored(0), [int(1), int(0), NULL]])
        .rows("enqueue", vec![stored(0), stored(1)]);
    let stage = Stage::new(replies).await;
    let outcomes = enqueue(&stage, vec![job(1), job(2)]).await.expect("they are stored");
    assert_eq!(outcomes, [EnqueueOutcome::Stored; 2]);
    assert_eq!(stage.names(), ["enqueue", "enqueue"]);
    assert_eq!(stage.sent(0), stage.sent(1), "the whole call, which recognises itself");
}

#[tokio::test]
async fn an_answer_that_stays_incomplete_is_transient_and_ends() {
    let stage = Stage::new(Replies::nothing_found()).await;
    let error = enqueue(&stage, vec![job(1)]).await.expect_err("no outcome");
    assert!(error.is_transient() && error.to_string().contains("idempotency key"), "{error}");
    assert_eq!(stage.names().len(), 20);
}

#[tokio::test]
async fn nothing_to_enqueue_is_no_statement() {
    let stage = Stage::new(Replies::new()).await;
    assert_eq!(enqueue(&stage, vec![]).await.expect("nothing"), []);
    assert!(stage.names().is_empty());
}

#[tokio::test]
async fn a_due_time_that_ends_after_the_year_9999_is_refused_before_it_is_sent() {
    let stage = Stage::new(Replies::new()).await;
    for ms in [253_402_300_799_999, i64::MAX] {
        let late = NewJob { due: Due::At(Timestamp::from_unix_ms(ms)), ..job(1) };
        let error = enqueue(&stage, vec![late]).await.expect_err("no such datetime2");
        assert!(error.is_invalid_input() && error.to_string().contains("datetime2"), "{error}");
    }
    assert!(stage.names().is_empty());
}

#[tokio::test]
async fn every_due_time_travels_as_a_datetime2() {
    for (ms, sent) in [
        // Long past means now, whatever the year.
        (i64::MIN, "0001-01-01T00:00:00.000"),
        (-62_135_596_800_001, "0001-01-01T00:00:00.000"),
        (-1, "1969-12-31T23:59:59.999"),
        (1_772_366_400_000, "2026-03-01T12:00:00.000"),
        // A day, its maximum age, before the last moment.
        (253_402_214_399_999, "9999-12-30T23:59:59.999"),
    ] {
        let stage = Stage::new(Replies::new().rows("enqueue", vec![stored(0)])).await;
        let timed = NewJob { due: Due::At(Timestamp::from_unix_ms(ms)), ..job(1) };
        enqueue(&stage, vec![timed]).await.expect("it is stored");
        assert_eq!(json(&stage.sent(0)[0])[0]["at"], sent);
    }
}

#[tokio::test]
async fn a_stored_job_wakes_this_process() {
    let stage = Stage::new(Replies::new().rows("enqueue", vec![stored(0)])).await;
    let arrivals = stage.storage.work_arrived();
    enqueue(&stage, vec![job(1)]).await.expect("it is stored");
    assert!(arrivals.has_changed().expect("the storage lives"));
}
