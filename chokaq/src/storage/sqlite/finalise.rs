//! The end of an attempt: history, retry or snooze, in one transaction with the counts.

use std::time::Duration;

use rusqlite::{OptionalExtension, named_params, types::Value};

use crate::{
    model::{FailureReason, Finish, FinishOutcome, Lease, Outcome as Ending},
    storage::sqlite::{
        endings::{Done, ErrorEntry, Owned, archive, move_to_dlq, reschedule, snooze},
        failure::Outcome,
        leases::holder,
        queries,
        totals::Totals,
        tx::{Tx, array, groups},
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

/// Whether an earlier run of the same finish did it: its reply may have been lost.
fn recognise(tx: &Tx<'_>, lease: &Lease, ending: &Ending) -> Outcome<FinishOutcome> {
    let found = tx
        .statement(queries::FIND_FINISHED.statement())?
        .query_row(
            named_params! { "@id": lease.job.as_bytes(), "@lease": lease.fence.as_bytes() },
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
        Ending::Retry { .. } | Ending::Snooze { .. } if is_pending => FinishOutcome::Done,
        Ending::Retry { .. } | Ending::Snooze { .. } if dead == Some(FailureReason::Cancelled) => {
            FinishOutcome::Cancelled
        }
        Ending::Retry { .. } if dead == Some(FailureReason::RetryLifetimeExpired) => {
            FinishOutcome::LifetimeExpired
        }
        _ => FinishOutcome::LeaseLost,
    })
}
