//! migrate: every migration once, and nothing to do on a schema that is current.

use crate::prelude::*;

claims!(
    migrating_again_applies_nothing_and_changes_nothing,
    the_plan_of_a_current_schema_runs_nothing,
    a_second_process_finds_the_schema_and_the_data,
    the_description_names_the_database,
);

async fn migrating_again_applies_nothing_and_changes_nothing(db: &Db) {
    db.buried(keyed("k")).await;
    db.enqueue(job()).await;
    let call = async { db.storage.migrate().await.expect("the storage answers") };
    let applied = db.changes_nothing("a second migration", call).await;
    assert!(applied.is_empty(), "{applied:?}");
}

async fn the_plan_of_a_current_schema_runs_nothing(db: &Db) {
    let plan = db.storage.migration_plan().await.expect("the storage answers");
    let statements: Vec<_> =
        plan.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("--")).collect();
    assert!(statements.is_empty(), "{plan}");
}

async fn a_second_process_finds_the_schema_and_the_data(db: &Db) {
    let id = db.enqueue(job()).await;
    let other = db.reopen().await;
    let applied = other.storage.migrate().await.expect("the storage answers");
    assert!(applied.is_empty(), "{applied:?}");
    assert_eq!(other.state(id).await, PENDING);
}

async fn the_description_names_the_database(db: &Db) {
    let other = db.reopen().await;
    assert!(!db.storage.describe().is_empty());
    assert_eq!(db.storage.describe(), other.storage.describe());
}
