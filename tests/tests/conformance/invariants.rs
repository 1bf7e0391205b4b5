//! The invariants I1 to I8 and I10 of the design, by name; I5 stands in `gone_processes`, and I9 is held over
//! the statements, in `sql_files`.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::prelude::*;

claims!(
    i1_a_job_is_in_one_place_after_every_transition,
    i1_a_job_is_in_one_place_at_every_commit_of_others,
    i2_a_mark_says_no_in_every_state_but_its_own,
    i3_a_worker_that_lost_its_lease_changes_nothing,
    i4_an_attempt_is_counted_at_the_mark_and_given_back_by_a_snooze,
    i6_totals_never_go_down,
    i7_no_order_of_calls_exceeds_a_limit,
    i8_a_cancel_does_not_stop_any_outcome,
    i8_an_error_while_finalising_is_not_a_failure_of_the_job,
    i10_a_life_whose_every_reply_is_lost_is_one_life,
);

async fn stands_in(db: &Db, job: JobId, place: &str) {
    assert_eq!(db.places(job).await, [place]);
    db.check().await;
}

async fn i1_a_job_is_in_one_place_after_every_transition(db: &Db) {
    let id = db.enqueue(keyed("k")).await;
    stands_in(db, id, "JobsHot").await;
    let lease = db.fetch_one("w").await;
    db.release(&lease).await;
    stands_in(db, id, "JobsHot").await;
    for outcome in [snooze(Duration::ZERO), retry(Duration::ZERO)] {
        let lease = db.start_one("w").await;
        stands_in(db, id, "JobsHot").await;
        db.done(&lease, outcome).await;
        stands_in(db, id, "JobsHot").await;
    }
    let lease = db.start_one("w").await;
    db.done(&lease, dead(FailureReason::FatalError)).await;
    stands_in(db, id, "JobsDLQ").await;
    db.resurrect(id).await;
    stands_in(db, id, "JobsHot").await;
    db.cancel(id).await;
    stands_in(db, id, "JobsDLQ").await;
    db.resurrect(id).await;
    let lease = db.start_one("w").await;
    stands_in(db, id, "JobsHot").await;
    db.done(&lease, succeeded()).await;
    stands_in(db, id, "JobsArchive").await;
}

async fn i1_a_job_is_in_one_place_at_every_commit_of_others(db: &Db) {
    const JOBS: usize = 200;
    db.enqueue_all(jobs(JOBS, job)).await;
    let stop = Arc::new(AtomicBool::new(false));
    let (observer, stopped) = (db.clone(), stop.clone());
    let observing = tokio::spawn(async move {
        let mut snapshots = 0;
        while !stopped.load(Ordering::SeqCst) {
            let rows: usize = observer.rows().await.iter().sum();
            assert_eq!(rows, JOBS, "a snapshot holds every job, once");
            observer.check_each_job_is_in_one_place().await;
            snapshots += 1;
            tokio::task::yield_now().await;
        }
        snapshots
    });
    let workers: Vec<_> =
        (0..4).map(|n| tokio::spawn(work(Calls::clone(db), format!("w{n}")))).collect();
    for worker in workers {
        worker.await.expect("a worker does not panic");
    }
    stop.store(true, Ordering::SeqCst);
    assert!(observing.await.expect("I1 holds") > 0);
    // A worker may have stopped while another still held rows that it then put back.
    work(Calls::clone(db), "last".to_owned()).await;
    assert_eq!(db.rows().await[0], 0);
}

async fn i2_a_mark_says_no_in_every_state_but_its_own(db: &Db) {
    db.enqueue(job()).await;
    let stale = db.fetch_one("w").await;
    db.release(&stale).await;
    let no = async |what: &str| {
        let answer = db.changes_nothing(what, db.mark(&stale)).await;
        assert_eq!(answer, MarkOutcome::LeaseLost, "{what}");
    };
    no("pending").await;
    let lease = db.fetch_one("w").await;
    no("fetched by another lease").await;
    db.start(&lease).await;
    no("running under another lease").await;
    db.done(&lease, dead(FailureReason::FatalError)).await;
    no("dead").await;
    db.resurrect(stale.job()).await;
    no("resurrected").await;
    let lease = db.start_one("w").await;
    db.done(&lease, succeeded()).await;
    no("archived").await;
}

async fn i3_a_worker_that_lost_its_lease_changes_nothing(db: &Db) {
    let stale = db.running(NewJob { on_crash: OnCrash::Retry, ..job() }).await;
    db.age(stale.job(), LEASE + SECOND).await;
    db.scan().await;
    db.age(stale.job(), SUSPICION).await;
    assert_eq!(db.scan().await.len(), 1);
    let owner = db.start_one("owner").await;
    let calls = async {
        assert_eq!(db.mark(&stale).await, MarkOutcome::LeaseLost);
        assert_eq!(db.beat_with(&stale, Some((0.9, "mine"))).await, BeatOutcome::LeaseLost);
        assert!(!db.release(&stale).await);
        for outcome in every_outcome() {
            assert_eq!(db.finish(&stale, outcome).await, FinishOutcome::LeaseLost);
        }
    };
    db.changes_nothing("a worker that lost its lease", calls).await;
    db.done(&owner, succeeded()).await;
}

async fn i4_an_attempt_is_counted_at_the_mark_and_given_back_by_a_snooze(db: &Db) {
    let id = db.enqueue(job()).await;
    let attempts = async || db.detail(id).await.attempts;
    for _ in 0..3 {
        let lease = db.fetch_one("w").await;
        assert_eq!(attempts().await, 0, "not at the fetch");
        db.release(&lease).await;
        assert_eq!(attempts().await, 0, "nor by a release");
        let lease = db.start_one("w").await;
        assert_eq!(attempts().await, 1, "at the mark");
        db.done(&lease, snooze(Duration::ZERO)).await;
        assert_eq!(attempts().await, 0, "given back by the snooze");
    }
    for attempt in 1..=3 {
        let lease = db.start_one("w").await;
        db.done(&lease, retry(Duration::ZERO)).await;
        assert_eq!(attempts().await, attempt, "kept by a retry");
    }
}

async fn i6_totals_never_go_down(db: &Db) {
    let mut before = db.totals().await;
    let mut hold = async |what: &str| {
        let after = db.totals().await;
        let kept = before.0 <= after.0 && before.1 <= after.1 && before.2 <= after.2;
        assert!(kept, "{what}: {before:?} became {after:?}");
        before = after;
    };
    let id = db.buried(keyed("k")).await;
    hold("a death").await;
    db.resurrect(id).await;
    hold("a resurrect").await;
    let lease = db.start_one("w").await;
    db.done(&lease, retry(Duration::ZERO)).await;
    hold("a retry").await;
    db.finish(&lease, retry(Duration::ZERO)).await;
    hold("a repeated retry").await;
    db.cancel(id).await;
    hold("a cancel").await;
    let queue = Some("elsewhere".to_owned());
    db.resurrect_with(id, ResurrectEdits { queue, ..ResurrectEdits::default() }).await;
    hold("a resurrect to another queue").await;
    let lease = db.start_one("w").await;
    db.done(&lease, succeeded()).await;
    db.finish(&lease, succeeded()).await;
    hold("a success, twice").await;
    assert_eq!(before, (1, 2, 1));
}

async fn i7_no_order_of_calls_exceeds_a_limit(db: &Db) {
    let mut random = fastrand::Rng::with_seed(7);
    db.enqueue_all(jobs(60, || job_on("limited"))).await;
    let mut held: Vec<Lease> = Vec::new();
    for _ in 0..150 {
        let limit = random.u32(0..5);
        db.limit("limited", limit).await;
        let before = held.len();
        held.extend(db.fetch("w", random.usize(0..4)).await.into_iter().map(|job| job.lease));
        let room = usize::try_from(limit).expect("a small number").saturating_sub(before);
        assert!(held.len() - before <= room, "{} of {limit} with {before} held", held.len());
        if !held.is_empty() && random.bool() {
            let lease = held.swap_remove(random.usize(..held.len()));
            if random.bool() {
                db.release(&lease).await;
            } else {
                db.start(&lease).await;
                db.done(&lease, retry(Duration::ZERO)).await;
            }
        }
        assert_eq!(db.active("limited").await, held.len() as u64);
    }
}

async fn i8_a_cancel_does_not_stop_any_outcome(db: &Db) {
    for outcome in every_outcome() {
        let lease = db.running(job()).await;
        assert_eq!(db.cancel(lease.job()).await, CancelOutcome::Requested);
        let goes_back = matches!(outcome, Outcome::Retry { .. } | Outcome::Snooze { .. });
        let expected = if goes_back { FinishOutcome::Cancelled } else { FinishOutcome::Done };
        assert_eq!(db.finish(&lease, outcome).await, expected);
    }
}

async fn i8_an_error_while_finalising_is_not_a_failure_of_the_job(db: &Db) {
    let lease = db.running(job()).await;
    db.lose_replies(1);
    let lost = db.storage.finalise(vec![finish_of(&lease, succeeded())]).await;
    assert!(lost.expect_err("the reply is lost").is_transient());
    db.done(&lease, succeeded()).await;
    let detail = db.detail(lease.job()).await;
    assert_eq!((detail.state, detail.attempts), (JobState::Succeeded, 1));
    assert!(detail.errors.is_empty());
}

/// Calls once with a lost reply and once more.
macro_rules! twice {
    ($db:expr, $lost:expr, $again:expr) => {{
        $db.lose_replies(1);
        assert!($lost.await.is_err_and(|error| error.is_transient()));
        $again.await.expect("the repeat is answered")
    }};
}

async fn i10_a_life_whose_every_reply_is_lost_is_one_life(db: &Db) {
    let storage = &db.storage;
    let new = keyed("k");
    let stored = vec![new.clone()];
    let answer = twice!(db, storage.enqueue(stored.clone()), storage.enqueue(stored));
    assert_eq!(answer, [EnqueueOutcome::Stored]);
    for (n, outcome) in
        [snooze(Duration::ZERO), retry(Duration::ZERO), succeeded()].iter().enumerate()
    {
        let first = request("w", 1);
        let repeat = FetchRequest { is_repeat: true, ..first.clone() };
        let fetched = twice!(db, storage.fetch_next_batch(first), storage.fetch_next_batch(repeat));
        let leases = vec![fetched.jobs[0].lease.clone()];
        let mark = || storage.mark_as_processing(leases.clone());
        let marked = twice!(db, mark(), mark());
        let expected = if n == 2 { 2 } else { 1 };
        assert!(
            matches!(marked[..], [MarkOutcome::Started { attempt, .. }] if attempt == expected)
        );
        let finish = || storage.finalise(vec![finish_of(&leases[0], outcome.clone())]);
        assert_eq!(twice!(db, finish(), finish()), [FinishOutcome::Done]);
    }
    assert_eq!((db.rows().await, db.totals().await), ([0, 1, 0], (1, 0, 1)));
}
