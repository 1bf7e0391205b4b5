//! The schema: what is missing of it, how it comes about, and whether this program can work with it.

use std::{fmt::Write, time::Duration};

use crate::storage::mssql::{
    failure::{Failure, Outcome},
    options::SchemaName,
    pool::{Connections, PooledSession},
    session::Role,
};

/// What this binary can work with: a schema that asks for more is refused. It grows with each migration that an older
/// binary could not live with.
const BINARY_LEVEL: i32 = 1;

/// How long one migrator waits for another.
const LOCK_WAIT: Duration = Duration::from_mins(1);

/// Building an index on a large table takes as long as it takes.
const NO_LIMIT: Duration = Duration::MAX;

struct Migration {
    version: i32,
    name: &'static str,
    sql: &'static str,
    /// The least `BINARY_LEVEL` that can work with the schema after it.
    min_binary: i32,
}

const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "0001_three_pillars",
        sql: include_str!("../../../sql/mssql/migrations/0001_three_pillars.sql"),
        min_binary: 1,
    },
    Migration {
        version: 2,
        name: "0002_enqueue_procedure",
        sql: include_str!("../../../sql/mssql/migrations/0002_enqueue_procedure.sql"),
        min_binary: 1,
    },
    Migration {
        version: 3,
        name: "0003_circuits",
        sql: include_str!("../../../sql/mssql/migrations/0003_circuits.sql"),
        min_binary: 1,
    },
];

const LEDGER: &str = include_str!("../../../sql/mssql/ledger.sql");

/// What `SchemaMigrations` says of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Recorded {
    /// The newest migration; `None` without the table.
    pub(super) version: Option<i32>,
    /// The least level that the schema asks for, and the release that asked for it.
    pub(super) min_binary: Option<i32>,
    pub(super) applied_by: Option<String>,
}

impl Recorded {
    /// Why this program cannot work with the schema, and what to do. A newer one that does not ask for more is fine: old
    /// and new programs run side by side during a deploy.
    pub(super) fn problem(&self, schema: &SchemaName, place: &str) -> Option<String> {
        if let Some(problem) = self.too_new(schema, place) {
            return Some(problem);
        }
        let newest = MIGRATIONS.last().map_or(0, |migration| migration.version);
        let remedy = "call `pool.migrate()`, start a program with CHOKAQ_AUTO_MIGRATE=true, or run what \
                      `pool.migration_plan()` prints";
        match self.version {
            None => Some(format!(
                "{place} has no tables of chokaq in the schema {:?}, or the login may not see them: {remedy}",
                schema.to_string()
            )),
            Some(version) if version < newest => Some(format!(
                "the schema {:?} of {place} is at migration {version}, and chokaq {} needs {newest}: {remedy}",
                schema.to_string(),
                env!("CARGO_PKG_VERSION")
            )),
            Some(_) => None,
        }
    }

    fn too_new(&self, schema: &SchemaName, place: &str) -> Option<String> {
        let level = self.min_binary.filter(|level| *level > BINARY_LEVEL)?;
        let by = self.applied_by.as_deref().unwrap_or("a later release");
        Some(format!(
            "the schema {:?} of {place} is too new for this program: chokaq {by} raised it to level {level}, and chokaq {} \
             has level {BINARY_LEVEL}: use chokaq {by} or later",
            schema.to_string(),
            env!("CARGO_PKG_VERSION")
        ))
    }
}

/// What the migrations run, in their order.
pub(super) fn texts() -> impl Iterator<Item = &'static str> {
    MIGRATIONS.iter().map(|migration| migration.sql)
}

/// Applies what is missing, each migration in a transaction of its own, under a lock that other migrators wait for.
pub(super) async fn migrate(connections: &Connections) -> Result<Vec<String>, Failure> {
    let schema = connections.options().schema();
    // Closed afterwards, not reused: it began before the schema was there, and the lock goes with it.
    let mut session = connections.session(Role::Maintenance).await?;
    take_lock(&mut session, schema).await?;
    session.batch("the table of migrations", &schema.in_text(LEDGER), NO_LIMIT).await?;
    let mut applied = Vec::new();
    for migration in missing(&mut session, connections).await? {
        let what = format!("the migration {}", migration.name);
        session.batch(&what, &migration.script(schema), NO_LIMIT).await?;
        tracing::info!(migration = migration.name, schema = %schema, "migrated");
        applied.push(migration.name.to_owned());
    }
    session.close();
    Ok(applied)
}

/// What [`migrate`] would run now, as one script for `sqlcmd` or a query window; empty when nothing is missing.
pub(super) async fn plan(connections: &Connections) -> Result<String, Failure> {
    let schema = connections.options().schema();
    let mut session = connections.session(Role::Maintenance).await?;
    let missing = missing(&mut session, connections).await?;
    let mut sql = String::new();
    if !missing.is_empty() {
        // Filtered indexes ask for these of whoever creates them (error 1934); sqlcmd begins without.
        sql.push_str("SET ANSI_NULLS, QUOTED_IDENTIFIER ON;\nSET XACT_ABORT ON;\n\n");
        let _ = writeln!(sql, "{}\n", schema.in_text(LEDGER).trim_end());
    }
    for migration in missing {
        let _ = writeln!(sql, "{}\n", migration.script(schema));
    }
    Ok(sql)
}

impl Migration {
    fn script(&self, schema: &SchemaName) -> String {
        let ledger = schema.in_text("[chokaq].SchemaMigrations");
        format!(
            "SET XACT_ABORT ON;\nBEGIN TRANSACTION;\n\n{}\n\n\
             INSERT INTO {ledger} (Version, Name, AppliedAtUtc, AppliedBy, MinBinary)\n\
             VALUES ({}, N'{}', SYSUTCDATETIME(), N'{}', {});\n\nCOMMIT TRANSACTION;",
            schema.in_text(self.sql).trim_end(),
            self.version,
            self.name,
            env!("CARGO_PKG_VERSION"),
            self.min_binary,
        )
    }
}

async fn take_lock(session: &mut PooledSession, schema: &SchemaName) -> Result<(), Failure> {
    let batch = format!(
        "DECLARE @result int;
EXEC @result = sp_getapplock @Resource = N'chokaq:migrations:{schema}', @LockMode = N'Exclusive', @LockOwner = N'Session',
    @LockTimeout = {};
SELECT @result;",
        LOCK_WAIT.as_millis()
    );
    let answer = session.batch("the lock for migrations", &batch, LOCK_WAIT * 2).await?;
    let result: Option<i32> = answer.rows()?.first().map(|row| row.get(0)).transpose()?;
    if result.is_some_and(|result| result >= 0) {
        return Ok(());
    }
    Err(Failure::transient(
        Outcome::NothingDone,
        format!(
            "another program has been migrating the schema {:?} for {LOCK_WAIT:?}: wait for it to end, or look for its session \
             (sp_getapplock answered {result:?})",
            schema.to_string()
        ),
    ))
}

/// The migrations that are not recorded; those of a later release, which this binary does not know, do not matter.
async fn missing(
    session: &mut PooledSession,
    connections: &Connections,
) -> Result<Vec<&'static Migration>, Failure> {
    let schema = connections.options().schema();
    let batch = schema.in_text(
        "IF OBJECT_ID(N'[chokaq].SchemaMigrations', N'U') IS NULL
    SELECT CONVERT(int, NULL), CONVERT(int, NULL), CONVERT(nvarchar(255), NULL);
ELSE
    SELECT Version, MinBinary, AppliedBy FROM [chokaq].SchemaMigrations;",
    );
    let answer =
        session.batch("the recorded migrations", &batch, connections.options().command_timeout);
    let mut recorded = Vec::new();
    for row in answer.await?.first_set() {
        let found =
            Recorded { version: row.get(0)?, min_binary: row.get(1)?, applied_by: row.get(2)? };
        let place = connections.options().describe();
        if let Some(problem) = found.too_new(schema, &place) {
            return Err(Failure::schema(problem));
        }
        recorded.extend(found.version);
    }
    Ok(MIGRATIONS.iter().filter(|migration| !recorded.contains(&migration.version)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(version: Option<i32>, min_binary: Option<i32>) -> Option<String> {
        let recorded =
            Recorded { version, min_binary, applied_by: min_binary.map(|_| "9.9.9".to_owned()) };
        recorded.problem(&SchemaName::new("ops").expect("a name"), "SQL Server db:1433")
    }

    #[test]
    fn a_schema_that_fits_or_is_merely_newer_is_no_problem() {
        let newest = MIGRATIONS.last().expect("there is one").version;
        assert_eq!(problem(Some(newest), Some(1)), None);
        assert_eq!(problem(Some(newest + 7), Some(BINARY_LEVEL)), None);
    }

    #[test]
    fn a_schema_that_cannot_be_used_says_what_to_do() {
        let missing = problem(None, None).expect("missing");
        assert!(missing.contains("\"ops\"") && missing.contains("pool.migrate()"), "{missing}");
        let older = problem(Some(0), Some(1)).expect("older");
        assert!(older.contains("CHOKAQ_AUTO_MIGRATE"), "{older}");
        let newer = problem(Some(9), Some(BINARY_LEVEL + 1)).expect("too new");
        assert!(newer.contains("use chokaq 9.9.9 or later"), "{newer}");
    }

    #[test]
    fn versions_ascend_and_carry_their_files_numbers() {
        for (place, migration) in MIGRATIONS.iter().enumerate() {
            assert_eq!(usize::try_from(migration.version).expect("small"), place + 1);
            assert!(migration.name.starts_with(&format!("{:04}_", migration.version)));
            assert!(migration.min_binary <= BINARY_LEVEL);
        }
    }
}
