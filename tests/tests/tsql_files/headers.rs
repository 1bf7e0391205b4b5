//! What the comments before the first statement say, and the parameters that they declare.

use std::collections::BTreeSet;

use crate::{
    files::QueryFile,
    lints::{hold, notices},
    schema::Schema,
    scope::{Origin, Scope},
    tokens::{Token, tokens},
};

const WORDS: [&str; 7] =
    ["Caller: ", "Intent: ", "Invariant: ", "Twin: ", "Locks: ", "Retry: ", "Answers: "];

pub(crate) fn faults(file: &QueryFile, schema: &Schema) -> Vec<String> {
    let mut faults = Vec::new();
    let header = file.header();
    let mut from = 0;
    for word in WORDS {
        match header[from..].iter().position(|line| line.starts_with(word)) {
            Some(at) => from += at + 1,
            None => faults.push(format!("{word:?} is missing, or not in its place")),
        }
    }
    faults.extend(parameter_faults(file, schema));
    faults
}

/// A parameter is declared in the header and used in the text; whatever else the text uses it declares itself.
fn parameter_faults(file: &QueryFile, schema: &Schema) -> Vec<String> {
    let scope = Scope::of(file, schema);
    let declared: BTreeSet<String> = file.parameters().into_iter().map(|(name, _)| name).collect();
    let is_local = |name: &String| scope.variables[name].origin == Origin::Local;
    let mut locals: BTreeSet<String> =
        scope.variables.keys().filter(|n| is_local(n)).cloned().collect();
    locals.extend(scope.tables.keys().cloned());
    let used: BTreeSet<String> =
        tokens(&file.text).into_iter().filter(Token::is_variable).map(|t| t.text).collect();
    let own: BTreeSet<String> =
        scope.variables.keys().chain(scope.tables.keys()).cloned().collect();
    let mut faults = Vec::new();
    faults.extend(used.difference(&own).map(|name| format!("{name} is declared nowhere")));
    faults.extend(declared.difference(&used).map(|name| format!("{name} is never used")));
    faults.extend(declared.intersection(&locals).map(|name| format!("{name} is declared twice")));
    faults
}

#[test]
fn every_query_has_its_header_and_its_parameters() {
    hold(faults);
}

#[test]
fn what_is_missing_in_a_header_is_noticed() {
    let good = "-- Caller: a\n-- Intent: b\n--   more\n-- Invariant: c\n-- Twin: d\n-- Locks: none kept.\n-- Retry: e\n-- @n int, a number\n-- Answers: f\nDECLARE @shard tinyint = @@SPID % 16, @b int;\nDECLARE @t TABLE (A int NOT NULL);\nSELECT @n, @shard, @b FROM @t;";
    for word in WORDS {
        notices(faults, good, &[(word, "")]);
    }
    notices(
        faults,
        good,
        &[
            ("-- @n int, a number\n", ""),
            ("-- @n int, a number", "-- @n int\n-- @m int"),
            ("-- @n int, a number", "-- @n int\n-- @shard tinyint"),
            ("SELECT @n,", "SELECT @n, @m,"),
            (", @b int;", ";"),
        ],
    );
}
