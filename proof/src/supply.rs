//! Rows that calls can name, handed out batch by batch.

use chokaq::model::JobId;

use crate::{
    Failure,
    fill::{HotRow, hot_rows, ids},
    server::Server,
};

/// Rows by what can be done with them. Each batch is other rows than the one before, as long as there are any.
pub(crate) struct Supply {
    batch: usize,
    running: Cycle<HotRow>,
    fetched: Cycle<HotRow>,
    waiting: Cycle<HotRow>,
    dead: Cycle<JobId>,
    archived: Cycle<JobId>,
    /// Idempotency keys that no one else has, or that others have too.
    keys: Keys,
}

#[derive(Clone, Copy)]
enum Keys {
    Fresh,
    /// One of so many.
    Shared(u32),
}

#[derive(Clone)]
struct Cycle<T> {
    all: Vec<T>,
    at: usize,
}

impl<T: Copy> Cycle<T> {
    fn next(&mut self, most: usize) -> Vec<T> {
        let count = most.min(self.all.len());
        let taken = (0..count).map(|n| self.all[(self.at + n) % self.all.len()]).collect();
        self.at += count;
        taken
    }
}

impl<T> From<Vec<T>> for Cycle<T> {
    fn from(all: Vec<T>) -> Self {
        Self { all, at: 0 }
    }
}

impl Supply {
    /// Of the rows that there are now.
    pub(crate) async fn of(server: &Server, batch: usize) -> Result<Self, Failure> {
        Ok(Self {
            batch,
            running: hot_rows(server, "running", 4_000).await?.into(),
            fetched: hot_rows(server, "fetched", 2_000).await?.into(),
            waiting: hot_rows(server, "ready", 1_000).await?.into(),
            dead: ids(server, "JobsDLQ", 2_000).await?.into(),
            archived: ids(server, "JobsArchive", 100).await?.into(),
            keys: Keys::Fresh,
        })
    }

    /// Small batches of whatever rows, in an order of its own: what another one names too.
    pub(crate) fn mixed(&self, rows: &[HotRow], batch: usize) -> Self {
        let shuffled = || {
            let mut rows = rows.to_vec();
            fastrand::shuffle(&mut rows);
            Cycle::from(rows)
        };
        let mut dead = self.dead.all.clone();
        fastrand::shuffle(&mut dead);
        Self {
            batch,
            running: shuffled(),
            fetched: shuffled(),
            waiting: shuffled(),
            dead: dead.into(),
            archived: self.archived.clone(),
            keys: Keys::Shared(50),
        }
    }

    pub(crate) fn batch(&self) -> usize {
        self.batch
    }

    pub(crate) fn running(&mut self) -> Vec<HotRow> {
        self.running.next(self.batch)
    }

    pub(crate) fn fetched(&mut self) -> Vec<HotRow> {
        self.fetched.next(self.batch)
    }

    pub(crate) fn waiting(&mut self) -> Vec<HotRow> {
        self.waiting.next(self.batch)
    }

    pub(crate) fn dead(&mut self) -> Vec<JobId> {
        self.dead.next(self.batch)
    }

    pub(crate) fn archived(&mut self) -> JobId {
        self.archived.next(1).first().copied().unwrap_or_else(JobId::new)
    }

    pub(crate) fn key(&mut self) -> String {
        match self.keys {
            Keys::Fresh => JobId::new().to_string(),
            Keys::Shared(count) => format!("shared-{}", fastrand::u32(..count)),
        }
    }

    #[cfg(test)]
    pub(crate) fn sample() -> Self {
        let row = HotRow { seq: 1, id: JobId::new() };
        Self {
            batch: 2,
            running: vec![row].into(),
            fetched: vec![row].into(),
            waiting: vec![row].into(),
            dead: vec![row.id].into(),
            archived: vec![row.id].into(),
            keys: Keys::Fresh,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_go_round() {
        let mut cycle = Cycle::from(vec![1, 2, 3]);
        assert_eq!(
            (cycle.next(2), cycle.next(2), cycle.next(9)),
            (vec![1, 2], vec![3, 1], vec![2, 3, 1])
        );
        assert!(Cycle::from(Vec::<u8>::new()).next(2).is_empty());
    }
}
