//! What becomes of jobs whose worker died.

use std::time::Duration;

use crate::{
    model::{FailureReason, Zombie, ZombieScan},
    storage::mssql::{
        answer::Row,
        batch::{count, ms},
        call::Call,
        core::{Core, Effort},
        failure::Failure,
        session::Role,
        statements::{ARCHIVE_ZOMBIES, NOTE_SUSPECTS, RECOVER_ABANDONED, RETRY_ZOMBIES},
    },
};

/// Fetched for too long -> Pending.
pub(super) async fn recover_abandoned(
    core: &Core,
    limit: Duration,
    batch: usize,
) -> Result<u64, Failure> {
    let call =
        Call::new(&RECOVER_ABANDONED).bind("limit_ms", ms(limit)).bind("batch", count(batch));
    let rows = core.run(Role::Maintenance, Effort::Brief, &call).await?.rows()?;
    let recovered: u64 = rows.first().map(|row| row.get(0)).transpose()?.unwrap_or(0);
    if recovered > 0 {
        core.note_work();
    }
    Ok(recovered)
}

/// Moves those that an earlier scan noted, then notes the new ones: a row noted now needs another scan in any case.
pub(super) async fn archive_zombies(core: &Core, scan: ZombieScan) -> Result<Vec<Zombie>, Failure> {
    let limits = |call: Call| {
        call.bind("lease_ms", ms(scan.lease))
            .bind("suspicion_ms", ms(scan.suspicion))
            .bind("batch", count(scan.batch))
    };
    let retried = run(core, limits(Call::new(&RETRY_ZOMBIES))).await?;
    if !retried.is_empty() {
        core.note_work();
    }
    let buried = run(core, limits(Call::new(&ARCHIVE_ZOMBIES))).await?;
    run(core, Call::new(&NOTE_SUSPECTS).bind("lease_ms", ms(scan.lease))).await?;
    let retried = retried.iter().map(|row| zombie(row, None));
    let buried = buried.iter().map(|row| {
        let reason: String = row.get(4)?;
        let reason = FailureReason::from_name(&reason)
            .ok_or_else(|| row.unreadable(4, &format!("holds {reason:?}, no failure reason")))?;
        if row.get(5)? {
            core.note_work();
        }
        zombie(row, Some(reason))
    });
    retried.chain(buried).collect()
}

async fn run(core: &Core, call: Call) -> Result<Vec<Row>, Failure> {
    core.run(Role::Maintenance, Effort::Brief, &call).await?.rows()
}

fn zombie(row: &Row, reason: Option<FailureReason>) -> Result<Zombie, Failure> {
    Ok(Zombie {
        job: row.get(0)?,
        queue: row.get(1)?,
        job_type: row.get(2)?,
        worker: row.get(3)?,
        reason,
    })
}
