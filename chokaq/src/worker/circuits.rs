//! Circuit breakers: a type whose jobs fail one after the other is left alone for a while, so that its retries are not
//! used up against something that is down, and what is down is not hammered (M. Nygard, "Release It!").
//!
//! Each worker has circuits of its own, as each may have troubles of its own; it tells the database of those that are not
//! closed.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

use crate::{
    config::CircuitSettings,
    model::{CircuitReport, CircuitState, FailureReason, Outcome},
};

/// How long jobs wait for the end of a probe before they are looked at again.
const PROBE_PATIENCE: Duration = Duration::from_secs(1);

/// The circuits of one worker, by the key of the type. A type that has not failed since its last success has none.
#[derive(Debug)]
pub(crate) struct Circuits {
    settings: CircuitSettings,
    by_type: Mutex<HashMap<&'static str, Circuit>>,
    /// One has opened or closed.
    pub(crate) changed: Notify,
}

#[derive(Debug)]
struct Circuit {
    state: State,
    /// When the failures since the last success were, the oldest first; as many as matter.
    failures: VecDeque<Instant>,
    /// Since when it has not been closed.
    opened: Instant,
    error: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    Open { until: Instant },
    HalfOpen { probing: bool },
}

/// Whether a job of a type may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Yes; its end counts.
    Run,
    /// Yes, alone: its end decides whether others may.
    Probe,
    /// Not before this long.
    Wait(Duration),
}

/// What the end of a job says about what its type depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// It works.
    Works,
    /// It does not, for this reason.
    Fails(String),
    /// Nothing: the job's own fault, or nobody's.
    Nothing,
}

impl Evidence {
    /// Errors, panics and time limits speak against what the type depends on; what a handler says of its own job (fatal,
    /// cancelled, rejected, throttled, snoozed) and what the worker did to it say nothing.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        let error = match outcome {
            Outcome::Succeeded { .. } => return Self::Works,
            Outcome::Retry { error, .. }
            | Outcome::Dead {
                reason: FailureReason::MaxRetriesExceeded | FailureReason::Timeout,
                error,
            } => error,
            Outcome::Dead { .. } | Outcome::Snooze { .. } => return Self::Nothing,
        };
        match error.kind {
            "error" | "panic" | "timeout" => Self::Fails(error.text.clone()),
            _ => Self::Nothing,
        }
    }
}

impl Circuits {
    pub(crate) fn new(settings: CircuitSettings) -> Self {
        Self { settings, by_type: Mutex::default(), changed: Notify::new() }
    }

    /// Asks for a job that is about to start.
    pub(crate) fn admit(&self, job_type: &'static str) -> Admission {
        let mut circuits = self.lock();
        let Some(circuit) = circuits.get_mut(job_type) else { return Admission::Run };
        match circuit.state {
            State::Closed => Admission::Run,
            State::Open { until } if Instant::now() < until => {
                Admission::Wait(until.saturating_duration_since(Instant::now()))
            }
            State::HalfOpen { probing: true } => Admission::Wait(PROBE_PATIENCE),
            State::Open { .. } | State::HalfOpen { probing: false } => {
                circuit.state = State::HalfOpen { probing: true };
                drop(circuits);
                self.changed.notify_one();
                Admission::Probe
            }
        }
    }

    /// For how long jobs of the type have to wait; `None`: one could start now.
    pub(crate) fn wait(&self, job_type: &str) -> Option<Duration> {
        match self.lock().get(job_type)?.state {
            State::Closed | State::HalfOpen { probing: false } => None,
            State::Open { until } => {
                let left = until.saturating_duration_since(Instant::now());
                (!left.is_zero()).then_some(left)
            }
            State::HalfOpen { probing: true } => Some(PROBE_PATIENCE),
        }
    }

    /// A job that was admitted has ended.
    pub(crate) fn ended(&self, job_type: &'static str, was_probe: bool, evidence: Evidence) {
        let mut circuits = self.lock();
        let is_closed = circuits.get(job_type).is_none_or(|c| c.state == State::Closed);
        let changed = match evidence {
            // What started before it opened says nothing new.
            _ if !was_probe && !is_closed => false,
            Evidence::Works => circuits.remove(job_type).is_some_and(|c| c.close(job_type)),
            Evidence::Fails(error) if self.settings.failures > 0 => {
                let circuit = circuits.entry(job_type).or_insert_with(Circuit::new);
                circuit.failed(job_type, was_probe, &error, &self.settings)
            }
            // The next one is the probe.
            _ if was_probe => circuits.get_mut(job_type).is_some_and(|circuit| {
                circuit.state = State::HalfOpen { probing: false };
                true
            }),
            _ => false,
        };
        drop(circuits);
        if changed {
            self.changed.notify_one();
        }
    }

    /// Those that are not closed.
    pub(crate) fn reports(&self) -> Vec<CircuitReport> {
        let circuits = self.lock();
        let open = circuits.iter().filter(|(_, circuit)| circuit.state != State::Closed);
        open.map(|(job_type, circuit)| circuit.report(job_type)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<&'static str, Circuit>> {
        self.by_type.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Circuit {
    fn new() -> Self {
        Self {
            state: State::Closed,
            failures: VecDeque::new(),
            opened: Instant::now(),
            error: String::new(),
        }
    }

    /// Answers whether it was not closed before.
    fn close(self, job_type: &str) -> bool {
        let was_open = self.state != State::Closed;
        if was_open {
            tracing::info!(job_type, open_for = ?self.opened.elapsed(), "circuit closed: the type works again");
        }
        was_open
    }

    /// Answers whether it opened.
    fn failed(
        &mut self,
        job_type: &str,
        was_probe: bool,
        error: &str,
        settings: &CircuitSettings,
    ) -> bool {
        let now = Instant::now();
        let threshold = settings.failures as usize;
        self.failures.push_back(now);
        while self.failures.len() > threshold
            || self.failures.front().is_some_and(|at| now.duration_since(*at) > settings.window)
        {
            self.failures.pop_front();
        }
        self.error = error.chars().take(CircuitReport::MAX_TEXT).collect();
        if !was_probe && self.failures.len() < threshold {
            return false;
        }
        if was_probe {
            tracing::info!(job_type, pause = ?settings.pause, error = self.error, "circuit stays open: the probe failed");
        } else {
            self.opened = now;
            tracing::warn!(job_type, failures = threshold, pause = ?settings.pause, error = self.error, "circuit opened: jobs of the type wait");
        }
        self.state = State::Open { until: now + settings.pause };
        true
    }

    fn report(&self, job_type: &str) -> CircuitReport {
        let (state, retry_in) = match self.state {
            State::Open { until } => {
                (CircuitState::Open, until.saturating_duration_since(Instant::now()))
            }
            State::HalfOpen { .. } | State::Closed => (CircuitState::HalfOpen, Duration::ZERO),
        };
        CircuitReport {
            job_type: job_type.to_owned(),
            state,
            failures: u32::try_from(self.failures.len()).unwrap_or(u32::MAX),
            error: self.error.clone(),
            open_for: self.opened.elapsed(),
            retry_in,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::AttemptError;

    const HOUR: Duration = Duration::from_hours(1);

    fn circuits(failures: u32, pause: Duration) -> Circuits {
        Circuits::new(CircuitSettings { failures, window: HOUR, pause })
    }

    fn fails() -> Evidence {
        Evidence::Fails("503".to_owned())
    }

    #[test]
    fn failures_without_a_success_between_them_open_it_at_the_threshold() {
        let circuits = circuits(3, HOUR);
        for evidence in [fails(), fails(), Evidence::Works, fails(), fails(), Evidence::Nothing] {
            circuits.ended("mail", false, evidence);
            assert_eq!(circuits.admit("mail"), Admission::Run);
        }
        circuits.ended("mail", false, fails());
        assert!(matches!(circuits.admit("mail"), Admission::Wait(left) if left > HOUR / 2));
        assert!(circuits.wait("mail").is_some_and(|left| left > HOUR / 2));
        assert_eq!(circuits.admit("render"), Admission::Run, "each type has its own");
        let [report] = &circuits.reports()[..] else { panic!("one is open") };
        assert_eq!((report.state, report.failures), (CircuitState::Open, 3));
        assert_eq!((report.job_type.as_str(), report.error.as_str()), ("mail", "503"));
    }

    #[test]
    fn failures_that_are_longer_ago_than_the_window_do_not_count() {
        let settings = CircuitSettings { failures: 2, window: Duration::ZERO, pause: HOUR };
        let circuits = Circuits::new(settings);
        for _ in 0..10 {
            circuits.ended("mail", false, fails());
            // Later than the failure by at least a tick of the clock.
            let now = Instant::now();
            while Instant::now() == now {}
        }
        assert_eq!(circuits.admit("mail"), Admission::Run);
    }

    #[test]
    fn one_probe_at_a_time_decides_when_the_pause_is_over() {
        let circuits = circuits(1, Duration::ZERO);
        circuits.ended("mail", false, fails());
        assert_eq!(circuits.wait("mail"), None);
        assert_eq!(circuits.admit("mail"), Admission::Probe);
        assert_eq!(circuits.admit("mail"), Admission::Wait(PROBE_PATIENCE));
        assert_eq!(circuits.wait("mail"), Some(PROBE_PATIENCE));
        assert_eq!(circuits.reports()[0].state, CircuitState::HalfOpen);
        // One that says nothing lets the next one try; one that fails opens it again.
        circuits.ended("mail", true, Evidence::Nothing);
        assert_eq!(circuits.admit("mail"), Admission::Probe);
        circuits.ended("mail", true, fails());
        assert_eq!(circuits.reports()[0].state, CircuitState::Open);
        assert_eq!(circuits.admit("mail"), Admission::Probe);
        // What was started before it opened decides nothing.
        circuits.ended("mail", false, Evidence::Works);
        assert_eq!(circuits.admit("mail"), Admission::Wait(PROBE_PATIENCE));
        circuits.ended("mail", true, Evidence::Works);
        assert_eq!(circuits.admit("mail"), Admission::Run);
        assert_eq!(circuits.reports(), []);
    }

    #[test]
    fn a_threshold_of_zero_opens_nothing() {
        let circuits = circuits(0, HOUR);
        for _ in 0..100 {
            circuits.ended("mail", false, fails());
        }
        assert_eq!(circuits.admit("mail"), Admission::Run);
    }

    #[test]
    fn only_what_may_be_the_dependencys_fault_counts() {
        let error = |kind| AttemptError::new(1, kind, "x");
        let retry = |kind| Outcome::Retry { delay: HOUR, error: error(kind) };
        for kind in ["error", "panic", "timeout"] {
            assert_eq!(Evidence::of(&retry(kind)), Evidence::Fails("x".to_owned()), "{kind}");
        }
        for kind in ["throttled", "heartbeat"] {
            assert_eq!(Evidence::of(&retry(kind)), Evidence::Nothing, "{kind}");
        }
        for reason in FailureReason::ALL {
            let counts =
                matches!(reason, FailureReason::MaxRetriesExceeded | FailureReason::Timeout);
            let evidence = Evidence::of(&Outcome::Dead { reason, error: error("error") });
            assert_eq!(evidence != Evidence::Nothing, counts, "{reason}");
        }
        assert_eq!(Evidence::of(&Outcome::Snooze { delay: HOUR }), Evidence::Nothing);
        let succeeded = Outcome::Succeeded { output: None, note: None };
        assert_eq!(Evidence::of(&succeeded), Evidence::Works);
    }
}
