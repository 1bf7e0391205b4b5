//! What operators set and ask, read once a second.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::time::sleep;

use crate::{
    job::CancelCause,
    model::Control,
    worker::{heartbeat, release::give_back, shared::Shared, trouble::Trouble},
};

/// Between two reads.
const PERIOD: Duration = Duration::from_secs(1);

/// When the last read was: a fetch carries the next one with it where it can.
#[derive(Debug, Clone)]
pub(crate) struct ControlClock(Arc<Mutex<Instant>>);

impl ControlClock {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    /// Whether a fetch that goes out now should carry the read: it is due before the next poll.
    pub(crate) fn is_due(&self) -> bool {
        self.since() >= PERIOD / 2
    }

    pub(crate) fn read(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn since(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

/// Rows that wait longer behind running jobs go back: another worker may have a permit for them.
const PATIENCE: Duration = Duration::from_secs(2);

/// The loop that reads when no fetch did; runs until it is aborted.
pub(crate) async fn run(shared: Arc<Shared>, clock: ControlClock) {
    let mut trouble = Trouble::new(&shared.episode, "control", Duration::from_secs(5));
    // A little longer than a poll with its jitter, so that on an idle worker the fetches carry it.
    let patience = PERIOD + PERIOD / 4;
    loop {
        give_back_stalled(&shared).await;
        let since = clock.since();
        if since < patience {
            sleep(patience.saturating_sub(since)).await;
            continue;
        }
        let read = shared.storage().read_control(shared.id.clone(), shared.queues.clone()).await;
        match read {
            Ok(control) => {
                trouble.over();
                clock.read();
                apply(&shared, &control).await;
            }
            Err(error) => sleep(trouble.failed(&error)).await,
        }
    }
}

/// What was fetched ahead at a speed that long jobs have ended since.
async fn give_back_stalled(shared: &Shared) {
    if shared.limiter.idle() == 0 && shared.buffer.stalled_for() >= PATIENCE {
        let waiting = shared.buffer.take(|_| true);
        give_back(shared, waiting.into_iter().map(|job| job.lease)).await;
    }
}

/// Rows of stopped queues go back; jobs to cancel are told.
pub(crate) async fn apply(shared: &Shared, control: &Control) {
    if shared.queue_leases.learn(&control.queue_leases) {
        shared.beat_now.notify_one();
    }
    for job in &control.cancels {
        if let Some(run) = shared.running.get(*job) {
            heartbeat::cancel(&run, CancelCause::Requested);
        }
    }
    if control.stopped_queues.is_empty() || shared.buffer.len() == 0 {
        return;
    }
    let stopped: HashSet<&str> = control.stopped_queues.iter().map(String::as_str).collect();
    let jobs = shared.buffer.take(|job| stopped.contains(job.queue.as_str()));
    give_back(shared, jobs.into_iter().map(|job| job.lease)).await;
}
