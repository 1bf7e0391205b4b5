//! One statement: how long it takes, what it locks, what it reads, and what its plan says.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use chokaq::storage::mssql::{Answer, Call, PooledSession};

use crate::{
    Failure,
    cases::Case,
    server::{NO_LIMIT, Server, rolled_back},
    showplan::{Findings, is_plan},
    supply::Supply,
};

/// Committed runs, each with rows of its own; the median counts.
const RUNS: usize = 3;

/// What was measured of a case.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) duration: Option<Duration>,
    /// Rows that came back.
    pub(crate) rows: usize,
    /// Logical reads, of pages.
    pub(crate) reads: Option<i64>,
    /// Locks that were held before the end of the transaction, by resource and mode.
    pub(crate) locks: Option<BTreeMap<String, i64>>,
    pub(crate) plan: Option<Findings>,
    /// What did not work, at the first place.
    pub(crate) failure: Option<String>,
}

/// Measures a case. A failure is part of what was measured: the next statement may do better.
pub(crate) async fn measure(server: &Server, case: &Case, supply: &mut Supply) -> Measured {
    let mut measured = Measured::default();
    if let Err(failure) = try_measure(server, case, supply, &mut measured).await {
        measured.failure = Some(failure.to_string());
    }
    measured
}

async fn try_measure(
    server: &Server,
    case: &Case,
    supply: &mut Supply,
    measured: &mut Measured,
) -> Result<(), Failure> {
    let call = (case.call)(supply);
    let mut held = server.held.session(case.role).await?;
    // The first runs compile.
    in_transaction(&mut held, &call).await?;
    rolled_back(&mut held).await?;
    if server.no_plans.is_none() {
        measured.plan = Some(plan(&mut held, &call, &server.schema()).await?);
    }
    if server.no_locks.is_none() {
        in_transaction(&mut held, &call).await?;
        measured.locks = Some(locks(&mut held).await?);
        rolled_back(&mut held).await?;
    }
    drop(held);

    let mut session = server.production.session(case.role).await?;
    session.run(&call.clone().limit(NO_LIMIT)).await?;
    let mut durations = Vec::new();
    for _ in 0..RUNS {
        let call = (case.call)(supply).limit(NO_LIMIT);
        let before = reads(server, &mut session).await?;
        let began = Instant::now();
        let answer = session.run(&call).await?;
        durations.push(began.elapsed());
        let after = reads(server, &mut session).await?;
        measured.rows = answer.all_sets().iter().map(Vec::len).sum();
        measured.reads = after.zip(before).map(|(after, before)| after - before);
    }
    durations.sort();
    measured.duration = durations.get(RUNS / 2).copied();
    Ok(())
}

async fn in_transaction(session: &mut PooledSession, call: &Call) -> Result<Answer, Failure> {
    session.batch("the transaction", "BEGIN TRANSACTION;", NO_LIMIT).await?;
    Ok(session.run(&call.clone().limit(NO_LIMIT)).await?)
}

/// The actual plans of everything that runs in the call.
async fn plan(session: &mut PooledSession, call: &Call, schema: &str) -> Result<Findings, Failure> {
    session.batch("plans", "SET STATISTICS XML ON;", NO_LIMIT).await?;
    let answer = in_transaction(session, call).await;
    session.batch("plans", "SET STATISTICS XML OFF;", NO_LIMIT).await?;
    rolled_back(session).await?;
    let mut findings = Findings::default();
    for set in answer?.all_sets() {
        // A plan is a result set of one text.
        if let [row] = &*set
            && row.len() == 1
            && let Ok(text) = row.get::<String>(0)
            && is_plan(&text)
        {
            findings.add(&text, schema)?;
        }
    }
    Ok(findings)
}

/// What the session holds in this database just now.
async fn locks(session: &mut PooledSession) -> Result<BTreeMap<String, i64>, Failure> {
    let answer = session.batch("the locks", LOCKS, NO_LIMIT).await?;
    let rows = answer.first_set();
    rows.iter()
        .map(|row| {
            let (resource, mode): (String, String) = (row.get(0)?, row.get(1)?);
            Ok((format!("{} {}", resource.trim_end(), mode.trim_end()), row.get(2)?))
        })
        .collect()
}

const LOCKS: &str = "\
SELECT CONVERT(nvarchar(60), l.resource_type), CONVERT(nvarchar(60), l.request_mode), COUNT_BIG(*)
FROM sys.dm_tran_locks AS l
WHERE l.request_session_id = @@SPID AND l.resource_database_id = DB_ID() AND l.resource_type IN (N'KEY', N'RID', N'PAGE', N'OBJECT', N'HOBT', N'EXTENT')
GROUP BY l.resource_type, l.request_mode;";

/// Pages that the session has read so far; nothing where the engine does not count them.
async fn reads(server: &Server, session: &mut PooledSession) -> Result<Option<i64>, Failure> {
    if !server.facts.is_sql_server {
        return Ok(None);
    }
    let sql = "SELECT CONVERT(bigint, s.logical_reads) FROM sys.dm_exec_sessions AS s WHERE s.session_id = @@SPID;";
    let rows = session.batch("the reads", sql, NO_LIMIT).await?.first_set();
    Ok(rows.first().map(|row| row.get(0)).transpose()?)
}
