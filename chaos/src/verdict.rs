//! What the tables and the journals say when all is over.

use std::{
    collections::{HashMap, HashSet},
    sync::atomic::Ordering,
};

use chokaq::JobId;

use crate::{
    Failure,
    database::{End, HOT, Look},
    fleet::Life,
    journal::Run,
    observer::Violations,
    operators::{Record, locked},
};

/// /proc/uptime counts in hundredths of a second.
const TICK: u64 = 20;

/// All that is known at the end.
pub(crate) struct Evidence<'a> {
    pub(crate) record: &'a Record,
    pub(crate) lives: Vec<Life>,
    pub(crate) runs: HashMap<JobId, Vec<Run>>,
    pub(crate) ends: Vec<End>,
    pub(crate) look: Look,
}

/// Attempts that were counted and show no first line, by what explains them.
#[derive(Debug, Default)]
pub(crate) struct Unseen {
    pub(crate) killed: usize,
    pub(crate) stopped: usize,
    pub(crate) stalled: usize,
}

impl Evidence<'_> {
    pub(crate) fn check(&self, violations: &Violations) -> Result<Unseen, Failure> {
        self.check_places(violations);
        self.check_totals(violations);
        self.check_overlaps(violations);
        self.check_attempts(violations)
    }

    fn check_places(&self, violations: &Violations) {
        let mut seen = HashSet::new();
        for end in &self.ends {
            if !seen.insert(end.id) {
                violations.add(format!("I1: {} stands in two tables", end.id));
            }
            if end.place == HOT {
                violations.add(format!("{} has not ended", end.id));
            }
        }
        let acknowledged = self.record.all_acknowledged();
        for id in acknowledged.difference(&seen) {
            violations.add(format!("I5: {id} was acknowledged and stands nowhere"));
        }
        let unknown = seen.difference(&acknowledged).count() as u64;
        let unanswered = self.record.unanswered.load(Ordering::Relaxed);
        if unknown > unanswered {
            violations.add(format!(
                "{unknown} jobs were stored and not acknowledged, {unanswered} calls failed"
            ));
        }
        for id in self.runs.keys().filter(|id| !seen.contains(id)) {
            violations.add(format!("{id} ran and stands nowhere"));
        }
    }

    /// Every success and every death was counted once. A death that was resurrected is no row any more.
    fn check_totals(&self, violations: &Violations) {
        let Look { archived, dead, succeeded, failed, .. } = self.look;
        if succeeded != archived {
            violations.add(format!("{succeeded} successes were counted, {archived} are archived"));
        }
        let resurrected: u32 = self.record.resurrections().values().sum();
        let unanswered = self.record.unanswered_resurrections.load(Ordering::Relaxed);
        let of_rows = failed - dead;
        // A call that is repeated, or whose answer was lost, counts a resurrection that others made.
        if of_rows < 0 || of_rows > i64::from(resurrected) {
            violations.add(format!(
                "{failed} deaths were counted, {dead} rows are dead, and at most {resurrected} were resurrected ({unanswered} calls without an answer)"
            ));
        }
    }

    /// A run may begin beside an earlier one only where that one's process was killed, stopped or cut off: a lease is not
    /// given twice.
    fn check_overlaps(&self, violations: &Violations) {
        for (id, runs) in &self.runs {
            for pair in runs.windows(2) {
                let [first, second] = pair else { continue };
                let has_ended = first.end.is_some_and(|end| end <= second.start + TICK);
                if !has_ended && !self.is_disturbed(first, second.start) {
                    violations.add(format!("{id}: {second:?} began beside {first:?}"));
                }
            }
        }
    }

    fn is_disturbed(&self, run: &Run, until: u64) -> bool {
        let life = &self.lives[run.node];
        let meets = |(from, to): &(u64, u64)| *from <= until && *to + TICK >= run.start;
        life.killed.is_some_and(|at| at <= until + TICK)
            || life.stops.iter().any(meets)
            || locked(&self.record.stalls).iter().any(meets)
    }

    /// Each attempt was started once in a lifetime, and counted; one that was counted and shows no first line died with
    /// its process, which rescue wrote into the job's errors.
    fn check_attempts(&self, violations: &Violations) -> Result<Unseen, Failure> {
        let resurrections = self.record.resurrections();
        let mut unseen = Unseen::default();
        for end in &self.ends {
            let lifetimes = 1 + resurrections.get(&end.id).copied().unwrap_or(0);
            let mut starts: HashMap<u32, u32> = HashMap::new();
            for run in self.runs.get(&end.id).into_iter().flatten() {
                *starts.entry(run.attempt).or_default() += 1;
            }
            for (attempt, times) in &starts {
                if *times > lifetimes {
                    violations.add(format!(
                        "{}: attempt {attempt} was started {times} times in {lifetimes} lifetimes",
                        end.id
                    ));
                }
            }
            if lifetimes > 1 {
                continue;
            }
            if let Some(attempt) = starts.keys().find(|attempt| **attempt > end.attempts) {
                violations.add(format!(
                    "{}: attempt {attempt} was started, {} are counted",
                    end.id, end.attempts
                ));
            }
            let errors: Vec<serde_json::Value> = serde_json::from_str(&end.errors)?;
            for attempt in (1..=end.attempts).filter(|attempt| !starts.contains_key(attempt)) {
                match self.why_unseen(&errors, attempt) {
                    Some(Why::Killed) => unseen.killed += 1,
                    Some(Why::Stopped) => unseen.stopped += 1,
                    Some(Why::Stalled) => unseen.stalled += 1,
                    None => violations.add(format!(
                        "{}: attempt {attempt} of {} was counted and not started, and no kill explains it: {}",
                        end.id, end.attempts, end.errors
                    )),
                }
            }
        }
        Ok(unseen)
    }

    fn why_unseen(&self, errors: &[serde_json::Value], attempt: u32) -> Option<Why> {
        let of_attempt = |error: &&serde_json::Value| error["attempt"] == attempt;
        let text = errors.iter().find(of_attempt)?["text"].as_str()?;
        // "the worker HOST:PID:RANDOM died, froze or lost the database"
        let worker = text.split("the worker ").nth(1)?.split(' ').next()?;
        let pid: u32 = worker.split(':').nth_back(1)?.parse().ok()?;
        let mut lives = self.lives.iter().filter(|life| life.pid == pid);
        if lives.clone().any(|life| life.killed.is_some()) {
            return Some(Why::Killed);
        }
        if lives.any(|life| !life.stops.is_empty()) {
            return Some(Why::Stopped);
        }
        (!locked(&self.record.stalls).is_empty()).then_some(Why::Stalled)
    }
}

enum Why {
    Killed,
    Stopped,
    Stalled,
}
