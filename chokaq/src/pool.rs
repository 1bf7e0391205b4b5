//! From a URL to a storage.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use crate::{
    Error, Result,
    config::{self, Settings},
    model::{CancelOutcome, EnqueueOutcome, JobDetail, JobId, Limits, NewJob, PolicyDefaults},
    operator::Operator,
    storage::Storage,
};

/// A connection to a job database. Cheap to clone; clones and further connections to the same SQLite file in this
/// process share one writer and wake each other's workers.
#[derive(Clone)]
pub struct Pool {
    inner: Arc<Inner>,
}

struct Inner {
    storage: Arc<dyn Storage>,
    limits: Limits,
    policy: PolicyDefaults,
}

/// The URL and the pool of the last `from_env`, while someone holds it.
static FROM_ENV: Mutex<Option<(String, Weak<Inner>)>> = Mutex::new(None);

impl Pool {
    /// How long an enqueue goes on trying while the database cannot be reached.
    const ENQUEUE_LIMIT: Duration = Duration::from_secs(30);

    /// Connects to a database.
    ///
    /// - `sqlite:jobs.db`, `sqlite:/var/lib/app/jobs.db`: a file, created and migrated when it is missing or older;
    ///   `?synchronous=normal` makes commits wait for the operating system only, not for the disk (the default, `full`).
    /// - `sqlite::memory:`: in this process, gone with the last clone of the pool.
    ///
    /// `chokaq.toml` and environment variables (`CHOKAQ_RETRIES`, `CHOKAQ_PAYLOAD_LIMIT`, ...) set the pool's defaults.
    ///
    /// # Errors
    /// A URL that cannot be understood, a file that cannot be opened, a schema that is too new for this binary: the
    /// message names the part at fault, never a password.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> chokaq::Result<()> {
    /// let pool = chokaq::Pool::connect("sqlite::memory:").await?;
    /// # Ok(()) }
    /// ```
    pub async fn connect(url: impl AsRef<str>) -> Result<Self> {
        Self::open(url.as_ref(), Settings::default().overridden()?).await
    }

    async fn open(url: &str, settings: Settings) -> Result<Self> {
        let storage = open(url, &settings).await?;
        tracing::debug!(database = %storage.describe(), "connected");
        Ok(Self {
            inner: Arc::new(Inner { storage, limits: settings.limits, policy: settings.policy }),
        })
    }

    /// Describes a pool whose defaults are set in code, for job types that do not say; then
    /// [`connect`](PoolBuilder::connect). `chokaq.toml` and the environment override what is set here.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> chokaq::Result<()> {
    /// let pool = chokaq::Pool::builder("sqlite::memory:").retries(5).connect().await?;
    /// # Ok(()) }
    /// ```
    pub fn builder(url: impl Into<String>) -> PoolBuilder {
        PoolBuilder { url: url.into(), settings: Settings::default() }
    }

    /// Connects to the database of `CHOKAQ_DATABASE_URL` or of `chokaq.toml`; without either, to `sqlite:chokaq.db` in the working directory.
    /// A second call gives the same pool while one is held: an in-memory database is then the same one too.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn from_env() -> Result<Self> {
        let mut settings = Settings::default().overridden()?;
        let url = settings.database_url.take().unwrap_or_else(|| "sqlite:chokaq.db".to_owned());
        if let Some(pool) = Self::held(&url) {
            return Ok(pool);
        }
        let pool = Self::open(&url, settings).await?;
        let mut slot = FROM_ENV.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((held, inner)) = &*slot
            && *held == url
            && let Some(inner) = inner.upgrade()
        {
            return Ok(Self { inner });
        }
        *slot = Some((url, Arc::downgrade(&pool.inner)));
        Ok(pool)
    }

    fn held(url: &str) -> Option<Self> {
        let slot = FROM_ENV.lock().unwrap_or_else(PoisonError::into_inner);
        let (held, inner) = slot.as_ref()?;
        (held == url).then(|| inner.upgrade().map(|inner| Self { inner }))?
    }

    /// A pool over a storage that a test has opened. Not part of the public API.
    #[doc(hidden)]
    pub fn over(storage: Arc<dyn Storage>) -> Self {
        let settings = Settings::default();
        Self {
            inner: Arc::new(Inner { storage, limits: settings.limits, policy: settings.policy }),
        }
    }

    /// Applies every migration that the database lacks, and answers their names. SQLite is migrated on connect.
    ///
    /// # Errors
    /// The database cannot be reached or changed.
    pub async fn migrate(&self) -> Result<Vec<String>> {
        self.storage().migrate().await
    }

    /// The SQL that [`migrate`](Self::migrate) would run now; runs nothing.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn migration_plan(&self) -> Result<String> {
        self.storage().migration_plan().await
    }

    /// Everything known of a job: where it is, its attempts with their errors, progress, output. `None`: no such job,
    /// or its history was purged.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn job(&self, id: JobId) -> Result<Option<JobDetail>> {
        self.storage().find_job(id).await
    }

    /// Cancels a job: one that waits goes to the dead-letter queue as Cancelled, one that runs has its context
    /// cancelled.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub async fn cancel(&self, id: JobId) -> Result<CancelOutcome> {
        let outcomes = self.storage().cancel(vec![id], "cancelled by a caller".to_owned()).await?;
        Ok(outcomes.first().copied().unwrap_or(CancelOutcome::NotActive))
    }

    /// What operators do: statistics, queue controls, listing, cancel, resurrect.
    pub fn operator(&self) -> Operator {
        Operator::new(self.clone())
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    pub(crate) fn policy_defaults(&self) -> &PolicyDefaults {
        &self.inner.policy
    }

    /// The storage behind the pool. Not part of the public API.
    #[doc(hidden)]
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.inner.storage
    }

    /// Inserts. A transient failure, its outcome unknown, is answered by the same insert again, which recognises what
    /// the first run did.
    pub(crate) async fn insert(&self, jobs: Vec<NewJob>) -> Result<Vec<EnqueueOutcome>> {
        let started = Instant::now();
        let mut pause = Duration::from_millis(20);
        loop {
            let error = match self.storage().enqueue(jobs.clone()).await {
                Ok(outcomes) => return Ok(outcomes),
                Err(error) => error,
            };
            if !error.is_transient() || started.elapsed() + pause >= Self::ENQUEUE_LIMIT {
                return Err(error);
            }
            tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64())).await;
            pause = (pause * 2).min(Duration::from_secs(2));
        }
    }
}

/// A pool's defaults, set in code; from [`Pool::builder`].
#[must_use = "a builder does nothing until `connect`"]
pub struct PoolBuilder {
    url: String,
    settings: Settings,
}

impl PoolBuilder {
    /// Re-executions after the first; default 3.
    pub fn retries(mut self, retries: u32) -> Self {
        self.settings.policy.retries = retries;
        self
    }

    /// How long one attempt may run; default 15 min.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.settings.policy.timeout = limit;
        self
    }

    /// How long after it was first due a job may still be retried; default 1 day.
    pub fn max_age(mut self, age: Duration) -> Self {
        self.settings.policy.max_age = age;
        self
    }

    /// The wait before the first retry, what each further one is multiplied by, and the longest; default 3 s, 2.0, 1 h.
    pub fn backoff(mut self, base: Duration, factor: f64, max: Duration) -> Self {
        self.settings.policy.backoff_base = base;
        self.settings.policy.backoff_factor = factor;
        self.settings.policy.backoff_max = max;
        self
    }

    /// The largest payload and output, in bytes of JSON; default 1,000,000.
    pub fn payload_limit(mut self, bytes: usize) -> Self {
        self.settings.limits.payload_bytes = bytes;
        self
    }

    /// Connects.
    ///
    /// # Errors
    /// As [`Pool::connect`]; also a duration of zero or over 100 years, or a factor below 1.
    pub async fn connect(self) -> Result<Pool> {
        let settings = self.settings.overridden()?;
        config::check_policy(&settings.policy)?;
        Pool::open(&self.url, settings).await
    }
}

impl fmt::Debug for PoolBuilder {
    /// Without the URL: it may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolBuilder").field("policy", &self.settings.policy).finish_non_exhaustive()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("database", &self.inner.storage.describe()).finish()
    }
}

/// Opens what the URL names. The URL itself stays out of messages: it may hold a password.
async fn open(url: &str, settings: &Settings) -> Result<Arc<dyn Storage>> {
    let scheme = url.split(':').next().unwrap_or_default();
    match scheme {
        #[cfg(feature = "sqlite")]
        "sqlite" => sqlite::open(url, settings).await,
        #[cfg(not(feature = "sqlite"))]
        "sqlite" => {
            let _ = settings;
            let error =
                "this program was built without SQLite: enable the `sqlite` feature of chokaq";
            std::future::ready(Err(Error::config(error))).await
        }
        "mssql" | "sqlserver" | "jdbc" => Err(Error::config(format!(
            "the database URL starts with {scheme:?}: this version of chokaq has no SQL Server backend yet; use `sqlite:path`"
        ))),
        _ => Err(Error::config(
            "the database URL does not start with `sqlite:`: write `sqlite:jobs.db`, `sqlite:/path/to/jobs.db` or \
             `sqlite::memory:`",
        )),
    }
}

#[cfg(feature = "sqlite")]
mod sqlite {
    //! SQLite URLs, and one storage per file and process.

    use std::{
        collections::HashMap,
        path::{Path, PathBuf},
        sync::{Arc, Mutex, PoisonError, Weak},
    };

    use crate::{
        Error, Result,
        config::Settings,
        storage::{
            Storage,
            sqlite::{Location, SqliteOptions, SqliteStorage, Synchronous},
        },
    };

    static OPEN: Mutex<Option<HashMap<PathBuf, Weak<SqliteStorage>>>> = Mutex::new(None);

    pub(super) async fn open(url: &str, settings: &Settings) -> Result<Arc<dyn Storage>> {
        let (location, options) = parse(url, settings)?;
        let opened = tokio::task::spawn_blocking(move || match location {
            Location::Memory => SqliteStorage::open(Location::Memory, options),
            Location::File(path) => open_file(path, options),
        });
        let storage = opened
            .await
            .map_err(|e| Error::permanent("opening the database failed", Some(e.into())))??;
        Ok(storage)
    }

    /// Two openings of one file at the same time wait for each other, so that there is never a second writer.
    fn open_file(path: PathBuf, options: SqliteOptions) -> Result<Arc<SqliteStorage>> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.get_or_insert_default();
        let key = canonical(&path);
        if let Some(storage) = open.get(&key).and_then(Weak::upgrade) {
            return Ok(storage);
        }
        open.retain(|_, storage| storage.strong_count() > 0);
        let storage = SqliteStorage::open(Location::File(path), options)?;
        open.insert(key, Arc::downgrade(&storage));
        Ok(storage)
    }

    /// The same file by whatever name; the file itself may not exist yet.
    fn canonical(path: &Path) -> PathBuf {
        if let Ok(whole) = path.canonicalize() {
            return whole;
        }
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new(".")).canonicalize();
        match (parent, path.file_name()) {
            (Ok(parent), Some(name)) => parent.join(name),
            _ => path.to_owned(),
        }
    }

    fn parse(url: &str, settings: &Settings) -> Result<(Location, SqliteOptions)> {
        let rest = url.strip_prefix("sqlite:").unwrap_or(url);
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path = path.strip_prefix("//").unwrap_or(path);
        let mut options =
            SqliteOptions { synchronous: settings.sqlite_synchronous, ..SqliteOptions::default() };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            options.synchronous = match pair {
                "synchronous=full" => Synchronous::Full,
                "synchronous=normal" => Synchronous::Normal,
                _ => {
                    // Its value stays out of the message: it may be a key.
                    let name = pair.split('=').next().unwrap_or_default();
                    return Err(Error::config(format!(
                        "the SQLite URL has the option {name:?}: the only one is `synchronous=full` or `synchronous=normal`"
                    )));
                }
            };
        }
        match path {
            "" => Err(Error::config(
                "the SQLite URL names no file: write `sqlite:jobs.db`, or `sqlite::memory:`",
            )),
            ":memory:" => Ok((Location::Memory, options)),
            path => Ok((Location::File(path.into()), options)),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn location(url: &str) -> Location {
            parse(url, &Settings::default()).expect(url).0
        }

        #[test]
        fn paths_are_taken_as_they_are_written() {
            assert_eq!(location("sqlite:jobs.db"), Location::File("jobs.db".into()));
            assert_eq!(location("sqlite:/var/jobs.db"), Location::File("/var/jobs.db".into()));
            assert_eq!(location("sqlite:///var/jobs.db"), Location::File("/var/jobs.db".into()));
            assert_eq!(location("sqlite::memory:"), Location::Memory);
        }

        #[test]
        fn an_unknown_option_is_refused_by_name_without_its_value() {
            let url = "sqlite:a.db?key=secret";
            let error = parse(url, &Settings::default()).expect_err("unknown").to_string();
            assert!(error.contains("\"key\"") && !error.contains("secret"), "{error}");
        }
    }
}
