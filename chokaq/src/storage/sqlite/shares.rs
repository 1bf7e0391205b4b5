//! How a batch is shared among the queues that have work. No SQL in here.

use std::{
    cmp::Reverse,
    collections::{HashMap, VecDeque},
};

/// A queue with work, by its first claimable row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) queue: String,
    pub(super) priority: i64,
    pub(super) scheduled_ms: i64,
    /// Batches in a row in which it had work and got nothing.
    pub(super) passed_over: u32,
    /// Rows that MaxWorkers leaves; `None` without a limit.
    pub(super) room: Option<usize>,
}

/// What one batch may hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    pub(super) rows: usize,
    /// Of these, rows of queues with a limit.
    pub(super) limited_rows: usize,
    pub(super) bytes: usize,
}

/// A row that may be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) seq: i64,
    pub(super) bytes: usize,
}

/// The batch, and what it did not reach.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    /// In the order to run them: the queues take turns, each in its own order.
    pub(super) seqs: Vec<i64>,
    /// Queues that had work and room, and got nothing.
    pub(super) passed_over: HashMap<String, u32>,
}

/// Shares the budget: first a fair part for every head, the longest passed over first, then by priority and age; then
/// what is left in the same order. `next` answers the rows of a queue after the first `skip`, at most `take`.
pub(super) fn share<E>(
    mut heads: Vec<Head>,
    budget: Budget,
    mut next: impl FnMut(&Head, usize, usize) -> Result<Vec<Candidate>, E>,
) -> Result<Chosen, E> {
    heads.sort_by(|a, b| order(a).cmp(&order(b)));
    let mut batch = Batch::new(budget, heads.len());
    let fair = budget.rows.div_ceil(heads.len().max(1)).max(least_share(budget.rows));
    for part in [fair, usize::MAX] {
        for (index, head) in heads.iter().enumerate() {
            let take = batch.allows(index, head).min(part);
            if take > 0 {
                let skip = batch.taken[index].len();
                batch.add(index, head, take, next(head, skip, take)?);
            }
        }
    }
    Ok(batch.finish(heads))
}

/// The least share of a queue in a large batch: each queue costs index pages of its own at the commit (`chokaq-bench --mode
/// scale` shows it). The queues that get none come first in the next batch.
fn least_share(rows: usize) -> usize {
    (rows / 25).clamp(1, 4)
}

fn order(head: &Head) -> (Reverse<u32>, Reverse<i64>, i64, &str) {
    (Reverse(head.passed_over), Reverse(head.priority), head.scheduled_ms, &head.queue)
}

struct Batch {
    left: Budget,
    taken: Vec<VecDeque<i64>>,
    /// Queues that gave less than they were asked for.
    is_exhausted: Vec<bool>,
    is_full: bool,
}

impl Batch {
    fn new(left: Budget, heads: usize) -> Self {
        Self {
            left,
            taken: vec![VecDeque::new(); heads],
            is_exhausted: vec![false; heads],
            is_full: left.rows == 0,
        }
    }

    /// How many more rows the queue may give.
    fn allows(&self, index: usize, head: &Head) -> usize {
        if self.is_full || self.is_exhausted[index] {
            return 0;
        }
        match head.room {
            None => self.left.rows,
            Some(room) => {
                let room = room.saturating_sub(self.taken[index].len());
                room.min(self.left.limited_rows).min(self.left.rows)
            }
        }
    }

    fn add(&mut self, index: usize, head: &Head, asked: usize, candidates: Vec<Candidate>) {
        self.is_exhausted[index] = candidates.len() < asked;
        for candidate in candidates {
            let is_first = self.taken.iter().all(VecDeque::is_empty);
            if candidate.bytes > self.left.bytes && !is_first {
                // Not skipped for a smaller one: priority is strict within a queue.
                self.is_full = true;
                return;
            }
            self.taken[index].push_back(candidate.seq);
            self.left.bytes = self.left.bytes.saturating_sub(candidate.bytes);
            self.left.rows -= 1;
            if head.room.is_some() {
                self.left.limited_rows -= 1;
            }
        }
        self.is_full |= self.left.rows == 0 || self.left.bytes == 0;
    }

    fn finish(mut self, heads: Vec<Head>) -> Chosen {
        let mut chosen = Chosen::default();
        for (head, taken) in heads.into_iter().zip(&self.taken) {
            if taken.is_empty() && head.room != Some(0) {
                chosen.passed_over.insert(head.queue, head.passed_over.saturating_add(1));
            }
        }
        while self.taken.iter().any(|queue| !queue.is_empty()) {
            chosen.seqs.extend(self.taken.iter_mut().filter_map(VecDeque::pop_front));
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn head(queue: &str, priority: i64) -> Head {
        Head { queue: queue.into(), priority, scheduled_ms: 0, passed_over: 0, room: None }
    }

    fn rows(rows: usize) -> Budget {
        Budget { rows, limited_rows: rows, bytes: usize::MAX }
    }

    /// Each queue has rows of one byte, numbered from 100 times its place.
    fn run(heads: Vec<Head>, budget: Budget, sizes: &[(&str, i64)]) -> Chosen {
        run_sized(heads, budget, sizes, 1)
    }

    fn run_sized(heads: Vec<Head>, budget: Budget, sizes: &[(&str, i64)], bytes: usize) -> Chosen {
        let chosen = share(heads, budget, |head, skip, take| {
            let place = sizes.iter().position(|(queue, _)| *queue == head.queue).unwrap();
            let first = i64::try_from(place).unwrap() * 100;
            Ok::<_, Infallible>(
                (first..first + sizes[place].1)
                    .skip(skip)
                    .take(take)
                    .map(|seq| Candidate { seq, bytes })
                    .collect(),
            )
        });
        chosen.unwrap_or_else(|never| match never {})
    }

    #[test]
    fn one_queue_gets_the_whole_batch_in_its_order() {
        assert_eq!(run(vec![head("a", 0)], rows(3), &[("a", 9)]).seqs, [0, 1, 2]);
    }

    #[test]
    fn a_flood_leaves_every_other_queue_its_share() {
        let heads = vec![head("flood", 100), head("quiet", 1)];
        let chosen = run(heads, rows(10), &[("flood", 90), ("quiet", 2)]);
        assert_eq!(chosen.seqs, [0, 100, 1, 101, 2, 3, 4, 5, 6, 7]);
        assert!(chosen.passed_over.is_empty());
    }

    #[test]
    fn with_fewer_rows_than_queues_those_passed_over_come_next() {
        let heads = vec![head("a", 3), head("b", 2), head("c", 1)];
        let sizes = [("a", 9), ("b", 9), ("c", 9)];
        let first = run(heads.clone(), rows(2), &sizes);
        assert_eq!(first.seqs, [0, 100]);
        assert_eq!(first.passed_over, HashMap::from([("c".to_owned(), 1)]));
        let mut again = heads;
        again[2].passed_over = 1;
        let second = run(again, rows(2), &sizes);
        assert_eq!(second.seqs, [200, 0]);
        assert_eq!(second.passed_over, HashMap::from([("b".to_owned(), 1)]));
    }

    #[test]
    fn every_queue_is_reached_in_as_many_batches_as_there_are_queues() {
        let names: Vec<String> = (0..40).map(|n| format!("q{n:02}")).collect();
        let sizes: Vec<(&str, i64)> = names.iter().map(|name| (name.as_str(), 90)).collect();
        let mut passed_over: HashMap<String, u32> = HashMap::new();
        let mut reached = std::collections::HashSet::new();
        for _ in 0..40 {
            let heads = (0..40)
                .map(|n: usize| Head {
                    passed_over: passed_over.get(&names[n]).copied().unwrap_or(0),
                    ..head(&names[n], i64::try_from(n).unwrap())
                })
                .collect();
            let chosen = run(heads, rows(1), &sizes);
            reached.extend(chosen.seqs.iter().map(|seq| seq / 100));
            passed_over = chosen.passed_over;
        }
        assert_eq!(reached.len(), 40);
    }

    #[test]
    fn a_limited_queue_gets_no_more_than_its_room_and_all_of_them_no_more_than_the_idle_permits() {
        let limited = |queue: &str, room| Head { room: Some(room), ..head(queue, 0) };
        let sizes = [("a", 90), ("b", 90), ("c", 90)];
        let heads = vec![limited("a", 2), limited("b", 50), head("c", 0)];
        let budget = Budget { rows: 10, limited_rows: 5, bytes: usize::MAX };
        let chosen = run(heads, budget, &sizes);
        let of = |place: i64| chosen.seqs.iter().filter(|seq| *seq / 100 == place).count();
        assert_eq!((of(0), of(1), of(2)), (2, 3, 5));
    }

    #[test]
    fn a_full_queue_is_not_passed_over_but_one_without_idle_permits_is() {
        let heads = vec![
            Head { room: Some(0), ..head("full", 0) },
            Head { room: Some(5), ..head("waits", 0) },
            head("free", 0),
        ];
        let budget = Budget { rows: 2, limited_rows: 0, bytes: usize::MAX };
        let chosen = run(heads, budget, &[("full", 9), ("waits", 9), ("free", 9)]);
        assert_eq!(chosen.seqs, [200, 201]);
        assert_eq!(chosen.passed_over, HashMap::from([("waits".to_owned(), 1)]));
    }

    #[test]
    fn bytes_end_a_batch_but_one_row_is_always_allowed() {
        let budget = Budget { rows: 10, limited_rows: 10, bytes: 25 };
        assert_eq!(run_sized(vec![head("a", 0)], budget, &[("a", 9)], 10).seqs, [0, 1]);
        assert_eq!(run_sized(vec![head("a", 0)], budget, &[("a", 9)], 1_000).seqs, [0]);
    }

    #[test]
    fn nothing_is_asked_of_a_queue_twice_once_it_gave_less_than_asked() {
        let mut asked = 0;
        let chosen = share(vec![head("a", 0)], rows(100), |_, _, _| {
            asked += 1;
            Ok::<_, Infallible>(vec![Candidate { seq: 1, bytes: 1 }])
        });
        assert_eq!(chosen.map(|chosen| chosen.seqs), Ok(vec![1]));
        assert_eq!(asked, 1);
    }
}
