//! The thread itself: transactions, one after the other.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use rusqlite::Connection;
use tokio::sync::watch;

use crate::{
    Error, Result,
    model::Timestamp,
    storage::sqlite::{
        checkpoint::Signal,
        connection::short_wait,
        failure::{Fault, Outcome, is_busy, wants_a_new_connection},
        identity::Place,
        tx::Tx,
        waiting::{BoxedOperation, Class, Effect, Operation, panicked},
        writer::{Setup, Shared},
    },
};

/// For so long after another process's commit this one leaves it room.
const NEIGHBOUR_MEMORY: Duration = Duration::from_secs(1);

/// A wait for another process's lock that is worth a line in the log.
const LONG_WAIT: Duration = Duration::from_secs(2);

pub(super) struct Thread {
    shared: Arc<Shared>,
    /// `None` after a failure that a new connection may heal.
    connection: Option<Connection>,
    reopen: Option<Box<dyn FnMut() -> Result<Connection> + Send>>,
    work_arrived: watch::Sender<u64>,
    checkpoints: Option<Signal>,
    quantum: Duration,
    data_version: Option<i64>,
    neighbour_until: Option<Instant>,
    /// A call failed in a way that a new connection may heal.
    is_suspect: Cell<bool>,
    /// Where the file is; `None` in memory.
    place: Option<Place>,
    /// The file is gone, and that was said.
    is_missing: bool,
}

/// What a call did to the transaction it ran in.
enum Ran {
    /// It is part of it.
    Kept,
    /// It failed alone.
    Undone,
    /// The whole transaction has to be undone.
    Broke(Error),
}

impl Thread {
    pub(super) fn new(shared: Arc<Shared>, setup: Setup, quantum: Duration) -> Self {
        Self {
            shared,
            connection: Some(setup.connection),
            reopen: setup.reopen,
            work_arrived: setup.work_arrived,
            checkpoints: setup.checkpoints,
            quantum,
            data_version: None,
            neighbour_until: None,
            is_suspect: Cell::new(false),
            place: setup.place,
            is_missing: false,
        }
    }

    pub(super) fn run(mut self) {
        while self.shared.waiting.wait() {
            if !self.is_in_place() {
                continue;
            }
            let Some(connection) = self.connect() else { continue };
            match self.begin(&connection) {
                Ok(true) => {
                    let failure = self.transact(&connection);
                    self.keep(connection, failure.as_ref());
                    self.leave_room();
                }
                Ok(false) => self.keep(connection, None),
                Err(error) => {
                    self.fail_all(|| self.shared.name.explain_sqlite(&error));
                    self.keep(connection, Some(&error));
                }
            }
        }
    }

    /// Whether the file is still in its place. Where it is not, nothing is written any more, and what waits is told so.
    fn is_in_place(&mut self) -> bool {
        if self.place.as_ref().is_none_or(Place::is_kept) {
            if self.is_missing {
                tracing::info!(database = %self.shared.name, "the database file is there again");
                self.is_missing = false;
            }
            return true;
        }
        if !self.is_missing {
            tracing::error!(error = %Place::lost(&self.shared.name), "nothing is written");
        }
        self.is_missing = true;
        self.fail_all(|| Place::lost(&self.shared.name));
        false
    }

    /// The connection, or a new one; when there is none, what waits is told so.
    fn connect(&mut self) -> Option<Connection> {
        if let Some(connection) = self.connection.take() {
            return Some(connection);
        }
        self.data_version = None;
        match self.reopen.as_mut()?() {
            Ok(connection) => Some(connection),
            Err(error) => {
                let text = error.to_string();
                self.fail_all(|| Error::transient(text.clone(), None));
                None
            }
        }
    }

    /// Keeps the connection unless it is at fault.
    fn keep(&mut self, connection: Connection, failure: Option<&rusqlite::Error>) {
        let is_suspect = self.is_suspect.take() || failure.is_some_and(wants_a_new_connection);
        if self.reopen.is_none() || !is_suspect {
            self.connection = Some(connection);
        }
    }

    /// Takes the write lock, however often another process has it first; false when nothing waits any more.
    fn begin(&mut self, connection: &Connection) -> rusqlite::Result<bool> {
        let started = Instant::now();
        let mut is_said = false;
        loop {
            match execute(connection, "BEGIN IMMEDIATE") {
                Ok(()) => {
                    if is_said {
                        tracing::info!(database = %self.shared.name, waited = ?started.elapsed(), "the lock is free again");
                    }
                    return Ok(true);
                }
                Err(error) if !is_busy(&error) => return Err(error),
                Err(_) => {}
            }
            let mut expired = Vec::new();
            let some_wait = self.shared.waiting.take_expired(Instant::now(), &mut expired);
            for call in expired {
                call.fail(self.shared.name.locked_too_long(self.shared.call_limit));
            }
            if !some_wait {
                return Ok(false);
            }
            if !is_said && started.elapsed() >= LONG_WAIT {
                is_said = true;
                tracing::warn!(database = %self.shared.name, "another process holds the write lock; waiting for it");
            }
            short_wait();
        }
    }

    /// One transaction; answers SQLite's error when it broke.
    fn transact(&mut self, connection: &Connection) -> Option<rusqlite::Error> {
        self.note_neighbours(connection);
        let tx = Tx::new(connection, Timestamp::now().as_unix_ms());
        let mut done = Vec::new();
        let broke = self.fill(&tx, &mut done);
        let (error, failure) = match broke {
            None if done.is_empty() => (None, execute(connection, "ROLLBACK").err()),
            None => match execute(connection, "COMMIT") {
                Ok(()) => {
                    self.answer(done, tx.has_work());
                    return None;
                }
                Err(error) => (Some(self.shared.name.explain_sqlite(&error)), Some(error)),
            },
            Some(error) => (Some(error), None),
        };
        if !connection.is_autocommit() {
            // A rollback that fails as well leaves the connection to be replaced.
            drop(connection.execute_batch("ROLLBACK"));
        }
        if let Some(error) = error {
            let text = error.to_string();
            for call in done {
                call.fail(if error.is_transient() {
                    Error::transient(text.clone(), None)
                } else {
                    Error::permanent(text.clone(), None)
                });
            }
        }
        failure
    }

    /// Runs one call of every class that has one, then more in the order of the classes until the time is up.
    fn fill(&self, tx: &Tx<'_>, done: &mut Vec<BoxedOperation>) -> Option<Error> {
        let started = Instant::now();
        let mut first_round = Class::ALL.into_iter();
        loop {
            let call = match first_round.next() {
                Some(class) => match self.shared.waiting.pop(class) {
                    Some(call) => call,
                    None => continue,
                },
                None if started.elapsed() >= self.quantum => return None,
                None => self.shared.waiting.pop_first()?,
            };
            if call.is_abandoned() {
                continue;
            }
            if let Ran::Broke(error) = self.run_one(tx, call, done) {
                return Some(error);
            }
        }
    }

    fn run_one(
        &self,
        tx: &Tx<'_>,
        mut call: BoxedOperation,
        done: &mut Vec<BoxedOperation>,
    ) -> Ran {
        // The first call needs no savepoint: while it is alone, undoing it is undoing the transaction.
        let is_alone = done.is_empty();
        let Err(fault) = attempt(tx, call.as_mut(), is_alone) else {
            done.push(call);
            return Ran::Kept;
        };
        let undone = match &fault {
            Fault::Sqlite(error) if wants_a_new_connection(error) => {
                self.is_suspect.set(true);
                Err(error.to_string())
            }
            _ => undo(tx.connection(), is_alone),
        };
        call.fail(self.shared.name.explain(fault));
        match undone {
            Ok(()) => Ran::Undone,
            Err(why) => Ran::Broke(Error::transient(
                format!(
                    "a transaction on {} was undone with the calls in it: {why}",
                    self.shared.name
                ),
                None,
            )),
        }
    }

    fn answer(&mut self, done: Vec<BoxedOperation>, has_work: bool) {
        if let Some(checkpoints) = &self.checkpoints {
            checkpoints.committed();
        }
        if has_work {
            self.work_arrived.send_modify(|count| *count = count.wrapping_add(1));
        }
        for call in done {
            if call.effect() == Effect::Writes && self.loses_reply() {
                call.fail(Error::transient("reply lost", None));
            } else {
                call.confirm();
            }
        }
    }

    fn loses_reply(&self) -> bool {
        let left = &self.shared.replies_to_lose;
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
    }

    fn fail_all(&self, error: impl Fn() -> Error) {
        for call in self.shared.waiting.take_all() {
            call.fail(error());
        }
    }

    /// Remembers when another process wrote: this connection's own commits do not change its data version.
    fn note_neighbours(&mut self, connection: &Connection) {
        let version = connection
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .ok();
        if self.data_version.is_some() && version != self.data_version {
            self.neighbour_until = Some(Instant::now() + NEIGHBOUR_MEMORY);
        }
        self.data_version = version;
    }

    /// SQLite's lock is not fair: a writer that comes back at once would starve the other processes.
    fn leave_room(&self) {
        if let Some(checkpoints) = &self.checkpoints {
            checkpoints.give_way();
        }
        if self.neighbour_until.is_some_and(|until| Instant::now() < until) {
            std::thread::sleep(Duration::from_micros(fastrand::u64(500..1_500)));
        }
    }
}

fn attempt(tx: &Tx<'_>, call: &mut dyn Operation, is_alone: bool) -> Outcome<()> {
    let savepoint = |sql| if is_alone { Ok(()) } else { execute(tx.connection(), sql) };
    savepoint("SAVEPOINT call")?;
    catch_unwind(AssertUnwindSafe(|| call.run(tx)))
        .unwrap_or_else(|payload| Err(panicked(payload.as_ref())))?;
    Ok(savepoint("RELEASE call")?)
}

/// Undoes the last call and nothing else; the error says why that cannot be.
fn undo(connection: &Connection, is_alone: bool) -> Result<(), String> {
    if connection.is_autocommit() {
        return Err("SQLite rolled it back".into());
    }
    let [back, on] = if is_alone {
        ["ROLLBACK", "BEGIN IMMEDIATE"]
    } else {
        ["ROLLBACK TO call", "RELEASE call"]
    };
    execute(connection, back)
        .and_then(|()| execute(connection, on))
        .map_err(|error| error.to_string())
}

fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}
