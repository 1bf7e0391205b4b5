//! The end of attempts: what each kind sends.

use std::time::Duration;

use chokaq::{
    FailureReason,
    model::{AttemptError, Finish, FinishOutcome, Outcome},
    storage::WorkerStorage,
};

use crate::{
    answers::text,
    storage::{
        columns::{empty, rows},
        stage::{Replies, Stage, buried, ended, int, job_cell, json, leases},
    },
    within,
};

pub(crate) fn succeeded() -> Outcome {
    Outcome::Succeeded { output: None, note: None }
}

pub(crate) fn dead(reason: FailureReason) -> Outcome {
    Outcome::Dead { reason, error: AttemptError::new(4, "fatal", "zu spät 🔥") }
}

pub(crate) fn retry() -> Outcome {
    let error = AttemptError::new(2, "error", "böse \"Welt\"");
    Outcome::Retry { delay: Duration::from_millis(3_250), error }
}

pub(crate) fn snooze() -> Outcome {
    Outcome::Snooze { delay: Duration::from_mins(1) }
}

/// One finish for each outcome; the jobs are numbered from 1.
pub(crate) async fn finishes(outcomes: Vec<Outcome>) -> Vec<Finish> {
    let last = i64::try_from(outcomes.len()).expect("few");
    let finish = |(lease, outcome)| Finish { lease, outcome };
    leases(1..=last).await.into_iter().zip(outcomes).map(finish).collect()
}

pub(crate) async fn finalise(stage: &Stage, batch: Vec<Finish>) -> Vec<FinishOutcome> {
    within(stage.storage.finalise(batch)).await.expect("an answer")
}

#[tokio::test]
async fn each_kind_is_one_statement_in_a_fixed_order_with_what_it_needs() {
    let replies = Replies::new()
        .rows("archive_succeeded", vec![ended(5), ended(4)])
        .rows("move_to_dlq", vec![buried(3, "FatalError")])
        .rows("reschedule_for_retry", vec![[job_cell(2)]])
        .rows("snooze", vec![[job_cell(1)]]);
    let stage = Stage::new(replies).await;
    let full = Outcome::Succeeded {
        output: Some(r#"{"gruß":"🔑"}"#.to_owned()),
        note: Some("zu groß".to_owned()),
    };
    let arrivals = stage.storage.work_arrived();
    let batch =
        finishes(vec![snooze(), retry(), dead(FailureReason::FatalError), full, succeeded()]);
    assert_eq!(finalise(&stage, batch.await).await, [FinishOutcome::Done; 5]);
    assert!(arrivals.has_changed().expect("two of them may be claimed again"));
    let kinds = ["archive_succeeded", "move_to_dlq", "reschedule_for_retry", "snooze"];
    assert_eq!(stage.names(), kinds);
    let items = [
        concat!(
            r#"[{"s":4,"l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0004","o":"{\"gruß\":\"🔑\"}","n":"zu groß"},"#,
            r#"{"s":5,"l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0005"}]"#
        ),
        concat!(
            r#"[{"s":3,"l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0003","r":"FatalError","#,
            r#""a":4,"k":"fatal","t":"zu spät 🔥"}]"#
        ),
        concat!(
            r#"[{"s":2,"l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0002","ds":3,"dm":250,"#,
            r#""a":2,"k":"error","t":"böse \"Welt\""}]"#
        ),
        r#"[{"s":1,"l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0001","ds":60,"dm":0}]"#,
    ];
    for (index, items) in items.iter().enumerate() {
        let expected = [
            "@worker nvarchar(255) = wörker 🔑".to_owned(),
            format!("@items nvarchar(max) = {items}"),
        ];
        assert_eq!(stage.sent(index), expected, "{}", kinds[index]);
    }
}

#[tokio::test]
async fn what_ends_for_good_wakes_nobody() {
    let stage = Stage::new(Replies::new().rows("archive_succeeded", vec![ended(1)])).await;
    let arrivals = stage.storage.work_arrived();
    finalise(&stage, finishes(vec![succeeded()]).await).await;
    assert!(!arrivals.has_changed().expect("the storage lives"));
}

#[tokio::test]
async fn what_ends_in_a_queue_with_a_limit_makes_room_and_wakes_this_process() {
    for (outcome, name, answer) in [
        (succeeded(), "archive_succeeded", rows("archive_succeeded", vec![[job_cell(1), int(1)]])),
        (
            dead(FailureReason::Rejected),
            "move_to_dlq",
            rows("move_to_dlq", vec![[job_cell(1), int(1), text("Rejected")]]),
        ),
        // A cancel overtook it: it is not pending again.
        (
            snooze(),
            "move_to_dlq",
            rows("move_to_dlq", vec![[job_cell(1), int(1), text("Cancelled")]]),
        ),
    ] {
        let stage = Stage::new(Replies::nothing_found().to(name, vec![answer])).await;
        let arrivals = stage.storage.work_arrived();
        finalise(&stage, finishes(vec![outcome]).await).await;
        assert!(arrivals.has_changed().expect("the storage lives"), "{name}");
    }
}

#[tokio::test]
async fn outputs_of_a_megabyte_go_in_calls_of_four() {
    let output = format!("\"{}\"", "é🔑".repeat(166_000));
    let large = || Outcome::Succeeded { output: Some(output.clone()), note: None };
    let replies = Replies::new()
        .rows("archive_succeeded", (1..=4).map(ended).collect())
        .rows("archive_succeeded", (5..=6).map(ended).collect());
    let stage = Stage::new(replies).await;
    let batch = finishes((0..6).map(|_| large()).collect()).await;
    assert_eq!(finalise(&stage, batch).await, [FinishOutcome::Done; 6]);
    for (index, count) in [4, 2].into_iter().enumerate() {
        let items = json(&stage.sent(index)[1]);
        let items = items.as_array().expect("an array");
        assert_eq!(items.len(), count);
        assert!(items.iter().all(|item| item["o"] == output));
    }
}

#[tokio::test]
async fn a_job_that_comes_twice_is_finished_by_its_first_and_lost_to_its_second() {
    let replies = Replies::new()
        .rows("archive_succeeded", vec![ended(1)])
        .to("snooze", empty("snooze"))
        .to("move_to_dlq", empty("move_to_dlq"))
        .to("find_finished", empty("find_finished"));
    let stage = Stage::new(replies).await;
    let mut batch = finishes(vec![succeeded()]).await;
    batch.push(Finish { outcome: snooze(), ..batch[0].clone() });
    assert_eq!(finalise(&stage, batch).await, [FinishOutcome::Done, FinishOutcome::LeaseLost]);
    assert_eq!(stage.names(), ["archive_succeeded", "snooze", "move_to_dlq", "find_finished"]);
}

#[tokio::test]
async fn nothing_to_finish_is_no_statement() {
    let stage = Stage::new(Replies::new()).await;
    assert!(finalise(&stage, vec![]).await.is_empty());
    assert!(stage.names().is_empty());
}
