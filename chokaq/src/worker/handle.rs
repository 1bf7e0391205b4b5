//! Steers a running worker.

use std::sync::{Arc, atomic::Ordering};

use crate::worker::{release::give_back, shared::Shared};

/// Steers a worker while it runs, from [`Worker::handle`](crate::Worker::handle). Cheap to clone.
#[derive(Debug, Clone)]
pub struct WorkerHandle {
    shared: Arc<Shared>,
}

impl WorkerHandle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// How many jobs may run at once from now on; 0 starts none. Jobs over a lowered limit finish.
    pub fn set_concurrency(&self, jobs: usize) {
        self.shared.limiter.set_limit(jobs);
        self.shared.nudge.notify_one();
    }

    /// Starts no further jobs and gives back the ones that wait in the buffer; what runs goes on.
    pub async fn pause(&self) {
        self.shared.paused.store(true, Ordering::Release);
        let waiting = self.shared.buffer.take(|_| true);
        give_back(&self.shared, waiting.into_iter().map(|job| job.lease)).await;
    }

    /// Starts jobs again.
    pub fn resume(&self) {
        self.shared.paused.store(false, Ordering::Release);
        self.shared.nudge.notify_one();
    }

    /// Begins the shutdown; [`Worker::run`](crate::Worker::run) returns when it is complete.
    pub fn stop(&self) {
        self.shared.stop.cancel();
    }

    /// Waits until the worker has ended in front of handlers that it cannot stop.
    pub(crate) async fn ended_with_blocked_handlers(&self) -> usize {
        let left = self.shared.end.reached().await;
        if left.running == 0 {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(self.shared.settings.cancel_grace).await;
        left.running
    }

    /// How many jobs run now, or wait for their outcome to be stored.
    pub fn running(&self) -> usize {
        self.shared.running.len()
    }
}
