//! The checkpointer: moves what was committed from the WAL into the database file, off the writer's path.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rusqlite::Connection;

use crate::{
    Error, Result,
    storage::sqlite::{
        connection::{Opener, WAL_LIMIT_BYTES},
        failure::Outcome,
        identity::Place,
    },
};

/// At most one checkpoint in this time.
const PACE: Duration = Duration::from_millis(100);
/// After a restart that readers prevented: each try holds the writer up for a moment.
const RESTART_PACE: Duration = Duration::from_secs(1);
/// A WAL of this many times its limit does not wait for that.
const URGENT: i64 = 4;
/// The longest that the writer waits for a restart; SQLite's own lock makes it wait for the rest.
const GIVE_WAY: Duration = Duration::from_millis(500);
/// SQLite's page size, unless the file was made otherwise; only a threshold depends on it.
const PAGE_BYTES: i64 = 4096;

/// The handle: dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Checkpointer {
    signal: Signal,
    thread: Option<JoinHandle<()>>,
}

/// What the writer and the checkpointer tell each other.
#[derive(Debug, Clone, Default)]
pub(super) struct Signal(Arc<(Mutex<State>, Condvar)>);

#[derive(Debug, Default)]
struct State {
    has_news: bool,
    is_restarting: bool,
    is_closed: bool,
}

impl Signal {
    pub(super) fn committed(&self) {
        let was_told = std::mem::replace(&mut self.lock().has_news, true);
        if !was_told {
            self.0.1.notify_all();
        }
    }

    /// The writer waits here between its transactions while the WAL is begun anew. SQLite's lock is not fair: a
    /// checkpointer that polls for it would never meet a busy writer without it.
    pub(super) fn give_way(&self) {
        let is_restarting = |state: &mut State| state.is_restarting;
        let wait = self.0.1.wait_timeout_while(self.lock(), GIVE_WAY, is_restarting);
        drop(wait.unwrap_or_else(PoisonError::into_inner));
    }

    fn restarting(&self, is_restarting: bool) {
        self.lock().is_restarting = is_restarting;
        self.0.1.notify_all();
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.0.1.notify_all();
    }

    /// Blocks until there is news; false at the end.
    fn wait(&self) -> bool {
        let mut state = self
            .0
            .1
            .wait_while(self.lock(), |state| !state.has_news && !state.is_closed)
            .unwrap_or_else(PoisonError::into_inner);
        state.has_news = false;
        !state.is_closed
    }

    /// Sleeps, but not past the end; false at the end.
    fn sleep(&self, time: Duration) -> bool {
        let (state, _) = self
            .0
            .1
            .wait_timeout_while(self.lock(), time, |state| !state.is_closed)
            .unwrap_or_else(PoisonError::into_inner);
        !state.is_closed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Checkpointer {
    pub(super) fn start(opener: &Opener, place: Place, signal: Signal) -> Result<Self> {
        let thread = Thread {
            opener: opener.clone(),
            place,
            connection: None,
            signal: signal.clone(),
            restart_at: Instant::now(),
            is_failing: false,
        };
        let thread = std::thread::Builder::new()
            .name("chokaq-sqlite-checkpoint".into())
            .spawn(move || thread.run())
            .map_err(|e| Error::config(format!("the checkpoint thread cannot be started: {e}")))?;
        Ok(Self { signal, thread: Some(thread) })
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.signal.close();
        if let Some(thread) = self.thread.take() {
            // It holds no handle on the storage, so it never drops this itself.
            drop(thread.join());
        }
    }
}

struct Thread {
    opener: Opener,
    place: Place,
    connection: Option<Connection>,
    signal: Signal,
    restart_at: Instant,
    is_failing: bool,
}

impl Thread {
    fn run(mut self) {
        while self.signal.wait() {
            match self.checkpoint() {
                Ok(()) => self.is_failing = false,
                Err(fault) => {
                    self.connection = None;
                    if !std::mem::replace(&mut self.is_failing, true) {
                        let error = self.opener.name.explain(fault);
                        tracing::warn!(%error, "a checkpoint failed; it is tried again");
                    }
                }
            }
            if !self.signal.sleep(PACE) {
                return;
            }
        }
    }

    fn checkpoint(&mut self) -> Outcome<()> {
        if !self.place.is_kept() {
            return Ok(());
        }
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.opener.open_checkpointer(self.place.path())?,
        };
        let passive = run(&connection, "PRAGMA wal_checkpoint(PASSIVE)")?;
        // Passive checkpoints never catch a writer that does not pause, and the WAL would grow without end. Restart
        // blocks the writer for the few frames that came since, so that the next transaction begins the file anew.
        let bytes = passive.wal_bytes();
        let is_time = Instant::now() >= self.restart_at || bytes > URGENT * WAL_LIMIT_BYTES;
        if bytes > WAL_LIMIT_BYTES && is_time {
            self.signal.restarting(true);
            let restart = run(&connection, "PRAGMA wal_checkpoint(RESTART)");
            self.signal.restarting(false);
            if restart?.is_blocked {
                self.restart_at = Instant::now() + RESTART_PACE;
            }
        }
        self.connection = Some(connection);
        Ok(())
    }
}

struct Checkpointed {
    /// A reader, or another process's checkpoint, was in the way: no error, it is tried again.
    is_blocked: bool,
    wal_frames: i64,
}

impl Checkpointed {
    fn wal_bytes(&self) -> i64 {
        self.wal_frames.saturating_mul(PAGE_BYTES)
    }
}

fn run(connection: &Connection, pragma: &str) -> rusqlite::Result<Checkpointed> {
    connection.prepare_cached(pragma)?.query_row([], |row| {
        Ok(Checkpointed { is_blocked: row.get::<_, i64>(0)? != 0, wal_frames: row.get(1)? })
    })
}
