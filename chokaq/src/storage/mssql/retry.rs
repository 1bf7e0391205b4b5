//! Repeats a call while its failures may pass.

use std::time::{Duration, Instant};

use crate::storage::mssql::{
    failure::{Failure, Outcome},
    numbers::Class,
};

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
    /// Begins a call:
    ///
    /// ```text
    /// let mut tries = retry.tries();
    /// loop {
    ///     match call(tries.attempt()).await {
    ///         Ok(answer) => return Ok(answer),
    ///         Err(failure) => tries.after(failure).await?,
    ///     }
    /// }
    /// ```
    pub fn tries(self) -> Tries {
        Tries {
            pause: self.first_pause,
            retry: self,
            started: Instant::now(),
            attempt: Attempt { number: 1, earlier_is_unknown: false },
        }
    }
}

/// The tries of one call.
#[derive(Debug)]
pub struct Tries {
    retry: Retry,
    started: Instant,
    pause: Duration,
    attempt: Attempt,
}

impl Tries {
    /// The try that is due.
    pub fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// Waits for the next try. A taken key may be free then, or its holder be recognised: two sessions that insert the
    /// first row of a counter meet there.
    ///
    /// # Errors
    /// The failure itself where it will not pass, or the time is up. Its outcome is unknown when that of any try is.
    pub async fn after(&mut self, failure: Failure) -> Result<(), Failure> {
        let failure =
            if self.attempt.earlier_is_unknown { failure.after_unknown() } else { failure };
        let may_pass = matches!(failure.class(), Class::Transient | Class::Conflict);
        // Half to one and a half times, so that callers that failed together do not come back together.
        let jittered = self.pause.mul_f64(0.5 + fastrand::f64());
        if !may_pass || self.started.elapsed() + jittered >= self.retry.limit {
            return Err(failure);
        }
        self.attempt = Attempt {
            number: self.attempt.number + 1,
            earlier_is_unknown: failure.outcome() == Outcome::Unknown,
        };
        tokio::time::sleep(jittered).await;
        self.pause = (self.pause * 2).min(self.retry.longest_pause);
        Ok(())
    }
}
