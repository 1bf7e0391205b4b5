//! Claims.

use std::{collections::HashMap, time::Duration};

use rusqlite::{OptionalExtension, Row, named_params, types::Value};

use crate::{
    model::{FetchReply, FetchRequest, FetchedJob, Lease, LeaseId, Timestamp, WorkerId},
    storage::sqlite::{
        controls::read_control,
        failure::{Fault, Outcome},
        queries,
        row::Cells,
        shares::{Budget, Candidate, Chosen, Head, share},
        tx::{Tx, array, count},
    },
};

/// Claims a batch, or answers again what an earlier run of the same call claimed.
pub(super) fn fetch_next_batch(tx: &Tx<'_>, request: FetchRequest) -> Outcome<FetchReply> {
    let control = if request.with_control {
        Some(read_control(tx, &request.worker, request.queues.as_deref())?)
    } else {
        None
    };
    let queues = request.queues.clone();
    let (jobs, passed_over) = find_or_claim(tx, request)?;
    let next_due = next_delayed(tx, queues.as_deref())?;
    Ok(FetchReply { jobs, next_due, passed_over, control })
}

fn find_or_claim(
    tx: &Tx<'_>,
    request: FetchRequest,
) -> Outcome<(Vec<FetchedJob>, HashMap<String, u32>)> {
    if request.is_repeat {
        let jobs = find_claimed(tx, &request.worker, request.lease)?;
        if !jobs.is_empty() {
            return Ok((jobs, request.passed_over));
        }
    }
    promote_due(tx)?;
    if request.take == 0 {
        return Ok((Vec::new(), request.passed_over));
    }
    let chosen = choose(tx, &request)?;
    let jobs = claim(tx, &request, &chosen.seqs)?;
    Ok((jobs, chosen.passed_over))
}

/// The first claimable row of each of the queues (all where `None`), with the room that MaxWorkers leaves.
pub(super) fn heads(tx: &Tx<'_>, queues: Option<&[String]>) -> Outcome<Vec<Head>> {
    let [of_some, of_all] = queries::FETCH_HEADS.statements();
    let found: Vec<(Head, Option<i64>)> = match queues {
        None => rows(tx.statement(of_all)?.query([])?, head)?,
        Some(queues) => {
            let mut names = queues.to_vec();
            names.sort_unstable();
            names.dedup();
            let names = array(names);
            rows(tx.statement(of_some)?.query(named_params! { "@queues": names })?, head)?
        }
    };
    found
        .into_iter()
        .map(|(head, max_workers)| {
            let room = max_workers.map(|max| room(tx, &head.queue, max)).transpose()?;
            Ok(Head { room, ..head })
        })
        .collect()
}

/// How many more of the queue's rows may be fetched or running.
pub(super) fn room(tx: &Tx<'_>, queue: &str, max_workers: i64) -> Outcome<usize> {
    let active: i64 = tx
        .statement(queries::COUNT_ACTIVE.statement())?
        .query_row(named_params! { "@queue": queue }, |row| row.get(0))?;
    Ok(usize::try_from(max_workers.saturating_sub(active)).unwrap_or(0))
}

/// Every row of a result, decoded.
pub(super) fn rows<T>(
    mut rows: rusqlite::Rows<'_>,
    decode: impl Fn(&Row<'_>) -> Outcome<T>,
) -> Outcome<Vec<T>> {
    let mut decoded = Vec::new();
    while let Some(row) = rows.next()? {
        decoded.push(decode(row)?);
    }
    Ok(decoded)
}

fn head(row: &Row<'_>) -> Outcome<(Head, Option<i64>)> {
    let cells = Cells::new("Queues", row);
    let head = Head {
        queue: cells.get(0)?,
        priority: cells.get(2)?,
        scheduled_ms: cells.get(3)?,
        passed_over: 0,
        room: None,
    };
    Ok((head, cells.get(1)?))
}

fn promote_due(tx: &Tx<'_>) -> Outcome<()> {
    tx.statement(queries::PROMOTE_DUE.statement())?
        .execute(named_params! { "@now": tx.now_ms() })?;
    Ok(())
}

fn next_delayed(tx: &Tx<'_>, queues: Option<&[String]>) -> Outcome<Option<Duration>> {
    let [of_some, of_all] = queries::NEXT_DELAYED.statements();
    let due: Option<Option<i64>> = match queues {
        None => tx.statement(of_all)?.query_row([], |row| row.get(0)).optional()?,
        Some(queues) => {
            let queues = array(queues.iter().cloned());
            let named = named_params! { "@queues": queues };
            tx.statement(of_some)?.query_row(named, |row| row.get(0)).optional()?
        }
    };
    let now = Timestamp::from_unix_ms(tx.now_ms());
    Ok(due.flatten().map(|due| Timestamp::from_unix_ms(due).since(now)))
}

fn choose(tx: &Tx<'_>, request: &FetchRequest) -> Outcome<Chosen> {
    let mut heads = heads(tx, request.queues.as_deref())?;
    for head in &mut heads {
        head.passed_over = request.passed_over.get(&head.queue).copied().unwrap_or(0);
    }
    let budget =
        Budget { rows: request.take, limited_rows: request.take_limited, bytes: request.max_bytes };
    let mut statement = tx.statement(queries::FETCH_CANDIDATES.statement())?;
    share(heads, budget, |head, skip, take| {
        let parameters = named_params! {
            "@queue": head.queue, "@skip": count(skip), "@take": count(take),
        };
        rows(statement.query(parameters)?, |row| {
            let cells = Cells::new("JobsHot", row);
            Ok(Candidate { seq: cells.get(0)?, bytes: cells.number(1)? })
        })
    })
}

fn claim(tx: &Tx<'_>, request: &FetchRequest, seqs: &[i64]) -> Outcome<Vec<FetchedJob>> {
    if seqs.is_empty() {
        return Ok(Vec::new());
    }
    let mut statement = tx.statement(queries::FETCH_NEXT_BATCH.statement())?;
    let claimed = statement.query(named_params! {
        "@seqs": array(seqs.iter().copied().map(Value::from)),
        "@worker": request.worker.as_str(),
        "@lease": request.lease.as_bytes(),
        "@now": tx.now_ms(),
    })?;
    let claimed = readable(tx, &request.worker, request.lease, claimed)?;
    // RETURNING promises no order.
    let mut by_seq: HashMap<i64, FetchedJob> =
        claimed.into_iter().map(|job| (job.lease.seq, job)).collect();
    Ok(seqs.iter().filter_map(|seq| by_seq.remove(seq)).collect())
}

fn find_claimed(tx: &Tx<'_>, worker: &WorkerId, lease: LeaseId) -> Outcome<Vec<FetchedJob>> {
    let mut statement = tx.statement(queries::FIND_CLAIMED.statement())?;
    let found = statement
        .query(named_params! { "@worker": worker.as_str(), "@lease": lease.as_bytes() })?;
    let mut jobs = readable(tx, worker, lease, found)?;
    jobs.sort_by_key(|job| (std::cmp::Reverse(job.priority), job.due_at, job.lease.seq));
    Ok(jobs)
}

/// How long a row that cannot be read stays out of the way.
const SET_ASIDE_MS: i64 = 3_600_000;

/// The claimed rows that can be read; the others are set aside, so that one bad row does not hold up the rest for ever.
fn readable(
    tx: &Tx<'_>,
    worker: &WorkerId,
    lease: LeaseId,
    mut claimed: rusqlite::Rows<'_>,
) -> Outcome<Vec<FetchedJob>> {
    let mut jobs = Vec::new();
    let mut unreadable = Vec::new();
    while let Some(row) = claimed.next()? {
        match fetched_job(tx, worker, row) {
            Ok(job) => jobs.push(job),
            Err(Fault::Malformed(what)) => {
                let seq: i64 = row.get(0)?;
                tracing::error!(
                    seq,
                    what,
                    "a row of JobsHot cannot be read and is set aside for an hour: mend or delete it"
                );
                unreadable.push(seq);
            }
            Err(fault) => return Err(fault),
        }
    }
    drop(claimed);
    if !unreadable.is_empty() {
        tx.statement(queries::SET_ASIDE.statement())?.execute(named_params! {
            "@seqs": array(unreadable),
            "@worker": worker.as_str(),
            "@lease": lease.as_bytes(),
            "@due": tx.now_ms().saturating_add(SET_ASIDE_MS),
        })?;
    }
    Ok(jobs)
}

fn fetched_job(tx: &Tx<'_>, worker: &WorkerId, row: &Row<'_>) -> Outcome<FetchedJob> {
    let cells = Cells::new("JobsHot", row);
    let now = Timestamp::from_unix_ms(tx.now_ms());
    Ok::<_, Fault>(FetchedJob {
        lease: Lease {
            seq: cells.get(0)?,
            job: cells.job(1)?,
            fence: cells.lease(2)?,
            worker: worker.clone(),
        },
        queue: cells.get(3)?,
        job_type: cells.get(4)?,
        payload: cells.get(5)?,
        tags: cells.get(6)?,
        priority: cells.number(7)?,
        attempts: cells.number(8)?,
        retries: cells.number(9)?,
        timeout: cells.duration(10)?,
        created_at: cells.time(11)?,
        due_at: cells.time(12)?,
        unknown_for: cells.time_or_none(13)?.map(|since| now.since(since)),
        expires_in: cells.time(14)?.since(now),
    })
}
