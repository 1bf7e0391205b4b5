//! Every guard taken away in turn, from the texts as they are: each loss must be noticed by some check.
//!
//! `cargo test -p chokaq-tests --test sql_files mutants -- --nocapture` prints which.

use std::ops::Range;

use chokaq::model::TRANSITIONS;
use rusqlite::Connection;

use crate::{
    files::{QueryFile, queries},
    guards::{check, is_guarded},
    list::{conditions, faults, is_listed},
    plans::{database, is_sound},
};

/// The names of the checks that find something in a text.
fn caught_by(connection: &Connection, file: &QueryFile) -> Vec<&'static str> {
    let mut found = Vec::new();
    let transition = TRANSITIONS.iter().find(|transition| transition.query == file.name);
    if transition.is_some_and(|transition| !check(&file.text, transition).is_empty()) {
        found.push("transitions");
    }
    if !faults(file).is_empty() {
        found.push("guards");
    }
    if !is_sound(connection, file) {
        found.push("plans");
    }
    found
}

/// A file with one condition of one statement replaced.
fn mutant(file: &QueryFile, n: usize, place: &Range<usize>, put: &str) -> QueryFile {
    let mut statements = file.statements();
    statements[n].replace_range(place.clone(), put);
    QueryFile { name: file.name.clone(), text: statements.join(";\n") }
}

#[test]
fn no_guard_can_be_taken_away_unnoticed() {
    let connection = database();
    let (mut rows, mut changing) = (0, 0);
    let mut unnoticed = Vec::new();
    for file in queries().into_iter().filter(is_listed) {
        let bare = QueryFile { name: file.name.clone(), text: file.statements().join(";\n") };
        let header = file.header().join("\n-- ");
        assert_eq!(caught_by(&connection, &file), [""; 0], "{}", file.name);
        for (n, statement) in bare.statements().iter().enumerate() {
            for place in conditions(statement) {
                let guard = &statement[place.clone()];
                let caught = |put: &str| {
                    let mut mutant = mutant(&bare, n, &place, put);
                    mutant.text.insert_str(0, &format!("-- {header}\n"));
                    caught_by(&connection, &mutant)
                };
                let (gone, weak) = (caught("1 = 1"), caught(&format!("({guard} OR 1 = 1)")));
                if gone.is_empty() || weak.is_empty() {
                    unnoticed.push(format!("{}.sql: {guard}", file.name));
                }
                let short: String = guard.chars().take(70).collect();
                println!("{:<30} {short:<70} {}", format!("{}.sql", file.name), gone.join(", "));
                rows += 1;
                changing += usize::from(is_guarded(statement));
            }
        }
    }
    println!("{rows} guards, {changing} of statements that change JobsHot");
    assert!(unnoticed.is_empty(), "{unnoticed:#?}");
    assert!(changing >= 80, "only {changing} guards were found to take away");
}
