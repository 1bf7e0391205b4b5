//! A run of random calls: each is made on the storage and on the model, and the answers are compared.

use std::collections::HashSet;

use fastrand::Rng;

use chokaq::{Result, model::Beat};

use super::{Model, Place};
use crate::prelude::*;

const HOUR: Duration = Duration::from_hours(1);
const QUEUES: [&str; 3] = ["a", "b", "c"];
const WORKERS: [&str; 3] = ["w1", "w2", "w3"];

struct Run<'a> {
    db: &'a Db,
    model: Model,
    rng: Rng,
    /// Every job ever made, every lease ever given, every call that may be repeated.
    made: Vec<NewJob>,
    leases: Vec<Lease>,
}

/// Calls once; now and then the reply to a first call is lost, and the call is made again.
macro_rules! call {
    ($run:expr, $call:expr) => {{
        if $run.rng.u8(..10) == 0 {
            $run.db.lose_replies(1);
            lost($call.await);
        }
        $call.await.expect("the storage answers")
    }};
}

fn lost<T>(result: Result<T>) {
    assert!(result.is_err_and(|error| error.is_transient()), "the reply is lost");
}

/// `steps` random calls; the seed is printed when a claim fails.
pub(super) async fn random(db: &Db, seed: u64, steps: usize) {
    println!("seed {seed}");
    let rng = Rng::with_seed(seed);
    let mut run = Run { db, model: Model::default(), rng, made: Vec::new(), leases: Vec::new() };
    for step in 1..=steps {
        run.step().await;
        if step % 100 == 0 {
            println!("step {step}");
            run.compare_all().await;
        }
    }
    run.compare_all().await;
}

impl Run<'_> {
    async fn step(&mut self) {
        match self.rng.u8(..100) {
            0..15 => self.enqueue().await,
            15..35 => self.fetch().await,
            35..50 => self.mark().await,
            50..55 => self.beat().await,
            55..60 => self.release().await,
            60..78 => self.finish().await,
            78..81 => self.cancel().await,
            81..85 => self.resurrect().await,
            85..87 => self.set_queue().await,
            87..94 => self.age().await,
            94..97 => self.recover().await,
            _ => self.scan().await,
        }
    }

    fn new_job(&mut self) -> NewJob {
        let rng = &mut self.rng;
        let delayed = rng.u8(..5) == 0;
        NewJob {
            priority: rng.i32(0..3),
            job_type: ["mail", "report"][rng.usize(..2)].to_owned(),
            idempotency_key: rng.bool().then(|| format!("k{}", rng.u8(..12))),
            due: if delayed { Due::After(HOUR) } else { Due::Now },
            retries: rng.u32(0..3),
            on_crash: if rng.bool() { OnCrash::Retry } else { OnCrash::DeadLetter },
            // Far beyond what the run ages a row by.
            max_age: HOUR * 24 * 365 * 50,
            ..job_on(QUEUES[rng.usize(..3)])
        }
    }

    async fn enqueue(&mut self) {
        let mut batch: Vec<_> = (0..self.rng.usize(1..4)).map(|_| self.new_job()).collect();
        if let Some(old) = self.rng.choice(&self.made) {
            batch.push(old.clone());
        }
        let answers = call!(self, self.db.storage.enqueue(batch.clone()));
        let expected: Vec<_> = batch.iter().map(|new| self.model.enqueue(new)).collect();
        assert_eq!(answers, expected, "{batch:?}");
        batch.retain(|new| self.model.jobs.contains_key(&new.id));
        self.made.extend(batch);
    }

    async fn fetch(&mut self) {
        let take = self.rng.usize(1..8);
        let worker = WORKERS[self.rng.usize(..3)];
        let mut request = request(worker, take);
        if self.rng.u8(..8) == 0 {
            self.db.lose_replies(1);
            lost(self.db.storage.fetch_next_batch(request.clone()).await);
            request.is_repeat = true;
        }
        let fetched = self.db.fetch_with(request.clone()).await;
        assert!(fetched.len() <= take);
        let claimable = QUEUES
            .iter()
            .any(|queue| self.model.room(queue) > 0 && self.model.ready(queue).next().is_some());
        assert_eq!(claimable, !fetched.is_empty(), "work is claimed where there is some");
        for queue in QUEUES {
            let claimed: HashSet<_> = fetched
                .iter()
                .filter(|job| job.queue == queue)
                .map(|job| job.lease.job())
                .collect();
            self.assert_claim(queue, &claimed);
        }
        for job in fetched {
            assert_eq!(job.lease.lease_id(), request.lease);
            let known = self.model.jobs.get_mut(&job.lease.job()).expect("a known job");
            assert_eq!(job.attempts, known.attempts);
            known.place = Place::Fetched { lease: request.lease, stale: false };
            self.leases.push(job.lease);
        }
    }

    /// The rows were ready, there was room for them, and none of higher priority was left.
    fn assert_claim(&self, queue: &str, claimed: &HashSet<JobId>) {
        assert!(claimed.len() <= self.model.room(queue), "there was room in {queue}");
        let (mut seen, mut lowest, mut left) = (0, i32::MAX, i32::MIN);
        for job in self.model.ready(queue) {
            if claimed.contains(&job.new.id) {
                seen += 1;
                lowest = lowest.min(job.new.priority);
            } else {
                left = left.max(job.new.priority);
            }
        }
        assert_eq!(seen, claimed.len(), "only ready rows of {queue} are claimed");
        assert!(seen == 0 || left <= lowest, "priority is strict within {queue}");
    }

    /// A lease, mostly one of the newest; many of them are stale.
    fn lease(&mut self) -> Option<Lease> {
        let newest = self.leases.len().saturating_sub(12);
        let from = if self.rng.u8(..4) == 0 { 0 } else { newest };
        self.rng.choice(&self.leases[from..]).cloned()
    }

    async fn mark(&mut self) {
        let Some(lease) = self.lease() else { return };
        let answers = call!(self, self.db.storage.mark_as_processing(vec![lease.clone()]));
        let attempt = match answers[..] {
            [MarkOutcome::Started { attempt, .. }] => Some(attempt),
            _ => None,
        };
        // A repeated mark of a silent row is a sign of life; the model does not say which, so it is one for both.
        let expected = self.model.mark(&lease);
        assert_eq!(attempt, expected, "{:?}", self.model.jobs[&lease.job()]);
        if expected.is_some() {
            self.db.beat(&lease).await;
            self.model.beat(&lease);
        }
    }

    async fn beat(&mut self) {
        let Some(lease) = self.lease() else { return };
        let beat = || vec![Beat { lease: lease.clone(), progress: None }];
        let answers = call!(self, self.db.storage.keep_alive(beat()));
        assert_eq!(answers, [self.model.beat(&lease)], "{:?}", self.model.jobs[&lease.job()]);
    }

    async fn release(&mut self) {
        let Some(lease) = self.lease() else { return };
        let delay = self.rng.bool().then_some(HOUR);
        let release = Release { delay, ..release_of(&lease) };
        let answers = call!(self, self.db.storage.release(vec![release.clone()]));
        let before = self.model.jobs[&lease.job()].place.clone();
        let expected = self.model.release(&lease, delay.is_some());
        // Whether a retry's or a snooze's lease is told that the row is Pending is open; it must not change.
        if matches!(before, Place::Fetched { .. }) || !expected {
            assert_eq!(answers, [expected], "{before:?}");
        }
    }

    async fn finish(&mut self) {
        let Some(lease) = self.lease() else { return };
        let delay = if self.rng.bool() { HOUR } else { Duration::ZERO };
        let cancelled = self.model.jobs[&lease.job()].runs_under(lease.lease_id()) == Some(true);
        // What a flagged row's retry becomes has claims of its own.
        let outcome = match self.rng.u8(..if cancelled { 2 } else { 6 }) {
            0 => dead(FailureReason::FatalError),
            1 => succeeded(),
            2 | 3 => snooze(delay),
            _ => retry(delay),
        };
        let batch = || vec![finish_of(&lease, outcome.clone())];
        let answers = call!(self, self.db.storage.finalise(batch()));
        let before = self.model.jobs[&lease.job()].clone();
        if let Some(expected) = self.model.finish(&lease, &outcome) {
            assert_eq!(answers, [expected], "{outcome:?} of {before:?}");
        }
    }

    fn any_job(&mut self) -> Option<JobId> {
        self.rng.choice(&self.made).map(|new| new.id)
    }

    async fn cancel(&mut self) {
        let Some(id) = self.any_job() else { return };
        let answer = call!(self, self.db.storage.cancel(vec![id], "not wanted".to_owned()));
        let expected = self.model.cancel(id);
        // A repeat, and any cancel of a job that is dead as Cancelled, may say either.
        if answer != [expected] {
            let either = [CancelOutcome::Cancelled, CancelOutcome::NotActive];
            assert!(either.contains(&answer[0]) && either.contains(&expected), "{answer:?}");
            assert_eq!(self.model.jobs[&id].state(), JobState::Dead(FailureReason::Cancelled));
        }
    }

    async fn resurrect(&mut self) {
        let Some(id) = self.any_job() else { return };
        let edits = ResurrectEdits::default;
        let answer = call!(self, self.db.storage.resurrect(vec![id], edits()));
        let expected = self.model.resurrect(id);
        // Of a job that came back and did not start yet, a repeat may say either.
        if answer != [expected] {
            let repeated = [ResurrectOutcome::Resurrected, ResurrectOutcome::NotDead];
            assert!(repeated.contains(&answer[0]) && repeated.contains(&expected), "{answer:?}");
            assert_eq!(self.model.jobs[&id].attempts, 0);
        }
    }

    async fn set_queue(&mut self) {
        let queue = QUEUES[self.rng.usize(..3)];
        let (paused, limit) = (self.rng.u8(..3) == 0, self.rng.u32(0..9));
        self.db.pause(queue, paused).await;
        self.db.limit(queue, limit).await;
        self.model.paused.insert(queue.to_owned(), paused);
        self.model.limits.insert(queue.to_owned(), limit);
    }

    async fn age(&mut self) {
        let Some(id) = self.any_job() else { return };
        self.db.age(id, HOUR * 2).await;
        self.model.age(id);
    }

    async fn recover(&mut self) {
        assert_eq!(self.db.recover(HOUR, 10_000).await, self.model.recover());
    }

    async fn scan(&mut self) {
        let scan = ZombieScan { lease: HOUR, suspicion: Duration::ZERO, batch: 10_000 };
        let moved = self.db.scan_with(scan).await;
        let moved: std::collections::HashMap<_, _> =
            moved.into_iter().map(|zombie| (zombie.job, zombie.reason.is_none())).collect();
        let expected = self.model.scan();
        assert_eq!(moved, expected);
    }

    async fn compare_all(&self) {
        self.db.check().await;
        let rows: usize = self.db.rows().await.iter().sum();
        assert_eq!(rows, self.model.jobs.len(), "no job is lost and none is made up");
        for (id, job) in &self.model.jobs {
            let found = self.db.detail(*id).await;
            assert_eq!((found.state, found.attempts), (job.state(), job.attempts), "{job:?}");
        }
        let totals = (self.model.succeeded, self.model.failed, self.model.retried);
        assert_eq!(self.db.totals().await, totals);
    }
}
