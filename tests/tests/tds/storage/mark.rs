//! The start of jobs.

use chokaq::{
    Timestamp,
    model::{Lease, MarkOutcome},
    storage::WorkerStorage,
};

use crate::{
    answers::Cell,
    storage::stage::{Replies, Stage, int, leases, leases_of},
    within,
};

const MARK: &str = "mark_as_processing";
const STARTED_MS: i64 = 1_772_366_400_250;

fn row(seq: i64, attempt: i64) -> [Cell; 3] {
    [int(seq), int(attempt), int(STARTED_MS)]
}

fn started(attempt: u32) -> MarkOutcome {
    MarkOutcome::Started { attempt, started_at: Timestamp::from_unix_ms(STARTED_MS) }
}

async fn mark(stage: &Stage, leases: Vec<Lease>) -> Vec<MarkOutcome> {
    within(stage.storage.mark_as_processing(leases)).await.expect("an answer")
}

#[tokio::test]
async fn a_mark_names_rows_and_fences_and_rows_come_back_in_its_order() {
    let stage = Stage::new(Replies::new().rows(MARK, vec![row(2, 7), row(1, 1)])).await;
    assert_eq!(mark(&stage, leases(1..=2).await).await, [started(1), started(7)]);
    assert_eq!(
        stage.only(MARK, "worker"),
        [
            "@worker nvarchar(255) = wörker 🔑",
            concat!(
                r#"@items nvarchar(max) = [{"s":1,"l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0001"},"#,
                r#"{"s":2,"l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0002"}]"#
            ),
        ]
    );
}

#[tokio::test]
async fn rows_that_did_not_change_are_looked_for_and_lost_only_where_that_finds_nothing() {
    let replies = Replies::new().rows(MARK, vec![row(2, 1)]).rows("find_marked", vec![row(3, 4)]);
    let stage = Stage::new(replies).await;
    let outcomes = mark(&stage, leases(1..=3).await).await;
    assert_eq!(outcomes, [MarkOutcome::LeaseLost, started(1), started(4)]);
    assert_eq!(stage.names(), [MARK, "find_marked"]);
    assert_eq!(
        stage.sent(1),
        [
            "@worker nvarchar(255) = wörker 🔑",
            concat!(
                r#"@items nvarchar(max) = [{"s":1,"l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0001"},"#,
                r#"{"s":3,"l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0003"}]"#
            ),
        ],
        "those that are missing, and no other"
    );
}

#[tokio::test]
async fn leases_of_two_workers_go_apart_and_answer_together() {
    let (mut batch, others) = (leases(1..=2).await, leases_of("other", 3..=3).await);
    batch.splice(1..1, others);
    let replies = Replies::new().rows(MARK, vec![row(2, 2), row(1, 1)]).rows(MARK, vec![row(3, 3)]);
    let stage = Stage::new(replies).await;
    assert_eq!(mark(&stage, batch).await, [started(1), started(3), started(2)]);
    let workers: Vec<_> = (0..2).map(|index| stage.sent(index).remove(0)).collect();
    assert_eq!(workers, ["@worker nvarchar(255) = wörker 🔑", "@worker nvarchar(255) = other"]);
}

#[tokio::test]
async fn an_empty_batch_is_no_statement() {
    let stage = Stage::new(Replies::new()).await;
    assert!(mark(&stage, vec![]).await.is_empty());
    assert!(stage.names().is_empty());
}
