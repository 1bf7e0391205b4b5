//! Reader threads, each with a connection of its own: in WAL mode they neither block the writer nor wait for it.
//!
//! Threads of its own rather than the runtime's blocking pool: jobs may fill that, and a worker must read its controls
//! all the same.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::JoinHandle,
};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::{
    Error, Result,
    model::Timestamp,
    storage::sqlite::{
        connection::Opener,
        failure::{Fault, Outcome, wants_a_new_connection},
        identity::Place,
        tx::Tx,
        waiting::{panicked, stopped},
    },
};

/// Runs with a connection, or is told why there is none.
type Read = Box<dyn FnOnce(Outcome<&Connection>) -> Verdict + Send>;

/// Whether the connection is still good.
enum Verdict {
    Keep,
    Replace,
}

/// The handle: dropping it ends the threads.
#[derive(Debug)]
pub(super) struct Readers {
    reads: Option<mpsc::Sender<Read>>,
    threads: Vec<JoinHandle<()>>,
    opener: Opener,
}

impl Readers {
    pub(super) fn start(opener: &Opener, place: &Place, count: usize) -> Result<Self> {
        let (reads, waiting) = mpsc::channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let threads = (0..count)
            .map(|_| {
                let thread = Thread {
                    waiting: Arc::clone(&waiting),
                    opener: opener.clone(),
                    place: place.clone(),
                };
                std::thread::Builder::new()
                    .name("chokaq-sqlite-reader".into())
                    .spawn(move || thread.run())
                    .map_err(|e| Error::config(format!("a reader thread cannot be started: {e}")))
            })
            .collect::<Result<_>>()?;
        Ok(Self { reads: Some(reads), threads, opener: opener.clone() })
    }

    /// Runs the work in a read transaction: all its statements see the same moment.
    pub(super) async fn read<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Tx<'_>) -> Outcome<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let read: Read = Box::new(move |connection| {
            let result = connection.and_then(|connection| in_transaction(connection, work));
            let verdict = match &result {
                Err(Fault::Sqlite(error)) if wants_a_new_connection(error) => Verdict::Replace,
                _ => Verdict::Keep,
            };
            // A caller that has gone needs no answer.
            drop(reply.send(result));
            verdict
        });
        self.reads.as_ref().and_then(|reads| reads.send(read).ok()).ok_or_else(stopped)?;
        match answer.await {
            Ok(result) => result.map_err(|fault| self.opener.name.explain(fault)),
            Err(_) => Err(stopped()),
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.reads = None;
        let here = std::thread::current().id();
        for thread in self.threads.drain(..) {
            // An answer may wake a caller that drops the last handle on a reader's own thread.
            if thread.thread().id() != here {
                // It caught its panics.
                drop(thread.join());
            }
        }
    }
}

struct Thread {
    waiting: Arc<Mutex<mpsc::Receiver<Read>>>,
    opener: Opener,
    place: Place,
}

impl Thread {
    fn run(self) {
        let mut connection = None;
        while let Some(read) = self.next() {
            let opened = match connection.take() {
                _ if !self.place.is_kept() => Err(Place::lost(&self.opener.name).into()),
                Some(connection) => Ok(connection),
                None => self.opener.open_reader(self.place.path()),
            };
            match opened {
                Ok(open) => {
                    if let Verdict::Keep = read(Ok(&open)) {
                        connection = Some(open);
                    }
                }
                Err(fault) => drop(read(Err(fault))),
            }
        }
    }

    fn next(&self) -> Option<Read> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
    }
}

fn in_transaction<T>(
    connection: &Connection,
    work: impl FnOnce(&Tx<'_>) -> Outcome<T>,
) -> Outcome<T> {
    // Dropped, it rolls back: nothing was written.
    let transaction = connection.unchecked_transaction()?;
    let tx = Tx::new(&transaction, Timestamp::now().as_unix_ms());
    catch_unwind(AssertUnwindSafe(|| work(&tx)))
        .unwrap_or_else(|payload| Err(panicked(payload.as_ref())))
}
