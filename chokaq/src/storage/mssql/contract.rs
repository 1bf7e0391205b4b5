//! The storage contract on SQL Server: which operation a call is.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::{
    runtime::{Builder, Runtime},
    sync::watch,
};

use crate::{
    Error, Result,
    model::{
        ArchiveRow, Beat, BeatOutcome, CancelOutcome, Circuit, CircuitReport, Control,
        DlqErrorGroup, DlqRow, EnqueueOutcome, FetchReply, FetchRequest, Finish, FinishOutcome,
        JobDetail, JobId, Lease, MarkOutcome, NewJob, PageCursor, Purge, QueueHealth,
        QueueSettings, QueueStats, Release, ResurrectEdits, ResurrectOutcome, SummaryStats,
        ThroughputPoint, WorkerId, Zombie, ZombieScan,
    },
    storage::{
        MigrationStorage, OperatorStorage, ProducerStorage, Storage, StorageFuture, WorkerStorage,
        mssql::{
            circuits, controls, core::Core, drift, enqueue, fetch, finalise, leases, migrate,
            operate, options::MssqlOptions, pages, pool::Connections, purge, reads, rescue,
        },
    },
};

/// The SQL Server backend.
///
/// All its work runs on a thread of its own: handlers that block every thread of the user's runtime delay no heartbeat,
/// and a caller that goes away does not tear a call off the connection it is on.
#[derive(Debug)]
pub struct MssqlStorage {
    core: Arc<Core>,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    name: String,
    lost_replies: AtomicU32,
}

impl MssqlStorage {
    /// Connects. The schema is looked at, not changed: calls answer an error while it is missing or does not fit.
    ///
    /// # Errors
    /// The server cannot be reached, or the login or the database is refused, or is too old.
    pub async fn open(options: MssqlOptions) -> Result<Arc<Self>> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("chokaq-sql")
            .enable_all()
            .build()
            .map_err(|error| {
                Error::permanent("the thread for SQL Server cannot be started", Some(error.into()))
            })?;
        let name = options.describe();
        let mut storage = Self {
            core: Arc::new(Core {
                connections: Connections::new(options),
                work_arrived: watch::Sender::new(0),
            }),
            runtime: Some(runtime),
            name,
            lost_replies: AtomicU32::new(0),
        };
        let core = Arc::clone(&storage.core);
        storage.here(async move { core.connections.try_once().await }).await?;
        storage.lost_replies = AtomicU32::new(0);
        Ok(Arc::new(storage))
    }

    /// For tests of lost replies: the next `calls` write calls commit and then answer with a transient error.
    #[doc(hidden)]
    pub fn lose_replies(&self, calls: u32) {
        self.lost_replies.store(calls, Ordering::SeqCst);
    }

    /// Runs on the backend's own thread.
    async fn here<T, E>(
        &self,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        E: Into<Error> + Send + 'static,
    {
        let runtime = self.runtime.as_ref().expect("there until it is dropped");
        match runtime.spawn(work).await {
            Ok(result) => result.map_err(Into::into),
            Err(error) => {
                Err(Error::permanent("a call to SQL Server ended early", Some(error.into())))
            }
        }
    }

    fn read<T, E, F>(&self, operation: impl FnOnce(Arc<Core>) -> F) -> StorageFuture<'_, T>
    where
        T: Send + 'static,
        E: Into<Error> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        Box::pin(self.here(operation(Arc::clone(&self.core))))
    }

    fn write<T, E, F>(&self, operation: impl FnOnce(Arc<Core>) -> F) -> StorageFuture<'_, T>
    where
        T: Send + 'static,
        E: Into<Error> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let work = self.here(operation(Arc::clone(&self.core)));
        Box::pin(async move {
            let answer = work.await?;
            let lose = |left: u32| left.checked_sub(1);
            if self.lost_replies.fetch_update(Ordering::SeqCst, Ordering::SeqCst, lose).is_ok() {
                return Err(Error::transient("the reply was lost (a test asked for it)", None));
            }
            Ok(answer)
        })
    }
}

impl Drop for MssqlStorage {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // It may be dropped where blocking is not allowed. What still runs there ends with its connections.
            runtime.shutdown_background();
        }
    }
}

impl Storage for MssqlStorage {
    fn describe(&self) -> String {
        self.name.clone()
    }
}

impl ProducerStorage for MssqlStorage {
    fn enqueue(&self, jobs: Vec<NewJob>) -> StorageFuture<'_, Vec<EnqueueOutcome>> {
        self.write(|core| async move { enqueue::enqueue(&core, jobs).await })
    }
}

impl WorkerStorage for MssqlStorage {
    fn fetch_next_batch(&self, request: FetchRequest) -> StorageFuture<'_, FetchReply> {
        self.write(|core| async move { fetch::fetch_next_batch(&core, request).await })
    }

    fn read_control(
        &self,
        worker: WorkerId,
        queues: Option<Vec<String>>,
    ) -> StorageFuture<'_, Control> {
        self.read(|core| async move { controls::read_control(&core, worker, queues).await })
    }

    fn mark_as_processing(&self, leases: Vec<Lease>) -> StorageFuture<'_, Vec<MarkOutcome>> {
        self.write(|core| async move { leases::mark_as_processing(&core, leases).await })
    }

    fn keep_alive(&self, beats: Vec<Beat>) -> StorageFuture<'_, Vec<BeatOutcome>> {
        self.write(|core| async move { leases::keep_alive(&core, beats).await })
    }

    fn release(&self, releases: Vec<Release>) -> StorageFuture<'_, Vec<bool>> {
        self.write(|core| async move { leases::release(&core, releases).await })
    }

    fn finalise(&self, batch: Vec<Finish>) -> StorageFuture<'_, Vec<FinishOutcome>> {
        self.write(|core| async move { finalise::finalise(&core, batch).await })
    }

    fn recover_abandoned(&self, limit: Duration, batch: usize) -> StorageFuture<'_, u64> {
        self.write(move |core| async move { rescue::recover_abandoned(&core, limit, batch).await })
    }

    fn archive_zombies(&self, scan: ZombieScan) -> StorageFuture<'_, Vec<Zombie>> {
        self.write(move |core| async move { rescue::archive_zombies(&core, scan).await })
    }

    fn report_circuits(
        &self,
        worker: WorkerId,
        reports: Vec<CircuitReport>,
    ) -> StorageFuture<'_, ()> {
        self.write(|core| async move { circuits::report_circuits(&core, worker, reports).await })
    }

    fn next_due(
        &self,
        queues: Option<Vec<String>>,
        horizon: Duration,
    ) -> StorageFuture<'_, Option<Duration>> {
        self.read(move |core| async move { controls::next_due(&core, queues, horizon).await })
    }

    fn work_arrived(&self) -> watch::Receiver<u64> {
        self.core.work_arrived.subscribe()
    }
}

impl OperatorStorage for MssqlStorage {
    fn find_job(&self, id: JobId) -> StorageFuture<'_, Option<JobDetail>> {
        self.read(move |core| async move { reads::find_job(&core, id).await })
    }

    fn cancel(&self, ids: Vec<JobId>, reason: String) -> StorageFuture<'_, Vec<CancelOutcome>> {
        self.write(|core| async move { operate::cancel(&core, ids, reason).await })
    }

    fn resurrect(
        &self,
        ids: Vec<JobId>,
        edits: ResurrectEdits,
    ) -> StorageFuture<'_, Vec<ResurrectOutcome>> {
        self.write(|core| async move { operate::resurrect(&core, ids, edits).await })
    }

    fn set_queue(&self, queue: String, change: QueueSettings) -> StorageFuture<'_, ()> {
        self.write(|core| async move { operate::set_queue(&core, queue, change).await })
    }

    fn purge(&self, what: Purge, older_than: Duration, batch: usize) -> StorageFuture<'_, u64> {
        self.write(move |core| async move { purge::purge(&core, what, older_than, batch).await })
    }

    fn get_summary_stats(&self) -> StorageFuture<'_, SummaryStats> {
        self.read(|core| async move { reads::get_summary_stats(&core).await })
    }

    fn get_queue_stats(&self) -> StorageFuture<'_, Vec<QueueStats>> {
        self.read(|core| async move { reads::get_queue_stats(&core).await })
    }

    fn get_queue_health(&self) -> StorageFuture<'_, Vec<QueueHealth>> {
        self.read(|core| async move { reads::get_queue_health(&core).await })
    }

    fn get_circuits(&self) -> StorageFuture<'_, Vec<Circuit>> {
        self.read(|core| async move { circuits::get_circuits(&core).await })
    }

    fn get_throughput_stats(&self, window: Duration) -> StorageFuture<'_, Vec<ThroughputPoint>> {
        self.read(move |core| async move { reads::get_throughput_stats(&core, window).await })
    }

    fn get_top_dlq_errors(&self, limit: usize) -> StorageFuture<'_, Vec<DlqErrorGroup>> {
        self.read(move |core| async move { reads::get_top_dlq_errors(&core, limit).await })
    }

    fn get_archive_paged(
        &self,
        queue: Option<String>,
        after: Option<PageCursor>,
        limit: usize,
    ) -> StorageFuture<'_, Vec<ArchiveRow>> {
        self.read(
            move |core| async move { pages::get_archive_paged(&core, queue, after, limit).await },
        )
    }

    fn get_dlq_paged(
        &self,
        queue: Option<String>,
        after: Option<PageCursor>,
        limit: usize,
    ) -> StorageFuture<'_, Vec<DlqRow>> {
        self.read(move |core| async move { pages::get_dlq_paged(&core, queue, after, limit).await })
    }
}

impl MigrationStorage for MssqlStorage {
    fn migrate(&self) -> StorageFuture<'_, Vec<String>> {
        self.write(|core| async move { migrate::migrate(&core.connections).await })
    }

    fn migration_plan(&self) -> StorageFuture<'_, String> {
        self.read(|core| async move { migrate::plan(&core.connections).await })
    }

    fn check_schema(&self) -> StorageFuture<'_, Vec<String>> {
        self.read(|core| async move { drift::check_schema(&core).await })
    }
}
