//! A batch of the contract as calls: one worker in each, no job twice, bounded in rows and bytes.

use std::{collections::HashSet, time::Duration};

use serde::Serialize;
use uuid::Uuid;

use crate::model::{JobId, Lease, LeaseId, WorkerId};

/// The rows of one call.
const ROWS_AT_MOST: usize = 1_000;
/// The text of one call; one item is always allowed.
const BYTES_AT_MOST: usize = 4_000_000;

/// What one call takes, by index into the batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) worker: WorkerId,
    pub(super) members: Vec<usize>,
}

/// Splits a batch. A job that comes twice, under one lease or two, goes into two calls, in the order of the batch: a row
/// has one answer to each.
pub(super) fn parts<T>(
    batch: &[T],
    lease: impl Fn(&T) -> &Lease,
    bytes: impl Fn(&T) -> usize,
) -> Vec<Part> {
    let mut parts: Vec<(Part, HashSet<JobId>, usize)> = Vec::new();
    for (index, item) in batch.iter().enumerate() {
        let (lease, size) = (lease(item), bytes(item));
        // The last one of this worker: an earlier part may only hold what came before.
        let open = parts.iter_mut().rev().find(|(part, ..)| part.worker == lease.worker);
        match open {
            Some((part, jobs, taken))
                if part.members.len() < ROWS_AT_MOST
                    && *taken + size <= BYTES_AT_MOST
                    && !jobs.contains(&lease.job) =>
            {
                part.members.push(index);
                jobs.insert(lease.job);
                *taken += size;
            }
            _ => {
                let part = Part { worker: lease.worker.clone(), members: vec![index] };
                parts.push((part, HashSet::from([lease.job]), size));
            }
        }
    }
    parts.into_iter().map(|(part, ..)| part).collect()
}

/// Items as the statements' JSON.
pub(super) fn json<T: Serialize>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<T> = items.into_iter().collect();
    serde_json::to_string(&items).expect("numbers and text have a JSON form")
}

/// A row and its fence.
#[derive(Debug, Serialize)]
pub(super) struct Owned {
    s: i64,
    l: Uuid,
}

impl From<&Lease> for Owned {
    fn from(lease: &Lease) -> Self {
        Self { s: lease.seq, l: fence(lease.fence) }
    }
}

pub(super) fn fence(id: LeaseId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}

/// A duration as DATEADD takes it, which counts in int: whole seconds, and the milliseconds of the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delay {
    pub(super) s: i32,
    pub(super) ms: i32,
}

impl From<Duration> for Delay {
    fn from(duration: Duration) -> Self {
        let s = i32::try_from(duration.as_secs()).unwrap_or(i32::MAX);
        Self { s, ms: i32::try_from(duration.subsec_millis()).unwrap_or(0) }
    }
}

/// A duration as whole milliseconds, as the tables keep it.
pub(super) fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A count or a limit as the statements take it.
pub(super) fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(worker: &str) -> Lease {
        Lease { job: JobId::new(), seq: 1, fence: LeaseId::new(), worker: WorkerId::new(worker) }
    }

    fn members(batch: &[Lease], bytes: usize) -> Vec<Vec<usize>> {
        let parts = parts(batch, |lease| lease, |_| bytes);
        parts.into_iter().map(|part| part.members).collect()
    }

    #[test]
    fn workers_are_told_apart_and_nothing_is_left_out() {
        let (a, b) = (|| lease("a"), || lease("b"));
        assert_eq!(members(&[a(), b(), a(), b()], 1), [vec![0, 2], vec![1, 3]]);
        assert!(members(&[], 1).is_empty());
    }

    #[test]
    fn a_job_that_comes_twice_goes_in_two_calls_in_its_order() {
        let (one, other) = (lease("a"), lease("a"));
        let again = Lease { fence: LeaseId::new(), ..one.clone() };
        assert_eq!(members(&[one.clone(), other, again, one], 1), [vec![0, 1], vec![2], vec![3]]);
    }

    #[test]
    fn rows_and_bytes_are_bounded() {
        let batch: Vec<Lease> = (0..1_001).map(|_| lease("a")).collect();
        assert_eq!(members(&batch, 1).iter().map(Vec::len).collect::<Vec<_>>(), [1_000, 1]);
        assert_eq!(members(&batch[..3], 3_000_000), [vec![0], vec![1], vec![2]]);
        assert_eq!(members(&batch[..2], 5_000_000), [vec![0], vec![1]]);
    }

    #[test]
    fn a_delay_keeps_its_milliseconds_and_never_overflows() {
        assert_eq!(Delay::from(Duration::from_millis(61_250)), Delay { s: 61, ms: 250 });
        assert_eq!(Delay::from(Duration::MAX).s, i32::MAX);
    }
}
