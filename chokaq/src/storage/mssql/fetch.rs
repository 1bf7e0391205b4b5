//! Claims.

use std::{collections::HashMap, time::Duration};

use serde::Serialize;

use crate::{
    model::{Control, FetchReply, FetchRequest, FetchedJob, Lease, WorkerId},
    storage::mssql::{
        answer::Row,
        batch::{count, json},
        call::Call,
        controls::{control, names},
        core::{Core, Effort},
        failure::Failure,
        session::Role,
        statements::{FETCH_NEXT_BATCH, FIND_CLAIMED},
    },
};

/// When to look again at a queue whose row another worker holds for a moment.
const BUSY_FOR: Duration = Duration::from_millis(20);

#[derive(Serialize)]
struct PassedOver<'a> {
    q: &'a str,
    n: u32,
}

/// Claims a batch, or answers again what an earlier run of the same call claimed.
pub(super) async fn fetch_next_batch(
    core: &Core,
    request: FetchRequest,
) -> Result<FetchReply, Failure> {
    let call = Call::new(&FETCH_NEXT_BATCH)
        .bind("worker", &request.worker)
        .bind("lease", request.lease)
        .bind("queues", names(request.queues.as_deref()))
        .bind("passed_over", passed_over_json(&request.passed_over))
        .bind("take", count(request.take))
        .bind("take_limited", count(request.take_limited))
        .bind("max_bytes", i64::try_from(request.max_bytes).unwrap_or(i64::MAX))
        .bind("with_control", request.with_control);
    let find =
        Call::new(&FIND_CLAIMED).bind("worker", &request.worker).bind("lease", request.lease);
    let mut tries = Effort::Brief.tries();
    loop {
        // A claim that may have been made is looked for before another is made under its lease. The statement commits queue
        // by queue: one that the server refused may have claimed rows all the same.
        let looks = request.is_repeat || tries.attempt().number > 1;
        match find_or_claim(core, &request, looks.then_some(&find), &call).await {
            Ok(reply) => return Ok(reply),
            Err(failure) => tries.after(failure).await?,
        }
    }
}

async fn find_or_claim(
    core: &Core,
    request: &FetchRequest,
    find: Option<&Call>,
    claim: &Call,
) -> Result<FetchReply, Failure> {
    let claimed = match find {
        Some(find) => find_claimed(core, &request.worker, find).await?,
        None => Vec::new(),
    };
    if claimed.is_empty() && request.take > 0 {
        return read(core.once(Role::Worker, claim).await?, request);
    }
    let nothing = claim.clone().rebind("take", 0);
    let reply = read(core.once(Role::Worker, &nothing).await?, request)?;
    Ok(FetchReply { jobs: claimed, passed_over: request.passed_over.clone(), ..reply })
}

async fn find_claimed(
    core: &Core,
    worker: &WorkerId,
    find: &Call,
) -> Result<Vec<FetchedJob>, Failure> {
    let rows = core.once(Role::Worker, find).await?.rows()?;
    let mut jobs: Vec<FetchedJob> =
        rows.iter().map(|row| fetched_job(worker, row)).collect::<Result<_, _>>()?;
    jobs.sort_by_key(|job| (std::cmp::Reverse(job.priority), job.due_at, job.lease.seq));
    Ok(jobs)
}

fn read(
    answer: crate::storage::mssql::answer::Answer,
    request: &FetchRequest,
) -> Result<FetchReply, Failure> {
    let [settings, cancels, claimed, without, next_due] = answer.sets()?;
    // A result has no order: the rows come by turn, each queue's first before any queue's second.
    let mut jobs: Vec<((i64, i32), FetchedJob)> = claimed
        .iter()
        .map(|row| Ok(((row.get(15)?, row.get(16)?), fetched_job(&request.worker, row)?)))
        .collect::<Result<_, Failure>>()?;
    jobs.sort_by_key(|(order, _)| *order);
    let mut passed_over = HashMap::new();
    let mut is_busy = false;
    for row in &without {
        passed_over.insert(row.get(0)?, row.get(1)?);
        is_busy |= row.get::<bool>(2)?;
    }
    let mut next_due =
        next_due.first().map(|row| row.get::<Option<Duration>>(0)).transpose()?.flatten();
    if is_busy && jobs.is_empty() {
        next_due = Some(next_due.map_or(BUSY_FOR, |due| due.min(BUSY_FOR)));
    }
    let control: Option<Control> =
        request.with_control.then(|| control(&settings, &cancels)).transpose()?;
    Ok(FetchReply {
        jobs: jobs.into_iter().map(|(_, job)| job).collect(),
        next_due,
        passed_over,
        control,
    })
}

fn passed_over_json(passed_over: &HashMap<String, u32>) -> String {
    json(passed_over.iter().map(|(q, n)| PassedOver { q, n: *n }))
}

fn fetched_job(worker: &WorkerId, row: &Row) -> Result<FetchedJob, Failure> {
    Ok(FetchedJob {
        lease: Lease {
            seq: row.get(0)?,
            job: row.get(1)?,
            fence: row.get(2)?,
            worker: worker.clone(),
        },
        queue: row.get(3)?,
        job_type: row.get(4)?,
        payload: row.get(5)?,
        tags: row.get(6)?,
        priority: row.get(7)?,
        attempts: row.get(8)?,
        retries: row.get(9)?,
        timeout: row.get(10)?,
        created_at: row.get(11)?,
        due_at: row.get(12)?,
        unknown_for: row.get(13)?,
        expires_in: row.get(14)?,
    })
}
