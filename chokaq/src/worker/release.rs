//! Fetched rows that go back without having been started.

use std::time::Duration;

use crate::{
    model::{FetchedJob, Lease, Release},
    worker::shared::Shared,
};

/// Gives fetched rows back, best effort: what cannot be given back now, `recover_abandoned` frees later.
pub(crate) async fn give_back(shared: &Shared, leases: impl IntoIterator<Item = Lease>) {
    let back = |lease| Release { lease, delay: None, unknown_type: false };
    release(shared, leases.into_iter().map(back).collect()).await;
}

/// Gives rows back whose type's circuit is open, due when it may try again.
pub(crate) async fn hold_back(shared: &Shared, jobs: impl IntoIterator<Item = FetchedJob>) {
    // What is held back together does not come back to the millisecond with what others hold back.
    let jitter = Duration::from_millis(fastrand::u64(0..1_000));
    let back = |job: FetchedJob| {
        let wait = shared.circuit_wait(&job).map(|wait| rounded(wait) + jitter);
        // At the end of its lifetime it is looked at again, and dies.
        let delay = wait.map(|wait| wait.min(job.expires_in));
        Release { lease: job.lease, delay, unknown_type: false }
    };
    release(shared, jobs.into_iter().map(back).collect()).await;
}

/// Up to the next tenth of a second, so that rows which wait equally long go in one statement.
fn rounded(wait: Duration) -> Duration {
    const STEP: u64 = 100;
    let steps = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX) / STEP + 1;
    Duration::from_millis(steps.saturating_mul(STEP))
}

pub(crate) async fn release(shared: &Shared, releases: Vec<Release>) {
    if releases.is_empty() {
        return;
    }
    let rows = releases.len();
    match shared.storage().release(releases).await {
        Ok(_) => tracing::debug!(rows, "gave fetched rows back"),
        Err(error) => {
            tracing::warn!(rows, ?error, "could not give fetched rows back; recovery will");
        }
    }
}
