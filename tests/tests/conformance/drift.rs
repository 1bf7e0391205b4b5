//! `check_schema`: a schema as the migrations make it is no difference, what was changed by hand is told.

use crate::prelude::*;

claims!(
    a_fresh_schema_has_no_drift,
    jobs_are_no_drift,
    a_dropped_index_is_told_with_the_statement_that_makes_it,
    an_added_column_is_told_and_called_harmless,
    a_changed_column_is_told_with_both_definitions,
    a_missing_column_is_told,
);

async fn a_fresh_schema_has_no_drift(db: &Db) {
    assert_eq!(db.drift().await, [""; 0]);
}

async fn jobs_are_no_drift(db: &Db) {
    db.buried(keyed("k")).await;
    db.enqueue(job()).await;
    let call = async { db.drift().await };
    assert_eq!(db.changes_nothing("a check of the schema", call).await, [""; 0]);
}

async fn a_dropped_index_is_told_with_the_statement_that_makes_it(db: &Db) {
    db.drop_index("JobsHot", "IX_JobsHot_Delayed").await;
    let drift = db.drift().await;
    if db.is_the_engines("the index ") {
        return;
    }
    let [told] = drift.as_slice() else { panic!("{drift:#?}") };
    assert!(told.starts_with("the index IX_JobsHot_Delayed of JobsHot is missing"), "{told}");
    assert!(told.contains("INDEX IX_JobsHot_Delayed ON "), "{told}");
    assert!(told.contains("(ScheduledAtUtc, Queue) WHERE Status = 0 AND IsReady = 0"), "{told}");
}

async fn an_added_column_is_told_and_called_harmless(db: &Db) {
    db.change_schema("ALTER TABLE [chokaq].JobsDLQ ADD Ticket int NULL").await;
    let drift = db.drift().await;
    let [told] = drift.as_slice() else { panic!("{drift:#?}") };
    assert!(
        told.to_lowercase().starts_with("the column ticket of jobsdlq is additional (int"),
        "{told}"
    );
    assert!(told.contains("harmless"), "{told}");
    // And it is: jobs go through the table as before.
    let id = db.buried(job()).await;
    assert_eq!(db.resurrect(id).await, ResurrectOutcome::Resurrected);
}

async fn a_changed_column_is_told_with_both_definitions(db: &Db) {
    db.change_schema("ALTER TABLE [chokaq].JobsHot DROP COLUMN ProgressNote").await;
    db.change_schema("ALTER TABLE [chokaq].JobsHot ADD ProgressNote int NULL").await;
    let drift = db.drift().await;
    let [told] = drift.as_slice() else { panic!("{drift:#?}") };
    let told = told.to_lowercase();
    assert!(told.starts_with("the column progressnote of jobshot is int"), "{told}");
    assert!(told.contains(" null, expected is "), "{told}");
}

async fn a_missing_column_is_told(db: &Db) {
    db.change_schema("ALTER TABLE [chokaq].Queues DROP COLUMN MaxWorkers").await;
    let drift = db.drift().await;
    let [told] = drift.as_slice() else { panic!("{drift:#?}") };
    assert!(told.starts_with("the column MaxWorkers of Queues is missing"), "{told}");
    assert!(told.to_lowercase().contains("queues add maxworkers int"), "{told}");
    db.change_schema("ALTER TABLE [chokaq].Queues ADD MaxWorkers int NULL").await;
    assert_eq!(db.drift().await, [""; 0]);
}
