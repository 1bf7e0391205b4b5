//! Pairs of statements at the same few rows at the same time: which of them deadlock.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use chokaq::storage::mssql::{Call, Class, Connections, Role};
use tokio::task::JoinSet;

use crate::{
    Failure,
    cases::Case,
    fill::{HotRow, Sizes, fill, hot_rows},
    server::Server,
    supply::Supply,
};

/// Sessions of each of the two statements.
const SESSIONS: usize = 2;
/// Calls of each session before the rows are made anew: by then most have gone.
const CALLS: usize = 5;
/// Of rows that stand in one call.
const BATCH: usize = 15;

/// The number of a deadlock's victim.
const DEADLOCK: u32 = 1205;

/// What came of one pair.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) calls: u64,
    pub(crate) deadlocks: u64,
    /// Failures that a retry does not heal, by their number.
    pub(crate) others: BTreeMap<String, u64>,
}

/// Runs two statements against each other for so long.
pub(crate) async fn provoke(
    server: &Server,
    first: &Case,
    second: &Case,
    duration: Duration,
) -> Result<Outcome, Failure> {
    let began = Instant::now();
    let mut outcome = Outcome::default();
    while began.elapsed() < duration {
        fill(server, &Sizes::CROWDED).await?;
        let supply = Supply::of(server, BATCH).await?;
        let mut rows = Vec::new();
        for kind in ["running", "noted", "silent", "fetched", "abandoned", "due", "ready"] {
            rows.extend(hot_rows(server, kind, 1_000).await?);
        }
        let mut sessions = JoinSet::new();
        for case in [first, second].into_iter().flat_map(|case| std::iter::repeat_n(case, SESSIONS))
        {
            let calls = calls(case, &supply, &rows);
            sessions.spawn(run(server.production.clone(), case.role, calls));
        }
        while let Some(session) = sessions.join_next().await {
            outcome.add(session??);
        }
    }
    Ok(outcome)
}

fn calls(case: &Case, supply: &Supply, rows: &[HotRow]) -> Vec<Call> {
    let mut supply = supply.mixed(rows, BATCH);
    (0..CALLS).map(|_| (case.call)(&mut supply)).collect()
}

async fn run(connections: Connections, role: Role, calls: Vec<Call>) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let mut session = connections.session(role).await?;
    for call in calls {
        outcome.calls += 1;
        match session.run(&call).await {
            Ok(_) => {}
            Err(failure) if failure.number() == Some(DEADLOCK) => outcome.deadlocks += 1,
            // Two first rows of a counter, two enqueues with one key: the call is run again, as their headers say.
            Err(failure) if failure.class() == Class::Conflict => {}
            Err(failure) => {
                let number = failure.number().map_or("no number".to_owned(), |n| n.to_string());
                *outcome.others.entry(number).or_default() += 1;
                session = connections.session(role).await?;
            }
        }
    }
    Ok(outcome)
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.deadlocks += other.deadlocks;
        for (number, count) in other.others {
            *self.others.entry(number).or_default() += count;
        }
    }
}
