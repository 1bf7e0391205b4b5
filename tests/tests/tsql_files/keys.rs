//! SQL Server only warns when a key is made too long; the insert of a long row fails, for ever.

use std::collections::BTreeSet;

use crate::{
    files::{QueryFile, migrations, other},
    flow::statements,
    lints::{hold, notices},
    schema::{Column, Schema, Type, names},
    scope::Scope,
    tokens::render,
};

/// Of a clustered key, and of a table variable's.
const CLUSTERED: usize = 900;
const OTHER: usize = 1_700;

fn bytes(kind: &Type) -> usize {
    match kind.base.as_str() {
        "bit" | "tinyint" => 1,
        "smallint" => 2,
        "int" => 4,
        "datetime2" | "bigint" | "float" => 8,
        "uniqueidentifier" => 16,
        // (max) is no key at all.
        "nvarchar" => kind.size.parse::<usize>().map_or(1_000_000, |n| 2 * n),
        _ => 1_000_000,
    }
}

fn total(columns: &[Column], key: &[String]) -> usize {
    let of = |name: &String| {
        let column = columns.iter().find(|column| column.name == *name);
        column.map_or(1_000_000, |column| bytes(&column.kind))
    };
    key.iter().map(of).sum()
}

fn schema_faults(schema: &Schema) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, index) in &schema.indexes {
        let limit = if index.is_clustered { CLUSTERED } else { OTHER };
        let sum = total(&schema.tables[&index.table], &index.key);
        if sum > limit {
            faults.push(format!("{name}: {sum} bytes, at most {limit}"));
        }
    }
    faults
}

/// The keys of table variables.
pub(crate) fn faults(file: &QueryFile, schema: &Schema) -> Vec<String> {
    let scope = Scope::of(file, schema);
    let mut faults = Vec::new();
    for statement in scope.statements.iter().filter(|statement| statement.starts(&["DECLARE"])) {
        let tokens = &statement.tokens;
        for at in 0..tokens.len().saturating_sub(1) {
            if !tokens[at].is("PRIMARY") && !tokens[at].is("UNIQUE") {
                continue;
            }
            let variable = (0..at).rev().find(|at| tokens[*at].is_variable());
            let table = variable.map(|at| &tokens[at].text).and_then(|name| scope.tables.get(name));
            let Some(columns) = table else { continue };
            let open = (at..at + 4).find(|at| tokens.get(*at).is_some_and(|token| token.is("(")));
            let depth = tokens[at].depth;
            let is_start = |n: &usize| match tokens[*n].depth {
                n_depth if n_depth == depth => tokens[*n].is(","),
                n_depth => n_depth + 1 == depth && tokens[*n].is("("),
            };
            let start = (0..at).rev().find(is_start);
            let first = start.map_or(0, |at| at + 1);
            let key = match open {
                Some(open) if first == at => names(tokens, open),
                _ => vec![tokens[first].text.clone()],
            };
            let is_nonclustered = tokens[at].is("UNIQUE")
                || (at..at + 4).any(|at| tokens.get(at).is_some_and(|t| t.is("NONCLUSTERED")));
            let limit = if is_nonclustered { OTHER } else { CLUSTERED };
            let sum = total(columns, &key);
            if sum > limit {
                faults.push(format!(
                    "line {}: a key of {sum} bytes, at most {limit}",
                    tokens[at].line
                ));
            }
        }
    }
    faults
}

#[test]
fn every_key_fits() {
    assert_eq!(schema_faults(&Schema::read()), [""; 0]);
    hold(faults);
}

#[test]
fn a_long_key_is_noticed() {
    let good = "DECLARE @a TABLE (Name nvarchar(255) NOT NULL PRIMARY KEY, Seq bigint NOT NULL);
DECLARE @b TABLE (Name nvarchar(255) NOT NULL, Other nvarchar(100) NOT NULL, PRIMARY KEY (Name, Other));";
    notices(
        faults,
        good,
        &[
            ("Name nvarchar(255) NOT NULL PRIMARY", "Name nvarchar(500) NOT NULL PRIMARY"),
            ("Other nvarchar(100)", "Other nvarchar(255)"),
            ("Name nvarchar(255) NOT NULL PRIMARY", "Name nvarchar(max) NOT NULL PRIMARY"),
        ],
    );
    let text = other("schema.sql");
    for (from, to) in [
        ("JobsHot (Queue, Priority DESC", "JobsHot (Queue, Tags, Priority DESC"),
        ("CLUSTERED (Queue, Shard)", "CLUSTERED (Queue, Queue, Shard)"),
    ] {
        assert!(text.contains(from));
        assert!(!schema_faults(&Schema::of(&text.replace(from, to))).is_empty(), "{to}: unnoticed");
    }
}

/// The tables and indexes that a text creates.
fn created(text: &str) -> BTreeSet<String> {
    let is_made = |words: &[&str]| {
        words.first() == Some(&"CREATE")
            && words.iter().take(4).any(|word| matches!(*word, "TABLE" | "INDEX"))
    };
    let rendered = statements(text).into_iter().map(|statement| render(&statement.tokens));
    let made = rendered.filter(|text| is_made(&text.split(' ').collect::<Vec<_>>()));
    made.collect()
}

#[test]
fn the_schema_is_what_the_migrations_make() {
    let mut made = created(&other("ledger.sql"));
    for migration in migrations() {
        made.extend(created(&migration.text));
    }
    let stated = created(&other("schema.sql"));
    assert!(stated.len() >= 20, "{stated:#?}");
    assert_eq!(made, stated);
}
