//! The guards of the transition table: each statement that changes a row of `JobsHot` compares what its row of the table
//! says. `list` holds the rest.

use std::collections::BTreeSet;

use chokaq::model::{JobStatus, TRANSITIONS, Transition};

use crate::files::{QueryFile, conjuncts, queries, statements};

/// Whether the statement changes rows of `JobsHot`, or copies them into history before they are deleted.
pub(crate) fn is_guarded(statement: &str) -> bool {
    let changes = statement.contains("UPDATE JobsHot") || statement.contains("DELETE FROM JobsHot");
    let inserts =
        statement.starts_with("INSERT INTO Jobs") || statement.contains(") INSERT INTO Jobs");
    changes || (inserts && statement.contains(" FROM JobsHot"))
}

/// The statuses that a conjunct lets through; `None` when it is about something else.
fn statuses(conjunct: &str) -> Option<BTreeSet<u8>> {
    let condition =
        conjunct.strip_prefix("JobsHot.").unwrap_or(conjunct).strip_prefix("Status ")?;
    let number = |text: &str| text.trim().parse::<u8>().ok().filter(|status| *status <= 2);
    let all = 0..=2;
    if let Some(list) = condition.strip_prefix("IN (") {
        return list.strip_suffix(')')?.split(',').map(number).collect();
    }
    let (operator, literal) = condition.split_once(' ')?;
    let literal = number(literal)?;
    Some(match operator {
        "=" => BTreeSet::from([literal]),
        "<" => all.filter(|status| *status < literal).collect(),
        "<=" => all.filter(|status| *status <= literal).collect(),
        ">" => all.filter(|status| *status > literal).collect(),
        ">=" => all.filter(|status| *status >= literal).collect(),
        "<>" => all.filter(|status| *status != literal).collect(),
        _ => return None,
    })
}

/// The statuses that the whole WHERE clause lets through.
fn allowed(statement: &str) -> BTreeSet<u8> {
    let every = BTreeSet::from([0, 1, 2]);
    let each = conjuncts(statement).into_iter().filter_map(statuses);
    each.fold(every, |left, right| &left & &right)
}

/// What is wrong with one statement of a transition.
fn faults_of(statement: &str, transition: &Transition) -> Vec<String> {
    let mut faults = Vec::new();
    let from: BTreeSet<u8> = transition.from.iter().map(|status| *status as u8).collect();
    if allowed(statement) != from {
        faults.push(format!("it lets {:?} through, not {from:?}", allowed(statement)));
    }
    let conjuncts = conjuncts(statement);
    if !conjuncts.iter().any(|conjunct| names_rows(conjunct)) {
        faults.push("it does not say which rows".to_owned());
    }
    if transition.owned {
        let has =
            |ways: &[&str]| conjuncts.iter().any(|c| ways.iter().any(|way| c.starts_with(way)));
        for (column, ways) in OWNER_GUARDS {
            if !has(ways) {
                faults.push(format!("it does not compare {column}"));
            }
        }
    }
    faults
}

/// Whether a conjunct picks rows by their number or id.
fn names_rows(conjunct: &str) -> bool {
    ["Seq = @", "Seq IN (", "Id = @", "Id IN ("].iter().any(|way| conjunct.starts_with(way))
}

/// What an owned statement compares, and how.
const OWNER_GUARDS: [(&str, &[&str]); 3] = [
    ("Seq", &["Seq = @", "Seq IN (SELECT value FROM rarray(@"]),
    ("WorkerId", &["WorkerId = @worker"]),
    ("LeaseId", &["LeaseId = @lease"]),
];

/// What is wrong with the file of a transition.
pub(crate) fn check(text: &str, transition: &Transition) -> Vec<String> {
    let statements = statements(text);
    let guarded: Vec<_> = statements.iter().filter(|statement| is_guarded(statement)).collect();
    if guarded.is_empty() {
        return vec![format!("{} changes no row of JobsHot", transition.query)];
    }
    guarded.iter().flat_map(|statement| faults_of(statement, transition)).collect()
}

fn file_of<'a>(files: &'a [QueryFile], transition: &Transition) -> Option<&'a QueryFile> {
    files.iter().find(|file| file.name == transition.query)
}

#[test]
fn every_transition_is_a_named_query_with_its_guards() {
    let files = queries();
    let mut faults = Vec::new();
    for transition in TRANSITIONS {
        match file_of(&files, transition) {
            None => faults.push(format!("{}.sql is missing", transition.query)),
            Some(file) => {
                let found = check(&file.text, transition);
                faults.extend(found.into_iter().map(|fault| format!("{}: {fault}", file.name)));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn every_statement_that_changes_a_hot_row_compares_its_status() {
    for file in queries() {
        for statement in file.statements().iter().filter(|statement| is_guarded(statement)) {
            assert!(allowed(statement).len() < 3, "{}: any status passes: {statement}", file.name);
        }
    }
}

const MARK: Transition = Transition { query: "mark", from: &[JobStatus::Fetched], owned: true };

#[test]
fn the_check_notices_guards_that_guard_nothing() {
    let good = "UPDATE JobsHot SET Status = 2 WHERE Seq = @seq AND WorkerId = @worker AND LeaseId = @lease AND Status = 1;";
    assert_eq!(check(good, &MARK), [""; 0]);
    for (what, from, to) in [
        ("another status", "Status = 1", "Status = 0"),
        ("more statuses", "Status = 1", "Status IN (1, 2)"),
        ("no status", "AND Status = 1", ""),
        ("a parameter for a status", "Status = 1", "Status = @status"),
        ("a column against itself", "LeaseId = @lease", "LeaseId = LeaseId"),
        ("an OR", "AND LeaseId", "OR LeaseId"),
        ("a guard in a comment", "AND Status = 1", "-- AND Status = 1"),
        (
            "a guard in a sub-select",
            "LeaseId = @lease",
            "Seq IN (SELECT Seq FROM JobsHot WHERE LeaseId = @lease)",
        ),
    ] {
        assert!(good.contains(from));
        assert!(!check(&good.replace(from, to), &MARK).is_empty(), "{what}: unnoticed");
    }
    assert!(!check("SELECT Seq FROM JobsHot;", &MARK).is_empty(), "a file that changes nothing");
    let second = format!("{good}\nDELETE FROM JobsHot WHERE Seq = @seq;");
    assert!(!check(&second, &MARK).is_empty(), "a second statement without guards");
}
