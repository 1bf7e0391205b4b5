//! Brings outcomes into the storage, coalesced, however long that takes.
//!
//! Independent of shutdown and of the jobs' own cancellation: an outcome that stands in this queue is tried until the
//! storage has answered, and its job goes on beating until then.

use std::{sync::Arc, time::Duration};

use tokio::{task::JoinHandle, time::sleep};

use crate::{
    model::{FailureReason, Finish, FinishOutcome, Outcome},
    worker::{
        coalescer::{Batch, Coalescer},
        running::Run,
        shared::{DeadLetter, Shared, Trouble},
    },
};

/// A run whose user code has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) run: Arc<Run>,
    pub(crate) outcome: Outcome,
}

/// The queue of outcomes.
#[derive(Debug, Clone)]
pub(crate) struct Finaliser(Coalescer<Finished, ()>);

impl Finaliser {
    const LARGEST: usize = 500;

    /// Starts it; the handle ends when every clone is gone and all is committed.
    pub(crate) fn spawn(shared: Arc<Shared>) -> (Self, JoinHandle<()>) {
        let capacity = 2 * Self::LARGEST;
        let trouble = Trouble::new("finalise", Duration::from_secs(5));
        let (coalescer, done) =
            Coalescer::spawn(capacity, Self::LARGEST, Finishes { shared, trouble });
        (Self(coalescer), done)
    }

    /// Waits until the outcome stands in the queue.
    pub(crate) async fn push(&self, finished: Finished) {
        if self.0.push(finished).await.is_err() {
            tracing::error!("an outcome came after the worker's end; rescue will find its job");
        }
    }

    /// From where nothing can wait; when the queue is full, rescue will find the job.
    pub(crate) fn push_now(&self, finished: Finished) {
        if let Err(finished) = self.0.try_push(finished) {
            tracing::warn!(job_id = %finished.run.lease.job(), "an interrupted job was not given back; rescue will find it");
        }
    }
}

struct Finishes {
    shared: Arc<Shared>,
    trouble: Trouble,
}

impl Batch<Finished, ()> for Finishes {
    async fn execute(&mut self, batch: Vec<Finished>) -> Vec<()> {
        let outcomes = self.finalise(&batch).await;
        self.shared.running.remove(batch.iter().map(|finished| &finished.run));
        for (finished, outcome) in batch.iter().zip(&outcomes) {
            if let Some(outcome) = outcome {
                self.report(finished, *outcome);
            }
        }
        vec![(); batch.len()]
    }

    fn orphaned(&mut self, (): ()) {}
}

impl Finishes {
    /// Tries until the storage answers. A batch that can never be stored is taken apart, so that one bad outcome does
    /// not hold up the others; the bad one stays Processing, for rescue and a person (`None`).
    async fn finalise(&mut self, batch: &[Finished]) -> Vec<Option<FinishOutcome>> {
        let finishes: Vec<_> = batch.iter().map(finish_of).collect();
        match self.try_finalise(finishes.clone()).await {
            Ok(outcomes) => outcomes.into_iter().map(Some).collect(),
            Err(error) if finishes.len() == 1 => {
                let job_id = finishes[0].lease.job();
                tracing::error!(%job_id, ?error, "the outcome of a job cannot be stored; the job stays as it is until rescue finds it");
                vec![None]
            }
            Err(_) => {
                let mut outcomes = Vec::with_capacity(finishes.len());
                for finish in finishes {
                    let job_id = finish.lease.job();
                    outcomes.push(match self.try_finalise(vec![finish]).await {
                        Ok(one) => one.first().copied(),
                        Err(error) => {
                            tracing::error!(%job_id, ?error, "the outcome of a job cannot be stored; the job stays as it is until rescue finds it");
                            None
                        }
                    });
                }
                outcomes
            }
        }
    }

    async fn try_finalise(&mut self, batch: Vec<Finish>) -> crate::Result<Vec<FinishOutcome>> {
        loop {
            match self.shared.storage().finalise(batch.clone()).await {
                Err(error) if error.is_transient() => sleep(self.trouble.failed(&error)).await,
                answer => {
                    self.trouble.over();
                    return answer;
                }
            }
        }
    }

    fn report(&self, finished: &Finished, outcome: FinishOutcome) {
        let run = &finished.run;
        let job_id = run.lease.job();
        let (job_type, queue) = (run.job_type.as_str(), run.queue.as_str());
        match (&finished.outcome, outcome) {
            (_, FinishOutcome::LeaseLost) => {
                tracing::warn!(%job_id, job_type, queue, "job's lease was lost; its result is discarded");
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
                self.dead(
                    finished,
                    FailureReason::RetryLifetimeExpired,
                    error.attempt,
                    &error.text,
                );
            }
            (Outcome::Dead { reason, error }, _) => {
                self.dead(finished, *reason, error.attempt, &error.text);
            }
        }
    }

    fn dead(&self, finished: &Finished, reason: FailureReason, attempt: u32, error: &str) {
        let run = &finished.run;
        let letter = DeadLetter {
            id: run.lease.job(),
            job_type: run.job_type.clone(),
            queue: run.queue.clone(),
            reason,
            error: error.to_owned(),
        };
        tracing::error!(job_id = %letter.id, job_type = letter.job_type, queue = letter.queue, attempt, %reason, error, "job is dead");
        if let Some(told) = &self.shared.on_dead_letter {
            let told = std::panic::AssertUnwindSafe(|| told(&letter));
            if std::panic::catch_unwind(told).is_err() {
                tracing::error!(job_id = %letter.id, "on_dead_letter panicked");
            }
        }
    }
}

fn finish_of(finished: &Finished) -> Finish {
    Finish { lease: finished.run.lease.clone(), outcome: finished.outcome.clone() }
}
