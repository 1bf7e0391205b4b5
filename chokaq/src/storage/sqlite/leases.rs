//! What a holder does with its leases before a job ends: start it, beat for it, give it back.

use std::collections::HashMap;

use rusqlite::named_params;

use crate::{
    model::{Beat, BeatOutcome, JobId, Lease, LeaseId, MarkOutcome, Release, WorkerId},
    storage::sqlite::{
        failure::Outcome,
        fetch::rows,
        queries,
        row::Cells,
        tx::{Tx, array, groups, ms},
    },
};

/// Fetched -> Processing.
pub(super) fn mark_as_processing(tx: &Tx<'_>, leases: &[Lease]) -> Outcome<Vec<MarkOutcome>> {
    let mut outcomes = vec![MarkOutcome::LeaseLost; leases.len()];
    for (holder, members) in groups(leases, holder) {
        let of = |index: &usize| &leases[*index];
        let mut started =
            mark(tx, holder, members.iter().map(of), queries::MARK_AS_PROCESSING.statement())?;
        if started.len() < members.len() {
            let rest = members.iter().map(of).filter(|lease| !started.contains_key(&lease.job));
            let found = mark(tx, holder, rest, queries::FIND_MARKED.statement())?;
            started.extend(found);
        }
        for index in members {
            if let Some(outcome) = started.get(&leases[index].job) {
                outcomes[index] = *outcome;
            }
        }
    }
    Ok(outcomes)
}

/// Heartbeats.
pub(super) fn keep_alive(tx: &Tx<'_>, beats: &[Beat]) -> Outcome<Vec<BeatOutcome>> {
    let mut outcomes = vec![BeatOutcome::LeaseLost; beats.len()];
    // A beat with news of the progress goes alone: its values are its own.
    let key = |index: &usize| {
        let beat = &beats[*index];
        (holder(&beat.lease), beat.progress.as_ref().map(|_| *index))
    };
    let indexes: Vec<usize> = (0..beats.len()).collect();
    for ((holder, with_progress), members) in groups(&indexes, key) {
        let progress = with_progress.and_then(|index| beats[index].progress.as_ref());
        let mut statement = tx.statement(queries::KEEP_ALIVE.statement())?;
        let alive = statement.query(named_params! {
            "@seqs": array(members.iter().map(|index| beats[*index].lease.seq)),
            "@worker": holder.worker.as_str(),
            "@lease": holder.lease.as_bytes(),
            "@now": tx.now_ms(),
            "@progress": progress.map(|(share, _)| *share),
            "@note": progress.map(|(_, note)| note.as_str()),
        })?;
        let alive: HashMap<JobId, bool> = rows(alive, |row| {
            let cells = Cells::new("JobsHot", row);
            Ok((cells.job(1)?, cells.get(2)?))
        })?
        .into_iter()
        .collect();
        for index in members {
            outcomes[index] = match alive.get(&beats[index].lease.job) {
                Some(false) => BeatOutcome::Alive,
                Some(true) => BeatOutcome::CancelRequested,
                None => BeatOutcome::LeaseLost,
            };
        }
    }
    Ok(outcomes)
}

/// Fetched -> Pending.
pub(super) fn release(tx: &Tx<'_>, batch: &[Release]) -> Outcome<Vec<bool>> {
    let mut outcomes = vec![false; batch.len()];
    let by_kind =
        groups(batch, |release| (holder(&release.lease), release.delay, release.unknown_type));
    for ((holder, delay, unknown_type), members) in by_kind {
        let seqs = array(members.iter().map(|index| batch[*index].lease.seq));
        let mut statement = tx.statement(queries::RELEASE.statement())?;
        let given_back = statement.query(named_params! {
            "@seqs": seqs,
            "@worker": holder.worker.as_str(),
            "@lease": holder.lease.as_bytes(),
            "@now": tx.now_ms(),
            "@due": delay.map(|delay| tx.now_ms().saturating_add(ms(delay))),
            "@is_unknown": unknown_type,
        })?;
        let mut pending = rows(given_back, job_of)?;
        if !pending.is_empty() && delay.is_none_or(|delay| delay.is_zero()) {
            tx.note_work();
        }
        if pending.len() < members.len() {
            let mut statement = tx.statement(queries::FIND_RELEASED.statement())?;
            let found = statement
                .query(named_params! { "@seqs": seqs, "@lease": holder.lease.as_bytes() })?;
            pending.extend(rows(found, job_of)?);
        }
        for index in members {
            outcomes[index] = pending.contains(&batch[index].lease.job);
        }
    }
    Ok(outcomes)
}

/// Who holds a lease: rows that share it go into one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Holder<'a> {
    pub(super) worker: &'a WorkerId,
    pub(super) lease: LeaseId,
}

pub(super) fn holder(lease: &Lease) -> Holder<'_> {
    Holder { worker: &lease.worker, lease: lease.fence }
}

fn job_of(row: &rusqlite::Row<'_>) -> Outcome<JobId> {
    Cells::new("JobsHot", row).job(1)
}

fn mark<'a>(
    tx: &Tx<'_>,
    holder: Holder<'_>,
    leases: impl Iterator<Item = &'a Lease>,
    sql: &'static str,
) -> Outcome<HashMap<JobId, MarkOutcome>> {
    let mut statement = tx.statement(sql)?;
    let marked = statement.query(named_params! {
        "@seqs": array(leases.map(|lease| lease.seq)),
        "@worker": holder.worker.as_str(),
        "@lease": holder.lease.as_bytes(),
        "@now": tx.now_ms(),
    })?;
    let marked = rows(marked, |row| {
        let cells = Cells::new("JobsHot", row);
        let (attempt, started_at) = (cells.number(2)?, cells.time(3)?);
        Ok((cells.job(1)?, MarkOutcome::Started { attempt, started_at }))
    })?;
    Ok(marked.into_iter().collect())
}
