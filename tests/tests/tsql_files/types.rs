//! What is compared has one type, so that no column is converted and no seek becomes a scan; what is stored fits.

use std::ops::Range;

use crate::{
    files::QueryFile,
    lints::{hold, notices},
    relations::{Stored, comparisons, operand_after, stored},
    schema::{Schema, Type},
    scope::{Origin, Place, Scope, Value},
    tokens::render,
};

pub(crate) fn faults(file: &QueryFile, schema: &Schema) -> Vec<String> {
    let scope = Scope::of(file, schema);
    let mut faults = Vec::new();
    scope.each(|place| {
        faults.extend(compared(place));
        faults.extend(chosen(place));
        for stored in stored(place) {
            faults.extend(fault_of(place, &stored));
        }
    });
    faults
}

fn compared(place: Place<'_>) -> Vec<String> {
    let tokens = &place.statement.tokens;
    let mut faults = Vec::new();
    for comparison in comparisons(place) {
        let (Some(left), Some(right)) = (comparison.left, comparison.right) else { continue };
        let both = (place.value(left.clone()), place.value(right.clone()));
        let (Some(a), Some(b)) = both else { continue };
        if a.kind.name() != b.kind.name() {
            let (line, a, b) = (tokens[comparison.at].line, a.kind.name(), b.kind.name());
            let (left, right) = (render(&tokens[left]), render(&tokens[right]));
            faults.push(format!("line {line}: {left} is {a}, {right} is {b}"));
        }
    }
    faults
}

/// COALESCE and CASE choose among values of one type: else one of them is converted.
fn chosen(place: Place<'_>) -> Vec<String> {
    let tokens = &place.statement.tokens;
    let mut faults = Vec::new();
    for at in 0..tokens.len() {
        let Some(end) = tokens[at]
            .is_any(&["COALESCE", "ISNULL", "CASE"])
            .then(|| operand_after(tokens, at))
            .flatten()
        else {
            continue;
        };
        let mut names: Vec<String> =
            place.branches(&(at..end)).iter().map(|value| value.kind.name()).collect();
        names.sort();
        names.dedup();
        if names.len() > 1 {
            let (line, expression) = (tokens[at].line, render(&tokens[at..end]));
            faults.push(format!("line {line}: {expression} is {}", names.join(" or ")));
        }
    }
    faults
}

const INTEGERS: [&str; 5] = ["bit", "tinyint", "smallint", "int", "bigint"];

/// Whether every value of a type is one of another.
fn widens(from: &Type, to: &Type) -> bool {
    let rank = |kind: &Type| INTEGERS.iter().position(|known| *known == kind.base);
    match (rank(from), rank(to)) {
        (Some(from), Some(to)) => from <= to,
        (None, None) if from.base == to.base => length(from) <= length(to),
        _ => false,
    }
}

fn length(kind: &Type) -> u64 {
    if kind.size == "max" { u64::MAX } else { kind.size.parse().unwrap_or(0) }
}

fn fault_of(place: Place<'_>, stored: &Stored) -> Option<String> {
    let tokens = &place.statement.tokens;
    let value = place.value(stored.expression.clone())?;
    let (from, to) = (value.kind.name(), stored.into.kind.name());
    let line = tokens[stored.expression.start].line;
    let say = |what: &str| {
        let expression = render(&tokens[stored.expression.clone()]);
        Some(format!("line {line}: {} {to} is given {expression}, {what}", stored.name))
    };
    let is_from_outside = matches!(value.origin, Origin::Parameter | Origin::Json);
    if is_from_outside && from != to {
        return say(&format!("which is {from}"));
    }
    if !widens(&value.kind, &stored.into.kind) {
        return say(&format!("which may be longer: {from}"));
    }
    let stands_in_column = matches!(stored.into.origin, Origin::Table | Origin::Variable);
    let may_be_null = value.is_nullable && stands_in_column && !stored.into.is_nullable;
    if may_be_null && is_plain_column(&value, stored) && !is_compared(place, stored) {
        return say("which may be NULL");
    }
    None
}

fn is_plain_column(value: &Value, stored: &Stored) -> bool {
    matches!(value.origin, Origin::Table | Origin::Variable) && stored.expression.len() <= 3
}

/// Whether the query compares the column: then NULL has not come through.
fn is_compared(place: Place<'_>, stored: &Stored) -> bool {
    let tokens = &place.statement.tokens;
    let column = &tokens[stored.expression.end - 1].text;
    let conjuncts = place.blocks.iter().flat_map(|block| &block.conjuncts);
    let says = |range: &Range<usize>| {
        let part = &tokens[range.clone()];
        let is_null = part.len() > 2 && part[part.len() - 2].is("IS");
        !is_null && part.iter().any(|token| token.text == *column)
    };
    conjuncts.filter(|range| says(range)).count() > 0
}

#[test]
fn what_is_compared_or_stored_has_the_type_of_its_column() {
    hold(faults);
}

#[test]
fn another_type_is_noticed() {
    let good = "-- @worker nvarchar(255), who\n-- @items nvarchar(max)\n-- @lease uniqueidentifier
DECLARE @n int = 1;
DECLARE @in TABLE (Seq bigint NOT NULL PRIMARY KEY, LeaseId uniqueidentifier NOT NULL, Output nvarchar(max) NULL);
DECLARE @out TABLE (Seq bigint NOT NULL, WorkerId nvarchar(255) NULL, FetchedAtUtc datetime2(3) NULL);
INSERT INTO @in (Seq, LeaseId, Output)
SELECT j.Seq, j.LeaseId, j.Output
FROM OPENJSON(@items) WITH (Seq bigint '$.s', LeaseId uniqueidentifier '$.l', Output nvarchar(max) '$.o') AS j;
UPDATE h
SET Status = 1, WorkerId = COALESCE(@worker, h.WorkerId), CreatedBy = @worker, Priority = CASE WHEN @n = 1 THEN @n ELSE h.Priority END, AttemptCount = h.AttemptCount + 1
OUTPUT inserted.Seq, inserted.WorkerId, deleted.FetchedAtUtc INTO @out (Seq, WorkerId, FetchedAtUtc)
FROM @in AS i
INNER JOIN [chokaq].JobsHot AS h ON h.Seq = i.Seq
WHERE h.WorkerId = @worker AND i.LeaseId = h.LeaseId AND h.LeaseId IN (@lease);
UPDATE [chokaq].JobsHot SET AttemptCount = @n WHERE LeaseId = CONVERT(uniqueidentifier, @worker) AND AttemptCount = (SELECT MAX(f.AttemptCount) FROM [chokaq].JobsHot AS f);";
    notices(
        faults,
        good,
        &[
            ("@worker nvarchar(255)", "@worker nvarchar(max)"),
            ("@worker nvarchar(255)", "@worker varchar(255)"),
            ("@lease uniqueidentifier", "@lease nvarchar(36)"),
            ("DECLARE @n int", "DECLARE @n bigint"),
            ("(Seq bigint NOT NULL PRIMARY", "(Seq int NOT NULL PRIMARY"),
            ("LeaseId uniqueidentifier NOT NULL, Output", "LeaseId nvarchar(36) NOT NULL, Output"),
            ("(Seq bigint '$.s'", "(Seq int '$.s'"),
            ("Output nvarchar(max) '$.o'", "Output nvarchar(4000) '$.o'"),
            ("TABLE (Seq bigint NOT NULL, WorkerId", "TABLE (Seq int NOT NULL, WorkerId"),
            ("WorkerId nvarchar(255) NULL", "WorkerId nvarchar(100) NULL"),
            ("FetchedAtUtc datetime2(3) NULL", "FetchedAtUtc datetime2(3) NOT NULL"),
            ("CONVERT(uniqueidentifier,", "CONVERT(nvarchar(36),"),
            ("MAX(f.AttemptCount)", "MAX(f.Seq)"),
            ("CreatedBy = @worker", "CreatedBy = @items"),
            ("COALESCE(@worker,", "COALESCE(@items,"),
            ("ELSE h.Priority END", "ELSE h.TimeoutMs END"),
        ],
    );
}
