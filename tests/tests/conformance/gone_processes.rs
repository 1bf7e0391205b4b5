//! I5: a process that is gone at any point leaves I1 and loses nothing.

use crate::prelude::*;

claims!(
    i5_what_was_committed_is_there_after_the_process_is_gone,
    i5_calls_that_are_abandoned_leave_no_job_behind,
    i5_rescue_brings_back_what_a_gone_process_held,
);

async fn i5_what_was_committed_is_there_after_the_process_is_gone(db: &Db) {
    let process = db.reopen().await;
    let success = process.running(job()).await;
    process.done(&success, succeeded()).await;
    let dead = process.buried(job()).await;
    let running = process.running(job()).await;
    process.enqueue(job()).await;
    let fetched = process.fetch_one("w").await;
    let pending = process.enqueue(job()).await;
    // Nothing is shut down in order: the process is simply not there any more.
    drop(process);
    assert_eq!(db.state(success.job()).await, JobState::Succeeded);
    assert_eq!(db.state(dead).await, JobState::Dead(FailureReason::FatalError));
    assert_eq!(db.state(running.job()).await, PROCESSING);
    assert_eq!(db.state(fetched.job()).await, FETCHED);
    assert_eq!(db.state(pending).await, PENDING);
    assert_eq!(db.rows().await, [3, 1, 1]);
}

async fn i5_calls_that_are_abandoned_leave_no_job_behind(db: &Db) {
    const JOBS: usize = 40;
    let batch = jobs(JOBS, job);
    let ids = ids(&batch);
    db.enqueue_all(batch).await;
    let calls: Vec<_> = (0..JOBS)
        .map(|n| {
            let calls = Calls::clone(db);
            tokio::spawn(async move { calls.fetch(&format!("w{n}"), 1).await })
        })
        .collect();
    // Some were not sent, some are under way, some are done: nobody hears of any.
    for call in &calls {
        call.abort();
    }
    // A call under way may still commit: rescue and work until every job is done, in a bounded number of rounds.
    for _ in 0..1_000 {
        for id in &ids {
            if db.state(*id).await == FETCHED {
                db.age(*id, Duration::from_hours(1)).await;
            }
        }
        db.recover(Duration::from_mins(10), JOBS).await;
        work(Calls::clone(db), "last".to_owned()).await;
        if db.rows().await[0] == 0 {
            break;
        }
    }
    assert_eq!(db.rows().await[0], 0, "every job came to its end");
    assert_eq!(db.rows().await.iter().sum::<usize>(), JOBS);
}

async fn i5_rescue_brings_back_what_a_gone_process_held(db: &Db) {
    let process = db.reopen().await;
    let running = process.running(NewJob { on_crash: OnCrash::Retry, ..job() }).await;
    let buried = process.running(job()).await;
    process.enqueue(job()).await;
    let fetched = process.fetch_one("w").await;
    drop(process);
    for lease in [&running, &buried, &fetched] {
        db.age(lease.job(), Duration::from_hours(1)).await;
    }
    assert_eq!(db.recover(Duration::from_mins(10), 100).await, 1);
    assert_eq!(db.scan().await, []);
    for lease in [&running, &buried] {
        db.age(lease.job(), SUSPICION).await;
    }
    assert_eq!(db.scan().await.len(), 2);
    assert_eq!(db.state(buried.job()).await, JobState::Dead(FailureReason::Zombie));
    let mut back = db.fetch_ids(10).await;
    back.sort_unstable();
    assert_eq!(back, [running.job(), fetched.job()]);
}
