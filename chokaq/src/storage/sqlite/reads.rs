//! What people look at.

use std::time::Duration;

use rusqlite::{Row, named_params};

use crate::{
    model::{
        AttemptRecord, DlqErrorGroup, JobDetail, JobId, JobState, JobStatus, QueueHealth,
        QueueStats, SummaryStats, ThroughputPoint, Timestamp,
    },
    storage::sqlite::{
        failure::{Fault, Outcome},
        fetch::rows,
        queries,
        row::Cells,
        tx::{Tx, count, ms},
    },
};

pub(super) fn get_summary_stats(tx: &Tx<'_>) -> Outcome<SummaryStats> {
    let mut statement = tx.statement(queries::GET_SUMMARY_STATS.statement())?;
    let mut found = statement.query([])?;
    let Some(row) = found.next()? else { return Ok(SummaryStats::default()) };
    let cells = Cells::new("StatsSummary", row);
    Ok(SummaryStats {
        pending: cells.number(0)?,
        fetched: cells.number(1)?,
        processing: cells.number(2)?,
        succeeded_total: cells.number(3)?,
        failed_total: cells.number(4)?,
        retried_total: cells.number(5)?,
        dead: cells.number(6)?,
    })
}

pub(super) fn get_queue_stats(tx: &Tx<'_>) -> Outcome<Vec<QueueStats>> {
    let mut statement = tx.statement(queries::GET_QUEUE_STATS.statement())?;
    rows(statement.query(named_params! { "@now": tx.now_ms() })?, |row| {
        let cells = Cells::new("Queues", row);
        Ok(QueueStats {
            queue: cells.get(0)?,
            paused: cells.get(1)?,
            active: cells.get(2)?,
            max_workers: cells.get::<Option<i64>>(3)?.map(|_| cells.number(3)).transpose()?,
            zombie_timeout: cells.get::<Option<i64>>(4)?.map(|_| cells.duration(4)).transpose()?,
            ready: cells.number(5)?,
            delayed: cells.number(6)?,
            fetched: cells.number(7)?,
            processing: cells.number(8)?,
            succeeded_total: cells.number(9)?,
            failed_total: cells.number(10)?,
            retried_total: cells.number(11)?,
            last_activity: cells.time_or_none(12)?,
        })
    })
}

pub(super) fn get_queue_health(tx: &Tx<'_>) -> Outcome<Vec<QueueHealth>> {
    let [queues, oldest] = queries::GET_QUEUE_HEALTH.statements();
    let mut oldest = tx.statement(oldest)?;
    let now = Timestamp::from_unix_ms(tx.now_ms());
    let mut statement = tx.statement(queues)?;
    let mut found = statement.query(named_params! { "@now": tx.now_ms() })?;
    let mut health = Vec::new();
    while let Some(row) = found.next()? {
        let cells = Cells::new("Queues", row);
        let queue: String = cells.get(0)?;
        let promoted: Option<i64> =
            oldest.query_row(named_params! { "@queue": queue }, |row| row.get(0))?;
        let overdue: Option<i64> = cells.get(4)?;
        let due = [promoted, overdue].into_iter().flatten().min();
        health.push(QueueHealth {
            ready: cells.number(2)?,
            worst_lag: due.map_or(Duration::ZERO, |due| now.since(Timestamp::from_unix_ms(due))),
            saturation_percent: cells
                .get::<Option<i64>>(1)?
                .map(|_| {
                    Ok::<_, Fault>(QueueHealth::saturation(cells.number(3)?, cells.number(1)?))
                })
                .transpose()?,
            queue,
        });
    }
    Ok(health)
}

pub(super) fn get_throughput_stats(tx: &Tx<'_>, window: Duration) -> Outcome<Vec<ThroughputPoint>> {
    let mut statement = tx.statement(queries::GET_THROUGHPUT_STATS.statement())?;
    let since = tx.now_ms().saturating_sub(ms(window));
    rows(statement.query(named_params! { "@since": since })?, |row| {
        let cells = Cells::new("MetricBuckets", row);
        Ok(ThroughputPoint {
            queue: cells.get(0)?,
            bucket: cells.time(1)?,
            succeeded: cells.number(2)?,
            failed: cells.number(3)?,
            duration: cells.duration(4)?,
        })
    })
}

pub(super) fn get_top_dlq_errors(tx: &Tx<'_>, limit: usize) -> Outcome<Vec<DlqErrorGroup>> {
    let mut statement = tx.statement(queries::GET_TOP_DLQ_ERRORS.statement())?;
    rows(statement.query(named_params! { "@limit": count(limit) })?, |row| {
        let cells = Cells::new("JobsDLQ", row);
        Ok(DlqErrorGroup {
            job_type: cells.get(0)?,
            reason: cells.reason(1)?,
            error: cells.get(2)?,
            count: cells.number(3)?,
            last_failed_at: cells.time(4)?,
        })
    })
}

pub(super) fn find_job(tx: &Tx<'_>, id: JobId) -> Outcome<Option<JobDetail>> {
    let mut statement = tx.statement(queries::FIND_JOB.statement())?;
    let mut found = statement.query(named_params! { "@id": id.as_bytes() })?;
    found.next()?.map(detail).transpose()
}

fn detail(row: &Row<'_>) -> Outcome<JobDetail> {
    let place: i64 = row.get(0)?;
    let table = match place {
        0 => "JobsHot",
        1 => "JobsArchive",
        _ => "JobsDLQ",
    };
    let cells = Cells::new(table, row);
    let state = match place {
        0 => {
            let status = cells.get(1)?;
            JobState::Active(
                JobStatus::from_number(status)
                    .ok_or_else(|| cells.malformed(1, &format!("{status} is no status")))?,
            )
        }
        1 => JobState::Succeeded,
        _ => JobState::Dead(cells.reason(2)?),
    };
    Ok(JobDetail {
        state,
        id: cells.job(3)?,
        queue: cells.get(4)?,
        job_type: cells.get(5)?,
        payload: cells.get(6)?,
        tags: cells.get(7)?,
        idempotency_key: cells.get(8)?,
        created_by: cells.get(9)?,
        priority: cells.number(10)?,
        attempts: cells.number(11)?,
        retries: cells.number(12)?,
        created_at: cells.time(13)?,
        due_at: cells.time(14)?,
        deadline_at: cells.time(15)?,
        started_at: cells.time_or_none(16)?,
        finished_at: cells.time_or_none(17)?,
        worker: cells.get(18)?,
        cancel_requested_at: cells.time_or_none(19)?,
        progress: cells
            .get::<Option<f64>>(20)?
            .map(|share| {
                Ok::<_, Fault>((share, cells.get::<Option<String>>(21)?.unwrap_or_default()))
            })
            .transpose()?,
        output: cells.get(22)?,
        output_note: cells.get(23)?,
        errors: errors(&cells, 24)?,
    })
}

fn errors(cells: &Cells<'_, '_>, column: usize) -> Outcome<Vec<AttemptRecord>> {
    let Some(json) = cells.get::<Option<String>>(column)? else { return Ok(Vec::new()) };
    serde_json::from_str(&json).map_err(|error| cells.malformed(column, &error.to_string()))
}
