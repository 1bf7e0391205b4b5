//! The worker: claims due rows, runs their handlers, brings the outcomes back.

mod buffer;
mod builder;
mod circuit_reports;
mod circuits;
mod coalescer;
mod control;
mod fetcher;
mod finaliser;
mod handle;
mod heartbeat;
mod left;
mod lifecycle;
mod limiter;
mod marker;
mod plan;
mod processor;
mod queue_leases;
mod release;
mod rescue;
mod running;
mod shared;
mod trouble;
mod verdict;

pub use builder::{JobSet, WorkerBuilder};
pub use handle::WorkerHandle;
pub use shared::DeadLetter;

use std::{sync::Arc, thread};

use tokio::{runtime::Handle, sync::oneshot};

use crate::{Error, Pool, Result};
use fetcher::Until;
use shared::Shared;

/// A worker that is built and not yet running.
///
/// ```
/// use chokaq::prelude::*;
///
/// #[job]
/// struct Greet { name: String }
///
/// impl Job for Greet {
///     type Output = String;
///     async fn run(self, _ctx: &JobContext) -> Result<String, JobError> {
///         Ok(format!("hello {}", self.name))
///     }
/// }
///
/// # #[tokio::main] async fn main() -> chokaq::Result<()> {
/// let pool = chokaq::Pool::connect("sqlite::memory:").await?;
/// let greet = Greet { name: "Ada".into() }.enqueue(&pool).await?;
/// chokaq::Worker::builder(&pool).only::<(Greet,)>().build()?.run_until_idle().await?;
/// let job = pool.job(greet.id).await?.expect("it is in the archive");
/// assert_eq!(job.output::<String>()?, Some("hello Ada".to_owned()));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
}

impl Worker {
    /// Starts the description of a worker on this pool.
    pub fn builder(pool: &Pool) -> WorkerBuilder {
        WorkerBuilder::new(pool)
    }

    /// Steers the worker from elsewhere while it runs.
    pub fn handle(&self) -> WorkerHandle {
        WorkerHandle::new(Arc::clone(&self.shared))
    }

    /// Runs until it is told to stop ([`WorkerHandle::stop`], the builder's `shutdown` future, or dropping this
    /// future). Trouble with the database does not end it.
    ///
    /// Stopping: nothing more is fetched, the buffer is given back, running jobs get the shutdown grace, then their
    /// contexts are cancelled; those that stop are rescheduled with no attempt used.
    ///
    /// Handlers run on the runtime that polls this future; everything else on a thread of the worker's own.
    ///
    /// # Errors
    /// The worker's thread cannot be started. Or it stopped and left jobs behind: handlers that block their threads and
    /// cannot be stopped, outcomes that the database did not take. Rescue finds them when their lease has run out.
    pub async fn run(self) -> Result<()> {
        self.start(Until::Stopped).await
    }

    /// Runs until nothing is fetched, running or unfinalised here, and nothing claimable of its queues is due within a
    /// minute. Rows of paused, inactive and full queues do not count; rows of types that this worker does not know do,
    /// as long as they come round.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_until_idle(self) -> Result<()> {
        self.start(Until::Idle).await
    }

    async fn start(self, until: Until) -> Result<()> {
        let shared = self.shared;
        for job_type in shared.registry.types() {
            let (key, queue) = (job_type.key, job_type.queue);
            tracing::info!(job_type = key, rust_type = job_type.rust_name, queue, "serves");
            let is_served = shared.queues.as_ref().is_none_or(|all| all.iter().any(|q| q == queue));
            if !is_served {
                tracing::warn!(
                    job_type = key,
                    queue,
                    "this worker does not serve the type's own queue"
                );
            }
        }
        tracing::info!(worker = %shared.id, queues = shared.queues.as_ref().map_or("*".to_owned(), |queues| queues.join(",")), concurrency = shared.limiter.limit(), database = %shared.storage().describe(), "worker starts");
        let _stop_when_dropped = shared.stop.clone().drop_guard();
        let handlers = Handle::current();
        let (done, ended) = oneshot::channel();
        thread::Builder::new()
            .name("chokaq-worker".to_owned())
            .spawn(move || {
                let _ = done.send(lifecycle::run_on_this_thread(shared, until, handlers));
            })
            .map_err(|e| Error::permanent("the worker's thread cannot start", Some(e.into())))?;
        ended.await.unwrap_or_else(|_| {
            Err(Error::permanent("the worker's thread panicked; its log says why", None))
        })
    }
}
