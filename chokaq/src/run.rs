//! The one line in `main`.

use std::{fmt, future::Future};

use tokio_util::sync::CancellationToken;

use crate::{Error, Pool, Result, Worker, WorkerHandle, worker::WorkerBuilder};

/// Runs a worker for every registered job type on the database of `CHOKAQ_DATABASE_URL` (default
/// `sqlite:chokaq.db`), until ctrl-c or SIGTERM. The short form of [`app()`] without state.
///
/// # Errors
/// As [`App::run`].
pub async fn run() -> Result<()> {
    app().run().await
}

/// Describes the program's worker: state, layers, concurrency. Then [`run`](App::run).
pub fn app() -> App {
    App { pool: None, changes: Vec::new() }
}

type Change = Box<dyn FnOnce(WorkerBuilder) -> WorkerBuilder + Send>;

/// A worker that takes its database from the environment and stops at a signal; from [`app()`].
#[must_use = "an app does nothing until it is run"]
pub struct App {
    pool: Option<Pool>,
    changes: Vec<Change>,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("pool", &self.pool).finish_non_exhaustive()
    }
}

impl App {
    /// This pool instead of the environment's.
    pub fn pool(mut self, pool: &Pool) -> Self {
        self.pool = Some(pool.clone());
        self
    }

    /// State for handlers, by its type: [`JobContext::state`](crate::JobContext::state).
    pub fn state<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.worker(|builder| builder.state(value))
    }

    /// How many jobs may run at once; default 10 per core.
    pub fn concurrency(self, jobs: usize) -> Self {
        self.worker(move |builder| builder.concurrency(jobs))
    }

    /// The queues to serve; default: those of the registered types. `["*"]` serves all.
    pub fn queues<S: Into<String>>(self, queues: impl IntoIterator<Item = S>) -> Self {
        let queues: Vec<String> = queues.into_iter().map(Into::into).collect();
        self.worker(move |builder| builder.queues(queues))
    }

    /// Everything else that the worker's builder offers: `.worker(|w| w.layer(..).only::<(A, B)>())`.
    pub fn worker(
        mut self,
        change: impl FnOnce(WorkerBuilder) -> WorkerBuilder + Send + 'static,
    ) -> Self {
        self.changes.push(Box::new(change));
        self
    }

    /// Runs until ctrl-c or SIGTERM; then running jobs get the shutdown grace. A second signal ends the process at
    /// once, with exit code 130 (ctrl-c) or 143 (SIGTERM). So does, after a signal, a handler that blocks its thread beyond
    /// all graces, with exit code 1: nothing else could end it.
    ///
    /// # Errors
    /// The database cannot be opened, or the worker cannot be built (two types with one key, a bad setting). Or the worker
    /// left jobs behind: see [`Worker::run`].
    pub async fn run(self) -> Result<()> {
        let pool = match self.pool {
            Some(pool) => pool,
            None => Pool::from_env().await?,
        };
        let builder = self
            .changes
            .into_iter()
            .fold(Worker::builder(&pool), |builder, change| change(builder));
        let worker = builder.build()?;
        let handle = worker.handle();
        let ended = CancellationToken::new();
        let ended_when_dropped = ended.clone().drop_guard();
        listen(handle, ended)?;
        let result = worker.run().await;
        if result.is_err() {
            // Handlers that go on may keep the process from ending: signals are still heard.
            ended_when_dropped.disarm();
        }
        result
    }
}

/// Listens for signals on a thread of its own: handlers that block every thread of the runtime must not block this.
fn listen(handle: WorkerHandle, ended: CancellationToken) -> Result<()> {
    let failed =
        |e: std::io::Error| Error::permanent("signals cannot be listened to", Some(e.into()));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    std::thread::Builder::new()
        .name("chokaq-signals".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = ended.cancelled() => {}
                    () = obey(&handle) => {}
                }
            });
        })
        .map_err(failed)?;
    Ok(())
}

async fn obey(handle: &WorkerHandle) {
    let first = signal().await;
    tracing::info!(signal = first, "stopping; a second signal ends at once");
    handle.stop();
    tokio::select! {
        second = signal() => {
            let jobs = handle.running();
            tracing::error!(signal = second, jobs, "ended by a second signal; jobs that ran are left to rescue");
            std::process::exit(if second == "ctrl-c" { 130 } else { 143 });
        }
        jobs = handle.ended_with_blocked_handlers() => {
            // The runtime that they block would never end, and the process with it.
            tracing::error!(jobs, "ended although handlers still block their threads; their jobs are left to rescue");
            std::process::exit(1);
        }
    }
}

/// Waits for a signal to stop, and names it.
async fn signal() -> &'static str {
    tokio::select! {
        () = ctrl_c() => "ctrl-c",
        () = terminate() => "SIGTERM",
    }
}

async fn ctrl_c() {
    if tokio::signal::ctrl_c().await.is_err() {
        tracing::warn!("ctrl-c cannot be listened to here");
        std::future::pending::<()>().await;
    }
}

#[cfg(unix)]
fn terminate() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let listening = signal(SignalKind::terminate());
    async move {
        match listening {
            Ok(mut signals) => {
                signals.recv().await;
            }
            Err(error) => {
                tracing::warn!(%error, "SIGTERM cannot be listened to here");
                std::future::pending::<()>().await;
            }
        }
    }
}

#[cfg(not(unix))]
fn terminate() -> impl Future<Output = ()> {
    std::future::pending()
}
