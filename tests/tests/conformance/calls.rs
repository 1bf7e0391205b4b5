//! The contract's calls, shortened for claims: one item instead of a batch, and answers instead of results.

use std::{collections::HashMap, sync::Arc, time::Duration};

use chokaq::{
    model::{
        AttemptError, Beat, BeatOutcome, CancelOutcome, Control, Due, EnqueueOutcome,
        FailureReason, FetchReply, FetchRequest, FetchedJob, Finish, FinishOutcome, JobDetail,
        JobId, JobState, Lease, LeaseId, MarkOutcome, NewJob, OnCrash, Outcome, Purge,
        QueueSettings, QueueStats, Release, ResurrectEdits, ResurrectOutcome, SummaryStats,
        WorkerId, Zombie, ZombieScan,
    },
    storage::Storage,
};

/// A second.
pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// The lease of the scans in claims.
pub(crate) const LEASE: Duration = Duration::from_mins(2);
/// The time between the two strikes of the scans in claims.
pub(crate) const SUSPICION: Duration = Duration::from_secs(20);

/// A storage, called one item at a time.
#[derive(Clone)]
pub(crate) struct Calls {
    pub(crate) storage: Arc<dyn Storage>,
}

/// A job of type `test` on queue `default`, due now, with 3 retries.
pub(crate) fn job() -> NewJob {
    NewJob {
        id: JobId::new(),
        queue: "default".to_owned(),
        job_type: "test".to_owned(),
        payload: "{}".to_owned(),
        tags: None,
        idempotency_key: None,
        created_by: None,
        priority: 10,
        due: Due::Now,
        retries: 3,
        timeout: Duration::from_mins(15),
        max_age: Duration::from_hours(24),
        on_crash: OnCrash::DeadLetter,
    }
}

/// The same on another queue.
pub(crate) fn job_on(queue: &str) -> NewJob {
    NewJob { queue: queue.to_owned(), ..job() }
}

/// The same with an idempotency key.
pub(crate) fn keyed(key: &str) -> NewJob {
    NewJob { idempotency_key: Some(key.to_owned()), ..job() }
}

/// A fetch of at most `take` rows from every queue, under a fresh lease.
pub(crate) fn request(worker: &str, take: usize) -> FetchRequest {
    FetchRequest {
        worker: WorkerId::new(worker),
        lease: LeaseId::new(),
        is_repeat: false,
        queues: None,
        take,
        take_limited: take,
        max_bytes: 16 << 20,
        passed_over: HashMap::new(),
        with_control: false,
    }
}

pub(crate) fn error(text: &str) -> AttemptError {
    AttemptError::new(1, "error", text)
}

pub(crate) fn succeeded() -> Outcome {
    Outcome::Succeeded { output: None, note: None }
}

pub(crate) fn dead(reason: FailureReason) -> Outcome {
    Outcome::Dead { reason, error: error("boom") }
}

pub(crate) fn retry(delay: Duration) -> Outcome {
    Outcome::Retry { delay, error: error("boom") }
}

pub(crate) fn snooze(delay: Duration) -> Outcome {
    Outcome::Snooze { delay }
}

/// One of each outcome.
pub(crate) fn every_outcome() -> [Outcome; 4] {
    let delay = Duration::ZERO;
    [succeeded(), dead(FailureReason::FatalError), retry(delay), snooze(delay)]
}

/// A scan with [`LEASE`] and [`SUSPICION`].
pub(crate) fn scan() -> ZombieScan {
    ZombieScan { lease: LEASE, suspicion: SUSPICION, batch: 100 }
}

fn answer<T>(result: chokaq::Result<T>) -> T {
    result.expect("the storage answers")
}

fn only<T>(mut items: Vec<T>) -> T {
    assert_eq!(items.len(), 1, "one item, one answer");
    items.remove(0)
}

impl Calls {
    pub(crate) fn new(storage: Arc<dyn Storage>) -> Self {
        Self { storage }
    }

    pub(crate) async fn enqueue(&self, job: NewJob) -> JobId {
        let id = job.id;
        assert_eq!(self.try_enqueue(job).await, EnqueueOutcome::Stored);
        id
    }

    pub(crate) async fn try_enqueue(&self, job: NewJob) -> EnqueueOutcome {
        only(self.enqueue_all(vec![job]).await)
    }

    pub(crate) async fn enqueue_all(&self, jobs: Vec<NewJob>) -> Vec<EnqueueOutcome> {
        answer(self.storage.enqueue(jobs).await)
    }

    pub(crate) async fn reply(&self, request: FetchRequest) -> FetchReply {
        answer(self.storage.fetch_next_batch(request).await)
    }

    pub(crate) async fn fetch_with(&self, request: FetchRequest) -> Vec<FetchedJob> {
        self.reply(request).await.jobs
    }

    pub(crate) async fn fetch(&self, worker: &str, take: usize) -> Vec<FetchedJob> {
        self.fetch_with(request(worker, take)).await
    }

    /// The ids that a fetch brings, in its order.
    pub(crate) async fn fetch_ids(&self, take: usize) -> Vec<JobId> {
        self.fetch("w", take).await.iter().map(|job| job.lease.job()).collect()
    }

    /// The one claimable row, Fetched.
    pub(crate) async fn fetch_one(&self, worker: &str) -> Lease {
        only(self.fetch(worker, 1).await).lease
    }

    /// The one claimable row, Processing.
    pub(crate) async fn start_one(&self, worker: &str) -> Lease {
        let lease = self.fetch_one(worker).await;
        self.start(&lease).await;
        lease
    }

    /// A new job, Processing.
    pub(crate) async fn running(&self, job: NewJob) -> Lease {
        let id = self.enqueue(job).await;
        let lease = self.start_one("w").await;
        assert_eq!(lease.job(), id);
        lease
    }

    /// A new job, dead.
    pub(crate) async fn buried(&self, job: NewJob) -> JobId {
        let lease = self.running(job).await;
        self.done(&lease, dead(FailureReason::FatalError)).await;
        lease.job()
    }

    /// A new job, dead, beside others that wait: it is urgent enough to be fetched first.
    pub(crate) async fn buried_beside(&self, job: NewJob) -> JobId {
        self.buried(NewJob { priority: i32::MAX, ..job }).await
    }

    pub(crate) async fn mark(&self, lease: &Lease) -> MarkOutcome {
        only(answer(self.storage.mark_as_processing(vec![lease.clone()]).await))
    }

    /// Marks a row that is this lease's, and answers the attempt.
    pub(crate) async fn start(&self, lease: &Lease) -> u32 {
        match self.mark(lease).await {
            MarkOutcome::Started { attempt, .. } => attempt,
            MarkOutcome::LeaseLost => panic!("{} could not be started", lease.job()),
        }
    }

    pub(crate) async fn beat(&self, lease: &Lease) -> BeatOutcome {
        self.beat_with(lease, None).await
    }

    pub(crate) async fn beat_with(
        &self,
        lease: &Lease,
        progress: Option<(f64, &str)>,
    ) -> BeatOutcome {
        let progress = progress.map(|(share, note)| (share, note.to_owned()));
        let beats = vec![Beat { lease: lease.clone(), progress }];
        only(answer(self.storage.keep_alive(beats).await))
    }

    pub(crate) async fn release(&self, lease: &Lease) -> bool {
        self.release_with(release_of(lease)).await
    }

    pub(crate) async fn release_with(&self, release: Release) -> bool {
        only(answer(self.storage.release(vec![release]).await))
    }

    pub(crate) async fn finish(&self, lease: &Lease, outcome: Outcome) -> FinishOutcome {
        only(answer(self.storage.finalise(vec![finish_of(lease, outcome)]).await))
    }

    /// Finishes a row that is this lease's.
    pub(crate) async fn done(&self, lease: &Lease, outcome: Outcome) {
        assert_eq!(self.finish(lease, outcome).await, FinishOutcome::Done);
    }

    pub(crate) async fn recover(&self, limit: Duration, batch: usize) -> u64 {
        answer(self.storage.recover_abandoned(limit, batch).await)
    }

    pub(crate) async fn scan(&self) -> Vec<Zombie> {
        self.scan_with(scan()).await
    }

    pub(crate) async fn scan_with(&self, scan: ZombieScan) -> Vec<Zombie> {
        answer(self.storage.archive_zombies(scan).await)
    }

    pub(crate) async fn next_due(&self, horizon: Duration) -> Option<Duration> {
        answer(self.storage.next_due(None, horizon).await)
    }

    pub(crate) async fn control(&self, worker: &str) -> Control {
        answer(self.storage.read_control(WorkerId::new(worker), None).await)
    }

    pub(crate) async fn cancel(&self, job: JobId) -> CancelOutcome {
        only(answer(self.storage.cancel(vec![job], "not wanted".to_owned()).await))
    }

    pub(crate) async fn resurrect(&self, job: JobId) -> ResurrectOutcome {
        self.resurrect_with(job, ResurrectEdits::default()).await
    }

    pub(crate) async fn resurrect_with(
        &self,
        job: JobId,
        edits: ResurrectEdits,
    ) -> ResurrectOutcome {
        only(answer(self.storage.resurrect(vec![job], edits).await))
    }

    pub(crate) async fn purge(&self, what: Purge, older_than: Duration, batch: usize) -> u64 {
        answer(self.storage.purge(what, older_than, batch).await)
    }

    pub(crate) async fn set(&self, queue: &str, change: QueueSettings) {
        answer(self.storage.set_queue(queue.to_owned(), change).await);
    }

    pub(crate) async fn limit(&self, queue: &str, max_workers: u32) {
        let max_workers = Some(Some(max_workers));
        self.set(queue, QueueSettings { max_workers, ..QueueSettings::default() }).await;
    }

    pub(crate) async fn pause(&self, queue: &str, paused: bool) {
        self.set(queue, QueueSettings { paused: Some(paused), ..QueueSettings::default() }).await;
    }

    pub(crate) async fn activate(&self, queue: &str, active: bool) {
        self.set(queue, QueueSettings { active: Some(active), ..QueueSettings::default() }).await;
    }

    pub(crate) async fn detail(&self, job: JobId) -> JobDetail {
        answer(self.storage.find_job(job).await).expect("the job is known")
    }

    pub(crate) async fn state(&self, job: JobId) -> JobState {
        self.detail(job).await.state
    }

    pub(crate) async fn summary(&self) -> SummaryStats {
        answer(self.storage.get_summary_stats().await)
    }

    /// Successes, failures and retries, over all queues.
    pub(crate) async fn totals(&self) -> (u64, u64, u64) {
        let summary = self.summary().await;
        (summary.succeeded_total, summary.failed_total, summary.retried_total)
    }

    pub(crate) async fn queue_stats(&self, queue: &str) -> QueueStats {
        let all = answer(self.storage.get_queue_stats().await);
        all.into_iter().find(|stats| stats.queue == queue).expect("the queue is known")
    }
}

pub(crate) fn release_of(lease: &Lease) -> Release {
    Release { lease: lease.clone(), delay: None, unknown_type: false }
}

pub(crate) fn finish_of(lease: &Lease, outcome: Outcome) -> Finish {
    Finish { lease: lease.clone(), outcome }
}
