//! The writer's queue: what waits, by class, and how each caller gets its answer.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use tokio::sync::oneshot;

use crate::{
    Error, Result,
    storage::sqlite::{
        failure::{Fault, Outcome},
        tx::Tx,
    },
};

/// What is written first when much waits: whoever holds leases before whoever wants more work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Heartbeat,
    Finalise,
    Mark,
    Claim,
    Enqueue,
    Operator,
}

impl Class {
    pub(super) const ALL: [Self; 6] =
        [Self::Heartbeat, Self::Finalise, Self::Mark, Self::Claim, Self::Enqueue, Self::Operator];
}

/// Whether a call changes anything: the reply of a read is never "lost" in tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Reads,
    Writes,
}

/// A call that waits for the writer thread.
pub(super) trait Operation: Send {
    /// Runs it in the open transaction and keeps the answer until the commit.
    fn run(&mut self, tx: &Tx<'_>) -> Outcome<()>;
    /// Tells the caller that it is committed.
    fn confirm(self: Box<Self>);
    /// Tells the caller that it did not happen.
    fn fail(self: Box<Self>, error: Error);
    /// Whether the caller has gone: nobody was promised anything, so nothing is done for it.
    fn is_abandoned(&self) -> bool;
    fn deadline(&self) -> Instant;
    fn effect(&self) -> Effect;
}

/// One call: its work, its answer once it ran, and where the answer goes.
pub(super) struct Call<T, F> {
    work: Option<F>,
    answer: Option<T>,
    reply: oneshot::Sender<Result<T>>,
    deadline: Instant,
    effect: Effect,
}

impl<T, F> Call<T, F> {
    pub(super) fn new(
        work: F,
        reply: oneshot::Sender<Result<T>>,
        deadline: Instant,
        effect: Effect,
    ) -> Self {
        Self { work: Some(work), answer: None, reply, deadline, effect }
    }
}

impl<T, F> Operation for Call<T, F>
where
    T: Send,
    F: FnOnce(&Tx<'_>) -> Outcome<T> + Send,
{
    fn run(&mut self, tx: &Tx<'_>) -> Outcome<()> {
        if let Some(work) = self.work.take() {
            self.answer = Some(work(tx)?);
        }
        Ok(())
    }

    fn confirm(self: Box<Self>) {
        let answer = self.answer.ok_or_else(|| {
            Error::permanent("a storage call was confirmed before it ran: this is a bug", None)
        });
        // A caller that has gone needs no answer.
        drop(self.reply.send(answer));
    }

    fn fail(self: Box<Self>, error: Error) {
        drop(self.reply.send(Err(error)));
    }

    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn effect(&self) -> Effect {
        self.effect
    }
}

pub(super) type BoxedOperation = Box<dyn Operation>;

/// What waits, by class. It is bounded by its callers: each waits for the answer to its one call.
#[derive(Default)]
pub(super) struct Waiting {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    by_class: [VecDeque<BoxedOperation>; Class::ALL.len()],
    is_closed: bool,
}

impl State {
    fn is_empty(&self) -> bool {
        self.by_class.iter().all(VecDeque::is_empty)
    }
}

impl Waiting {
    pub(super) fn push(&self, class: Class, operation: BoxedOperation) {
        let mut state = self.lock();
        if state.is_closed {
            drop(state);
            operation.fail(stopped());
            return;
        }
        state.by_class[class as usize].push_back(operation);
        drop(state);
        self.arrived.notify_one();
    }

    /// The oldest call of the class.
    pub(super) fn pop(&self, class: Class) -> Option<BoxedOperation> {
        self.lock().by_class[class as usize].pop_front()
    }

    /// The oldest call of the first class that has one.
    pub(super) fn pop_first(&self) -> Option<BoxedOperation> {
        self.lock().by_class.iter_mut().find_map(VecDeque::pop_front)
    }

    /// Blocks until something waits; false once it is closed and empty.
    pub(super) fn wait(&self) -> bool {
        let state = self
            .arrived
            .wait_while(self.lock(), |state| state.is_empty() && !state.is_closed)
            .unwrap_or_else(PoisonError::into_inner);
        !state.is_empty()
    }

    /// Takes out the calls that waited too long, and those whose caller has gone; false when nothing is left.
    pub(super) fn take_expired(&self, now: Instant, expired: &mut Vec<BoxedOperation>) -> bool {
        let mut state = self.lock();
        for calls in &mut state.by_class {
            let is_late = |call: &BoxedOperation| call.is_abandoned() || call.deadline() <= now;
            let (late, on_time) = std::mem::take(calls).into_iter().partition(is_late);
            let late: VecDeque<_> = late;
            expired.extend(late);
            *calls = on_time;
        }
        !state.is_empty()
    }

    /// Takes everything.
    pub(super) fn take_all(&self) -> Vec<BoxedOperation> {
        self.lock().by_class.iter_mut().flat_map(std::mem::take).collect()
    }

    /// No call is accepted any more; those that wait are still served.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error of a call that comes after the end.
pub(super) fn stopped() -> Error {
    Error::permanent("the storage is closed", None)
}

/// The error of a call whose work panicked.
pub(super) fn panicked(payload: &(dyn std::any::Any + Send)) -> Fault {
    let what = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    Fault::Ready(Error::permanent(format!("a storage call panicked: {what}: this is a bug"), None))
}
