//! What a holder does with its leases before a job ends: start it, beat for it, give it back.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use serde::Serialize;
use uuid::Uuid;

use crate::{
    model::{Beat, BeatOutcome, Lease, MarkOutcome, Release, WorkerId},
    storage::mssql::{
        batch::{Delay, Owned, fence, json, parts},
        call::Call,
        core::{Core, Effort},
        failure::Failure,
        session::Role,
        statement::Statement,
        statements::{FIND_MARKED, FIND_RELEASED, KEEP_ALIVE, MARK_AS_PROCESSING, RELEASE},
    },
};

/// A beat that met a locked row is tried again this often, and this much later.
const BEATS_AT_MOST: usize = 3;
const BEAT_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// Fetched -> Processing.
pub(super) async fn mark_as_processing(
    core: &Core,
    leases: Vec<Lease>,
) -> Result<Vec<MarkOutcome>, Failure> {
    let mut outcomes = vec![MarkOutcome::LeaseLost; leases.len()];
    for part in parts(&leases, |lease| lease, |_| 0) {
        let of = |index: &usize| &leases[*index];
        let all: Vec<&Lease> = part.members.iter().map(of).collect();
        let mut started = mark(core, &MARK_AS_PROCESSING, &part.worker, &all).await?;
        if started.len() < all.len() {
            let rest: Vec<&Lease> =
                all.into_iter().filter(|lease| !started.contains_key(&lease.seq)).collect();
            started.extend(mark(core, &FIND_MARKED, &part.worker, &rest).await?);
        }
        for index in part.members {
            if let Some(outcome) = started.get(&leases[index].seq) {
                outcomes[index] = *outcome;
            }
        }
    }
    Ok(outcomes)
}

async fn mark(
    core: &Core,
    statement: &'static Statement,
    worker: &WorkerId,
    leases: &[&Lease],
) -> Result<HashMap<i64, MarkOutcome>, Failure> {
    let items = json(leases.iter().map(|lease| Owned::from(*lease)));
    let call = Call::new(statement).bind("worker", worker).bind("items", items);
    let rows = core.run(Role::Worker, Effort::Brief, &call).await?.rows()?;
    rows.iter()
        .map(|row| {
            let started = MarkOutcome::Started { attempt: row.get(1)?, started_at: row.get(2)? };
            Ok((row.get(0)?, started))
        })
        .collect()
}

#[derive(Serialize)]
struct BeatItem<'a> {
    s: i64,
    l: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<&'a str>,
}

/// Heartbeats.
pub(super) async fn keep_alive(core: &Core, beats: Vec<Beat>) -> Result<Vec<BeatOutcome>, Failure> {
    let mut outcomes = vec![BeatOutcome::LeaseLost; beats.len()];
    let note_bytes = |beat: &Beat| beat.progress.as_ref().map_or(0, |(_, note)| note.len());
    for part in parts(&beats, |beat| &beat.lease, note_bytes) {
        let mut waiting = part.members;
        for beat_number in 1..=BEATS_AT_MOST {
            let alive = beat(core, &part.worker, waiting.iter().map(|i| &beats[*i])).await?;
            let mut locked = Vec::new();
            for index in waiting {
                outcomes[index] = match alive.get(&beats[index].lease.seq) {
                    // It is this lease's still: whoever has it locked has not taken it.
                    Some((is_renewed, cancel_requested)) => {
                        if !is_renewed {
                            locked.push(index);
                        }
                        if *cancel_requested {
                            BeatOutcome::CancelRequested
                        } else {
                            BeatOutcome::Alive
                        }
                    }
                    None => BeatOutcome::LeaseLost,
                };
            }
            waiting = locked;
            if waiting.is_empty() {
                break;
            }
            if beat_number < BEATS_AT_MOST {
                tokio::time::sleep(BEAT_AGAIN_AFTER).await;
            }
        }
    }
    Ok(outcomes)
}

async fn beat<'a>(
    core: &Core,
    worker: &WorkerId,
    beats: impl Iterator<Item = &'a Beat>,
) -> Result<HashMap<i64, (bool, bool)>, Failure> {
    let items = json(beats.map(|beat| BeatItem {
        s: beat.lease.seq,
        l: fence(beat.lease.fence),
        p: beat.progress.as_ref().map(|(share, _)| *share),
        n: beat.progress.as_ref().map(|(_, note)| note.as_str()),
    }));
    let call = Call::new(&KEEP_ALIVE).bind("worker", worker).bind("items", items);
    let rows = core.run(Role::Heartbeat, Effort::Brief, &call).await?.rows()?;
    rows.iter().map(|row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?)))).collect()
}

#[derive(Serialize)]
struct ReleaseItem {
    s: i64,
    l: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    ds: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dm: Option<i32>,
    u: bool,
}

/// Fetched -> Pending.
pub(super) async fn release(core: &Core, batch: Vec<Release>) -> Result<Vec<bool>, Failure> {
    let mut outcomes = vec![false; batch.len()];
    for part in parts(&batch, |release| &release.lease, |_| 0) {
        let of = |index: &usize| &batch[*index];
        let items = json(part.members.iter().map(of).map(|release| {
            let delay = release.delay.map(Delay::from);
            ReleaseItem {
                s: release.lease.seq,
                l: fence(release.lease.fence),
                ds: delay.map(|delay| delay.s),
                dm: delay.map(|delay| delay.ms),
                u: release.unknown_type,
            }
        }));
        let call = Call::new(&RELEASE).bind("worker", &part.worker).bind("items", items);
        let mut pending = seqs(core, &call).await?;
        let is_due = |release: &Release| release.delay.is_none_or(|delay| delay.is_zero());
        if part.members.iter().map(of).any(|r| is_due(r) && pending.contains(&r.lease.seq)) {
            core.note_work();
        }
        if pending.len() < part.members.len() {
            let rest = part.members.iter().map(of).filter(|r| !pending.contains(&r.lease.seq));
            let items = json(rest.map(|release| Owned::from(&release.lease)));
            pending.extend(seqs(core, &Call::new(&FIND_RELEASED).bind("items", items)).await?);
        }
        for index in part.members {
            outcomes[index] = pending.contains(&batch[index].lease.seq);
        }
    }
    Ok(outcomes)
}

async fn seqs(core: &Core, call: &Call) -> Result<HashSet<i64>, Failure> {
    let rows = core.run(Role::Worker, Effort::Brief, call).await?.rows()?;
    rows.iter().map(|row| row.get(0)).collect()
}
