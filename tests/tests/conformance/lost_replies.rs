//! Lost replies (I10): the write is committed, the answer is an error, and the same call again recognises its effect.

use chokaq::{Result, model::Beat};

use crate::prelude::*;

claims!(
    an_enqueue_whose_reply_was_lost_is_one_job,
    an_enqueue_behind_a_key_whose_reply_was_lost_is_no_duplicate,
    an_enqueue_whose_job_finished_before_the_repeat_does_not_run_again,
    a_batch_enqueue_whose_reply_was_lost_answers_as_the_first_would_have,
    a_fetch_whose_reply_was_lost_returns_the_same_rows,
    a_mark_whose_reply_was_lost_counts_one_attempt,
    a_beat_whose_reply_was_lost_keeps_the_lease,
    a_release_whose_reply_was_lost_was_one_release,
    a_success_whose_reply_was_lost_is_one_success,
    a_death_whose_reply_was_lost_is_one_death,
    a_retry_whose_reply_was_lost_is_one_retry,
    a_snooze_whose_reply_was_lost_gives_one_attempt_back,
    an_expired_lifetime_whose_reply_was_lost_is_one_death,
    a_retry_of_a_cancelled_job_whose_reply_was_lost_doubles_nothing,
    a_retry_that_was_fetched_again_before_the_repeat_is_left_alone,
    a_cancel_whose_reply_was_lost_is_one_cancel,
    a_resurrect_whose_reply_was_lost_is_one_job,
    a_rescue_whose_reply_was_lost_moves_each_row_once,
    a_recovery_whose_reply_was_lost_loses_nothing,
    replies_lost_again_and_again_double_nothing,
    a_lost_reply_is_a_transient_error,
    replies_lost_among_many_calls_at_once_lose_and_double_nothing,
);

/// Makes the call lose its reply, and holds the error to be transient.
async fn lost<T>(db: &Db, call: impl Future<Output = Result<T>>) {
    db.lose_replies(1);
    let Err(error) = call.await else { panic!("the reply was to be lost") };
    assert!(error.is_transient(), "{error}");
}

async fn a_lost_reply_is_a_transient_error(db: &Db) {
    lost(db, db.storage.enqueue(vec![job()])).await;
    // The write was committed, and the next call gets its answer.
    assert_eq!(db.rows().await, [1, 0, 0]);
    db.enqueue(job()).await;
}

async fn an_enqueue_whose_reply_was_lost_is_one_job(db: &Db) {
    let new = job();
    lost(db, db.storage.enqueue(vec![new.clone()])).await;
    db.changes_nothing("the repeat", db.enqueue(new)).await;
    assert_eq!(db.rows().await, [1, 0, 0]);
}

async fn an_enqueue_behind_a_key_whose_reply_was_lost_is_no_duplicate(db: &Db) {
    let new = keyed("k");
    lost(db, db.storage.enqueue(vec![new.clone()])).await;
    assert_eq!(db.try_enqueue(new).await, EnqueueOutcome::Stored);
}

async fn an_enqueue_whose_job_finished_before_the_repeat_does_not_run_again(db: &Db) {
    for outcome in [succeeded(), dead(FailureReason::FatalError)] {
        let new = keyed("k");
        lost(db, db.storage.enqueue(vec![new.clone()])).await;
        let lease = db.start_one("w").await;
        db.done(&lease, outcome).await;
        db.changes_nothing("the repeat", db.enqueue(new)).await;
    }
    assert_eq!(db.rows().await, [0, 1, 1]);
}

async fn a_batch_enqueue_whose_reply_was_lost_answers_as_the_first_would_have(db: &Db) {
    let of = db.enqueue(keyed("held")).await;
    let batch = vec![job(), keyed("held"), keyed("new"), keyed("new")];
    let new = batch[2].id;
    lost(db, db.storage.enqueue(batch.clone())).await;
    let answers = db.changes_nothing("the repeat", db.enqueue_all(batch)).await;
    let (stored, dup) = (EnqueueOutcome::Stored, |of| EnqueueOutcome::Duplicate { of });
    assert_eq!(answers, [stored, dup(of), stored, dup(new)]);
}

async fn a_fetch_whose_reply_was_lost_returns_the_same_rows(db: &Db) {
    let batch = jobs(5, job);
    let expected = ids(&batch);
    db.enqueue_all(batch).await;
    let request = request("w", 3);
    lost(db, db.storage.fetch_next_batch(request.clone())).await;
    assert_eq!(db.active("default").await, 3);
    let repeat = FetchRequest { is_repeat: true, ..request };
    let fetched = db.changes_nothing("the repeat", db.fetch_with(repeat)).await;
    let got: Vec<_> = fetched.iter().map(|job| job.lease.job()).collect();
    assert_eq!(got, expected[..3]);
    for job in &fetched {
        assert_eq!(db.start(&job.lease).await, 1);
    }
}

async fn a_mark_whose_reply_was_lost_counts_one_attempt(db: &Db) {
    db.enqueue(job()).await;
    let lease = db.fetch_one("w").await;
    lost(db, db.storage.mark_as_processing(vec![lease.clone()])).await;
    assert_eq!(db.start(&lease).await, 1);
    assert_eq!(db.detail(lease.job()).await.attempts, 1);
    db.done(&lease, succeeded()).await;
}

async fn a_beat_whose_reply_was_lost_keeps_the_lease(db: &Db) {
    let lease = db.running(job()).await;
    let beat = Beat { lease: lease.clone(), progress: Some((0.5, "half".to_owned())) };
    lost(db, db.storage.keep_alive(vec![beat])).await;
    assert_eq!(db.beat(&lease).await, BeatOutcome::Alive);
    assert_eq!(db.detail(lease.job()).await.progress, Some((0.5, "half".to_owned())));
}

async fn a_release_whose_reply_was_lost_was_one_release(db: &Db) {
    let id = db.enqueue(job()).await;
    let lease = db.fetch_one("w").await;
    lost(db, db.storage.release(vec![release_of(&lease)])).await;
    assert!(db.changes_nothing("the repeat", db.release(&lease)).await);
    assert_eq!((db.state(id).await, db.detail(id).await.attempts), (PENDING, 0));
}

/// Loses the reply to a finish, and holds the repeat to `expected` and to changing nothing.
async fn lost_finish(db: &Db, lease: &Lease, outcome: Outcome, expected: FinishOutcome) {
    lost(db, db.storage.finalise(vec![finish_of(lease, outcome.clone())])).await;
    let again = db.changes_nothing("the repeat", db.finish(lease, outcome)).await;
    assert_eq!(again, expected);
}

async fn a_success_whose_reply_was_lost_is_one_success(db: &Db) {
    let lease = db.running(job()).await;
    let outcome = Outcome::Succeeded { output: Some("7".to_owned()), note: None };
    lost_finish(db, &lease, outcome, FinishOutcome::Done).await;
    assert_eq!((db.rows().await, db.totals().await), ([0, 1, 0], (1, 0, 0)));
}

async fn a_death_whose_reply_was_lost_is_one_death(db: &Db) {
    let lease = db.running(job()).await;
    lost_finish(db, &lease, dead(FailureReason::Timeout), FinishOutcome::Done).await;
    assert_eq!((db.rows().await, db.totals().await), ([0, 0, 1], (0, 1, 0)));
    assert_eq!(db.detail(lease.job()).await.errors.len(), 1);
}

async fn a_retry_whose_reply_was_lost_is_one_retry(db: &Db) {
    let lease = db.running(job()).await;
    lost_finish(db, &lease, retry(SECOND * 60), FinishOutcome::Done).await;
    assert_eq!((db.rows().await, db.totals().await), ([1, 0, 0], (0, 0, 1)));
    let detail = db.detail(lease.job()).await;
    assert_eq!((detail.attempts, detail.errors.len()), (1, 1));
}

async fn a_snooze_whose_reply_was_lost_gives_one_attempt_back(db: &Db) {
    let first = db.running(job()).await;
    db.done(&first, retry(Duration::ZERO)).await;
    let lease = db.start_one("w").await;
    lost_finish(db, &lease, snooze(SECOND * 60), FinishOutcome::Done).await;
    assert_eq!(db.detail(lease.job()).await.attempts, 1);
}

async fn an_expired_lifetime_whose_reply_was_lost_is_one_death(db: &Db) {
    let lease = db.running(NewJob { max_age: SECOND, ..job() }).await;
    lost_finish(db, &lease, retry(SECOND * 60), FinishOutcome::LifetimeExpired).await;
    assert_eq!((db.rows().await, db.totals().await), ([0, 0, 1], (0, 1, 0)));
}

async fn a_retry_of_a_cancelled_job_whose_reply_was_lost_doubles_nothing(db: &Db) {
    for outcome in [retry(Duration::ZERO), snooze(Duration::ZERO)] {
        let lease = db.running(job()).await;
        db.cancel(lease.job()).await;
        lost_finish(db, &lease, outcome, FinishOutcome::Cancelled).await;
        if db.places(lease.job()).await == ["JobsHot"] {
            db.cancel(lease.job()).await;
        }
    }
    assert_eq!(db.rows().await, [0, 0, 2]);
}

async fn a_retry_that_was_fetched_again_before_the_repeat_is_left_alone(db: &Db) {
    for outcome in [retry(Duration::ZERO), snooze(Duration::ZERO)] {
        let lease = db.running(job()).await;
        lost(db, db.storage.finalise(vec![finish_of(&lease, outcome.clone())])).await;
        let next = db.start_one("next").await;
        db.changes_nothing("the repeat", db.finish(&lease, outcome)).await;
        assert_eq!(db.beat(&next).await, BeatOutcome::Alive);
        db.done(&next, succeeded()).await;
    }
}

async fn a_cancel_whose_reply_was_lost_is_one_cancel(db: &Db) {
    let pending = db.enqueue(job()).await;
    let cancel = |id| db.storage.cancel(vec![id], "not wanted".to_owned());
    lost(db, cancel(pending)).await;
    db.changes_nothing("the repeat", db.cancel(pending)).await;
    assert_eq!(db.totals().await, (0, 1, 0));
    let running = db.running(job()).await;
    lost(db, cancel(running.job())).await;
    assert_eq!(db.cancel(running.job()).await, CancelOutcome::Requested);
    assert_eq!(db.beat(&running).await, BeatOutcome::CancelRequested);
}

async fn a_resurrect_whose_reply_was_lost_is_one_job(db: &Db) {
    let id = db.buried(job()).await;
    lost(db, db.storage.resurrect(vec![id], ResurrectEdits::default())).await;
    db.changes_nothing("the repeat", db.resurrect(id)).await;
    assert_eq!((db.rows().await, db.fetch_ids(10).await), ([1, 0, 0], vec![id]));
}

async fn a_rescue_whose_reply_was_lost_moves_each_row_once(db: &Db) {
    let lease = db.running(job()).await;
    db.age(lease.job(), LEASE + SECOND).await;
    lost(db, db.storage.archive_zombies(scan())).await;
    assert_eq!(db.state(lease.job()).await, PROCESSING);
    db.age(lease.job(), SUSPICION).await;
    lost(db, db.storage.archive_zombies(scan())).await;
    db.changes_nothing("the repeat", db.scan()).await;
    assert_eq!((db.rows().await, db.totals().await), ([0, 0, 1], (0, 1, 0)));
}

async fn a_recovery_whose_reply_was_lost_loses_nothing(db: &Db) {
    let id = db.enqueue(job()).await;
    db.fetch_one("w").await;
    db.age(id, SECOND * 60).await;
    lost(db, db.storage.recover_abandoned(SECOND * 30, 10)).await;
    assert_eq!(db.recover(SECOND * 30, 10).await, 0);
    assert_eq!(db.fetch_ids(10).await, [id]);
}

async fn replies_lost_again_and_again_double_nothing(db: &Db) {
    let lease = db.running(job()).await;
    let outcome = retry(SECOND * 60);
    db.lose_replies(3);
    for _ in 0..3 {
        let call = db.storage.finalise(vec![finish_of(&lease, outcome.clone())]);
        assert!(call.await.expect_err("the reply is lost").is_transient());
    }
    db.done(&lease, outcome).await;
    let detail = db.detail(lease.job()).await;
    assert_eq!((detail.attempts, detail.errors.len()), (1, 1));
    assert_eq!(db.totals().await, (0, 0, 1));
}

async fn replies_lost_among_many_calls_at_once_lose_and_double_nothing(db: &Db) {
    db.enqueue_all(jobs(60, job)).await;
    let leases: Vec<_> = db.fetch("w", 60).await.into_iter().map(|job| job.lease).collect();
    db.storage.mark_as_processing(leases.clone()).await.expect("the storage answers");
    db.lose_replies(20);
    let mut tasks = Vec::new();
    for lease in leases {
        let calls = Calls::clone(db);
        tasks.push(tokio::spawn(async move {
            let mut lost = 0;
            // Whoever's reply was lost calls again; which calls those are is up to the backend.
            loop {
                let call = calls.storage.finalise(vec![finish_of(&lease, succeeded())]).await;
                match call {
                    Ok(answers) => {
                        assert_eq!(answers, [FinishOutcome::Done]);
                        return lost;
                    }
                    Err(error) => assert!(error.is_transient(), "{error}"),
                }
                lost += 1;
            }
        }));
    }
    let mut lost = 0;
    for task in tasks {
        lost += task.await.expect("no call panics");
    }
    assert_eq!(lost, 20);
    assert_eq!((db.rows().await, db.totals().await), ([0, 60, 0], (60, 0, 0)));
}
