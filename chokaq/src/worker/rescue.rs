//! Frees what dead workers hold. Safe in every process at once.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use crate::{
    model::{Zombie, ZombieScan},
    worker::{
        shared::{DeadLetter, Shared},
        trouble::Trouble,
    },
};

/// Rows of one statement.
const BATCH: usize = 100;

/// The loop; runs until it is aborted.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut trouble = Trouble::new(&shared.episode, "rescue", Duration::from_secs(5));
    loop {
        // Jitter, so that many processes do not scan together.
        sleep(shared.settings.scan_interval.mul_f64(0.8 + 0.4 * fastrand::f64())).await;
        while let Err(error) = scan(&shared).await {
            sleep(trouble.failed(&error)).await;
        }
        trouble.over();
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
            report(shared, zombie);
        }
        if zombies.is_empty() {
            return Ok(());
        }
    }
}

fn report(shared: &Shared, zombie: &Zombie) {
    let Zombie { job, queue, job_type, worker, reason } = zombie;
    let worker = worker.as_deref().unwrap_or("an unknown worker");
    let Some(reason) = *reason else {
        tracing::warn!(job_id = %job, job_type, queue, worker, "job's worker died while it ran; it will be retried");
        return;
    };
    tracing::error!(job_id = %job, job_type, queue, worker, %reason, "job's worker died while it ran; the job is dead");
    shared.tell_of(&DeadLetter {
        id: *job,
        job_type: job_type.clone(),
        queue: queue.clone(),
        reason,
        error: format!("its worker {worker} died while it ran"),
    });
}
