//! What the names in a file stand for, and of which type a simple expression is.

use std::{collections::BTreeMap, ops::Range};

use crate::{
    blocks::{Block, Item, blocks},
    files::QueryFile,
    flow::{Statement, statements},
    schema::{BINARY, Column, Schema, Type, columns},
    sources::{From, Source},
    tokens::{Token, close_of, split, tokens},
};

/// Where a value comes from: some rules ask more of some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A column of the schema.
    Table,
    /// A column of a table variable.
    Variable,
    /// A column of OPENJSON.
    Json,
    /// A parameter of the call.
    Parameter,
    /// A local variable.
    Local,
    /// A CONVERT, or another expression.
    Made,
}

#[derive(Debug, Clone)]
pub(crate) struct Value {
    pub(crate) kind: Type,
    pub(crate) origin: Origin,
    pub(crate) is_nullable: bool,
}

/// A file with its names.
pub(crate) struct Scope<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) statements: Vec<Statement>,
    /// Parameters and local variables, with their `@`.
    pub(crate) variables: BTreeMap<String, Value>,
    /// Table variables, with their `@`.
    pub(crate) tables: BTreeMap<String, Vec<Column>>,
}

/// One statement, its queries, and the file around it.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) scope: &'a Scope<'a>,
    pub(crate) statement: &'a Statement,
    pub(crate) blocks: &'a [Block],
}

impl<'a> Scope<'a> {
    pub(crate) fn of(file: &QueryFile, schema: &'a Schema) -> Self {
        let statements = statements(&file.text);
        let (variables, tables) = (BTreeMap::new(), BTreeMap::new());
        let mut scope = Self { schema, statements, variables, tables };
        for (name, written) in file.parameters() {
            let kind = Type::at(&tokens(&written));
            scope.declare(name, kind, Origin::Parameter);
        }
        for statement in scope.statements.clone() {
            scope.read_declarations(&statement);
        }
        scope
    }

    fn declare(&mut self, name: String, kind: Type, origin: Origin) {
        self.variables.insert(name, Value { kind, origin, is_nullable: true });
    }

    fn read_declarations(&mut self, statement: &Statement) {
        let tokens = &statement.tokens;
        let is_procedure = statement.starts(&["CREATE"])
            && tokens.iter().take(4).any(|token| token.is_any(&["PROCEDURE", "PROC"]));
        let first = tokens.iter().position(Token::is_variable);
        let Some(first) = first.filter(|_| is_procedure || statement.starts(&["DECLARE"])) else {
            return;
        };
        let origin = if is_procedure { Origin::Parameter } else { Origin::Local };
        for part in split(tokens, first..tokens.len(), tokens[first].depth, ",") {
            let (name, rest) = (tokens[part.start].text.clone(), part.start + 1..part.end);
            let is_table = tokens.get(rest.start).is_some_and(|token| token.is("TABLE"));
            if is_table {
                let open = rest.start + 1;
                let listed = columns(tokens, open + 1..close_of(tokens, open));
                self.tables.insert(name, listed);
            } else if !rest.is_empty() {
                self.declare(name, Type::at(&tokens[rest]), origin);
            }
        }
    }

    /// Runs `check` over every statement with its queries.
    pub(crate) fn each(&self, mut check: impl FnMut(Place<'_>)) {
        for statement in &self.statements {
            let blocks = blocks(statement);
            check(Place { scope: self, statement, blocks: &blocks });
        }
    }
}

impl<'a> Place<'a> {
    /// The innermost query around a token.
    pub(crate) fn block_at(&self, at: usize) -> Option<usize> {
        let holds = |block: &Block| block.range.contains(&at);
        let held = self.blocks.iter().enumerate().filter(|(_, block)| holds(block));
        held.max_by_key(|(n, block)| (block.depth, *n)).map(|(n, _)| n)
    }

    /// The columns that a source offers.
    pub(crate) fn columns_of(&self, source: &Source) -> Vec<(String, Value)> {
        let of = |columns: &[Column], origin: Origin| {
            let value = |column: &Column| {
                let (kind, is_nullable) = (column.kind.clone(), column.is_nullable);
                (column.name.clone(), Value { kind, origin, is_nullable })
            };
            columns.iter().map(value).collect()
        };
        match &source.from {
            From::Table(table) => self
                .scope
                .schema
                .tables
                .get(table)
                .map(|c| of(c, Origin::Table))
                .unwrap_or_default(),
            From::Variable(name) => {
                self.scope.tables.get(name).map(|c| of(c, Origin::Variable)).unwrap_or_default()
            }
            From::Json(listed) if listed.is_empty() => {
                let shape =
                    [("key", "nvarchar(4000)"), ("value", "nvarchar(max)"), ("type", "int")];
                let column = |(name, written): (&str, &str)| Column {
                    name: name.to_owned(),
                    kind: Type::at(&tokens(written)),
                    is_nullable: true,
                };
                of(&shape.map(column), Origin::Json)
            }
            From::Json(listed) => of(listed, Origin::Json),
            From::Query(range) => self.columns_of_query(range),
            From::Other(_) => Vec::new(),
        }
    }

    fn columns_of_query(&self, range: &Range<usize>) -> Vec<(String, Value)> {
        let Some(block) = self.blocks.iter().find(|block| block.range.start == range.start) else {
            return Vec::new();
        };
        let column = |item: &Item| Some((item.name.clone()?, self.value(item.expression.clone())?));
        block.items.iter().filter_map(column).collect()
    }

    /// What a column is, as seen from a token.
    pub(crate) fn column(&self, at: usize, alias: Option<&str>, name: &str) -> Option<Value> {
        self.source_of(at, alias, name).map(|(_, value)| value)
    }

    /// The source that a column is from, and what it is.
    pub(crate) fn source_of(
        &self,
        at: usize,
        alias: Option<&str>,
        name: &str,
    ) -> Option<(&'a Source, Value)> {
        let mut next = self.block_at(at);
        while let Some(n) = next {
            let block = &self.blocks[n];
            let sources: Vec<&Source> = match alias {
                Some("inserted" | "deleted") => block
                    .target
                    .as_deref()
                    .and_then(|target| block.source(target))
                    .into_iter()
                    .collect(),
                Some(alias) => block.source(alias).into_iter().collect(),
                None => block.sources.iter().collect(),
            };
            for source in sources {
                let mut columns = self.columns_of(source).into_iter();
                if let Some((_, value)) = columns.find(|(known, _)| known == name) {
                    return Some((source, value));
                }
            }
            next = block.parent;
        }
        None
    }

    /// Of which type an expression is; `None` for literals, arithmetic and whatever is not understood.
    pub(crate) fn value(&self, mut range: Range<usize>) -> Option<Value> {
        let tokens = &self.statement.tokens;
        if range.len() > 2 && tokens[range.end - 2].is("COLLATE") {
            let collation = tokens[range.end - 1].text.clone();
            range.end -= 2;
            let mut value = self.value(range)?;
            value.kind.collation = Some(collation);
            return Some(value);
        }
        let first = tokens.get(range.start)?;
        match range.len() {
            1 if first.is_variable() => self.scope.variables.get(&first.text).cloned(),
            1 if first.is_name() => self.column(range.start, None, &first.text),
            3 if tokens[range.start + 1].is(".") => {
                self.column(range.start, Some(&first.text), &tokens[range.start + 2].text)
            }
            _ if first.is("(") && close_of(tokens, range.start) + 1 == range.end => {
                self.value_in_parentheses(range.start + 1..range.end - 1)
            }
            _ if range.len() > 3
                && tokens[range.start + 1].is("(")
                && close_of(tokens, range.start + 1) + 1 == range.end =>
            {
                self.value_of_call(&range)
            }
            _ if first.is("CASE") && tokens[range.end - 1].is("END") => one(self.branches(&range)),
            _ => None,
        }
    }

    fn value_in_parentheses(&self, inside: Range<usize>) -> Option<Value> {
        let query = self.blocks.iter().find(|block| block.range.start == inside.start);
        match query {
            Some(block) => match block.items.as_slice() {
                [item] => self.value(item.expression.clone()),
                _ => None,
            },
            None => self.value(inside),
        }
    }

    fn value_of_call(&self, range: &Range<usize>) -> Option<Value> {
        let tokens = &self.statement.tokens;
        let inside = range.start + 2..range.end - 1;
        let arguments = split(tokens, inside.clone(), tokens[inside.start].depth, ",");
        let name = &tokens[range.start];
        let made = |kind: Type| Value { kind, origin: Origin::Made, is_nullable: true };
        if name.is_any(&["CONVERT", "TRY_CONVERT"]) {
            return Some(made(Type::at(&tokens[arguments.first()?.clone()])));
        }
        if name.is_any(&["CAST", "TRY_CAST"]) {
            let cast = inside.clone().rev().find(|at| tokens[*at].is("AS"))?;
            return Some(made(Type::at(&tokens[cast + 1..inside.end])));
        }
        if name.is_any(&["MAX", "MIN"]) {
            return self.value(inside);
        }
        if name.is_any(&["COALESCE", "ISNULL", "NULLIF"]) {
            let mut known: Vec<Value> =
                arguments.into_iter().filter_map(|a| self.value(a)).collect();
            known.dedup_by(|a, b| a.kind == b.kind);
            return if known.len() == 1 { known.pop() } else { None };
        }
        let fixed = match name.text.to_uppercase().as_str() {
            "DATEDIFF" | "DATALENGTH" | "LEN" | "COUNT" | "ISJSON" => "int",
            "DATEDIFF_BIG" | "COUNT_BIG" => "bigint",
            _ => return None,
        };
        Some(made(Type::at(&crate::tokens::tokens(fixed))))
    }

    /// The values that COALESCE or CASE chooses among, as far as they are understood.
    pub(crate) fn branches(&self, range: &Range<usize>) -> Vec<Value> {
        let tokens = &self.statement.tokens;
        let depth = tokens[range.start].depth;
        if !tokens[range.start].is("CASE") {
            let parts = split(tokens, range.start + 2..range.end - 1, depth + 1, ",");
            return parts.into_iter().filter_map(|part| self.value(part)).collect();
        }
        let inner = range.start + 1..range.end - 1;
        let is_word = |at: usize| {
            tokens[at].depth == depth && tokens[at].is_any(&["WHEN", "THEN", "ELSE", "CASE", "END"])
        };
        let mut known = Vec::new();
        for at in inner.clone().filter(|at| tokens[*at].is_any(&["THEN", "ELSE"]) && is_word(*at)) {
            let end = (at + 1..inner.end).find(|at| is_word(*at)).unwrap_or(inner.end);
            known.extend(self.value(at + 1..end));
        }
        known
    }
}

/// The value of all, where they agree.
fn one(mut known: Vec<Value>) -> Option<Value> {
    known.dedup_by(|a, b| a.kind == b.kind);
    if known.len() == 1 { known.pop() } else { None }
}

impl Value {
    /// Whether its text is compared byte for byte, whatever the database's own collation.
    pub(crate) fn is_binary(&self) -> bool {
        self.kind.collation.as_deref() == Some(BINARY)
    }
}
