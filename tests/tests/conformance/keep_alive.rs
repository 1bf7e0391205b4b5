//! `keep_alive`: renews the leases of running rows, stores progress, brings cancels, and answers which leases are lost.

use chokaq::model::Beat;

use crate::prelude::*;

claims!(
    a_beat_renews_the_heartbeat,
    a_beat_after_a_long_silence_still_renews,
    a_beat_of_a_finished_job_says_that_the_lease_is_lost,
    a_batch_answers_in_its_order,
    an_empty_batch_is_answered,
    progress_is_kept_with_the_job,
    a_beat_without_progress_keeps_what_was_there,
    a_beat_brings_an_asked_cancel,
    a_beat_counts_no_attempt,
    a_thousand_beats_in_one_call_renew_all,
);

async fn a_beat_renews_the_heartbeat(db: &Db) {
    let lease = db.running(job()).await;
    db.age(lease.job(), SECOND * 30).await;
    let before = db.now().await;
    assert_eq!(db.beat(&lease).await, BeatOutcome::Alive);
    let beat = db.hot_ms(lease.job(), "HeartbeatUtc").await.expect("it beats");
    assert!(before.as_unix_ms() <= beat && beat <= db.now().await.as_unix_ms());
}

async fn a_beat_after_a_long_silence_still_renews(db: &Db) {
    let lease = db.running(job()).await;
    // Nobody rescued it: the lease is its worker's until somebody takes it.
    db.age(lease.job(), LEASE * 10).await;
    assert_eq!(db.beat(&lease).await, BeatOutcome::Alive);
    assert_eq!(db.scan().await, []);
    assert_eq!(db.hot(lease.job(), "SuspectUtc").await, None);
}

async fn a_beat_of_a_finished_job_says_that_the_lease_is_lost(db: &Db) {
    for outcome in every_outcome() {
        let lease = db.running(job()).await;
        db.done(&lease, outcome.clone()).await;
        let answer = db.changes_nothing("a late beat", db.beat(&lease)).await;
        assert_eq!(answer, BeatOutcome::LeaseLost, "{outcome:?}");
        if db.places(lease.job()).await == ["JobsHot"] {
            db.cancel(lease.job()).await;
        }
    }
}

async fn a_batch_answers_in_its_order(db: &Db) {
    use BeatOutcome::{Alive, CancelRequested, LeaseLost};

    db.enqueue_all(jobs(4, job)).await;
    let leases: Vec<_> = db.fetch("w", 4).await.into_iter().map(|job| job.lease).collect();
    // The last one stays Fetched.
    for lease in &leases[..3] {
        db.start(lease).await;
    }
    db.done(&leases[0], succeeded()).await;
    db.cancel(leases[2].job()).await;
    let beats = leases.iter().map(|lease| Beat { lease: lease.clone(), progress: None }).collect();
    let answers = db.storage.keep_alive(beats).await.expect("the storage answers");
    assert_eq!(answers, [LeaseLost, Alive, CancelRequested, LeaseLost]);
}

async fn an_empty_batch_is_answered(db: &Db) {
    assert_eq!(db.storage.keep_alive(vec![]).await.expect("the storage answers"), []);
}

async fn progress_is_kept_with_the_job(db: &Db) {
    let lease = db.running(job()).await;
    assert_eq!(db.detail(lease.job()).await.progress, None);
    for progress in [(0.0, "started"), (0.25, "a 'quarter' 🚀"), (1.0, "")] {
        db.beat_with(&lease, Some(progress)).await;
        let (share, note) = db.detail(lease.job()).await.progress.expect("progress is kept");
        assert!((share - progress.0).abs() < f64::EPSILON);
        assert_eq!(note, progress.1);
    }
}

async fn a_beat_without_progress_keeps_what_was_there(db: &Db) {
    let lease = db.running(job()).await;
    db.beat_with(&lease, Some((0.5, "half"))).await;
    db.beat(&lease).await;
    assert_eq!(db.detail(lease.job()).await.progress, Some((0.5, "half".to_owned())));
}

async fn a_beat_brings_an_asked_cancel(db: &Db) {
    let lease = db.running(job()).await;
    assert_eq!(db.beat(&lease).await, BeatOutcome::Alive);
    assert_eq!(db.cancel(lease.job()).await, CancelOutcome::Requested);
    for _ in 0..2 {
        assert_eq!(db.beat(&lease).await, BeatOutcome::CancelRequested);
    }
}

async fn a_beat_counts_no_attempt(db: &Db) {
    let lease = db.running(job()).await;
    let before = db.detail(lease.job()).await;
    for _ in 0..5 {
        db.beat(&lease).await;
    }
    let after = db.detail(lease.job()).await;
    assert_eq!((after.attempts, after.started_at), (1, before.started_at));
}

async fn a_thousand_beats_in_one_call_renew_all(db: &Db) {
    db.enqueue_all(jobs(1_000, job)).await;
    let leases: Vec<_> = db.fetch("w", 1_000).await.into_iter().map(|job| job.lease).collect();
    db.storage.mark_as_processing(leases.clone()).await.expect("the storage answers");
    let beats = leases.into_iter().map(|lease| Beat { lease, progress: None }).collect();
    let answers = db.storage.keep_alive(beats).await.expect("the storage answers");
    assert_eq!(answers, vec![BeatOutcome::Alive; 1_000]);
}
