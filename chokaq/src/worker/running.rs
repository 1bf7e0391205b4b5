//! The jobs that this worker has marked as processing and not yet finalised: what beats.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Notify;

use crate::{
    job::{CancelCause, Cancellation, JobContext},
    model::{JobId, Lease},
};

/// One job from its mark to the commit of its outcome.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) lease: Lease,
    pub(crate) job_type: String,
    pub(crate) queue: String,
    pub(crate) cancellation: Arc<Cancellation>,
    /// Set when user code starts.
    context: OnceLock<JobContext>,
    /// User code has ended, or never started; only the commit is missing.
    ended: AtomicBool,
    /// When the last call that renewed the lease was sent.
    renewed: Mutex<Instant>,
}

impl Run {
    pub(crate) fn new(lease: Lease, job_type: String, queue: String) -> Arc<Self> {
        Arc::new(Self {
            lease,
            job_type,
            queue,
            cancellation: Arc::default(),
            context: OnceLock::new(),
            ended: AtomicBool::new(false),
            renewed: Mutex::new(Instant::now()),
        })
    }

    pub(crate) fn set_context(&self, context: JobContext) {
        let _ = self.context.set(context);
    }

    pub(crate) fn context(&self) -> Option<&JobContext> {
        self.context.get()
    }

    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// How long ago the last call that renewed the lease was sent.
    pub(crate) fn unrenewed_for(&self) -> Duration {
        self.renewed.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    pub(crate) fn renew(&self, sent: Instant) {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = sent;
    }

    /// Cancels user code that runs or is about to; answers whether it was not cancelled before.
    pub(crate) fn cancel(&self, cause: CancelCause) -> bool {
        !self.has_ended() && self.cancellation.cancel(cause)
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Running {
    runs: Mutex<HashMap<JobId, Arc<Run>>>,
    /// The last one is gone.
    pub(crate) emptied: Notify,
    /// Some are gone.
    removed: Notify,
}

impl Running {
    pub(crate) fn insert(&self, run: Arc<Run>) {
        self.lock().insert(run.lease.job(), run);
    }

    pub(crate) fn remove<'a>(&self, runs: impl IntoIterator<Item = &'a Arc<Run>>) {
        let mut all = self.lock();
        for run in runs {
            // A later lease of the same job, fetched again meanwhile, is another run.
            if all.get(&run.lease.job()).is_some_and(|held| Arc::ptr_eq(held, run)) {
                all.remove(&run.lease.job());
            }
        }
        let empty = all.is_empty();
        drop(all);
        self.removed.notify_one();
        if empty {
            self.emptied.notify_one();
        }
    }

    pub(crate) fn get(&self, job: JobId) -> Option<Arc<Run>> {
        self.lock().get(&job).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Run>> {
        self.lock().values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// How many have ended and are not committed.
    pub(crate) fn unfinalised(&self) -> usize {
        self.lock().values().filter(|run| run.has_ended()).count()
    }

    /// Waits until everything that has ended is committed.
    pub(crate) async fn all_finalised(&self) {
        loop {
            let removed = self.removed.notified();
            if self.unfinalised() == 0 {
                return;
            }
            removed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, Arc<Run>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
