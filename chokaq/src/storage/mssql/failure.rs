//! Why a call failed, and what its caller may conclude.

use std::fmt;

use crate::{Error, storage::mssql::numbers::Class};

/// What became of a call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing of it stands: it was not sent, or the server refused it and rolled its transaction back.
    NothingDone,
    /// Nobody knows: the connection was lost, or the answer did not come in time. The same call, repeated, recognises
    /// what it did.
    Unknown,
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub(super) class: Class,
    pub(super) outcome: Outcome,
    pub(super) number: Option<u32>,
    pub(super) connection: Connection,
    pub(super) message: String,
}

/// What became of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connection {
    /// It serves the next call, or this program closed it, or there was none.
    Fine,
    /// The server or the network ended it.
    Lost,
}

impl Failure {
    /// What the caller does next.
    pub fn class(&self) -> Class {
        self.class
    }

    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        self.class == Class::Transient
    }

    /// Whether anything of the call may stand.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// The server's error number, where the server answered.
    pub fn number(&self) -> Option<u32> {
        self.number
    }

    /// Whether the server or the network ended the connection, and others with it maybe.
    pub(super) fn lost_the_connection(&self) -> bool {
        self.connection == Connection::Lost
    }

    /// The same, after an earlier try of the call whose outcome is unknown.
    pub(super) fn after_unknown(mut self) -> Self {
        self.outcome = Outcome::Unknown;
        self
    }

    pub(super) fn permanent(message: impl Into<String>) -> Self {
        Self {
            class: Class::Permanent,
            outcome: Outcome::NothingDone,
            number: None,
            connection: Connection::Fine,
            message: message.into(),
        }
    }

    /// The schema cannot be used.
    pub(super) fn schema(message: String) -> Self {
        Self { class: Class::Schema, ..Self::permanent(message) }
    }

    /// The call did its work; what it answered has another form than the program expects.
    pub(super) fn unreadable(message: String) -> Self {
        Self { outcome: Outcome::Unknown, ..Self::permanent(message) }
    }

    /// It may succeed later, and part of it may stand.
    pub(super) fn transient_unknown(message: String) -> Self {
        Self::transient(Outcome::Unknown, message)
    }

    pub(super) fn transient(outcome: Outcome, message: String) -> Self {
        Self {
            class: Class::Transient,
            outcome,
            number: None,
            connection: Connection::Fine,
            message,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure.class {
            Class::Transient => Self::transient(failure.message, None),
            Class::Schema => Self::schema(failure.message),
            Class::Permanent | Class::Conflict => Self::permanent(failure.message, None),
        }
    }
}
