//! Frees what dead workers hold. Safe in every process at once.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use crate::{
    model::ZombieScan,
    worker::shared::{Shared, Trouble},
};

/// Rows of one statement.
const BATCH: usize = 100;

/// The loop; runs until it is aborted.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut trouble = Trouble::new("rescue", Duration::from_secs(30));
    loop {
        // Jitter, so that many processes do not scan together.
        sleep(shared.settings.scan_interval.mul_f64(0.8 + 0.4 * fastrand::f64())).await;
        match scan(&shared).await {
            Ok(()) => trouble.over(),
            Err(error) => sleep(trouble.failed(&error)).await,
        }
    }
}

async fn scan(shared: &Shared) -> crate::Result<()> {
    let settings = &shared.settings;
    let storage = shared.storage();
    loop {
        let rows = storage.recover_abandoned(settings.fetched_limit, BATCH).await?;
        if rows > 0 {
            tracing::warn!(rows, "fetched rows that no worker started went back");
        }
        if rows < BATCH as u64 {
            break;
        }
    }
    let scan = ZombieScan {
        lease: settings.lease,
        suspicion: 2 * settings.heartbeat_interval,
        batch: BATCH,
    };
    loop {
        let zombies = storage.archive_zombies(scan).await?;
        for zombie in &zombies {
            tracing::error!(
                job_id = %zombie.job,
                job_type = zombie.job_type,
                queue = zombie.queue,
                worker = zombie.worker,
                retried = zombie.retried,
                "job's worker died while it ran"
            );
        }
        if zombies.len() < BATCH {
            return Ok(());
        }
    }
}
