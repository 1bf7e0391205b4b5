//! SQL Server, where `CHOKAQ_TEST_MSSQL_URL` names one: a schema for each claim that runs, and direct SQL beside the storage.
//!
//! Without the variable the claims are skipped, and say so; `CHOKAQ_REQUIRE_MSSQL=1` makes that a failure. The login must
//! be able to create schemas. They are called `chokaq_claims_0` and so on, are emptied before use and left behind, so that
//! the next run need not migrate; two runs on one database at a time would meet in them.

use std::{
    io::Write as _,
    sync::{
        Arc, LazyLock, Mutex, Once, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use chokaq::{
    model::{JobId, Timestamp},
    storage::{
        MigrationStorage, Storage,
        mssql::{Connections, MssqlOptions, MssqlStorage, Role},
    },
};
use tokio::runtime::Runtime;

use crate::{
    babelfish,
    harness::{Answer, Backend, Row},
};

const LIMIT: Duration = Duration::from_mins(1);

/// Every table that a claim fills, in an order in which they can be emptied.
const TABLES: [&str; 7] =
    ["JobsHot", "JobsArchive", "JobsDLQ", "StatsSummary", "MetricBuckets", "Queues", "Circuits"];

/// Direct SQL runs here: a connection belongs to the runtime that opened it, and each test has its own.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));

/// Databases that no claim uses at the moment.
static FREE: Mutex<Vec<Database>> = Mutex::new(Vec::new());
static MADE: AtomicUsize = AtomicUsize::new(0);
static SKIP_WAS_SAID: Once = Once::new();

struct Database {
    is_babelfish: bool,
    options: MssqlOptions,
    storage: Arc<MssqlStorage>,
    direct: Connections,
}

/// A claim's database; it goes back when the claim is done with it.
pub(crate) struct Mssql {
    /// `None` only while it is dropped.
    database: Option<Database>,
    /// The claim has changed the schema.
    is_changed: AtomicBool,
}

/// The URL of the server to test on, or why there is none.
pub(crate) fn url() -> Option<String> {
    let url = std::env::var("CHOKAQ_TEST_MSSQL_URL").ok().filter(|url| !url.is_empty());
    if url.is_none() {
        let required = std::env::var("CHOKAQ_REQUIRE_MSSQL").is_ok_and(|value| value == "1");
        assert!(!required, "CHOKAQ_REQUIRE_MSSQL=1 and no CHOKAQ_TEST_MSSQL_URL");
        SKIP_WAS_SAID.call_once(|| {
            say("CHOKAQ_TEST_MSSQL_URL is not set: THE CLAIMS WERE NOT PROVEN ON SQL SERVER");
        });
    }
    url
}

/// Past the test runner's capture of what passing tests print.
fn say(notice: &str) {
    let _ = std::io::stderr().write_all(format!("\n!!! {notice}\n").as_bytes());
}

/// The options for tables of their own: a schema of that name.
pub(crate) async fn options(url: &str, name: &str) -> MssqlOptions {
    let sign = if url.contains('?') { '&' } else { '?' };
    let parse =
        |url: String| MssqlOptions::parse(&url).expect("CHOKAQ_TEST_MSSQL_URL is an mssql:// URL");
    let server = Connections::new(parse(url.to_owned()));
    if babelfish::is_it(&server).await {
        babelfish::make_database(&server, name).await;
        parse(format!("{url}{sign}database={name}&schema=dbo")).with_rewrite(babelfish::rewrite)
    } else {
        parse(format!("{url}{sign}schema={name}"))
    }
}

impl Database {
    async fn make(url: &str) -> Self {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let options = options(url, &format!("chokaq_claims_{number}")).await;
        let storage = MssqlStorage::open(options.clone()).await.expect("the server is there");
        storage.migrate().await.expect("the schema can be made");
        let direct = Connections::new(options.clone());
        let is_babelfish = babelfish::is_it(&direct).await;
        Self { is_babelfish, options, storage, direct }
    }

    async fn empty(&self) {
        self.storage.lose_replies(0);
        let deletes = TABLES.map(|table| format!("DELETE FROM {};", self.table(table)));
        self.run(deletes.concat()).await;
    }

    /// Drops every table and migrates.
    async fn make_anew(&self) {
        let tables = TABLES.iter().chain(&["SchemaMigrations"]);
        let drops: Vec<_> =
            tables.map(|table| format!("DROP TABLE IF EXISTS {};", self.table(table))).collect();
        self.run(drops.concat()).await;
        self.storage.migrate().await.expect("the schema can be made");
    }

    fn table(&self, name: &str) -> String {
        format!("[{}].{name}", self.options.schema())
    }

    /// The rows of the only result set, all columns as text.
    async fn run(&self, sql: String) -> Vec<Vec<Option<String>>> {
        run(&self.direct, sql).await
    }
}

/// Runs a batch; each row's columns, all of which must be text.
pub(crate) async fn run(direct: &Connections, sql: String) -> Vec<Vec<Option<String>>> {
    let direct = direct.clone();
    let work = async move {
        let mut session = direct.session(Role::Maintenance).await?;
        let answer = session.batch("a test's own SQL", &sql, LIMIT).await?;
        let rows = answer.first_set();
        rows.iter().map(|row| (0..row.len()).map(|column| row.get(column)).collect()).collect()
    };
    let result: Result<_, chokaq::storage::mssql::Failure> =
        RUNTIME.spawn(work).await.expect("no panic");
    result.expect("the server takes a test's own SQL")
}

impl Mssql {
    fn database(&self) -> &Database {
        self.database.as_ref().expect("there until it is dropped")
    }

    fn table(&self, name: &str) -> String {
        self.database().table(name)
    }

    async fn run(&self, sql: String) -> Vec<Vec<Option<String>>> {
        self.database().run(sql).await
    }

    /// One text, such as a count.
    async fn one(&self, sql: String) -> String {
        let rows = self.run(sql).await;
        rows[0][0].clone().expect("not NULL")
    }
}

impl Drop for Mssql {
    fn drop(&mut self) {
        if let Some(database) = &self.database
            && self.is_changed.load(Ordering::SeqCst)
        {
            // Whatever became of the claim, the next one and the next run find the schema as it should be.
            std::thread::scope(|scope| {
                scope.spawn(|| RUNTIME.block_on(database.make_anew())).join()
            })
            .expect("the schema can be made anew");
        }
        FREE.lock().unwrap_or_else(PoisonError::into_inner).extend(self.database.take());
    }
}

impl Backend for Mssql {
    fn fresh(claim: &str) -> Answer<'_, Option<Self>> {
        Box::pin(async move {
            let url = url()?;
            let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let database = match free {
                Some(database) => database,
                None => Database::make(&url).await,
            };
            if let Some(why) = babelfish::difference(claim).filter(|_| database.is_babelfish) {
                say(&format!("{claim}: not proven here: Babelfish's {why}"));
                FREE.lock().unwrap_or_else(PoisonError::into_inner).push(database);
                return None;
            }
            database.empty().await;
            Some(Self { database: Some(database), is_changed: AtomicBool::new(false) })
        })
    }

    /// A round trip to another machine is not a call within the process.
    fn hangs_after(&self) -> Duration {
        Duration::from_mins(15)
    }

    fn soak(&self) -> Duration {
        Duration::from_mins(1)
    }

    fn storage(&self) -> Arc<dyn Storage> {
        self.database().storage.clone()
    }

    fn reopen(&self) -> Answer<'_, Arc<dyn Storage>> {
        Box::pin(async {
            let options = self.database().options.clone();
            MssqlStorage::open(options).await.expect("the server is there") as Arc<dyn Storage>
        })
    }

    fn lose_replies(&self, calls: u32) {
        self.database().storage.lose_replies(calls);
    }

    fn age(&self, job: JobId, by: Duration) -> Answer<'_, ()> {
        Box::pin(async move {
            let update = |table| {
                let times = columns(table).into_iter().filter(|column| column.ends_with("Utc"));
                let assignments: Vec<_> =
                    times.map(|column| format!("{column} = {}", shifted(column, by))).collect();
                format!(
                    "UPDATE {} SET {} WHERE Id = '{job}'; SET @aged = @aged + @@ROWCOUNT;",
                    self.table(table),
                    assignments.join(", ")
                )
            };
            let updates = ["JobsHot", "JobsArchive", "JobsDLQ"].map(update).concat();
            let sql = format!(
                "DECLARE @aged int = 0; {updates} SELECT CONVERT(nvarchar(20), @aged) AS Aged;"
            );
            assert_eq!(self.one(sql).await, "1", "{job} stands in exactly one table");
        })
    }

    fn age_buckets(&self, by: Duration) -> Answer<'_, ()> {
        Box::pin(async move {
            let buckets = self.table("MetricBuckets");
            let sql = format!("UPDATE {buckets} SET BucketUtc = {};", shifted("BucketUtc", by));
            self.run(sql).await;
        })
    }

    fn age_circuits(&self, by: Duration) -> Answer<'_, ()> {
        Box::pin(async move {
            let circuits = self.table("Circuits");
            let sql = format!("UPDATE {circuits} SET SeenAtUtc = {};", shifted("SeenAtUtc", by));
            self.run(sql).await;
        })
    }

    fn now(&self) -> Answer<'_, Timestamp> {
        Box::pin(async {
            let sql = "SELECT CONVERT(nvarchar(20), DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()));";
            let ms = self.one(sql.to_owned()).await;
            Timestamp::from_unix_ms(ms.parse().expect("a number"))
        })
    }

    fn read(&self, tables: &'static [&'static str]) -> Answer<'_, Vec<Vec<Row>>> {
        Box::pin(async {
            let columns: Vec<Vec<&str>> = tables.iter().map(|table| columns(table)).collect();
            let width = columns.iter().map(Vec::len).max().unwrap_or(0);
            // One statement, and locks on whole tables until it ends: a snapshot under every isolation setting.
            let parts: Vec<String> = tables
                .iter()
                .enumerate()
                .map(|(number, table)| {
                    let mut values: Vec<String> =
                        columns[number].iter().map(|column| as_text(column)).collect();
                    values.resize(width, "CONVERT(nvarchar(max), NULL)".to_owned());
                    format!(
                        "SELECT CONVERT(nvarchar(max), {number}) AS T, {} FROM {} WITH (TABLOCK, HOLDLOCK)",
                        values.join(", "),
                        self.table(table)
                    )
                })
                .collect();
            let mut read: Vec<Vec<Row>> = vec![Vec::new(); tables.len()];
            for row in self.run(parts.join("\nUNION ALL\n")).await {
                let mut cells = row.into_iter();
                let number: usize =
                    cells.next().flatten().expect("a table").parse().expect("a number");
                let names = columns[number].iter().map(|name| (*name).to_owned());
                read[number].push(names.zip(cells).collect());
            }
            for rows in &mut read {
                rows.sort();
            }
            read
        })
    }

    fn ids(&self) -> Answer<'_, [Vec<JobId>; 3]> {
        Box::pin(async {
            let tables = self.read(&["JobsHot", "JobsArchive", "JobsDLQ"]).await;
            let ids = |rows: Vec<Row>| {
                let id = |row: Row| row["Id"].clone().expect("not NULL").parse().expect("an id");
                rows.into_iter().map(id).collect()
            };
            let mut tables = tables.into_iter().map(ids);
            std::array::from_fn(|_| tables.next().expect("three tables"))
        })
    }

    fn hot(&self, job: JobId) -> Answer<'_, Option<Row>> {
        Box::pin(async move {
            let rows = self.read(&["JobsHot"]).await.swap_remove(0);
            let id = job.to_string();
            let is_it = |row: &Row| row["Id"].as_ref().is_some_and(|i| i.eq_ignore_ascii_case(&id));
            rows.into_iter().find(is_it)
        })
    }

    fn change_schema(&self, sql: &'static str) -> Answer<'_, ()> {
        Box::pin(async {
            self.is_changed.store(true, Ordering::SeqCst);
            let schema = format!("[{}].", self.database().options.schema());
            self.run(sql.replace("[chokaq].", &schema)).await;
        })
    }

    fn drop_index(&self, table: &'static str, index: &'static str) -> Answer<'_, ()> {
        Box::pin(async move {
            self.is_changed.store(true, Ordering::SeqCst);
            self.run(format!("DROP INDEX {index} ON {};", self.table(table))).await;
        })
    }

    fn is_the_engines(&self, difference: &str) -> bool {
        self.database().is_babelfish && babelfish::cannot_show(difference)
    }

    fn active(&self, queue: String) -> Answer<'_, u64> {
        Box::pin(async move {
            let hot = self.table("JobsHot");
            let sql = format!(
                "SELECT CONVERT(nvarchar(20), COUNT(*)) FROM {hot} WHERE Queue = N'{queue}' AND Status > 0;"
            );
            self.one(sql).await.parse().expect("a count")
        })
    }
}

/// Columns of the tables, in the order of the schema.
const COLUMNS: [(&str, &str); 7] = [
    (
        "JobsHot",
        "Seq Id Queue Type Status IsReady Priority AttemptCount MaxRetries TimeoutMs MaxAgeMs OnCrash CreatedAtUtc \
         ScheduledAtUtc DeadlineUtc WorkerId LeaseId FetchedAtUtc StartedAtUtc HeartbeatUtc SuspectUtc CancelRequestedUtc \
         UnknownSinceUtc IdempotencyKey CreatedBy Tags Progress ProgressNote Errors Payload",
    ),
    (
        "JobsArchive",
        "Id Queue Type Priority AttemptCount MaxRetries CreatedAtUtc ScheduledAtUtc DeadlineUtc StartedAtUtc FinishedAtUtc \
         WorkerId LeaseId IdempotencyKey CreatedBy Tags Errors Output OutputNote Payload",
    ),
    (
        "JobsDLQ",
        "Id Queue Type Priority AttemptCount MaxRetries TimeoutMs MaxAgeMs OnCrash CreatedAtUtc ScheduledAtUtc DeadlineUtc \
         StartedAtUtc FailedAtUtc Reason Error WorkerId LeaseId IdempotencyKey CreatedBy Tags Errors Payload",
    ),
    ("StatsSummary", "Queue Shard SucceededTotal FailedTotal RetriedTotal LastActivityUtc"),
    ("MetricBuckets", "BucketUtc Queue Shard Succeeded Failed DurationMs"),
    ("Queues", "Name IsPaused IsActive ZombieTimeoutMs MaxWorkers UpdatedAtUtc"),
    ("Circuits", "WorkerId Type State Failures Error OpenedAtUtc RetryAtUtc SeenAtUtc"),
];

fn columns(table: &str) -> Vec<&'static str> {
    let (_, columns) = COLUMNS.iter().find(|(name, _)| *name == table).expect("a table");
    columns.split(' ').collect()
}

/// A column as text; a time as milliseconds since 1970.
fn as_text(column: &str) -> String {
    if column.ends_with("Utc") {
        format!("CONVERT(nvarchar(max), DATEDIFF_BIG(millisecond, '19700101', {column}))")
    } else {
        format!("CONVERT(nvarchar(max), {column})")
    }
}

fn shifted(column: &str, by: Duration) -> String {
    let (seconds, ms) = (by.as_secs(), by.subsec_millis());
    format!("DATEADD(millisecond, -{ms}, DATEADD(second, -{seconds}, {column}))")
}
