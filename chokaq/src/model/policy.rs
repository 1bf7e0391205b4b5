//! When and how often a job is tried.

use std::time::Duration;

/// The wait before a retry.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Backoff {
    /// `base * factor^(n-1)` before the n-th retry, at most `max`.
    Exponential {
        /// The wait before the first retry.
        base: Duration,
        /// The longest wait.
        max: Duration,
        /// What each wait is multiplied by.
        factor: f64,
    },
    /// The same wait before every retry.
    Fixed(Duration),
    /// A function of the attempt that failed (the first is 1).
    Custom(fn(u32) -> Duration),
}

impl Backoff {
    /// The wait after the given failed attempt (the first is 1), without jitter.
    pub fn delay(&self, failed_attempt: u32) -> Duration {
        match *self {
            Self::Exponential { base, max, factor } => {
                let power = i32::try_from(failed_attempt.saturating_sub(1)).unwrap_or(i32::MAX);
                let seconds = base.as_secs_f64() * factor.powi(power);
                Duration::try_from_secs_f64(seconds).map_or(max, |delay| delay.min(max))
            }
            Self::Fixed(delay) => delay,
            Self::Custom(function) => function(failed_attempt),
        }
    }

    /// The wait with up to `jitter` (0.2 is 20 %) added, so that jobs that failed together do not return together.
    /// `random` is uniform in `0.0..1.0`.
    pub fn delay_with_jitter(&self, failed_attempt: u32, jitter: f64, random: f64) -> Duration {
        let delay = self.delay(failed_attempt);
        Duration::try_from_secs_f64(delay.as_secs_f64() * (1.0 + jitter * random)).unwrap_or(delay)
    }
}

/// What rescue does with a job whose worker died while it ran. The numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum OnCrash {
    /// To the dead-letter queue as a zombie: user code may have had effects, a person decides.
    #[default]
    DeadLetter = 0,
    /// Back to Pending with the attempt counted, while attempts are left.
    Retry = 1,
}

impl OnCrash {
    /// The choice behind a stored number; anything unknown is the careful one.
    pub const fn from_number(number: i64) -> Self {
        if number == 1 { Self::Retry } else { Self::DeadLetter }
    }
}

/// A job type's own policy; `None` inherits the worker's or the pool's default.
#[derive(Debug, Clone, Copy)]
pub struct JobPolicy {
    /// Re-executions after the first; default 3.
    pub retries: Option<u32>,
    /// How long one attempt may run; default 15 minutes.
    pub timeout: Option<Duration>,
    /// How long after it was first due a job may still be retried; default 1 day.
    pub max_age: Option<Duration>,
    /// The wait before a retry; default exponential from 3 s, factor 2, at most 1 h.
    pub backoff: Option<Backoff>,
    /// What rescue does when the worker died; default dead letter.
    pub on_crash: OnCrash,
}

impl JobPolicy {
    /// Nothing set: all defaults.
    pub const INHERIT: Self = Self {
        retries: None,
        timeout: None,
        max_age: None,
        backoff: None,
        on_crash: OnCrash::DeadLetter,
    };
}

/// What a policy inherits where its job type sets nothing.
#[derive(Debug, Clone, Copy)]
pub struct PolicyDefaults {
    /// Re-executions after the first.
    pub retries: u32,
    /// How long one attempt may run.
    pub timeout: Duration,
    /// How long after it was first due a job may still be retried.
    pub max_age: Duration,
    /// The wait before the first retry.
    pub backoff_base: Duration,
    /// The longest wait.
    pub backoff_max: Duration,
    /// What each wait is multiplied by.
    pub backoff_factor: f64,
}

impl PolicyDefaults {
    /// The wait before a retry.
    pub fn backoff(&self) -> Backoff {
        Backoff::Exponential {
            base: self.backoff_base,
            max: self.backoff_max,
            factor: self.backoff_factor,
        }
    }
}

impl Default for PolicyDefaults {
    fn default() -> Self {
        Self {
            retries: 3,
            timeout: Duration::from_mins(15),
            max_age: Duration::from_hours(24),
            backoff_base: Duration::from_secs(3),
            backoff_max: Duration::from_hours(1),
            backoff_factor: 2.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_backoff_grows_by_its_factor_and_stops_at_its_maximum() {
        let backoff = PolicyDefaults::default().backoff();
        let seconds: Vec<u64> = (1..=4).map(|n| backoff.delay(n).as_secs()).collect();
        assert_eq!(seconds, [3, 6, 12, 24]);
        assert_eq!(backoff.delay(40), Duration::from_hours(1));
        assert_eq!(backoff.delay(u32::MAX), Duration::from_hours(1));
    }

    #[test]
    fn jitter_adds_at_most_its_share() {
        let backoff = Backoff::Fixed(Duration::from_secs(10));
        assert_eq!(backoff.delay_with_jitter(1, 0.2, 0.0), Duration::from_secs(10));
        assert_eq!(backoff.delay_with_jitter(1, 0.2, 1.0), Duration::from_secs(12));
    }
}
