//! One worker's thread: starts the parts, ends them in order.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::{
    runtime::{Builder, Handle},
    task::JoinSet,
    time::timeout,
};

use crate::{
    Error, Result,
    job::CancelCause,
    worker::{
        circuit_reports,
        control::{self, ControlClock},
        fetcher::{self, Until},
        finaliser::Finaliser,
        heartbeat,
        left::Left,
        marker::Marker,
        processor::Processor,
        release::give_back,
        rescue,
        shared::Shared,
    },
};

/// How long outcomes that wait for the storage are still tried once all handlers have ended.
const FINALISE_GRACE: Duration = Duration::from_secs(30);

/// Runs the worker on this thread, with a runtime of its own: a handler that blocks every thread of the user's runtime
/// does not stop the heartbeats.
pub(crate) fn run_on_this_thread(
    shared: Arc<Shared>,
    until: Until,
    handlers: Handle,
) -> Result<()> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::permanent("the worker's runtime cannot start", Some(e.into())))?;
    runtime.block_on(run(shared, until, handlers))
}

async fn run(shared: Arc<Shared>, until: Until, handlers: Handle) -> Result<()> {
    let clock = ControlClock::new();
    let finaliser = Finaliser::spawn(Arc::clone(&shared));
    let marker = Marker::spawn(Arc::clone(&shared), finaliser.clone());
    let processor =
        Processor { shared: Arc::clone(&shared), marker, finaliser: finaliser.clone(), handlers };

    // What keeps leases and rescues goes on until the very end.
    let mut keepers = JoinSet::new();
    keepers.spawn(keep("heartbeat", Arc::clone(&shared), heartbeat::run));
    keepers.spawn(keep("rescue", Arc::clone(&shared), rescue::run));
    keepers.spawn(keep("circuits", Arc::clone(&shared), circuit_reports::run));
    let control_clock = clock.clone();
    keepers.spawn(keep("control", Arc::clone(&shared), move |shared| {
        control::run(shared, control_clock.clone())
    }));

    let mut feeders = JoinSet::new();
    feeders.spawn(fetcher::run(Arc::clone(&shared), until, clock));
    feeders.spawn(processor.run());
    shared.stop.cancelled().await;
    // A fetch that is out is waited for: what it claimed is given back, not left to recovery.
    while feeders.join_next().await.is_some() {}
    let mut given_back = empty_the_buffer(&shared).await;
    let running = end_jobs(&shared).await;
    // Rows whose tasks a dying runtime dropped before they began.
    given_back += empty_the_buffer(&shared).await;
    let unstored = match timeout(FINALISE_GRACE, shared.running.all_finalised()).await {
        Ok(()) => 0,
        Err(_) => shared.running.unfinalised(),
    };
    keepers.shutdown().await;
    circuit_reports::take_back(&shared).await;
    let left = Left { running, unstored };
    tell_the_end(&shared, given_back, left);
    shared.end.reach(left);
    left.result(shared.settings.lease)
}

/// The last line of a worker.
fn tell_the_end(shared: &Shared, given_back: usize, left: Left) {
    let Left { running, unstored } = left;
    let worker = &shared.id;
    if left == Left::default() {
        tracing::info!(%worker, given_back, running, unstored, "worker stopped");
    } else {
        tracing::error!(%worker, given_back, running, unstored, "worker stopped and left jobs to rescue");
    }
}

/// Runs a loop that must not end; should it panic, the log says so and it is started again.
async fn keep<F>(name: &'static str, shared: Arc<Shared>, task: impl Fn(Arc<Shared>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        let ended = tokio::spawn(task(Arc::clone(&shared)));
        let abort = AbortOnDrop(ended.abort_handle());
        if let Err(error) = ended.await {
            tracing::error!(task = name, %error, "a part of the worker failed; it is started again");
        }
        drop(abort);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// A task of a keeper ends with its keeper.
struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn empty_the_buffer(shared: &Shared) -> usize {
    let waiting = shared.buffer.take(|_| true);
    let rows = waiting.len();
    give_back(shared, waiting.into_iter().map(|job| job.lease)).await;
    rows
}

/// Running jobs get the grace, then their contexts are cancelled and they get the cancel grace. Answers how many go on.
async fn end_jobs(shared: &Shared) -> usize {
    shared.tasks.close();
    let running = shared.running.len();
    if running > 0 {
        let grace = shared.settings.shutdown_grace;
        tracing::info!(running, ?grace, "worker stops; running jobs get the grace to finish");
    }
    if timeout(shared.settings.shutdown_grace, shared.tasks.wait()).await.is_ok() {
        return 0;
    }
    for run in shared.running.all() {
        heartbeat::cancel(&run, CancelCause::Shutdown);
    }
    // One second more than a handler gets: its task still has to hand its outcome over.
    let grace = shared.settings.cancel_grace + Duration::from_secs(1);
    match timeout(grace, shared.tasks.wait()).await {
        Ok(()) => 0,
        Err(_) => shared.tasks.len(),
    }
}
