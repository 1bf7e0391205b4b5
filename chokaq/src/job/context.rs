//! What a handler can know and say while it runs.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use tokio_util::sync::CancellationToken;

use crate::{
    Pool,
    job::JobError,
    model::{JobId, Timestamp},
};

/// The shared state of a worker, by type.
pub(crate) type StateMap = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

/// Why a job's context was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelCause {
    /// An operator or a caller asked for it.
    Requested,
    /// The attempt ran longer than its time limit.
    Timeout,
    /// The lease is no longer this worker's, or could not be renewed: the result will be discarded.
    LeaseLost,
    /// The worker shuts down: the job will run again, with no attempt used.
    Shutdown,
}

/// Whether and why a run should stop; it exists from before the run's mark, so that no cancellation comes too early.
#[derive(Debug, Default)]
pub(crate) struct Cancellation {
    token: CancellationToken,
    cause: OnceLock<CancelCause>,
}

impl Cancellation {
    /// The first cause stays: a timeout during a shutdown's grace is still the shutdown. Answers whether it was this one.
    pub(crate) fn cancel(&self, cause: CancelCause) -> bool {
        let is_first = self.cause.set(cause).is_ok();
        self.token.cancel();
        is_first
    }

    pub(crate) fn cause(&self) -> Option<CancelCause> {
        self.cause.get().copied()
    }
}

/// What a running job can know (its id, attempt, times, tags, shared state) and say (progress). Cheap to clone.
#[derive(Clone)]
pub struct JobContext(Arc<Inner>);

struct Inner {
    parts: ContextParts,
    cancellation: Arc<Cancellation>,
    progress: Mutex<Option<(f64, String)>>,
}

pub(crate) struct ContextParts {
    pub(crate) id: JobId,
    pub(crate) job_type: String,
    pub(crate) queue: String,
    pub(crate) attempt: u32,
    pub(crate) retries: u32,
    pub(crate) enqueued_at: Timestamp,
    pub(crate) due_at: Timestamp,
    pub(crate) started_at: Timestamp,
    pub(crate) tags: Vec<String>,
    pub(crate) state: Arc<StateMap>,
    pub(crate) pool: Pool,
}

impl JobContext {
    pub(crate) fn new(parts: ContextParts, cancellation: Arc<Cancellation>) -> Self {
        Self(Arc::new(Inner { parts, cancellation, progress: Mutex::new(None) }))
    }

    /// The job's id: the same for every attempt, a good idempotency key for what the handler calls.
    pub fn id(&self) -> JobId {
        self.0.parts.id
    }

    /// The key of the job's type, as its row has it (an alias stays an alias).
    pub fn job_type(&self) -> &str {
        &self.0.parts.job_type
    }

    /// The queue it was fetched from.
    pub fn queue(&self) -> &str {
        &self.0.parts.queue
    }

    /// This attempt; the first is 1.
    pub fn attempt(&self) -> u32 {
        self.0.parts.attempt
    }

    /// How many attempts are left after this one; 0 on the last.
    pub fn attempts_left(&self) -> u32 {
        (self.0.parts.retries + 1).saturating_sub(self.0.parts.attempt)
    }

    /// When the job was enqueued.
    pub fn enqueued_at(&self) -> Timestamp {
        self.0.parts.enqueued_at
    }

    /// When this attempt was due.
    pub fn due_at(&self) -> Timestamp {
        self.0.parts.due_at
    }

    /// When this attempt started.
    pub fn started_at(&self) -> Timestamp {
        self.0.parts.started_at
    }

    /// The tags given at enqueue.
    pub fn tags(&self) -> &[String] {
        &self.0.parts.tags
    }

    /// The pool of the worker, to enqueue further jobs.
    pub fn pool(&self) -> &Pool {
        &self.0.parts.pool
    }

    /// State that the worker was built with (`.state(value)`), by its type.
    ///
    /// # Errors
    /// A fatal error that names the type, when the worker has none of it.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<&T, JobError> {
        self.0
            .parts
            .state
            .get(&TypeId::of::<T>())
            .and_then(|value| value.downcast_ref())
            .ok_or_else(|| {
                let name = type_name::<T>();
                JobError::fatal(format!(
                    "this worker has no state of type `{name}`: add `.state(..)` with a `{name}` where it is built"
                ))
            })
    }

    /// Waits until the job should stop: it was cancelled, ran too long, lost its lease, or the worker shuts down.
    /// A handler that does not stop is dropped at its next `.await` after a grace of 5 s.
    pub async fn cancelled(&self) {
        self.0.cancellation.token.cancelled().await;
    }

    /// Whether the job should stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancellation.token.is_cancelled()
    }

    /// Why the job should stop; `None` while it should not.
    pub fn cancel_cause(&self) -> Option<CancelCause> {
        self.0.cancellation.cause()
    }

    /// Says how far the job is: `share` from 0.0 to 1.0 (clamped; not a number counts as 0.0) and a note, of which the
    /// first 255 characters are kept. Stored with the next heartbeat.
    pub fn progress(&self, share: f64, note: impl Into<String>) {
        let mut note: String = note.into();
        if let Some((end, _)) = note.char_indices().nth(255) {
            note.truncate(end);
        }
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        *self.0.progress.lock().unwrap_or_else(PoisonError::into_inner) = Some((share, note));
    }

    pub(crate) fn cancel(&self, cause: CancelCause) {
        self.0.cancellation.cancel(cause);
    }

    pub(crate) fn take_progress(&self) -> Option<(f64, String)> {
        self.0.progress.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What was taken and could not be stored, unless the handler has said something newer.
    pub(crate) fn put_progress_back(&self, progress: (f64, String)) {
        self.0.progress.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(progress);
    }
}

impl fmt::Debug for JobContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobContext")
            .field("id", &self.id())
            .field("job_type", &self.job_type())
            .field("queue", &self.queue())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}
