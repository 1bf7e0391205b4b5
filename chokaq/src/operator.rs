//! What people who run jobs do: look, steer queues, cancel, resurrect, purge.

use std::{collections::HashSet, time::Duration};

use crate::{
    Error, Pool, Result,
    config::Pretty,
    model::{
        ArchiveRow, CancelOutcome, Circuit, DlqErrorGroup, DlqRow, JobId, Limits, PageCursor,
        PayloadEdit, Purge, QueueHealth, QueueSettings, QueueStats, ResurrectEdits,
        ResurrectOutcome, SummaryStats, ThroughputPoint,
    },
};

/// The operator's view of a pool, from [`Pool::operator`].
#[derive(Debug, Clone)]
pub struct Operator {
    pool: Pool,
}

/// What to change on a dead job before it runs again; what is not set stays.
#[derive(Debug, Clone, Default)]
pub struct Edits {
    payload: Option<String>,
    tags: Option<Vec<String>>,
    priority: Option<i32>,
    queue: Option<String>,
}

impl Edits {
    /// Another payload, JSON text.
    #[must_use]
    pub fn payload(mut self, json: impl Into<String>) -> Self {
        self.payload = Some(json.into());
        self
    }

    /// Other tags; none removes them.
    #[must_use]
    pub fn tags<S: Into<String>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }

    /// Another priority.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Another queue.
    #[must_use]
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = Some(queue.into());
        self
    }

    fn check(self, limits: Limits) -> Result<ResurrectEdits> {
        if let Some(queue) = &self.queue {
            Limits::check_name("queue", queue)?;
        }
        Ok(ResurrectEdits {
            payload: self.payload.map(|json| PayloadEdit::new(&limits, json)).transpose()?,
            tags: self.tags.map(|tags| Limits::check_tags(&tags)).transpose()?,
            priority: self.priority,
            queue: self.queue,
        })
    }
}

impl Operator {
    /// The most ids of one call, and the most rows of one page.
    pub const MAX_ROWS: usize = 1_000;

    /// Twice as long as an enqueue repeats itself after a lost reply.
    const LEAST_AGE: Duration = Duration::from_mins(1);

    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool }
    }

    /// Counts over all queues.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn summary_stats(&self) -> Result<SummaryStats> {
        self.pool.storage().get_summary_stats().await
    }

    /// Counts, totals and settings per queue, by name.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn queue_stats(&self) -> Result<Vec<QueueStats>> {
        self.pool.storage().get_queue_stats().await
    }

    /// Lag and saturation per active queue, by name.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn queue_health(&self) -> Result<Vec<QueueHealth>> {
        self.pool.storage().get_queue_health().await
    }

    /// The circuit breakers that are not closed, of every worker that lives: which types are left alone, why, and when
    /// they are tried again. By type and worker, at most 1,000.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn circuits(&self) -> Result<Vec<Circuit>> {
        self.pool.storage().get_circuits().await
    }

    /// Successes and failures per queue and bucket of 10 s over the last `window`, oldest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn throughput_stats(&self, window: Duration) -> Result<Vec<ThroughputPoint>> {
        self.pool.storage().get_throughput_stats(window).await
    }

    /// The commonest errors among the newest 1,000 dead jobs, at most `limit` groups.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn top_dlq_errors(&self, limit: usize) -> Result<Vec<DlqErrorGroup>> {
        self.pool.storage().get_top_dlq_errors(limit.min(Self::MAX_ROWS)).await
    }

    /// Succeeded jobs, newest first, at most `limit` (up to 1,000); of one queue where it is given. The next page
    /// starts after the last row: pass [`ArchiveRow::cursor`].
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn archive_page(
        &self,
        queue: Option<&str>,
        after: Option<PageCursor>,
        limit: usize,
    ) -> Result<Vec<ArchiveRow>> {
        let queue = queue.map(str::to_owned);
        self.pool.storage().get_archive_paged(queue, after, limit.min(Self::MAX_ROWS)).await
    }

    /// Dead jobs, newest first, at most `limit` (up to 1,000); of one queue where it is given. The next page starts
    /// after the last row: pass [`DlqRow::cursor`].
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn dlq_page(
        &self,
        queue: Option<&str>,
        after: Option<PageCursor>,
        limit: usize,
    ) -> Result<Vec<DlqRow>> {
        let queue = queue.map(str::to_owned);
        self.pool.storage().get_dlq_paged(queue, after, limit.min(Self::MAX_ROWS)).await
    }

    /// Cancels jobs, at most 1,000: those that wait go to the dead-letter queue as Cancelled, those that run have
    /// their context cancelled. Answers in the order of `ids`.
    ///
    /// # Errors
    /// Too many ids, or the database cannot be reached.
    pub async fn cancel(&self, ids: &[JobId], reason: &str) -> Result<Vec<CancelOutcome>> {
        check_ids(ids)?;
        self.pool.storage().cancel(ids.to_vec(), reason.to_owned()).await
    }

    /// Puts dead jobs back to work, at most 1,000: attempts 0, a fresh lifetime, the edits applied. Answers in the
    /// order of `ids`. A repeat before the job has run again answers `Resurrected` as well, as a call whose answer was
    /// lost must be repeatable; its edits are not applied.
    ///
    /// # Errors
    /// An edit that is refused, too many ids, or the database cannot be reached.
    pub async fn resurrect(&self, ids: &[JobId], edits: Edits) -> Result<Vec<ResurrectOutcome>> {
        check_ids(ids)?;
        let edits = edits.check(*self.pool.limits())?;
        self.pool.storage().resurrect(ids.to_vec(), edits).await
    }

    /// Deletes what is older than that by the database's clock (jobs by when they finished or failed, buckets by when they
    /// began), 1,000 rows at a time and the oldest first, until nothing of that age is left, and answers how many rows went.
    /// [`Pool::job`] knows nothing of such a job any more; lifetime totals stay. Workers go on meanwhile: no statement takes
    /// more than 1,000 rows, and none waits for a row that another one has. If it fails half-way, what went stays gone: call
    /// it again.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main] async fn main() -> chokaq::Result<()> {
    /// # let pool = chokaq::Pool::connect("sqlite::memory:").await?;
    /// let month = Duration::from_hours(30 * 24);
    /// let gone = pool.operator().purge(chokaq::Purge::DeadLetters, month).await?;
    /// # assert_eq!(gone, 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Jobs younger than a minute: a call whose reply was lost looks for its job in history, and would run it twice. Or the
    /// database cannot be reached.
    pub async fn purge(&self, what: Purge, older_than: Duration) -> Result<u64> {
        if what != Purge::Buckets && older_than < Self::LEAST_AGE {
            return Err(Error::invalid(format!(
                "{what} cannot be purged of jobs younger than a minute, {} was asked: calls whose reply was lost look for them",
                Pretty(older_than)
            )));
        }
        let mut purged = 0;
        loop {
            let rows = self.pool.storage().purge(what, older_than, Self::MAX_ROWS).await?;
            purged += rows;
            if rows < Self::MAX_ROWS as u64 {
                return Ok(purged);
            }
        }
    }

    /// Stops fetching from a queue, in every process; what runs goes on.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub async fn pause_queue(&self, queue: &str) -> Result<()> {
        self.set(queue, QueueSettings { paused: Some(true), ..QueueSettings::default() }).await
    }

    /// Fetches from a paused queue again.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub async fn resume_queue(&self, queue: &str) -> Result<()> {
        self.set(queue, QueueSettings { paused: Some(false), ..QueueSettings::default() }).await
    }

    /// Takes a queue out of use: nothing is fetched, and the health read leaves it out.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub async fn deactivate_queue(&self, queue: &str) -> Result<()> {
        self.set(queue, QueueSettings { active: Some(false), ..QueueSettings::default() }).await
    }

    /// Puts a queue back in use.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub async fn activate_queue(&self, queue: &str) -> Result<()> {
        self.set(queue, QueueSettings { active: Some(true), ..QueueSettings::default() }).await
    }

    /// Lets at most `limit` jobs of the queue be fetched or running, over all workers; `None` removes the limit.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub async fn set_max_workers(&self, queue: &str, limit: Option<u32>) -> Result<()> {
        self.set(queue, QueueSettings { max_workers: Some(limit), ..QueueSettings::default() })
            .await
    }

    /// Sets the lease of the queue's running jobs, from 1 s up; `None` goes back to that of each worker. Workers learn of it
    /// within 2 s, beat at least four times in it, and give a job up at three quarters of it where they cannot beat. Rescue
    /// still waits for its second look, two heartbeats after its first.
    ///
    /// # Errors
    /// A lease under 1 s, or the database cannot be reached.
    pub async fn set_zombie_timeout(&self, queue: &str, lease: Option<Duration>) -> Result<()> {
        if lease.is_some_and(|lease| lease < Duration::from_secs(1) || lease > Limits::MAX_DURATION)
        {
            let lease = Pretty(lease.unwrap_or_default());
            return Err(Error::invalid(format!(
                "the zombie timeout of queue {queue:?} cannot be {lease}: it must be from 1 s to 50 years"
            )));
        }
        self.set(queue, QueueSettings { zombie_timeout: Some(lease), ..QueueSettings::default() })
            .await
    }

    async fn set(&self, queue: &str, change: QueueSettings) -> Result<()> {
        Limits::check_name("queue", queue)?;
        self.pool.storage().set_queue(queue.to_owned(), change).await
    }
}

fn check_ids(ids: &[JobId]) -> Result<()> {
    if ids.len() > Operator::MAX_ROWS {
        return Err(Error::invalid(format!(
            "{} job ids in one call; the limit is {}: split them",
            ids.len(),
            Operator::MAX_ROWS
        )));
    }
    let mut seen = HashSet::new();
    match ids.iter().find(|id| !seen.insert(**id)) {
        Some(id) => {
            Err(Error::invalid(format!("job {id} stands twice in one call: name each job once")))
        }
        None => Ok(()),
    }
}
