//! What is old goes.

use std::time::Duration;

use rusqlite::named_params;

use crate::{
    model::Purge,
    storage::sqlite::{
        failure::Outcome,
        queries,
        tx::{Tx, count, ms},
    },
};

/// Deletes the oldest rows of that age.
pub(super) fn purge(tx: &Tx<'_>, what: Purge, older_than: Duration, batch: usize) -> Outcome<u64> {
    let query = match what {
        Purge::Archive => &queries::PURGE_ARCHIVE,
        Purge::DeadLetters => &queries::PURGE_DLQ,
        Purge::Buckets => &queries::PURGE_BUCKETS,
    };
    let purged = tx.statement(query.statement())?.execute(named_params! {
        "@before": tx.now_ms().saturating_sub(ms(older_than)),
        "@batch": count(batch.min(Purge::BATCH_AT_MOST)),
    })?;
    Ok(u64::try_from(purged).unwrap_or(u64::MAX))
}
