//! Steers a running worker.

use std::sync::{Arc, atomic::Ordering};

use crate::{
    Result, config,
    model::Backoff,
    worker::{release::give_back, shared::Shared},
};

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

    /// The wait before a retry from now on, for job types that have no backoff of their own. Jobs that wait already keep
    /// their time; how many retries a job has stands with the job.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use chokaq::prelude::*;
    /// # #[job] struct Greet;
    /// # impl Job for Greet {
    /// #     type Output = ();
    /// #     async fn run(self, _: &JobContext) -> Result<(), JobError> { Ok(()) }
    /// # }
    /// # #[tokio::main] async fn main() -> chokaq::Result<()> {
    /// # let pool = chokaq::Pool::connect("sqlite::memory:").await?;
    /// let worker = chokaq::Worker::builder(&pool).only::<(Greet,)>().build()?;
    /// worker.handle().set_backoff(chokaq::Backoff::Fixed(Duration::from_secs(60)))?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A wait of zero or over 50 years, or a factor that is not from 1 to 100; nothing changes.
    pub fn set_backoff(&self, backoff: Backoff) -> Result<()> {
        config::check_backoff(&backoff)?;
        self.shared.retry_rules().backoff = backoff;
        Ok(())
    }

    /// The share of random time added to a retry's wait from now on, 0.0 to 1.0.
    ///
    /// # Errors
    /// A share outside of that; nothing changes.
    pub fn set_jitter(&self, share: f64) -> Result<()> {
        config::check_jitter(share)?;
        self.shared.retry_rules().jitter = share;
        Ok(())
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
