//! Tells the database of the circuits that are not closed, so that people see them from anywhere.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{select, time::sleep};

use crate::worker::{shared::Shared, trouble::Trouble};

/// The longest time between two words about an open circuit: readers take a circuit for gone after four times as long.
const LONGEST: Duration = Duration::from_secs(30);

/// The loop; runs until it is aborted. A worker without open circuits says nothing.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut trouble = Trouble::new(&shared.episode, "circuits", Duration::from_secs(5));
    let pause = shared.settings.heartbeat_interval.min(LONGEST);
    loop {
        select! {
            () = shared.circuits.changed.notified() => {}
            () = sleep(pause) => {}
        }
        while let Err(error) = tell(&shared).await {
            sleep(trouble.failed(&error)).await;
        }
        trouble.over();
    }
}

/// The worker ends, and its circuits with it.
pub(crate) async fn take_back(shared: &Shared) {
    if shared.has_told_of_circuits.load(Ordering::Relaxed) {
        let nothing = shared.storage().report_circuits(shared.id.clone(), Vec::new()).await;
        if let Err(error) = nothing {
            tracing::debug!(?error, "circuits of this worker stay to be seen for two minutes");
        }
    }
}

async fn tell(shared: &Shared) -> crate::Result<()> {
    let reports = shared.circuits.reports();
    let has_open = !reports.is_empty();
    if has_open || shared.has_told_of_circuits.load(Ordering::Relaxed) {
        // Before the call: one that fails may have been committed.
        shared.has_told_of_circuits.store(true, Ordering::Relaxed);
        shared.storage().report_circuits(shared.id.clone(), reports).await?;
        shared.has_told_of_circuits.store(has_open, Ordering::Relaxed);
    }
    Ok(())
}
