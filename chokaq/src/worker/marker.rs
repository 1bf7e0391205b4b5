//! The last guard before user code: marks, coalesced.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{select, time::sleep};

use crate::{
    model::{MarkOutcome, Outcome},
    worker::{
        coalescer::{Batch, Coalescer},
        finaliser::{Finaliser, Finished},
        running::Run,
        shared::{Shared, Trouble},
    },
};

/// Marks rows as processing, many in one statement.
#[derive(Debug, Clone)]
pub(crate) struct Marker(Coalescer<Arc<Run>, Marked>);

#[derive(Debug)]
struct Marked {
    run: Arc<Run>,
    outcome: MarkOutcome,
}

impl Marker {
    const LARGEST: usize = 500;

    pub(crate) fn spawn(shared: Arc<Shared>, finaliser: Finaliser) -> Self {
        let trouble = Trouble::new("mark", Duration::from_secs(2));
        Self(Coalescer::spawn(Self::LARGEST, Self::LARGEST, Marks { shared, finaliser, trouble }).0)
    }

    /// Marks one row. `None`: the worker stopped before the storage answered.
    pub(crate) async fn mark(&self, run: &Arc<Run>) -> Option<MarkOutcome> {
        self.0.call(Arc::clone(run)).await.ok().map(|marked| marked.outcome)
    }
}

struct Marks {
    shared: Arc<Shared>,
    finaliser: Finaliser,
    trouble: Trouble,
}

impl Batch<Arc<Run>, Marked> for Marks {
    /// Marks until the storage answers: a repeat recognises what an unanswered call did. Marked rows beat from here on.
    async fn execute(&mut self, runs: Vec<Arc<Run>>) -> Vec<Marked> {
        loop {
            let leases = runs.iter().map(|run| run.lease.clone()).collect();
            let sent = Instant::now();
            match self.shared.storage().mark_as_processing(leases).await {
                Ok(outcomes) => {
                    self.trouble.over();
                    return self.marked(runs, outcomes, sent);
                }
                Err(error) => {
                    let pause = self.trouble.failed(&error);
                    select! {
                        // The rows are Fetched, or Processing without a beat: rescue finds them either way.
                        () = self.shared.stop.cancelled() => return Vec::new(),
                        () = sleep(pause) => {}
                    }
                }
            }
        }
    }

    /// A mark whose caller is gone is undone: no user code ran, no attempt is used.
    fn orphaned(&mut self, marked: Marked) {
        if let MarkOutcome::Started { .. } = marked.outcome {
            let outcome = Outcome::Snooze { delay: Duration::ZERO };
            self.finaliser.push_now(Finished { run: marked.run, outcome });
        }
    }
}

impl Marks {
    fn marked(
        &self,
        runs: Vec<Arc<Run>>,
        outcomes: Vec<MarkOutcome>,
        sent: Instant,
    ) -> Vec<Marked> {
        let answer = |(run, outcome): (Arc<Run>, MarkOutcome)| {
            if let MarkOutcome::Started { .. } = outcome {
                run.renew(sent);
                self.shared.running.insert(Arc::clone(&run));
            }
            Marked { run, outcome }
        };
        runs.into_iter().zip(outcomes).map(answer).collect()
    }
}
