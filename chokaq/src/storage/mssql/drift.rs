//! The schema as it is, compared with `schema.sql`.

use crate::storage::{
    drift::{Column, Index, Remedies, Schema, Table, compare},
    mssql::{
        answer::Row, call::Call, core::Core, declared, failure::Failure, migrate,
        options::SchemaName, session::Role, statements::READ_SCHEMA,
    },
};

const DECLARED: &str = include_str!("../../../sql/mssql/schema.sql");

/// What the statement answers for a filter that the login may not see.
const HIDDEN: &str = "?";

/// What is different, and first of all whether the migrations are behind or ahead.
pub(super) async fn check_schema(core: &Core) -> Result<Vec<String>, Failure> {
    let mut session = core.connections.session(Role::Page).await?;
    let mut differences: Vec<String> = session.schema_problem().into_iter().collect();
    let sets = session.look(&Call::new(&READ_SCHEMA)).await?.sets()?;
    let schema = core.connections.options().schema();
    let mut found = read(sets)?;
    let mut expected = expected().map_err(Failure::permanent)?;
    if found.tables.is_empty() && !differences.is_empty() {
        // A list of every table says no more.
        return Ok(differences);
    }
    if schema.to_string() == "dbo" {
        // It holds other programs' tables as well.
        found.tables.retain(|table| expected.knows(&table.name));
    }
    ignore_hidden_filters(&mut expected, &found);
    differences.extend(compare(&expected, &found, &Statements { schema }));
    Ok(differences)
}

/// What the migrations make.
fn expected() -> Result<Schema, String> {
    let mut schema = declared::parse(DECLARED)?;
    for (name, value) in migrate::texts().flat_map(declared::lock_escalations) {
        schema.change(&name, |table| table.options = Some(lock_escalation(&value)));
    }
    Ok(schema)
}

fn lock_escalation(value: &str) -> String {
    format!("LOCK_ESCALATION = {value}")
}

fn read([tables, columns, indexes, triggers]: [Vec<Row>; 4]) -> Result<Schema, Failure> {
    let mut schema = Schema::default();
    for row in tables {
        let options = lock_escalation(&row.get::<String>(1)?);
        schema
            .tables
            .push(Table { options: Some(options), ..Table::new("table", row.get::<String>(0)?) });
    }
    for row in columns {
        let column = column(&row)?;
        schema.change(&row.get::<String>(0)?, |table| table.columns.push(column));
    }
    for row in indexes {
        let index = index(&row)?;
        let (column, is_descending): (String, bool) = (row.get(7)?, row.get(8)?);
        let is_included = row.get::<bool>(9)?;
        schema.change(&row.get::<String>(0)?, |table| {
            // The rows of one index stand together.
            if table.indexes.last().is_none_or(|last| last.name != index.name) {
                table.indexes.push(index);
            }
            let index = table.indexes.last_mut().expect("one was pushed");
            match (is_included, is_descending) {
                (true, _) => index.included.push(column),
                (false, true) => index.keys.push(format!("{column} DESC")),
                (false, false) => index.keys.push(column),
            }
        });
    }
    for row in triggers {
        let trigger = row.get(1)?;
        schema.change(&row.get::<String>(0)?, |table| table.triggers.push(trigger));
    }
    Ok(schema)
}

fn column(row: &Row) -> Result<Column, Failure> {
    let kind = type_name(&row.get::<String>(2)?, row.get(3)?, row.get(4)?);
    let is_identity: bool = row.get(7)?;
    Ok(Column {
        name: row.get(1)?,
        kind: if is_identity { format!("{kind} IDENTITY") } else { kind },
        collation: row.get(5)?,
        is_nullable: row.get(6)?,
        fills_itself: row.get(8)?,
    })
}

/// A type as it is declared; `bytes` is -1 for max.
fn type_name(name: &str, bytes: i32, scale: i32) -> String {
    let length = match name {
        "nvarchar" | "nchar" => bytes / 2,
        "varchar" | "char" | "varbinary" | "binary" => bytes,
        "datetime2" | "datetimeoffset" | "time" => return format!("{name}({scale})"),
        _ => return name.to_owned(),
    };
    if bytes < 0 { format!("{name}(max)") } else { format!("{name}({length})") }
}

/// An index without its columns.
fn index(row: &Row) -> Result<Index, Failure> {
    let kind: String = row.get(2)?;
    let kind = match (row.get::<bool>(4)?, row.get::<bool>(3)?) {
        (true, _) => format!("PRIMARY KEY {kind}"),
        (false, true) => format!("UNIQUE {kind}"),
        (false, false) => kind,
    };
    Ok(Index {
        name: row.get(1)?,
        kind,
        keys: Vec::new(),
        included: Vec::new(),
        filter: row.get(6)?,
        is_disabled: row.get(5)?,
    })
}

/// A filter that the login may not see is taken to be the right one.
fn ignore_hidden_filters(expected: &mut Schema, found: &Schema) {
    for table in &found.tables {
        for index in table.indexes.iter().filter(|index| index.filter.as_deref() == Some(HIDDEN)) {
            expected.change(&table.name, |table| {
                let same = table
                    .indexes
                    .iter_mut()
                    .find(|known| known.name.eq_ignore_ascii_case(&index.name));
                if let Some(known) = same.filter(|known| known.filter.is_some()) {
                    known.filter = Some(HIDDEN.to_owned());
                }
            });
        }
    }
}

struct Statements<'a> {
    schema: &'a SchemaName,
}

impl Remedies for Statements<'_> {
    fn table(&self, name: &str) -> String {
        format!("{}.{name}", self.schema.quoted())
    }

    fn create_table(&self, _: &Table) -> String {
        "restore it from a backup, or create it as sql/mssql/schema.sql of this release does"
            .to_owned()
    }

    fn definition(&self, column: &Column) -> String {
        let kind = column.kind.replace(" IDENTITY", " IDENTITY(1, 1)");
        let collation = column.collation.as_ref();
        let collation = collation.map_or_else(String::new, |name| format!(" COLLATE {name}"));
        let null = if column.is_nullable { "NULL" } else { "NOT NULL" };
        let default = match (column.fills_itself, kind.contains("IDENTITY")) {
            (true, false) => " DEFAULT ...",
            _ => "",
        };
        format!("{kind}{collation} {null}{default}")
    }

    fn change_column(&self, table: &Table, column: &Column) -> String {
        if column.fills_itself {
            return "give it the definition and the default that sql/mssql/schema.sql of this release has".to_owned();
        }
        let table = self.table(&table.name);
        format!("ALTER TABLE {table} ALTER COLUMN {} {}", column.name, self.definition(column))
    }

    fn change_options(&self, table: &Table, options: &str) -> String {
        format!("ALTER TABLE {} SET ({options})", self.table(&table.name))
    }

    fn create_index(&self, table: &Table, index: &Index) -> String {
        let (name, on) = (&index.name, self.table(&table.name));
        if index.kind.starts_with("PRIMARY KEY") {
            return format!("ALTER TABLE {on} ADD CONSTRAINT {name} {index}");
        }
        // Its options stand there too.
        let columns = index.to_string();
        let columns = columns.strip_prefix(&*index.kind).unwrap_or(&columns);
        format!(
            "CREATE {} INDEX {name} ON {on}{columns}, with the options that sql/mssql/schema.sql of this release has",
            index.kind
        )
    }

    fn drop_index(&self, table: &Table, index: &Index) -> String {
        let (name, on) = (&index.name, self.table(&table.name));
        if index.kind.starts_with("PRIMARY KEY") {
            format!("ALTER TABLE {on} DROP CONSTRAINT {name}")
        } else {
            format!("DROP INDEX {name} ON {on}")
        }
    }

    fn rebuild_index(&self, table: &Table, index: &Index) -> String {
        format!("ALTER INDEX {} ON {} REBUILD", index.name, self.table(&table.name))
    }
}

#[cfg(test)]
mod tests;
