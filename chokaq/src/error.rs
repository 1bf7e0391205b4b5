//! The one public error of the crate.

use std::{error::Error as StdError, fmt};

/// What most functions of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

/// Anything that went wrong, as a message that names the thing, the limit and the remedy.
///
/// Callers act on the predicates ([`is_transient`](Self::is_transient), ...), people on the text. `Debug` prints the
/// message and its causes, so that an error returned from `main` can be read.
pub struct Error(Box<Kind>);

#[derive(Debug, thiserror::Error)]
enum Kind {
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Config(String),
    #[error("{0}")]
    Schema(String),
    #[error("{message}")]
    Storage { message: String, transient: Transience, source: Option<BoxError> },
    #[error(
        "{committed} jobs were committed before this failed, the rest were not (to go on, skip the first {committed})"
    )]
    PartlyEnqueued { committed: u64, source: Error },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transience {
    Transient,
    Permanent,
}

impl Error {
    /// Input that is refused: it would be refused again.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self(Box::new(Kind::Invalid(message.into())))
    }

    /// A setting, a URL or a set of job types that cannot be used.
    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self(Box::new(Kind::Config(message.into())))
    }

    /// A schema that is missing, older, or too new for this binary.
    pub(crate) fn schema(message: impl Into<String>) -> Self {
        Self(Box::new(Kind::Schema(message.into())))
    }

    /// A failure of the database that may pass: the same call may succeed later.
    pub(crate) fn transient(message: impl Into<String>, source: Option<BoxError>) -> Self {
        Self(Box::new(Kind::Storage {
            message: message.into(),
            transient: Transience::Transient,
            source,
        }))
    }

    /// A failure of the database that will not pass by itself.
    pub(crate) fn permanent(message: impl Into<String>, source: Option<BoxError>) -> Self {
        Self(Box::new(Kind::Storage {
            message: message.into(),
            transient: Transience::Permanent,
            source,
        }))
    }

    pub(crate) fn partly_enqueued(committed: u64, source: Self) -> Self {
        Self(Box::new(Kind::PartlyEnqueued { committed, source }))
    }

    /// Whether the same call may succeed later: the database was locked, unreachable or overloaded.
    pub fn is_transient(&self) -> bool {
        match &*self.0 {
            Kind::Storage { transient, .. } => *transient == Transience::Transient,
            Kind::PartlyEnqueued { source, .. } => source.is_transient(),
            _ => false,
        }
    }

    /// Whether the input was refused: too long, malformed, or not to be serialised.
    pub fn is_invalid_input(&self) -> bool {
        match &*self.0 {
            Kind::Invalid(_) => true,
            Kind::PartlyEnqueued { source, .. } => source.is_invalid_input(),
            _ => false,
        }
    }

    /// Whether a setting, a URL or the set of registered job types is at fault.
    pub fn is_config(&self) -> bool {
        matches!(&*self.0, Kind::Config(_))
    }

    /// Whether the database's schema does not fit this binary.
    pub fn is_schema(&self) -> bool {
        matches!(&*self.0, Kind::Schema(_))
    }

    /// How many jobs `enqueue_all` had committed when it failed.
    pub fn committed(&self) -> Option<u64> {
        match &*self.0 {
            Kind::PartlyEnqueued { committed, .. } => Some(*committed),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&with_causes(self))
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &*self.0 {
            Kind::Storage { source, .. } => source.as_deref().map(|e| e as _),
            Kind::PartlyEnqueued { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// An error's message and those of its causes, joined by `: `, each said once.
pub(crate) fn with_causes(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}
