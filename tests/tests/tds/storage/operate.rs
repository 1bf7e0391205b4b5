//! What operators change.

use std::time::Duration;

use chokaq::{
    CancelOutcome, JobId, ResurrectOutcome,
    model::{Limits, PayloadEdit, QueueSettings, ResurrectEdits},
    storage::{OperatorStorage, WorkerStorage},
};

use crate::{
    answers::Cell,
    storage::stage::{NULL, Replies, Stage, ended, int, job_cell, job_id},
    within,
};

const REASON: &str = "überflüssig 🗑";

async fn cancel(stage: &Stage, numbers: &[i64]) -> Vec<CancelOutcome> {
    let ids = numbers.iter().map(|number| job_id(*number)).collect();
    within(stage.storage.cancel(ids, REASON.to_owned())).await.expect("an answer")
}

#[tokio::test]
async fn a_cancel_buries_what_waits_flags_what_runs_and_recognises_its_first_run() {
    let replies = Replies::new()
        .rows("cancel_waiting", vec![ended(3)])
        .rows("cancel_running", vec![[job_cell(1), int(1)]])
        .rows("find_cancelled", vec![[job_cell(4)]]);
    let stage = Stage::new(replies).await;
    assert_eq!(
        cancel(&stage, &[1, 2, 3, 4]).await,
        [
            CancelOutcome::Requested,
            CancelOutcome::NotActive,
            CancelOutcome::Cancelled,
            CancelOutcome::Cancelled
        ]
    );
    assert_eq!(stage.names(), ["cancel_waiting", "cancel_running", "find_cancelled"]);
    let ids = |last: &[u8]| {
        let id = |n: &u8| format!("\"00112233-4455-6677-8899-aabbccdd000{n}\"");
        let ids: Vec<_> = last.iter().map(id).collect();
        format!("@ids nvarchar(max) = [{}]", ids.join(","))
    };
    let reason = "@reason nvarchar(max) = überflüssig 🗑".to_owned();
    assert_eq!(stage.sent(0), [ids(&[1, 2, 3, 4]), reason.clone()]);
    assert_eq!(stage.sent(1), [ids(&[1, 2, 4])]);
    assert_eq!(stage.sent(2), [ids(&[2, 4]), reason]);
    let programs: Vec<_> = stage.server.statements().into_iter().map(|r| r.program).collect();
    assert_eq!(programs, ["chokaq page"; 3]);
}

#[tokio::test]
async fn a_cancel_whose_jobs_all_wait_is_one_statement() {
    let stage = Stage::new(Replies::new().rows("cancel_waiting", vec![ended(2), ended(1)])).await;
    assert_eq!(cancel(&stage, &[1, 2]).await, [CancelOutcome::Cancelled; 2]);
    assert_eq!(stage.names(), ["cancel_waiting"]);
}

#[tokio::test]
async fn a_cancel_wakes_this_process_where_it_may_have_made_room() {
    for (is_limited, wakes) in [(0, false), (1, true)] {
        let rows = vec![[job_cell(1), int(is_limited)]];
        let stage = Stage::new(Replies::new().rows("cancel_waiting", rows)).await;
        let arrivals = stage.storage.work_arrived();
        cancel(&stage, &[1]).await;
        assert_eq!(arrivals.has_changed().expect("the storage lives"), wakes);
    }
}

#[tokio::test]
async fn a_job_that_went_from_running_to_waiting_meanwhile_is_cancelled_again() {
    let replies = Replies::new()
        .rows("cancel_waiting", Vec::<[Cell; 2]>::new())
        .rows("cancel_running", vec![[job_cell(1), int(0)], [job_cell(2), int(1)]])
        .rows("cancel_waiting", vec![ended(1)]);
    let stage = Stage::new(replies).await;
    assert_eq!(cancel(&stage, &[1, 2]).await, [CancelOutcome::Cancelled, CancelOutcome::Requested]);
    assert_eq!(stage.names(), ["cancel_waiting", "cancel_running", "cancel_waiting"]);
    assert!(stage.sent(2)[0].ends_with(r#"["00112233-4455-6677-8899-aabbccdd0001"]"#));
}

async fn resurrect(
    stage: &Stage,
    numbers: &[i64],
    edits: ResurrectEdits,
) -> chokaq::Result<Vec<ResurrectOutcome>> {
    let ids = numbers.iter().map(|number| job_id(*number)).collect::<Vec<JobId>>();
    within(stage.storage.resurrect(ids, edits)).await
}

/// Whether it was resurrected, whether it is dead still, and who holds its key.
fn raised(number: i64, resurrected: i64, dead: i64, holder: Cell) -> [Cell; 4] {
    [job_cell(number), int(resurrected), int(dead), holder]
}

#[tokio::test]
async fn a_resurrect_keeps_what_is_not_edited() {
    let stage = Stage::new(Replies::nothing_found()).await;
    let outcomes = resurrect(&stage, &[1, 2], ResurrectEdits::default()).await.expect("an answer");
    assert_eq!(outcomes, [ResurrectOutcome::NotDead; 2], "no row for either");
    assert_eq!(
        stage.only("resurrect", "page"),
        [
            r#"@ids nvarchar(max) = ["00112233-4455-6677-8899-aabbccdd0001","00112233-4455-6677-8899-aabbccdd0002"]"#,
            "@queue nvarchar(255) = NULL",
            "@priority int = NULL",
            "@payload nvarchar(max) = NULL",
            "@edits_tags bit = 0",
            "@tags nvarchar(1000) = NULL",
        ]
    );
}

#[tokio::test]
async fn edits_travel_and_removed_tags_are_told_from_kept_ones() {
    for (tags, sent) in [(Some(r#"["🏷"]"#), r#"["🏷"]"#), (None, "NULL")] {
        let stage = Stage::new(Replies::new().rows("resurrect", vec![raised(1, 1, 0, NULL)])).await;
        let limits = Limits::default();
        let edits = ResurrectEdits {
            payload: Some(PayloadEdit::new(&limits, r#"{"gruß":"🔑"}"#).expect("JSON")),
            tags: Some(tags.map(str::to_owned)),
            priority: Some(-1),
            queue: Some("prüfen".to_owned()),
        };
        let arrivals = stage.storage.work_arrived();
        let outcomes = resurrect(&stage, &[1], edits).await.expect("an answer");
        assert_eq!(outcomes, [ResurrectOutcome::Resurrected]);
        assert!(arrivals.has_changed().expect("it may be claimed"));
        assert_eq!(
            stage.sent(0)[1..],
            [
                "@queue nvarchar(255) = prüfen",
                "@priority int = -1",
                r#"@payload nvarchar(max) = {"gruß":"🔑"}"#,
                "@edits_tags bit = 1",
                &format!("@tags nvarchar(1000) = {sent}"),
            ]
        );
    }
}

#[tokio::test]
async fn a_resurrect_answers_each_id_and_runs_again_where_a_key_is_on_the_move() {
    let moving = vec![raised(3, 1, 0, NULL), raised(1, 0, 1, job_cell(9)), raised(2, 0, 1, NULL)];
    let settled = vec![
        raised(2, 0, 1, job_cell(3)),
        raised(3, 1, 0, NULL),
        raised(1, 0, 1, job_cell(9)),
        raised(4, 0, 0, NULL),
    ];
    let replies = Replies::new().rows("resurrect", moving).rows("resurrect", settled);
    let stage = Stage::new(replies).await;
    let outcomes = resurrect(&stage, &[1, 2, 3, 4], ResurrectEdits::default()).await;
    assert_eq!(
        outcomes.expect("an answer"),
        [
            ResurrectOutcome::KeyHeld { by: job_id(9) },
            ResurrectOutcome::KeyHeld { by: job_id(3) },
            ResurrectOutcome::Resurrected,
            ResurrectOutcome::NotDead,
        ]
    );
    assert_eq!(stage.sent(0), stage.sent(1));
}

#[tokio::test]
async fn a_key_that_stays_on_the_move_is_transient_and_ends() {
    let mut replies = Replies::new();
    for _ in 0..20 {
        replies = replies.rows("resurrect", vec![raised(1, 0, 1, NULL)]);
    }
    let stage = Stage::new(replies).await;
    let error = resurrect(&stage, &[1], ResurrectEdits::default()).await.expect_err("it moves");
    assert!(error.is_transient() && error.to_string().contains("idempotency key"), "{error}");
    assert_eq!(stage.names().len(), 20);
}

#[tokio::test]
async fn settings_that_are_not_named_are_kept_and_none_is_a_value() {
    let all = QueueSettings {
        paused: Some(true),
        active: Some(false),
        max_workers: Some(Some(u32::MAX)),
        zombie_timeout: Some(Some(Duration::from_millis(1_500))),
    };
    let none = QueueSettings {
        max_workers: Some(None),
        zombie_timeout: Some(None),
        ..QueueSettings::default()
    };
    let cases = [
        (QueueSettings::default(), ["NULL", "NULL", "0", "NULL", "0", "NULL"]),
        (none, ["NULL", "NULL", "1", "NULL", "1", "NULL"]),
        (all, ["1", "0", "1", "2147483647", "1", "1500"]),
    ];
    for (change, values) in cases {
        let stage = Stage::new(Replies::nothing_found()).await;
        let arrivals = stage.storage.work_arrived();
        within(stage.storage.set_queue("prüfen 🔎".to_owned(), change)).await.expect("an answer");
        assert!(arrivals.has_changed().expect("it may have been resumed"));
        let names = [
            "@paused bit",
            "@active bit",
            "@sets_max_workers bit",
            "@max_workers int",
            "@sets_zombie_timeout bit",
            "@zombie_timeout_ms bigint",
        ];
        let pairs = names.iter().zip(values).map(|(name, value)| format!("{name} = {value}"));
        let mut expected = vec!["@queue nvarchar(255) = prüfen 🔎".to_owned()];
        expected.extend(pairs);
        assert_eq!(stage.only("set_queue", "page"), expected);
    }
}
