//! The queries of a statement: what each reads, compares, selects, sets and puts out.

use std::ops::Range;

use crate::{
    flow::Statement,
    schema::names,
    sources::{From, Source, sources},
    tokens::{Token, close_of, split},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Select,
    Update,
    Delete,
    Insert,
}

/// One SELECT, UPDATE or DELETE, or the head of an INSERT.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) verb: Verb,
    pub(crate) range: Range<usize>,
    pub(crate) depth: usize,
    /// The query around it.
    pub(crate) parent: Option<usize>,
    pub(crate) sources: Vec<Source>,
    /// Of its WHERE and its ON clauses. A clause with an OR outside parentheses is one.
    pub(crate) conjuncts: Vec<Range<usize>>,
    pub(crate) items: Vec<Item>,
    /// `column = expression` of a SET: the place of the `=`, and the expression.
    pub(crate) assignments: Vec<(usize, Range<usize>)>,
    /// The table, variable or alias that an INSERT, UPDATE or DELETE changes.
    pub(crate) target: Option<String>,
    /// Those that an INSERT names.
    pub(crate) columns: Vec<String>,
    pub(crate) output: Option<Output>,
}

/// One expression of a SELECT list.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) expression: Range<usize>,
    pub(crate) name: Option<String>,
    /// The place of the `=` in `@variable = expression`.
    pub(crate) assigns: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) items: Vec<Range<usize>>,
    /// The variable and its columns; none where the rows go to the client.
    pub(crate) into: Option<(String, Vec<String>)>,
}

/// What ends a clause, at the depth of its query.
const CLAUSES: [&str; 13] = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "OPTION",
    "OUTPUT",
    "SET",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "VALUES",
];

/// The queries of a statement, those outside before those inside.
pub(crate) fn blocks(statement: &Statement) -> Vec<Block> {
    let tokens = &statement.tokens;
    let mut found: Vec<Block> = Vec::new();
    for at in 0..tokens.len() {
        if let Some(verb) = verb_at(tokens, at) {
            let range = at..end_of(tokens, at, verb);
            let around =
                |block: &Block| block.range.contains(&at) && block.depth < tokens[at].depth;
            let parent = found.iter().rposition(around);
            found.push(block(tokens, verb, range, parent));
        }
    }
    found
}

fn verb_at(tokens: &[Token], at: usize) -> Option<Verb> {
    let token = &tokens[at];
    if token.is("SELECT") {
        return Some(Verb::Select);
    }
    let begins = token.depth == 0 && (at == 0 || tokens[at - 1].is(")"));
    match () {
        () if begins && token.is("UPDATE") => Some(Verb::Update),
        () if begins && token.is("DELETE") => Some(Verb::Delete),
        () if begins && token.is("INSERT") => Some(Verb::Insert),
        () => None,
    }
}

fn end_of(tokens: &[Token], start: usize, verb: Verb) -> usize {
    let depth = tokens[start].depth;
    let ends = |at: &usize| {
        let token = &tokens[*at];
        let is_next = token.depth == depth && token.is_any(&["UNION", "EXCEPT", "INTERSECT"]);
        let is_body = verb == Verb::Insert
            && token.depth == depth
            && token.is_any(&["SELECT", "EXEC", "VALUES"]);
        token.depth < depth || is_next || is_body
    };
    (start + 1..tokens.len()).find(ends).unwrap_or(tokens.len())
}

/// The clauses of a query: the place of the word that begins each, and its end.
fn clauses(tokens: &[Token], range: &Range<usize>) -> Vec<(usize, usize)> {
    let depth = tokens[range.start].depth;
    // A column may be called Output.
    let is_column = |at: usize| at > 0 && tokens[at - 1].is_any(&[".", ",", "AS", "SELECT"]);
    let is_start =
        |at: &usize| tokens[*at].depth == depth && tokens[*at].is_any(&CLAUSES) && !is_column(*at);
    let mut starts: Vec<usize> = range.clone().filter(is_start).collect();
    if starts.first() != Some(&range.start) {
        starts.insert(0, range.start);
    }
    let ends = starts.iter().skip(1).copied().chain([range.end]).collect::<Vec<_>>();
    starts.into_iter().zip(ends).collect()
}

fn block(tokens: &[Token], verb: Verb, range: Range<usize>, parent: Option<usize>) -> Block {
    let depth = tokens[range.start].depth;
    let mut block = Block {
        verb,
        range: range.clone(),
        depth,
        parent,
        sources: Vec::new(),
        conjuncts: Vec::new(),
        items: Vec::new(),
        assignments: Vec::new(),
        target: None,
        columns: Vec::new(),
        output: None,
    };
    for (start, end) in clauses(tokens, &range) {
        let word = &tokens[start];
        if word.is("SELECT") {
            block.items = items(tokens, start + 1..end, depth);
        } else if word.is_any(&["UPDATE", "DELETE", "INSERT"]) {
            change(tokens, start + 1..end, &mut block);
        } else if word.is("FROM") {
            let (found, conditions) = sources(tokens, start + 1..end, depth);
            block.sources.extend(found);
            for condition in conditions {
                block.conjuncts.extend(conjuncts(tokens, condition));
            }
        } else if word.is_any(&["WHERE", "HAVING"]) {
            block.conjuncts.extend(conjuncts(tokens, start + 1..end));
        } else if word.is("SET") {
            block.assignments = assignments(tokens, start + 1..end, depth);
        } else if word.is("OUTPUT") {
            block.output = Some(output(tokens, start + 1..end, depth));
        }
    }
    name_target(&mut block);
    block
}

/// `[TOP (n)] target` of UPDATE and DELETE, `INTO target (columns)` of INSERT.
fn change(tokens: &[Token], range: Range<usize>, block: &mut Block) {
    let mut at = range.start;
    if at < range.end && tokens[at].is("TOP") {
        at = close_of(tokens, at + 1) + 1;
    }
    if at < range.end && tokens[at].is("INTO") {
        at += 1;
    }
    if at >= range.end {
        return;
    }
    let (mut found, _) = sources(tokens, at..range.end, block.depth);
    let Some(source) = found.pop() else { return };
    block.target = Some(source.alias.clone());
    let open = (at..range.end).find(|at| tokens[*at].is("(") && tokens[*at].depth == block.depth);
    if block.verb == Verb::Insert {
        block.columns = open.map(|open| names(tokens, open)).unwrap_or_default();
    }
    block.sources.push(source);
}

/// `UPDATE h ... FROM t AS h`: the first source only repeats an alias of the FROM clause.
fn name_target(block: &mut Block) {
    if block.verb == Verb::Delete && block.target.is_none() {
        block.target = block.sources.first().map(|source| source.alias.clone());
    }
    let repeats = |source: &Source| matches!(source.from, From::Other(_) | From::Variable(_));
    if let [first, rest @ ..] = block.sources.as_slice()
        && repeats(first)
        && rest.iter().any(|source| source.alias == first.alias)
    {
        block.sources.remove(0);
    }
}

fn items(tokens: &[Token], range: Range<usize>, depth: usize) -> Vec<Item> {
    let mut start = range.start;
    while start < range.end && tokens[start].is_any(&["DISTINCT", "ALL"]) {
        start += 1;
    }
    if start < range.end && tokens[start].is("TOP") {
        let is_list = tokens[start + 1].is("(");
        start = if is_list { close_of(tokens, start + 1) + 1 } else { start + 2 };
    }
    let parts = split(tokens, start..range.end, depth, ",");
    parts.into_iter().map(|part| item(tokens, part, depth)).collect()
}

fn item(tokens: &[Token], part: Range<usize>, depth: usize) -> Item {
    let mut item = Item { expression: part.clone(), name: None, assigns: None };
    if part.len() > 2 && tokens[part.start].is_variable() && tokens[part.start + 1].is("=") {
        item.assigns = Some(part.start + 1);
        item.expression = part.start + 2..part.end;
    } else if part.len() > 2 && tokens[part.end - 2].is("AS") && tokens[part.end - 2].depth == depth
    {
        item.name = Some(tokens[part.end - 1].text.clone());
        item.expression = part.start..part.end - 2;
    } else if tokens[part.end - 1].is_name() {
        item.name = Some(tokens[part.end - 1].text.clone());
    }
    item
}

pub(crate) fn assignments(
    tokens: &[Token],
    range: Range<usize>,
    depth: usize,
) -> Vec<(usize, Range<usize>)> {
    let mut found = Vec::new();
    for part in split(tokens, range, depth, ",") {
        let equals = part.clone().find(|at| tokens[*at].depth == depth && tokens[*at].is("="));
        if let Some(equals) = equals {
            found.push((equals, equals + 1..part.end));
        }
    }
    found
}

fn output(tokens: &[Token], range: Range<usize>, depth: usize) -> Output {
    let into = range.clone().find(|at| tokens[*at].depth == depth && tokens[*at].is("INTO"));
    let items = split(tokens, range.start..into.unwrap_or(range.end), depth, ",");
    let into = into.map(|at| {
        let is_listed = tokens.get(at + 2).is_some_and(|token| token.is("("));
        let columns = if is_listed { names(tokens, at + 2) } else { Vec::new() };
        (tokens[at + 1].text.clone(), columns)
    });
    Output { items, into }
}

/// The parts between the ANDs of a condition; the condition itself where an OR stands beside them.
pub(crate) fn conjuncts(tokens: &[Token], range: Range<usize>) -> Vec<Range<usize>> {
    let Some(depth) = range.clone().map(|at| tokens[at].depth).min() else { return Vec::new() };
    let own = |at: &usize, word: &str| tokens[*at].depth == depth && tokens[*at].is(word);
    if range.clone().any(|at| own(&at, "OR")) {
        return vec![range];
    }
    let (mut parts, mut start, mut is_between) = (Vec::new(), range.start, false);
    for at in range.clone() {
        if own(&at, "BETWEEN") {
            is_between = true;
        } else if own(&at, "AND") && !std::mem::take(&mut is_between) {
            parts.push(start..at);
            start = at + 1;
        }
    }
    parts.push(start..range.end);
    parts
}

impl Block {
    /// The source that an alias names.
    pub(crate) fn source(&self, alias: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.alias.eq_ignore_ascii_case(alias))
    }

    /// The table of the schema that it changes.
    pub(crate) fn changed_table(&self) -> Option<&str> {
        self.source(self.target.as_deref()?)?.table()
    }
}
