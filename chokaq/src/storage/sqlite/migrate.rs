//! The schema: what is missing is applied, what is newer is refused only where it says so.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use rusqlite::{Connection, OptionalExtension, named_params};

use crate::{
    Error, Result,
    model::Timestamp,
    storage::sqlite::{
        connection::short_wait,
        failure::{DatabaseName, Outcome, is_busy},
    },
};

/// What this binary can work with: a schema that asks for more is refused. It grows with each migration that an older
/// binary could not live with.
const BINARY_LEVEL: i64 = 1;

struct Migration {
    version: i64,
    name: &'static str,
    sql: &'static str,
    /// The least `BINARY_LEVEL` that can work with the schema after it.
    min_binary: i64,
}

const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "0001_three_pillars",
        sql: include_str!("../../../sql/sqlite/migrations/0001_three_pillars.sql"),
        min_binary: 1,
    },
    Migration {
        version: 2,
        name: "0002_circuits",
        sql: include_str!("../../../sql/sqlite/migrations/0002_circuits.sql"),
        min_binary: 1,
    },
];

const CREATE_LEDGER: &str = "CREATE TABLE IF NOT EXISTS SchemaMigrations (
    Version INTEGER PRIMARY KEY,
    Name TEXT NOT NULL,
    AppliedAtUtc INTEGER NOT NULL,
    AppliedBy TEXT NOT NULL,
    MinBinary INTEGER NOT NULL
) STRICT";

/// Applies what is missing, each migration in a transaction of its own. Others may open and migrate at the same time.
pub(super) fn apply(
    connection: &Connection,
    name: &DatabaseName,
    limit: Duration,
) -> Result<Vec<String>> {
    let explain = |fault| name.explain(fault);
    let until = Instant::now() + limit;
    let mut applied = Vec::new();
    // A plain look first: a database that is up to date is opened without waiting for anybody's lock.
    while !missing(connection, name).map_err(explain)?.is_empty() {
        begin(connection, until).map_err(explain)?;
        let step = apply_next(connection, name)
            .and_then(|step| connection.execute_batch("COMMIT").map(|()| step).map_err(Into::into));
        match step {
            Ok(step) => applied.extend(step),
            Err(fault) => {
                // The error that matters is the first one.
                drop(connection.execute_batch("ROLLBACK"));
                return Err(explain(fault));
            }
        }
    }
    Ok(applied)
}

/// As [`apply`], inside a transaction that is open already.
pub(super) fn apply_within(connection: &Connection, name: &DatabaseName) -> Outcome<Vec<String>> {
    let mut applied = Vec::new();
    while let Some(step) = apply_next(connection, name)? {
        applied.push(step);
    }
    Ok(applied)
}

/// What [`apply`] would run now.
pub(super) fn plan(connection: &Connection, name: &DatabaseName) -> Outcome<String> {
    let missing = missing(connection, name)?;
    let mut sql = String::new();
    if !missing.is_empty() {
        let _ = writeln!(sql, "{CREATE_LEDGER};\n");
    }
    for migration in missing {
        let _ = writeln!(sql, "BEGIN IMMEDIATE;\n{}", migration.sql.trim_end());
        let _ = writeln!(
            sql,
            "INSERT INTO SchemaMigrations (Version, Name, AppliedAtUtc, AppliedBy, MinBinary)\n\
             VALUES ({}, '{}', CAST(unixepoch('subsec') * 1000 AS INTEGER), 'by hand', {});\nCOMMIT;\n",
            migration.version, migration.name, migration.min_binary
        );
    }
    Ok(sql)
}

/// The first migration that is missing, applied; another process may have been faster.
fn apply_next(connection: &Connection, name: &DatabaseName) -> Outcome<Option<String>> {
    let Some(migration) = missing(connection, name)?.into_iter().next() else { return Ok(None) };
    connection.execute_batch(CREATE_LEDGER)?;
    connection.execute_batch(migration.sql)?;
    connection.execute(
        "INSERT INTO SchemaMigrations (Version, Name, AppliedAtUtc, AppliedBy, MinBinary)
         VALUES (@version, @name, @now, @by, @min_binary)",
        named_params! {
            "@version": migration.version,
            "@name": migration.name,
            "@now": Timestamp::now().as_unix_ms(),
            "@by": env!("CARGO_PKG_VERSION"),
            "@min_binary": migration.min_binary,
        },
    )?;
    Ok(Some(migration.name.to_owned()))
}

/// The migrations that are not recorded; those of a later release, which this binary does not know, do not matter.
fn missing(connection: &Connection, name: &DatabaseName) -> Outcome<Vec<&'static Migration>> {
    let ledger = connection
        .query_row(
            "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'SchemaMigrations'",
            [],
            |_| Ok(()),
        )
        .optional()?;
    if ledger.is_none() {
        return Ok(MIGRATIONS.iter().collect());
    }
    let mut statement =
        connection.prepare("SELECT Version, MinBinary, AppliedBy FROM SchemaMigrations")?;
    let recorded = statement
        .query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<Vec<(i64, i64, String)>>>()?;
    if let Some((version, min_binary, by)) =
        recorded.iter().find(|(_, min_binary, _)| *min_binary > BINARY_LEVEL)
    {
        return Err(Error::schema(format!(
            "the schema of {name} is too new for this program: its migration {version}, applied by chokaq {by}, asks for \
             schema level {min_binary}, and chokaq {} has level {BINARY_LEVEL}: use chokaq {by} or later",
            env!("CARGO_PKG_VERSION")
        ))
        .into());
    }
    let is_missing = |m: &&Migration| recorded.iter().all(|(version, ..)| *version != m.version);
    Ok(MIGRATIONS.iter().filter(is_missing).collect())
}

fn begin(connection: &Connection, until: Instant) -> Outcome<()> {
    loop {
        match connection.execute_batch("BEGIN IMMEDIATE") {
            Err(error) if is_busy(&error) && Instant::now() < until => short_wait(),
            begun => return Ok(begun?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> DatabaseName {
        DatabaseName::new("the test database")
    }

    #[test]
    fn a_second_run_applies_nothing_and_the_plan_is_empty() {
        let connection = Connection::open_in_memory().unwrap();
        assert!(plan(&connection, &name()).unwrap().contains("CREATE TABLE JobsHot"));
        let applied = apply(&connection, &name(), Duration::ZERO).unwrap();
        assert_eq!(applied, ["0001_three_pillars", "0002_circuits"]);
        assert!(apply(&connection, &name(), Duration::ZERO).unwrap().is_empty());
        assert_eq!(plan(&connection, &name()).unwrap(), "");
    }

    #[test]
    fn the_printed_plan_does_what_the_migrator_does() {
        let connection = Connection::open_in_memory().unwrap();
        let sql = plan(&connection, &name()).unwrap();
        connection.execute_batch(&sql).unwrap();
        assert!(apply(&connection, &name(), Duration::ZERO).unwrap().is_empty());
    }

    #[test]
    fn a_schema_that_asks_for_a_newer_binary_is_refused_and_a_merely_newer_one_is_not() {
        let connection = Connection::open_in_memory().unwrap();
        apply(&connection, &name(), Duration::ZERO).unwrap();
        let record = |version: i64, min_binary: i64| {
            connection
                .execute(
                    "INSERT INTO SchemaMigrations VALUES (?1, 'later', 0, '9.9.9', ?2)",
                    [version, min_binary],
                )
                .unwrap();
        };
        record(1_000, BINARY_LEVEL);
        assert!(apply(&connection, &name(), Duration::ZERO).unwrap().is_empty());
        record(1_001, BINARY_LEVEL + 1);
        let error = apply(&connection, &name(), Duration::ZERO).unwrap_err();
        assert!(error.is_schema());
        assert!(error.to_string().contains("use chokaq 9.9.9 or later"), "{error}");
    }

    #[test]
    fn a_migration_that_fails_leaves_nothing_behind() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE Queues (x)").unwrap();
        assert!(apply(&connection, &name(), Duration::ZERO).is_err());
        let tables: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'Jobs%'", [], |row| {
                row.get(0)
            })
            .unwrap();
        assert_eq!(tables, 0);
        assert!(connection.is_autocommit());
    }
}
