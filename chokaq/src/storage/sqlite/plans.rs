//! The plan of every statement: none on the worker's path may walk the backlog or the history.

use std::time::Duration;

use rusqlite::Connection;

use super::{failure::DatabaseName, migrate, queries};

/// Read by people only: these may walk an index of what they count, up to the limit that they name.
const FOR_PEOPLE: [&str; 5] = [
    "get_summary_stats",
    "get_queue_stats",
    "get_queue_health",
    "get_top_dlq_errors",
    "read_schema",
];

fn database() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    rusqlite::vtab::array::load_module(&connection).unwrap();
    migrate::apply(&connection, &DatabaseName::new("the test database"), Duration::ZERO).unwrap();
    connection
}

fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let steps = statement.raw_query().mapped(|row| row.get(3)).collect::<Result<_, _>>();
    steps.unwrap()
}

/// A step that walks a whole table or index, other than those that are small by their nature.
fn is_a_walk(step: &str) -> bool {
    let small = [
        "rarray",
        "s VIRTUAL TABLE",
        "Queues",
        "q",
        "StatsSummary",
        "Circuits",
        "Level",
        "l",
        "CONSTANT ROW",
    ];
    step.strip_prefix("SCAN ").is_some_and(|what| {
        let is_small = small.iter().any(|name| {
            what.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        });
        !is_small && !what.contains("IX_JobsHot_Active")
    })
}

#[test]
fn no_statement_of_the_workers_path_walks_the_backlog_or_the_history() {
    let connection = database();
    for (name, _, text) in queries::all() {
        if FOR_PEOPLE.contains(&name) {
            continue;
        }
        for (number, sql) in queries::split(text).enumerate() {
            for step in plan(&connection, sql) {
                // A delayed row is reached by the order of the index, an old one by that of the table: such a walk has a limit.
                let is_in_order = step.contains("IX_JobsHot_Delayed") || name.starts_with("purge_");
                let is_bounded = is_in_order && sql.contains("LIMIT");
                assert!(
                    !is_a_walk(&step) || is_bounded,
                    "{name}.sql, statement {}: {step}",
                    number + 1
                );
            }
        }
    }
}

#[test]
fn what_people_read_walks_indexes_and_never_a_table() {
    let connection = database();
    for (name, _, text) in queries::all().into_iter().filter(|(name, ..)| FOR_PEOPLE.contains(name))
    {
        for sql in queries::split(text) {
            for step in plan(&connection, sql) {
                let is_a_table = step.starts_with("SCAN JobsHot") && !step.contains("INDEX");
                assert!(!is_a_table, "{name}.sql: {step}");
            }
        }
    }
}

#[test]
fn the_worker_sorts_no_rows_of_the_backlog() {
    let connection = database();
    for query in ["fetch_candidates", "fetch_heads", "promote_due", "next_delayed", "next_due"] {
        let text = queries::all().into_iter().find(|(name, ..)| *name == query).unwrap().2;
        for sql in queries::split(text) {
            for step in plan(&connection, sql) {
                assert!(!step.contains("TEMP B-TREE"), "{query}.sql: {step}");
            }
        }
    }
}

#[test]
fn a_walk_is_told_from_a_seek() {
    assert!(is_a_walk("SCAN JobsHot"));
    assert!(is_a_walk("SCAN j USING INDEX IX_JobsHot_Fetch"));
    assert!(is_a_walk("SCAN JobsArchive"));
    assert!(!is_a_walk("SCAN j USING INDEX IX_JobsHot_Active"));
    assert!(!is_a_walk("SEARCH JobsHot USING INTEGER PRIMARY KEY (rowid=?)"));
    assert!(!is_a_walk("SCAN rarray VIRTUAL TABLE INDEX 1:"));
}

#[test]
fn every_transition_compares_its_guard_in_every_statement() {
    for transition in crate::model::TRANSITIONS {
        let text = queries::all().into_iter().find(|(name, ..)| *name == transition.query);
        let (name, _, text) = text.unwrap_or_else(|| panic!("{}.sql is missing", transition.query));
        let statuses: Vec<_> = transition.from.iter().map(|status| *status as u8).collect();
        let status = match statuses.as_slice() {
            [one] => format!("Status = {one}"),
            several => format!(
                "Status IN ({})",
                several.iter().map(u8::to_string).collect::<Vec<_>>().join(", ")
            ),
        };
        for sql in queries::split(text) {
            let guard = sql.rsplit_once("WHERE").unwrap().1;
            assert!(guard.contains(&status), "{name}.sql does not compare {status}:\n{sql}");
            if transition.owned {
                for part in [
                    "Seq IN (SELECT value FROM rarray(@seqs))",
                    "WorkerId = @worker AND LeaseId = @lease",
                ] {
                    assert!(sql.contains(part), "{name}.sql does not compare {part}:\n{sql}");
                }
            }
        }
    }
}
