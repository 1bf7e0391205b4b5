//! The writer thread: what waits goes into one transaction, and is answered after its commit.
//!
//! One thread, because SQLite has one write lock: threads that compete for it would only wait in a worse way. One
//! transaction for many calls, because its cost is the commit.

mod thread;

#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

use crate::{
    Error, Result,
    storage::sqlite::{
        checkpoint::Signal,
        failure::{DatabaseName, Outcome},
        identity::Place,
        tx::Tx,
        waiting::{Call, Class, Effect, Waiting, stopped},
        writer::thread::Thread,
    },
};

/// After this long a transaction takes no further calls.
const QUANTUM: Duration = Duration::from_millis(50);

/// The handle: dropping it ends the thread, after what waits.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    waiting: Waiting,
    name: DatabaseName,
    call_limit: Duration,
    replies_to_lose: AtomicU32,
}

/// What the thread needs.
pub(super) struct Setup {
    pub(super) connection: Connection,
    /// Makes a new connection in place of one that failed; `None` where that would be another database.
    pub(super) reopen: Option<Box<dyn FnMut() -> Result<Connection> + Send>>,
    pub(super) name: DatabaseName,
    pub(super) call_limit: Duration,
    pub(super) work_arrived: watch::Sender<u64>,
    /// The checkpointer's ear; `None` where there is no WAL.
    pub(super) checkpoints: Option<Signal>,
    /// Where the file is; `None` in memory.
    pub(super) place: Option<Place>,
}

impl Writer {
    pub(super) fn start(setup: Setup) -> Result<Self> {
        Self::start_with_quantum(setup, QUANTUM)
    }

    fn start_with_quantum(setup: Setup, quantum: Duration) -> Result<Self> {
        let shared = Arc::new(Shared {
            waiting: Waiting::default(),
            name: setup.name.clone(),
            call_limit: setup.call_limit,
            replies_to_lose: AtomicU32::new(0),
        });
        let thread = Thread::new(Arc::clone(&shared), setup, quantum);
        let thread = std::thread::Builder::new()
            .name("chokaq-sqlite-writer".into())
            .spawn(move || thread.run())
            .map_err(|e| Error::config(format!("the writer thread cannot be started: {e}")))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Runs the work in a write transaction, together with whatever else waits, and answers after its commit.
    pub(super) async fn submit<T, F>(&self, class: Class, effect: Effect, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Tx<'_>) -> Outcome<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let deadline = Instant::now() + self.shared.call_limit;
        let call = Call::new(work, reply, deadline, effect);
        self.shared.waiting.push(class, Box::new(call));
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// The next writing calls commit and are then answered with a transient error.
    pub(super) fn lose_replies(&self, calls: u32) {
        self.shared.replies_to_lose.store(calls, Ordering::Relaxed);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.waiting.close();
        let Some(thread) = self.thread.take() else { return };
        // An answer may wake a caller that drops the last handle on the writer's own thread: that one cannot wait.
        if thread.thread().id() != std::thread::current().id() {
            // It caught its panics.
            drop(thread.join());
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("name", &self.name).finish_non_exhaustive()
    }
}
