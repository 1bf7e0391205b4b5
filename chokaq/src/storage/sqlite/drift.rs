//! The schema as it is, compared with a fresh database in memory.

use std::time::Duration;

use rusqlite::{Connection, Row};

use crate::storage::{
    drift::{Column, Index, Remedies, Schema, Table, compare},
    sqlite::{
        failure::{DatabaseName, Outcome},
        migrate, queries,
        tx::Tx,
    },
};

/// What is different. The file may hold other programs' tables as well: they are not looked at.
pub(super) fn check_schema(tx: &Tx<'_>) -> Outcome<Vec<String>> {
    let fresh = Connection::open_in_memory()?;
    migrate::apply(&fresh, &DatabaseName::new("the database to compare with"), Duration::ZERO)?;
    let expected = read(&fresh)?;
    let mut found = read(tx.connection())?;
    found.tables.retain(|table| expected.knows(&table.name));
    Ok(compare(&expected, &found, &Statements))
}

fn read(connection: &Connection) -> Outcome<Schema> {
    let [tables, columns, indexes, triggers] = queries::READ_SCHEMA.statements();
    let mut schema = Schema::default();
    each(connection, tables, |row| {
        schema.tables.push(table(row)?);
        Ok(())
    })?;
    each(connection, columns, |row| {
        let (of, mut column) = (row.get::<_, String>(0)?, column(row)?);
        // A view's columns have none.
        if let Ok((_, collation, ..)) =
            connection.column_metadata(Some("main"), &*of, &*column.name)
        {
            column.collation = collation
                .map(|name| name.to_string_lossy().into_owned())
                .filter(|name| name != "BINARY");
        }
        schema.change(&of, |table| table.columns.push(column));
        Ok(())
    })?;
    each(connection, indexes, |row| {
        let (of, index, key) = (row.get::<_, String>(0)?, index(row)?, key(row)?);
        schema.change(&of, |table| {
            // The rows of one index stand together.
            match table.indexes.last_mut().filter(|last| last.name == index.name) {
                Some(last) => last.keys.push(key),
                None => table.indexes.push(Index { keys: vec![key], ..index }),
            }
        });
        Ok(())
    })?;
    each(connection, triggers, |row| {
        let (of, name) = (row.get::<_, String>(0)?, row.get(1)?);
        schema.change(&of, |table| table.triggers.push(name));
        Ok(())
    })?;
    Ok(schema)
}

fn each(
    connection: &Connection,
    sql: &str,
    mut take: impl FnMut(&Row<'_>) -> Outcome<()>,
) -> Outcome<()> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        take(row)?;
    }
    Ok(())
}

fn table(row: &Row<'_>) -> Outcome<Table> {
    let kind = if row.get::<_, String>(1)? == "view" { "view" } else { "table" };
    let (has_no_rowid, is_strict): (bool, bool) = (row.get(2)?, row.get(3)?);
    let options: Vec<&str> = [(is_strict, "STRICT"), (has_no_rowid, "WITHOUT ROWID")]
        .into_iter()
        .filter_map(|(is_set, option)| is_set.then_some(option))
        .collect();
    Ok(Table { options: Some(options.join(", ")), ..Table::new(kind, row.get::<_, String>(0)?) })
}

fn column(row: &Row<'_>) -> Outcome<Column> {
    let kind: String = row.get(2)?;
    Ok(Column {
        name: row.get(1)?,
        // Two names of one type.
        kind: if kind == "INT" { "INTEGER".to_owned() } else { kind },
        collation: None,
        is_nullable: !row.get::<_, bool>(3)?,
        fills_itself: row.get(4)?,
    })
}

/// An index without its columns.
fn index(row: &Row<'_>) -> Outcome<Index> {
    let kind = match (row.get::<_, String>(3)?.as_str(), row.get::<_, bool>(2)?) {
        ("pk", _) => "PRIMARY KEY",
        (_, true) => "UNIQUE",
        (_, false) => "",
    };
    let sql: Option<String> = row.get(4)?;
    let filter = sql.as_deref().and_then(|sql| sql.rsplit_once("WHERE ")).map(|(_, filter)| filter);
    Ok(Index {
        name: row.get(1)?,
        kind: kind.to_owned(),
        keys: Vec::new(),
        included: Vec::new(),
        filter: filter.map(str::to_owned),
        is_disabled: false,
    })
}

fn key(row: &Row<'_>) -> Outcome<String> {
    let column: Option<String> = row.get(5)?;
    let (is_descending, collation): (bool, String) = (row.get(6)?, row.get(7)?);
    let collation =
        if collation == "BINARY" { String::new() } else { format!(" COLLATE {collation}") };
    let order = if is_descending { " DESC" } else { "" };
    Ok(format!("{}{collation}{order}", column.as_deref().unwrap_or("an expression")))
}

struct Statements;

/// SQLite changes neither a column nor a table's options in place.
const REBUILD: &str =
    "make the table anew as sql/sqlite/migrations of this release do, and copy the rows";

impl Remedies for Statements {
    fn table(&self, name: &str) -> String {
        name.to_owned()
    }

    fn create_table(&self, table: &Table) -> String {
        format!(
            "restore it from a backup, or create the {} as sql/sqlite/migrations of this release do",
            table.kind
        )
    }

    fn definition(&self, column: &Column) -> String {
        let collation = column.collation.as_ref();
        let collation = collation.map_or_else(String::new, |name| format!(" COLLATE {name}"));
        let null = if column.is_nullable { "" } else { " NOT NULL" };
        let default = if column.fills_itself || !column.is_nullable { " DEFAULT ..." } else { "" };
        format!("{}{collation}{null}{default}", column.kind)
    }

    fn change_column(&self, _: &Table, _: &Column) -> String {
        REBUILD.to_owned()
    }

    fn change_options(&self, _: &Table, _: &str) -> String {
        REBUILD.to_owned()
    }

    fn create_index(&self, table: &Table, index: &Index) -> String {
        let unique = if index.kind.is_empty() { "" } else { "UNIQUE " };
        let columns = index.to_string();
        let columns = columns.strip_prefix(&*index.kind).unwrap_or(&columns).trim_start();
        format!("CREATE {unique}INDEX {} ON {} {columns}", index.name, table.name)
    }

    fn drop_index(&self, _: &Table, index: &Index) -> String {
        format!("DROP INDEX {}", index.name)
    }

    fn rebuild_index(&self, _: &Table, index: &Index) -> String {
        format!("REINDEX {}", index.name)
    }
}
