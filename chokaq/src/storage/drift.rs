//! How a database differs from what the migrations make: two descriptions compared, whatever engine they are of.

use std::fmt;

/// The tables of a database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Schema {
    pub(super) tables: Vec<Table>,
}

impl Schema {
    /// Whether a table of the name is described.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.tables.iter().any(|table| table.name.eq_ignore_ascii_case(name))
    }

    /// Changes the table of the name, where there is one.
    pub(super) fn change(&mut self, name: &str, change: impl FnOnce(&mut Table)) {
        let table = self.tables.iter_mut().find(|table| table.name.eq_ignore_ascii_case(name));
        if let Some(table) = table {
            change(table);
        }
    }
}

/// A table, or a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    /// `table` or `view`.
    pub(super) kind: &'static str,
    pub(super) name: String,
    /// Settings of the whole table, such as `STRICT`; `None`: any will do.
    pub(super) options: Option<String>,
    pub(super) columns: Vec<Column>,
    pub(super) indexes: Vec<Index>,
    /// Those that fire.
    pub(super) triggers: Vec<String>,
}

impl Table {
    /// One with nothing in it.
    pub(super) fn new(kind: &'static str, name: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
            options: None,
            columns: Vec::new(),
            indexes: Vec::new(),
            triggers: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    /// As it is declared: `nvarchar(255)`.
    pub(super) kind: String,
    pub(super) collation: Option<String>,
    pub(super) is_nullable: bool,
    /// An INSERT may leave it out though it is not nullable: it has a default, or is computed.
    pub(super) fills_itself: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) name: String,
    /// `UNIQUE NONCLUSTERED`, `PRIMARY KEY CLUSTERED`; empty: nothing special.
    pub(super) kind: String,
    /// With ` DESC` and what else belongs to each, in their order.
    pub(super) keys: Vec<String>,
    /// Without an order.
    pub(super) included: Vec<String>,
    pub(super) filter: Option<String>,
    pub(super) is_disabled: bool,
}

/// What an engine's statements look like that put a difference right.
pub(super) trait Remedies {
    /// A table's name in a statement.
    fn table(&self, name: &str) -> String;

    /// Where a table's definition stands.
    fn create_table(&self, table: &Table) -> String;

    /// A column as a statement defines it, after its name.
    fn definition(&self, column: &Column) -> String;

    /// Gives a column that is there its definition.
    fn change_column(&self, table: &Table, column: &Column) -> String;

    /// Gives a table its options.
    fn change_options(&self, table: &Table, options: &str) -> String;

    /// Makes an index that is not there.
    fn create_index(&self, table: &Table, index: &Index) -> String;

    /// Removes an index.
    fn drop_index(&self, table: &Table, index: &Index) -> String;

    /// Brings a disabled index back.
    fn rebuild_index(&self, table: &Table, index: &Index) -> String;
}

/// The differences, a sentence each: what is where, what is expected, what is found, and what to do.
pub(super) fn compare(expected: &Schema, found: &Schema, remedies: &dyn Remedies) -> Vec<String> {
    let mut differences = Vec::new();
    for table in &expected.tables {
        match find(&found.tables, table, |table| &table.name) {
            None => differences.push(format!(
                "the {} {} is missing, or the login may not see it: {}",
                table.kind,
                table.name,
                remedies.create_table(table)
            )),
            Some(there) => Comparison {
                expected: table,
                found: there,
                remedies,
                differences: &mut differences,
            }
            .run(),
        }
    }
    for table in additional(&expected.tables, &found.tables, |table| &table.name) {
        differences.push(format!(
            "the {} {} is additional: harmless, chokaq neither reads nor writes it",
            table.kind, table.name
        ));
    }
    differences
}

struct Comparison<'a> {
    expected: &'a Table,
    found: &'a Table,
    remedies: &'a dyn Remedies,
    differences: &'a mut Vec<String>,
}

impl Comparison<'_> {
    fn run(&mut self) {
        self.options();
        self.columns();
        self.indexes();
        for trigger in &self.found.triggers {
            let name = &self.expected.name;
            self.differences.push(format!(
                "the table {name} has the trigger {trigger}, which chokaq did not make: it runs inside chokaq's statements and \
                 under their locks: drop it unless you need it"
            ));
        }
    }

    fn options(&mut self) {
        let Some(options) = &self.expected.options else { return };
        let found = self.found.options.as_deref().unwrap_or_default();
        if !options.eq_ignore_ascii_case(found) {
            self.differences.push(format!(
                "the table {} is {}, expected is {}: {}",
                self.expected.name,
                or_plain(found),
                or_plain(options),
                self.remedies.change_options(self.expected, options)
            ));
        }
    }

    fn columns(&mut self) {
        let Self { expected, found, remedies, .. } = *self;
        let table = &expected.name;
        for column in &expected.columns {
            match find(&found.columns, column, |column| &column.name) {
                None => self.differences.push(format!(
                    "the column {} of {table} is missing, expected is {column}: ALTER TABLE {} ADD {} {}",
                    column.name,
                    remedies.table(table),
                    column.name,
                    remedies.definition(column)
                )),
                Some(there) if !same_column(column, there) => self.differences.push(format!(
                    "the column {} of {table} is {there}, expected is {column}: {}",
                    column.name,
                    remedies.change_column(expected, column)
                )),
                Some(_) => {}
            }
        }
        for column in additional(&expected.columns, &found.columns, |column| &column.name) {
            let effect = if column.is_nullable || column.fills_itself {
                "harmless, chokaq neither reads nor writes it"
            } else {
                "every insert by chokaq fails: give it a default, let it be NULL, or drop it"
            };
            self.differences.push(format!(
                "the column {} of {table} is additional ({column}): {effect}",
                column.name
            ));
        }
    }

    fn indexes(&mut self) {
        let Self { expected, found, remedies, .. } = *self;
        let table = &expected.name;
        for index in &expected.indexes {
            let Some(there) = find(&found.indexes, index, |index| &index.name) else {
                self.differences.push(format!(
                    "the index {} of {table} is missing, expected is {index}: {}",
                    index.name,
                    remedies.create_index(expected, index)
                ));
                continue;
            };
            if !same_index(index, there) {
                self.differences.push(format!(
                    "the index {} of {table} is {there}, expected is {index}: {}; {}",
                    index.name,
                    remedies.drop_index(expected, index),
                    remedies.create_index(expected, index)
                ));
            } else if there.is_disabled {
                self.differences.push(format!(
                    "the index {} of {table} is disabled, and statements that go by it fail: {}",
                    index.name,
                    remedies.rebuild_index(expected, index)
                ));
            }
        }
        for index in additional(&expected.indexes, &found.indexes, |index| &index.name) {
            let effect = if index.kind.contains("UNIQUE") || index.kind.contains("PRIMARY") {
                "it may refuse rows that chokaq writes: drop it unless it never can"
            } else {
                "harmless, but every insert and move pays for it"
            };
            self.differences.push(format!(
                "the index {} of {table} is additional ({index}): {effect}",
                index.name
            ));
        }
    }
}

/// By name: engines differ in whether they tell names apart by case, and none of chokaq's differ by case alone.
fn find<'a, T>(items: &'a [T], wanted: &T, name: impl Fn(&T) -> &String) -> Option<&'a T> {
    items.iter().find(|item| name(item).eq_ignore_ascii_case(name(wanted)))
}

fn additional<'a, T>(
    expected: &'a [T],
    found: &'a [T],
    name: impl Fn(&T) -> &String + Copy,
) -> impl Iterator<Item = &'a T> {
    found.iter().filter(move |item| find(expected, item, name).is_none())
}

fn same_column(one: &Column, other: &Column) -> bool {
    let collation = |column: &Column| column.collation.as_deref().map(str::to_ascii_lowercase);
    one.kind.eq_ignore_ascii_case(&other.kind)
        && collation(one) == collation(other)
        && one.is_nullable == other.is_nullable
        && one.fills_itself == other.fills_itself
}

fn same_index(one: &Index, other: &Index) -> bool {
    let lower =
        |names: &[String]| names.iter().map(|name| name.to_ascii_lowercase()).collect::<Vec<_>>();
    let set = |index: &Index| {
        let mut names = lower(&index.included);
        names.sort_unstable();
        names
    };
    one.kind == other.kind
        && lower(&one.keys) == lower(&other.keys)
        && set(one) == set(other)
        && one.filter.as_deref().map(bare) == other.filter.as_deref().map(bare)
}

/// A filter without what an engine adds when it shows one: `([Status]=(0) AND [IsReady]=(1))`.
fn bare(filter: &str) -> String {
    let kept = |c: &char| !c.is_whitespace() && !matches!(c, '(' | ')' | '[' | ']' | '"');
    filter.chars().filter(kept).collect::<String>().to_ascii_lowercase()
}

fn or_plain(options: &str) -> &str {
    if options.is_empty() { "a plain table" } else { options }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if let Some(collation) = &self.collation {
            write!(f, " COLLATE {collation}")?;
        }
        f.write_str(if self.is_nullable { " NULL" } else { " NOT NULL" })?;
        if self.fills_itself {
            f.write_str(" with a default")?;
        }
        Ok(())
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.kind.is_empty() {
            write!(f, "{} ", self.kind)?;
        }
        write!(f, "({})", self.keys.join(", "))?;
        if !self.included.is_empty() {
            write!(f, " INCLUDE ({})", self.included.join(", "))?;
        }
        if let Some(filter) = &self.filter {
            write!(f, " WHERE {filter}")?;
        }
        Ok(())
    }
}
