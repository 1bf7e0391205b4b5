//! Heartbeats.

use chokaq::{
    model::{Beat, BeatOutcome, Lease},
    storage::WorkerStorage,
};

use crate::{
    answers::Cell,
    storage::stage::{Replies, Stage, int, json, leases},
    within,
};

const BEAT: &str = "keep_alive";

fn beats(leases: Vec<Lease>) -> Vec<Beat> {
    leases.into_iter().map(|lease| Beat { lease, progress: None }).collect()
}

async fn keep_alive(stage: &Stage, beats: Vec<Beat>) -> Vec<BeatOutcome> {
    within(stage.storage.keep_alive(beats)).await.expect("an answer")
}

/// The row, whether it was renewed, and whether its cancellation was asked.
fn alive(seq: i64, renewed: i64, cancel: i64) -> [Cell; 3] {
    [int(seq), int(renewed), int(cancel)]
}

#[tokio::test]
async fn a_beat_goes_on_a_connection_of_its_own_with_progress_where_there_is_some() {
    let rows = vec![alive(3, 1, 0), alive(1, 1, 1)];
    let stage = Stage::new(Replies::new().rows(BEAT, rows)).await;
    let mut beats = beats(leases(1..=3).await);
    beats[1].progress = Some((0.5, "hälfte 🏃".to_owned()));
    let outcomes = keep_alive(&stage, beats).await;
    assert_eq!(
        outcomes,
        [BeatOutcome::CancelRequested, BeatOutcome::LeaseLost, BeatOutcome::Alive]
    );
    assert_eq!(
        stage.only(BEAT, "heartbeat"),
        [
            "@worker nvarchar(255) = wörker 🔑",
            concat!(
                r#"@items nvarchar(max) = [{"s":1,"l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0001"},"#,
                r#"{"s":2,"l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0002","p":0.5,"n":"hälfte 🏃"},"#,
                r#"{"s":3,"l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0003"}]"#
            ),
        ]
    );
}

#[tokio::test]
async fn a_row_that_was_locked_beats_again_alone() {
    let replies = Replies::new()
        .rows(BEAT, vec![alive(1, 1, 0), alive(2, 0, 0), alive(3, 0, 1)])
        .rows(BEAT, vec![alive(2, 1, 1)]);
    let stage = Stage::new(replies).await;
    let outcomes = keep_alive(&stage, beats(leases(1..=3).await)).await;
    assert_eq!(
        outcomes,
        [BeatOutcome::Alive, BeatOutcome::CancelRequested, BeatOutcome::LeaseLost],
        "what the last look said"
    );
    assert_eq!(stage.names(), [BEAT, BEAT]);
    let again = json(&stage.sent(1)[1]);
    assert_eq!((&again[0]["s"], &again[1]["s"], &again[2]), (&2.into(), &3.into(), &().into()));
}

#[tokio::test]
async fn a_row_that_stays_locked_is_alive_still() {
    let locked = || vec![alive(1, 0, 0)];
    let replies = Replies::new().rows(BEAT, locked()).rows(BEAT, locked()).rows(BEAT, locked());
    let stage = Stage::new(replies).await;
    let outcomes = keep_alive(&stage, beats(leases(1..=1).await)).await;
    assert_eq!((outcomes, stage.names().len()), (vec![BeatOutcome::Alive], 3));
}

#[tokio::test]
async fn nothing_that_runs_is_no_statement() {
    let stage = Stage::new(Replies::new()).await;
    assert!(keep_alive(&stage, vec![]).await.is_empty());
    assert!(stage.names().is_empty());
}
