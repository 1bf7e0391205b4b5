//! How an attempt ended, and what becomes of the job.

use std::{fmt, time::Duration};

use crate::model::Lease;

/// Why a job stands in the dead-letter queue. The names are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureReason {
    /// Every attempt failed.
    MaxRetriesExceeded,
    /// An operator, a caller or the handler itself cancelled it.
    Cancelled,
    /// Its worker died or lost the database while it ran.
    Zombie,
    /// Its type's circuit stayed open past its lifetime.
    CircuitBreakerOpen,
    /// It cannot be run: its payload cannot be decoded, or no worker knows its type.
    Rejected,
    /// Its last attempt was throttled, and no attempt is left.
    Throttled,
    /// The handler said that no retry can help.
    FatalError,
    /// Its last attempt ran longer than its time limit, and no attempt is left.
    Timeout,
    /// The next retry would come after the job's maximum age.
    RetryLifetimeExpired,
    /// Its worker could not renew the lease and gave the job up.
    HeartbeatFailure,
}

impl FailureReason {
    /// Every reason, in the order of the documentation.
    pub const ALL: [Self; 10] = [
        Self::MaxRetriesExceeded,
        Self::Cancelled,
        Self::Zombie,
        Self::CircuitBreakerOpen,
        Self::Rejected,
        Self::Throttled,
        Self::FatalError,
        Self::Timeout,
        Self::RetryLifetimeExpired,
        Self::HeartbeatFailure,
    ];

    /// The stored name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MaxRetriesExceeded => "MaxRetriesExceeded",
            Self::Cancelled => "Cancelled",
            Self::Zombie => "Zombie",
            Self::CircuitBreakerOpen => "CircuitBreakerOpen",
            Self::Rejected => "Rejected",
            Self::Throttled => "Throttled",
            Self::FatalError => "FatalError",
            Self::Timeout => "Timeout",
            Self::RetryLifetimeExpired => "RetryLifetimeExpired",
            Self::HeartbeatFailure => "HeartbeatFailure",
        }
    }

    /// The reason behind a stored name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One attempt's error, as it is kept with the job: `kind` is a stable word (`error`, `panic`, `timeout`, `fatal`,
/// `throttled`, `cancelled`, `rejected`, `circuit`, `zombie`), `text` is cut at [`AttemptError::MAX_TEXT_BYTES`] and marked.
/// The storage adds the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptError {
    /// The attempt that failed; the first is 1.
    pub attempt: u32,
    /// A stable word for the kind of failure.
    pub kind: &'static str,
    /// The error and its causes.
    pub text: String,
}

impl AttemptError {
    /// The longest text kept of one error, in bytes.
    pub const MAX_TEXT_BYTES: usize = 8 * 1024;
    /// The number of attempts whose errors are kept: the newest.
    pub const MAX_KEPT: usize = 25;

    /// An attempt's error; a longer text is cut at a character's boundary and says so.
    pub fn new(attempt: u32, kind: &'static str, text: impl Into<String>) -> Self {
        let mut text = text.into();
        if text.len() > Self::MAX_TEXT_BYTES {
            let whole = text.len();
            text.truncate(text.floor_char_boundary(Self::MAX_TEXT_BYTES));
            text += " [cut: ";
            text += &whole.to_string();
            text += " bytes in all]";
        }
        Self { attempt, kind, text }
    }
}

/// What becomes of a job whose attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// To JobsArchive, with the serialised output (`None` for `()`).
    Succeeded {
        /// The output as JSON text.
        output: Option<String>,
        /// Why no output is kept, where it could not be.
        note: Option<String>,
    },
    /// To JobsDLQ.
    Dead {
        /// Why.
        reason: FailureReason,
        /// The attempt's error.
        error: AttemptError,
    },
    /// Back to Pending, the attempt counted; to JobsDLQ as RetryLifetimeExpired when it would be due after the deadline.
    Retry {
        /// From now, by the database's clock.
        delay: Duration,
        /// The attempt's error.
        error: AttemptError,
    },
    /// Back to Pending, the attempt given back.
    Snooze {
        /// From now, by the database's clock.
        delay: Duration,
    },
}

/// A finished attempt on its way to the storage: only the holder of a [`Lease`] can make one.
#[derive(Debug, Clone)]
pub struct Finish {
    /// The proof of ownership.
    pub lease: Lease,
    /// What becomes of the job.
    pub outcome: Outcome,
}

/// What the storage did with a [`Finish`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishOutcome {
    /// Done now, or by an earlier call of this same finish whose reply was lost.
    Done,
    /// A retry that would have come after the job's deadline: it went to the dead-letter queue instead.
    LifetimeExpired,
    /// A retry or snooze of a job whose cancellation was asked while it ran: it went to the dead-letter queue instead.
    Cancelled,
    /// The lease is no longer this worker's: nothing was changed.
    LeaseLost,
}
