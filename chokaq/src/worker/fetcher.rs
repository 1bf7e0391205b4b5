//! Claims rows into the buffer, no more than this worker will soon start.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use tokio::{select, sync::watch, time::sleep};

use crate::{
    model::{FetchReply, FetchRequest, LeaseId},
    worker::{
        control::{self, ControlClock},
        release::{give_back, hold_back},
        shared::Shared,
        trouble::Trouble,
    },
};

/// The most payload held in the buffer.
const BUFFER_BYTES: usize = 16 * 1024 * 1024;
/// The most payload of one fetch.
const FETCH_BYTES: usize = 4 * 1024 * 1024;
/// The wait after a batch of which all types' circuits are open: behind it there may be rows of others.
const HELD_BACK_PAUSE: Duration = Duration::from_millis(100);
/// `run_until_idle` waits for rows that are due within this time.
pub(crate) const IDLE_HORIZON: Duration = Duration::from_mins(1);

/// When a worker ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// When it is told to.
    Stopped,
    /// Also when there is nothing left to do.
    Idle,
}

/// The loop; ends when the worker stops. What it had claimed by then is in the buffer.
pub(crate) async fn run(shared: Arc<Shared>, until: Until, clock: ControlClock) {
    let arrivals = shared.storage().work_arrived();
    let mut fetcher = Fetcher {
        rate: Rate::new(&shared),
        trouble: Trouble::new(&shared.episode, "fetch", Duration::from_secs(5)),
        passed_over: HashMap::new(),
        held_back_in_a_row: 0,
        unanswered: None,
        until,
        clock,
        arrivals,
        shared,
    };
    let stop = fetcher.shared.stop.clone();
    while !stop.is_cancelled() {
        fetcher.give_back_surplus().await;
        let take = fetcher.appetite();
        if take == 0 {
            fetcher.wait_for_room().await;
        } else {
            fetcher.fetch(take).await;
        }
    }
    fetcher.settle().await;
}

/// What became of the rows of a fetch.
struct Accepted {
    kept: usize,
    held_back: usize,
}

struct Fetcher {
    shared: Arc<Shared>,
    until: Until,
    rate: Rate,
    trouble: Trouble,
    clock: ControlClock,
    passed_over: HashMap<String, u32>,
    /// Fetches of which all rows went back for their circuits.
    held_back_in_a_row: u32,
    /// A fetch that may have been committed without an answer: it is repeated until it is answered.
    unanswered: Option<LeaseId>,
    arrivals: watch::Receiver<u64>,
}

impl Fetcher {
    /// What was claimed at a speed that has fallen since goes back, the last rows first: another worker may have a permit
    /// for them. Not before twice the room is held, so that a speed that wavers does not send rows to and fro.
    async fn give_back_surplus(&mut self) {
        let shared = &self.shared;
        let room = shared.limiter.idle() + self.rate.ahead(shared);
        let held = shared.buffer.len();
        if held > 2 * room.max(1) {
            let surplus = shared.buffer.take_last(held - room);
            give_back(shared, surplus.into_iter().map(|job| job.lease)).await;
        }
    }

    /// How many rows to ask for now: the idle permits and what is started in about a second, less what is held. Small
    /// refills wait until half the room is free.
    fn appetite(&mut self) -> usize {
        let shared = &self.shared;
        if self.unanswered.is_some() {
            return 1;
        }
        if shared.paused.load(Ordering::Acquire) || shared.buffer.bytes() >= BUFFER_BYTES {
            return 0;
        }
        let ahead = self.rate.ahead(shared);
        let held = shared.buffer.len();
        let room = (shared.limiter.idle() + ahead).saturating_sub(held);
        if held > 0 && room < ahead.div_ceil(2) {
            return 0;
        }
        // Behind rows that all go back there may be others: the look goes twice as deep each time.
        let deeper = room.saturating_mul(1 << self.held_back_in_a_row.min(10));
        deeper.min(shared.settings.batch)
    }

    async fn wait_for_room(&self) {
        let shared = &self.shared;
        let permit_freed = async {
            if shared.paused.load(Ordering::Acquire) {
                std::future::pending::<()>().await;
            }
            drop(shared.limiter.acquire().await);
        };
        select! {
            () = shared.stop.cancelled() => {}
            () = shared.nudge.notified() => {}
            () = shared.buffer.drained.notified() => {}
            () = permit_freed, if shared.buffer.len() == 0 => {}
        }
    }

    async fn fetch(&mut self, take: usize) {
        let shared = Arc::clone(&self.shared);
        // Arrivals during the fetch count as new.
        self.arrivals.mark_unchanged();
        let request = self.request(take);
        let lease = request.lease;
        let repeated = request.is_repeat;
        shared.in_hand.store(1, Ordering::Release);
        let reply = shared.storage().fetch_next_batch(request).await;
        match reply {
            Ok(reply) => {
                self.trouble.over();
                self.unanswered = None;
                let next_due = reply.next_due;
                let accepted = self.accept(reply).await;
                shared.in_hand.store(0, Ordering::Release);
                if accepted.kept > 0 {
                    self.held_back_in_a_row = 0;
                } else if accepted.held_back > 0 {
                    self.held_back_in_a_row += 1;
                    self.rest(Some(HELD_BACK_PAUSE)).await;
                } else if !repeated {
                    self.rest(next_due).await;
                }
            }
            Err(error) => {
                // Part of it may have been committed, whatever the error says of the rest.
                self.unanswered = Some(lease);
                let pause = self.trouble.failed(&error);
                select! {
                    () = shared.stop.cancelled() => {}
                    () = sleep(pause) => {}
                }
                shared.in_hand.store(0, Ordering::Release);
            }
        }
    }

    fn request(&mut self, take: usize) -> FetchRequest {
        let shared = &self.shared;
        FetchRequest {
            worker: shared.id.clone(),
            lease: self.unanswered.unwrap_or_else(LeaseId::new),
            is_repeat: self.unanswered.is_some(),
            queues: shared.queues.clone(),
            take,
            take_limited: shared.limiter.idle().saturating_sub(shared.buffer.len()).min(take),
            max_bytes: FETCH_BYTES.min(BUFFER_BYTES.saturating_sub(shared.buffer.bytes())),
            passed_over: self.passed_over.clone(),
            with_control: self.clock.is_due(),
        }
    }

    /// The worker stops: what an unanswered fetch may have claimed is asked for once more, so that it can be given back.
    async fn settle(mut self) {
        let deadline = Instant::now() + self.shared.settings.shutdown_grace;
        while self.unanswered.is_some() && Instant::now() < deadline {
            let request = self.request(0);
            match self.shared.storage().fetch_next_batch(request).await {
                Ok(reply) => {
                    self.unanswered = None;
                    self.shared.buffer.push(reply.jobs);
                }
                Err(error) if error.is_transient() => sleep(self.trouble.failed(&error)).await,
                Err(_) => return,
            }
        }
    }

    async fn accept(&mut self, reply: FetchReply) -> Accepted {
        let shared = &self.shared;
        self.passed_over = reply.passed_over;
        if let Some(control) = reply.control {
            self.clock.read();
            control::apply(shared, &control).await;
        }
        if shared.paused.load(Ordering::Acquire) {
            // Paused while the fetch was out: nothing of it may start.
            let kept = reply.jobs.len();
            give_back(shared, reply.jobs.into_iter().map(|job| job.lease)).await;
            return Accepted { kept, held_back: 0 };
        }
        let (held_back, kept): (Vec<_>, Vec<_>) =
            reply.jobs.into_iter().partition(|job| shared.circuit_wait(job).is_some());
        let accepted = Accepted { kept: kept.len(), held_back: held_back.len() };
        shared.buffer.push(kept);
        hold_back(shared, held_back).await;
        accepted
    }

    /// Nothing was found: waits for an arrival, the next due time, or the poll, whichever comes first.
    async fn rest(&mut self, next_due: Option<Duration>) {
        if self.until == Until::Idle && self.is_idle().await {
            tracing::debug!("nothing left to do");
            self.shared.stop.cancel();
            return;
        }
        let poll = self.shared.settings.poll_interval.mul_f64(0.8 + 0.4 * fastrand::f64());
        // A delayed row becomes claimable in its millisecond, not before.
        let pause = next_due.map_or(poll, |due| poll.min(due + Duration::from_millis(1)));
        let shared = &self.shared;
        select! {
            () = shared.stop.cancelled() => {}
            () = shared.nudge.notified() => {}
            _ = self.arrivals.changed() => {}
            () = shared.running.emptied.notified(), if self.until == Until::Idle => {}
            () = shared.limiter.idled.notified(), if self.until == Until::Idle => {}
            () = sleep(pause) => {}
        }
    }

    async fn is_idle(&self) -> bool {
        let shared = &self.shared;
        if !shared.is_quiet() {
            return false;
        }
        let due = shared.storage().next_due(shared.queues.clone(), IDLE_HORIZON).await;
        // What arrived or ended meanwhile is looked at again.
        matches!(due, Ok(None))
            && shared.is_quiet()
            && !self.arrivals.has_changed().unwrap_or(false)
    }
}

/// How many jobs this worker starts in a second, smoothed.
struct Rate {
    since: Instant,
    started: u64,
    per_second: f64,
}

impl Rate {
    const WINDOW: Duration = Duration::from_millis(200);

    fn new(shared: &Shared) -> Self {
        let started = shared.started.load(Ordering::Relaxed);
        Self { since: Instant::now(), started, per_second: 0.0 }
    }

    /// How many rows to hold beside those that have an idle permit.
    fn ahead(&mut self, shared: &Shared) -> usize {
        self.per_second(shared).min(shared.settings.buffer)
    }

    fn per_second(&mut self, shared: &Shared) -> usize {
        let elapsed = self.since.elapsed();
        if elapsed >= Self::WINDOW {
            let started = shared.started.load(Ordering::Relaxed);
            #[expect(clippy::cast_precision_loss, reason = "a rate need not be exact")]
            let now = (started - self.started) as f64 / elapsed.as_secs_f64();
            // It rises at once, and falls at once where nothing was measured for a while: old speed says nothing.
            let is_old = elapsed >= 5 * Self::WINDOW;
            self.per_second =
                if now > self.per_second || is_old { now } else { self.per_second.midpoint(now) };
            self.started = started;
            self.since = Instant::now();
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and a float cast saturates"
        )]
        {
            self.per_second as usize
        }
    }
}
