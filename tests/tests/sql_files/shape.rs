//! What every file has, and what none has.

use crate::files::{QueryFile, migrations, queries, statements};

/// What each header says, in this order.
const HEADER: [&str; 4] = ["Caller:", "Intent:", "Invariant:", "Twin:"];

/// Which of the header's lines are missing, empty or out of order.
fn header_faults(file: &QueryFile) -> Vec<&'static str> {
    let lines = file.header();
    let mut from = 0;
    let mut faults = Vec::new();
    for word in HEADER {
        let found = lines[from..]
            .iter()
            .position(|line| line.strip_prefix(word).is_some_and(|rest| !rest.trim().is_empty()));
        match found {
            Some(at) => from += at + 1,
            None => faults.push(word),
        }
    }
    faults
}

/// What no statement may have: stars for columns, and inserts that rely on the order of columns.
fn column_faults(statement: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let plain = statement.to_uppercase().replace("COUNT(*)", "");
    for star in ["SELECT *", "RETURNING *", ".*", ", *"] {
        if plain.contains(star) {
            faults.push(format!("{star:?} in {statement}"));
        }
    }
    for (at, insert) in plain.match_indices("INSERT ") {
        let target = plain[at + insert.len()..].split("INTO ").nth(1).unwrap_or_default();
        let name: String =
            target.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if !target[name.len()..].trim_start().starts_with('(') {
            faults.push(format!("an INSERT without a column list in {statement}"));
        }
    }
    faults
}

#[test]
fn every_query_has_its_header() {
    for file in queries() {
        assert!(header_faults(&file).is_empty(), "{}: {:?}", file.name, header_faults(&file));
    }
}

#[test]
fn no_statement_leaves_its_columns_open() {
    for file in queries().iter().chain(&migrations()) {
        for statement in file.statements() {
            let faults = column_faults(&statement);
            assert!(faults.is_empty(), "{}: {faults:?}", file.name);
        }
    }
}

#[test]
fn every_query_holds_a_statement() {
    for file in queries() {
        assert!(!file.statements().is_empty(), "{} is empty", file.name);
    }
}

#[test]
fn a_missing_line_of_a_header_is_noticed() {
    let whole = "-- Caller: a\n-- Intent: b\n-- Invariant: c\n--   more\n-- Twin: d\nSELECT 1;\n";
    let faults = |text: String| header_faults(&QueryFile { name: "q".to_owned(), text });
    assert_eq!(faults(whole.to_owned()), [""; 0]);
    for word in HEADER {
        assert_eq!(faults(whole.replace(word, "")), [word]);
        let empty: String = whole
            .lines()
            .map(
                |line| {
                    if line.contains(word) { format!("-- {word}\n") } else { format!("{line}\n") }
                },
            )
            .collect();
        assert_eq!(faults(empty), [word]);
    }
}

#[test]
fn open_columns_are_noticed() {
    for bad in [
        "SELECT * FROM t;",
        "select *\nfrom t;",
        "SELECT t.* FROM t;",
        "SELECT a, * FROM t;",
        "DELETE FROM t WHERE a = 1 RETURNING *;",
        "INSERT INTO t VALUES (1);",
        "INSERT OR IGNORE INTO t SELECT a FROM b;",
        "INSERT INTO t\nSELECT a FROM b;",
    ] {
        let found: Vec<_> = statements(bad).iter().flat_map(|s| column_faults(s)).collect();
        assert!(!found.is_empty(), "{bad}");
    }
    for good in ["SELECT count(*) FROM t;", "INSERT INTO t (a) VALUES (1);", "SELECT 2 * 3;"] {
        assert_eq!(column_faults(&statements(good)[0]), [""; 0]);
    }
}
