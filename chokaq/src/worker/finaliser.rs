//! Brings outcomes into the storage, coalesced, however long that takes.
//!
//! Independent of shutdown and of the jobs' own cancellation: an outcome that stands in this queue is tried until the
//! storage has answered, and its job goes on beating until then.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::sleep;

use crate::{
    model::{FailureReason, Finish, FinishOutcome, Outcome},
    worker::{
        coalescer::{Batch, Coalescer},
        running::Run,
        shared::{DeadLetter, Shared},
        trouble::Trouble,
    },
};

/// The longest wait between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A run whose user code has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) run: Arc<Run>,
    pub(crate) outcome: Outcome,
}

/// The queue of outcomes.
#[derive(Debug, Clone)]
pub(crate) struct Finaliser {
    queue: Coalescer<Finished, ()>,
    /// What came from where nothing can wait, while the queue was full: the next batch takes it along.
    overflow: Overflow,
}

type Overflow = Arc<Mutex<Vec<Finished>>>;

impl Finaliser {
    const LARGEST: usize = 500;

    /// Starts it.
    pub(crate) fn spawn(shared: Arc<Shared>) -> Self {
        let overflow = Overflow::default();
        let finishes = Finishes {
            trouble: Trouble::new(&shared.episode, "finalise", LONGEST_PAUSE),
            shared,
            overflow: Arc::clone(&overflow),
        };
        let (queue, _) = Coalescer::spawn(2 * Self::LARGEST, Self::LARGEST, finishes);
        Self { queue, overflow }
    }

    /// Waits until the outcome stands in the queue.
    pub(crate) async fn push(&self, finished: Finished) {
        if self.queue.push(finished).await.is_err() {
            tracing::error!("an outcome came after the worker's end; rescue will find its job");
        }
    }

    /// From where nothing can wait.
    pub(crate) fn push_now(&self, finished: Finished) {
        if let Err(finished) = self.queue.try_push(finished) {
            self.overflow.lock().unwrap_or_else(PoisonError::into_inner).push(finished);
        }
    }
}

struct Finishes {
    shared: Arc<Shared>,
    overflow: Overflow,
    trouble: Trouble,
}

impl Batch<Finished, ()> for Finishes {
    async fn execute(&mut self, mut batch: Vec<Finished>) -> Vec<()> {
        let answers = vec![(); batch.len()];
        batch.append(&mut self.overflow.lock().unwrap_or_else(PoisonError::into_inner));
        let finishes = batch.iter().map(finish_of).collect();
        match try_finalise(&self.shared, &mut self.trouble, finishes).await {
            Ok(outcomes) => conclude(&self.shared, &batch, &outcomes),
            // Something in it, or the database itself, refuses it: each goes on alone, and holds up no other.
            Err(_) => {
                for finished in batch {
                    tokio::spawn(insist(Arc::clone(&self.shared), finished));
                }
            }
        }
        answers
    }
}

/// Tries one outcome for ever, with pauses: the storage may be repaired, and until then its job goes on beating and is
/// nobody else's.
async fn insist(shared: Arc<Shared>, finished: Finished) {
    let mut trouble = Trouble::new(&shared.episode, "finalise", LONGEST_PAUSE);
    let mut is_told = false;
    loop {
        match try_finalise(&shared, &mut trouble, vec![finish_of(&finished)]).await {
            Ok(outcomes) => {
                trouble.over();
                return conclude(&shared, std::slice::from_ref(&finished), &outcomes);
            }
            Err(error) => {
                if !std::mem::replace(&mut is_told, true) {
                    let job_id = finished.run.lease.job();
                    tracing::error!(%job_id, ?error, "the outcome of a job cannot be stored; trying on");
                }
                sleep(trouble.failed(&error)).await;
            }
        }
    }
}

/// Tries while the trouble may pass by itself.
async fn try_finalise(
    shared: &Shared,
    trouble: &mut Trouble,
    batch: Vec<Finish>,
) -> crate::Result<Vec<FinishOutcome>> {
    loop {
        match shared.storage().finalise(batch.clone()).await {
            Err(error) if error.is_transient() => sleep(trouble.failed(&error)).await,
            Ok(outcomes) => {
                trouble.over();
                return Ok(outcomes);
            }
            refused => return refused,
        }
    }
}

/// The commit is known: the jobs beat no more, and what became of them is told.
fn conclude(shared: &Shared, batch: &[Finished], outcomes: &[FinishOutcome]) {
    shared.running.remove(batch.iter().map(|finished| &finished.run));
    for (finished, outcome) in batch.iter().zip(outcomes) {
        report(shared, finished, *outcome);
    }
}

fn report(shared: &Shared, finished: &Finished, outcome: FinishOutcome) {
    let run = &finished.run;
    let job_id = run.lease.job();
    let (job_type, queue) = (run.job_type.as_str(), run.queue.as_str());
    match (&finished.outcome, outcome) {
        (_, FinishOutcome::LeaseLost) => {
            tracing::warn!(%job_id, job_type, queue, "job's lease was lost; its result is discarded");
        }
        (Outcome::Retry { error, .. }, FinishOutcome::Cancelled) => {
            dead(shared, finished, FailureReason::Cancelled, error.attempt, &error.text);
        }
        (_, FinishOutcome::Cancelled) => {
            dead(shared, finished, FailureReason::Cancelled, 0, "cancelled while it ran");
        }
        (Outcome::Succeeded { .. }, _) => {
            tracing::debug!(%job_id, job_type, queue, "job succeeded");
        }
        (Outcome::Snooze { delay }, _) => {
            tracing::debug!(%job_id, job_type, queue, ?delay, "job goes back, no attempt used");
        }
        (Outcome::Retry { delay, error }, FinishOutcome::Done) => {
            tracing::info!(%job_id, job_type, queue, attempt = error.attempt, ?delay, kind = error.kind, error = error.text, "job failed; it will be retried");
        }
        (Outcome::Retry { error, .. }, FinishOutcome::LifetimeExpired) => {
            dead(shared, finished, FailureReason::RetryLifetimeExpired, error.attempt, &error.text);
        }
        (Outcome::Dead { reason, error }, _) => {
            dead(shared, finished, *reason, error.attempt, &error.text);
        }
    }
}

fn dead(shared: &Shared, finished: &Finished, reason: FailureReason, attempt: u32, error: &str) {
    let run = &finished.run;
    let letter = DeadLetter {
        id: run.lease.job(),
        job_type: run.job_type.clone(),
        queue: run.queue.clone(),
        reason,
        error: error.to_owned(),
    };
    tracing::error!(job_id = %letter.id, job_type = letter.job_type, queue = letter.queue, attempt, %reason, error, "job is dead");
    shared.tell_of(&letter);
}

fn finish_of(finished: &Finished) -> Finish {
    Finish { lease: finished.run.lease.clone(), outcome: finished.outcome.clone() }
}
