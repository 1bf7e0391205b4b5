//! The end of an attempt: history, retry or snooze, each kind in one transaction with its counts.

use std::collections::HashMap;

use serde::Serialize;
use uuid::Uuid;

use crate::{
    model::{AttemptError, FailureReason, Finish, FinishOutcome, JobId, Lease, Outcome, WorkerId},
    storage::mssql::{
        batch::{Delay, fence, json, parts},
        call::Call,
        core::{Core, Effort},
        failure::Failure,
        session::Role,
        statement::Statement,
        statements::{ARCHIVE_SUCCEEDED, FIND_FINISHED, MOVE_TO_DLQ, RESCHEDULE_FOR_RETRY, SNOOZE},
    },
};

/// What a snooze leaves behind that a cancel overtook.
const CANCELLED_TEXT: &str = "cancelled while it ran; it asked to be run again later";

/// One job in the JSON of any of the four statements: each reads its own part.
#[derive(Debug, Default, Serialize)]
struct Item<'a> {
    s: i64,
    l: Uuid,
    /// Output.
    #[serde(skip_serializing_if = "Option::is_none")]
    o: Option<&'a str>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<&'a str>,
    /// Delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    ds: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dm: Option<i32>,
    /// Failure reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    r: Option<&'static str>,
    /// The attempt's error.
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    k: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    t: Option<&'a str>,
}

impl<'a> Item<'a> {
    fn of(lease: &Lease) -> Self {
        Self { s: lease.seq, l: fence(lease.fence), ..Self::default() }
    }

    fn delayed(self, delay: std::time::Duration) -> Self {
        let Delay { s, ms } = delay.into();
        Self { ds: Some(s), dm: Some(ms), ..self }
    }

    fn failed(self, error: &'a AttemptError) -> Self {
        Self { a: Some(error.attempt), k: Some(error.kind), t: Some(&error.text), ..self }
    }
}

/// The four statements, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Succeeded,
    Dead,
    Retry,
    Snooze,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Succeeded, Self::Dead, Self::Retry, Self::Snooze];

    fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Succeeded { .. } => Self::Succeeded,
            Outcome::Dead { .. } => Self::Dead,
            Outcome::Retry { .. } => Self::Retry,
            Outcome::Snooze { .. } => Self::Snooze,
        }
    }

    fn statement(self) -> &'static Statement {
        match self {
            Self::Succeeded => &ARCHIVE_SUCCEEDED,
            Self::Dead => &MOVE_TO_DLQ,
            Self::Retry => &RESCHEDULE_FOR_RETRY,
            Self::Snooze => &SNOOZE,
        }
    }

    fn puts_back(self) -> bool {
        matches!(self, Self::Retry | Self::Snooze)
    }
}

type Done = HashMap<JobId, FinishOutcome>;

/// Finishes the batch.
pub(super) async fn finalise(
    core: &Core,
    batch: Vec<Finish>,
) -> Result<Vec<FinishOutcome>, Failure> {
    let mut outcomes = vec![FinishOutcome::LeaseLost; batch.len()];
    for part in parts(&batch, |finish| &finish.lease, bytes) {
        let mut done = Done::new();
        let of = |index: &usize| &batch[*index];
        for kind in Kind::ALL {
            let members = part.members.iter().map(of);
            let finishes: Vec<&Finish> =
                members.filter(|finish| Kind::of(&finish.outcome) == kind).collect();
            if !finishes.is_empty() {
                done.extend(finish(core, &part.worker, kind, &finishes).await?);
            }
        }
        let rest: Vec<&Finish> =
            part.members.iter().map(of).filter(|f| !done.contains_key(&f.lease.job)).collect();
        if !rest.is_empty() {
            done.extend(recognise(core, &rest).await?);
        }
        for index in part.members {
            if let Some(outcome) = done.get(&batch[index].lease.job) {
                outcomes[index] = *outcome;
            }
        }
    }
    Ok(outcomes)
}

fn bytes(finish: &Finish) -> usize {
    match &finish.outcome {
        Outcome::Succeeded { output, note } => {
            output.as_ref().map_or(0, String::len) + note.as_ref().map_or(0, String::len)
        }
        Outcome::Dead { error, .. } | Outcome::Retry { error, .. } => error.text.len(),
        Outcome::Snooze { .. } => 0,
    }
}

async fn finish(
    core: &Core,
    worker: &WorkerId,
    kind: Kind,
    finishes: &[&Finish],
) -> Result<Done, Failure> {
    let mut done = Done::new();
    let items = json(finishes.iter().map(|finish| item(finish)));
    let call = Call::new(kind.statement()).bind("worker", worker).bind("items", items);
    for row in core.run(Role::Worker, Effort::Brief, &call).await?.rows()? {
        done.insert(row.get(0)?, FinishOutcome::Done);
        // It is pending again, or it made room in a queue that was full.
        if kind.puts_back() || row.get(1)? {
            core.note_work();
        }
    }
    if kind.puts_back() {
        // What was refused and is still owned was cancelled, or would be due too late: the row says which.
        let refused = finishes.iter().filter(|finish| !done.contains_key(&finish.lease.job));
        let items: Vec<Item<'_>> = refused.map(|finish| refused_item(finish)).collect();
        if !items.is_empty() {
            done.extend(bury_refused(core, worker, items).await?);
        }
    }
    Ok(done)
}

async fn bury_refused(
    core: &Core,
    worker: &WorkerId,
    items: Vec<Item<'_>>,
) -> Result<Done, Failure> {
    let call = Call::new(&MOVE_TO_DLQ).bind("worker", worker).bind("items", json(items));
    let rows = core.run(Role::Worker, Effort::Brief, &call).await?.rows()?;
    rows.iter()
        .map(|row| {
            if row.get(1)? {
                core.note_work();
            }
            let outcome = match reason(&row.get::<String>(2)?) {
                Some(FailureReason::Cancelled) => FinishOutcome::Cancelled,
                Some(FailureReason::RetryLifetimeExpired) => FinishOutcome::LifetimeExpired,
                _ => FinishOutcome::Done,
            };
            Ok((row.get(0)?, outcome))
        })
        .collect()
}

fn item(finish: &Finish) -> Item<'_> {
    let item = Item::of(&finish.lease);
    match &finish.outcome {
        Outcome::Succeeded { output, note } => {
            Item { o: output.as_deref(), n: note.as_deref(), ..item }
        }
        Outcome::Dead { reason, error } => Item { r: Some(reason.as_str()), ..item.failed(error) },
        Outcome::Retry { delay, error } => item.delayed(*delay).failed(error),
        Outcome::Snooze { delay } => item.delayed(*delay),
    }
}

/// Without a reason, and for a snooze without an attempt: the row has both.
fn refused_item(finish: &Finish) -> Item<'_> {
    let item = Item::of(&finish.lease);
    match &finish.outcome {
        Outcome::Retry { error, .. } => item.failed(error),
        _ => Item { k: Some("cancelled"), t: Some(CANCELLED_TEXT), ..item },
    }
}

#[derive(Serialize)]
struct Look {
    i: JobId,
    l: Uuid,
}

/// Whether an earlier run of the same finish did it: its reply may have been lost.
async fn recognise(core: &Core, finishes: &[&Finish]) -> Result<Done, Failure> {
    let items = json(finishes.iter().map(|f| Look { i: f.lease.job, l: fence(f.lease.fence) }));
    let call = Call::new(&FIND_FINISHED).bind("items", items);
    let rows = core.run(Role::Worker, Effort::Brief, &call).await?.rows()?;
    let mut done = Done::new();
    for row in rows {
        let job: JobId = row.get(0)?;
        let found = Found {
            is_pending: row.get(1)?,
            is_archived: row.get(2)?,
            dead: row.get::<Option<String>>(3)?.as_deref().and_then(reason),
        };
        if let Some(finish) = finishes.iter().find(|finish| finish.lease.job == job) {
            done.insert(job, found.outcome_of(&finish.outcome));
        }
    }
    Ok(done)
}

/// Where a row with the lease stands.
struct Found {
    is_pending: bool,
    is_archived: bool,
    dead: Option<FailureReason>,
}

impl Found {
    fn outcome_of(&self, asked: &Outcome) -> FinishOutcome {
        match (asked, self.dead) {
            (Outcome::Succeeded { .. }, _) if self.is_archived => FinishOutcome::Done,
            (Outcome::Dead { reason, .. }, Some(dead)) if dead == *reason => FinishOutcome::Done,
            (Outcome::Retry { .. } | Outcome::Snooze { .. }, _) if self.is_pending => {
                FinishOutcome::Done
            }
            (Outcome::Retry { .. } | Outcome::Snooze { .. }, Some(FailureReason::Cancelled)) => {
                FinishOutcome::Cancelled
            }
            (Outcome::Retry { .. }, Some(FailureReason::RetryLifetimeExpired)) => {
                FinishOutcome::LifetimeExpired
            }
            _ => FinishOutcome::LeaseLost,
        }
    }
}

fn reason(name: &str) -> Option<FailureReason> {
    FailureReason::from_name(name)
}
