//! Everybody who calls from outside: producers, operators, and whoever stalls the database.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use chokaq::{Edits, Enqueue, Enqueued, JobId, Pool, ResurrectOutcome};
use fastrand::Rng;
use tokio::{task::JoinSet, time::sleep};

use crate::{
    Failure,
    database::Database,
    jobs::{Flaky, Fragile, LIMITED, Limited, QUEUES, Quick, Slow},
    journal::uptime_ms,
    worker::LEASE,
};

/// No limit is as high.
const MOST_LIMITED: u32 = 8;

/// What was asked and answered.
#[derive(Default)]
pub(crate) struct Record {
    /// Jobs that a caller was told are stored.
    acknowledged: Mutex<Vec<JobId>>,
    /// Enqueues that failed: they may be stored.
    pub(crate) unanswered: AtomicU64,
    pub(crate) cancels: AtomicU64,
    /// How often each job was resurrected, at most; and calls without an answer.
    resurrected: Mutex<HashMap<JobId, u32>>,
    pub(crate) unanswered_resurrections: AtomicU64,
    /// When the database stood still.
    pub(crate) stalls: Mutex<Vec<(u64, u64)>>,
    pub(crate) controls: AtomicU64,
    /// The limits that were asked for, and when.
    limits: Mutex<Vec<(Instant, u32)>>,
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Record {
    pub(crate) fn acknowledged(&self) -> usize {
        locked(&self.acknowledged).len()
    }

    pub(crate) fn all_acknowledged(&self) -> HashSet<JobId> {
        locked(&self.acknowledged).iter().copied().collect()
    }

    pub(crate) fn resurrections(&self) -> HashMap<JobId, u32> {
        locked(&self.resurrected).clone()
    }

    /// The highest limit that may have held at any moment of the last 20 s: no call takes longer.
    pub(crate) fn highest_limit(&self) -> i64 {
        let mut limits = locked(&self.limits);
        limits.retain(|(at, _)| at.elapsed() < Duration::from_secs(20));
        limits.iter().map(|(_, limit)| i64::from(*limit)).max().unwrap_or(0)
    }

    fn any(&self, random: &mut Rng) -> Option<JobId> {
        let acknowledged = locked(&self.acknowledged);
        // The newest are the ones that may still be active.
        let newest = acknowledged.len().min(400);
        (newest > 0).then(|| acknowledged[acknowledged.len() - 1 - random.usize(..newest)])
    }
}

/// Enqueues all jobs, evenly over the time.
pub(crate) async fn produce(pool: Pool, record: &Record, jobs: usize, time: Duration, seed: u64) {
    const BATCH: usize = 50;
    let begun = Instant::now();
    let mut number = 0;
    while number < jobs {
        let mut calls = JoinSet::new();
        for n in number..jobs.min(number + BATCH) {
            calls.spawn(enqueue(pool.clone(), n as u64, seed));
        }
        number += calls.len();
        while let Some(answer) = calls.join_next().await {
            match answer {
                Ok(Ok(enqueued)) if enqueued.duplicate => {}
                Ok(Ok(enqueued)) => locked(&record.acknowledged).push(enqueued.id),
                _ => {
                    record.unanswered.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "a share need not be exact")]
        let due = time.mul_f64(number as f64 / jobs as f64);
        sleep(due.saturating_sub(begun.elapsed())).await;
    }
}

/// The job with this number.
async fn enqueue(pool: Pool, number: u64, seed: u64) -> chokaq::Result<Enqueued> {
    let random = Rng::with_seed(seed ^ number).u64(..);
    let ms = random >> 32;
    match random % 20 {
        0 => Slow { ms: 100 + ms % 400 }.enqueue(&pool).await,
        1 => Fragile { ms: 20 + ms % 100 }.enqueue(&pool).await,
        2 => Limited { ms: 20 + ms % 80 }.enqueue(&pool).await,
        3..7 => Flaky { number }.enqueue(&pool).await,
        7 => Quick { number }.enqueue(&pool).delay(Duration::from_millis(ms % 3_000)).await,
        8 => {
            let key = format!("key-{}", ms % 50);
            Quick { number }.enqueue(&pool).idempotency_key(key).await
        }
        _ => Quick { number }.enqueue(&pool).priority(i32::try_from(ms % 20).unwrap_or(0)).await,
    }
}

/// Cancels, resurrects, pauses, limits, until it is dropped. Calls fail while the database stands still: that is no matter.
pub(crate) async fn operate(pool: &Pool, record: &Record, mut random: Rng) {
    let operator = pool.operator();
    loop {
        sleep(Duration::from_millis(random.u64(20..200))).await;
        let queue = QUEUES[random.usize(..QUEUES.len())];
        match random.u32(..20) {
            0..8 => {
                let Some(id) = record.any(&mut random) else { continue };
                drop(pool.cancel(id).await);
                record.cancels.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            8..14 => resurrect(pool, record).await,
            14 => {
                drop(operator.pause_queue(queue).await);
                sleep(Duration::from_millis(random.u64(..1_500))).await;
                insist(|| operator.resume_queue(queue)).await;
            }
            15 => {
                drop(operator.deactivate_queue(queue).await);
                sleep(Duration::from_millis(random.u64(..1_500))).await;
                insist(|| operator.activate_queue(queue)).await;
            }
            _ => {
                let limit = random.u32(1..MOST_LIMITED);
                locked(&record.limits).push((Instant::now(), limit));
                drop(operator.set_max_workers(LIMITED, Some(limit)).await);
            }
        }
        record.controls.fetch_add(1, Ordering::Relaxed);
    }
}

async fn resurrect(pool: &Pool, record: &Record) {
    let operator = pool.operator();
    let Ok(page) = operator.dlq_page(None, None, 10).await else { return };
    let ids: Vec<JobId> = page.iter().map(|row| row.id).collect();
    let outcomes = operator.resurrect(&ids, Edits::default()).await;
    if outcomes.is_err() {
        record.unanswered_resurrections.fetch_add(1, Ordering::Relaxed);
    }
    let outcomes = outcomes.unwrap_or_else(|_| vec![ResurrectOutcome::Resurrected; ids.len()]);
    let mut resurrected = locked(&record.resurrected);
    for (id, outcome) in ids.into_iter().zip(outcomes) {
        if outcome == ResurrectOutcome::Resurrected {
            *resurrected.entry(id).or_default() += 1;
        }
    }
}

/// Everything is open again, so that all jobs can end.
pub(crate) async fn open_all(pool: &Pool) {
    let operator = pool.operator();
    for queue in QUEUES {
        insist(|| operator.resume_queue(queue)).await;
        insist(|| operator.activate_queue(queue)).await;
    }
    insist(|| operator.set_max_workers(LIMITED, Some(MOST_LIMITED))).await;
}

/// A control that would stop everything if it were lost.
async fn insist<F: Future<Output = chokaq::Result<()>>>(call: impl Fn() -> F) {
    while call().await.is_err() {
        sleep(Duration::from_millis(100)).await;
    }
}

/// Lets the database stand still for longer than the lease, now and then, until it is dropped.
pub(crate) async fn stall(database: &Database, record: &Record, mut random: Rng) -> Failure {
    loop {
        sleep(Duration::from_secs(random.u64(15..40))).await;
        let begun = uptime_ms();
        // On SQL Server a stall may meet a lock of others' and be refused.
        drop(database.stall(LEASE.mul_f64(0.5 + 1.5 * random.f64())).await);
        match (begun, uptime_ms()) {
            (Ok(from), Ok(to)) => locked(&record.stalls).push((from, to)),
            (Err(error), _) | (_, Err(error)) => return error.into(),
        }
    }
}
