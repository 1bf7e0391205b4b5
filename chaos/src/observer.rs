//! Checks the invariants while everything goes on.

use std::{sync::Mutex, time::Duration};

use tokio::time::sleep;

use crate::{
    database::{Database, Look},
    operators::{Record, locked},
};

/// What must not be, as it was found.
#[derive(Default)]
pub(crate) struct Violations(Mutex<Vec<String>>);

impl Violations {
    pub(crate) fn add(&self, what: String) {
        println!("VIOLATION: {what}");
        locked(&self.0).push(what);
    }

    pub(crate) fn count(&self) -> usize {
        locked(&self.0).len()
    }
}

/// Looks, until it is dropped.
pub(crate) async fn watch(database: &Database, record: &Record, violations: &Violations) {
    let mut before: Option<Look> = None;
    loop {
        sleep(Duration::from_millis(300)).await;
        let known = i64::try_from(record.acknowledged()).unwrap_or(i64::MAX);
        // A database that stands still or is locked is looked at again later.
        let Ok(look) = database.look().await else { continue };
        for fault in faults(known, record.highest_limit(), before, look) {
            violations.add(format!("{fault}: {look:?} after {before:?}"));
        }
        before = Some(look);
    }
}

fn faults(known: i64, highest_limit: i64, before: Option<Look>, look: Look) -> Vec<&'static str> {
    let mut faults = Vec::new();
    if look.doubled > 0 {
        faults.push("I1: a job stands in two tables");
    }
    if look.hot + look.archived + look.dead < known {
        faults.push("I5: a job that was acknowledged stands nowhere");
    }
    // A limit that was lowered lets those go on that are there; between two looks it may have been up and down again.
    let most = before.map_or(0, |before| before.limited.max(before.max_workers));
    if look.limited > look.max_workers.max(most).max(highest_limit) {
        faults.push("I7: more than MaxWorkers are fetched or running");
    }
    if before.is_some_and(|b| look.succeeded < b.succeeded || look.failed < b.failed) {
        faults.push("I6: a lifetime total went down");
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Look = Look {
        hot: 5,
        archived: 3,
        dead: 2,
        doubled: 0,
        limited: 4,
        max_workers: 4,
        succeeded: 3,
        failed: 2,
    };

    #[test]
    fn a_healthy_look_has_no_fault_also_when_a_limit_was_just_lowered() {
        assert_eq!(faults(10, 0, Some(LOOK), LOOK), [""; 0]);
        assert_eq!(faults(10, 0, Some(LOOK), Look { max_workers: 1, ..LOOK }), [""; 0]);
    }

    #[test]
    fn every_fault_is_told() {
        let one = |look| faults(10, 3, Some(LOOK), look).len();
        assert_eq!(one(Look { doubled: 1, ..LOOK }), 1);
        assert_eq!(one(Look { hot: 4, ..LOOK }), 1);
        assert_eq!(one(Look { limited: 5, ..LOOK }), 1);
        assert_eq!(one(Look { succeeded: 2, ..LOOK }), 1);
    }
}
