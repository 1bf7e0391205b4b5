//! The storage contract: which call goes to which thread, in which class.

use std::time::Duration;

use tokio::sync::watch;

use crate::{
    model::{
        ArchiveRow, Beat, BeatOutcome, CancelOutcome, Circuit, CircuitReport, Control,
        DlqErrorGroup, DlqRow, EnqueueOutcome, FetchReply, FetchRequest, Finish, FinishOutcome,
        JobDetail, JobId, Lease, MarkOutcome, NewJob, PageCursor, Purge, QueueHealth,
        QueueSettings, QueueStats, Release, ResurrectEdits, ResurrectOutcome, SummaryStats,
        ThroughputPoint, WorkerId, Zombie, ZombieScan,
    },
    storage::{
        MigrationStorage, OperatorStorage, ProducerStorage, Storage, StorageFuture, WorkerStorage,
        sqlite::{
            Audience, SqliteStorage, circuits, controls, drift, enqueue, fetch, finalise, leases,
            migrate, operate, pages, purge, reads, rescue, waiting::Class,
        },
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
        worker: WorkerId,
        queues: Option<Vec<String>>,
    ) -> StorageFuture<'_, Control> {
        Box::pin(self.read(Audience::Worker, move |tx| {
            controls::read_control(tx, &worker, queues.as_deref())
        }))
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

    fn recover_abandoned(&self, limit: Duration, batch: usize) -> StorageFuture<'_, u64> {
        Box::pin(self.write(Class::Operator, move |tx| rescue::recover_abandoned(tx, limit, batch)))
    }

    fn archive_zombies(&self, scan: ZombieScan) -> StorageFuture<'_, Vec<Zombie>> {
        Box::pin(self.write(Class::Operator, move |tx| rescue::archive_zombies(tx, scan)))
    }

    fn report_circuits(
        &self,
        worker: WorkerId,
        reports: Vec<CircuitReport>,
    ) -> StorageFuture<'_, ()> {
        Box::pin(
            self.write(Class::Operator, move |tx| circuits::report_circuits(tx, &worker, &reports)),
        )
    }

    fn next_due(
        &self,
        queues: Option<Vec<String>>,
        horizon: Duration,
    ) -> StorageFuture<'_, Option<Duration>> {
        Box::pin(
            self.read(Audience::Worker, move |tx| {
                controls::next_due(tx, queues.as_deref(), horizon)
            }),
        )
    }

    fn work_arrived(&self) -> watch::Receiver<u64> {
        self.work_arrived.subscribe()
    }
}

impl OperatorStorage for SqliteStorage {
    fn find_job(&self, id: JobId) -> StorageFuture<'_, Option<JobDetail>> {
        Box::pin(self.read(Audience::People, move |tx| reads::find_job(tx, id)))
    }

    fn cancel(&self, ids: Vec<JobId>, reason: String) -> StorageFuture<'_, Vec<CancelOutcome>> {
        Box::pin(self.write(Class::Operator, move |tx| operate::cancel(tx, &ids, &reason)))
    }

    fn resurrect(
        &self,
        ids: Vec<JobId>,
        edits: ResurrectEdits,
    ) -> StorageFuture<'_, Vec<ResurrectOutcome>> {
        Box::pin(self.write(Class::Operator, move |tx| operate::resurrect(tx, &ids, &edits)))
    }

    fn set_queue(&self, queue: String, change: QueueSettings) -> StorageFuture<'_, ()> {
        Box::pin(self.write(Class::Operator, move |tx| operate::set_queue(tx, &queue, &change)))
    }

    fn purge(&self, what: Purge, older_than: Duration, batch: usize) -> StorageFuture<'_, u64> {
        Box::pin(self.write(Class::Operator, move |tx| purge::purge(tx, what, older_than, batch)))
    }

    fn get_summary_stats(&self) -> StorageFuture<'_, SummaryStats> {
        Box::pin(self.read(Audience::People, reads::get_summary_stats))
    }

    fn get_queue_stats(&self) -> StorageFuture<'_, Vec<QueueStats>> {
        Box::pin(self.read(Audience::People, reads::get_queue_stats))
    }

    fn get_queue_health(&self) -> StorageFuture<'_, Vec<QueueHealth>> {
        Box::pin(self.read(Audience::People, reads::get_queue_health))
    }

    fn get_circuits(&self) -> StorageFuture<'_, Vec<Circuit>> {
        Box::pin(self.read(Audience::People, circuits::get_circuits))
    }

    fn get_throughput_stats(&self, window: Duration) -> StorageFuture<'_, Vec<ThroughputPoint>> {
        Box::pin(self.read(Audience::People, move |tx| reads::get_throughput_stats(tx, window)))
    }

    fn get_top_dlq_errors(&self, limit: usize) -> StorageFuture<'_, Vec<DlqErrorGroup>> {
        Box::pin(self.read(Audience::People, move |tx| reads::get_top_dlq_errors(tx, limit)))
    }

    fn get_archive_paged(
        &self,
        queue: Option<String>,
        after: Option<PageCursor>,
        limit: usize,
    ) -> StorageFuture<'_, Vec<ArchiveRow>> {
        Box::pin(self.read(Audience::People, move |tx| {
            pages::get_archive_paged(tx, queue.as_deref(), after, limit)
        }))
    }

    fn get_dlq_paged(
        &self,
        queue: Option<String>,
        after: Option<PageCursor>,
        limit: usize,
    ) -> StorageFuture<'_, Vec<DlqRow>> {
        Box::pin(self.read(Audience::People, move |tx| {
            pages::get_dlq_paged(tx, queue.as_deref(), after, limit)
        }))
    }
}

impl MigrationStorage for SqliteStorage {
    fn migrate(&self) -> StorageFuture<'_, Vec<String>> {
        let name = self.name.clone();
        Box::pin(
            self.write(Class::Operator, move |tx| migrate::apply_within(tx.connection(), &name)),
        )
    }

    fn migration_plan(&self) -> StorageFuture<'_, String> {
        let name = self.name.clone();
        Box::pin(self.read(Audience::People, move |tx| migrate::plan(tx.connection(), &name)))
    }

    fn check_schema(&self) -> StorageFuture<'_, Vec<String>> {
        Box::pin(self.read(Audience::People, drift::check_schema))
    }
}
