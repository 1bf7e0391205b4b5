//! Keeps the leases of running jobs, all in one statement a beat.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{select, time::sleep};

use crate::{
    job::CancelCause,
    model::{Beat, BeatOutcome},
    worker::{running::Run, shared::Shared, trouble::Trouble},
};

/// The longest wait between two tries to beat while the storage fails.
const RECONNECT: Duration = Duration::from_secs(5);

/// How often a lease that cannot be renewed is looked at.
const WATCH: Duration = Duration::from_millis(250);

/// The loop; runs until it is aborted, after the last outcome is committed.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut trouble = Trouble::new(&shared.episode, "heartbeat", RECONNECT);
    loop {
        select! {
            () = sleep(shared.queue_leases.beat_interval(shared.settings.heartbeat_interval)) => {}
            () = shared.beat_now.notified() => {}
        }
        while let Err(error) = beat(&shared).await {
            let again = Instant::now() + trouble.failed(&error);
            while Instant::now() < again {
                stop_overdue(&shared);
                sleep(WATCH.min(again - Instant::now())).await;
            }
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
    let beats: Vec<Beat> = runs.iter().map(|run| beat_of(run)).collect();
    let sent = Instant::now();
    let mut call = shared.storage().keep_alive(beats.clone());
    let answer = loop {
        select! {
            answer = &mut call => break answer,
            () = sleep(WATCH) => stop_overdue(shared),
        }
    };
    let outcomes = match answer {
        Ok(outcomes) => outcomes,
        Err(error) => {
            put_back(&runs, beats);
            return Err(error);
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

/// Progress that did not reach the storage goes with the next beat.
fn put_back(runs: &[Arc<Run>], beats: Vec<Beat>) {
    for (run, beat) in runs.iter().zip(beats) {
        if let (Some(context), Some(progress)) = (run.context(), beat.progress) {
            context.put_progress_back(progress);
        }
    }
}

/// Stops handlers whose lease was last renewed three quarters of a lease ago: soon another worker may take the job.
fn stop_overdue(shared: &Shared) {
    for run in shared.running.all() {
        if shared.is_overdue(&run) {
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
