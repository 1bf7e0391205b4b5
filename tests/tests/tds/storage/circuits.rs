//! Circuit breakers: told and read.

use std::time::Duration;

use chokaq::{
    Timestamp,
    model::{CircuitReport, CircuitState, WorkerId},
    storage::{OperatorStorage, WorkerStorage},
};

use crate::{
    answers::text,
    storage::stage::{Replies, Stage, WORKER, int, json},
    within,
};

pub(crate) fn open_circuit() -> CircuitReport {
    CircuitReport {
        job_type: "sénd 🔌".to_owned(),
        state: CircuitState::Open,
        failures: 5,
        error: "503 \"später\"".to_owned(),
        open_for: Duration::from_millis(61_900),
        retry_in: Duration::from_millis(29_250),
    }
}

#[tokio::test]
async fn a_workers_circuits_are_one_statement_in_durations() {
    let stage = Stage::new(Replies::nothing_found()).await;
    let circuits = vec![open_circuit()];
    within(stage.storage.report_circuits(WorkerId::new(WORKER), circuits)).await.expect("told");
    within(stage.storage.report_circuits(WorkerId::new(WORKER), vec![])).await.expect("told");
    assert_eq!(stage.names(), ["report_circuits", "report_circuits"]);
    let [worker, items] = &stage.sent(0)[..] else { panic!("two parameters") };
    assert_eq!(*worker, format!("@worker nvarchar(255) = {WORKER}"));
    assert_eq!(
        json(items),
        serde_json::json!([
            {"y": "sénd 🔌", "st": 1, "f": 5, "e": "503 \"später\"", "os": 61, "rs": 29, "rm": 250}
        ])
    );
    assert_eq!(stage.sent(1)[1], "@items nvarchar(max) = []");
}

#[tokio::test]
async fn circuits_are_read_with_their_times_and_a_state_of_a_later_release_is_open() {
    const MS: i64 = 1_772_366_400_250;
    let row = |state| {
        [
            text("send"),
            text("w1"),
            int(state),
            int(5),
            text("503"),
            int(MS),
            int(MS + 1),
            int(MS + 2),
        ]
    };
    let replies = Replies::new().rows("get_circuits", vec![row(1), row(2), row(3)]);
    let stage = Stage::new(replies).await;
    let found = within(stage.storage.get_circuits()).await.expect("three");
    let states: Vec<_> = found.iter().map(|circuit| circuit.state).collect();
    assert_eq!(states, [CircuitState::Open, CircuitState::HalfOpen, CircuitState::Open]);
    let first = &found[0];
    assert_eq!((&*first.job_type, &*first.worker, first.failures), ("send", "w1", 5));
    assert_eq!(first.error, "503");
    let times = [first.opened_at, first.retry_at, first.seen_at].map(Timestamp::as_unix_ms);
    assert_eq!(times, [MS, MS + 1, MS + 2]);
    assert_eq!(stage.sent(0), ["@fresh_s int = 120"]);
}
