//! What the parts of one worker share.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::util::BoxCloneSyncService;

use crate::{
    Pool,
    config::WorkerSettings,
    error::BoxError,
    job::{JobCall, JobOutput, StateMap},
    model::{Backoff, FailureReason, FetchedJob, JobId, WorkerId},
    registry::Registry,
    storage::Storage,
    worker::{
        buffer::Buffer,
        circuits::Circuits,
        left::TheEnd,
        limiter::Limiter,
        queue_leases::QueueLeases,
        running::{Run, Running},
        trouble::Episode,
    },
};

/// The handlers behind the layers.
pub(crate) type JobService = BoxCloneSyncService<JobCall, JobOutput, BoxError>;

/// A job that went to the dead-letter queue, as [`WorkerBuilder::on_dead_letter`](crate::WorkerBuilder::on_dead_letter)
/// is told.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The job.
    pub id: JobId,
    /// The key of its type.
    pub job_type: String,
    /// Its queue.
    pub queue: String,
    /// Why it is dead.
    pub reason: FailureReason,
    /// The last error's text.
    pub error: String,
}

pub(crate) type OnDeadLetter = Arc<dyn Fn(&DeadLetter) + Send + Sync>;

/// How long a job waits before it is tried again, where its type does not say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetryRules {
    pub(crate) backoff: Backoff,
    /// The share of random time added.
    pub(crate) jitter: f64,
}

/// One worker: what it was built with, and the state of its parts.
pub(crate) struct Shared {
    pub(crate) id: WorkerId,
    pub(crate) pool: Pool,
    pub(crate) settings: WorkerSettings,
    /// What retries go by, changeable while jobs run.
    pub(crate) retry: Mutex<RetryRules>,
    /// The queues served; `None`: all.
    pub(crate) queues: Option<Vec<String>>,
    pub(crate) registry: Registry,
    pub(crate) service: JobService,
    pub(crate) state: Arc<StateMap>,
    pub(crate) on_dead_letter: Option<OnDeadLetter>,

    pub(crate) limiter: Arc<Limiter>,
    pub(crate) buffer: Buffer,
    pub(crate) running: Running,
    pub(crate) queue_leases: QueueLeases,
    /// A lease became shorter: beats should go out at once.
    pub(crate) beat_now: Notify,
    pub(crate) circuits: Circuits,
    pub(crate) episode: Arc<Episode>,
    pub(crate) end: TheEnd,
    /// Whether circuits of this worker stand in the database.
    pub(crate) has_told_of_circuits: AtomicBool,
    /// The tasks that run jobs.
    pub(crate) tasks: TaskTracker,
    /// Stop fetching, give running jobs the grace, end.
    pub(crate) stop: CancellationToken,
    pub(crate) paused: AtomicBool,
    /// The fetcher should look again: paused or resumed.
    pub(crate) nudge: Notify,
    /// Rows that this worker has claimed and not yet handed to the buffer, given back or dropped.
    pub(crate) in_hand: AtomicUsize,
    /// Jobs whose user code was started, ever: what the prefetch is measured by.
    pub(crate) started: AtomicU64,
}

impl Shared {
    pub(crate) fn storage(&self) -> &Arc<dyn Storage> {
        self.pool.storage()
    }

    /// For how long a row has to wait for its type's circuit; `None`: it may start. Past its lifetime it waits no more.
    pub(crate) fn circuit_wait(&self, job: &FetchedJob) -> Option<Duration> {
        let known = self.registry.get(&job.job_type).filter(|_| !job.expires_in.is_zero())?;
        self.circuits.wait(known.job_type.key)
    }

    pub(crate) fn retry_rules(&self) -> MutexGuard<'_, RetryRules> {
        self.retry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the lease of a run is three quarters over: soon another worker may take the job.
    pub(crate) fn is_overdue(&self, run: &Run) -> bool {
        self.queue_leases.is_overdue(&run.queue, run.unrenewed_for(), self.settings.lease)
    }

    /// Calls the user's hook; a panic in it harms nobody else.
    pub(crate) fn tell_of(&self, letter: &DeadLetter) {
        let Some(told) = &self.on_dead_letter else { return };
        let told = std::panic::AssertUnwindSafe(|| told(letter));
        if std::panic::catch_unwind(told).is_err() {
            tracing::error!(job_id = %letter.id, "on_dead_letter panicked");
        }
    }

    /// Whether nothing is fetched, running or unfinalised here.
    pub(crate) fn is_quiet(&self) -> bool {
        // In the order that a job takes: what left one place before it was looked at stands in a later one.
        self.in_hand.load(Ordering::Acquire) == 0
            && self.buffer.len() == 0
            && self.limiter.used() == 0
            && self.running.len() == 0
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("id", &self.id)
            .field("queues", &self.queues)
            .field("concurrency", &self.limiter.limit())
            .field("running", &self.running.len())
            .finish_non_exhaustive()
    }
}
