//! New jobs in.

use rusqlite::{OptionalExtension, named_params};

use crate::{
    Error,
    model::{Due, EnqueueOutcome, NewJob},
    storage::sqlite::{
        failure::Outcome,
        queries,
        row::Cells,
        tx::{Tx, groups, ms},
    },
};

/// Inserts the jobs in their order.
pub(super) fn enqueue(tx: &Tx<'_>, jobs: &[NewJob]) -> Outcome<Vec<EnqueueOutcome>> {
    for (queue, _) in groups(jobs, |job| &job.queue) {
        ensure_queue(tx, queue)?;
    }
    jobs.iter().map(|job| insert(tx, job)).collect()
}

/// The queue's settings and totals exist after it. Not remembered in the process: a look is cheap, and always right.
pub(super) fn ensure_queue(tx: &Tx<'_>, queue: &str) -> Outcome<()> {
    let [settings, totals] = queries::ENSURE_QUEUE.statements();
    tx.statement(settings)?.execute(named_params! { "@queue": queue, "@now": tx.now_ms() })?;
    tx.statement(totals)?.execute(named_params! { "@queue": queue })?;
    Ok(())
}

fn insert(tx: &Tx<'_>, job: &NewJob) -> Outcome<EnqueueOutcome> {
    let [insert, _] = queries::ENQUEUE.statements();
    let due = match job.due {
        Due::Now => tx.now_ms(),
        Due::After(delay) => tx.now_ms().saturating_add(ms(delay)),
        // A time in the past means now: it must not shorten the lifetime, nor overtake who came before.
        Due::At(time) => time.as_unix_ms().max(tx.now_ms()),
    };
    let inserted = tx.statement(insert)?.execute(named_params! {
        "@id": job.id.as_bytes(),
        "@queue": job.queue,
        "@type": job.job_type,
        "@priority": job.priority,
        "@retries": job.retries,
        "@timeout_ms": ms(job.timeout),
        "@max_age_ms": ms(job.max_age),
        "@on_crash": job.on_crash as i64,
        "@now": tx.now_ms(),
        "@due": due,
        "@deadline": due.saturating_add(ms(job.max_age)),
        "@key": job.idempotency_key,
        "@created_by": job.created_by,
        "@tags": job.tags,
        "@payload": job.payload,
    })?;
    if inserted == 1 {
        tx.note_work();
        return Ok(EnqueueOutcome::Stored);
    }
    why_not(tx, job)
}

/// The job stands somewhere already, or its key is taken: the first matters more, as an own key is not a duplicate.
fn why_not(tx: &Tx<'_>, job: &NewJob) -> Outcome<EnqueueOutcome> {
    let [_, look] = queries::ENQUEUE.statements();
    let mut statement = tx.statement(look)?;
    let found = statement
        .query_row(
            named_params! {
                "@id": job.id.as_bytes(), "@type": job.job_type, "@key": job.idempotency_key,
            },
            |row| {
                let cells = Cells::new("JobsHot", row);
                Ok(cells.get::<bool>(0).and_then(|is_stored| {
                    if is_stored {
                        return Ok(Some(EnqueueOutcome::Stored));
                    }
                    let holder = cells.get::<Option<[u8; 16]>>(1)?;
                    Ok(holder.map(|bytes| EnqueueOutcome::Duplicate {
                        of: crate::model::JobId::from_bytes(bytes),
                    }))
                }))
            },
        )
        .optional()?
        .transpose()?
        .flatten();
    found.ok_or_else(|| {
        Error::permanent(
            format!("job {} was not inserted, and nothing stands in its way", job.id),
            None,
        )
        .into()
    })
}
