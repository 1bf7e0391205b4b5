//! What a claim gets: a fresh database, the contract over it, and a view past the contract.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    ops::Deref,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chokaq::{
    model::{JobId, Timestamp},
    storage::Storage,
};

use crate::calls::Calls;

/// What a backend's harness answers.
pub(crate) type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A table's rows: column -> value as text, `None` for NULL.
pub(crate) type Row = BTreeMap<String, Option<String>>;

/// One database of one backend. Everything here goes past the contract, by direct SQL.
pub(crate) trait Backend: Send + Sync {
    /// An empty, migrated database of its own; `None` where the claim cannot be tested here, after saying why.
    fn fresh(claim: &str) -> Answer<'_, Option<Self>>
    where
        Self: Sized;

    /// How long a claim may take before it is said to hang; no claim depends on it.
    fn hangs_after(&self) -> Duration {
        Duration::from_mins(2)
    }

    /// How long a crowd is let loose on it.
    fn soak(&self) -> Duration {
        Duration::from_secs(5)
    }

    /// The storage that every claim uses.
    fn storage(&self) -> Arc<dyn Storage>;

    /// A second storage over the same database, as another process would open it.
    fn reopen(&self) -> Answer<'_, Arc<dyn Storage>>;

    /// The next `calls` write calls of [`storage`](Self::storage) commit and then fail as transient.
    fn lose_replies(&self, calls: u32);

    /// Shifts every time in the job's row into the past, as if it had stood there for longer.
    fn age(&self, job: JobId, by: Duration) -> Answer<'_, ()>;

    /// Shifts every metric bucket into the past.
    fn age_buckets(&self, by: Duration) -> Answer<'_, ()>;

    /// Moves the last word of every worker about its circuits into the past.
    fn age_circuits(&self, by: Duration) -> Answer<'_, ()>;

    /// The database's clock.
    fn now(&self) -> Answer<'_, Timestamp>;

    /// All rows of the named tables, in one snapshot.
    fn read(&self, tables: &'static [&'static str]) -> Answer<'_, Vec<Vec<Row>>>;

    /// The values of the `Id` column of Hot, Archive and DLQ, in one snapshot.
    fn ids(&self) -> Answer<'_, [Vec<JobId>; 3]>;

    /// The row of one job in `JobsHot`.
    fn hot(&self, job: JobId) -> Answer<'_, Option<Row>>;

    /// Changes the schema, by a statement that every engine understands; `[chokaq].` stands for the schema's name.
    fn change_schema(&self, sql: &'static str) -> Answer<'_, ()>;

    /// Drops an index.
    fn drop_index(&self, table: &'static str, index: &'static str) -> Answer<'_, ()>;

    /// Whether what the check of the schema says is true of the engine, and not of the schema.
    fn is_the_engines(&self, _difference: &str) -> bool {
        false
    }

    /// The rows of a queue that are Fetched or Processing.
    fn active(&self, queue: String) -> Answer<'_, u64>;
}

/// A database under test.
#[derive(Clone)]
pub(crate) struct Db {
    backend: Arc<dyn Backend>,
    calls: Calls,
    /// A claim purges: history and buckets may be less than the totals say.
    forgets: Arc<AtomicBool>,
}

impl Deref for Db {
    type Target = Calls;

    fn deref(&self) -> &Calls {
        &self.calls
    }
}

/// Runs one claim on a fresh database, then checks the whole database.
pub(crate) async fn prove<B: Backend + 'static>(name: &str, claim: impl AsyncFnOnce(&Db)) {
    let Some(backend) = B::fresh(name).await else { return };
    let hangs_after = backend.hangs_after();
    let backend: Arc<dyn Backend> = Arc::new(backend);
    let calls = Calls::new(backend.storage());
    let db = Db { backend, calls, forgets: Arc::default() };
    let run = async {
        claim(&db).await;
        db.check().await;
    };
    tokio::time::timeout(hangs_after, run).await.expect("the claim does not hang");
}

impl Db {
    /// The contract as another process sees it.
    pub(crate) async fn reopen(&self) -> Calls {
        Calls::new(self.backend.reopen().await)
    }

    pub(crate) fn lose_replies(&self, calls: u32) {
        self.backend.lose_replies(calls);
    }

    pub(crate) async fn age(&self, job: JobId, by: Duration) {
        self.backend.age(job, by).await;
    }

    pub(crate) async fn age_buckets(&self, by: Duration) {
        self.backend.age_buckets(by).await;
    }

    pub(crate) async fn age_circuits(&self, by: Duration) {
        self.backend.age_circuits(by).await;
    }

    pub(crate) async fn change_schema(&self, sql: &'static str) {
        self.backend.change_schema(sql).await;
    }

    pub(crate) async fn drop_index(&self, table: &'static str, index: &'static str) {
        self.backend.drop_index(table, index).await;
    }

    pub(crate) fn is_the_engines(&self, difference: &str) -> bool {
        self.backend.is_the_engines(difference)
    }

    /// What the check of the schema finds, without what the engine cannot show.
    pub(crate) async fn drift(&self) -> Vec<String> {
        let mut found = self.storage.check_schema().await.expect("the storage answers");
        found.retain(|difference| !self.is_the_engines(difference));
        found
    }

    pub(crate) async fn now(&self) -> Timestamp {
        self.backend.now().await
    }

    pub(crate) fn soak(&self) -> Duration {
        self.backend.soak()
    }

    /// The ids in Hot, Archive and DLQ, in one snapshot.
    pub(crate) async fn ids(&self) -> [Vec<JobId>; 3] {
        self.backend.ids().await
    }

    /// One column of a job's row in `JobsHot`.
    pub(crate) async fn hot(&self, job: JobId, column: &str) -> Option<String> {
        let row = self.backend.hot(job).await.expect("the job stands in JobsHot");
        row.get(column).unwrap_or_else(|| panic!("JobsHot has a column {column}")).clone()
    }

    /// A time of a job's row in `JobsHot`.
    pub(crate) async fn hot_ms(&self, job: JobId, column: &str) -> Option<i64> {
        self.hot(job, column).await.map(|text| text.parse().expect("a time is a number"))
    }

    pub(crate) async fn active(&self, queue: &str) -> u64 {
        self.backend.active(queue.to_owned()).await
    }

    /// Every row of every table, to compare before and after.
    pub(crate) async fn dump(&self) -> Vec<Vec<Row>> {
        self.backend
            .read(&["JobsHot", "JobsArchive", "JobsDLQ", "StatsSummary", "MetricBuckets", "Queues"])
            .await
    }

    /// Runs `calls` and holds the database to what it was.
    pub(crate) async fn changes_nothing<T: Debug>(
        &self,
        what: &str,
        calls: impl Future<Output = T>,
    ) -> T {
        let before = self.dump().await;
        let answer = calls.await;
        let after = self.dump().await;
        assert_eq!(before, after, "{what} answered {answer:?} and changed something");
        answer
    }

    /// How many rows stand in Hot, Archive and DLQ.
    pub(crate) async fn rows(&self) -> [usize; 3] {
        self.backend.ids().await.map(|ids| ids.len())
    }

    /// In which of Hot, Archive, DLQ the job stands, each as many times as it stands there.
    pub(crate) async fn places(&self, job: JobId) -> Vec<&'static str> {
        let tables = self.backend.ids().await;
        let names = ["JobsHot", "JobsArchive", "JobsDLQ"];
        let mut places = Vec::new();
        for (name, ids) in names.into_iter().zip(&tables) {
            places.extend(ids.iter().filter(|id| **id == job).map(|_| name));
        }
        places
    }

    /// I1 over the whole database, in one snapshot.
    pub(crate) async fn check_each_job_is_in_one_place(&self) {
        let mut seen = BTreeSet::new();
        for id in self.backend.ids().await.into_iter().flatten() {
            assert!(seen.insert(id), "I1: {id} stands in two places");
        }
    }

    /// The rows of all workers' circuits, old ones too.
    pub(crate) async fn circuit_rows(&self) -> usize {
        self.backend.read(&["Circuits"]).await[0].len()
    }

    /// Says that the claim purges.
    pub(crate) fn will_forget(&self) {
        self.forgets.store(true, Ordering::Relaxed);
    }

    /// I1, rows that agree with themselves, and totals that agree with history and buckets.
    pub(crate) async fn check(&self) {
        self.check_each_job_is_in_one_place().await;
        let mut tables = self.dump().await.into_iter();
        let mut next = || tables.next().expect("a dump has six tables");
        let (hot, archive, dead, stats, buckets, queues) =
            (next(), next(), next(), next(), next(), next());
        hot.iter().for_each(check_hot_row);
        let known: BTreeSet<String> = queues.iter().map(|row| text(row, "Name")).collect();
        for row in &hot {
            assert!(known.contains(&text(row, "Queue")), "the queue of {row:?} is in Queues");
        }
        let succeeded = sum(&stats, "SucceededTotal");
        let failed = sum(&stats, "FailedTotal");
        let agrees = |totals: &BTreeMap<String, u64>, kept: BTreeMap<String, u64>, what| {
            if self.forgets.load(Ordering::Relaxed) {
                assert!(kept.iter().all(|(queue, n)| totals.get(queue) >= Some(n)), "{what}");
            } else {
                assert_eq!(*totals, kept, "{what}");
            }
        };
        agrees(&succeeded, count(&archive), "each archived job is one success");
        agrees(&succeeded, sum(&buckets, "Succeeded"), "buckets add up to the successes");
        agrees(&failed, sum(&buckets, "Failed"), "buckets add up to the failures");
        for (queue, dead) in count(&dead) {
            assert!(failed.get(&queue) >= Some(&dead), "each dead job of {queue} was counted");
        }
    }
}

/// A Pending row is nobody's; every other row has a holder, and a running row a start and a heartbeat.
fn check_hot_row(row: &Row) {
    let status = text(row, "Status");
    let has = |column: &str| row[column].is_some();
    assert_eq!(has("WorkerId"), status != "0", "only a claimed row has a holder: {row:?}");
    assert!(status == "0" || has("LeaseId"), "a claimed row has a lease: {row:?}");
    assert!(status != "1" || has("FetchedAtUtc"), "a fetched row says since when: {row:?}");
    let running = has("StartedAtUtc") && has("HeartbeatUtc");
    assert!(status != "2" || running, "a running row has a start and a heartbeat: {row:?}");
    assert!(status == "2" || !has("SuspectUtc"), "only a running row is a suspect: {row:?}");
}

fn text(row: &Row, column: &str) -> String {
    row[column].clone().unwrap_or_default()
}

/// Rows per queue.
fn count(rows: &[Row]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry(text(row, "Queue")).or_default() += 1;
    }
    counts
}

/// A column's sum per queue, without zeroes.
fn sum(rows: &[Row], column: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for row in rows {
        let value: u64 = text(row, column).parse().expect("a counter is a number");
        if value > 0 {
            *sums.entry(text(row, "Queue")).or_default() += value;
        }
    }
    sums
}
