//! The tables and indexes of `schema.sql`, and column lists wherever they stand.

use std::{collections::BTreeMap, ops::Range};

use crate::{
    files::other,
    flow::{Statement, statements},
    tokens::{Token, close_of, split},
};

/// The collation that compares byte for byte.
pub(crate) const BINARY: &str = "Latin1_General_100_BIN2";

/// `nvarchar(255) COLLATE x`: base `nvarchar`, size `255`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Type {
    pub(crate) base: String,
    pub(crate) size: String,
    pub(crate) collation: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Type,
    pub(crate) is_nullable: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Index {
    pub(crate) table: String,
    pub(crate) key: Vec<String>,
    pub(crate) included: Vec<String>,
    /// The conjuncts of its WHERE.
    pub(crate) filter: Vec<Vec<Token>>,
    pub(crate) is_unique: bool,
    pub(crate) is_clustered: bool,
}

#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) tables: BTreeMap<String, Vec<Column>>,
    pub(crate) indexes: BTreeMap<String, Index>,
}

impl Type {
    pub(crate) fn is_string(&self) -> bool {
        matches!(self.base.as_str(), "nvarchar" | "varchar" | "nchar" | "char" | "sysname")
    }

    /// As it is written, without its collation.
    pub(crate) fn name(&self) -> String {
        if self.size.is_empty() {
            self.base.clone()
        } else {
            format!("{}({})", self.base, self.size)
        }
    }

    /// The type at the start of some tokens.
    pub(crate) fn at(tokens: &[Token]) -> Self {
        let base = tokens.first().map(|token| token.text.to_lowercase()).unwrap_or_default();
        let mut size = String::new();
        if tokens.get(1).is_some_and(|token| token.is("(")) {
            let inside = &tokens[2..close_of(tokens, 1)];
            size = inside.iter().map(|token| token.text.to_lowercase()).collect();
        }
        let collate = tokens.iter().position(|token| token.is("COLLATE"));
        let collation = collate.and_then(|at| tokens.get(at + 1)).map(|token| token.text.clone());
        Self { base, size, collation }
    }
}

/// The columns of a list in parentheses; constraints are left out. A column of OPENJSON may be NULL, whatever it says.
pub(crate) fn columns(tokens: &[Token], list: Range<usize>) -> Vec<Column> {
    let Some(first) = list.clone().next() else { return Vec::new() };
    let depth = tokens[first].depth;
    let mut found = Vec::new();
    for part in split(tokens, list, depth, ",") {
        let column = &tokens[part];
        if column[0].is_any(&["CONSTRAINT", "PRIMARY", "UNIQUE", "INDEX"]) {
            continue;
        }
        let words: Vec<String> = column.iter().map(|token| token.text.to_uppercase()).collect();
        let is_nullable = !words.windows(2).any(|pair| pair == ["NOT", "NULL"]);
        let kind = Type::at(&column[1..]);
        found.push(Column { name: column[0].text.clone(), kind, is_nullable });
    }
    found
}

/// The names in the parenthesis at `open`, without ASC and DESC.
pub(crate) fn names(tokens: &[Token], open: usize) -> Vec<String> {
    let inside = open + 1..close_of(tokens, open);
    let parts = split(tokens, inside, tokens[open].depth + 1, ",");
    parts.into_iter().map(|part| tokens[part.start].text.clone()).collect()
}

fn position(tokens: &[Token], word: &str) -> Option<usize> {
    tokens.iter().position(|token| token.depth == 0 && token.is(word))
}

fn index(tokens: &[Token]) -> Option<(String, Index)> {
    let at = position(tokens, "INDEX")?;
    let on = position(tokens, "ON")?;
    let open = on + tokens[on..].iter().position(|token| token.is("("))?;
    let include = position(tokens, "INCLUDE");
    let included = include.map(|at| names(tokens, at + 1)).unwrap_or_default();
    let mut filter = Vec::new();
    if let Some(start) = position(tokens, "WHERE") {
        let end = position(tokens, "WITH").unwrap_or(tokens.len());
        let parts = split(tokens, start + 1..end, 0, "AND");
        filter = parts.into_iter().map(|part| tokens[part].to_vec()).collect();
    }
    let made = Index {
        table: tokens[open - 1].text.clone(),
        key: names(tokens, open),
        included,
        filter,
        is_unique: position(tokens, "UNIQUE").is_some(),
        is_clustered: false,
    };
    Some((tokens[at + 1].text.clone(), made))
}

impl Schema {
    /// That of `schema.sql`.
    pub(crate) fn read() -> Self {
        Self::of(&other("schema.sql"))
    }

    pub(crate) fn of(text: &str) -> Self {
        let mut schema = Self { tables: BTreeMap::new(), indexes: BTreeMap::new() };
        for statement in statements(text) {
            if statement.starts(&["CREATE", "TABLE"]) {
                schema.add_table(&statement);
            } else if let Some((name, index)) = index(&statement.tokens) {
                schema.indexes.insert(name, index);
            }
        }
        schema
    }

    fn add_table(&mut self, statement: &Statement) {
        let tokens = &statement.tokens;
        let open = tokens.iter().position(|token| token.is("(")).expect("columns are listed");
        let table = tokens[open - 1].text.clone();
        self.tables.insert(table.clone(), columns(tokens, open + 1..close_of(tokens, open)));
        let key = tokens.windows(2).position(|pair| pair[0].is("PRIMARY") && pair[1].is("KEY"));
        let key = key.expect("a table has a primary key");
        let list = key + tokens[key..].iter().position(|token| token.is("(")).expect("a key");
        let index = Index {
            table,
            key: names(tokens, list),
            included: Vec::new(),
            filter: Vec::new(),
            is_unique: true,
            is_clustered: true,
        };
        self.indexes.insert(tokens[key - 1].text.clone(), index);
    }

    pub(crate) fn column(&self, table: &str, name: &str) -> Option<&Column> {
        self.tables.get(table)?.iter().find(|column| column.name == name)
    }
}

#[test]
fn the_schema_is_read() {
    let schema = Schema::read();
    assert!(schema.tables.len() >= 7 && schema.indexes.len() >= 20);
    let queue = schema.column("JobsHot", "Queue").expect("the column is there");
    assert_eq!((queue.kind.name().as_str(), queue.is_nullable), ("nvarchar(255)", false));
    assert_eq!(queue.kind.collation.as_deref(), Some(BINARY));
    let fetch = &schema.indexes["IX_JobsHot_Fetch"];
    assert_eq!(fetch.key, ["Queue", "Priority", "ScheduledAtUtc", "Seq"]);
    assert_eq!((fetch.table.as_str(), fetch.filter.len()), ("JobsHot", 2));
    let recovery = &schema.indexes["IX_JobsHot_FetchedRecovery"];
    assert_eq!(recovery.included, ["WorkerId", "LeaseId"]);
    let key = &schema.indexes["PK_MetricBuckets"];
    assert!(key.is_clustered && key.is_unique && key.key.len() == 3);
}
