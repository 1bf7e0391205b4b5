//! The storage contract: which call goes to which thread, in which class.

use std::time::Duration;

use tokio::sync::watch;

use crate::{
    Error,
    model::{
        ArchiveRow, Beat, BeatOutcome, CancelOutcome, Control, DlqErrorGroup, DlqRow,
        EnqueueOutcome, FetchReply, FetchRequest, Finish, FinishOutcome, JobDetail, JobId, Lease,
        MarkOutcome, NewJob, PageCursor, QueueHealth, QueueSettings, QueueStats, Release,
        ResurrectEdits, ResurrectOutcome, SummaryStats, ThroughputPoint, WorkerId, Zombie,
        ZombieScan,
    },
    storage::{
        MigrationStorage, OperatorStorage, ProducerStorage, Storage, StorageFuture, WorkerStorage,
        sqlite::{SqliteStorage, enqueue, fetch, finalise, leases, waiting::Class},
    },
};

impl Storage for SqliteStorage {
    fn describe(&self) -> String {
        self.name.to_string()
    }
}

impl ProducerStorage for SqliteStorage {
    fn enqueue(&self, jobs: Vec<NewJob>) -> StorageFuture<'_, Vec<EnqueueOutcome>> {
        Box::pin(self.write(Class::Enqueue, move |tx| enqueue::enqueue(tx, &jobs)))
    }
}

impl WorkerStorage for SqliteStorage {
    fn fetch_next_batch(&self, request: FetchRequest) -> StorageFuture<'_, FetchReply> {
        Box::pin(self.write(Class::Claim, move |tx| fetch::fetch_next_batch(tx, request)))
    }

    fn read_control(
        &self,
        _worker: WorkerId,
        _queues: Option<Vec<String>>,
    ) -> StorageFuture<'_, Control> {
        Box::pin(async { Err(Error::config("not built yet")) })
    }

    fn mark_as_processing(&self, leases: Vec<Lease>) -> StorageFuture<'_, Vec<MarkOutcome>> {
        Box::pin(self.write(Class::Mark, move |tx| leases::mark_as_processing(tx, &leases)))
    }

    fn keep_alive(&self, beats: Vec<Beat>) -> StorageFuture<'_, Vec<BeatOutcome>> {
        Box::pin(self.write(Class::Heartbeat, move |tx| leases::keep_alive(tx, &beats)))
    }

    fn release(&self, releases: Vec<Release>) -> StorageFuture<'_, Vec<bool>> {
        Box::pin(self.write(Class::Mark, move |tx| leases::release(tx, &releases)))
    }

    fn finalise(&self, batch: Vec<Finish>) -> StorageFuture<'_, Vec<FinishOutcome>> {
        Box::pin(self.write(Class::Finalise, move |tx| finalise::finalise(tx, &batch)))
    }

    fn recover_abandoned(&self, _limit: Duration, _batch: usize) -> StorageFuture<'_, u64> {
        Box::pin(async { Err(Error::config("not built yet")) })
    }

    fn archive_zombies(&self, _scan: ZombieScan) -> StorageFuture<'_, Vec<Zombie>> {
        Box::pin(async { Err(Error::config("not built yet")) })
    }

    fn next_due(
        &self,
        _queues: Option<Vec<String>>,
        _horizon: Duration,
    ) -> StorageFuture<'_, Option<Duration>> {
        Box::pin(async { Err(Error::config("not built yet")) })
    }

    fn work_arrived(&self) -> watch::Receiver<u64> {
        self.work_arrived.subscribe()
    }
}

impl OperatorStorage for SqliteStorage {
    fn find_job(&self, _id: JobId) -> StorageFuture<'_, Option<JobDetail>> {
        Box::pin(async { Err(Error::config("not built yet")) })
    }
    fn cancel(&self, _ids: Vec<JobId>, _reason: String) -> StorageFuture<'_, Vec<CancelOutcome>> {
        Box::pin(async { Err(Error::config("not built yet")) })
    }
    fn resurrect(
        &self,
        _ids: Vec<JobId>,
        _edits: ResurrectEdits,
    ) -> StorageFuture<'_, Vec<ResurrectOutcome>> {
        Box::pin(async { Err(Error::config("not built yet")) })
    }
    fn set_queue(&self, _queue: String, _change: QueueSettings) -> StorageFuture<'_, ()> {
        Box::pin(async { Err(Error::config("not built yet")) })
    }
    fn get_summary_stats(&self) -> StorageFuture<'_, SummaryStats> {
        Box::pin(async { Err(Error::config("not built yet")) })
    }
    fn get_queue_stats(&self) -> StorageFuture<'_, Vec<QueueStats>> {
        Box::pin(async { Err(Error::config("not built yet")) })
    }
    fn get_queue_health(&self) -> StorageFuture<'_, Vec<QueueHealth>> {
        Box::pin(async { Err(Error::config("not built yet")) })
    }
    fn get_throughput_stats(&self, _window: Duration) -> StorageFuture<'_, Vec<ThroughputPoint>> {
        Box::pin(async { Err(Error::config("not built yet")) })
    }
    fn get_top_dlq_errors(&self, _limit: usize) -> StorageFuture<'_, Vec<DlqErrorGroup>> {
        Box::pin(async { Err(Error::config("not built yet")) })
    }
    fn get_archive_paged(
        &self,
        _queue: Option<String>,
        _after: Option<PageCursor>,
        _limit: usize,
    ) -> StorageFuture<'_, Vec<ArchiveRow>> {
        Box::pin(async { Err(Error::config("not built yet")) })
    }
    fn get_dlq_paged(
        &self,
        _queue: Option<String>,
        _after: Option<PageCursor>,
        _limit: usize,
    ) -> StorageFuture<'_, Vec<DlqRow>> {
        Box::pin(async { Err(Error::config("not built yet")) })
    }
}

impl MigrationStorage for SqliteStorage {
    fn migrate(&self) -> StorageFuture<'_, Vec<String>> {
        Box::pin(async { Err(Error::config("not built yet")) })
    }
    fn migration_plan(&self) -> StorageFuture<'_, String> {
        Box::pin(async { Err(Error::config("not built yet")) })
    }
}
