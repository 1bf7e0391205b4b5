//! The database past the contract: what stands in the tables, and how it is made to stand still.

use std::{path::PathBuf, time::Duration};

use chokaq::{
    JobId, Pool,
    storage::mssql::{Connections, MssqlStorage, Role},
};
use rusqlite::{Connection, OpenFlags};
use tokio::{task::spawn_blocking, time::sleep};

use crate::{Failure, mssql};

/// The pool that a program would make of the URL.
pub(crate) async fn pool(url: &str) -> Result<Pool, Failure> {
    if url.starts_with("sqlite:") {
        return Ok(Pool::connect(url).await?);
    }
    let pool = Pool::over(MssqlStorage::open(mssql::options(url).await?).await?);
    pool.migrate().await?;
    Ok(pool)
}

/// A way in of the observer's own.
#[derive(Clone)]
pub(crate) enum Database {
    Sqlite(PathBuf),
    Mssql { direct: Connections, schema: String },
}

/// What one look saw, in one snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) hot: i64,
    pub(crate) archived: i64,
    pub(crate) dead: i64,
    /// Ids that stand in two tables.
    pub(crate) doubled: i64,
    /// Rows of the limited queue that are fetched or running, and its limit.
    pub(crate) limited: i64,
    pub(crate) max_workers: i64,
    pub(crate) succeeded: i64,
    pub(crate) failed: i64,
}

/// Where a job ended.
#[derive(Debug, Clone)]
pub(crate) struct End {
    pub(crate) id: JobId,
    pub(crate) place: i64,
    pub(crate) attempts: u32,
    pub(crate) errors: String,
}

pub(crate) const HOT: i64 = 0;

const LOOK: [&str; 8] = [
    "(SELECT COUNT(*) FROM ~JobsHot)",
    "(SELECT COUNT(*) FROM ~JobsArchive)",
    "(SELECT COUNT(*) FROM ~JobsDLQ)",
    "(SELECT COUNT(*) FROM ~JobsHot AS h WHERE EXISTS (SELECT 1 FROM ~JobsArchive AS a WHERE a.Id = h.Id)
        OR EXISTS (SELECT 1 FROM ~JobsDLQ AS d WHERE d.Id = h.Id))
    + (SELECT COUNT(*) FROM ~JobsDLQ AS d WHERE EXISTS (SELECT 1 FROM ~JobsArchive AS a WHERE a.Id = d.Id))",
    "(SELECT COUNT(*) FROM ~JobsHot WHERE Queue = 'limited' AND Status > 0)",
    "COALESCE((SELECT MaxWorkers FROM ~Queues WHERE Name = 'limited'), 1000000)",
    "COALESCE((SELECT SUM(SucceededTotal) FROM ~StatsSummary), 0)",
    "COALESCE((SELECT SUM(FailedTotal) FROM ~StatsSummary), 0)",
];

impl Database {
    pub(crate) async fn of(url: &str) -> Result<Self, Failure> {
        if let Some(path) = url.strip_prefix("sqlite:") {
            let path = path.split('?').next().unwrap_or_default();
            return Ok(Self::Sqlite(path.into()));
        }
        let options = mssql::options(url).await?;
        let schema = format!("[{}].", options.schema());
        Ok(Self::Mssql { direct: Connections::new(options), schema })
    }

    pub(crate) async fn look(&self) -> Result<Look, Failure> {
        let rows = self.rows(&LOOK, "").await?;
        let numbers: Vec<i64> = match rows.first() {
            Some(row) => row.iter().map(|text| text.parse()).collect::<Result<_, _>>()?,
            None => Vec::new(),
        };
        let [hot, archived, dead, doubled, limited, max_workers, succeeded, failed] = numbers[..]
        else {
            return Err("a look is eight numbers".into());
        };
        Ok(Look { hot, archived, dead, doubled, limited, max_workers, succeeded, failed })
    }

    /// Every job, wherever it stands.
    pub(crate) async fn ends(&self) -> Result<Vec<End>, Failure> {
        let mut ends = Vec::new();
        for (place, table) in (0..).zip(["JobsHot", "JobsArchive", "JobsDLQ"]) {
            let id = match self {
                Self::Sqlite(_) => "hex(Id)",
                Self::Mssql { .. } => "Id",
            };
            let columns = [id, "AttemptCount", "COALESCE(Errors, '[]')"];
            for row in self.rows(&columns, &format!("FROM ~{table}")).await? {
                let [id, attempts, errors] = &row[..] else { return Err("three columns".into()) };
                let id = id.to_lowercase().replace('-', "");
                let hyphens = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &id[part]).join("-");
                let (id, attempts) = (hyphens.parse()?, attempts.parse()?);
                ends.push(End { id, place, attempts, errors: errors.clone() });
            }
        }
        Ok(ends)
    }

    /// Columns as text; `~` stands before each table.
    async fn rows(&self, columns: &[&str], from: &str) -> Result<Vec<Vec<String>>, Failure> {
        match self {
            Self::Sqlite(path) => {
                let cast = columns.iter().map(|column| format!("CAST({column} AS TEXT)"));
                let sql = format!("SELECT {} {from}", cast.collect::<Vec<_>>().join(", "));
                let (path, sql, width) = (path.clone(), sql.replace('~', ""), columns.len());
                spawn_blocking(move || {
                    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
                    let connection = Connection::open_with_flags(path, flags)?;
                    connection.busy_timeout(Duration::from_secs(30))?;
                    let mut statement = connection.prepare(&sql)?;
                    let row = |row: &rusqlite::Row<'_>| (0..width).map(|n| row.get(n)).collect();
                    let rows = statement.query_map([], row)?.collect::<Result<_, _>>()?;
                    Ok(rows)
                })
                .await?
            }
            Self::Mssql { direct, schema } => {
                let cast = columns.iter().map(|column| format!("CONVERT(nvarchar(max), {column})"));
                let sql = format!("SELECT {} {from};", cast.collect::<Vec<_>>().join(", "));
                let rows = mssql::rows(direct, &sql.replace('~', schema)).await?;
                let text =
                    |row: Vec<Option<String>>| row.into_iter().map(Option::unwrap_or_default);
                Ok(rows.into_iter().map(|row| text(row).collect()).collect())
            }
        }
    }

    /// Lets nobody else write for so long. It ends by itself, also where the caller goes away: a transaction that stays open
    /// would stop everybody for ever.
    pub(crate) async fn stall(&self, time: Duration) -> Result<(), Failure> {
        match self {
            Self::Sqlite(path) => {
                let path = path.clone();
                spawn_blocking(move || {
                    let connection = Connection::open(path)?;
                    connection.busy_timeout(Duration::from_secs(30))?;
                    connection.execute_batch("BEGIN IMMEDIATE")?;
                    std::thread::sleep(time);
                    connection.execute_batch("COMMIT")?;
                    Ok(())
                })
                .await?
            }
            Self::Mssql { direct, schema } => {
                let stall = hold_every_row(direct.clone(), schema.clone(), time);
                tokio::spawn(stall).await?
            }
        }
    }
}

async fn hold_every_row(
    direct: Connections,
    schema: String,
    time: Duration,
) -> Result<(), Failure> {
    let failure = |failure| Failure::from(chokaq::Error::from(failure));
    let mut session = direct.session(Role::Maintenance).await.map_err(failure)?;
    // Every row that anybody could want to beat for, finish or claim.
    let begin = format!(
        "BEGIN TRANSACTION; UPDATE {schema}JobsHot SET Priority = Priority; UPDATE {schema}Queues SET IsActive = IsActive;"
    );
    let limit = Duration::from_secs(30);
    let locked = session.batch("a stall", &begin, limit).await;
    if locked.is_ok() {
        sleep(time).await;
    }
    // Somebody else had the rows: no stall this time.
    let end = "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;";
    drop(session.batch("the end of a stall", end, limit).await);
    locked.map(drop).map_err(failure)
}
