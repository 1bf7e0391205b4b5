//! From SQLite's result codes to errors that say what to do.

use std::fmt;

use rusqlite::ErrorCode;

use crate::{Error, Result, error::with_causes};

/// What an operation inside the database fails with, before the file's name is known.
#[derive(Debug)]
pub(super) enum Fault {
    /// SQLite refused or failed.
    Sqlite(rusqlite::Error),
    /// A stored row does not have the form that this binary writes; the text names table, column and row.
    Malformed(String),
    /// An error that is ready for the caller.
    Ready(Error),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Ready(error)
    }
}

/// What operations inside the database return.
pub(super) type Outcome<T> = Result<T, Fault>;

/// The database's name, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DatabaseName(String);

impl DatabaseName {
    pub(super) fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The error for a caller: it names the database and the remedy.
    pub(super) fn explain(&self, fault: Fault) -> Error {
        match fault {
            Fault::Sqlite(error) => self.explain_sqlite(&error),
            Fault::Malformed(what) => {
                Error::permanent(format!("{self} holds a row that cannot be read: {what}"), None)
            }
            Fault::Ready(error) => error,
        }
    }

    /// As [`explain`](Self::explain), for an error that several callers share.
    pub(super) fn explain_sqlite(&self, error: &rusqlite::Error) -> Error {
        let cause = with_causes(error);
        match remedy(error) {
            Some(remedy) => Error::transient(format!("{self} {remedy} ({cause})"), None),
            None if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => Error::permanent(
                format!("{self} is not a SQLite database (or is encrypted): name another file"),
                None,
            ),
            None => Error::permanent(format!("a statement on {self} failed: {cause}"), None),
        }
    }

    /// The error of a call that waited too long for another process's lock.
    pub(super) fn locked_too_long(&self, limit: std::time::Duration) -> Error {
        Error::transient(
            format!(
                "{self} was locked by another process for the {limit:?} that a call may wait: look for a program that \
                 keeps a write transaction open"
            ),
            None,
        )
    }
}

impl fmt::Display for DatabaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether another connection holds the lock: waiting helps, reopening does not.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Whether the connection itself may be at fault, so that a fresh one is worth a try.
pub(super) fn wants_a_new_connection(error: &rusqlite::Error) -> bool {
    !is_busy(error)
        && matches!(
            error.sqlite_error_code(),
            Some(
                ErrorCode::SystemIoFailure
                    | ErrorCode::ReadOnly
                    | ErrorCode::CannotOpen
                    | ErrorCode::PermissionDenied
                    | ErrorCode::FileLockingProtocolFailed
                    | ErrorCode::NotADatabase
                    | ErrorCode::DatabaseCorrupt
            )
        )
}

/// What a person does about an error that may pass; `None` for one that will not.
fn remedy(error: &rusqlite::Error) -> Option<&'static str> {
    Some(match error.sqlite_error_code()? {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            "is locked by another process: the call can be repeated"
        }
        ErrorCode::DiskFull => "cannot grow, its disk is full: free some space",
        ErrorCode::SystemIoFailure => {
            "could not be read or written: check its disk, its mount and the free space"
        }
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
            "cannot be written: check the permissions of the file and of its directory, and that nobody moved it"
        }
        ErrorCode::CannotOpen => {
            "cannot be opened: check that its directory exists and may be written, and the limit of open files"
        }
        ErrorCode::OutOfMemory => "needs more memory than there is",
        ErrorCode::FileLockingProtocolFailed => {
            "cannot be locked: keep it on a local disk, not on a network share"
        }
        ErrorCode::SchemaChanged => "changed its schema during the call: the call can be repeated",
        ErrorCode::OperationInterrupted | ErrorCode::OperationAborted => "gave the call up",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    fn explained(code: i32) -> Error {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        DatabaseName::new("the database file /x/jobs.db").explain(error.into())
    }

    #[test]
    fn what_may_pass_is_transient_and_names_the_file() {
        for code in [
            ffi::SQLITE_BUSY,
            ffi::SQLITE_LOCKED,
            ffi::SQLITE_FULL,
            ffi::SQLITE_IOERR,
            ffi::SQLITE_READONLY,
            ffi::SQLITE_CANTOPEN,
        ] {
            let error = explained(code);
            assert!(error.is_transient(), "{error}");
            assert!(error.to_string().contains("/x/jobs.db"), "{error}");
        }
        assert!(explained(ffi::SQLITE_FULL).to_string().contains("free some space"));
    }

    #[test]
    fn what_will_not_pass_is_permanent() {
        for code in [ffi::SQLITE_CONSTRAINT, ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB] {
            assert!(!explained(code).is_transient());
        }
    }
}
