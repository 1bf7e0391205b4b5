//! The leases of queues that have one of their own, as operators set them: a worker gives up and beats by them, as rescue in
//! any process goes by them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How long a queue that a read left out keeps its lease: a read passes over a row that is just being locked.
const REMEMBERED: Duration = Duration::from_secs(10);

/// What the control reads brought.
#[derive(Debug, Default)]
pub(crate) struct QueueLeases(Mutex<HashMap<String, Known>>);

#[derive(Debug, Clone, Copy)]
struct Known {
    lease: Duration,
    /// Since when it is known: nobody can have kept it before.
    since: Instant,
    seen: Instant,
}

impl QueueLeases {
    /// Takes in what a read brought. Answers whether a lease is new or shorter: beats should go out at once.
    pub(crate) fn learn(&self, read: &[(String, Duration)]) -> bool {
        let now = Instant::now();
        let mut known = self.lock();
        let mut is_shorter = false;
        for (queue, lease) in read {
            match known.get_mut(queue) {
                Some(known) if known.lease == *lease => known.seen = now,
                old => {
                    is_shorter |= old.is_none_or(|old| *lease < old.lease);
                    known.insert(queue.clone(), Known { lease: *lease, since: now, seen: now });
                }
            }
        }
        known.retain(|_, known| now.duration_since(known.seen) <= REMEMBERED);
        is_shorter
    }

    /// Whether a lease of the queue that was last renewed so long ago is three quarters over; `general`: where the queue
    /// has none of its own.
    pub(crate) fn is_overdue(&self, queue: &str, unrenewed: Duration, general: Duration) -> bool {
        let (lease, unrenewed) = match self.lock().get(queue) {
            Some(known) => (known.lease, unrenewed.min(known.since.elapsed())),
            None => (general, unrenewed),
        };
        unrenewed >= lease.mul_f64(0.75)
    }

    /// How often to beat so that no lease runs dry for one lost beat.
    pub(crate) fn beat_interval(&self, general: Duration) -> Duration {
        let shortest = self.lock().values().map(|known| known.lease / 4).min();
        shortest.map_or(general, |shortest| general.min(shortest))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn own(lease: Duration) -> [(String, Duration); 1] {
        [("mail".to_owned(), lease)]
    }

    #[test]
    fn without_a_lease_of_its_own_a_queue_has_the_general_one() {
        let leases = QueueLeases::default();
        assert!(!leases.is_overdue("mail", MINUTE, 2 * MINUTE));
        assert!(leases.is_overdue("mail", 2 * MINUTE, 2 * MINUTE));
        assert_eq!(leases.beat_interval(MINUTE), MINUTE);
    }

    #[test]
    fn a_lease_of_its_own_counts_from_when_it_is_known() {
        let leases = QueueLeases::default();
        leases.learn(&own(MINUTE));
        // An hour without a beat, and nobody knew better until now.
        assert!(!leases.is_overdue("mail", 60 * MINUTE, MINUTE));
        assert!(leases.is_overdue("other", 60 * MINUTE, MINUTE));
        leases.learn(&own(Duration::ZERO));
        assert!(leases.is_overdue("mail", Duration::ZERO, MINUTE));
    }

    #[test]
    fn beats_are_as_frequent_as_the_shortest_lease_asks() {
        let leases = QueueLeases::default();
        leases.learn(&own(2 * MINUTE));
        assert_eq!(leases.beat_interval(10 * MINUTE), MINUTE / 2);
        assert_eq!(leases.beat_interval(MINUTE / 6), MINUTE / 6);
        assert!(!leases.learn(&own(2 * MINUTE)), "nothing new");
        assert!(leases.learn(&own(MINUTE)), "shorter");
        // A read that passes over the queue's row takes nothing back.
        assert!(!leases.learn(&[]));
        assert_eq!(leases.beat_interval(10 * MINUTE), MINUTE / 4);
    }
}
