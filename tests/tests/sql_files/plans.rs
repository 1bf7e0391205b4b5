//! I9: no statement on the worker's path scans in proportion to the backlog or to history.

use rusqlite::Connection;

use crate::files::{QueryFile, migrations, queries};

/// An empty database with every migration.
pub(crate) fn database() -> Connection {
    let connection = Connection::open_in_memory().expect("memory can be opened");
    rusqlite::vtab::array::load_module(&connection).expect("rarray is built in");
    for migration in migrations() {
        connection.execute_batch(&migration.text).expect("a migration runs");
    }
    connection
}

/// Reads of operators are bounded otherwise: by a page, or by the window that they look at.
fn is_for_operators(file: &QueryFile) -> bool {
    let caller = file.header().into_iter().find(|line| line.starts_with("Caller:"));
    file.name.starts_with("get_") || caller.is_some_and(|line| line.contains("Operator"))
}

/// The steps of the plan.
fn plan(connection: &Connection, statement: &str) -> Vec<String> {
    try_plan(connection, statement).unwrap_or_else(|e| panic!("{statement}: {e}"))
}

fn try_plan(connection: &Connection, statement: &str) -> rusqlite::Result<Vec<String>> {
    let mut query = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}"))?;
    let mut rows = query.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next()? {
        steps.push(row.get("detail")?);
    }
    Ok(steps)
}

/// Whether each statement can be run, and none of the worker's path walks over a whole table.
pub(crate) fn is_sound(connection: &Connection, file: &QueryFile) -> bool {
    let statements = file.statements();
    let mut plans = statements.iter().map(|s| (s, try_plan(connection, s)));
    plans.all(|(statement, plan)| {
        let is_bounded =
            |steps: Vec<String>| !steps.iter().any(|step| is_unbounded(step, statement));
        plan.is_ok_and(|steps| is_for_operators(file) || is_bounded(steps))
    })
}

/// A walk over a whole table. Two walks are bounded: over the claimed rows, which are as few as the fleet has permits and
/// buffers, and over the delayed rows in the order of their index, up to a LIMIT.
fn is_unbounded(step: &str, statement: &str) -> bool {
    let scans = ["JobsHot", "JobsArchive", "JobsDLQ"]
        .iter()
        .any(|table| step.split_whitespace().take(2).eq(["SCAN", table]));
    let in_order = step.contains("INDEX IX_JobsHot_Delayed") && statement.contains(" LIMIT ");
    scans && !step.contains("INDEX IX_JobsHot_Active") && !in_order
}

/// The statements of the worker's path that walk over a whole table.
fn unbounded(connection: &Connection, files: &[QueryFile]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| !is_for_operators(file)) {
        for statement in file.statements() {
            let steps = plan(connection, &statement);
            found.extend(
                steps
                    .into_iter()
                    .filter(|step| is_unbounded(step, &statement))
                    .map(|step| format!("{}: {step}", file.name)),
            );
        }
    }
    found
}

#[test]
fn i9_no_statement_of_the_workers_path_scans_a_table() {
    assert_eq!(unbounded(&database(), &queries()), [""; 0]);
}

#[test]
fn i9_a_fetch_sorts_no_backlog() {
    let connection = database();
    let files = queries();
    let names = ["fetch_candidates", "fetch_heads", "promote_due", "next_delayed"];
    for file in files.iter().filter(|file| names.contains(&file.name.as_str())) {
        for statement in file.statements() {
            for step in plan(&connection, &statement) {
                assert!(!step.contains("TEMP B-TREE"), "{}: {step}", file.name);
            }
        }
    }
}

#[test]
fn i9_a_scan_is_noticed() {
    let connection = database();
    for bad in [
        "UPDATE JobsHot SET Priority = 1 WHERE Status = 0 AND Type = @type;",
        "DELETE FROM JobsHot WHERE WorkerId = @worker;",
        "SELECT Id FROM JobsArchive WHERE LeaseId = @lease;",
        "SELECT count(1) FROM JobsDLQ;",
    ] {
        let text = format!("-- Caller: WorkerStorage::x\n{bad}");
        let file = QueryFile { name: "bad".to_owned(), text };
        assert_eq!(unbounded(&connection, &[file]).len(), 1, "{bad}");
    }
}
