//! From how user code ended to what becomes of the job: a pure function.

use std::time::Duration;

use crate::{
    job::{CancelCause, ErrorClass, JobError, JobOutput},
    model::{AttemptError, Backoff, FailureReason, Outcome},
};

/// How user code ended.
#[derive(Debug)]
pub(crate) enum End {
    /// It returned.
    Returned(Result<JobOutput, JobError>),
    /// It did not stop within the grace after its context was cancelled, and was dropped.
    Dropped,
}

/// What the verdict needs to know of the attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) number: u32,
    pub(crate) retries: u32,
    pub(crate) timeout: Duration,
    pub(crate) backoff: Backoff,
    pub(crate) jitter: f64,
    /// Uniform in 0.0..1.0.
    pub(crate) random: f64,
    pub(crate) output_limit: usize,
}

impl Attempt {
    /// What becomes of a job whose code ended like this, its context cancelled for `cause` or not at all.
    ///
    /// A success stands whatever else happened: the work is done. What the handler says explicitly (fatal, cancel,
    /// snooze, retry after, rejected) stands too; anything else after a cancellation is that cancellation's doing.
    pub(crate) fn verdict(&self, end: End, cause: Option<CancelCause>) -> Outcome {
        let error = match end {
            End::Returned(Ok(output)) => return self.success(output),
            End::Returned(Err(error)) => Some(error),
            End::Dropped => None,
        };
        let class = error.as_ref().map_or(ErrorClass::Transient, JobError::class);
        let text = error.as_ref().map(JobError::text);
        match (class, cause) {
            (ErrorClass::Fatal, _) => self.dead(FailureReason::FatalError, "fatal", text),
            (ErrorClass::Rejected, _) => self.dead(FailureReason::Rejected, "rejected", text),
            (ErrorClass::CircuitOpen, _) => {
                self.dead(FailureReason::CircuitBreakerOpen, "circuit", text)
            }
            (ErrorClass::Cancel, _) => self.dead(FailureReason::Cancelled, "cancelled", text),
            (_, Some(CancelCause::Requested)) => {
                self.dead(FailureReason::Cancelled, "cancelled", text)
            }
            (ErrorClass::Snooze(delay), _) => Outcome::Snooze { delay },
            (ErrorClass::RetryAfter(delay), _) => {
                self.retry(FailureReason::Throttled, "throttled", text, Some(delay))
            }
            (_, Some(CancelCause::Shutdown)) => Outcome::Snooze { delay: Duration::ZERO },
            (_, Some(CancelCause::Timeout)) => {
                self.retry(FailureReason::Timeout, "timeout", Some(self.timeout_text(text)), None)
            }
            (_, Some(CancelCause::LeaseLost)) => {
                let text = Some("the worker could not renew the job's lease".to_owned());
                self.retry(FailureReason::HeartbeatFailure, "heartbeat", text, None)
            }
            (ErrorClass::Panic, None) => {
                self.retry(FailureReason::MaxRetriesExceeded, "panic", text, None)
            }
            (ErrorClass::Transient, None) => {
                self.retry(FailureReason::MaxRetriesExceeded, "error", text, None)
            }
        }
    }

    fn success(&self, output: JobOutput) -> Outcome {
        match output.json {
            Some(json) if json.len() > self.output_limit => Outcome::Succeeded {
                output: None,
                note: Some(format!(
                    "the output of {} bytes was not kept: the limit is {}",
                    json.len(),
                    self.output_limit
                )),
            },
            json => Outcome::Succeeded { output: json, note: output.note },
        }
    }

    /// Tried again while attempts are left, dead for `reason` when none is.
    fn retry(
        &self,
        reason: FailureReason,
        kind: &'static str,
        text: Option<String>,
        delay: Option<Duration>,
    ) -> Outcome {
        if self.number > self.retries {
            return self.dead(reason, kind, text);
        }
        let delay = delay.unwrap_or_else(|| {
            self.backoff.delay_with_jitter(self.number, self.jitter, self.random)
        });
        Outcome::Retry { delay, error: self.error(kind, text) }
    }

    fn dead(&self, reason: FailureReason, kind: &'static str, text: Option<String>) -> Outcome {
        Outcome::Dead { reason, error: self.error(kind, text) }
    }

    fn error(&self, kind: &'static str, text: Option<String>) -> AttemptError {
        let text = text.unwrap_or_else(|| {
            "the handler did not stop after its context was cancelled, and was dropped".to_owned()
        });
        AttemptError::new(self.number, kind, text)
    }

    fn timeout_text(&self, text: Option<String>) -> String {
        let limit = humantime::format_duration(self.timeout);
        match text {
            Some(text) => {
                format!("ran longer than its time limit of {limit}; it then said: {text}")
            }
            None => format!("ran longer than its time limit of {limit}, and was dropped"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(number: u32) -> Attempt {
        Attempt {
            number,
            retries: 3,
            timeout: Duration::from_secs(30),
            backoff: Backoff::Fixed(Duration::from_secs(10)),
            jitter: 0.2,
            random: 0.5,
            output_limit: 100,
        }
    }

    fn failed(error: JobError) -> End {
        End::Returned(Err(error))
    }

    fn reason(outcome: &Outcome) -> Option<FailureReason> {
        match outcome {
            Outcome::Dead { reason, .. } => Some(*reason),
            _ => None,
        }
    }

    #[test]
    fn an_error_is_retried_with_jitter_until_no_attempt_is_left() {
        let outcome = attempt(3).verdict(failed("no".into()), None);
        let Outcome::Retry { delay, error } = outcome else { panic!("{outcome:?}") };
        assert_eq!(delay, Duration::from_secs(11));
        assert_eq!((error.attempt, error.kind, error.text.as_str()), (3, "error", "no"));
        let last = attempt(4).verdict(failed("no".into()), None);
        assert_eq!(reason(&last), Some(FailureReason::MaxRetriesExceeded));
    }

    #[test]
    fn what_the_handler_says_decides() {
        let fatal = attempt(1).verdict(failed(JobError::fatal("x")), None);
        assert_eq!(reason(&fatal), Some(FailureReason::FatalError));
        let cancelled = attempt(1).verdict(failed(JobError::cancel("x")), None);
        assert_eq!(reason(&cancelled), Some(FailureReason::Cancelled));
        let rejected = attempt(1).verdict(failed(JobError::rejected("x")), None);
        assert_eq!(reason(&rejected), Some(FailureReason::Rejected));
        let day = Duration::from_hours(24);
        let snoozed = attempt(4).verdict(failed(JobError::snooze(day)), None);
        assert_eq!(snoozed, Outcome::Snooze { delay: day });
        let later = attempt(1).verdict(failed(JobError::retry_after(day, "429")), None);
        assert!(matches!(later, Outcome::Retry { delay, .. } if delay == day));
        let throttled = attempt(4).verdict(failed(JobError::retry_after(day, "429")), None);
        assert_eq!(reason(&throttled), Some(FailureReason::Throttled));
    }

    #[test]
    fn each_cause_of_cancellation_has_its_own_outcome() {
        let of = |number, cause| attempt(number).verdict(End::Dropped, Some(cause));
        assert_eq!(reason(&of(1, CancelCause::Requested)), Some(FailureReason::Cancelled));
        assert_eq!(of(4, CancelCause::Shutdown), Outcome::Snooze { delay: Duration::ZERO });
        assert!(matches!(of(1, CancelCause::Timeout), Outcome::Retry { .. }));
        assert_eq!(reason(&of(4, CancelCause::Timeout)), Some(FailureReason::Timeout));
        assert!(matches!(of(1, CancelCause::LeaseLost), Outcome::Retry { .. }));
        assert_eq!(reason(&of(4, CancelCause::LeaseLost)), Some(FailureReason::HeartbeatFailure));
    }

    #[test]
    fn a_handlers_own_error_after_a_timeout_is_kept_in_the_text() {
        let outcome = attempt(1).verdict(failed("half done".into()), Some(CancelCause::Timeout));
        let Outcome::Retry { error, .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(error.kind, "timeout");
        assert!(error.text.contains("30s") && error.text.contains("half done"), "{}", error.text);
    }

    #[test]
    fn a_success_stands_even_after_a_cancellation() {
        let end = End::Returned(Ok(JobOutput::default()));
        let outcome = attempt(1).verdict(end, Some(CancelCause::Shutdown));
        assert_eq!(outcome, Outcome::Succeeded { output: None, note: None });
    }

    #[test]
    fn an_output_over_the_limit_is_dropped_with_a_note_and_the_job_succeeds() {
        let end = End::Returned(Ok(JobOutput { json: Some("x".repeat(101)), note: None }));
        let Outcome::Succeeded { output: None, note: Some(note) } = attempt(1).verdict(end, None)
        else {
            panic!("not a success without output")
        };
        assert!(note.contains("101") && note.contains("100"), "{note}");
    }
}
