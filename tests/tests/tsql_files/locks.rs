//! The order in which each file takes its locks, against the `Locks:` line of its header.

use std::collections::BTreeSet;

use crate::{
    files::QueryFile,
    lints::{hold, notices},
    schema::Schema,
    transactions::{Touch, touches, walk},
};

/// The tables as the headers call them, in the order in which locks are taken.
pub(crate) const ORDER: [(&str, &str); 7] = [
    ("Queues", "Queues"),
    ("Hot", "JobsHot"),
    ("Archive", "JobsArchive"),
    ("DLQ", "JobsDLQ"),
    ("Buckets", "MetricBuckets"),
    ("Stats", "StatsSummary"),
    ("Circuits", "Circuits"),
];

/// While rows of `held` are locked, rows of the other table are touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) held: String,
    pub(crate) touch: Touch,
    pub(crate) line: u64,
}

/// The order that the header names: tables of the schema; empty for `none kept`.
pub(crate) fn stated(file: &QueryFile) -> Result<Vec<String>, String> {
    let locks = file.heading("Locks:").ok_or("no locks")?;
    let first = locks.split(['.', ';', ':']).next().unwrap_or_default();
    if first == "none kept" {
        return Ok(Vec::new());
    }
    let table = |name: &str| {
        let known = ORDER.iter().find(|(short, _)| *short == name);
        known.map(|(_, table)| (*table).to_owned()).ok_or(format!("{name:?} is no table"))
    };
    first.split(" > ").map(table).collect()
}

/// What the text does: a table held, and the next.
pub(crate) fn edges(file: &QueryFile) -> Vec<Edge> {
    let mut found = Vec::new();
    walk(&file.text, &mut |statement, state| {
        let mut held = state.held.clone();
        for touch in touches(statement) {
            for held in held.iter().filter(|held| **held != touch.table) {
                let (held, line) = (held.clone(), statement.line());
                found.push(Edge { held, touch: touch.clone(), line });
            }
            if touch.is_kept {
                held.insert(touch.table);
            }
        }
    });
    found.dedup();
    found
}

pub(crate) fn faults(file: &QueryFile, _: &Schema) -> Vec<String> {
    let chain = match stated(file) {
        Ok(chain) => chain,
        Err(fault) => return vec![fault],
    };
    let mut faults = order_faults(file, &chain);
    let (mut touched, mut kept) = (BTreeSet::new(), BTreeSet::new());
    walk(&file.text, &mut |statement, state| {
        for touch in touches(statement) {
            touched.insert(touch.table.clone());
            if touch.is_kept && (state.is_open || chain.is_empty()) {
                kept.insert(touch.table);
            }
        }
        if state.is_open && chain.is_empty() {
            faults.push(
                "the header says that no lock is kept, and there is a transaction".to_owned(),
            );
        }
    });
    for table in kept.iter().filter(|table| !chain.contains(table)) {
        faults.push(format!("it keeps locks on {table}, which the header does not name"));
    }
    for table in chain.iter().filter(|table| !touched.contains(*table)) {
        faults.push(format!("the header names {table}, which it never touches"));
    }
    faults.dedup();
    faults
}

fn order_faults(file: &QueryFile, chain: &[String]) -> Vec<String> {
    let place = |table: &str| chain.iter().position(|known| known == table);
    let is_stated = |edge: &Edge| match (place(&edge.held), place(&edge.touch.table)) {
        (Some(held), Some(next)) => held < next,
        _ => false,
    };
    let wrong = edges(file).into_iter().filter(|edge| !is_stated(edge));
    wrong
        .map(|edge| format!("line {}: {} after {}", edge.line, edge.touch.table, edge.held))
        .collect()
}

#[test]
fn the_text_takes_its_locks_in_the_order_of_its_header() {
    hold(faults);
}

#[test]
fn another_order_is_noticed() {
    let good = "-- Locks: Hot > DLQ. Waits.
DECLARE @m TABLE (Seq bigint NOT NULL);
SELECT q.Name FROM [chokaq].Queues AS q;
BEGIN TRANSACTION;
DELETE h OUTPUT deleted.Seq INTO @m (Seq) FROM [chokaq].JobsHot AS h WHERE h.Status = 2;
INSERT INTO [chokaq].JobsDLQ (Id) SELECT m.Id FROM @m AS m;
UPDATE d SET Error = NULL FROM [chokaq].JobsDLQ AS d;
COMMIT TRANSACTION;";
    notices(
        faults,
        good,
        &[
            ("Hot > DLQ", "DLQ > Hot"),
            ("Hot > DLQ", "Hot"),
            ("Hot > DLQ", "Hot > Archive > DLQ"),
            ("Hot > DLQ", "Hot > Dead"),
            ("Hot > DLQ", "none kept"),
            ("-- Locks", "-- Lock"),
            (
                "UPDATE d SET Error = NULL FROM [chokaq].JobsDLQ AS d",
                "UPDATE [chokaq].JobsHot SET Status = 1",
            ),
            ("SELECT m.Id FROM @m AS m;", "SELECT m.Id FROM @m AS m, [chokaq].Queues AS q;"),
            (
                "BEGIN TRANSACTION;\n",
                "BEGIN TRANSACTION;\nSELECT d.Id FROM [chokaq].JobsDLQ AS d WITH (UPDLOCK);\n",
            ),
            (
                "SELECT q.Name",
                "BEGIN TRANSACTION;\nUPDATE [chokaq].JobsDLQ SET Error = NULL;\nSELECT q.Name",
            ),
        ],
    );
}

#[test]
fn a_lock_that_is_kept_is_noticed_where_none_is_said_to_be() {
    let good =
        "-- Locks: none kept: Hot, one row at a time.\nSELECT h.Id FROM [chokaq].JobsHot AS h;";
    let from = "SELECT h.Id FROM [chokaq].JobsHot AS h";
    for bad in [
        "SELECT h.Id FROM [chokaq].JobsHot AS h WITH (UPDLOCK)",
        "UPDATE [chokaq].JobsHot SET Status = 1",
        "BEGIN TRANSACTION; SELECT @n = h.Id FROM [chokaq].JobsHot AS h; COMMIT TRANSACTION",
    ] {
        notices(faults, good, &[(from, bad)]);
    }
}
