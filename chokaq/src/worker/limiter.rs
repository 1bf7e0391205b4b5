//! Permits: how many jobs may run at once, changeable while they run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Hands out permits up to a limit that can move; lowering it lets running jobs finish.
#[derive(Debug)]
pub(crate) struct Limiter {
    state: Mutex<State>,
    /// Something became free: the limit rose or a permit came back.
    freed: Notify,
    /// The last permit came back.
    pub(crate) idled: Notify,
}

#[derive(Debug)]
struct State {
    limit: usize,
    used: usize,
}

/// The right to run one job; given back on drop.
#[derive(Debug)]
pub(crate) struct Permit(Arc<Limiter>);

impl Limiter {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        let state = Mutex::new(State { limit, used: 0 });
        Arc::new(Self { state, freed: Notify::new(), idled: Notify::new() })
    }

    /// Waits for a permit.
    pub(crate) async fn acquire(self: &Arc<Self>) -> Permit {
        loop {
            let freed = self.freed.notified();
            if let Some(permit) = self.try_acquire() {
                return permit;
            }
            freed.await;
        }
    }

    fn try_acquire(self: &Arc<Self>) -> Option<Permit> {
        let mut state = self.lock();
        (state.used < state.limit).then(|| {
            state.used += 1;
            Permit(Arc::clone(self))
        })
    }

    pub(crate) fn set_limit(&self, limit: usize) {
        self.lock().limit = limit;
        self.freed.notify_waiters();
        self.freed.notify_one();
    }

    /// Permits that are free now.
    pub(crate) fn idle(&self) -> usize {
        let state = self.lock();
        state.limit.saturating_sub(state.used)
    }

    /// Permits that are out now.
    pub(crate) fn used(&self) -> usize {
        self.lock().used
    }

    pub(crate) fn limit(&self) -> usize {
        self.lock().limit
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.used -= 1;
        let idle = state.used == 0;
        drop(state);
        self.0.freed.notify_one();
        if idle {
            self.0.idled.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_permit_that_comes_back_lets_the_next_one_in() {
        let limiter = Limiter::new(1);
        let first = limiter.acquire().await;
        assert!(limiter.try_acquire().is_none());
        let waiting = tokio::spawn({
            let limiter = Arc::clone(&limiter);
            async move { limiter.acquire().await }
        });
        drop(first);
        let second = waiting.await.expect("the waiter gets it");
        assert_eq!(limiter.idle(), 0);
        drop(second);
        assert_eq!(limiter.idle(), 1);
    }

    #[tokio::test]
    async fn a_raised_limit_lets_waiters_in_and_a_lowered_one_takes_no_permit_away() {
        let limiter = Limiter::new(0);
        let waiting = tokio::spawn({
            let limiter = Arc::clone(&limiter);
            async move { (limiter.acquire().await, limiter.acquire().await) }
        });
        limiter.set_limit(2);
        let both = waiting.await.expect("both get in");
        limiter.set_limit(1);
        assert_eq!(limiter.idle(), 0);
        drop(both.0);
        assert!(limiter.try_acquire().is_none(), "one still runs, and the limit is one");
        drop(both.1);
        assert!(limiter.try_acquire().is_some());
    }
}
