//! Settings: defaults in code, overridden by `chokaq.toml`, both overridden by the environment.

mod file;
mod table;

use std::{fmt, time::Duration};

use crate::{
    Error, Result,
    model::{Backoff, Limits, PolicyDefaults},
};

/// Everything that can be set, with its default.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    /// `None`: `sqlite:chokaq.db`.
    pub(crate) database_url: Option<String>,
    pub(crate) worker: WorkerSettings,
    pub(crate) policy: PolicyDefaults,
    pub(crate) limits: Limits,
    pub(crate) sqlite_synchronous: Synchronous,
    /// Whether connecting to a SQL Server applies the migrations that it lacks.
    pub(crate) auto_migrate: bool,
}

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// The disk: an acknowledged write survives a power cut.
    #[default]
    Full,
    /// The operating system: it survives a crash of the process, not of the machine.
    Normal,
}

/// Checks what code set.
///
/// # Errors
/// A duration of zero or over 50 years, or a factor below 1.
pub(crate) fn check_policy(policy: &PolicyDefaults) -> Result<()> {
    for (name, value) in [
        ("timeout", policy.timeout),
        ("maximum age", policy.max_age),
        ("backoff base", policy.backoff_base),
        ("longest backoff", policy.backoff_max),
    ] {
        if value.is_zero() || value > Limits::MAX_DURATION {
            return Err(Error::config(format!(
                "a pool's {name} is {}: it must be longer than zero and at most 50 years",
                Pretty(value)
            )));
        }
    }
    check_factor("a pool's", policy.backoff_factor)
}

/// Checks what a running worker is told.
///
/// # Errors
/// A duration of zero or over 50 years, or a factor below 1.
pub(crate) fn check_backoff(backoff: &Backoff) -> Result<()> {
    let waits = match *backoff {
        Backoff::Exponential { base, max, factor } => {
            check_factor("a worker's", factor)?;
            vec![("backoff base", base), ("longest backoff", max)]
        }
        Backoff::Fixed(wait) => vec![("backoff", wait)],
        Backoff::Custom(_) => Vec::new(),
    };
    for (name, wait) in waits {
        if wait.is_zero() || wait > Limits::MAX_DURATION {
            return Err(Error::config(format!(
                "a worker's {name} is {}: it must be longer than zero and at most 50 years",
                Pretty(wait)
            )));
        }
    }
    Ok(())
}

fn check_factor(whose: &str, factor: f64) -> Result<()> {
    if (1.0..=100.0).contains(&factor) {
        return Ok(());
    }
    Err(Error::config(format!("{whose} backoff factor is {factor}: it must be from 1 to 100")))
}

/// Checks the share of random time in a retry's wait.
///
/// # Errors
/// A share outside of 0 to 1.
pub(crate) fn check_jitter(share: f64) -> Result<()> {
    if (0.0..=1.0).contains(&share) {
        return Ok(());
    }
    Err(Error::config(format!("a worker's jitter is {share}: it must be from 0 to 1")))
}

/// How a worker behaves.
#[derive(Debug, Clone)]
pub(crate) struct WorkerSettings {
    /// Jobs that run at once.
    pub(crate) concurrency: usize,
    /// The queues served; `None`: those of the registered types. `*` alone: all.
    pub(crate) queues: Option<Vec<String>>,
    /// The most rows held that have not started.
    pub(crate) buffer: usize,
    /// The most rows of one fetch.
    pub(crate) batch: usize,
    /// The wait after a fetch that found nothing, where nothing wakes the fetcher.
    pub(crate) poll_interval: Duration,
    pub(crate) heartbeat_interval: Duration,
    /// A running job whose heartbeat is older is a zombie.
    pub(crate) lease: Duration,
    /// A fetched row that is older goes back.
    pub(crate) fetched_limit: Duration,
    /// Between two rescue scans.
    pub(crate) scan_interval: Duration,
    /// What running jobs get to finish when the worker stops.
    pub(crate) shutdown_grace: Duration,
    /// What a handler gets to stop by itself once its context is cancelled.
    pub(crate) cancel_grace: Duration,
    /// The share of random time added to a retry's delay.
    pub(crate) jitter: f64,
    /// When a type whose jobs keep failing is left alone.
    pub(crate) circuit: CircuitSettings,
    /// When a row of an unknown type is due again.
    pub(crate) unknown_delay: Duration,
    /// How long a row may go round workers that do not know its type before it is rejected.
    pub(crate) unknown_grace: Duration,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            concurrency: 10 * cores,
            queues: None,
            buffer: 100,
            batch: 100,
            poll_interval: Duration::from_secs(1),
            heartbeat_interval: Duration::from_secs(10),
            lease: Duration::from_mins(2),
            fetched_limit: Duration::from_mins(10),
            scan_interval: Duration::from_secs(30),
            shutdown_grace: Duration::from_secs(30),
            cancel_grace: Duration::from_secs(5),
            jitter: 0.2,
            circuit: CircuitSettings::default(),
            unknown_delay: Duration::from_secs(30),
            unknown_grace: Duration::from_hours(1),
        }
    }
}

/// When a circuit breaker opens, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CircuitSettings {
    /// Failures of a type with no success between them; 0: never.
    pub(crate) failures: u32,
    /// The time within which they count.
    pub(crate) window: Duration,
    /// How long it stays open before one job is tried.
    pub(crate) pause: Duration,
}

impl Default for CircuitSettings {
    fn default() -> Self {
        Self { failures: 5, window: Duration::from_mins(1), pause: Duration::from_secs(30) }
    }
}

impl Settings {
    /// Lets `chokaq.toml` and the environment override these settings, in this order. The file is the one that
    /// `CHOKAQ_CONFIG` names, or `chokaq.toml` in the working directory where there is one.
    ///
    /// # Errors
    /// A value that cannot be used; the message names it, where it stands, and what is accepted.
    pub(crate) fn overridden(mut self) -> Result<Self> {
        warn_of_unknown_variables();
        if let Some((path, text)) = file::find(environment("CHOKAQ_CONFIG")?)? {
            file::apply(&mut self, &path, &text)?;
        }
        table::apply_environment(&mut self, environment)?;
        Ok(self)
    }
}

/// A variable of the process's environment; an empty one counts as not set.
///
/// # Errors
/// A value that is not Unicode: it was meant to say something, and must not count as nothing.
fn environment(name: &str) -> Result<Option<String>> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.trim().is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(Error::config(format!(
            "the environment variable {name} is not valid Unicode: set it anew"
        ))),
    }
}

/// The variables whose names are chokaq's and whose meaning is nobody's: most likely misspelt.
fn warn_of_unknown_variables() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("CHOKAQ_") && !table::is_variable(&name) {
                tracing::warn!(%name, "this environment variable is not a setting of chokaq; see chokaq.example.toml");
            }
        }
    });
}

impl WorkerSettings {
    /// Checks the settings against each other.
    ///
    /// # Errors
    /// A value out of range, or a lease that could not be kept.
    pub(crate) fn check(&self) -> Result<()> {
        check_jitter(self.jitter)?;
        for (name, value) in [("concurrency", self.concurrency), ("batch", self.batch)] {
            if value == 0 {
                return Err(Error::config(format!(
                    "a worker's {name} is 0: it must be at least 1"
                )));
            }
        }
        for (name, value) in [
            ("poll interval", self.poll_interval),
            ("heartbeat interval", self.heartbeat_interval),
            ("scan interval", self.scan_interval),
            ("fetched limit", self.fetched_limit),
            ("circuit window", self.circuit.window),
            ("circuit pause", self.circuit.pause),
        ] {
            if value.is_zero() || value > Limits::MAX_DURATION {
                return Err(Error::config(format!(
                    "a worker's {name} is {}: it must be longer than zero and at most 50 years",
                    Pretty(value)
                )));
            }
        }
        for (name, value) in [
            ("lease", self.lease),
            ("shutdown grace", self.shutdown_grace),
            ("cancel grace", self.cancel_grace),
        ] {
            if value > Limits::MAX_DURATION {
                return Err(Error::config(format!(
                    "a worker's {name} is {}: it must be at most 50 years",
                    Pretty(value)
                )));
            }
        }
        if self.lease < 3 * self.heartbeat_interval {
            return Err(Error::config(format!(
                "a lease of {} is shorter than three heartbeats of {}: one lost beat would make zombies; \
                 lengthen the lease (CHOKAQ_LEASE) or beat more often (CHOKAQ_HEARTBEAT_INTERVAL)",
                Pretty(self.lease),
                Pretty(self.heartbeat_interval)
            )));
        }
        Ok(())
    }
}

/// A duration as people write it.
pub(crate) struct Pretty(pub(crate) Duration);

impl fmt::Display for Pretty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

/// A `chokaq.toml` that says every default, each with what it is for.
#[doc(hidden)]
pub fn example_toml() -> String {
    table::example_toml()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_one_lost_beat_would_end_is_refused() {
        let settings =
            WorkerSettings { lease: Duration::from_secs(25), ..WorkerSettings::default() };
        assert!(settings.check().expect_err("too short").to_string().contains("CHOKAQ_LEASE"));
        assert!(WorkerSettings::default().check().is_ok());
    }
}
