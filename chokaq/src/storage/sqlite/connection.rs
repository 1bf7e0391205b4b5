//! How a connection is opened and tuned.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags, vtab::array};

use crate::{
    Error, Result,
    storage::sqlite::{
        Location, SqliteOptions, Synchronous,
        failure::{DatabaseName, Outcome, is_busy},
        migrate,
    },
};

/// More than there are statements.
const STATEMENT_CACHE: usize = 128;
/// In KiB: what the writer keeps of the file.
const WRITER_CACHE_KIB: i64 = 16 * 1024;
/// In KiB, for each reader.
const READER_CACHE_KIB: i64 = 8 * 1024;
/// The WAL file is cut back to this size when it is begun anew.
pub(super) const WAL_LIMIT_BYTES: i64 = 16 * 1024 * 1024;

/// Where and how every connection of one storage opens.
#[derive(Debug, Clone)]
pub(super) struct Opener {
    pub(super) location: Location,
    pub(super) options: SqliteOptions,
    pub(super) name: DatabaseName,
}

impl Opener {
    pub(super) fn new(location: Location, options: SqliteOptions) -> Self {
        let name = match &location {
            Location::Memory => DatabaseName::new("the in-memory database"),
            Location::File(path) => {
                DatabaseName::new(format!("the database file {}", path.display()))
            }
        };
        Self { location, options, name }
    }

    /// The writer's connection: the file is made where it is missing, and its schema is brought up to date.
    pub(super) fn open_writer(&self) -> Result<Connection> {
        let connection = match &self.location {
            Location::Memory => Connection::open_in_memory()
                .and_then(|connection| prepare(connection, WRITER_CACHE_KIB)),
            Location::File(path) => {
                check_directory(&self.name, path)?;
                open_file(path, OpenFlags::SQLITE_OPEN_CREATE)
                    .and_then(|connection| prepare(connection, WRITER_CACHE_KIB))
            }
        };
        let connection = connection.map_err(|error| self.name.explain_sqlite(&error))?;
        self.set_up_writer(&connection).map_err(|fault| self.name.explain(fault))?;
        migrate::apply(&connection, &self.name, self.options.call_limit)?;
        // From here on the writer thread waits in its own way: short, jittered, and answering calls that are too late.
        if self.location != Location::Memory {
            let no_wait = connection.busy_timeout(Duration::ZERO);
            no_wait.map_err(|error| self.name.explain_sqlite(&error))?;
        }
        Ok(connection)
    }

    /// A connection that only reads.
    pub(super) fn open_reader(&self, path: &Path) -> Outcome<Connection> {
        let connection = prepare(open_file(path, OpenFlags::empty())?, READER_CACHE_KIB)?;
        connection.busy_timeout(self.options.call_limit)?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    }

    /// The checkpointer's connection: it waits for others only for a moment, because the writer would wait with it.
    pub(super) fn open_checkpointer(&self, path: &Path) -> Outcome<Connection> {
        let connection = open_file(path, OpenFlags::empty())?;
        connection.busy_timeout(Duration::from_millis(100))?;
        self.set_synchronous(&connection)?;
        connection.pragma_update(None, "journal_size_limit", WAL_LIMIT_BYTES)?;
        Ok(connection)
    }

    fn set_up_writer(&self, connection: &Connection) -> Outcome<()> {
        if self.location != Location::Memory {
            connection.busy_timeout(self.options.call_limit)?;
            switch_to_wal(connection, &self.name, Instant::now() + self.options.call_limit)?;
            connection.pragma_update(None, "wal_autocheckpoint", 0)?;
            connection.pragma_update(None, "journal_size_limit", WAL_LIMIT_BYTES)?;
        }
        self.set_synchronous(connection)
    }

    fn set_synchronous(&self, connection: &Connection) -> Outcome<()> {
        let level = match self.options.synchronous {
            Synchronous::Full => "FULL",
            Synchronous::Normal => "NORMAL",
        };
        Ok(connection.pragma_update(None, "synchronous", level)?)
    }
}

fn open_file(path: &Path, extra: OpenFlags) -> rusqlite::Result<Connection> {
    // SQLite would read a name that starts with `file:` as a URI.
    let path = if path.is_relative() { PathBuf::from(".").join(path) } else { path.to_owned() };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | extra;
    Connection::open_with_flags(path, flags)
}

fn prepare(connection: Connection, cache_kib: i64) -> rusqlite::Result<Connection> {
    array::load_module(&connection)?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// Two processes that open a new file at once may both switch it: the busy handler does not cover that.
fn switch_to_wal(connection: &Connection, name: &DatabaseName, until: Instant) -> Outcome<()> {
    loop {
        let switched = connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match switched {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(Error::config(format!(
                    "{name} stays in journal mode {mode:?} where WAL is needed: keep it on a local disk that \
                     supports shared memory"
                ))
                .into());
            }
            Err(error) if is_busy(&error) && Instant::now() < until => short_wait(),
            Err(error) => return Err(error.into()),
        }
    }
}

/// A jittered wait for another process's short transaction.
pub(super) fn short_wait() {
    std::thread::sleep(Duration::from_micros(fastrand::u64(300..2_000)));
}

fn check_directory(name: &DatabaseName, path: &Path) -> Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match parent {
        Some(parent) if !parent.is_dir() => Err(Error::config(format!(
            "{name} cannot be made: its directory {} does not exist: make it first",
            parent.display()
        ))),
        _ if path.is_dir() => {
            Err(Error::config(format!("{name} is a directory: name a file in it")))
        }
        _ => Ok(()),
    }
}
