//! Finishes whose statement did not change the row: what the row, or history, says of them.

use chokaq::{
    FailureReason,
    model::{FinishOutcome, Outcome},
};

use crate::{
    answers::{Cell, text},
    storage::{
        columns::empty,
        finalise::{dead, finalise, finishes, retry, snooze, succeeded},
        stage::{NULL, Replies, Stage, buried, ended, int, job_cell},
    },
};

#[tokio::test]
async fn a_refused_retry_is_buried_with_its_error_and_the_row_says_why() {
    let replies = Replies::new()
        .rows("reschedule_for_retry", vec![[job_cell(2)]])
        .rows("move_to_dlq", vec![buried(3, "RetryLifetimeExpired"), buried(1, "Cancelled")]);
    let stage = Stage::new(replies).await;
    let outcomes = finalise(&stage, finishes(vec![retry(), retry(), retry()]).await).await;
    assert_eq!(
        outcomes,
        [FinishOutcome::Cancelled, FinishOutcome::Done, FinishOutcome::LifetimeExpired]
    );
    assert_eq!(stage.names(), ["reschedule_for_retry", "move_to_dlq"]);
    assert_eq!(
        stage.sent(1)[1],
        concat!(
            r#"@items nvarchar(max) = [{"s":1,"l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0001","a":2,"k":"error","#,
            r#""t":"böse \"Welt\""},{"s":3,"l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0003","a":2,"k":"error","#,
            r#""t":"böse \"Welt\""}]"#
        ),
        "those that were refused, without a reason"
    );
}

#[tokio::test]
async fn a_refused_snooze_is_buried_as_cancelled() {
    let replies = Replies::new()
        .to("snooze", empty("snooze"))
        .rows("move_to_dlq", vec![buried(1, "Cancelled")]);
    let stage = Stage::new(replies).await;
    let outcomes = finalise(&stage, finishes(vec![snooze()]).await).await;
    assert_eq!(outcomes, [FinishOutcome::Cancelled]);
    assert_eq!(
        stage.sent(1)[1],
        concat!(
            r#"@items nvarchar(max) = [{"s":1,"l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0001","k":"cancelled","#,
            r#""t":"cancelled while it ran; it asked to be run again later"}]"#
        )
    );
}

#[tokio::test]
async fn only_the_unfinished_of_a_batch_are_looked_for() {
    let replies = Replies::new()
        .rows("archive_succeeded", vec![ended(2)])
        .rows("find_finished", vec![[job_cell(1), int(0), int(1), NULL]]);
    let stage = Stage::new(replies).await;
    let outcomes = finalise(&stage, finishes(vec![succeeded(), succeeded()]).await).await;
    assert_eq!(outcomes, [FinishOutcome::Done; 2]);
    assert_eq!(
        stage.sent(1),
        [concat!(
            r#"@items nvarchar(max) = [{"i":"00112233-4455-6677-8899-aabbccdd0001","#,
            r#""l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0001"}]"#
        )]
    );
}

/// Where a row with the lease stands.
fn found(is_pending: i64, is_archived: i64, dead: Cell) -> [Cell; 4] {
    [job_cell(1), int(is_pending), int(is_archived), dead]
}

/// What becomes of a finish that changes nothing and whose job is found like this.
async fn outcome(asked: Outcome, found: [Cell; 4]) -> FinishOutcome {
    let stage = Stage::new(Replies::nothing_found().rows("find_finished", vec![found])).await;
    let outcomes = finalise(&stage, finishes(vec![asked]).await).await;
    assert_eq!(outcomes.len(), 1);
    outcomes[0]
}

#[tokio::test]
async fn a_repeat_recognises_only_what_its_own_first_run_can_have_left() {
    use FinishOutcome::{Cancelled, Done, LeaseLost, LifetimeExpired};
    let pending = || found(1, 0, NULL);
    let archived = || found(0, 1, NULL);
    let nowhere = || found(0, 0, NULL);
    let dead_as = |reason| found(0, 0, text(reason));
    let fatal = || dead(FailureReason::FatalError);
    let cases = [
        (succeeded(), archived(), Done),
        (succeeded(), nowhere(), LeaseLost),
        (succeeded(), pending(), LeaseLost),
        (succeeded(), dead_as("Zombie"), LeaseLost),
        (fatal(), dead_as("FatalError"), Done),
        (fatal(), dead_as("Zombie"), LeaseLost),
        (fatal(), dead_as("OfALaterRelease"), LeaseLost),
        (fatal(), archived(), LeaseLost),
        (retry(), pending(), Done),
        (retry(), dead_as("Cancelled"), Cancelled),
        (retry(), dead_as("RetryLifetimeExpired"), LifetimeExpired),
        (retry(), dead_as("Zombie"), LeaseLost),
        (retry(), nowhere(), LeaseLost),
        (snooze(), pending(), Done),
        (snooze(), dead_as("Cancelled"), Cancelled),
        (snooze(), dead_as("RetryLifetimeExpired"), LeaseLost),
        (snooze(), archived(), LeaseLost),
    ];
    for (asked, found, expected) in cases {
        let case = format!("{asked:?} {found:?}");
        assert_eq!(outcome(asked, found).await, expected, "{case}");
    }
}

#[tokio::test]
async fn a_job_that_nothing_knows_is_lost() {
    let stage = Stage::new(Replies::nothing_found()).await;
    let batch = finishes(vec![succeeded(), dead(FailureReason::Rejected), retry(), snooze()]).await;
    assert_eq!(finalise(&stage, batch).await, [FinishOutcome::LeaseLost; 4]);
    assert_eq!(
        stage.names(),
        [
            "archive_succeeded",
            "move_to_dlq",
            "reschedule_for_retry",
            "move_to_dlq",
            "snooze",
            "move_to_dlq",
            "find_finished"
        ]
    );
}
