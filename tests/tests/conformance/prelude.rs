//! What every module of claims needs.

pub(crate) use std::time::Duration;

pub(crate) use chokaq::model::{
    AttemptError, BeatOutcome, CancelOutcome, Due, EnqueueOutcome, FailureReason, FetchRequest,
    FinishOutcome, JobId, JobState, JobStatus, Lease, LeaseId, MarkOutcome, NewJob, OnCrash,
    Outcome, Purge, QueueSettings, Release, ResurrectEdits, ResurrectOutcome, Timestamp, WorkerId,
    ZombieScan,
};

pub(crate) use crate::{
    calls::{
        Calls, LEASE, SECOND, SUSPICION, dead, error, every_outcome, finish_of, job, job_on, keyed,
        release_of, request, retry, scan, snooze, succeeded,
    },
    harness::Db,
};

pub(crate) const PENDING: JobState = JobState::Active(JobStatus::Pending);
pub(crate) const FETCHED: JobState = JobState::Active(JobStatus::Fetched);
pub(crate) const PROCESSING: JobState = JobState::Active(JobStatus::Processing);

/// `n` jobs, in one order of creation.
pub(crate) fn jobs(n: usize, make: impl Fn() -> NewJob) -> Vec<NewJob> {
    (0..n).map(|_| make()).collect()
}

pub(crate) fn ids(jobs: &[NewJob]) -> Vec<JobId> {
    jobs.iter().map(|job| job.id).collect()
}

/// Fetches, starts and ends what it gets, in every way in turn, until nothing is left.
pub(crate) async fn work(calls: Calls, worker: String) {
    for turn in 0.. {
        let fetched = calls.fetch(&worker, 5).await;
        if fetched.is_empty() {
            return;
        }
        for (n, job) in fetched.into_iter().enumerate() {
            calls.start(&job.lease).await;
            let outcome = match (turn + n) % 4 {
                0 => dead(FailureReason::FatalError),
                1 if job.attempts == 0 => retry(Duration::ZERO),
                _ => succeeded(),
            };
            calls.done(&job.lease, outcome).await;
        }
    }
}
