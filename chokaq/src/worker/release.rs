//! Fetched rows that go back without having been started.

use crate::{
    model::{Lease, Release},
    worker::shared::Shared,
};

/// Gives fetched rows back, best effort: what cannot be given back now, `recover_abandoned` frees later.
pub(crate) async fn give_back(shared: &Shared, leases: impl IntoIterator<Item = Lease>) {
    let releases: Vec<_> = leases
        .into_iter()
        .map(|lease| Release { lease, delay: None, unknown_type: false })
        .collect();
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
