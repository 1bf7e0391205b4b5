//! Claimed rows that wait for a permit.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

use crate::model::FetchedJob;

/// A queue of claimed rows, counted in rows and bytes.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    state: Mutex<State>,
    filled: Notify,
    /// Rows were taken out: there may be room for a fetch.
    pub(crate) drained: Notify,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<FetchedJob>,
    bytes: usize,
    /// When a row last came or went.
    moved: Option<Instant>,
}

impl Buffer {
    pub(crate) fn push(&self, jobs: Vec<FetchedJob>) {
        if jobs.is_empty() {
            return;
        }
        let mut state = self.lock();
        state.bytes += jobs.iter().map(|job| job.payload.len()).sum::<usize>();
        state.jobs.extend(jobs);
        state.moved = Some(Instant::now());
        drop(state);
        self.filled.notify_one();
    }

    /// Waits until there is a row.
    pub(crate) async fn wait_filled(&self) {
        loop {
            let filled = self.filled.notified();
            if self.len() > 0 {
                return;
            }
            filled.await;
        }
    }

    pub(crate) fn pop(&self) -> Option<FetchedJob> {
        let mut state = self.lock();
        let job = state.jobs.pop_front()?;
        state.bytes -= job.payload.len();
        state.moved = Some(Instant::now());
        drop(state);
        self.drained.notify_one();
        Some(job)
    }

    /// Takes out the rows that match.
    pub(crate) fn take(&self, mut matches: impl FnMut(&FetchedJob) -> bool) -> Vec<FetchedJob> {
        let mut state = self.lock();
        let (taken, kept): (Vec<_>, Vec<_>) = state.jobs.drain(..).partition(|job| matches(job));
        state.bytes = kept.iter().map(|job| job.payload.len()).sum();
        state.jobs = kept.into();
        drop(state);
        self.drained.notify_one();
        taken
    }

    /// Takes out as many rows as that, those that would start last.
    pub(crate) fn take_last(&self, rows: usize) -> Vec<FetchedJob> {
        let mut kept = self.len().saturating_sub(rows);
        self.take(|_| {
            let is_last = kept == 0;
            kept = kept.saturating_sub(1);
            is_last
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().jobs.len()
    }

    /// For how long its rows have been waiting with none of them leaving; zero when it is empty.
    pub(crate) fn stalled_for(&self) -> Duration {
        let state = self.lock();
        match state.moved {
            Some(moved) if !state.jobs.is_empty() => moved.elapsed(),
            _ => Duration::ZERO,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
