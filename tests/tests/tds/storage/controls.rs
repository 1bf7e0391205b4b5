//! What a worker asks beside its jobs.

use std::time::Duration;

use chokaq::{model::WorkerId, storage::WorkerStorage};

use crate::{
    answers::text,
    storage::{
        columns::{empty, set},
        stage::{NULL, Replies, Stage, WORKER, int, job_cell, job_id},
    },
    within,
};

fn queues(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn a_control_read_brings_stopped_queues_and_asked_cancels() {
    let answer = vec![
        set(
            "read_control",
            0,
            vec![
                [text("prüfen 🔎"), int(1), NULL],
                [text("mail"), int(1), int(45_000)],
                [text("long"), int(0), int(3_600_000)],
            ],
        ),
        set("read_control", 1, vec![[job_cell(2)], [job_cell(1)]]),
    ];
    let stage = Stage::new(Replies::new().to("read_control", answer)).await;
    let asked =
        stage.storage.read_control(WorkerId::new(WORKER), Some(queues(&["mail", "prüfen 🔎"])));
    let control = within(asked).await.expect("an answer");
    assert_eq!(control.stopped_queues, ["prüfen 🔎", "mail"]);
    let leases = [("mail".to_owned(), 45), ("long".to_owned(), 3_600)];
    assert_eq!(control.queue_leases, leases.map(|(q, s)| (q, Duration::from_secs(s))));
    assert_eq!(control.cancels, [job_id(2), job_id(1)]);
    assert_eq!(
        stage.only("read_control", "worker"),
        [r#"@queues nvarchar(max) = ["mail","prüfen 🔎"]"#, "@worker nvarchar(255) = wörker 🔑",]
    );
}

#[tokio::test]
async fn a_control_read_with_nothing_to_say_says_nothing() {
    let stage = Stage::new(Replies::nothing_found()).await;
    let asked = stage.storage.read_control(WorkerId::new(WORKER), None);
    let control = within(asked).await.expect("an answer");
    assert!(control.stopped_queues.is_empty() && control.cancels.is_empty());
    assert!(control.queue_leases.is_empty());
    assert_eq!(stage.sent(0)[0], "@queues nvarchar(max) = NULL");
}

#[tokio::test]
async fn a_control_read_with_one_set_is_an_error_that_names_the_statement() {
    let mut answer = empty("read_control");
    answer.pop();
    let stage = Stage::new(Replies::new().to("read_control", answer)).await;
    let asked = stage.storage.read_control(WorkerId::new(WORKER), None);
    let error = within(asked).await.expect_err("one set");
    assert!(!error.is_transient() && error.to_string().contains("read_control"), "{error}");
}

#[tokio::test]
async fn the_horizon_of_the_next_due_time_travels_in_seconds_and_milliseconds() {
    let stage = Stage::new(Replies::nothing_found()).await;
    let horizon = Duration::from_millis(60_250);
    let due = within(stage.storage.next_due(Some(queues(&["mail"])), horizon)).await;
    assert_eq!(due.expect("an answer"), None, "an answer without a row");
    assert_eq!(
        stage.only("next_due", "worker"),
        [r#"@queues nvarchar(max) = ["mail"]"#, "@horizon_s int = 60", "@horizon_ms int = 250"]
    );
}

#[tokio::test]
async fn the_next_due_time_may_be_now_later_or_never() {
    for (cell, expected) in
        [(int(0), Some(0)), (int(61_250), Some(61_250)), (int(-3), Some(0)), (NULL, None)]
    {
        let stage = Stage::new(Replies::new().rows("next_due", vec![[cell]])).await;
        let due = within(stage.storage.next_due(None, Duration::MAX)).await.expect("an answer");
        assert_eq!(due, expected.map(Duration::from_millis));
        assert_eq!(stage.sent(0)[1], "@horizon_s int = 2147483647");
    }
}
