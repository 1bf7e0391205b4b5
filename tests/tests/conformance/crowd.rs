//! Everybody at once: fetchers, completers, producers, operators, purges and readers on one database, for as long as the backend's
//! `soak` says. What a crowd can break is watched while it goes on; the whole database is checked after it, as after every
//! claim.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use chokaq::storage::Storage;

use crate::prelude::*;

claims!(a_crowd_runs_no_job_twice_at_a_time_and_loses_none);

const FETCHERS: usize = 16;
const PROCESSES: usize = 4;
const LIMIT: u64 = 3;

/// What the crowd knows of itself.
#[derive(Default)]
struct Watch {
    enqueued: Mutex<HashSet<JobId>>,
    /// How many ended jobs were deleted.
    purged: AtomicU64,
    running: Mutex<HashSet<JobId>>,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn a_crowd_runs_no_job_twice_at_a_time_and_loses_none(db: &Db) {
    db.will_forget();
    db.limit("limited", 3).await;
    let until = Instant::now() + db.soak();
    let watch = Arc::new(Watch::default());
    let mut processes = vec![Calls::clone(db)];
    for _ in 1..PROCESSES {
        processes.push(db.reopen().await);
    }
    let mut crowd = tokio::task::JoinSet::new();
    for n in 0..FETCHERS {
        let (calls, watch) = (processes[n % PROCESSES].clone(), watch.clone());
        crowd.spawn(fetch_and_finish(calls, watch, format!("w{n}"), until));
    }
    for calls in &processes[..2] {
        crowd.spawn(produce(calls.clone(), watch.clone(), until));
    }
    crowd.spawn(cancel(processes[1].clone(), watch.clone(), until));
    crowd.spawn(resurrect(processes[2].clone(), until));
    crowd.spawn(purge(processes[3].clone(), watch.clone(), until));
    crowd.spawn(read(processes[3].clone(), until));
    let rescuer = processes[0].clone();
    crowd.spawn(async move {
        // Nobody is dead: rescue must find nothing to take.
        while Instant::now() < until {
            assert_eq!(rescuer.recover(SECOND * 600, 100).await, 0);
            assert_eq!(rescuer.scan().await, []);
        }
    });
    while !crowd.is_empty() {
        tokio::select! {
            ended = crowd.join_next() => ended.expect("not empty").expect("nobody panics"),
            () = observe(db) => {}
        }
    }
    // Whoever was in the middle of something when the time was up has ended it; what waits is still there.
    let left: HashSet<JobId> = db.ids().await.into_iter().flatten().collect();
    let enqueued = locked(&watch.enqueued);
    assert!(left.is_subset(&enqueued), "no job came from nowhere");
    let purged = watch.purged.load(Ordering::Relaxed);
    assert_eq!(
        left.len() as u64 + purged,
        enqueued.len() as u64,
        "no job is lost, none purged twice"
    );
}

/// I1 and I7, in one snapshot each.
async fn observe(db: &Db) {
    db.check_each_job_is_in_one_place().await;
    let active = db.active("limited").await;
    assert!(active <= LIMIT, "I7: {active} of at most {LIMIT} are active");
}

async fn fetch_and_finish(calls: Calls, watch: Arc<Watch>, worker: String, until: Instant) {
    for turn in 0.. {
        if Instant::now() >= until {
            return;
        }
        let fetched = calls.fetch(&worker, 6).await;
        if fetched.is_empty() {
            tokio::task::yield_now().await;
        }
        for (n, job) in fetched.into_iter().enumerate() {
            if (turn + n) % 11 == 0 {
                // It may have been cancelled meanwhile.
                calls.release(&job.lease).await;
                continue;
            }
            let MarkOutcome::Started { .. } = calls.mark(&job.lease).await else { continue };
            let id = job.lease.job();
            assert!(locked(&watch.running).insert(id), "I3: {id} runs twice at a time");
            if n % 2 == 0 {
                assert_ne!(calls.beat(&job.lease).await, BeatOutcome::LeaseLost);
            }
            let outcome = match (turn + n) % 5 {
                0 => dead(FailureReason::FatalError),
                1 if job.attempts < 2 => retry(Duration::ZERO),
                2 if job.attempts < 2 => snooze(Duration::from_millis(20)),
                _ => succeeded(),
            };
            locked(&watch.running).remove(&id);
            // A retry may have been overtaken by a cancel; nothing else may come in between.
            let finished = calls.finish(&job.lease, outcome).await;
            assert_ne!(finished, FinishOutcome::LeaseLost, "{id} was this lease's");
        }
    }
}

async fn produce(calls: Calls, watch: Arc<Watch>, until: Instant) {
    for turn in 0.. {
        if Instant::now() >= until {
            return;
        }
        if calls.summary().await.pending > 500 {
            continue;
        }
        let queue = ["a", "b", "limited"][turn % 3];
        let batch: Vec<NewJob> = (0..20)
            .map(|n| {
                let key = (n % 4 == 0).then(|| format!("key-{}", n % 8));
                NewJob { idempotency_key: key, ..job_on(queue) }
            })
            .collect();
        let ids = ids(&batch);
        let outcomes = calls.enqueue_all(batch).await;
        let stored = ids.into_iter().zip(outcomes).filter(|(_, o)| *o == EnqueueOutcome::Stored);
        locked(&watch.enqueued).extend(stored.map(|(id, _)| id));
    }
}

async fn cancel(calls: Calls, watch: Arc<Watch>, until: Instant) {
    while Instant::now() < until {
        let some: Vec<JobId> = locked(&watch.enqueued).iter().take(5).copied().collect();
        let any = fastrand::usize(..);
        if let Some(id) = some.get(any % some.len().max(1)) {
            calls.cancel(*id).await;
        }
    }
}

async fn resurrect(calls: Calls, until: Instant) {
    while Instant::now() < until {
        let page = calls.storage.get_dlq_paged(None, None, 20).await.expect("a page");
        let ids: Vec<JobId> = page.iter().map(|row| row.id).collect();
        if !ids.is_empty() {
            let edits = ResurrectEdits::default();
            calls.storage.resurrect(ids, edits).await.expect("the storage answers");
        }
    }
}

/// History of more than a second goes.
async fn purge(calls: Calls, watch: Arc<Watch>, until: Instant) {
    while Instant::now() < until {
        for what in [Purge::Archive, Purge::DeadLetters] {
            let purged = calls.purge(what, SECOND, 20).await;
            watch.purged.fetch_add(purged, Ordering::Relaxed);
        }
        calls.purge(Purge::Buckets, SECOND * 20, 20).await;
    }
}

/// Everything that people look at.
async fn read(calls: Calls, until: Instant) {
    let storage: &Arc<dyn Storage> = &calls.storage;
    while Instant::now() < until {
        storage.get_summary_stats().await.expect("a summary");
        storage.get_queue_stats().await.expect("queues");
        storage.get_queue_health().await.expect("health");
        storage.get_throughput_stats(SECOND * 60).await.expect("throughput");
        storage.get_top_dlq_errors(10).await.expect("errors");
        storage.get_archive_paged(None, None, 50).await.expect("a page");
    }
}
