//! DATEADD takes an int (24.8 days of milliseconds) and DATEDIFF gives one: a bigint overflows when the day comes, not in a test.

use std::ops::Range;

use crate::{
    files::QueryFile,
    lints::{hold, notices},
    schema::Schema,
    scope::{Place, Scope},
    tokens::{Kind, close_of, render, split},
};

pub(crate) fn faults(file: &QueryFile, schema: &Schema) -> Vec<String> {
    let scope = Scope::of(file, schema);
    let mut faults = Vec::new();
    scope.each(|place| faults.extend(faults_of(place)));
    faults
}

fn faults_of(place: Place<'_>) -> Vec<String> {
    let tokens = &place.statement.tokens;
    let mut faults = Vec::new();
    for at in 0..tokens.len().saturating_sub(1) {
        if !tokens[at + 1].is("(") || !tokens[at].is_any(&["DATEADD", "DATEDIFF"]) {
            continue;
        }
        let inside = at + 2..close_of(tokens, at + 1);
        let arguments = split(tokens, inside, tokens[at + 1].depth + 1, ",");
        let [part, number, _] = arguments.as_slice() else { continue };
        let line = tokens[at].line;
        if tokens[at].is("DATEADD") && !is_small(place, number.clone()) {
            let number = render(&tokens[number.clone()]);
            faults.push(format!("line {line}: {number} may be no int"));
        }
        let is_fine =
            tokens[part.start].is_any(&["millisecond", "ms", "microsecond", "nanosecond"]);
        if tokens[at].is("DATEDIFF") && is_fine {
            faults.push(format!("line {line}: DATEDIFF of milliseconds, not DATEDIFF_BIG"));
        }
    }
    faults
}

/// A literal, an int, a CONVERT to int, or a remainder of a division by a literal.
fn is_small(place: Place<'_>, mut number: Range<usize>) -> bool {
    let tokens = &place.statement.tokens;
    while tokens[number.start].is("-") {
        number.start += 1;
    }
    if tokens[number.start].is("(") && close_of(tokens, number.start) + 1 == number.end {
        return is_small(place, number.start + 1..number.end - 1);
    }
    let last = &tokens[number.end - 1];
    if number.len() > 2 && tokens[number.end - 2].is("%") {
        return last.kind == Kind::Number;
    }
    if number.len() == 1 && last.kind == Kind::Number {
        return true;
    }
    let call = &tokens[number.start];
    if call.is("COALESCE") {
        let inside = number.start + 2..number.end - 1;
        let parts = split(tokens, inside, tokens[number.start + 1].depth + 1, ",");
        return parts.into_iter().all(|part| is_small(place, part));
    }
    if let Some(value) = place.value(number.clone()) {
        return matches!(value.kind.base.as_str(), "int" | "smallint" | "tinyint");
    }
    is_arithmetic_of_ints(place, number)
}

/// `DATEDIFF(...) / 10 * 10`.
fn is_arithmetic_of_ints(place: Place<'_>, number: Range<usize>) -> bool {
    let tokens = &place.statement.tokens;
    let depth = tokens[number.start].depth;
    let is_operator =
        |at: &usize| tokens[*at].depth == depth && tokens[*at].is_any(&["+", "-", "*", "/", "%"]);
    let operators: Vec<usize> = number.clone().filter(is_operator).collect();
    let starts = std::iter::once(number.start).chain(operators.iter().map(|at| at + 1));
    let ends = operators.iter().copied().chain([number.end]);
    !operators.is_empty()
        && starts.zip(ends).all(|(start, end)| start < end && is_small(place, start..end))
}

#[test]
fn a_date_is_moved_by_an_int() {
    hold(faults);
}

#[test]
fn a_bigint_is_noticed() {
    let good = "-- @ms bigint\n-- @s int
DECLARE @now datetime2(3) = SYSUTCDATETIME();
DECLARE @a datetime2(3) = DATEADD(millisecond, -(@ms % 1000), DATEADD(second, -CONVERT(int, @ms / 1000), @now));
DECLARE @b datetime2(3) = DATEADD(second, DATEDIFF(second, '20000101', @now) / 10 * 10, '20000101');
SELECT DATEADD(millisecond, h.TimeoutMs % 1000, DATEADD(second, COALESCE(@s, 0), h.CreatedAtUtc)) AS A,
    DATEDIFF_BIG(millisecond, '19700101', h.CreatedAtUtc) AS B
FROM [chokaq].JobsHot AS h;";
    notices(
        faults,
        good,
        &[
            ("-(@ms % 1000)", "-@ms"),
            ("CONVERT(int, @ms / 1000)", "CONVERT(bigint, @ms / 1000)"),
            ("-CONVERT(int, @ms / 1000)", "-(@ms / 1000)"),
            (
                "DATEDIFF(second, '20000101', @now) / 10",
                "DATEDIFF_BIG(second, '20000101', @now) / 10",
            ),
            ("DATEDIFF(second,", "DATEDIFF(millisecond,"),
            ("h.TimeoutMs % 1000", "h.TimeoutMs"),
            ("h.TimeoutMs % 1000", "h.TimeoutMs % @ms"),
            ("COALESCE(@s, 0)", "COALESCE(@ms, 0)"),
            ("DATEDIFF_BIG(millisecond", "DATEDIFF(millisecond"),
        ],
    );
}
