//! Trouble with the storage: waits that grow, and a log that tells of an episode when it begins and when it is over, however
//! many parts of the worker meet it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{Error, model::WorkerId};

/// What all parts of one worker know of the trouble that they are in.
#[derive(Debug)]
pub(crate) struct Episode {
    worker: WorkerId,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Parts that have failed and not succeeded since.
    failing: usize,
    began: Option<Instant>,
    tries: u64,
    /// Whether an error that does not pass by itself was told of.
    has_told_of_lasting: bool,
}

/// What there is to be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Begun,
    /// It goes on, and now there is an error that does not pass by itself.
    Lasting,
    Known,
}

impl Episode {
    pub(crate) fn new(worker: &WorkerId) -> Arc<Self> {
        Arc::new(Self { worker: worker.clone(), state: Mutex::default() })
    }

    fn failed(&self, is_first_of_part: bool, is_transient: bool) -> Told {
        let mut state = self.lock();
        state.tries += 1;
        state.failing += usize::from(is_first_of_part);
        let begins = state.began.is_none();
        state.began.get_or_insert_with(Instant::now);
        let lasting = !is_transient && !state.has_told_of_lasting;
        state.has_told_of_lasting |= !is_transient;
        match (begins, lasting) {
            (true, _) => Told::Begun,
            (false, true) => Told::Lasting,
            (false, false) => Told::Known,
        }
    }

    /// Answers how long it took and how many tries, where it is over for all.
    fn over(&self) -> Option<(Duration, u64)> {
        let mut state = self.lock();
        state.failing = state.failing.saturating_sub(1);
        if state.failing > 0 {
            return None;
        }
        let ended = std::mem::take(&mut *state);
        ended.began.map(|began| (began.elapsed(), ended.tries))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One part's share in it: waits longer after each failure, with jitter.
#[derive(Debug)]
pub(crate) struct Trouble {
    episode: Arc<Episode>,
    what: &'static str,
    most: Duration,
    tries: u32,
}

impl Trouble {
    const LEAST: Duration = Duration::from_millis(50);

    /// For the named activity; pauses from 50 ms up to `most`.
    pub(crate) fn new(episode: &Arc<Episode>, what: &'static str, most: Duration) -> Self {
        Self { episode: Arc::clone(episode), what, most, tries: 0 }
    }

    /// Notes a failure and answers how long to wait before the next try.
    pub(crate) fn failed(&mut self, error: &Error) -> Duration {
        self.tries = self.tries.saturating_add(1);
        let (worker, activity) = (&self.episode.worker, self.what);
        match self.episode.failed(self.tries == 1, error.is_transient()) {
            Told::Begun => {
                tracing::warn!(%worker, activity, ?error, "the storage fails; trying on");
            }
            Told::Lasting => {
                tracing::error!(%worker, activity, ?error, "the storage refuses; trying on");
            }
            Told::Known => {
                tracing::debug!(%worker, activity, tries = self.tries, ?error, "the storage still fails");
            }
        }
        let factor = 1_u32 << (self.tries - 1).min(16);
        (Self::LEAST * factor).min(self.most).mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    /// Notes a success.
    pub(crate) fn over(&mut self) {
        if self.tries == 0 {
            return;
        }
        self.tries = 0;
        if let Some((lasted, tries)) = self.episode.over() {
            let worker = &self.episode.worker;
            tracing::info!(%worker, ?lasted, tries, "the storage answers again");
        }
    }
}

impl Drop for Trouble {
    /// A part that ends takes no more part in it.
    fn drop(&mut self) {
        if self.tries > 0 {
            self.episode.over();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_episode_begins_once_and_ends_when_the_last_part_is_through() {
        let episode = Episode::new(&WorkerId::new("w"));
        assert_eq!(episode.failed(true, true), Told::Begun);
        assert_eq!(episode.failed(false, true), Told::Known);
        assert_eq!(episode.failed(true, true), Told::Known);
        assert_eq!(episode.over(), None);
        assert!(episode.over().is_some_and(|(_, tries)| tries == 3));
        assert_eq!(episode.failed(true, true), Told::Begun, "the next one");
    }

    #[test]
    fn an_error_that_lasts_is_told_of_within_an_episode_and_once() {
        let episode = Episode::new(&WorkerId::new("w"));
        assert_eq!(episode.failed(true, true), Told::Begun);
        assert_eq!(episode.failed(true, false), Told::Lasting);
        assert_eq!(episode.failed(false, false), Told::Known);
    }

    #[test]
    fn a_part_that_ends_in_trouble_leaves_none_behind() {
        let episode = Episode::new(&WorkerId::new("w"));
        let error = Error::transient("gone", None);
        let mut stays = Trouble::new(&episode, "stays", Duration::from_secs(1));
        stays.failed(&error);
        Trouble::new(&episode, "ends", Duration::from_secs(1)).failed(&error);
        stays.over();
        assert_eq!(episode.failed(true, true), Told::Begun);
    }

    #[test]
    fn pauses_grow_up_to_the_most() {
        let episode = Episode::new(&WorkerId::new("w"));
        let mut trouble = Trouble::new(&episode, "test", Duration::from_secs(1));
        let error = Error::transient("gone", None);
        let pauses: Vec<Duration> = (0..40).map(|_| trouble.failed(&error)).collect();
        assert!(pauses[0] >= Duration::from_millis(25) && pauses[0] <= Duration::from_millis(50));
        let most = Duration::from_millis(500)..=Duration::from_secs(1);
        assert!(pauses[10..].iter().all(|pause| most.contains(pause)), "{pauses:?}");
    }
}
