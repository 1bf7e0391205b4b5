//! What is old goes.

use std::time::Duration;

use crate::{
    model::{Limits, Purge},
    storage::mssql::{
        batch::{count, ms},
        call::Call,
        core::{Core, Effort},
        failure::Failure,
        session::Role,
        statements::{PURGE_ARCHIVE, PURGE_BUCKETS, PURGE_DLQ},
    },
};

/// The rows of one statement: at 5,000 locks in one index the server takes one on the whole table, and every completion
/// would wait for it.
const ROWS_AT_MOST: usize = 4_000;

/// Deletes the oldest rows of that age.
pub(super) async fn purge(
    core: &Core,
    what: Purge,
    older_than: Duration,
    batch: usize,
) -> Result<u64, Failure> {
    let statement = match what {
        Purge::Archive => &PURGE_ARCHIVE,
        Purge::DeadLetters => &PURGE_DLQ,
        Purge::Buckets => &PURGE_BUCKETS,
    };
    let mut left = batch.min(Purge::BATCH_AT_MOST);
    let mut purged = 0;
    while left > 0 {
        let rows_at_most = left.min(ROWS_AT_MOST);
        let call = Call::new(statement)
            .bind("age_ms", ms(older_than.min(Limits::MAX_DURATION)))
            .bind("batch", count(rows_at_most));
        let rows = core.run(Role::Maintenance, Effort::Patient, &call).await?.rows()?;
        let gone: u64 = rows.first().map(|row| row.get(0)).transpose()?.unwrap_or(0);
        purged += gone;
        if gone < rows_at_most as u64 {
            break;
        }
        left -= rows_at_most;
    }
    Ok(purged)
}
