//! Several processes on one database: disjoint claims, nothing lost.

use std::sync::{Arc, Mutex};

use crate::prelude::*;

claims!(
    two_processes_claim_disjoint_rows_and_all_of_them,
    two_processes_run_every_job_exactly_once,
    a_job_enqueued_by_one_process_is_run_by_the_other,
    many_processes_fetching_one_row_give_it_to_one,
);

const PATIENCE: usize = 20_000;

async fn two_processes_claim_disjoint_rows_and_all_of_them(db: &Db) {
    let batch: Vec<_> = (0..2_000).map(|n| job_on(&format!("queue-{}", n % 3))).collect();
    let mut expected = ids(&batch);
    db.enqueue_all(batch).await;
    let other = db.reopen().await;
    let claimed = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for n in 0..16 {
        let process = if n % 2 == 0 { Calls::clone(db) } else { other.clone() };
        let claimed = claimed.clone();
        tasks.push(tokio::spawn(async move {
            for _ in 0..PATIENCE {
                let fetched = process.fetch(&format!("w{n}"), 16).await;
                let mut claimed = claimed.lock().expect("nobody panicked");
                claimed.extend(fetched.into_iter().map(|job| job.lease.job()));
                if claimed.len() >= 2_000 {
                    return;
                }
            }
            panic!("rows were left");
        }));
    }
    for task in tasks {
        task.await.expect("a fetcher does not panic");
    }
    let mut claimed = claimed.lock().expect("nobody panicked").clone();
    claimed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(claimed, expected, "each row was claimed, and once");
}

async fn two_processes_run_every_job_exactly_once(db: &Db) {
    const JOBS: usize = 300;
    db.enqueue_all(jobs(JOBS, job)).await;
    let other = db.reopen().await;
    let mut tasks = Vec::new();
    for n in 0..6 {
        let process = if n % 2 == 0 { Calls::clone(db) } else { other.clone() };
        tasks.push(tokio::spawn(async move {
            let mut ran = Vec::new();
            loop {
                let fetched = process.fetch(&format!("w{n}"), 7).await;
                if fetched.is_empty() {
                    return ran;
                }
                for job in fetched {
                    process.start(&job.lease).await;
                    process.done(&job.lease, succeeded()).await;
                    ran.push(job.lease.job());
                }
            }
        }));
    }
    let mut ran = 0;
    for task in tasks {
        ran += task.await.expect("a worker does not panic").len();
    }
    assert_eq!((ran, db.rows().await), (JOBS, [0, JOBS, 0]));
    assert_eq!(db.totals().await, (300, 0, 0));
}

async fn a_job_enqueued_by_one_process_is_run_by_the_other(db: &Db) {
    let other = db.reopen().await;
    for _ in 0..5 {
        let id = db.enqueue(job()).await;
        let lease = other.start_one("other").await;
        assert_eq!(lease.job(), id);
        assert_eq!(db.state(id).await, PROCESSING);
        other.done(&lease, succeeded()).await;
        assert_eq!(db.state(id).await, JobState::Succeeded);
    }
}

async fn many_processes_fetching_one_row_give_it_to_one(db: &Db) {
    let processes = [Calls::clone(db), db.reopen().await, db.reopen().await];
    for _ in 0..10 {
        let id = db.enqueue(job()).await;
        let mut tasks = Vec::new();
        for n in 0..12 {
            let process = processes[n % 3].clone();
            tasks.push(tokio::spawn(async move { process.fetch(&format!("w{n}"), 5).await }));
        }
        let mut got = Vec::new();
        for task in tasks {
            let fetched = task.await.expect("a fetcher does not panic");
            got.extend(fetched.into_iter().map(|job| job.lease.job()));
        }
        assert_eq!(got, [id]);
    }
}
