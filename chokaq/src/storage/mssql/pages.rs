//! Pages of history, newest first.

use crate::{
    model::{ArchiveRow, DlqRow, PageCursor},
    storage::mssql::{
        batch::count,
        call::Call,
        core::Core,
        failure::Failure,
        reads::{read, reason},
        statement::Statement,
        statements::{GET_ARCHIVE_PAGED, GET_DLQ_PAGED},
    },
};

/// More than this is no page.
const PAGE_AT_MOST: usize = 1_000;

pub(super) async fn get_archive_paged(
    core: &Core,
    queue: Option<String>,
    after: Option<PageCursor>,
    limit: usize,
) -> Result<Vec<ArchiveRow>, Failure> {
    read(core, page(&GET_ARCHIVE_PAGED, queue, after, limit), |row| {
        Ok(ArchiveRow {
            id: row.get(0)?,
            queue: row.get(1)?,
            job_type: row.get(2)?,
            tags: row.get(3)?,
            attempts: row.get(4)?,
            created_at: row.get(5)?,
            started_at: row.get(6)?,
            finished_at: row.get(7)?,
            worker: row.get(8)?,
            output: row.get(9)?,
        })
    })
    .await
}

pub(super) async fn get_dlq_paged(
    core: &Core,
    queue: Option<String>,
    after: Option<PageCursor>,
    limit: usize,
) -> Result<Vec<DlqRow>, Failure> {
    read(core, page(&GET_DLQ_PAGED, queue, after, limit), |row| {
        Ok(DlqRow {
            id: row.get(0)?,
            queue: row.get(1)?,
            job_type: row.get(2)?,
            tags: row.get(3)?,
            reason: reason(row, 4)?,
            error: row.get(5)?,
            attempts: row.get(6)?,
            created_at: row.get(7)?,
            failed_at: row.get(8)?,
            worker: row.get(9)?,
        })
    })
    .await
}

fn page(
    statement: &'static Statement,
    queue: Option<String>,
    after: Option<PageCursor>,
    limit: usize,
) -> Call {
    Call::new(statement)
        .bind("queue", queue)
        .bind("after_at_ms", after.map(|cursor| cursor.at.as_unix_ms()))
        .bind("after_id", after.map(|cursor| cursor.id))
        .bind("limit", count(limit.min(PAGE_AT_MOST)))
}
