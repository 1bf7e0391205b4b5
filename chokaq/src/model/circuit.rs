//! Circuit breakers, as a worker tells of them and as operators see them.

use std::time::Duration;

use crate::model::Timestamp;

/// What a circuit that is not closed does. The numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum CircuitState {
    /// Nothing of the type is started.
    Open = 1,
    /// One job of the type is tried; its end decides.
    HalfOpen = 2,
}

impl CircuitState {
    /// The state behind a stored number; one of a later release counts as open.
    pub const fn from_number(number: i64) -> Self {
        if number == 2 { Self::HalfOpen } else { Self::Open }
    }
}

/// One circuit of a worker, as the worker tells of it. Durations, as no other clock than the database's is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CircuitReport {
    /// The type's key.
    pub job_type: String,
    /// Open or half-open.
    pub state: CircuitState,
    /// Failures since the last success.
    pub failures: u32,
    /// The last error, at most [`CircuitReport::MAX_TEXT`] characters of it.
    pub error: String,
    /// For how long it has not been closed.
    pub open_for: Duration,
    /// When a job of the type may be tried; zero: now.
    pub retry_in: Duration,
}

impl CircuitReport {
    /// The longest text kept of the last error, in characters.
    pub const MAX_TEXT: usize = 400;
    /// How old the last word of a worker may be before its circuits count as gone with it.
    pub const FRESH: Duration = Duration::from_mins(2);
}

/// One circuit of one worker, from [`Operator::circuits`](crate::Operator::circuits).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Circuit {
    /// The type's key.
    pub job_type: String,
    /// The worker that leaves the type alone; others have circuits of their own.
    pub worker: String,
    /// Open or half-open; closed ones are not told of.
    pub state: CircuitState,
    /// Failures since the last success.
    pub failures: u32,
    /// The last error's text, at most 400 characters of it.
    pub error: String,
    /// Since when it has not been closed.
    pub opened_at: Timestamp,
    /// When a job of the type is tried next.
    pub retry_at: Timestamp,
    /// When the worker last told of it.
    pub seen_at: Timestamp,
}
