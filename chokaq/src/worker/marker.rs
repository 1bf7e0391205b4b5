//! The last guard before user code: marks, coalesced.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::sleep;

use crate::{
    Error,
    model::{MarkOutcome, Outcome},
    worker::{
        coalescer::{Batch, Coalescer},
        finaliser::{Finaliser, Finished},
        running::Run,
        shared::Shared,
        trouble::Trouble,
    },
};

/// Marks rows as processing, many in one statement.
#[derive(Debug, Clone)]
pub(crate) struct Marker(Coalescer<Arc<Run>, Marked>);

/// The answer to a mark. Dropped instead of taken, the mark is undone: no user code ran, no attempt is used.
#[derive(Debug)]
struct Marked {
    run: Arc<Run>,
    outcome: Option<MarkOutcome>,
    finaliser: Finaliser,
}

impl Marked {
    fn take(mut self) -> Option<MarkOutcome> {
        self.outcome.take()
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        if let Some(MarkOutcome::Started { .. }) = self.outcome {
            self.run.end();
            let outcome = Outcome::Snooze { delay: Duration::ZERO };
            self.finaliser.push_now(Finished { run: Arc::clone(&self.run), outcome });
        }
    }
}

impl Marker {
    const LARGEST: usize = 500;

    pub(crate) fn spawn(shared: Arc<Shared>, finaliser: Finaliser) -> Self {
        let trouble = Trouble::new(&shared.episode, "mark", Duration::from_secs(2));
        Self(Coalescer::spawn(Self::LARGEST, Self::LARGEST, Marks { shared, finaliser, trouble }).0)
    }

    /// Marks one row. `None`: the worker ended before the storage answered.
    pub(crate) async fn mark(&self, run: &Arc<Run>) -> Option<MarkOutcome> {
        self.0.call(Arc::clone(run)).await.ok().and_then(Marked::take)
    }
}

struct Marks {
    shared: Arc<Shared>,
    finaliser: Finaliser,
    trouble: Trouble,
}

impl Batch<Arc<Run>, Marked> for Marks {
    /// Marks until the storage answers, also while the worker stops: a repeat recognises what an unanswered call did,
    /// and what was marked can then be given back. Marked rows beat from here on.
    async fn execute(&mut self, runs: Vec<Arc<Run>>) -> Vec<Marked> {
        let (sent, outcomes) = match self.mark(&runs).await {
            Ok(answer) => answer,
            Err(error) if runs.len() == 1 => {
                refused(&runs[0], &error);
                (Instant::now(), vec![MarkOutcome::LeaseLost])
            }
            // One row that cannot be marked must not hold up the others.
            Err(_) => self.mark_one_by_one(&runs).await,
        };
        let answer = |(run, outcome): (Arc<Run>, MarkOutcome)| {
            if let MarkOutcome::Started { .. } = outcome {
                run.renew(sent);
                self.shared.running.insert(Arc::clone(&run));
            }
            Marked { run, outcome: Some(outcome), finaliser: self.finaliser.clone() }
        };
        runs.into_iter().zip(outcomes).map(answer).collect()
    }
}

impl Marks {
    /// The outcomes, and when the call that brought them was sent.
    async fn mark(&mut self, runs: &[Arc<Run>]) -> Result<(Instant, Vec<MarkOutcome>), Error> {
        loop {
            let leases = runs.iter().map(|run| run.lease.clone()).collect();
            let sent = Instant::now();
            match self.shared.storage().mark_as_processing(leases).await {
                Ok(outcomes) => {
                    self.trouble.over();
                    return Ok((sent, outcomes));
                }
                Err(error) if error.is_transient() => sleep(self.trouble.failed(&error)).await,
                Err(error) => return Err(error),
            }
        }
    }

    async fn mark_one_by_one(&mut self, runs: &[Arc<Run>]) -> (Instant, Vec<MarkOutcome>) {
        let first_sent = Instant::now();
        let mut outcomes = Vec::with_capacity(runs.len());
        for run in runs {
            let one = self.mark(std::slice::from_ref(run)).await;
            outcomes.push(match one {
                Ok((_, outcomes)) => outcomes.first().copied().unwrap_or(MarkOutcome::LeaseLost),
                Err(error) => {
                    refused(run, &error);
                    MarkOutcome::LeaseLost
                }
            });
        }
        (first_sent, outcomes)
    }
}

fn refused(run: &Run, error: &Error) {
    let job_id = run.lease.job();
    tracing::error!(%job_id, ?error, "the start of a job cannot be stored: it does not run, and goes back after the fetched limit");
}
