//! How a handler says what went wrong.

use std::{error::Error as StdError, fmt, time::Duration};

use crate::error::{BoxError, with_causes};

/// Why a run did not succeed, and what should happen next.
///
/// `?` turns any error into a `JobError` that is retried with backoff. The constructors say something else:
///
/// ```
/// use std::time::Duration;
/// use chokaq::JobError;
///
/// let _ = JobError::from("the server said 503");                                     // retried with backoff
/// let _ = JobError::fatal("no such customer");                                       // to the DLQ at once
/// let _ = JobError::retry_after(Duration::from_secs(60), "429 Too Many Requests");   // retried after a minute
/// let _ = JobError::snooze(Duration::from_secs(300));                                // again later, no attempt used
/// let _ = JobError::cancel("the order was withdrawn");                               // to the DLQ as Cancelled
/// ```
pub struct JobError {
    class: ErrorClass,
    source: BoxError,
}

/// What a [`JobError`] asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    Transient,
    Fatal,
    RetryAfter(Duration),
    Snooze(Duration),
    Cancel,
    Rejected,
    CircuitOpen,
    Panic,
}

impl JobError {
    /// No retry can help: the job goes to the dead-letter queue at once, as `FatalError`.
    pub fn fatal(error: impl Into<BoxError>) -> Self {
        Self { class: ErrorClass::Fatal, source: error.into() }
    }

    /// The other side asks to wait: retried after exactly `delay`, the attempt counted. When no attempt is left the
    /// job goes to the dead-letter queue as `Throttled`.
    pub fn retry_after(delay: Duration, error: impl Into<BoxError>) -> Self {
        Self { class: ErrorClass::RetryAfter(delay), source: error.into() }
    }

    /// Not now: run again after `delay`; no attempt is used, and nothing is recorded as an error.
    pub fn snooze(delay: Duration) -> Self {
        let text = format!("snoozed for {}", humantime::format_duration(delay));
        Self { class: ErrorClass::Snooze(delay), source: text.into() }
    }

    /// The work is not wanted any more: the job goes to the dead-letter queue as `Cancelled`.
    pub fn cancel(why: impl Into<BoxError>) -> Self {
        Self { class: ErrorClass::Cancel, source: why.into() }
    }

    pub(crate) fn rejected(error: impl Into<BoxError>) -> Self {
        Self { class: ErrorClass::Rejected, source: error.into() }
    }

    pub(crate) fn circuit_open(error: impl Into<BoxError>) -> Self {
        Self { class: ErrorClass::CircuitOpen, source: error.into() }
    }

    pub(crate) fn panic(message: String) -> Self {
        Self { class: ErrorClass::Panic, source: message.into() }
    }

    pub(crate) fn class(&self) -> ErrorClass {
        self.class
    }

    /// The class of an error that came out of the layers: that of the `JobError` at its root, or transient.
    pub(crate) fn from_layers(error: BoxError) -> Self {
        match error.downcast::<JobFailure>() {
            Ok(failure) => failure.0,
            Err(error) => {
                let mut cause: Option<&(dyn StdError + 'static)> = error.source();
                let mut class = ErrorClass::Transient;
                while let Some(inner) = cause {
                    if let Some(failure) = inner.downcast_ref::<JobFailure>() {
                        class = failure.0.class;
                        break;
                    }
                    cause = inner.source();
                }
                Self { class, source: error }
            }
        }
    }

    /// The message with its causes.
    pub(crate) fn text(&self) -> String {
        with_causes(&*self.source)
    }
}

impl<E: Into<BoxError>> From<E> for JobError {
    fn from(error: E) -> Self {
        Self { class: ErrorClass::Transient, source: error.into() }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl fmt::Debug for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobError({:?}: {})", self.class, self.text())
    }
}

/// A [`JobError`] as a `std::error::Error`, to travel through tower layers. (`JobError` itself is none, so that `?`
/// can turn every error into it.)
pub(crate) struct JobFailure(pub(crate) JobError);

impl fmt::Display for JobFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.source, f)
    }
}

impl fmt::Debug for JobFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl StdError for JobFailure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.source()
    }
}
