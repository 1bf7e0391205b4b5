//! Text is compared byte for byte: the database's own collation makes `Order-7` equal `order-7`, and a mix of two is error 468.

use std::ops::Range;

use crate::{
    files::QueryFile,
    lints::{hold, notices},
    relations::comparisons,
    schema::{BINARY, Schema},
    scope::{Origin, Place, Scope, Value},
    tokens::{render, split},
};

pub(crate) fn faults(file: &QueryFile, schema: &Schema) -> Vec<String> {
    let scope = Scope::of(file, schema);
    let mut faults = Vec::new();
    for (table, columns) in &scope.tables {
        for column in columns.iter().filter(|column| column.kind.is_string()) {
            if column.kind.collation.as_deref() != Some(BINARY) {
                faults.push(format!("{table}.{} has no COLLATE {BINARY}", column.name));
            }
        }
    }
    scope.each(|place| {
        faults.extend(compared(place));
        faults.extend(grouped(place));
    });
    faults
}

/// A value that brings the database's collation, or JSON's, into a comparison.
fn is_open(value: &Value) -> bool {
    value.kind.is_string() && !value.is_binary() && !is_variable(value)
}

/// A variable takes the collation of what it is compared with.
fn is_variable(value: &Value) -> bool {
    matches!(value.origin, Origin::Parameter | Origin::Local)
}

fn compared(place: Place<'_>) -> Vec<String> {
    let tokens = &place.statement.tokens;
    let mut faults = Vec::new();
    for comparison in comparisons(place) {
        let sides = [&comparison.left, &comparison.right];
        let known: Vec<Value> =
            sides.into_iter().flatten().filter_map(|s| place.value(s.clone())).collect();
        let line = tokens[comparison.at].line;
        if known.iter().any(is_open) {
            faults.push(format!("line {line}: a comparison without COLLATE {BINARY}"));
        }
        let are_strings = !known.is_empty() && known.iter().all(|value| value.kind.is_string());
        if are_strings && known.iter().all(|value| is_variable(value) && !value.is_binary()) {
            faults.push(format!("line {line}: compared by the collation of the database"));
        }
    }
    faults
}

/// What DISTINCT, GROUP BY, ORDER BY and PARTITION BY compare.
fn grouped(place: Place<'_>) -> Vec<String> {
    let tokens = &place.statement.tokens;
    let mut expressions: Vec<Range<usize>> = Vec::new();
    for block in place.blocks {
        if tokens.get(block.range.start + 1).is_some_and(|token| token.is("DISTINCT")) {
            expressions.extend(block.items.iter().map(|item| item.expression.clone()));
        }
    }
    let is_by = |at: &usize| tokens[*at].is("BY");
    for by in (0..tokens.len()).filter(is_by) {
        let depth = tokens[by].depth;
        let ends = |at: &usize| {
            let token = &tokens[*at];
            let ends = ["ORDER", "HAVING", "OPTION", "UNION", "ROWS", "RANGE", "OFFSET", "FOR"];
            token.depth < depth || (token.depth == depth && token.is_any(&ends))
        };
        let end = (by + 1..tokens.len()).find(ends).unwrap_or(tokens.len());
        for mut part in split(tokens, by + 1..end, depth, ",") {
            if tokens[part.end - 1].is_any(&["ASC", "DESC"]) {
                part.end -= 1;
            }
            expressions.push(part);
        }
    }
    let is_fault =
        |part: &Range<usize>| place.value(part.clone()).is_some_and(|value| is_open(&value));
    let say = |part: Range<usize>| {
        format!(
            "line {}: {} without COLLATE {BINARY}",
            tokens[part.start].line,
            render(&tokens[part])
        )
    };
    expressions.into_iter().filter(is_fault).map(say).collect()
}

#[test]
fn text_is_compared_byte_for_byte() {
    hold(faults);
}

#[test]
fn another_collation_is_noticed() {
    let good = "-- @queues nvarchar(max)\n-- @queue nvarchar(255)
DECLARE @served TABLE (Name nvarchar(255) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY);
INSERT INTO @served (Name)
SELECT DISTINCT CONVERT(nvarchar(255), j.[value]) COLLATE Latin1_General_100_BIN2
FROM OPENJSON(@queues) AS j;
INSERT INTO @served (Name)
SELECT j.Name COLLATE Latin1_General_100_BIN2
FROM OPENJSON(@queues) WITH (Name nvarchar(255) '$.q', N int '$.n') AS j
WHERE j.N > 1
GROUP BY j.Name COLLATE Latin1_General_100_BIN2 ;
SELECT q.Name
FROM OPENJSON(@queues) WITH (Name nvarchar(255) '$.q') AS j
INNER JOIN [chokaq].Queues AS q ON q.Name = j.Name COLLATE Latin1_General_100_BIN2
WHERE q.Name = @queue AND q.Name <> N'x' AND @queue IS NOT NULL;";
    let collate = " COLLATE Latin1_General_100_BIN2";
    let without = |text: &str| (format!("{text}{collate}"), text.to_owned());
    let changes = [
        without("Name nvarchar(255)"),
        without("j.[value])"),
        without("GROUP BY j.Name"),
        without("q.Name = j.Name"),
        (
            "COLLATE Latin1_General_100_BIN2 NOT".to_owned(),
            "COLLATE Latin1_General_CI_AS NOT".to_owned(),
        ),
        ("@queue IS NOT NULL".to_owned(), "@queue = N'Mail'".to_owned()),
        (
            "q.Name <> N'x'".to_owned(),
            "q.Name IN (SELECT j.[value] FROM OPENJSON(@queues) AS j)".to_owned(),
        ),
    ];
    for (from, to) in &changes {
        notices(faults, good, &[(from, to)]);
    }
}
