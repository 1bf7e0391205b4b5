//! What the dashboard reads answer.

use std::time::Duration;

use crate::model::{FailureReason, JobId, Timestamp};

/// Counts over all queues. Lifetime totals never go down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SummaryStats {
    /// Rows Pending, ready or delayed.
    pub pending: u64,
    /// Rows claimed and not started.
    pub fetched: u64,
    /// Rows running.
    pub processing: u64,
    /// Lifetime total of successes.
    pub succeeded_total: u64,
    /// Lifetime total of jobs that went to the dead-letter queue.
    pub failed_total: u64,
    /// Lifetime total of retries.
    pub retried_total: u64,
    /// Rows in the dead-letter queue now.
    pub dead: u64,
}

/// One queue's counts, totals and settings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStats {
    /// The queue.
    pub queue: String,
    /// Nothing is fetched.
    pub paused: bool,
    /// In use.
    pub active: bool,
    /// At most this many jobs fetched or running over all workers.
    pub max_workers: Option<u32>,
    /// The lease of its running jobs.
    pub zombie_timeout: Option<Duration>,
    /// Rows Pending and due.
    pub ready: u64,
    /// Rows Pending and due later.
    pub delayed: u64,
    /// Rows claimed and not started.
    pub fetched: u64,
    /// Rows running.
    pub processing: u64,
    /// Lifetime total of successes.
    pub succeeded_total: u64,
    /// Lifetime total of jobs that went to the dead-letter queue.
    pub failed_total: u64,
    /// Lifetime total of retries.
    pub retried_total: u64,
    /// The last success, failure or retry.
    pub last_activity: Option<Timestamp>,
}

/// How far one queue is behind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueHealth {
    /// The queue.
    pub queue: String,
    /// Rows Pending and due.
    pub ready: u64,
    /// How long the longest-waiting due row has been due; zero when none is.
    pub worst_lag: Duration,
    /// Rows fetched or running, as a share of MaxWorkers; `None` without a limit.
    pub saturation_percent: Option<u32>,
}

impl QueueHealth {
    /// The share of `max_workers`, in percent; a queue that admits nobody is full.
    pub(crate) fn saturation(active: u64, max_workers: u32) -> u32 {
        let percent = active.saturating_mul(100).checked_div(max_workers.into()).unwrap_or(100);
        u32::try_from(percent).unwrap_or(u32::MAX)
    }
}

/// One bucket of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThroughputPoint {
    /// The queue.
    pub queue: String,
    /// The start of the bucket; buckets are 10 s wide.
    pub bucket: Timestamp,
    /// Successes in it.
    pub succeeded: u64,
    /// Jobs that went to the dead-letter queue in it.
    pub failed: u64,
    /// The running time of the successes in it, together.
    pub duration: Duration,
}

/// Dead jobs that share a type, a reason and the start of an error text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DlqErrorGroup {
    /// The type's key.
    pub job_type: String,
    /// Why they are dead.
    pub reason: FailureReason,
    /// The first 200 characters of the last error.
    pub error: String,
    /// How many, among the newest rows that the read looks at.
    pub count: u64,
    /// The newest failure.
    pub last_failed_at: Timestamp,
}

/// Where the next page starts: after this row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageCursor {
    /// When the last row of the page left JobsHot.
    pub at: Timestamp,
    /// The last row of the page.
    pub id: JobId,
}

/// One archived job in a page, newest first.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ArchiveRow {
    /// The job.
    pub id: JobId,
    /// The queue.
    pub queue: String,
    /// The type's key.
    pub job_type: String,
    /// A JSON array of strings.
    pub tags: Option<String>,
    /// Attempts that were started.
    pub attempts: u32,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// When its last attempt started.
    pub started_at: Timestamp,
    /// When it succeeded.
    pub finished_at: Timestamp,
    /// The worker that ran it.
    pub worker: Option<String>,
    /// The output as JSON text.
    pub output: Option<String>,
}

impl ArchiveRow {
    /// Where the page after this row starts.
    pub fn cursor(&self) -> PageCursor {
        PageCursor { at: self.finished_at, id: self.id }
    }
}

/// One dead job in a page, newest first.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DlqRow {
    /// The job.
    pub id: JobId,
    /// The queue.
    pub queue: String,
    /// The type's key.
    pub job_type: String,
    /// A JSON array of strings.
    pub tags: Option<String>,
    /// Why it is dead.
    pub reason: FailureReason,
    /// The last error's text.
    pub error: Option<String>,
    /// Attempts that were started.
    pub attempts: u32,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// When it died.
    pub failed_at: Timestamp,
    /// The worker that last held it.
    pub worker: Option<String>,
}

impl DlqRow {
    /// Where the page after this row starts.
    pub fn cursor(&self) -> PageCursor {
        PageCursor { at: self.failed_at, id: self.id }
    }
}
