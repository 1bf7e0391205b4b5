//! Which values a statement compares with one another, and which it stores where.

use std::ops::Range;

use crate::{
    blocks::{Block, Verb, assignments},
    scope::{Origin, Place, Value},
    tokens::{Token, close_of, split},
};

/// Two expressions with a comparison between them; `None` for a side that is arithmetic.
pub(crate) struct Comparison {
    pub(crate) at: usize,
    pub(crate) left: Option<Range<usize>>,
    pub(crate) right: Option<Range<usize>>,
}

/// An expression and the place that it is stored in.
pub(crate) struct Stored {
    pub(crate) into: Value,
    pub(crate) name: String,
    pub(crate) expression: Range<usize>,
}

const COMPARING: [&str; 9] = ["=", "<>", "!=", "<", "<=", ">", ">=", "IN", "LIKE"];

fn is_arithmetic(token: &Token) -> bool {
    token.is_any(&["+", "-", "*", "/", "%"])
}

/// Whether a parenthesis after the word is not the word's own.
fn is_word(token: &Token) -> bool {
    token.is_any(&[
        "AND", "OR", "NOT", "WHERE", "ON", "IN", "WHEN", "THEN", "ELSE", "EXISTS", "SELECT",
    ])
}

/// Where the operand begins that ends before `end`.
fn operand_before(tokens: &[Token], end: usize) -> Option<usize> {
    let last = tokens.get(end.checked_sub(1)?)?;
    if end > 2 && tokens[end - 2].is("COLLATE") {
        return operand_before(tokens, end - 2);
    }
    let depth = last.depth;
    let mut start = end - 1;
    if last.is(")") {
        start = (0..end - 1).rev().find(|at| tokens[*at].depth == depth && tokens[*at].is("("))?;
        if start > 0 && tokens[start - 1].is_name() && !is_word(&tokens[start - 1]) {
            start -= 1;
        }
    } else if last.is("END") {
        start =
            (0..end - 1).rev().find(|at| tokens[*at].depth == depth && tokens[*at].is("CASE"))?;
    }
    while start > 1 && tokens[start - 1].is(".") {
        start -= 2;
    }
    let is_part =
        start > 0 && tokens[start - 1].depth == depth && is_arithmetic(&tokens[start - 1]);
    (!is_part).then_some(start)
}

/// Where the operand ends that begins at `start`.
pub(crate) fn operand_after(tokens: &[Token], start: usize) -> Option<usize> {
    let first = tokens.get(start)?;
    let depth = first.depth;
    let mut end = start + 1;
    if first.is("(") {
        end = close_of(tokens, start) + 1;
    } else if first.is("CASE") {
        let found =
            (start..tokens.len()).find(|at| tokens[*at].depth == depth && tokens[*at].is("END"));
        end = found? + 1;
    } else {
        while tokens.get(end).is_some_and(|token| token.is(".")) {
            end += 2;
        }
        if first.is_name() && tokens.get(end).is_some_and(|token| token.is("(")) {
            end = close_of(tokens, end) + 1;
        }
    }
    if tokens.get(end).is_some_and(|token| token.is("COLLATE")) {
        end += 2;
    }
    let is_part = tokens.get(end).is_some_and(|next| next.depth == depth && is_arithmetic(next));
    (!is_part && !is_arithmetic(first)).then_some(end)
}

/// Every comparison of a statement, those inside sub-queries and CASE too.
pub(crate) fn comparisons(place: Place<'_>) -> Vec<Comparison> {
    let tokens = &place.statement.tokens;
    let stored = equals_that_store(place);
    let mut found = Vec::new();
    for at in 1..tokens.len() {
        if !tokens[at].is_any(&COMPARING) || stored.contains(&at) {
            continue;
        }
        let end = if tokens[at - 1].is("NOT") { at - 1 } else { at };
        let left = operand_before(tokens, end).map(|start| start..end);
        if tokens[at].is("IN") {
            let list = at + 2..close_of(tokens, at + 1);
            let is_query = tokens.get(list.start).is_some_and(|token| token.is("SELECT"));
            let whole = at + 1..list.end + 1;
            let depth = tokens[at].depth + 1;
            let each = if is_query { vec![whole] } else { split(tokens, list, depth, ",") };
            let one = |right| Comparison { at, left: left.clone(), right: Some(right) };
            found.extend(each.into_iter().map(one));
        } else {
            let right = operand_after(tokens, at + 1).map(|end| at + 1..end);
            found.push(Comparison { at, left, right });
        }
    }
    found
}

/// The places of the `=` that store and do not compare.
fn equals_that_store(place: Place<'_>) -> Vec<usize> {
    let of_block = |block: &Block| {
        let set = block.assignments.iter().map(|(at, _)| *at);
        set.chain(block.items.iter().filter_map(|item| item.assigns)).collect::<Vec<_>>()
    };
    let mut found: Vec<usize> = place.blocks.iter().flat_map(of_block).collect();
    found.extend(of_variables(place).into_iter().map(|(at, _)| at));
    found
}

/// `SET @x = ...` and `DECLARE @x type = ...`: the place of each `=`, and its expression.
fn of_variables(place: Place<'_>) -> Vec<(usize, Range<usize>)> {
    let is_head = place.statement.starts(&["CREATE"]);
    if is_head || place.statement.starts(&["SET"]) || place.statement.starts(&["DECLARE"]) {
        let tokens = &place.statement.tokens;
        return assignments(tokens, 1..tokens.len(), 0);
    }
    Vec::new()
}

/// Every value that a statement stores in a column or a variable, as far as both are understood.
pub(crate) fn stored(place: Place<'_>) -> Vec<Stored> {
    let tokens = &place.statement.tokens;
    let mut found = Vec::new();
    let mut add = |equals: usize, name: usize, expression: Range<usize>| {
        let start = operand_before(tokens, equals).unwrap_or(equals - 1);
        let into = if tokens[name].is_variable() {
            place.scope.variables.get(&tokens[name].text).cloned()
        } else {
            place.value(start..equals)
        };
        if let Some(into) = into {
            found.push(Stored { into, name: tokens[name].text.clone(), expression });
        }
    };
    for block in place.blocks {
        for (equals, expression) in &block.assignments {
            add(*equals, equals - 1, expression.clone());
        }
        for item in &block.items {
            if let Some(equals) = item.assigns {
                add(equals, equals - 1, item.expression.clone());
            }
        }
    }
    for (equals, expression) in of_variables(place) {
        let name = (0..equals).rev().find(|at| tokens[*at].is_variable());
        add(equals, name.unwrap_or(equals - 1), expression);
    }
    found.extend(inserted(place));
    found.extend(put_out(place));
    found
}

/// What INSERT ... SELECT stores, column by column.
fn inserted(place: Place<'_>) -> Vec<Stored> {
    let Some(head) = place.blocks.first().filter(|block| block.verb == Verb::Insert) else {
        return Vec::new();
    };
    let Some(target) = head.target.as_deref().and_then(|name| head.source(name)) else {
        return Vec::new();
    };
    let columns = place.columns_of(target);
    let selects =
        place.blocks.iter().filter(|block| block.depth == 0 && block.verb == Verb::Select);
    let mut found = Vec::new();
    for (name, item) in selects.flat_map(|block| head.columns.iter().zip(&block.items)) {
        if let Some((_, into)) = columns.iter().find(|(known, _)| known == name) {
            let (into, name, expression) = (into.clone(), name.clone(), item.expression.clone());
            found.push(Stored { into, name, expression });
        }
    }
    found
}

/// What OUTPUT ... INTO stores, column by column.
fn put_out(place: Place<'_>) -> Vec<Stored> {
    let mut found = Vec::new();
    for output in place.blocks.iter().filter_map(|block| block.output.as_ref()) {
        let Some((variable, names)) = &output.into else { continue };
        let Some(columns) = place.scope.tables.get(variable) else { continue };
        for (name, expression) in names.iter().zip(&output.items) {
            if let Some(column) = columns.iter().find(|column| column.name == *name) {
                let into = Value {
                    kind: column.kind.clone(),
                    origin: Origin::Variable,
                    is_nullable: column.is_nullable,
                };
                found.push(Stored { into, name: name.clone(), expression: expression.clone() });
            }
        }
    }
    found
}
