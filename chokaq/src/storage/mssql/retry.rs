//! Repeats a call while its failures may pass.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use crate::storage::mssql::failure::{Failure, Outcome};

/// How long to go on, and how fast.
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    /// No try begins later than this after the first.
    pub limit: Duration,
    /// The pause before the second try; each further one is twice as long.
    pub first_pause: Duration,
    /// The longest pause. A heartbeat's is 5 s at most.
    pub longest_pause: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            limit: Duration::from_secs(30),
            first_pause: Duration::from_millis(50),
            longest_pause: Duration::from_secs(2),
        }
    }
}

/// One try of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// 1 for the first.
    pub number: u32,
    /// Whether an earlier try may have done its work: this one must recognise that.
    pub earlier_is_unknown: bool,
}

impl Retry {
    /// Calls until it succeeds, fails for good, or the time is up. The failure's outcome is unknown when that of any try
    /// is.
    ///
    /// # Errors
    /// The last failure.
    pub async fn run<T, C, F>(&self, mut call: C) -> Result<T, Failure>
    where
        C: FnMut(Attempt) -> F,
        F: Future<Output = Result<T, Failure>>,
    {
        let started = Instant::now();
        let mut attempt = Attempt { number: 1, earlier_is_unknown: false };
        let mut pause = self.first_pause;
        loop {
            let failure = match call(attempt).await {
                Ok(answer) => return Ok(answer),
                Err(failure) if attempt.earlier_is_unknown => failure.after_unknown(),
                Err(failure) => failure,
            };
            // Half to one and a half times, so that callers that failed together do not come back together.
            let jittered = pause.mul_f64(0.5 + fastrand::f64());
            if !failure.is_transient() || started.elapsed() + jittered >= self.limit {
                return Err(failure);
            }
            attempt = Attempt {
                number: attempt.number + 1,
                earlier_is_unknown: failure.outcome() == Outcome::Unknown,
            };
            tokio::time::sleep(jittered).await;
            pause = (pause * 2).min(self.longest_pause);
        }
    }
}
