//! The end of an attempt: history, retry or snooze, in one transaction with the counts.

use std::{collections::HashMap, time::Duration};

use rusqlite::{OptionalExtension, named_params, types::Value, vtab::array::Array};

use crate::{
    Error,
    model::{AttemptError, FailureReason, Finish, FinishOutcome, JobId, Lease, Outcome as Ending},
    storage::sqlite::{
        failure::Outcome,
        fetch::rows,
        leases::{Holder, holder},
        queries,
        row::Cells,
        totals::Totals,
        tx::{Tx, array, groups, ms},
    },
};

/// Finishes the batch: items that share a lease and an outcome go into one statement.
pub(super) fn finalise(tx: &Tx<'_>, batch: &[Finish]) -> Outcome<Vec<FinishOutcome>> {
    let mut outcomes = vec![FinishOutcome::LeaseLost; batch.len()];
    let mut totals = Totals::default();
    for ((holder, _), members) in
        groups(batch, |finish| (holder(&finish.lease), key(&finish.outcome)))
    {
        let owned =
            Owned { holder, seqs: array(members.iter().map(|i| Value::from(batch[*i].lease.seq))) };
        let ending = &batch[members[0]].outcome;
        let done = finish(tx, &owned, members.len(), ending, &mut totals)?;
        for index in members {
            let finish = &batch[index];
            outcomes[index] = match done.get(&finish.lease.job) {
                Some(outcome) => *outcome,
                None => recognise(tx, &finish.lease, &finish.outcome)?,
            };
        }
    }
    totals.write(tx)?;
    Ok(outcomes)
}

/// The rows of one statement: all that a guard compares.
struct Owned<'a> {
    holder: Holder<'a>,
    seqs: Array,
}

type Done = HashMap<JobId, FinishOutcome>;

/// What makes two outcomes one statement.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key<'a> {
    Succeeded(Option<&'a str>, Option<&'a str>),
    Dead(FailureReason, u32, &'static str, &'a str),
    Retry(Duration, u32, &'static str, &'a str),
    Snooze(Duration),
}

fn key(ending: &Ending) -> Key<'_> {
    match ending {
        Ending::Succeeded { output, note } => Key::Succeeded(output.as_deref(), note.as_deref()),
        Ending::Dead { reason, error } => {
            Key::Dead(*reason, error.attempt, error.kind, &error.text)
        }
        Ending::Retry { delay, error } => {
            Key::Retry(*delay, error.attempt, error.kind, &error.text)
        }
        Ending::Snooze { delay } => Key::Snooze(*delay),
    }
}

fn finish(
    tx: &Tx<'_>,
    owned: &Owned<'_>,
    count: usize,
    ending: &Ending,
    totals: &mut Totals,
) -> Outcome<Done> {
    match ending {
        Ending::Succeeded { output, note } => {
            archive(tx, owned, output.as_deref(), note.as_deref(), totals)
        }
        Ending::Dead { reason, error } => {
            move_to_dlq(tx, owned, Some(*reason), ErrorEntry::of(error), totals)
        }
        Ending::Retry { delay, error } => {
            let entry = ErrorEntry::of(error);
            let mut done = reschedule(tx, owned, *delay, entry, totals)?;
            if done.len() < count {
                done.extend(move_to_dlq(tx, owned, None, entry, totals)?);
            }
            Ok(done)
        }
        Ending::Snooze { delay } => {
            let mut done = snooze(tx, owned, *delay)?;
            if done.len() < count {
                done.extend(move_to_dlq(tx, owned, None, ErrorEntry::CANCELLED, totals)?);
            }
            Ok(done)
        }
    }
}

/// What is added to a row's errors; without an attempt, the row's own count is taken.
#[derive(Clone, Copy)]
struct ErrorEntry<'a> {
    attempt: Option<u32>,
    kind: &'static str,
    text: &'a str,
}

impl<'a> ErrorEntry<'a> {
    const CANCELLED: Self = Self {
        attempt: None,
        kind: "cancelled",
        text: "cancelled while it ran; it asked to be run again later",
    };

    fn of(error: &'a AttemptError) -> Self {
        Self { attempt: Some(error.attempt), kind: error.kind, text: &error.text }
    }
}

fn archive(
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
fn move_to_dlq(
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
        let is_expired = reason.is_none() && stored == FailureReason::RetryLifetimeExpired;
        let outcome = if is_expired { FinishOutcome::LifetimeExpired } else { FinishOutcome::Done };
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

fn reschedule(
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

fn snooze(tx: &Tx<'_>, owned: &Owned<'_>, delay: Duration) -> Outcome<Done> {
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

/// Whether an earlier run of the same finish did it: its reply may have been lost.
fn recognise(tx: &Tx<'_>, lease: &Lease, ending: &Ending) -> Outcome<FinishOutcome> {
    let found = tx
        .statement(queries::FIND_FINISHED.statement())?
        .query_row(
            named_params! { "@id": lease.job.as_bytes(), "@lease": lease.lease.as_bytes() },
            |row| {
                Ok((
                    row.get::<_, bool>(0)?,
                    row.get::<_, Option<String>>(1)?,
                    row.get::<_, bool>(2)?,
                ))
            },
        )
        .optional()?;
    let Some((is_archived, dead, is_pending)) = found else { return Ok(FinishOutcome::LeaseLost) };
    let dead = dead.as_deref().and_then(FailureReason::from_name);
    Ok(match ending {
        Ending::Succeeded { .. } if is_archived => FinishOutcome::Done,
        Ending::Dead { reason, .. } if dead == Some(*reason) => FinishOutcome::Done,
        Ending::Retry { .. } | Ending::Snooze { .. }
            if is_pending || dead == Some(FailureReason::Cancelled) =>
        {
            FinishOutcome::Done
        }
        Ending::Retry { .. } if dead == Some(FailureReason::RetryLifetimeExpired) => {
            FinishOutcome::LifetimeExpired
        }
        _ => FinishOutcome::LeaseLost,
    })
}
