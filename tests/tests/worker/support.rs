//! Databases and jobs that several tests use.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use chokaq::{
    FailureReason, JobId, Pool, Worker, WorkerBuilder,
    model::{JobDetail, JobState},
    prelude::*,
};
use tempfile::TempDir;
use tokio::sync::{Semaphore, mpsc};

/// A database of the test's own in memory.
pub(crate) async fn memory() -> Pool {
    Pool::connect("sqlite::memory:").await.expect("a database in memory")
}

/// A database of the test's own in a file, and the folder that goes with it.
pub(crate) async fn file() -> (Pool, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("jobs.db").display());
    (Pool::connect(url).await.expect("a database file"), folder)
}

/// A worker that starts its jobs at once, whatever the machine.
pub(crate) fn worker(pool: &Pool) -> WorkerBuilder {
    Worker::builder(pool).concurrency(4)
}

/// Everything known of a job that is there.
pub(crate) async fn detail(pool: &Pool, id: JobId) -> JobDetail {
    pool.job(id).await.expect("the database answers").expect("the job is there")
}

/// Why a job is dead.
pub(crate) async fn death(pool: &Pool, id: JobId) -> (FailureReason, JobDetail) {
    let job = detail(pool, id).await;
    match job.state {
        JobState::Dead(reason) => (reason, job),
        state => panic!("the job is not dead but {state:?}"),
    }
}

/// What handlers did, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Everything that workers of this test program log on their own threads, line by line.
pub(crate) fn worker_log() -> &'static Log {
    static LOG: std::sync::OnceLock<Log> = std::sync::OnceLock::new();
    LOG.get_or_init(|| {
        let log = Log::default();
        let lines = log.clone();
        tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::INFO)
            .with_writer(move || LineWriter(lines.clone()))
            .init();
        log
    })
}

/// Each event is one write.
struct LineWriter(Log);

impl std::io::Write for LineWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.add(String::from_utf8_lossy(bytes).into_owned());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Notes its name and attempt.
#[job(queue = "notes")]
pub(crate) struct Note {
    pub(crate) name: String,
}

impl Job for Note {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        ctx.state::<Log>()?.add(format!("{} {}", self.name, ctx.attempt()));
        Ok(())
    }
}

pub(crate) fn note(name: impl Into<String>) -> Note {
    Note { name: name.into() }
}

/// Says when a handler has started, and holds it until the test opens the gate.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    pub(crate) open: Arc<Semaphore>,
    started: mpsc::UnboundedSender<JobContext>,
    inside: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Gate {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<JobContext>) {
        let (started, starts) = mpsc::unbounded_channel();
        let gate = Self {
            open: Arc::new(Semaphore::new(0)),
            started,
            inside: Arc::default(),
            most: Arc::default(),
        };
        (gate, starts)
    }

    /// The most handlers that were inside at once.
    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    pub(crate) async fn pass(&self, ctx: &JobContext) {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(inside, Ordering::SeqCst);
        self.started.send(ctx.clone()).expect("the test listens");
        self.open.acquire().await.expect("never closed").forget();
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits at the gate; stops when it is cancelled if it is cooperative.
#[job(queue = "gated", retries = 1)]
pub(crate) struct Gated {
    pub(crate) cooperative: bool,
}

impl Job for Gated {
    type Output = String;
    async fn run(self, ctx: &JobContext) -> Result<String, JobError> {
        let gate = ctx.state::<Gate>()?.clone();
        if self.cooperative {
            tokio::select! {
                () = gate.pass(ctx) => {}
                () = ctx.cancelled() => return Err("told to stop".into()),
            }
        } else {
            gate.pass(ctx).await;
        }
        Ok("through the gate".to_owned())
    }
}

/// Long enough never to be the reason that a test goes on.
pub(crate) const NEVER: Duration = Duration::from_hours(1);
