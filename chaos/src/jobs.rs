//! The jobs: each writes a line when it starts and one when its code ends, however it ends.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use chokaq::prelude::*;
use tokio::time::sleep;

use crate::journal::Journal;

/// The queue that has a limit.
pub(crate) const LIMITED: &str = "limited";
pub(crate) const QUEUES: [&str; 5] = ["quick", "slow", "flaky", "fragile", LIMITED];

/// Done at once.
#[job(queue = "quick", on_crash = "retry", retries = 1000)]
pub(crate) struct Quick {
    pub(crate) number: u64,
}

/// Takes a while; stops when it is told to.
#[job(queue = "slow", on_crash = "retry", retries = 1000, backoff = fixed("10ms"))]
pub(crate) struct Slow {
    pub(crate) ms: u64,
}

/// Fails now and then.
#[job(queue = "flaky", on_crash = "retry", retries = 1000, backoff = fixed("10ms"))]
pub(crate) struct Flaky {
    pub(crate) number: u64,
}

/// May not run again after a crash.
#[job(queue = "fragile", retries = 1)]
pub(crate) struct Fragile {
    pub(crate) ms: u64,
}

/// At most as many at a time as the operators say.
#[job(queue = "limited", on_crash = "retry", retries = 1000, backoff = fixed("10ms"))]
pub(crate) struct Limited {
    pub(crate) ms: u64,
}

/// A run from its first line to its last.
struct Noted {
    journal: Arc<Journal>,
    job: String,
}

impl Noted {
    fn start(ctx: &JobContext) -> Result<Self, JobError> {
        let journal = Arc::clone(ctx.state::<Arc<Journal>>()?);
        let job = format!("{} {}", ctx.id(), ctx.attempt());
        journal.write('S', &job)?;
        Ok(Self { journal, job })
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        // A journal that cannot be written shows as a run that did not end.
        drop(self.journal.write('E', &self.job));
    }
}

async fn work(ctx: &JobContext, ms: u64) -> Result<(), JobError> {
    let _noted = Noted::start(ctx)?;
    tokio::select! {
        () = sleep(Duration::from_millis(ms)) => Ok(()),
        () = ctx.cancelled() => Err("told to stop".into()),
    }
}

impl Job for Quick {
    type Output = u64;
    async fn run(self, ctx: &JobContext) -> Result<u64, JobError> {
        let _noted = Noted::start(ctx)?;
        Ok(self.number)
    }
}

impl Job for Slow {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        work(ctx, self.ms).await
    }
}

impl Job for Fragile {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        work(ctx, self.ms).await
    }
}

impl Job for Limited {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        work(ctx, self.ms).await
    }
}

impl Job for Flaky {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        let _noted = Noted::start(ctx)?;
        let mut hash = DefaultHasher::new();
        (self.number, ctx.attempt()).hash(&mut hash);
        match hash.finish() % 12 {
            0..4 => Err("not this time".into()),
            4 => Err(JobError::retry_after(Duration::from_millis(20), "429")),
            5 if ctx.attempt() == 1 => Err(JobError::fatal("never")),
            _ => Ok(()),
        }
    }
}
