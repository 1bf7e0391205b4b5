//! What went wrong, in words that a person can act on: the server, the database, what was tried, and the remedy.

use std::{fmt, io, time::Duration};

use tiberius::error::{Error as DriverError, TokenError};

use crate::{
    error::{BoxError, with_causes},
    storage::mssql::{
        failure::{Connection, Failure, Outcome},
        numbers::{History, class_of, ends_the_session, leaves_the_outcome_open, remedy},
        options::Place,
    },
};

/// The step of opening a connection that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Resolving,
    Reaching,
    LoggingIn,
    AskingForToken,
    PreparingSession,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resolving => "resolving its name",
            Self::Reaching => "opening a TCP connection",
            Self::LoggingIn => "logging in",
            Self::AskingForToken => "asking the program for an access token",
            Self::PreparingSession => "preparing the session",
        })
    }
}

/// Failures of opening a connection: nothing was sent that could be done.
impl Place {
    pub(super) fn not_resolved(&self, error: &io::Error) -> Failure {
        Failure::transient(
            Outcome::NothingDone,
            format!(
                "{self}: the host's name is not known here: check it in the URL, and the name service ({error})"
            ),
        )
    }

    pub(super) fn not_reached(&self, error: &io::Error) -> Failure {
        Failure::transient(
            Outcome::NothingDone,
            format!(
                "{self} cannot be reached: check that it runs, that TCP is enabled on this port, and the firewall ({error})"
            ),
        )
    }

    pub(super) fn connect_timed_out(&self, step: Step, limit: Duration) -> Failure {
        Failure::transient(
            Outcome::NothingDone,
            format!(
                "{self} was not connected within {limit:?}: {step} took too long (connect_timeout in the URL)"
            ),
        )
    }

    pub(super) fn no_token(&self, error: &BoxError) -> Failure {
        Failure::transient(
            Outcome::NothingDone,
            format!(
                "{self}: the program's source of access tokens failed: {}",
                with_causes(&**error)
            ),
        )
    }

    pub(super) fn not_logged_in(&self, error: &DriverError, history: History) -> Failure {
        match error {
            DriverError::Server(error) => self.refused("the login", error, history),
            DriverError::Tls(text) => Failure::permanent(format!(
                "{self}: no encrypted connection: name the authority of its certificate with `ca=` in the URL, the name in \
                 it with `host_name_in_certificate=`, or trust any with `trust_server_certificate=true` ({text})"
            )),
            DriverError::Protocol(text) if text.contains("encryption level") => {
                Failure::permanent(format!(
                    "{self} does not encrypt: set a certificate up there, or write `encrypt=plaintext` in the URL, which also \
                 sends the password readable"
                ))
            }
            DriverError::Routing { host, port } => Failure::transient(
                Outcome::NothingDone,
                format!("{self} sends the connection on again and again, last to {host}:{port}"),
            ),
            error => Failure::transient(
                Outcome::NothingDone,
                format!("{self} broke the connection off during the login: {error}"),
            ),
        }
    }

    pub(super) fn exhausted(&self, size: usize, waited: Duration) -> Failure {
        Failure::transient(
            Outcome::NothingDone,
            format!(
                "{self}: all {size} connections of this kind were in use for {waited:?}: raise pool_size in the URL, or look \
                 for statements that wait for locks"
            ),
        )
    }
}

/// Failures of a call on an open connection.
impl Place {
    pub(super) fn timed_out(&self, what: &str, limit: Duration) -> Failure {
        Failure::transient(
            Outcome::Unknown,
            format!(
                "{self} did not answer {what} within {limit:?} (command_timeout in the URL); the connection was closed"
            ),
        )
    }

    pub(super) fn explain(&self, what: &str, error: &DriverError) -> Failure {
        match error {
            DriverError::Server(error) => self.refused(what, error, History::ConnectedBefore),
            DriverError::Io { .. } | DriverError::Protocol(_) | DriverError::Tls(_) => Failure {
                connection: Connection::Lost,
                ..Failure::transient(
                    Outcome::Unknown,
                    format!("the connection to {self} was lost during {what}: {error}"),
                )
            },
            error => {
                Failure::unreadable(format!("{self}: the answer to {what} cannot be read: {error}"))
            }
        }
    }

    fn refused(&self, what: &str, error: &TokenError, history: History) -> Failure {
        let number = error.code();
        let remedy = remedy(number).map(|remedy| format!("{remedy}: ")).unwrap_or_default();
        let outcome =
            if leaves_the_outcome_open(number) { Outcome::Unknown } else { Outcome::NothingDone };
        let lost = ends_the_session(number, error.class());
        Failure {
            class: class_of(number, history),
            outcome,
            number: Some(number),
            connection: if lost { Connection::Lost } else { Connection::Fine },
            message: format!(
                "{self} refused {what}: {remedy}{} (error {number}, severity {}, state {}, line {})",
                error.message().trim_end(),
                error.class(),
                error.state(),
                error.line(),
            ),
        }
    }
}
