//! A pool: the database that jobs are enqueued to and run from.

#[cfg(feature = "mssql")]
mod mssql;
mod open;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use crate::{
    Result,
    config::{self, Settings},
    model::{CancelOutcome, EnqueueOutcome, JobDetail, JobId, Limits, NewJob, PolicyDefaults},
    operator::Operator,
    pool::open::Credentials,
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
    /// - `mssql://user:password@host:1433/database?schema=chokaq`, an ADO.NET or a JDBC string (feature `mssql`): SQL Server
    ///   2017 or later, or Azure SQL. Its schema is migrated only when asked: by [`migrate`](Self::migrate),
    ///   [`PoolBuilder::auto_migrate`] or `CHOKAQ_AUTO_MIGRATE=true`; until then calls answer an error that says so.
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
        Self::open(url.as_ref(), Settings::default().overridden()?, &Credentials::default()).await
    }

    async fn open(url: &str, settings: Settings, credentials: &Credentials) -> Result<Self> {
        let storage = open::open(url, &settings, credentials).await?;
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
        PoolBuilder {
            url: url.into(),
            settings: Settings::default(),
            credentials: Credentials::default(),
        }
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
        let pool = Self::open(&url, settings, &Credentials::default()).await?;
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

    /// How the database differs from what this release's migrations make, a sentence for each difference with its
    /// remedy: missing or changed tables, columns and indexes, triggers, and what was added by hand or by a later release.
    /// Empty: none. Changes nothing. Tables that are not chokaq's count only where the schema is meant for chokaq alone:
    /// on SQL Server, in a schema other than `dbo`.
    ///
    /// # Errors
    /// The database cannot be read.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> chokaq::Result<()> {
    /// let pool = chokaq::Pool::connect("sqlite::memory:").await?;
    /// for difference in pool.check_schema().await? {
    ///     eprintln!("schema: {difference}");
    /// }
    /// # assert!(pool.check_schema().await?.is_empty());
    /// # Ok(()) }
    /// ```
    pub async fn check_schema(&self) -> Result<Vec<String>> {
        self.storage().check_schema().await
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
    credentials: Credentials,
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

    /// Whether connecting applies the migrations that a SQL Server lacks; default no, as it takes rights that a worker
    /// should not have. SQLite is always migrated.
    pub fn auto_migrate(mut self, migrates: bool) -> Self {
        self.settings.auto_migrate = migrates;
        self
    }

    /// Logs in to SQL Server with access tokens of Microsoft Entra ID instead of a password.
    ///
    /// ```no_run
    /// # async fn get_token() -> Result<String, std::io::Error> { unimplemented!() }
    /// # async fn example() -> chokaq::Result<()> {
    /// let tokens = chokaq::AccessTokens::new(|| async { get_token().await });
    /// let pool = chokaq::Pool::builder("mssql://server.database.windows.net/shop")
    ///     .access_tokens(tokens)
    ///     .connect()
    ///     .await?;
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "mssql")]
    pub fn access_tokens(mut self, tokens: crate::storage::mssql::AccessTokens) -> Self {
        self.credentials.access_tokens = Some(tokens);
        self
    }

    /// Connects.
    ///
    /// # Errors
    /// As [`Pool::connect`]; also a duration of zero or over 50 years, or a factor below 1.
    pub async fn connect(self) -> Result<Pool> {
        let settings = self.settings.overridden()?;
        config::check_policy(&settings.policy)?;
        Pool::open(&self.url, settings, &self.credentials).await
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
