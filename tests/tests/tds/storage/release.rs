//! Fetched rows that go back.

use std::time::Duration;

use chokaq::{
    model::{Lease, Release},
    storage::WorkerStorage,
};

use crate::{
    storage::stage::{Replies, Stage, int, leases},
    within,
};

fn back(lease: Lease) -> Release {
    Release { lease, delay: None, unknown_type: false }
}

async fn release(stage: &Stage, releases: Vec<Release>) -> Vec<bool> {
    within(stage.storage.release(releases)).await.expect("an answer")
}

#[tokio::test]
async fn a_release_says_how_each_row_goes_back() {
    let stage = Stage::new(Replies::new().rows("release", vec![[int(2)], [int(1)]])).await;
    let mut releases: Vec<_> = leases(1..=2).await.into_iter().map(back).collect();
    releases[1].delay = Some(Duration::from_millis(30_001));
    releases[1].unknown_type = true;
    let arrivals = stage.storage.work_arrived();
    assert_eq!(release(&stage, releases).await, [true, true]);
    assert!(arrivals.has_changed().expect("the storage lives"));
    assert_eq!(
        stage.only("release", "worker"),
        [
            "@worker nvarchar(255) = wörker 🔑",
            concat!(
                r#"@items nvarchar(max) = [{"s":1,"l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0001","u":false},"#,
                r#"{"s":2,"l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0002","ds":30,"dm":1,"u":true}]"#
            ),
        ]
    );
}

#[tokio::test]
async fn rows_that_did_not_change_are_looked_for() {
    let replies =
        Replies::new().rows("release", vec![[int(2)]]).rows("find_released", vec![[int(3)]]);
    let stage = Stage::new(replies).await;
    let releases = leases(1..=3).await.into_iter().map(back).collect();
    assert_eq!(release(&stage, releases).await, [false, true, true]);
    assert_eq!(stage.names(), ["release", "find_released"]);
    assert_eq!(
        stage.sent(1),
        [concat!(
            r#"@items nvarchar(max) = [{"s":1,"l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0001"},"#,
            r#"{"s":3,"l":"f0e1d2c3-b4a5-7687-a879-6a5b4c3d0003"}]"#
        )]
    );
}

#[tokio::test]
async fn a_release_that_changed_nothing_wakes_nobody() {
    let stage = Stage::new(Replies::nothing_found()).await;
    let arrivals = stage.storage.work_arrived();
    let releases = leases(1..=1).await.into_iter().map(back).collect();
    assert_eq!(release(&stage, releases).await, [false]);
    assert!(!arrivals.has_changed().expect("the storage lives"));
}

#[tokio::test]
async fn nothing_to_give_back_is_no_statement() {
    let stage = Stage::new(Replies::new()).await;
    assert!(release(&stage, vec![]).await.is_empty());
    assert!(stage.names().is_empty());
}
