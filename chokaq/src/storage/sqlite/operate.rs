//! What operators change.

use std::collections::HashSet;

use rusqlite::{OptionalExtension, named_params, types::Value};

use crate::{
    Error,
    model::{CancelOutcome, JobId, QueueSettings, ResurrectEdits, ResurrectOutcome},
    storage::sqlite::{
        endings::same_number,
        enqueue::ensure_queue,
        failure::Outcome,
        fetch::rows,
        queries,
        row::Cells,
        totals::Totals,
        tx::{Tx, array, ms},
    },
};

/// Waiting rows die at once, running ones are flagged.
pub(super) fn cancel(tx: &Tx<'_>, ids: &[JobId], reason: &str) -> Outcome<Vec<CancelOutcome>> {
    let mut cancelled = cancel_waiting(tx, ids, reason)?;
    let ids_value = array(ids.iter().map(blob));
    let mut statement = tx.statement(queries::CANCEL_RUNNING.statement())?;
    let requested = statement.query(named_params! { "@ids": ids_value, "@now": tx.now_ms() })?;
    let requested = jobs(requested)?;
    if cancelled.len() + requested.len() < ids.len() {
        // A repeated call finds in the dead-letter queue what its first run put there.
        let mut statement = tx.statement(queries::FIND_CANCELLED.statement())?;
        let found = statement.query(named_params! { "@ids": ids_value, "@reason": reason })?;
        cancelled.extend(jobs(found)?);
    }
    let outcome = |id| {
        if cancelled.contains(id) {
            CancelOutcome::Cancelled
        } else if requested.contains(id) {
            CancelOutcome::Requested
        } else {
            CancelOutcome::NotActive
        }
    };
    Ok(ids.iter().map(outcome).collect())
}

fn cancel_waiting(tx: &Tx<'_>, ids: &[JobId], reason: &str) -> Outcome<HashSet<JobId>> {
    let [insert, delete] = queries::CANCEL_WAITING.statements();
    let ids = array(ids.iter().map(blob));
    let mut statement = tx.statement(insert)?;
    let moved =
        statement.query(named_params! { "@ids": ids, "@reason": reason, "@now": tx.now_ms() })?;
    let moved = rows(moved, |row| {
        let cells = Cells::new("JobsDLQ", row);
        Ok((cells.job(0)?, cells.get::<String>(1)?))
    })?;
    let deleted = tx.statement(delete)?.execute(named_params! { "@ids": ids })?;
    same_number(moved.len(), deleted)?;
    let mut totals = Totals::default();
    let mut cancelled = HashSet::new();
    for (job, queue) in moved {
        totals.failed(queue);
        cancelled.insert(job);
    }
    totals.write(tx)?;
    Ok(cancelled)
}

/// Dead -> Pending, one by one, so that a key repeated within the call is held by the first of them.
pub(super) fn resurrect(
    tx: &Tx<'_>,
    ids: &[JobId],
    edits: &ResurrectEdits,
) -> Outcome<Vec<ResurrectOutcome>> {
    if let Some(queue) = &edits.queue {
        ensure_queue(tx, queue)?;
    }
    let mut totals = Totals::default();
    let outcomes = ids.iter().map(|id| resurrect_one(tx, *id, edits, &mut totals)).collect();
    totals.write(tx)?;
    outcomes
}

fn resurrect_one(
    tx: &Tx<'_>,
    id: JobId,
    edits: &ResurrectEdits,
    totals: &mut Totals,
) -> Outcome<ResurrectOutcome> {
    let [insert, delete] = queries::RESURRECT.statements();
    let queue: Option<String> = tx
        .statement(insert)?
        .query_row(
            named_params! {
                "@id": id.as_bytes(),
                "@queue": edits.queue,
                "@priority": edits.priority,
                "@edits_tags": edits.tags.is_some(),
                "@tags": edits.tags.clone().flatten(),
                "@payload": edits.payload.as_ref().map(|payload| &payload.0),
                "@now": tx.now_ms(),
            },
            |row| row.get(0),
        )
        .optional()?;
    let Some(queue) = queue else { return why_not_resurrected(tx, id) };
    let deleted = tx.statement(delete)?.execute(named_params! { "@id": id.as_bytes() })?;
    same_number(1, deleted)?;
    tx.note_work();
    totals.touched(queue);
    Ok(ResurrectOutcome::Resurrected)
}

fn why_not_resurrected(tx: &Tx<'_>, id: JobId) -> Outcome<ResurrectOutcome> {
    let mut statement = tx.statement(queries::FIND_RESURRECTED.statement())?;
    let mut found = statement.query(named_params! { "@id": id.as_bytes() })?;
    let Some(row) = found.next()? else { return Ok(ResurrectOutcome::NotDead) };
    let cells = Cells::new("JobsDLQ", row);
    let (is_dead, is_resurrected) = (cells.get::<bool>(0)?, cells.get::<bool>(1)?);
    match (is_dead, is_resurrected, cells.get::<Option<[u8; 16]>>(2)?) {
        (true, _, Some(holder)) => Ok(ResurrectOutcome::KeyHeld { by: JobId::from_bytes(holder) }),
        (true, _, None) => Err(Error::permanent(
            format!("job {id} stands in JobsDLQ and in JobsHot: delete one of the rows"),
            None,
        )
        .into()),
        (false, true, _) => Ok(ResurrectOutcome::Resurrected),
        (false, false, _) => Ok(ResurrectOutcome::NotDead),
    }
}

/// Changes the settings that are named.
pub(super) fn set_queue(tx: &Tx<'_>, queue: &str, change: &QueueSettings) -> Outcome<()> {
    ensure_queue(tx, queue)?;
    tx.statement(queries::SET_QUEUE.statement())?.execute(named_params! {
        "@queue": queue,
        "@paused": change.paused,
        "@active": change.active,
        "@sets_max_workers": change.max_workers.is_some(),
        "@max_workers": change.max_workers.flatten(),
        "@sets_zombie_timeout": change.zombie_timeout.is_some(),
        "@zombie_timeout_ms": change.zombie_timeout.flatten().map(ms),
        "@now": tx.now_ms(),
    })?;
    // It may have been resumed, or have got more room.
    tx.note_work();
    Ok(())
}

fn blob(id: &JobId) -> Value {
    Value::Blob(id.as_bytes().to_vec())
}

fn jobs(found: rusqlite::Rows<'_>) -> Outcome<HashSet<JobId>> {
    Ok(rows(found, |row| Cells::new("JobsHot", row).job(0))?.into_iter().collect())
}
