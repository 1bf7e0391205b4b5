//! What becomes of jobs whose worker died.

use std::time::Duration;

use chokaq::{
    FailureReason,
    model::{Zombie, ZombieScan},
    storage::WorkerStorage,
};

use crate::{
    answers::{Cell, text},
    storage::{
        columns::empty,
        stage::{NULL, Replies, Stage, int, job_cell, job_id},
    },
    within,
};

const SCAN: ZombieScan = ZombieScan {
    lease: Duration::from_millis(120_250),
    suspicion: Duration::from_secs(20),
    batch: 100,
};

async fn scan(replies: Replies) -> (Stage, chokaq::Result<Vec<Zombie>>) {
    let stage = Stage::new(replies).await;
    let zombies = within(stage.storage.archive_zombies(SCAN)).await;
    (stage, zombies)
}

fn gone(number: i64, reason: &str, is_limited: i64) -> [Cell; 6] {
    let (id, queue, key) = (job_cell(number), text("mail"), text("send"));
    [id, queue, key, text("dead 🔑"), text(reason), int(is_limited)]
}

#[tokio::test]
async fn abandoned_rows_are_counted_and_wake_this_process() {
    for (row, expected) in [(vec![[int(7)]], 7), (vec![[int(0)]], 0), (vec![], 0)] {
        let stage = Stage::new(Replies::new().rows("recover_abandoned", row)).await;
        let arrivals = stage.storage.work_arrived();
        let recovered = stage.storage.recover_abandoned(Duration::from_millis(600_250), 100);
        assert_eq!(within(recovered).await.expect("an answer"), expected);
        assert_eq!(arrivals.has_changed().expect("the storage lives"), expected > 0);
        assert_eq!(
            stage.only("recover_abandoned", "maintenance"),
            ["@limit_ms bigint = 600250", "@batch int = 100"]
        );
    }
}

#[tokio::test]
async fn a_scan_retries_then_buries_then_notes() {
    let (stage, zombies) = scan(Replies::nothing_found()).await;
    assert_eq!(zombies.expect("an answer"), []);
    assert_eq!(stage.names(), ["retry_zombies", "archive_zombies", "note_suspects"]);
    let limits = ["@lease_ms bigint = 120250", "@suspicion_ms bigint = 20000", "@batch int = 100"];
    assert_eq!(stage.sent(0), limits);
    assert_eq!(stage.sent(1), limits);
    assert_eq!(stage.sent(2), ["@lease_ms bigint = 120250"]);
    let programs: Vec<_> = stage.server.statements().into_iter().map(|r| r.program).collect();
    assert_eq!(programs, ["chokaq maintenance"; 3]);
}

#[tokio::test]
async fn a_scan_tells_what_runs_again_from_what_is_dead() {
    let replies = Replies::new()
        .rows("retry_zombies", vec![[job_cell(1), text("prüfen 🔎"), text("check"), NULL]])
        .rows("archive_zombies", vec![gone(2, "Zombie", 0), gone(3, "Cancelled", 0)])
        .rows("note_suspects", vec![[int(5)]]);
    let stage = Stage::new(replies).await;
    let arrivals = stage.storage.work_arrived();
    let zombies = within(stage.storage.archive_zombies(SCAN)).await.expect("an answer");
    let dead = |number, reason| Zombie {
        job: job_id(number),
        queue: "mail".to_owned(),
        job_type: "send".to_owned(),
        worker: Some("dead 🔑".to_owned()),
        reason: Some(reason),
    };
    let again = Zombie {
        job: job_id(1),
        queue: "prüfen 🔎".to_owned(),
        job_type: "check".to_owned(),
        worker: None,
        reason: None,
    };
    assert_eq!(zombies, [again, dead(2, FailureReason::Zombie), dead(3, FailureReason::Cancelled)]);
    assert!(arrivals.has_changed().expect("one of them may be claimed again"));
}

#[tokio::test]
async fn a_burial_wakes_this_process_where_it_made_room() {
    for (is_limited, wakes) in [(0, false), (1, true)] {
        let rows = vec![gone(1, "Zombie", is_limited)];
        let stage = Stage::new(Replies::nothing_found().rows("archive_zombies", rows)).await;
        let arrivals = stage.storage.work_arrived();
        within(stage.storage.archive_zombies(SCAN)).await.expect("an answer");
        assert_eq!(arrivals.has_changed().expect("the storage lives"), wakes);
    }
}

#[tokio::test]
async fn a_reason_that_this_program_does_not_know_is_an_error_that_shows_it() {
    let replies = Replies::new()
        .to("retry_zombies", empty("retry_zombies"))
        .rows("archive_zombies", vec![gone(2, "Böse", 0)])
        .rows("note_suspects", vec![[int(0)]]);
    let (_, zombies) = scan(replies).await;
    let error = zombies.expect_err("no such reason").to_string();
    assert!(error.contains("archive_zombies") && error.contains("\"Böse\""), "{error}");
}
