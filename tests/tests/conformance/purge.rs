//! purge: what is old goes, the oldest first, and nothing else changes.

use crate::prelude::*;

claims!(
    old_successes_go_and_young_ones_stay,
    old_dead_jobs_go_and_young_ones_stay,
    old_buckets_go_and_young_ones_stay,
    what_is_active_is_never_purged,
    a_batch_takes_the_oldest_and_no_more,
    a_purge_touches_nothing_but_its_own_table,
    a_purged_job_is_not_known_any_more,
    a_purge_whose_reply_was_lost_can_be_repeated,
    a_purge_beside_work_loses_and_doubles_nothing,
);

const HOUR: Duration = Duration::from_hours(1);
const ALL: usize = 10_000;

async fn archived(db: &Db) -> JobId {
    let lease = db.running(job()).await;
    db.done(&lease, succeeded()).await;
    lease.job()
}

/// Three jobs of each kind, of which the first two are two and three hours old.
async fn old_and_young(db: &Db, make: impl AsyncFn() -> JobId) -> [JobId; 3] {
    db.will_forget();
    let jobs = [make().await, make().await, make().await];
    db.age(jobs[0], 3 * HOUR).await;
    db.age(jobs[1], 2 * HOUR).await;
    jobs
}

async fn known(db: &Db, jobs: &[JobId]) -> Vec<bool> {
    let mut known = Vec::new();
    for job in jobs {
        known.push(db.storage.find_job(*job).await.expect("the storage answers").is_some());
    }
    known
}

async fn old_successes_go_and_young_ones_stay(db: &Db) {
    let jobs = old_and_young(db, async || archived(db).await).await;
    assert_eq!(db.purge(Purge::Archive, 4 * HOUR, ALL).await, 0);
    assert_eq!(db.purge(Purge::Archive, HOUR, ALL).await, 2);
    assert_eq!(known(db, &jobs).await, [false, false, true]);
    assert_eq!(db.purge(Purge::Archive, HOUR, ALL).await, 0);
}

async fn old_dead_jobs_go_and_young_ones_stay(db: &Db) {
    let jobs = old_and_young(db, async || db.buried(job()).await).await;
    assert_eq!(db.purge(Purge::DeadLetters, 4 * HOUR, ALL).await, 0);
    assert_eq!(db.purge(Purge::DeadLetters, HOUR, ALL).await, 2);
    assert_eq!(known(db, &jobs).await, [false, false, true]);
    assert_eq!(db.purge(Purge::DeadLetters, HOUR, ALL).await, 0);
}

async fn old_buckets_go_and_young_ones_stay(db: &Db) {
    db.will_forget();
    archived(db).await;
    db.buried(job_on("other")).await;
    db.age_buckets(2 * HOUR).await;
    archived(db).await;
    assert_eq!(db.purge(Purge::Buckets, 3 * HOUR, ALL).await, 0);
    assert!(db.purge(Purge::Buckets, HOUR, ALL).await >= 2);
    let points = db.storage.get_throughput_stats(24 * HOUR).await.expect("the storage answers");
    assert_eq!(points.iter().map(|point| point.succeeded + point.failed).sum::<u64>(), 1);
}

async fn what_is_active_is_never_purged(db: &Db) {
    db.will_forget();
    let running = db.running(job()).await;
    let fetched = db.enqueue(job()).await;
    db.fetch_one("w").await;
    let pending = db.enqueue(job()).await;
    let jobs = [running.job(), fetched, pending];
    for job in jobs {
        db.age(job, 100 * HOUR).await;
    }
    let call = async {
        for what in Purge::ALL {
            assert_eq!(db.purge(what, Duration::ZERO, ALL).await, 0);
        }
    };
    db.changes_nothing("a purge of active jobs", call).await;
}

async fn a_batch_takes_the_oldest_and_no_more(db: &Db) {
    db.will_forget();
    let mut dead = Vec::new();
    for age in [5, 4, 3, 2] {
        let id = db.buried(job()).await;
        db.age(id, age * HOUR).await;
        dead.push(id);
    }
    assert_eq!(db.purge(Purge::DeadLetters, HOUR, 0).await, 0);
    assert_eq!(db.purge(Purge::DeadLetters, HOUR, 1).await, 1);
    assert_eq!(known(db, &dead).await, [false, true, true, true]);
    assert_eq!(db.purge(Purge::DeadLetters, HOUR, 2).await, 2);
    assert_eq!(known(db, &dead).await, [false, false, false, true]);
    assert_eq!(db.purge(Purge::DeadLetters, HOUR, 2).await, 1);
}

async fn a_purge_touches_nothing_but_its_own_table(db: &Db) {
    db.will_forget();
    let (success, dead) = (archived(db).await, db.buried(job()).await);
    db.age(success, 2 * HOUR).await;
    db.age(dead, 2 * HOUR).await;
    db.age_buckets(2 * HOUR).await;
    let totals = db.totals().await;
    let stats = db.queue_stats("default").await;
    // In a dump: JobsHot, JobsArchive, JobsDLQ, StatsSummary, MetricBuckets, Queues.
    for (what, table) in [(Purge::Archive, 1), (Purge::DeadLetters, 2), (Purge::Buckets, 4)] {
        let mut before = db.dump().await;
        assert!(db.purge(what, HOUR, ALL).await > 0, "{what}");
        before[table].clear();
        assert_eq!(before, db.dump().await, "{what}");
    }
    assert_eq!(db.totals().await, totals);
    let after = db.queue_stats("default").await;
    assert_eq!(
        (after.succeeded_total, after.failed_total, after.last_activity),
        (stats.succeeded_total, stats.failed_total, stats.last_activity)
    );
}

async fn a_purged_job_is_not_known_any_more(db: &Db) {
    let jobs = old_and_young(db, async || db.buried(keyed("k")).await).await;
    db.purge(Purge::DeadLetters, HOUR, ALL).await;
    assert!(db.storage.find_job(jobs[0]).await.expect("the storage answers").is_none());
    assert_eq!(db.resurrect(jobs[0]).await, ResurrectOutcome::NotDead);
    assert_eq!(db.cancel(jobs[0]).await, CancelOutcome::NotActive);
    assert_eq!(db.resurrect(jobs[2]).await, ResurrectOutcome::Resurrected);
}

async fn a_purge_whose_reply_was_lost_can_be_repeated(db: &Db) {
    let jobs = old_and_young(db, async || archived(db).await).await;
    let totals = db.totals().await;
    db.lose_replies(1);
    let lost = db.storage.purge(Purge::Archive, HOUR, 1).await;
    assert!(lost.expect_err("the reply is lost").is_transient());
    assert_eq!(known(db, &jobs).await, [false, true, true]);
    // It goes on where the first run ended.
    assert_eq!(db.purge(Purge::Archive, HOUR, 1).await, 1);
    assert_eq!(known(db, &jobs).await, [false, false, true]);
    assert_eq!(db.totals().await, totals);
}

async fn a_purge_beside_work_loses_and_doubles_nothing(db: &Db) {
    const JOBS: u64 = 60;
    db.will_forget();
    db.enqueue_all(jobs(60, job)).await;
    let workers: Vec<_> =
        (0..3).map(|n| tokio::spawn(work((**db).clone(), format!("w{n}")))).collect();
    let purging = (**db).clone();
    let purger = tokio::spawn(async move {
        let (mut archive, mut dead) = (0, 0);
        while purging.summary().await.pending > 0 {
            archive += purging.purge(Purge::Archive, Duration::ZERO, 5).await;
            dead += purging.purge(Purge::DeadLetters, Duration::ZERO, 5).await;
            purging.purge(Purge::Buckets, Duration::ZERO, 5).await;
        }
        (archive, dead)
    });
    for worker in workers {
        worker.await.expect("no worker fails");
    }
    let (archive, dead) = purger.await.expect("the purge does not fail");
    let [hot, left, left_dead] = db.rows().await;
    let (succeeded, failed, _) = db.totals().await;
    assert_eq!((hot, succeeded + failed), (0, JOBS), "each job has ended once");
    assert_eq!((archive + left as u64, dead + left_dead as u64), (succeeded, failed));
}
