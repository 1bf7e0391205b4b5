//! The storage contract, split by caller. Every backend keeps it, and one conformance suite holds them to it.
//!
//! Rules for every backend:
//! - each job's transition is one atomic statement or transaction, with everything that belongs to it; a method may take
//!   several for a batch, and one item that is not owned any more does not fail the others;
//! - every stored time is the database's clock, read once per transaction;
//! - a call may be repeated with the same arguments after an error: it recognises what its first run did;
//! - nothing on the worker's path costs more as the backlog or the history grows.
//!
//! Not part of the public API: it changes without notice.

use std::{future::Future, pin::Pin, time::Duration};

use tokio::sync::watch;

use crate::{
    Result,
    model::{
        ArchiveRow, Beat, BeatOutcome, CancelOutcome, Circuit, CircuitReport, Control,
        DlqErrorGroup, DlqRow, EnqueueOutcome, FetchReply, FetchRequest, Finish, FinishOutcome,
        JobDetail, JobId, Lease, MarkOutcome, NewJob, PageCursor, Purge, QueueHealth,
        QueueSettings, QueueStats, Release, ResurrectEdits, ResurrectOutcome, SummaryStats,
        ThroughputPoint, WorkerId, Zombie, ZombieScan,
    },
};

#[cfg(any(feature = "mssql", feature = "sqlite"))]
mod drift;
#[cfg(feature = "mssql")]
pub mod mssql;
#[cfg(feature = "sqlite")]
pub mod sqlite;

/// What a storage call returns.
pub type StorageFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A whole backend.
pub trait Storage:
    ProducerStorage + WorkerStorage + OperatorStorage + MigrationStorage + Send + Sync + 'static
{
    /// The database without its secrets, for logs and errors.
    fn describe(&self) -> String;
}

/// What a producer calls.
pub trait ProducerStorage {
    /// Inserts the jobs as Pending, in one transaction; queues they name exist after it.
    ///
    /// Idempotency keys are unique per type among active jobs, also within the batch. A repeat of the call finds its
    /// own jobs by their ids, wherever they are by now, and answers `Stored`.
    fn enqueue(&self, jobs: Vec<NewJob>) -> StorageFuture<'_, Vec<EnqueueOutcome>>;
}

/// What a worker calls.
pub trait WorkerStorage {
    /// Claims due rows of queues that are neither paused, inactive nor full. Uses no attempt.
    ///
    /// Priority is strict within a queue; a batch is shared among the queues that have work. Promotes due delayed
    /// rows first. With `is_repeat`, the rows that carry the lease already are the answer.
    fn fetch_next_batch(&self, request: FetchRequest) -> StorageFuture<'_, FetchReply>;

    /// What operators have set or asked that concerns this worker; `queues` as in [`FetchRequest`].
    fn read_control(
        &self,
        worker: WorkerId,
        queues: Option<Vec<String>>,
    ) -> StorageFuture<'_, Control>;

    /// Fetched -> Processing, the attempt counted; the last guard before user code. Answers in the order of the batch.
    /// A repeat accepts rows of its own lease that are Processing already, and counts nothing twice.
    fn mark_as_processing(&self, leases: Vec<Lease>) -> StorageFuture<'_, Vec<MarkOutcome>>;

    /// Renews the leases and clears suspicion. Answers in the order of the batch.
    fn keep_alive(&self, beats: Vec<Beat>) -> StorageFuture<'_, Vec<BeatOutcome>>;

    /// Fetched -> Pending. Answers, in the order of the batch, whether the row is Pending by this call (or an earlier
    /// run of it); false: it was not this lease's any more.
    fn release(&self, releases: Vec<Release>) -> StorageFuture<'_, Vec<bool>>;

    /// `archive_succeeded`, `move_to_dlq`, `reschedule_for_retry` and `snooze`, mixed: each job in one transaction with
    /// its history row, totals and bucket. Answers in the order of the batch.
    fn finalise(&self, batch: Vec<Finish>) -> StorageFuture<'_, Vec<FinishOutcome>>;

    /// Fetched for longer than the limit -> Pending, at most `batch` rows. Answers how many.
    fn recover_abandoned(&self, limit: Duration, batch: usize) -> StorageFuture<'_, u64>;

    /// Notes the running rows whose heartbeat is older than their queue's limit or the lease, and moves those that
    /// were noted at least `suspicion` ago and still do not beat.
    fn archive_zombies(&self, scan: ZombieScan) -> StorageFuture<'_, Vec<Zombie>>;

    /// The worker's circuits that are not closed, in place of those that it told of before.
    fn report_circuits(
        &self,
        worker: WorkerId,
        circuits: Vec<CircuitReport>,
    ) -> StorageFuture<'_, ()>;

    /// When the next claimable row of the queues is due: zero for now, `None` when none is within the horizon.
    /// Paused, inactive and full queues do not count.
    fn next_due(
        &self,
        queues: Option<Vec<String>>,
        horizon: Duration,
    ) -> StorageFuture<'_, Option<Duration>>;

    /// Changes whenever this process may have made a row claimable: a fetcher that found nothing waits on it.
    fn work_arrived(&self) -> watch::Receiver<u64>;
}

/// What operators and callers that look after their jobs call.
pub trait OperatorStorage {
    /// Everything known of a job.
    fn find_job(&self, id: JobId) -> StorageFuture<'_, Option<JobDetail>>;

    /// Waiting rows go to the dead-letter queue as Cancelled; running rows are flagged. Answers in the order of `ids`.
    fn cancel(&self, ids: Vec<JobId>, reason: String) -> StorageFuture<'_, Vec<CancelOutcome>>;

    /// Dead -> Pending with attempts 0 and a fresh lifetime. Answers in the order of `ids`.
    fn resurrect(
        &self,
        ids: Vec<JobId>,
        edits: ResurrectEdits,
    ) -> StorageFuture<'_, Vec<ResurrectOutcome>>;

    /// Changes a queue's settings; the queue exists after it.
    fn set_queue(&self, queue: String, change: QueueSettings) -> StorageFuture<'_, ()>;

    /// Deletes rows that are older than that by the database's clock, the oldest first, at most `batch` of them (and never
    /// more than 10,000); lifetime totals stay. Answers how many. Rows that another call holds are passed over.
    fn purge(&self, what: Purge, older_than: Duration, batch: usize) -> StorageFuture<'_, u64>;

    /// Counts over all queues.
    fn get_summary_stats(&self) -> StorageFuture<'_, SummaryStats>;

    /// Counts, totals and settings per queue, by name.
    fn get_queue_stats(&self) -> StorageFuture<'_, Vec<QueueStats>>;

    /// Lag and saturation per active queue, by name.
    fn get_queue_health(&self) -> StorageFuture<'_, Vec<QueueHealth>>;

    /// The circuits that are not closed, of workers that told of them lately; by type and worker, at most 1,000.
    fn get_circuits(&self) -> StorageFuture<'_, Vec<Circuit>>;

    /// The buckets of the last `window`, oldest first.
    fn get_throughput_stats(&self, window: Duration) -> StorageFuture<'_, Vec<ThroughputPoint>>;

    /// The commonest errors among the newest 1,000 dead jobs, at most `limit` groups.
    fn get_top_dlq_errors(&self, limit: usize) -> StorageFuture<'_, Vec<DlqErrorGroup>>;

    /// Succeeded jobs, newest first; of one queue where it is given.
    fn get_archive_paged(
        &self,
        queue: Option<String>,
        after: Option<PageCursor>,
        limit: usize,
    ) -> StorageFuture<'_, Vec<ArchiveRow>>;

    /// Dead jobs, newest first; of one queue where it is given.
    fn get_dlq_paged(
        &self,
        queue: Option<String>,
        after: Option<PageCursor>,
        limit: usize,
    ) -> StorageFuture<'_, Vec<DlqRow>>;
}

/// What creates and checks the schema.
pub trait MigrationStorage {
    /// Applies every migration that is missing, each in a transaction, and records it. Answers their names.
    fn migrate(&self) -> StorageFuture<'_, Vec<String>>;

    /// The SQL that [`migrate`](Self::migrate) would run now; runs nothing.
    fn migration_plan(&self) -> StorageFuture<'_, String>;

    /// How the database differs from what this program's migrations make, a sentence each; changes nothing.
    fn check_schema(&self) -> StorageFuture<'_, Vec<String>>;
}
