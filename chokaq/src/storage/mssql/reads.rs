//! What people look at.

use std::time::Duration;

use crate::{
    model::{
        AttemptRecord, DlqErrorGroup, FailureReason, JobDetail, JobId, JobState, JobStatus, Limits,
        QueueHealth, QueueStats, SummaryStats, ThroughputPoint,
    },
    storage::mssql::{
        answer::Row,
        batch::{count, ms},
        call::Call,
        core::{Core, Effort},
        failure::Failure,
        session::Role,
        statements::{
            FIND_JOB, GET_QUEUE_HEALTH, GET_QUEUE_STATS, GET_SUMMARY_STATS, GET_THROUGHPUT_STATS,
            GET_TOP_DLQ_ERRORS,
        },
    },
};

/// The rows of a read, decoded.
pub(super) async fn read<T>(
    core: &Core,
    call: Call,
    decode: impl Fn(&Row) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let rows = core.run(Role::Page, Effort::Patient, &call).await?.rows()?;
    rows.iter().map(decode).collect()
}

pub(super) async fn get_summary_stats(core: &Core) -> Result<SummaryStats, Failure> {
    let found = read(core, Call::new(&GET_SUMMARY_STATS), |row| {
        Ok(SummaryStats {
            pending: row.get(0)?,
            fetched: row.get(1)?,
            processing: row.get(2)?,
            succeeded_total: row.get(3)?,
            failed_total: row.get(4)?,
            retried_total: row.get(5)?,
            dead: row.get(6)?,
        })
    });
    Ok(found.await?.pop().unwrap_or_default())
}

pub(super) async fn get_queue_stats(core: &Core) -> Result<Vec<QueueStats>, Failure> {
    read(core, Call::new(&GET_QUEUE_STATS), |row| {
        Ok(QueueStats {
            queue: row.get(0)?,
            paused: row.get(1)?,
            active: row.get(2)?,
            max_workers: row.get(3)?,
            zombie_timeout: row.get(4)?,
            ready: row.get(5)?,
            delayed: row.get(6)?,
            fetched: row.get(7)?,
            processing: row.get(8)?,
            succeeded_total: row.get(9)?,
            failed_total: row.get(10)?,
            retried_total: row.get(11)?,
            last_activity: row.get(12)?,
        })
    })
    .await
}

pub(super) async fn get_queue_health(core: &Core) -> Result<Vec<QueueHealth>, Failure> {
    read(core, Call::new(&GET_QUEUE_HEALTH), |row| {
        let (max_workers, active): (Option<u32>, u64) = (row.get(1)?, row.get(3)?);
        Ok(QueueHealth {
            queue: row.get(0)?,
            ready: row.get(2)?,
            worst_lag: row.get::<Option<Duration>>(4)?.unwrap_or_default(),
            saturation_percent: max_workers.map(|max| QueueHealth::saturation(active, max)),
        })
    })
    .await
}

pub(super) async fn get_throughput_stats(
    core: &Core,
    window: Duration,
) -> Result<Vec<ThroughputPoint>, Failure> {
    // The statement counts in int; no bucket is older.
    let window = window.min(Limits::MAX_DURATION);
    let call = Call::new(&GET_THROUGHPUT_STATS).bind("window_ms", ms(window));
    read(core, call, |row| {
        Ok(ThroughputPoint {
            queue: row.get(0)?,
            bucket: row.get(1)?,
            succeeded: row.get(2)?,
            failed: row.get(3)?,
            duration: row.get(4)?,
        })
    })
    .await
}

pub(super) async fn get_top_dlq_errors(
    core: &Core,
    limit: usize,
) -> Result<Vec<DlqErrorGroup>, Failure> {
    read(core, Call::new(&GET_TOP_DLQ_ERRORS).bind("limit", count(limit)), |row| {
        Ok(DlqErrorGroup {
            job_type: row.get(0)?,
            reason: reason(row, 1)?,
            error: row.get(2)?,
            count: row.get(3)?,
            last_failed_at: row.get(4)?,
        })
    })
    .await
}

/// Twice where the first look finds nothing: the job may have been on its way from a table that was read later to one
/// that was read before.
pub(super) async fn find_job(core: &Core, id: JobId) -> Result<Option<JobDetail>, Failure> {
    for _ in 0..2 {
        let mut found = read(core, Call::new(&FIND_JOB).bind("id", id), |row| {
            Ok((row.get::<i32>(0)?, detail(row)?))
        })
        .await?;
        // Two rows: it moved on while it was read.
        found.sort_by_key(|(place, _)| *place);
        if let Some((_, job)) = found.pop() {
            return Ok(Some(job));
        }
    }
    Ok(None)
}

/// The failure reason in a column.
pub(super) fn reason(row: &Row, column: usize) -> Result<FailureReason, Failure> {
    let name: String = row.get(column)?;
    FailureReason::from_name(&name)
        .ok_or_else(|| row.unreadable(column, &format!("holds {name:?}, no failure reason")))
}

fn detail(row: &Row) -> Result<JobDetail, Failure> {
    let state = match row.get::<i32>(0)? {
        0 => {
            let status: i64 = row.get(1)?;
            JobState::Active(
                JobStatus::from_number(status)
                    .ok_or_else(|| row.unreadable(1, &format!("holds {status}, no status")))?,
            )
        }
        1 => JobState::Succeeded,
        _ => JobState::Dead(reason(row, 2)?),
    };
    let share: Option<f64> = row.get(20)?;
    let note: Option<String> = row.get(21)?;
    Ok(JobDetail {
        state,
        id: row.get(3)?,
        queue: row.get(4)?,
        job_type: row.get(5)?,
        payload: row.get(6)?,
        tags: row.get(7)?,
        idempotency_key: row.get(8)?,
        created_by: row.get(9)?,
        priority: row.get(10)?,
        attempts: row.get(11)?,
        retries: row.get(12)?,
        created_at: row.get(13)?,
        due_at: row.get(14)?,
        deadline_at: row.get(15)?,
        started_at: row.get(16)?,
        finished_at: row.get(17)?,
        worker: row.get(18)?,
        cancel_requested_at: row.get(19)?,
        progress: share.map(|share| (share, note.unwrap_or_default())),
        output: row.get(22)?,
        output_note: row.get(23)?,
        errors: errors(row, 24)?,
    })
}

fn errors(row: &Row, column: usize) -> Result<Vec<AttemptRecord>, Failure> {
    let Some(json) = row.get::<Option<String>>(column)? else { return Ok(Vec::new()) };
    serde_json::from_str(&json)
        .map_err(|error| row.unreadable(column, &format!("holds no list of errors: {error}")))
}
