//! The server: what it is, what the login may see there, and the schema that is made and dropped.

use std::time::Duration;

use chokaq::storage::{
    MigrationStorage,
    mssql::{Answer, Connections, MssqlOptions, MssqlStorage, PooledSession, Role},
};

use crate::Failure;

/// Filling a table takes as long as it takes.
pub(crate) const NO_LIMIT: Duration = Duration::MAX;

/// The engine and the database.
#[derive(Debug)]
pub(crate) struct Facts {
    /// The first line of `@@VERSION`.
    pub(crate) version: String,
    pub(crate) compatibility_level: i32,
    pub(crate) rcsi: bool,
    pub(crate) is_sql_server: bool,
}

/// A schema of this program's own.
pub(crate) struct Server {
    options: MssqlOptions,
    /// The statements as chokaq sends them.
    pub(crate) production: Connections,
    /// The statements without their BEGIN and COMMIT: they run in a transaction that is opened around them, so that their
    /// locks can be counted before it is rolled back.
    pub(crate) held: Connections,
    pub(crate) facts: Facts,
    /// Why locks cannot be counted.
    pub(crate) no_locks: Option<String>,
    /// Why plans cannot be seen.
    pub(crate) no_plans: Option<String>,
}

impl Server {
    /// Connects, and looks at the engine. Nothing is changed.
    pub(crate) async fn connect(url: &str) -> Result<Self, Failure> {
        let name = format!("proof_{:08}", fastrand::u32(..100_000_000));
        let options = MssqlOptions::parse(&with_schema(url, &name))?;
        let mut server = Self {
            production: Connections::new(options.clone()),
            held: Connections::new(options.clone().with_rewrite(without_transactions)),
            options,
            facts: Facts {
                version: String::new(),
                compatibility_level: 0,
                rcsi: false,
                is_sql_server: false,
            },
            no_locks: None,
            no_plans: None,
        };
        server.look().await?;
        Ok(server)
    }

    pub(crate) fn schema(&self) -> String {
        self.options.schema().to_string()
    }

    pub(crate) fn describe(&self) -> String {
        self.options.describe()
    }

    /// A text with the schema in it.
    pub(crate) fn text(&self, sql: &str) -> String {
        self.options.schema().in_text(sql)
    }

    /// Runs a text of this program's own.
    pub(crate) async fn run(&self, what: &str, sql: &str) -> Result<Answer, Failure> {
        let mut session = self.production.session(Role::Page).await?;
        Ok(session.batch(what, &self.text(sql), NO_LIMIT).await?)
    }

    /// Closes every connection; they are opened anew when they are needed. Sessions that began before the schema was there
    /// would not see it, and nobody may be in the database when its settings change.
    pub(crate) fn reconnect(&mut self) {
        self.production = Connections::new(self.options.clone());
        self.held = Connections::new(self.options.clone().with_rewrite(without_transactions));
    }

    async fn look(&mut self) -> Result<(), Failure> {
        let answer = self.run("the engine", ENGINE).await?;
        let row =
            answer.first_set().into_iter().next().ok_or("the server says nothing of itself")?;
        let version: String = row.get(0)?;
        let babelfish: Option<String> = row.get(1)?;
        self.facts = Facts {
            version: version.lines().next().unwrap_or_default().trim().to_owned(),
            compatibility_level: row.get(2)?,
            rcsi: row.get(3)?,
            is_sql_server: babelfish.is_none(),
        };
        if !self.facts.is_sql_server {
            let why = "the engine is Babelfish, not SQL Server: it has other locks and other plans";
            (self.no_locks, self.no_plans) = (Some(why.to_owned()), Some(why.to_owned()));
            return Ok(());
        }
        let locks = "SELECT COUNT(*) FROM sys.dm_tran_locks WHERE request_session_id = @@SPID;";
        self.no_locks =
            self.run("the view of locks", locks).await.err().map(|error| error.to_string());
        let plan = "SET STATISTICS XML ON; SELECT COUNT(*) FROM [chokaq].SchemaMigrations AS m WHERE 1 = 0; SET STATISTICS XML OFF;"
            .replace("[chokaq].SchemaMigrations", "sys.objects");
        self.no_plans =
            self.run("the plan of a statement", &plan).await.err().map(|error| error.to_string());
        Ok(())
    }

    /// Makes the schema as chokaq's own migrations make it.
    pub(crate) async fn make_schema(&mut self) -> Result<(), Failure> {
        MssqlStorage::open(self.options.clone()).await?.migrate().await?;
        self.reconnect();
        Ok(())
    }

    /// Drops what [`make_schema`](Self::make_schema) made, as far as it came.
    pub(crate) async fn drop_schema(&mut self) -> Result<(), Failure> {
        self.reconnect();
        self.run("the end of the schema", DROP).await?;
        Ok(())
    }

    /// Sets `READ_COMMITTED_SNAPSHOT` for the database; refused while anybody else is in it.
    pub(crate) async fn set_rcsi(&mut self, on: bool) -> Result<(), Failure> {
        if self.facts.rcsi == on {
            return Ok(());
        }
        if !self.facts.is_sql_server {
            return Err("the engine is not SQL Server".into());
        }
        self.reconnect();
        let word = if on { "ON" } else { "OFF" };
        let sql =
            format!("ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT {word} WITH NO_WAIT;");
        // The server takes a moment to see that this program's other connections are gone.
        let mut tries = 0;
        while let Err(error) = self.run("READ_COMMITTED_SNAPSHOT", &sql).await {
            tries += 1;
            if tries == 20 {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        self.facts.rcsi = on;
        Ok(())
    }
}

/// The statement without its transaction.
fn without_transactions(_name: &str, sql: &str) -> String {
    sql.replace("BEGIN TRANSACTION;", "SET NOCOUNT ON;")
        .replace("COMMIT TRANSACTION;", "SET NOCOUNT ON;")
}

/// The URL with another schema, in the form that it has; a later option wins.
fn with_schema(url: &str, name: &str) -> String {
    let is_list_of_pairs = url.to_ascii_lowercase().starts_with("jdbc:") || !url.contains("://");
    let sign = match (is_list_of_pairs, url.contains('?')) {
        (true, _) => ';',
        (false, true) => '&',
        (false, false) => '?',
    };
    format!("{}{sign}schema={name}", url.trim_end_matches([';', '&', '?']))
}

/// A session in a transaction that is rolled back, whatever became of it.
pub(crate) async fn rolled_back(session: &mut PooledSession) -> Result<(), Failure> {
    session.batch("the roll-back", "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;", NO_LIMIT).await?;
    Ok(())
}

const ENGINE: &str = "\
SELECT CONVERT(nvarchar(300), @@VERSION), CONVERT(nvarchar(100), SERVERPROPERTY('BabelfishVersion')),
    CONVERT(int, d.compatibility_level), CONVERT(int, d.is_read_committed_snapshot_on)
FROM sys.databases AS d
WHERE d.database_id = DB_ID();";

const DROP: &str = "\
IF OBJECT_ID(N'[chokaq].Enqueue', N'P') IS NOT NULL DROP PROCEDURE [chokaq].Enqueue;
IF OBJECT_ID(N'[chokaq].JobsHot', N'U') IS NOT NULL DROP TABLE [chokaq].JobsHot;
IF OBJECT_ID(N'[chokaq].JobsArchive', N'U') IS NOT NULL DROP TABLE [chokaq].JobsArchive;
IF OBJECT_ID(N'[chokaq].JobsDLQ', N'U') IS NOT NULL DROP TABLE [chokaq].JobsDLQ;
IF OBJECT_ID(N'[chokaq].Queues', N'U') IS NOT NULL DROP TABLE [chokaq].Queues;
IF OBJECT_ID(N'[chokaq].StatsSummary', N'U') IS NOT NULL DROP TABLE [chokaq].StatsSummary;
IF OBJECT_ID(N'[chokaq].MetricBuckets', N'U') IS NOT NULL DROP TABLE [chokaq].MetricBuckets;
IF OBJECT_ID(N'[chokaq].SchemaMigrations', N'U') IS NOT NULL DROP TABLE [chokaq].SchemaMigrations;
IF SCHEMA_ID(N'chokaq') IS NOT NULL EXEC (N'DROP SCHEMA [chokaq];');";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_goes_into_every_form_of_url() {
        for (url, expected) in [
            ("mssql://u:p@h/d", "mssql://u:p@h/d?schema=x"),
            ("mssql://u:p@h/d?schema=chokaq", "mssql://u:p@h/d?schema=chokaq&schema=x"),
            ("Server=h;User Id=u;", "Server=h;User Id=u;schema=x"),
            ("jdbc:sqlserver://h;user=u", "jdbc:sqlserver://h;user=u;schema=x"),
        ] {
            assert_eq!(with_schema(url, "x"), expected);
            let options = MssqlOptions::parse(expected).expect("a good URL");
            assert_eq!(options.schema().to_string(), "x");
        }
    }

    #[test]
    fn a_statement_loses_every_part_of_its_transaction() {
        for (name, text) in crate::cases::FILES {
            let text = without_transactions(name, text);
            let code: String =
                text.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join("\n");
            for word in ["BEGIN TRAN", "COMMIT TRAN", "ROLLBACK"] {
                assert!(!code.contains(word), "{name}: {word}");
            }
        }
    }
}
