//! The schema: what brings it about, and what refuses to.

use chokaq::storage::MigrationStorage;

use crate::{
    answers::{Cell, Column, Step, error, one, text},
    requests::{Form, Request},
    server::Script,
    storage::stage::{NULL, Stage, int},
    within,
};

/// The rows of `SchemaMigrations`: version, least level, release.
fn recorded(rows: Vec<[Cell; 3]>) -> Vec<Step> {
    let columns = vec![
        ("Version", Column::Int),
        ("MinBinary", Column::Int),
        ("AppliedBy", Column::NVarChar(255)),
    ];
    vec![Step::Rows(columns, rows.into_iter().map(Vec::from).collect())]
}

/// A server with this answer of `sp_getapplock`, and with these migrations.
async fn stage(lock: Cell, rows: Vec<[Cell; 3]>) -> Stage {
    let script = Script::new(move |request| {
        assert_eq!(request.form, Form::Batch, "a migration is no statement");
        if request.sql.contains("sp_getapplock") {
            return vec![one("", Column::Int, lock.clone())];
        }
        if request.sql.starts_with("IF OBJECT_ID") && request.sql.contains("SELECT Version") {
            return recorded(rows.clone());
        }
        Vec::new()
    });
    Stage::on("schema=ops", script.schema(None, 0)).await
}

fn none() -> Vec<[Cell; 3]> {
    vec![[NULL, NULL, NULL]]
}

/// What the maintenance connections were sent after their settings.
fn batches(stage: &Stage) -> Vec<Request> {
    let mut batches = stage.server.batches();
    batches.retain(|batch| batch.program == "chokaq maintenance" && batch.name() != "session");
    batches
}

#[tokio::test]
async fn migrations_run_under_a_lock_in_one_session_that_is_closed_after_them() {
    let stage = stage(int(0), none()).await;
    let applied = within(stage.storage.migrate()).await.expect("they run");
    assert_eq!(applied, ["0001_three_pillars", "0002_enqueue_procedure", "0003_circuits"]);
    let batches = batches(&stage);
    let parts = [
        "N'chokaq:migrations:ops', @LockMode = N'Exclusive', @LockOwner = N'Session'",
        "SchemaMigrations",
        "SELECT Version",
        "[ops].JobsHot",
        "[ops].Enqueue",
        "[ops].Circuits",
    ];
    assert_eq!(batches.len(), parts.len(), "{batches:?}");
    for (batch, part) in batches.iter().zip(parts) {
        assert!(batch.sql.contains(part), "{part} in {}", batch.sql);
        assert!(!batch.sql.contains("[chokaq]") && batch.connection == batches[0].connection);
    }
    for script in batches[3..].iter().map(|batch| &batch.sql) {
        assert!(script.starts_with("SET XACT_ABORT ON;\nBEGIN TRANSACTION;"), "{script}");
        assert!(script.contains("INSERT INTO [ops].SchemaMigrations"), "{script}");
        assert!(script.trim_end().ends_with("COMMIT TRANSACTION;"), "{script}");
    }
    within(stage.server.has_closed(batches[0].connection)).await;
}

#[tokio::test]
async fn what_is_recorded_is_not_run_again_and_a_later_release_may_have_added_to_it() {
    let recorded = [1, 2, 3].map(|version| [int(version), int(1), text("0.1.0")]);
    let rows = recorded.into_iter().chain([[int(9), int(1), text("9.9.9")]]).collect();
    let stage = stage(int(1), rows).await;
    assert!(within(stage.storage.migrate()).await.expect("nothing to do").is_empty());
    assert_eq!(batches(&stage).len(), 3, "no migration was sent");
    assert_eq!(within(stage.storage.migration_plan()).await.expect("nothing to do"), "");
}

#[tokio::test]
async fn a_schema_of_a_later_release_that_asks_for_more_is_left_alone() {
    let rows = || vec![[int(1), int(1), text("0.1.0")], [int(9), int(99), text("9.9.9")]];
    let stage = stage(int(0), rows()).await;
    for error in [
        within(stage.storage.migrate()).await.map(drop).expect_err("too new"),
        within(stage.storage.migration_plan()).await.map(drop).expect_err("too new"),
    ] {
        assert!(error.is_schema() && error.to_string().contains("use chokaq 9.9.9"), "{error}");
    }
    assert!(batches(&stage).iter().all(|batch| !batch.sql.contains("CREATE TABLE [ops].JobsHot")));
}

#[tokio::test]
async fn a_lock_that_another_migrator_holds_is_transient_and_nothing_is_run() {
    for answer in [int(-1), int(-3)] {
        let stage = stage(answer, none()).await;
        let error = within(stage.storage.migrate()).await.expect_err("no lock");
        assert!(error.is_transient(), "{error}");
        assert!(error.to_string().contains("another program has been migrating"), "{error}");
        assert_eq!(batches(&stage).len(), 1);
        within(stage.server.has_closed(batches(&stage)[0].connection)).await;
    }
}

#[tokio::test]
async fn a_plan_is_a_script_for_people_and_runs_nothing() {
    let stage = stage(int(0), none()).await;
    let plan = within(stage.storage.migration_plan()).await.expect("a plan");
    assert!(plan.starts_with("SET ANSI_NULLS, QUOTED_IDENTIFIER ON;"), "{plan}");
    assert!(plan.contains("[ops].JobsHot") && !plan.contains("[chokaq]"));
    let batches = batches(&stage);
    assert_eq!(batches.len(), 1, "it reads what is recorded");
    assert!(batches[0].sql.contains("SELECT Version"));
}

#[tokio::test]
async fn a_migration_that_the_server_refuses_is_named() {
    let script = Script::new(|request| {
        if request.sql.contains("sp_getapplock") {
            vec![one("", Column::Int, int(0))]
        } else if request.sql.contains("SELECT Version") {
            recorded(none())
        } else if request.sql.contains("CREATE TABLE [chokaq].JobsHot") {
            vec![error(262)]
        } else {
            Vec::new()
        }
    });
    let stage = Stage::on("", script).await;
    let error = within(stage.storage.migrate()).await.expect_err("no right to create tables");
    let text = error.to_string();
    assert!(!error.is_transient(), "{text}");
    for part in ["the migration 0001_three_pillars", "lacks a permission", "error 262"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
