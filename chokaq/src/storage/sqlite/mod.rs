//! The embedded backend: one writer thread, readers beside it, one file that several processes may share.
//!
//! ```text
//! contract    the storage traits: which call goes to which thread, in which class
//! writer      the thread that writes; waiting: its queue; tx: what a call sees
//! readers     threads that read;  checkpoint: the thread that empties the WAL
//! connection  opening and pragmas;  migrate: the schema;  drift: compared with what it should be;  failure: errors that say what to do
//! queries     the .sql files;  row: stored values back into the model
//! enqueue · fetch, shares · leases · finalise, endings, totals · rescue · controls · operate · purge · reads, pages: what the calls do
//! ```

mod checkpoint;
mod circuits;
mod connection;
mod contract;
mod controls;
mod drift;
mod endings;
mod enqueue;
mod failure;
mod fetch;
mod finalise;
mod identity;
mod leases;
mod migrate;
mod operate;
mod pages;
#[cfg(test)]
mod plans;
mod purge;
mod queries;
mod readers;
mod reads;
mod rescue;
mod row;
mod shares;
#[cfg(test)]
mod tests;
mod totals;
mod tx;
mod waiting;
mod writer;

use std::{path::PathBuf, sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::{
    Result,
    storage::sqlite::{
        checkpoint::{Checkpointer, Signal},
        connection::Opener,
        failure::{DatabaseName, Outcome},
        identity::Place,
        readers::Readers,
        tx::Tx,
        waiting::{Class, Effect},
        writer::{Setup, Writer},
    },
};

/// Where the database lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In this process, private to one storage; gone with it.
    Memory,
    /// In a file, made when it is missing.
    File(PathBuf),
}

pub use crate::config::Synchronous;

/// How a storage is opened.
#[derive(Debug, Clone, Copy)]
pub struct SqliteOptions {
    /// What a commit waits for; default: the disk.
    pub synchronous: Synchronous,
    /// How long a call may wait for a database that another process has locked before it fails as transient; default 30 s.
    pub call_limit: Duration,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { synchronous: Synchronous::Full, call_limit: Duration::from_secs(30) }
    }
}

/// The SQLite backend. Dropping the last handle ends its threads, after the calls that wait.
#[derive(Debug)]
pub struct SqliteStorage {
    // In the order in which they end: whoever writes first, whoever cleans up last.
    writer: Writer,
    readers: Option<ReaderPools>,
    _checkpointer: Option<Checkpointer>,
    name: DatabaseName,
    work_arrived: watch::Sender<u64>,
}

/// Pages that people look at never delay what a worker has to know.
#[derive(Debug)]
struct ReaderPools {
    worker: Readers,
    people: Readers,
}

/// Who waits for a read.
#[derive(Debug, Clone, Copy)]
enum Audience {
    Worker,
    People,
}

impl SqliteStorage {
    /// Opens the database, makes the file where it is missing, and migrates it.
    ///
    /// # Errors
    /// The file cannot be opened or written, or its schema is too new for this binary.
    pub fn open(location: Location, options: SqliteOptions) -> Result<Arc<Self>> {
        let opener = Opener::new(location, options);
        let connection = opener.open_writer()?;
        let work_arrived = watch::Sender::new(0);
        let mut setup = Setup {
            connection,
            reopen: None,
            name: opener.name.clone(),
            call_limit: options.call_limit,
            work_arrived: work_arrived.clone(),
            checkpoints: None,
            place: None,
        };
        let (mut readers, mut checkpointer) = (None, None);
        if let Location::File(path) = &opener.location {
            let signal = Signal::default();
            let place = Place::of(path);
            checkpointer = Some(Checkpointer::start(&opener, place.clone(), signal.clone())?);
            setup.checkpoints = Some(signal);
            readers = Some(ReaderPools {
                worker: Readers::start(&opener, &place, 1)?,
                people: Readers::start(&opener, &place, 2)?,
            });
            setup.place = Some(place);
            let opener = opener.clone();
            setup.reopen = Some(Box::new(move || opener.open_writer()));
        }
        Ok(Arc::new(Self {
            writer: Writer::start(setup)?,
            readers,
            _checkpointer: checkpointer,
            name: opener.name,
            work_arrived,
        }))
    }

    /// For tests of lost replies: the next `calls` write calls commit and then answer with a transient error.
    #[doc(hidden)]
    pub fn lose_replies(&self, calls: u32) {
        self.writer.lose_replies(calls);
    }

    async fn write<T, F>(&self, class: Class, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Tx<'_>) -> Outcome<T> + Send + 'static,
    {
        self.writer.submit(class, Effect::Writes, work).await
    }

    /// Reads beside the writer; an in-memory database has one connection, and its reads stand in line with the writes.
    async fn read<T, F>(&self, audience: Audience, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Tx<'_>) -> Outcome<T> + Send + 'static,
    {
        match (&self.readers, audience) {
            (Some(readers), Audience::Worker) => readers.worker.read(work).await,
            (Some(readers), Audience::People) => readers.people.read(work).await,
            (None, Audience::Worker) => self.writer.submit(Class::Claim, Effect::Reads, work).await,
            (None, Audience::People) => {
                self.writer.submit(Class::Operator, Effect::Reads, work).await
            }
        }
    }
}
