//! New jobs in.

use serde::Serialize;

use crate::{
    Error,
    model::{Due, EnqueueOutcome, JobId, NewJob, Timestamp},
    storage::mssql::{
        batch::{Delay, json, ms},
        call::Call,
        core::{Core, Effort},
        failure::Failure,
        session::Role,
        statements::ENQUEUE,
        time::{LAST_MOMENT_MS, to_iso},
    },
};

/// How often a batch is run again because the holder of a key finished between the insert and the look for it.
const RUNS_AT_MOST: usize = 20;

#[derive(Serialize)]
struct Item<'a> {
    i: JobId,
    q: &'a str,
    y: &'a str,
    b: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    g: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    k: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    c: Option<&'a str>,
    p: i32,
    r: u32,
    to: i64,
    ma: i64,
    oc: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    ds: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dm: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
}

impl<'a> Item<'a> {
    fn new(job: &'a NewJob) -> Self {
        let (delay, at) = match job.due {
            Due::Now => (None, None),
            Due::After(delay) => (Some(Delay::from(delay)), None),
            Due::At(time) => (None, Some(to_iso(time))),
        };
        Self {
            i: job.id,
            q: &job.queue,
            y: &job.job_type,
            b: &job.payload,
            g: job.tags.as_deref(),
            k: job.idempotency_key.as_deref(),
            c: job.created_by.as_deref(),
            p: job.priority,
            r: job.retries,
            to: ms(job.timeout),
            ma: ms(job.max_age),
            oc: job.on_crash as u8,
            ds: delay.map(|delay| delay.s),
            dm: delay.map(|delay| delay.ms),
            at,
        }
    }
}

/// Inserts the jobs in their order.
pub(super) async fn enqueue(core: &Core, jobs: Vec<NewJob>) -> crate::Result<Vec<EnqueueOutcome>> {
    jobs.iter().try_for_each(check_due)?;
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let call = Call::new(&ENQUEUE).bind("jobs", json(jobs.iter().map(Item::new)));
    for _ in 0..RUNS_AT_MOST {
        let rows = core.run(Role::Worker, Effort::Brief, &call).await?.rows()?;
        let mut outcomes = vec![None; jobs.len()];
        for row in rows {
            let place = usize::try_from(row.get::<i32>(0)?).unwrap_or(usize::MAX);
            let outcome = match (row.get::<bool>(1)?, row.get::<Option<JobId>>(2)?) {
                (true, _) => Some(EnqueueOutcome::Stored),
                (false, holder) => holder.map(|of| EnqueueOutcome::Duplicate { of }),
            };
            if let Some(slot) = outcomes.get_mut(place) {
                *slot = outcome;
            }
        }
        core.note_work();
        if let Some(outcomes) = outcomes.into_iter().collect() {
            return Ok(outcomes);
        }
    }
    Err(Failure::transient_unknown(
        "an idempotency key of the batch was taken and freed again at each of its runs: try again"
            .to_owned(),
    )
    .into())
}

/// datetime2 ends with the year 9999.
fn check_due(job: &NewJob) -> crate::Result<()> {
    let Due::At(time) = job.due else { return Ok(()) };
    if time.as_unix_ms().saturating_add(ms(job.max_age)) > LAST_MOMENT_MS {
        return Err(Error::invalid(format!(
            "job {} is due at {time}: with its maximum age it must end before {}, the last moment of SQL Server's datetime2",
            job.id,
            Timestamp::from_unix_ms(LAST_MOMENT_MS)
        )));
    }
    Ok(())
}
