//! What operators change.

use std::collections::{HashMap, HashSet};

use crate::{
    model::{CancelOutcome, JobId, QueueSettings, ResurrectEdits, ResurrectOutcome},
    storage::mssql::{
        batch::{json, ms},
        call::Call,
        core::{Core, Effort},
        failure::Failure,
        session::Role,
        statements::{CANCEL_RUNNING, CANCEL_WAITING, FIND_CANCELLED, RESURRECT, SET_QUEUE},
    },
};

/// How often a call looks again at rows that another session changed while it looked.
const LOOKS_AT_MOST: usize = 20;

/// Waiting rows die at once, running ones are flagged.
pub(super) async fn cancel(
    core: &Core,
    ids: Vec<JobId>,
    reason: String,
) -> Result<Vec<CancelOutcome>, Failure> {
    let mut cancelled = HashSet::new();
    let mut requested = HashSet::new();
    let mut waiting = ids.clone();
    for _ in 0..LOOKS_AT_MOST {
        let call = Call::new(&CANCEL_WAITING).bind("ids", json(&waiting)).bind("reason", &*reason);
        for row in core.run(Role::Page, Effort::Patient, &call).await?.rows()? {
            cancelled.insert(row.get::<JobId>(0)?);
            if row.get(1)? {
                core.note_work();
            }
        }
        waiting.retain(|id| !cancelled.contains(id));
        if waiting.is_empty() {
            break;
        }
        let call = Call::new(&CANCEL_RUNNING).bind("ids", json(&waiting));
        // A row that is active and was not flagged went from running to waiting between the two.
        let mut missed = Vec::new();
        for row in core.run(Role::Page, Effort::Patient, &call).await?.rows()? {
            let (id, is_flagged): (JobId, bool) = (row.get(0)?, row.get(1)?);
            if is_flagged {
                requested.insert(id);
            } else {
                missed.push(id);
            }
        }
        waiting = missed;
        if waiting.is_empty() {
            break;
        }
    }
    let unknown: Vec<&JobId> =
        ids.iter().filter(|id| !cancelled.contains(*id) && !requested.contains(*id)).collect();
    if !unknown.is_empty() {
        // A repeated call finds in the dead-letter queue what its first run put there.
        let call = Call::new(&FIND_CANCELLED).bind("ids", json(unknown)).bind("reason", &*reason);
        for row in core.run(Role::Page, Effort::Patient, &call).await?.rows()? {
            cancelled.insert(row.get(0)?);
        }
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

/// Dead -> Pending.
pub(super) async fn resurrect(
    core: &Core,
    ids: Vec<JobId>,
    edits: ResurrectEdits,
) -> Result<Vec<ResurrectOutcome>, Failure> {
    let call = Call::new(&RESURRECT)
        .bind("ids", json(&ids))
        .bind("queue", edits.queue)
        .bind("priority", edits.priority)
        .bind("payload", edits.payload.map(|payload| payload.0))
        .bind("edits_tags", edits.tags.is_some())
        .bind("tags", edits.tags.flatten());
    for _ in 0..LOOKS_AT_MOST {
        let mut outcomes = HashMap::new();
        let mut is_settled = true;
        for row in core.run(Role::Page, Effort::Patient, &call).await?.rows()? {
            let id: JobId = row.get(0)?;
            let (is_resurrected, is_dead) = (row.get::<bool>(1)?, row.get::<bool>(2)?);
            let outcome = match (is_dead, row.get::<Option<JobId>>(3)?) {
                (true, Some(by)) => ResurrectOutcome::KeyHeld { by },
                // The job that had its key went while this call looked for it.
                (true, None) => {
                    is_settled = false;
                    continue;
                }
                (false, _) if is_resurrected => ResurrectOutcome::Resurrected,
                (false, _) => ResurrectOutcome::NotDead,
            };
            outcomes.insert(id, outcome);
        }
        core.note_work();
        if is_settled {
            let outcome = |id| outcomes.get(id).copied().unwrap_or(ResurrectOutcome::NotDead);
            return Ok(ids.iter().map(outcome).collect());
        }
    }
    Err(Failure::transient_unknown(
        "an idempotency key was taken and freed again at each run of the call: try again"
            .to_owned(),
    ))
}

/// Changes the settings that are named.
pub(super) async fn set_queue(
    core: &Core,
    queue: String,
    change: QueueSettings,
) -> Result<(), Failure> {
    let max_workers = change.max_workers.flatten();
    let call = Call::new(&SET_QUEUE)
        .bind("queue", queue)
        .bind("paused", change.paused)
        .bind("active", change.active)
        .bind("sets_max_workers", change.max_workers.is_some())
        .bind("max_workers", max_workers.map(|max| i32::try_from(max).unwrap_or(i32::MAX)))
        .bind("sets_zombie_timeout", change.zombie_timeout.is_some())
        .bind("zombie_timeout_ms", change.zombie_timeout.flatten().map(ms));
    core.run(Role::Page, Effort::Patient, &call).await?;
    // It may have been resumed, or have got more room.
    core.note_work();
    Ok(())
}
