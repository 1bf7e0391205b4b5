//! What an operation sees: one transaction, one clock reading.

use std::{cell::Cell, fmt, rc::Rc, time::Duration};

use rusqlite::{CachedStatement, Connection, types::Value, vtab::array::Array};

use crate::storage::sqlite::failure::Outcome;

/// An open transaction. All operations in it share its `now`.
pub(super) struct Tx<'c> {
    connection: &'c Connection,
    now_ms: i64,
    work_arrived: Cell<bool>,
}

impl<'c> Tx<'c> {
    pub(super) fn new(connection: &'c Connection, now_ms: i64) -> Self {
        Self { connection, now_ms, work_arrived: Cell::new(false) }
    }

    /// The transaction's time, milliseconds since 1970-01-01 UTC.
    pub(super) fn now_ms(&self) -> i64 {
        self.now_ms
    }

    pub(super) fn connection(&self) -> &'c Connection {
        self.connection
    }

    /// A statement, compiled once per connection.
    pub(super) fn statement(&self, sql: &'static str) -> Outcome<CachedStatement<'c>> {
        Ok(self.connection.prepare_cached(sql)?)
    }

    /// Notes that this transaction may make a row claimable: fetchers are woken once it is committed.
    pub(super) fn note_work(&self) {
        self.work_arrived.set(true);
    }

    pub(super) fn has_work(&self) -> bool {
        self.work_arrived.get()
    }
}

impl fmt::Debug for Tx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").field("now_ms", &self.now_ms).finish_non_exhaustive()
    }
}

/// A parameter for `IN (SELECT value FROM rarray(@x))`.
pub(super) fn array<T: Into<Value>>(values: impl IntoIterator<Item = T>) -> Array {
    Rc::new(values.into_iter().map(Into::into).collect())
}

/// A duration as whole milliseconds, as the tables keep it.
pub(super) fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A count or a limit as SQLite takes it.
pub(super) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The items that share a key, by index, in the order in which the keys first appear.
pub(super) fn groups<'i, I, K>(items: &'i [I], key: impl Fn(&'i I) -> K) -> Vec<(K, Vec<usize>)>
where
    K: Clone + Eq + std::hash::Hash,
{
    let mut places = std::collections::HashMap::new();
    let mut groups: Vec<(K, Vec<usize>)> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let key = key(item);
        let place = *places.entry(key.clone()).or_insert_with(|| {
            groups.push((key, Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(index);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_keep_the_order_of_their_first_items() {
        let grouped = groups(&["b1", "a1", "b2", "c1"], |item| item.chars().next());
        assert_eq!(grouped, [(Some('b'), vec![0, 2]), (Some('a'), vec![1]), (Some('c'), vec![3])]);
    }
}
