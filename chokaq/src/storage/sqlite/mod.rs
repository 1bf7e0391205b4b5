//! The embedded backend: one writer thread, readers beside it, one file that several processes may share.

use std::{path::PathBuf, sync::Arc, time::Duration};

use crate::Result;

/// Where the database lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In this process, private to one storage; gone with it.
    Memory,
    /// In a file, made when it is missing.
    File(PathBuf),
}

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// The disk: an acknowledged write survives a power cut.
    #[default]
    Full,
    /// The operating system: it survives a crash of the process, not of the machine.
    Normal,
}

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

/// The SQLite backend.
#[derive(Debug)]
pub struct SqliteStorage {}

impl SqliteStorage {
    /// Opens the database, makes the file where it is missing, and migrates it.
    ///
    /// # Errors
    /// The file cannot be opened or written, or its schema is too new for this binary.
    pub fn open(_location: Location, _options: SqliteOptions) -> Result<Arc<Self>> {
        Err(crate::Error::config("not built yet"))
    }

    /// For tests of lost replies: the next `calls` write calls commit and then answer with a transient error.
    #[doc(hidden)]
    pub fn lose_replies(&self, _calls: u32) {}
}
