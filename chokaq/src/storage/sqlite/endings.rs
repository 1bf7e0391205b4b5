//! The statements that end an attempt, each over the rows of one lease.

use std::{collections::HashMap, time::Duration};

use rusqlite::{named_params, vtab::array::Array};

use crate::{
    Error,
    model::{AttemptError, FailureReason, FinishOutcome, JobId},
    storage::sqlite::{
        failure::Outcome,
        fetch::rows,
        leases::Holder,
        queries,
        row::Cells,
        totals::Totals,
        tx::{Tx, ms},
    },
};

/// The rows of one statement: all that a guard compares.
pub(super) struct Owned<'a> {
    pub(super) holder: Holder<'a>,
    pub(super) seqs: Array,
}

/// What became of the rows that were the lease's.
pub(super) type Done = HashMap<JobId, FinishOutcome>;

/// What is added to a row's errors; without an attempt, the row's own count is taken.
#[derive(Clone, Copy)]
pub(super) struct ErrorEntry<'a> {
    attempt: Option<u32>,
    kind: &'static str,
    text: &'a str,
}

impl<'a> ErrorEntry<'a> {
    pub(super) const CANCELLED: Self = Self {
        attempt: None,
        kind: "cancelled",
        text: "cancelled while it ran; it asked to be run again later",
    };

    pub(super) fn of(error: &'a AttemptError) -> Self {
        Self { attempt: Some(error.attempt), kind: error.kind, text: &error.text }
    }
}

pub(super) fn archive(
    tx: &Tx<'_>,
    owned: &Owned<'_>,
    output: Option<&str>,
    note: Option<&str>,
    totals: &mut Totals,
) -> Outcome<Done> {
    let [insert, delete] = queries::ARCHIVE_SUCCEEDED.statements();
    let mut statement = tx.statement(insert)?;
    let archived = statement.query(named_params! {
        "@seqs": owned.seqs,
        "@worker": owned.holder.worker.as_str(),
        "@lease": owned.holder.lease.as_bytes(),
        "@now": tx.now_ms(),
        "@output": output,
        "@note": note,
    })?;
    let archived = rows(archived, |row| {
        let cells = Cells::new("JobsArchive", row);
        Ok((cells.job(0)?, cells.get::<String>(1)?, cells.get::<i64>(2)?))
    })?;
    delete_moved(tx, owned, delete, archived.len())?;
    let mut done = Done::new();
    for (job, queue, duration_ms) in archived {
        totals.succeeded(queue, duration_ms);
        done.insert(job, FinishOutcome::Done);
    }
    Ok(done)
}

/// Without a reason, the row says why: see the file.
pub(super) fn move_to_dlq(
    tx: &Tx<'_>,
    owned: &Owned<'_>,
    reason: Option<FailureReason>,
    error: ErrorEntry<'_>,
    totals: &mut Totals,
) -> Outcome<Done> {
    let [insert, delete] = queries::MOVE_TO_DLQ.statements();
    let mut statement = tx.statement(insert)?;
    let moved = statement.query(named_params! {
        "@seqs": owned.seqs,
        "@worker": owned.holder.worker.as_str(),
        "@lease": owned.holder.lease.as_bytes(),
        "@now": tx.now_ms(),
        "@reason": reason.map(FailureReason::as_str),
        "@error_attempt": error.attempt,
        "@error_kind": error.kind,
        "@error_text": error.text,
    })?;
    let moved = rows(moved, |row| {
        let cells = Cells::new("JobsDLQ", row);
        Ok((cells.job(0)?, cells.get::<String>(1)?, cells.reason(2)?))
    })?;
    delete_moved(tx, owned, delete, moved.len())?;
    let mut done = Done::new();
    for (job, queue, stored) in moved {
        totals.failed(queue);
        let outcome = match (reason, stored) {
            (None, FailureReason::RetryLifetimeExpired) => FinishOutcome::LifetimeExpired,
            (None, FailureReason::Cancelled) => FinishOutcome::Cancelled,
            _ => FinishOutcome::Done,
        };
        done.insert(job, outcome);
    }
    Ok(done)
}

fn delete_moved(tx: &Tx<'_>, owned: &Owned<'_>, sql: &'static str, moved: usize) -> Outcome<()> {
    if moved == 0 {
        return Ok(());
    }
    let deleted = tx.statement(sql)?.execute(named_params! {
        "@seqs": owned.seqs,
        "@worker": owned.holder.worker.as_str(),
        "@lease": owned.holder.lease.as_bytes(),
    })?;
    same_number(moved, deleted)
}

/// A job is in exactly one table: what was copied is what is deleted, or nothing is.
pub(super) fn same_number(copied: usize, deleted: usize) -> Outcome<()> {
    if copied == deleted {
        return Ok(());
    }
    let what = format!(
        "{copied} rows were copied out of JobsHot and {deleted} deleted: nothing is kept of it"
    );
    Err(Error::permanent(what, None).into())
}

pub(super) fn reschedule(
    tx: &Tx<'_>,
    owned: &Owned<'_>,
    delay: Duration,
    error: ErrorEntry<'_>,
    totals: &mut Totals,
) -> Outcome<Done> {
    let mut statement = tx.statement(queries::RESCHEDULE_FOR_RETRY.statement())?;
    let rescheduled = statement.query(named_params! {
        "@seqs": owned.seqs,
        "@worker": owned.holder.worker.as_str(),
        "@lease": owned.holder.lease.as_bytes(),
        "@now": tx.now_ms(),
        "@due": tx.now_ms().saturating_add(ms(delay)),
        "@error_attempt": error.attempt,
        "@error_kind": error.kind,
        "@error_text": error.text,
    })?;
    let rescheduled = rows(rescheduled, |row| {
        let cells = Cells::new("JobsHot", row);
        Ok((cells.job(0)?, cells.get::<String>(1)?))
    })?;
    let mut done = Done::new();
    for (job, queue) in rescheduled {
        tx.note_work();
        totals.retried(queue);
        done.insert(job, FinishOutcome::Done);
    }
    Ok(done)
}

pub(super) fn snooze(tx: &Tx<'_>, owned: &Owned<'_>, delay: Duration) -> Outcome<Done> {
    let mut statement = tx.statement(queries::SNOOZE.statement())?;
    let snoozed = statement.query(named_params! {
        "@seqs": owned.seqs,
        "@worker": owned.holder.worker.as_str(),
        "@lease": owned.holder.lease.as_bytes(),
        "@now": tx.now_ms(),
        "@due": tx.now_ms().saturating_add(ms(delay)),
    })?;
    let snoozed =
        rows(snoozed, |row| Ok((Cells::new("JobsHot", row).job(0)?, FinishOutcome::Done)))?;
    if !snoozed.is_empty() {
        tx.note_work();
    }
    Ok(snoozed.into_iter().collect())
}
