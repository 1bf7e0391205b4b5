//! Every condition of the statements that change jobs, choose them or recognise an earlier run, against `guards.txt`.

use std::{collections::BTreeMap, fs, ops::Range, path::PathBuf};

use crate::{
    files::{QueryFile, outer_words, queries},
    guards::is_guarded,
};

/// What ends a condition.
const ENDS: [&str; 13] = [
    "WHERE",
    "ON",
    "RETURNING",
    "ORDER",
    "LIMIT",
    "GROUP",
    "JOIN",
    "INNER",
    "LEFT",
    "CROSS",
    "UNION",
    "INDEXED",
    "SET",
];

/// The places of all conditions of a statement between its ANDs, those of its sub-queries after those around them. A clause
/// with an OR outside parentheses is one.
pub(crate) fn conditions(statement: &str) -> Vec<Range<usize>> {
    let words = outer_words(statement);
    let mut found = Vec::new();
    for (n, (at, word)) in words.iter().enumerate() {
        let is_conflict = words.get(n + 1).is_some_and(|(_, next)| *next == "CONFLICT");
        if (*word == "WHERE" || *word == "ON") && !is_conflict {
            let clause = &words[n + 1..];
            let ends = clause.iter().find(|(_, word)| ENDS.contains(word));
            let end = ends.map_or(statement.len(), |(end, _)| *end);
            found.extend(parts(statement, at + word.len()..end, clause));
        }
    }
    for inside in sub_queries(statement) {
        let within = conditions(&statement[inside.clone()]);
        let shifted = within.into_iter().map(|r| r.start + inside.start..r.end + inside.start);
        found.extend(shifted);
    }
    found
}

/// The parts of one clause.
fn parts(statement: &str, clause: Range<usize>, words: &[(usize, &str)]) -> Vec<Range<usize>> {
    let own: Vec<_> = words.iter().filter(|(at, _)| clause.contains(at)).collect();
    let mut starts = vec![clause.start];
    let mut ends = Vec::new();
    if !own.iter().any(|(_, word)| *word == "OR" || *word == "BETWEEN") {
        for (at, word) in own.into_iter().filter(|(_, word)| *word == "AND") {
            ends.push(*at);
            starts.push(at + word.len());
        }
    }
    ends.push(clause.end);
    let trimmed = |(start, end): (usize, usize)| {
        let text = &statement[start..end];
        let left = text.len() - text.trim_start().len();
        let text = text.trim().trim_end_matches(',');
        start + left..start + left + text.len()
    };
    starts.into_iter().zip(ends).map(trimmed).collect()
}

/// What stands in parentheses and is a query.
fn sub_queries(statement: &str) -> Vec<Range<usize>> {
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(at) = statement[from..].find('(') {
        let start = from + at + 1;
        let mut depth = 1_usize;
        let length = statement[start..].find(|c: char| {
            depth = if c == '(' { depth + 1 } else { depth - usize::from(c == ')') };
            depth == 0
        });
        let inside = start..start + length.unwrap_or(statement.len() - start);
        if statement[inside.clone()].trim_start().starts_with("SELECT ") {
            from = inside.end;
            found.push(inside);
        } else {
            from = start;
        }
    }
    found
}

/// Whether the statements of a file are listed: it changes jobs, chooses them, or recognises an earlier run.
pub(crate) fn is_listed(file: &QueryFile) -> bool {
    let chooses = ["fetch_", "find_", "count_active", "enqueue", "resurrect"];
    let changes = file.statements().iter().any(|statement| is_guarded(statement));
    let is_read = file.name == "find_job";
    !is_read && (changes || chooses.iter().any(|start| file.name.starts_with(start)))
}

/// The conditions of each statement; a sub-query's follow the one that it stands in.
fn written(file: &QueryFile) -> Vec<Vec<String>> {
    let of_statement = |statement: &String| {
        let found = conditions(statement).into_iter();
        found.map(|range| without_queries(&statement[range])).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = file.statements().iter().map(of_statement).collect();
    all.retain(|conditions| !conditions.is_empty());
    all
}

fn without_queries(condition: &str) -> String {
    let mut left = condition.to_owned();
    for inside in sub_queries(condition).into_iter().rev() {
        left.replace_range(inside, "SELECT ...");
    }
    left
}

/// `guards.txt`: a file's name, then the conditions of one of its statements.
fn listed() -> BTreeMap<String, Vec<Vec<String>>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/sql_files/guards.txt");
    let text = fs::read_to_string(path).expect("the list is read");
    let (mut list, mut name) = (BTreeMap::<String, Vec<Vec<String>>>::new(), String::new());
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if let Some(file) = line.strip_suffix(':') {
            file.clone_into(&mut name);
            list.entry(name.clone()).or_default().push(Vec::new());
        } else {
            let statements = list.get_mut(&name).expect("a file is named first");
            statements.last_mut().expect("a statement is begun").push(line.trim().to_owned());
        }
    }
    list
}

/// What a file has that the list has not, and the other way round.
pub(crate) fn faults(file: &QueryFile) -> Vec<String> {
    let listed = listed().remove(&file.name).unwrap_or_default();
    let written = if is_listed(file) { written(file) } else { Vec::new() };
    if written == listed {
        return Vec::new();
    }
    let stanza = |guards: &Vec<String>| format!("{}:\n    {}\n", file.name, guards.join("\n    "));
    let show = |all: &[Vec<String>]| all.iter().map(stanza).collect::<String>();
    vec![format!("guards.txt says\n{}the file has\n{}", show(&listed), show(&written))]
}

#[test]
fn the_guards_are_those_of_the_list() {
    let files = queries();
    let found: Vec<String> = files.iter().flat_map(faults).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    for name in listed().into_keys() {
        assert!(files.iter().any(|file| file.name == name), "guards.txt lists {name}: no file");
    }
}

#[test]
fn conditions_are_found_wherever_they_stand() {
    let statement = "UPDATE t SET a = (SELECT max(b) FROM u WHERE c = 1) WHERE Seq IN (SELECT s FROM v JOIN w ON w.x = v.x WHERE (y = 1 OR z = 2) LIMIT 3) AND d = 4 RETURNING e";
    let found: Vec<_> =
        conditions(statement).into_iter().map(|r| without_queries(&statement[r])).collect();
    assert_eq!(found, ["Seq IN (SELECT ...)", "d = 4", "c = 1", "w.x = v.x", "(y = 1 OR z = 2)"]);
    let insert = "INSERT INTO t (a) SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM t WHERE a = 1) ON CONFLICT DO NOTHING";
    let found: Vec<_> =
        conditions(insert).into_iter().map(|r| without_queries(&insert[r])).collect();
    assert_eq!(found, ["NOT EXISTS (SELECT ...)", "a = 1"]);
}
