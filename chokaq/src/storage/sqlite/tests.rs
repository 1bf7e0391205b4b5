//! What is particular to this backend; the contract itself is tested for every backend by the conformance suite.

use std::{collections::HashMap, path::Path, time::Duration};

use super::*;

mod endings;
mod files;
mod operators;
mod sharing;

use crate::{
    model::{
        Beat, BeatOutcome, Due, EnqueueOutcome, FetchReply, FetchRequest, FetchedJob, Finish,
        FinishOutcome, JobDetail, JobId, LeaseId, MarkOutcome, NewJob, OnCrash, Outcome as Ending,
        Release, WorkerId,
    },
    storage::{OperatorStorage, ProducerStorage, WorkerStorage},
};

pub(super) fn memory() -> Arc<SqliteStorage> {
    SqliteStorage::open(Location::Memory, SqliteOptions::default()).unwrap()
}

pub(super) fn file(path: &Path) -> Arc<SqliteStorage> {
    SqliteStorage::open(Location::File(path.to_owned()), SqliteOptions::default()).unwrap()
}

pub(super) fn job(queue: &str) -> NewJob {
    NewJob {
        id: JobId::new(),
        queue: queue.into(),
        job_type: "test".into(),
        payload: "{}".into(),
        tags: None,
        idempotency_key: None,
        created_by: None,
        priority: 10,
        due: Due::Now,
        retries: 3,
        timeout: Duration::from_mins(15),
        max_age: Duration::from_hours(24),
        on_crash: OnCrash::DeadLetter,
    }
}

pub(super) fn request(take: usize) -> FetchRequest {
    FetchRequest {
        worker: WorkerId::new("worker-1"),
        lease: LeaseId::new(),
        is_repeat: false,
        queues: None,
        take,
        take_limited: take,
        max_bytes: 4_000_000,
        passed_over: HashMap::new(),
    }
}

pub(super) async fn fetch(storage: &SqliteStorage, take: usize) -> FetchReply {
    storage.fetch_next_batch(request(take)).await.unwrap()
}

pub(super) fn succeeded(job: &FetchedJob) -> Finish {
    Finish { lease: job.lease.clone(), outcome: Ending::Succeeded { output: None, note: None } }
}

/// Claims one job and starts it.
pub(super) async fn start(storage: &SqliteStorage) -> FetchedJob {
    let job = fetch(storage, 1).await.jobs.remove(0);
    let marked = storage.mark_as_processing(vec![job.lease.clone()]).await.unwrap();
    assert!(matches!(marked[0], MarkOutcome::Started { .. }));
    job
}

pub(super) async fn finish(
    storage: &SqliteStorage,
    job: &FetchedJob,
    outcome: Ending,
) -> FinishOutcome {
    let finish = Finish { lease: job.lease.clone(), outcome };
    storage.finalise(vec![finish]).await.unwrap().remove(0)
}

pub(super) async fn detail(storage: &SqliteStorage, id: JobId) -> JobDetail {
    storage.find_job(id).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_job_goes_from_the_queue_to_the_archive() {
    let storage = memory();
    let new = job("mail");
    let id = new.id;
    assert_eq!(storage.enqueue(vec![new]).await.unwrap(), [EnqueueOutcome::Stored]);
    let jobs = fetch(&storage, 10).await.jobs;
    assert_eq!(jobs.len(), 1);
    assert_eq!((jobs[0].lease.job, jobs[0].attempts), (id, 0));
    let leases = vec![jobs[0].lease.clone()];
    let marked = storage.mark_as_processing(leases.clone()).await.unwrap();
    assert!(matches!(marked[0], MarkOutcome::Started { attempt: 1, .. }));
    assert_eq!(storage.mark_as_processing(leases).await.unwrap(), marked);
    let beat = Beat { lease: jobs[0].lease.clone(), progress: Some((0.5, "half".into())) };
    assert_eq!(storage.keep_alive(vec![beat]).await.unwrap(), [BeatOutcome::Alive]);
    let done = storage.finalise(vec![succeeded(&jobs[0])]).await.unwrap();
    assert_eq!(done, [FinishOutcome::Done]);
    let again = storage.finalise(vec![succeeded(&jobs[0])]).await.unwrap();
    assert_eq!(again, [FinishOutcome::Done]);
    assert!(fetch(&storage, 10).await.jobs.is_empty());
}

#[tokio::test]
async fn a_released_row_is_claimable_at_once_and_its_old_lease_is_worth_nothing() {
    let storage = memory();
    storage.enqueue(vec![job("mail")]).await.unwrap();
    let first = fetch(&storage, 1).await.jobs.remove(0);
    let release = Release { lease: first.lease.clone(), delay: None, unknown_type: false };
    assert_eq!(storage.release(vec![release.clone()]).await.unwrap(), [true]);
    assert_eq!(storage.release(vec![release.clone()]).await.unwrap(), [true]);
    let second = fetch(&storage, 1).await.jobs.remove(0);
    assert_eq!(second.lease.job, first.lease.job);
    assert_eq!(storage.release(vec![release]).await.unwrap(), [false]);
    let marked = storage.mark_as_processing(vec![first.lease]).await.unwrap();
    assert_eq!(marked, [MarkOutcome::LeaseLost]);
}
