//! Keeps the leases of running jobs, all in one statement a beat.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    select,
    time::{MissedTickBehavior, interval, sleep},
};

use crate::{
    job::CancelCause,
    model::{Beat, BeatOutcome},
    worker::{
        running::Run,
        shared::{Shared, Trouble},
    },
};

/// The longest wait between two tries to beat while the storage fails.
const RECONNECT: Duration = Duration::from_secs(5);

/// The loop; runs until it is aborted, after the last outcome is committed.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut ticks = interval(shared.settings.heartbeat_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut trouble = Trouble::new("heartbeat", RECONNECT);
    loop {
        ticks.tick().await;
        while let Err(error) = beat(&shared).await {
            let pause = trouble.failed(&error);
            stop_overdue(&shared);
            sleep(pause).await;
        }
        trouble.over();
    }
}

/// One beat of everything that runs. While it is out, handlers whose lease runs dry are stopped.
async fn beat(shared: &Shared) -> crate::Result<()> {
    let runs = shared.running.all();
    if runs.is_empty() {
        return Ok(());
    }
    let beats = runs.iter().map(|run| beat_of(run)).collect();
    let sent = Instant::now();
    let mut call = shared.storage().keep_alive(beats);
    let outcomes = loop {
        select! {
            outcomes = &mut call => break outcomes?,
            () = sleep(Duration::from_secs(1)) => stop_overdue(shared),
        }
    };
    for (run, outcome) in runs.iter().zip(outcomes) {
        match outcome {
            BeatOutcome::Alive => run.renew(sent),
            BeatOutcome::CancelRequested => {
                run.renew(sent);
                cancel(run, CancelCause::Requested);
            }
            BeatOutcome::LeaseLost => cancel(run, CancelCause::LeaseLost),
        }
    }
    Ok(())
}

fn beat_of(run: &Run) -> Beat {
    let progress = run.context().and_then(crate::JobContext::take_progress);
    Beat { lease: run.lease.clone(), progress }
}

/// Stops handlers whose lease was last renewed three quarters of a lease ago: soon another worker may take the job.
fn stop_overdue(shared: &Shared) {
    let limit = shared.settings.lease.mul_f64(0.75);
    for run in shared.running.all() {
        if run.renewed_at().elapsed() >= limit {
            cancel(&run, CancelCause::LeaseLost);
        }
    }
}

pub(crate) fn cancel(run: &Run, cause: CancelCause) {
    if run.cancel(cause) {
        let job_id = run.lease.job();
        tracing::warn!(%job_id, job_type = run.job_type, queue = run.queue, ?cause, "job is told to stop");
    }
}
