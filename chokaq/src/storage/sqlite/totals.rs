//! Lifetime totals and rates: added up per queue in here, written once per queue and call.

use std::collections::BTreeMap;

use rusqlite::named_params;

use crate::storage::sqlite::{failure::Outcome, queries, tx::Tx};

/// The width of a bucket.
const BUCKET_MS: i64 = 10_000;

/// What one call adds, by queue.
#[derive(Debug, Default)]
pub(super) struct Totals(BTreeMap<String, Added>);

#[derive(Debug, Default)]
struct Added {
    succeeded: i64,
    failed: i64,
    retried: i64,
    duration_ms: i64,
}

impl Totals {
    pub(super) fn succeeded(&mut self, queue: String, duration_ms: i64) {
        let added = self.0.entry(queue).or_default();
        added.succeeded += 1;
        added.duration_ms = added.duration_ms.saturating_add(duration_ms.max(0));
    }

    pub(super) fn failed(&mut self, queue: String) {
        self.0.entry(queue).or_default().failed += 1;
    }

    pub(super) fn retried(&mut self, queue: String) {
        self.0.entry(queue).or_default().retried += 1;
    }

    /// Only the time of the last activity.
    pub(super) fn touched(&mut self, queue: String) {
        self.0.entry(queue).or_default();
    }

    /// Writes what was added, and wakes the fetchers where that ended the activity of a limited queue's rows.
    pub(super) fn write(self, tx: &Tx<'_>) -> Outcome<()> {
        let [totals, bucket] = queries::ADD_TO_TOTALS.statements();
        for (queue, added) in self.0 {
            tx.statement(totals)?.execute(named_params! {
                "@queue": queue,
                "@now": tx.now_ms(),
                "@succeeded": added.succeeded,
                "@failed": added.failed,
                "@retried": added.retried,
            })?;
            if added.succeeded + added.failed > 0 {
                tx.statement(bucket)?.execute(named_params! {
                    "@bucket": tx.now_ms().div_euclid(BUCKET_MS) * BUCKET_MS,
                    "@queue": queue,
                    "@succeeded": added.succeeded,
                    "@failed": added.failed,
                    "@duration_ms": added.duration_ms,
                })?;
            }
            if !tx.has_work() && is_limited(tx, &queue)? {
                tx.note_work();
            }
        }
        Ok(())
    }
}

fn is_limited(tx: &Tx<'_>, queue: &str) -> Outcome<bool> {
    let mut statement = tx.statement(queries::IS_LIMITED.statement())?;
    Ok(statement.query_row(named_params! { "@queue": queue }, |row| row.get(0))?)
}
