//! The state machine as a simple model, and random calls that hold a backend to it.
//!
//! Nothing falls due and no limit runs out by itself in a run: time passes only when the run ages a row, by more than
//! every delay and limit it uses. So the model needs no clock, and every answer is known but for which rows a fetch picks.

use std::collections::HashMap;

use crate::prelude::*;

mod run;

claims!(
    random_calls_agree_with_the_model_1,
    random_calls_agree_with_the_model_2,
    random_calls_agree_with_the_model_3,
    random_calls_agree_with_the_model_under_a_fresh_seed,
);

const STEPS: usize = 1_500;

async fn random_calls_agree_with_the_model_1(db: &Db) {
    run::random(db, 1, STEPS).await;
}

async fn random_calls_agree_with_the_model_2(db: &Db) {
    run::random(db, 2, STEPS).await;
}

async fn random_calls_agree_with_the_model_3(db: &Db) {
    run::random(db, 3, STEPS).await;
}

async fn random_calls_agree_with_the_model_under_a_fresh_seed(db: &Db) {
    run::random(db, fastrand::u64(..), STEPS).await;
}

/// Where a job is, as the model knows it.
#[derive(Debug, Clone, PartialEq)]
enum Place {
    /// `returned` is the lease whose call put it here, until the next fetch.
    Pending {
        delayed: bool,
        returned: Option<LeaseId>,
    },
    Fetched {
        lease: LeaseId,
        stale: bool,
    },
    Processing {
        lease: LeaseId,
        stale: bool,
        suspect: bool,
        cancel: bool,
    },
    Archived {
        lease: LeaseId,
    },
    Dead {
        reason: FailureReason,
        lease: Option<LeaseId>,
    },
}

#[derive(Debug, Clone)]
struct Job {
    new: NewJob,
    place: Place,
    attempts: u32,
}

impl Job {
    fn state(&self) -> JobState {
        match self.place {
            Place::Pending { .. } => PENDING,
            Place::Fetched { .. } => FETCHED,
            Place::Processing { .. } => PROCESSING,
            Place::Archived { .. } => JobState::Succeeded,
            Place::Dead { reason, .. } => JobState::Dead(reason),
        }
    }

    fn is_active(&self) -> bool {
        !matches!(self.place, Place::Archived { .. } | Place::Dead { .. })
    }

    fn is_claimed(&self) -> bool {
        matches!(self.place, Place::Fetched { .. } | Place::Processing { .. })
    }

    /// The end of an attempt by its own lease.
    fn end(&mut self, lease: LeaseId, outcome: &Outcome) {
        self.place = match outcome {
            Outcome::Succeeded { .. } => Place::Archived { lease },
            Outcome::Dead { reason, .. } => Place::Dead { reason: *reason, lease: Some(lease) },
            Outcome::Retry { delay, .. } | Outcome::Snooze { delay } => {
                if matches!(outcome, Outcome::Snooze { .. }) {
                    self.attempts -= 1;
                }
                Place::Pending { delayed: !delay.is_zero(), returned: Some(lease) }
            }
        };
    }

    /// Whether the lease runs it now, and whether its cancel was asked.
    fn runs_under(&self, wanted: LeaseId) -> Option<bool> {
        match self.place {
            Place::Processing { lease, cancel, .. } if lease == wanted => Some(cancel),
            _ => None,
        }
    }
}

/// What the database must hold.
#[derive(Debug, Default)]
struct Model {
    jobs: HashMap<JobId, Job>,
    paused: HashMap<String, bool>,
    limits: HashMap<String, u32>,
    succeeded: u64,
    failed: u64,
    retried: u64,
}

impl Model {
    fn holder(&self, new: &NewJob) -> Option<JobId> {
        new.idempotency_key.as_ref()?;
        let holds = |job: &&Job| {
            job.is_active()
                && job.new.job_type == new.job_type
                && job.new.idempotency_key == new.idempotency_key
        };
        self.jobs.values().find(holds).map(|job| job.new.id)
    }

    fn enqueue(&mut self, new: &NewJob) -> EnqueueOutcome {
        if self.jobs.contains_key(&new.id) {
            return EnqueueOutcome::Stored;
        }
        if let Some(of) = self.holder(new) {
            return EnqueueOutcome::Duplicate { of };
        }
        let place = Place::Pending { delayed: new.due != Due::Now, returned: None };
        self.jobs.insert(new.id, Job { new: new.clone(), place, attempts: 0 });
        EnqueueOutcome::Stored
    }

    /// How many more rows of the queue may be claimed.
    fn room(&self, queue: &str) -> usize {
        if self.paused.get(queue) == Some(&true) {
            return 0;
        }
        let claimed = |job: &&Job| job.new.queue == queue && job.is_claimed();
        let active = self.jobs.values().filter(claimed).count();
        let limit = self.limits.get(queue).map_or(usize::MAX, |limit| *limit as usize);
        limit.saturating_sub(active)
    }

    /// The ready rows of a queue.
    fn ready(&self, queue: &str) -> impl Iterator<Item = &Job> {
        let ready = |job: &&Job| matches!(job.place, Place::Pending { delayed: false, .. });
        self.jobs.values().filter(move |job| job.new.queue == queue).filter(ready)
    }

    fn mark(&mut self, lease: &Lease) -> Option<u32> {
        let job = self.jobs.get_mut(&lease.job()).expect("a lease is of a known job");
        let id = lease.lease_id();
        match job.place {
            Place::Fetched { lease, .. } if lease == id => {
                let (stale, suspect, cancel) = (false, false, false);
                job.place = Place::Processing { lease, stale, suspect, cancel };
                job.attempts += 1;
                Some(job.attempts)
            }
            Place::Processing { lease, .. } if lease == id => Some(job.attempts),
            _ => None,
        }
    }

    fn beat(&mut self, lease: &Lease) -> BeatOutcome {
        let job = self.jobs.get_mut(&lease.job()).expect("a lease is of a known job");
        let Some(cancel) = job.runs_under(lease.lease_id()) else { return BeatOutcome::LeaseLost };
        let lease = lease.lease_id();
        job.place = Place::Processing { lease, stale: false, suspect: false, cancel };
        if cancel { BeatOutcome::CancelRequested } else { BeatOutcome::Alive }
    }

    fn release(&mut self, lease: &Lease, delayed: bool) -> bool {
        let job = self.jobs.get_mut(&lease.job()).expect("a lease is of a known job");
        let id = lease.lease_id();
        match &job.place {
            Place::Fetched { lease, .. } if *lease == id => {
                job.place = Place::Pending { delayed, returned: Some(id) };
                true
            }
            Place::Pending { returned, .. } => *returned == Some(id),
            _ => false,
        }
    }

    /// What a finish answers; `None` where the contract leaves it open: another outcome by the lease that put it back.
    fn finish(&mut self, lease: &Lease, outcome: &Outcome) -> Option<FinishOutcome> {
        let id = lease.lease_id();
        let job = self.jobs.get_mut(&lease.job()).expect("a lease is of a known job");
        if job.runs_under(id).is_some() {
            job.end(id, outcome);
            match &job.place {
                Place::Archived { .. } => self.succeeded += 1,
                Place::Dead { .. } => self.failed += 1,
                _ => self.retried += u64::from(matches!(outcome, Outcome::Retry { .. })),
            }
            return Some(FinishOutcome::Done);
        }
        match (&job.place, outcome) {
            (Place::Archived { lease }, Outcome::Succeeded { .. }) if *lease == id => {
                Some(FinishOutcome::Done)
            }
            (Place::Dead { reason, lease }, Outcome::Dead { reason: again, .. })
                if *lease == Some(id) && reason == again =>
            {
                Some(FinishOutcome::Done)
            }
            (Place::Dead { lease, .. } | Place::Pending { returned: lease, .. }, _)
                if *lease == Some(id) =>
            {
                None
            }
            _ => Some(FinishOutcome::LeaseLost),
        }
    }

    fn cancel(&mut self, id: JobId) -> CancelOutcome {
        let Some(job) = self.jobs.get_mut(&id) else { return CancelOutcome::NotActive };
        match &mut job.place {
            Place::Pending { returned, .. } => {
                let (reason, lease) = (FailureReason::Cancelled, *returned);
                job.place = Place::Dead { reason, lease };
            }
            Place::Fetched { lease, .. } => {
                let (reason, lease) = (FailureReason::Cancelled, Some(*lease));
                job.place = Place::Dead { reason, lease };
            }
            Place::Processing { cancel, .. } => {
                *cancel = true;
                return CancelOutcome::Requested;
            }
            Place::Archived { .. } | Place::Dead { .. } => return CancelOutcome::NotActive,
        }
        self.failed += 1;
        CancelOutcome::Cancelled
    }

    fn resurrect(&mut self, id: JobId) -> ResurrectOutcome {
        let dead = |job: &&Job| matches!(job.place, Place::Dead { .. });
        let Some(job) = self.jobs.get(&id).filter(dead) else { return ResurrectOutcome::NotDead };
        if let Some(by) = self.holder(&job.new) {
            return ResurrectOutcome::KeyHeld { by };
        }
        let job = self.jobs.get_mut(&id).expect("it was there");
        job.place = Place::Pending { delayed: false, returned: None };
        job.attempts = 0;
        ResurrectOutcome::Resurrected
    }

    /// Fetched and stale -> Pending.
    fn recover(&mut self) -> u64 {
        let mut recovered = 0;
        for job in self.jobs.values_mut() {
            if let Place::Fetched { stale: true, .. } = job.place {
                job.place = Place::Pending { delayed: false, returned: None };
                recovered += 1;
            }
        }
        recovered
    }

    /// One scan, suspicion zero: it notes the silent and moves those that were noted before. Answers who moved.
    fn scan(&mut self) -> HashMap<JobId, bool> {
        let mut moved = HashMap::new();
        for job in self.jobs.values_mut() {
            let Place::Processing { lease, stale: true, suspect, cancel } = job.place else {
                continue;
            };
            if !suspect {
                job.place = Place::Processing { lease, stale: true, suspect: true, cancel };
                continue;
            }
            let left = job.attempts <= job.new.retries;
            let retried = job.new.on_crash == OnCrash::Retry && left && !cancel;
            moved.insert(job.new.id, retried);
            job.place = if retried {
                self.retried += 1;
                Place::Pending { delayed: false, returned: None }
            } else {
                self.failed += 1;
                let reason = if cancel { FailureReason::Cancelled } else { FailureReason::Zombie };
                Place::Dead { reason, lease: Some(lease) }
            };
        }
        moved
    }

    /// The row ages by more than every delay and limit.
    fn age(&mut self, id: JobId) {
        match &mut self.jobs.get_mut(&id).expect("a known job").place {
            Place::Pending { delayed, .. } => *delayed = false,
            Place::Fetched { stale, .. } | Place::Processing { stale, .. } => *stale = true,
            Place::Archived { .. } | Place::Dead { .. } => {}
        }
    }
}
