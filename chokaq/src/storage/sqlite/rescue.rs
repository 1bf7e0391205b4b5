//! What becomes of jobs whose worker died.

use std::time::Duration;

use rusqlite::{named_params, types::Value, vtab::array::Array};

use crate::{
    model::{FailureReason, Zombie, ZombieScan},
    storage::sqlite::{
        endings::same_number,
        failure::Outcome,
        fetch::rows,
        queries,
        row::Cells,
        totals::Totals,
        tx::{Tx, array, count, ms},
    },
};

/// Fetched for too long -> Pending.
pub(super) fn recover_abandoned(tx: &Tx<'_>, limit: Duration, batch: usize) -> Outcome<u64> {
    let recovered =
        tx.statement(queries::RECOVER_ABANDONED.statement())?.execute(named_params! {
            "@before": tx.now_ms().saturating_sub(ms(limit)),
            "@batch": count(batch),
        })?;
    if recovered > 0 {
        tx.note_work();
    }
    Ok(u64::try_from(recovered).unwrap_or(u64::MAX))
}

/// Moves those that an earlier scan noted, then notes the new ones: a row noted now needs another scan in any case.
pub(super) fn archive_zombies(tx: &Tx<'_>, scan: ZombieScan) -> Outcome<Vec<Zombie>> {
    let found = find(tx, scan)?;
    let seqs = |retried: bool| {
        array(
            found
                .iter()
                .filter(|(_, zombie)| zombie.reason.is_none() == retried)
                .map(|(seq, _)| Value::from(*seq)),
        )
    };
    let (to_retry, to_bury) = (seqs(true), seqs(false));
    if !to_retry.is_empty() {
        let retried = tx
            .statement(queries::RETRY_ZOMBIES.statement())?
            .execute(named_params! { "@seqs": to_retry, "@now": tx.now_ms() })?;
        same_number(to_retry.len(), retried)?;
        tx.note_work();
    }
    if !to_bury.is_empty() {
        bury(tx, &to_bury)?;
    }
    note_suspects(tx, scan)?;
    let zombies: Vec<Zombie> = found.into_iter().map(|(_, zombie)| zombie).collect();
    count_in(tx, &zombies)?;
    Ok(zombies)
}

fn find(tx: &Tx<'_>, scan: ZombieScan) -> Outcome<Vec<(i64, Zombie)>> {
    let mut statement = tx.statement(queries::FIND_ZOMBIES.statement())?;
    let found = statement.query(named_params! {
        "@now": tx.now_ms(),
        "@lease_ms": ms(scan.lease),
        "@suspicion_ms": ms(scan.suspicion),
        "@batch": count(scan.batch),
    })?;
    rows(found, |row| {
        let cells = Cells::new("JobsHot", row);
        let zombie = Zombie {
            job: cells.job(1)?,
            queue: cells.get(2)?,
            job_type: cells.get(3)?,
            worker: cells.get(4)?,
            reason: match (cells.get(5)?, cells.get(6)?) {
                (true, _) => None,
                (false, true) => Some(FailureReason::Cancelled),
                (false, false) => Some(FailureReason::Zombie),
            },
        };
        Ok((cells.get(0)?, zombie))
    })
}

fn bury(tx: &Tx<'_>, seqs: &Array) -> Outcome<()> {
    let [insert, delete] = queries::ARCHIVE_ZOMBIES.statements();
    let buried =
        tx.statement(insert)?.execute(named_params! { "@seqs": seqs, "@now": tx.now_ms() })?;
    same_number(seqs.len(), buried)?;
    let deleted = tx.statement(delete)?.execute(named_params! { "@seqs": seqs })?;
    same_number(buried, deleted)
}

fn note_suspects(tx: &Tx<'_>, scan: ZombieScan) -> Outcome<()> {
    tx.statement(queries::NOTE_SUSPECTS.statement())?
        .execute(named_params! { "@now": tx.now_ms(), "@lease_ms": ms(scan.lease) })?;
    Ok(())
}

fn count_in(tx: &Tx<'_>, zombies: &[Zombie]) -> Outcome<()> {
    let mut totals = Totals::default();
    for zombie in zombies {
        let queue = zombie.queue.clone();
        match zombie.reason {
            None => totals.retried(queue),
            Some(_) => totals.failed(queue),
        }
    }
    totals.write(tx)
}
