//! SQLite in a file of its own, and direct SQL beside the storage.

use std::{path::PathBuf, sync::Arc, time::Duration};

use chokaq::{
    model::{JobId, Timestamp},
    storage::{
        Storage,
        sqlite::{Location, SqliteOptions, SqliteStorage, Synchronous},
    },
};
use rusqlite::{Connection, params, types::Value};
use tempfile::TempDir;

use crate::harness::{Answer, Backend, Row};

/// A file in a directory that goes with it. The storage goes first.
pub(crate) struct Sqlite {
    storage: Arc<SqliteStorage>,
    directory: TempDir,
}

impl Sqlite {
    fn path(directory: &TempDir) -> PathBuf {
        directory.path().join("jobs.db")
    }

    fn open(directory: &TempDir) -> Arc<SqliteStorage> {
        // A claim is about what is committed, not about power cuts.
        let options =
            SqliteOptions { synchronous: Synchronous::Normal, ..SqliteOptions::default() };
        SqliteStorage::open(Location::File(Self::path(directory)), options)
            .expect("a database in a fresh directory opens")
    }

    fn connect(&self) -> Connection {
        let connection = Connection::open(Self::path(&self.directory)).expect("the file opens");
        connection.busy_timeout(Duration::from_secs(30)).expect("a busy timeout is accepted");
        connection
    }
}

impl Backend for Sqlite {
    fn fresh(_claim: &str) -> Answer<'_, Option<Self>> {
        Box::pin(async {
            let directory = TempDir::new().expect("a temporary directory");
            Some(Self { storage: Self::open(&directory), directory })
        })
    }

    fn storage(&self) -> Arc<dyn Storage> {
        self.storage.clone()
    }

    fn reopen(&self) -> Answer<'_, Arc<dyn Storage>> {
        Box::pin(async { Self::open(&self.directory) as Arc<dyn Storage> })
    }

    fn lose_replies(&self, calls: u32) {
        self.storage.lose_replies(calls);
    }

    fn age(&self, job: JobId, by: Duration) -> Answer<'_, ()> {
        Box::pin(async move {
            let connection = self.connect();
            let mut aged = 0;
            for table in ["JobsHot", "JobsArchive", "JobsDLQ"] {
                let assignments: Vec<String> = columns(&connection, table)
                    .into_iter()
                    .filter(|column| column.ends_with("Utc"))
                    .map(|column| format!("{column} = {column} - ?2"))
                    .collect();
                let sql = format!("UPDATE {table} SET {} WHERE Id = ?1", assignments.join(", "));
                aged += connection
                    .execute(&sql, params![job.as_bytes(), ms(by)])
                    .expect("a row's times can be shifted");
            }
            assert_eq!(aged, 1, "{job} stands in exactly one table");
        })
    }

    fn age_buckets(&self, by: Duration) -> Answer<'_, ()> {
        Box::pin(async move {
            self.connect()
                .execute("UPDATE MetricBuckets SET BucketUtc = BucketUtc - ?1", [ms(by)])
                .expect("buckets can be shifted");
        })
    }

    fn age_circuits(&self, by: Duration) -> Answer<'_, ()> {
        Box::pin(async move {
            self.connect()
                .execute("UPDATE Circuits SET SeenAtUtc = SeenAtUtc - ?1", [ms(by)])
                .expect("circuits can be shifted");
        })
    }

    fn now(&self) -> Answer<'_, Timestamp> {
        Box::pin(async { Timestamp::now() })
    }

    fn read(&self, tables: &'static [&'static str]) -> Answer<'_, Vec<Vec<Row>>> {
        Box::pin(async {
            let mut connection = self.connect();
            let snapshot = connection.transaction().expect("a read transaction starts");
            tables.iter().map(|table| rows(&snapshot, table)).collect()
        })
    }

    fn ids(&self) -> Answer<'_, [Vec<JobId>; 3]> {
        Box::pin(async {
            let mut connection = self.connect();
            let snapshot = connection.transaction().expect("a read transaction starts");
            ["JobsHot", "JobsArchive", "JobsDLQ"].map(|table| {
                let mut query =
                    snapshot.prepare(&format!("SELECT Id FROM {table}")).expect("a table has ids");
                let ids = query.query_map([], |row| row.get(0)).expect("ids are read");
                ids.map(|id| JobId::from_bytes(id.expect("an id has 16 bytes"))).collect()
            })
        })
    }

    fn hot(&self, job: JobId) -> Answer<'_, Option<Row>> {
        Box::pin(async move {
            let id = hex(job.as_bytes());
            rows(&self.connect(), "JobsHot").into_iter().find(|row| row["Id"].as_ref() == Some(&id))
        })
    }

    fn change_schema(&self, sql: &'static str) -> Answer<'_, ()> {
        Box::pin(async {
            let sql = sql.replace("[chokaq].", "");
            self.connect().execute_batch(&sql).expect("the schema can be changed");
        })
    }

    fn drop_index(&self, _: &'static str, index: &'static str) -> Answer<'_, ()> {
        Box::pin(async move {
            let sql = format!("DROP INDEX {index}");
            self.connect().execute_batch(&sql).expect("the index is there");
        })
    }

    fn active(&self, queue: String) -> Answer<'_, u64> {
        Box::pin(async move {
            let sql = "SELECT count(1) FROM JobsHot WHERE Queue = ?1 AND Status > 0";
            let rows: i64 =
                self.connect().query_row(sql, [queue], |row| row.get(0)).expect("rows are counted");
            u64::try_from(rows).expect("a count is not negative")
        })
    }
}

fn columns(connection: &Connection, table: &str) -> Vec<String> {
    let query = connection.prepare(&format!("SELECT * FROM {table}")).expect("the table exists");
    query.column_names().map(str::to_owned).collect()
}

fn rows(connection: &Connection, table: &str) -> Vec<Row> {
    let names = columns(connection, table);
    let mut query =
        connection.prepare(&format!("SELECT * FROM {table}")).expect("the table exists");
    let rows = query.query_map([], |row| {
        let cell = |(index, name): (usize, &String)| Ok((name.clone(), as_text(row.get(index)?)));
        names.iter().enumerate().map(cell).collect()
    });
    rows.expect("a table is read").map(|row| row.expect("a row is read")).collect()
}

fn as_text(value: Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Integer(number) => Some(number.to_string()),
        Value::Real(number) => Some(number.to_string()),
        Value::Text(text) => Some(text),
        Value::Blob(bytes) => Some(hex(&bytes)),
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes text");
    }
    text
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).expect("an age fits")
}
