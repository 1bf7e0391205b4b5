//! Every guard taken away in turn, from the texts as they are: each loss must be noticed by some lint.
//!
//! `cargo test -p chokaq-tests --test tsql_files mutants -- --nocapture` prints which.

use std::ops::Range;

use crate::{
    files::{QueryFile, queries},
    guards::{changes_hot, guarded},
    lints::LINTS,
    schema::Schema,
    tokens::render,
};

/// A conjunct of a guarded statement.
struct Guard {
    text: String,
    line: u64,
    /// Its bytes in the file.
    place: Range<usize>,
    changes: bool,
}

fn guards(file: &QueryFile) -> Vec<Guard> {
    let mut found = Vec::new();
    for (statement, blocks) in guarded(file) {
        let changes = blocks.iter().any(changes_hot);
        for range in blocks.iter().flat_map(|block| block.conjuncts.iter().cloned()) {
            let part = &statement.tokens[range];
            let place = part[0].place.start..part[part.len() - 1].place.end;
            found.push(Guard { text: render(part), line: part[0].line, place, changes });
        }
    }
    found
}

/// The names of the lints that find something in a text.
fn caught_by(file: &QueryFile, schema: &Schema) -> Vec<&'static str> {
    let found = LINTS.iter().filter(|(_, lint)| !lint(file, schema).is_empty());
    found.map(|(name, _)| *name).collect()
}

#[test]
fn no_guard_can_be_taken_away_unnoticed() {
    let schema = Schema::read();
    let (mut rows, mut unnoticed, mut changing) = (Vec::new(), Vec::new(), 0);
    for file in queries() {
        assert_eq!(caught_by(&file, &schema), [""; 0], "{}", file.name);
        for guard in guards(&file) {
            changing += usize::from(guard.changes);
            let place = format!("{}.sql:{}", file.name, guard.line);
            let mutant = |put: &str| {
                let mut mutant = file.clone();
                mutant.text.replace_range(guard.place.clone(), put);
                mutant
            };
            let caught = caught_by(&mutant("1 = 1"), &schema);
            let weakened = mutant(&format!("({} OR 1 = 1)", guard.text));
            if caught.is_empty()
                || LINTS.iter().all(|(_, lint)| lint(&weakened, &schema).is_empty())
            {
                unnoticed.push(format!("{place}: {}", guard.text));
            }
            rows.push((place, guard.text, caught.join(", ")));
        }
    }
    for (place, guard, caught) in &rows {
        let guard: String = guard.chars().take(70).collect();
        println!("{place:<30} {guard:<70} {caught}");
    }
    println!("{} guards, {changing} of statements that change JobsHot", rows.len());
    assert!(unnoticed.is_empty(), "{unnoticed:#?}");
    assert!(changing >= 60, "only {changing} guards were found to take away");
}
