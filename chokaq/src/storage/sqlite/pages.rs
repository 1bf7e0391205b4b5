//! Pages of history, newest first.

use rusqlite::{OptionalExtension, Row, named_params};

use crate::{
    model::{ArchiveRow, DlqRow, PageCursor},
    storage::sqlite::{
        failure::Outcome,
        fetch::rows,
        queries,
        row::Cells,
        tx::{Tx, count},
    },
};

/// More than this is no page.
const PAGE_AT_MOST: usize = 1_000;

pub(super) fn get_archive_paged(
    tx: &Tx<'_>,
    queue: Option<&str>,
    after: Option<PageCursor>,
    limit: usize,
) -> Outcome<Vec<ArchiveRow>> {
    page(tx, queries::GET_ARCHIVE_PAGED.statements(), queue, after, limit, |row| {
        let cells = Cells::new("JobsArchive", row);
        Ok(ArchiveRow {
            id: cells.job(0)?,
            queue: cells.get(1)?,
            job_type: cells.get(2)?,
            tags: cells.get(3)?,
            attempts: cells.number(4)?,
            created_at: cells.time(5)?,
            started_at: cells.time(6)?,
            finished_at: cells.time(7)?,
            worker: cells.get(8)?,
            output: cells.get(9)?,
        })
    })
}

pub(super) fn get_dlq_paged(
    tx: &Tx<'_>,
    queue: Option<&str>,
    after: Option<PageCursor>,
    limit: usize,
) -> Outcome<Vec<DlqRow>> {
    page(tx, queries::GET_DLQ_PAGED.statements(), queue, after, limit, |row| {
        let cells = Cells::new("JobsDLQ", row);
        Ok(DlqRow {
            id: cells.job(0)?,
            queue: cells.get(1)?,
            job_type: cells.get(2)?,
            tags: cells.get(3)?,
            reason: cells.reason(4)?,
            error: cells.get(5)?,
            attempts: cells.number(6)?,
            created_at: cells.time(7)?,
            failed_at: cells.time(8)?,
            worker: cells.get(9)?,
        })
    })
}

fn page<T>(
    tx: &Tx<'_>,
    [of_all, of_one, find, next]: [&'static str; 4],
    queue: Option<&str>,
    after: Option<PageCursor>,
    limit: usize,
    decode: impl Fn(&Row<'_>) -> Outcome<T>,
) -> Outcome<Vec<T>> {
    let before = match after {
        None => i64::MAX,
        Some(cursor) => match seq_of(tx, find, cursor)? {
            Some(seq) => seq,
            None => first_after(tx, next, cursor.at.as_unix_ms())?,
        },
    };
    let limit = count(limit.min(PAGE_AT_MOST));
    match queue {
        None => {
            let mut statement = tx.statement(of_all)?;
            rows(statement.query(named_params! { "@before": before, "@limit": limit })?, decode)
        }
        Some(queue) => {
            let mut statement = tx.statement(of_one)?;
            let parameters = named_params! { "@queue": queue, "@before": before, "@limit": limit };
            rows(statement.query(parameters)?, decode)
        }
    }
}

fn seq_of(tx: &Tx<'_>, sql: &'static str, cursor: PageCursor) -> Outcome<Option<i64>> {
    let mut statement = tx.statement(sql)?;
    let parameters = named_params! { "@id": cursor.id.as_bytes() };
    Ok(statement.query_row(parameters, |row| row.get(0)).optional()?)
}

/// The Seq of the first row that is later than the time; past all of them when none is. Rows of the very moment are
/// shown again rather than left out. Some 60 seeks, however long the history is.
fn first_after(tx: &Tx<'_>, sql: &'static str, time_ms: i64) -> Outcome<i64> {
    let mut statement = tx.statement(sql)?;
    let (mut low, mut high) = (0, i64::MAX);
    while low < high {
        let middle = low + (high - low) / 2;
        let found = statement
            .query_row(named_params! { "@seq": middle }, |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
            })
            .optional()?;
        match found {
            Some((seq, at_ms)) if at_ms <= time_ms => low = seq.saturating_add(1),
            _ => high = middle,
        }
    }
    Ok(low)
}
