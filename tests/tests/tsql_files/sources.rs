//! What a FROM clause reads: tables, table variables, JSON and sub-queries, with their hints.

use std::ops::Range;

use crate::{
    schema::{Column, columns},
    tokens::{Token, close_of, render, split},
};

#[derive(Debug, Clone)]
pub(crate) enum From {
    /// A table of the schema.
    Table(String),
    /// A table variable, with its `@`.
    Variable(String),
    /// OPENJSON ... WITH; without columns of its own: key, value, type.
    Json(Vec<Column>),
    /// A sub-query: the tokens inside its parentheses.
    Query(Range<usize>),
    /// A name that none of these explains.
    Other(String),
}

#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) from: From,
    /// The name that its columns go by.
    pub(crate) alias: String,
    pub(crate) hints: Vec<String>,
    /// Where it stands.
    pub(crate) at: usize,
}

impl Source {
    pub(crate) fn table(&self) -> Option<&str> {
        if let From::Table(table) = &self.from { Some(table) } else { None }
    }

    pub(crate) fn has(&self, hint: &str) -> bool {
        self.hints.iter().any(|known| known == hint)
    }

    /// The index that it names.
    pub(crate) fn index(&self) -> Option<&str> {
        let named = self.hints.iter().find_map(|hint| hint.strip_prefix("INDEX("));
        named.and_then(|rest| rest.strip_suffix(')'))
    }
}

/// A FROM clause: what it reads, and where its ON conditions stand.
pub(crate) fn sources(
    tokens: &[Token],
    clause: Range<usize>,
    depth: usize,
) -> (Vec<Source>, Vec<Range<usize>>) {
    let (mut found, mut conditions) = (Vec::new(), Vec::new());
    let mut at = clause.start;
    while at < clause.end {
        let token = &tokens[at];
        let is_joining = token.is_any(&[
            ",", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "OUTER", "LOOP", "HASH", "JOIN",
            "APPLY",
        ]);
        if is_joining {
            at += 1;
        } else if token.is("ON") {
            let end = end_of_condition(tokens, at + 1..clause.end, depth);
            conditions.push(at + 1..end);
            at = end;
        } else {
            let (source, end) = source(tokens, at, clause.end);
            found.push(source);
            at = end;
        }
    }
    (found, conditions)
}

fn end_of_condition(tokens: &[Token], range: Range<usize>, depth: usize) -> usize {
    let joins = ["INNER", "LEFT", "RIGHT", "FULL", "CROSS", "OUTER", "JOIN", ",", "ON"];
    let is_end = |at: &usize| {
        // LEFT(...) is a function.
        let is_call = tokens.get(at + 1).is_some_and(|next| next.is("("));
        tokens[*at].depth == depth && tokens[*at].is_any(&joins) && !is_call
    };
    range.clone().find(is_end).unwrap_or(range.end)
}

/// One source and the place after it.
fn source(tokens: &[Token], start: usize, end: usize) -> (Source, usize) {
    let (from, mut at) = what(tokens, start, end);
    let mut source = Source { from, alias: String::new(), hints: Vec::new(), at: start };
    if let From::Table(name) | From::Variable(name) | From::Other(name) = &source.from {
        source.alias.clone_from(name);
    }
    while at < end {
        let token = &tokens[at];
        if token.is("AS") {
            at += 1;
        } else if token.is("WITH") && tokens.get(at + 1).is_some_and(|next| next.is("(")) {
            let close = close_of(tokens, at + 1);
            source.hints = hints(tokens, at + 2..close);
            at = close + 1;
        } else if token.is("(") {
            // Names for the columns of a sub-query.
            at = close_of(tokens, at) + 1;
        } else if token.is_name() && !is_after_source(token) {
            source.alias.clone_from(&token.text);
            at += 1;
        } else {
            break;
        }
    }
    (source, at)
}

fn is_after_source(token: &Token) -> bool {
    token.is_any(&[
        "ON", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "OUTER", "JOIN", "WITH", "PIVOT",
    ])
}

fn what(tokens: &[Token], start: usize, end: usize) -> (From, usize) {
    let token = &tokens[start];
    if token.is("(") {
        let close = close_of(tokens, start);
        return (From::Query(start + 1..close), close + 1);
    }
    if token.is("OPENJSON") {
        let mut at = close_of(tokens, start + 1) + 1;
        let mut listed = Vec::new();
        if at < end && tokens[at].is("WITH") {
            let close = close_of(tokens, at + 1);
            listed = columns(tokens, at + 2..close);
            at = close + 1;
        }
        return (From::Json(listed), at);
    }
    if token.is_variable() {
        return (From::Variable(token.text.clone()), start + 1);
    }
    let mut at = start;
    while tokens.get(at + 1).is_some_and(|next| next.is(".")) && at + 2 < end {
        at += 2;
    }
    let name = tokens[at].text.clone();
    let is_ours = at == start + 2 && tokens[start].text.eq_ignore_ascii_case("chokaq");
    (if is_ours { From::Table(name) } else { From::Other(name) }, at + 1)
}

fn hints(tokens: &[Token], list: Range<usize>) -> Vec<String> {
    let Some(depth) = list.clone().next().map(|at| tokens[at].depth) else { return Vec::new() };
    let parts = split(tokens, list, depth, ",");
    parts.into_iter().map(|part| render(&tokens[part])).collect()
}
