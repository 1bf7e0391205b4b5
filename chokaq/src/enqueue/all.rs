//! Many jobs at once, with bounded memory.

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    time::Duration,
};

use crate::{
    Error, Pool, Result,
    enqueue::{Enqueue, EnqueueOne, draft},
    model::{Due, EnqueueOutcome, NewJob, Timestamp},
};

/// What [`Enqueue::enqueue_all`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EnqueuedAll {
    /// Jobs added.
    pub added: u64,
    /// Jobs whose idempotency key an active job already held.
    pub duplicates: u64,
}

#[derive(Debug, Clone, Default)]
struct Options {
    queue: Option<String>,
    priority: Option<i32>,
    due: Due,
    tags: Vec<String>,
    created_by: Option<String>,
}

type KeyOf<T> = Box<dyn Fn(&T) -> String + Send>;
type OnProgress = Box<dyn FnMut(&EnqueuedAll) + Send>;

/// Many jobs on their way into the database: set options, then `.await`.
#[must_use = "jobs are enqueued only when this is awaited"]
pub struct EnqueueAll<T, I> {
    pool: Pool,
    jobs: I,
    options: Options,
    key_of: Option<KeyOf<T>>,
    on_progress: Option<OnProgress>,
}

impl<T, I> fmt::Debug for EnqueueAll<T, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnqueueAll").field("options", &self.options).finish_non_exhaustive()
    }
}

impl<T, I> EnqueueAll<T, I> {
    pub(super) fn new(pool: &Pool, jobs: I) -> Self {
        let options = Options::default();
        Self { pool: pool.clone(), jobs, options, key_of: None, on_progress: None }
    }

    /// Jobs in one transaction.
    const CHUNK_JOBS: usize = 1_000;
    /// Bytes of payload in one transaction.
    const CHUNK_BYTES: usize = 4_000_000;

    /// Another queue than the type's.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.options.queue = Some(queue.into());
        self
    }

    /// Another priority than the type's; higher is fetched first within a queue.
    pub fn priority(mut self, priority: i32) -> Self {
        self.options.priority = Some(priority);
        self
    }

    /// Due this long after the database's now; at most 50 years.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.options.due = Due::After(delay);
        self
    }

    /// Due at this time; a time in the past means now.
    pub fn at(mut self, time: impl Into<Timestamp>) -> Self {
        self.options.due = Due::At(time.into());
        self
    }

    /// Each job's idempotency key, made from the job.
    pub fn idempotency_key_by(mut self, key_of: impl Fn(&T) -> String + Send + 'static) -> Self {
        self.key_of = Some(Box::new(key_of));
        self
    }

    /// Tags of every job.
    pub fn tags<S: Into<String>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.options.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Who or what asked for the jobs.
    pub fn created_by(mut self, who: impl Into<String>) -> Self {
        self.options.created_by = Some(who.into());
        self
    }

    /// Called after each commit with the totals so far.
    pub fn on_progress(mut self, report: impl FnMut(&EnqueuedAll) + Send + 'static) -> Self {
        self.on_progress = Some(Box::new(report));
        self
    }
}

impl<T: Enqueue, I: Iterator<Item = T>> EnqueueAll<T, I> {
    async fn run(mut self) -> Result<EnqueuedAll> {
        let mut total = EnqueuedAll::default();
        let mut committed = 0;
        loop {
            let chunk = match self.next_chunk() {
                Ok(chunk) if chunk.is_empty() => return Ok(total),
                Ok(chunk) => chunk,
                Err(refusal) => return Err(Error::partly_enqueued(committed, refusal)),
            };
            let jobs = chunk.len() as u64;
            let outcomes =
                self.pool.insert(chunk).await.map_err(|e| Error::partly_enqueued(committed, e))?;
            committed += jobs;
            let duplicates =
                outcomes.iter().filter(|o| matches!(o, EnqueueOutcome::Duplicate { .. })).count();
            total.duplicates += duplicates as u64;
            total.added += jobs - duplicates as u64;
            if let Some(report) = &mut self.on_progress {
                report(&total);
            }
        }
    }

    fn next_chunk(&mut self) -> Result<Vec<NewJob>> {
        let mut chunk = Vec::new();
        let mut bytes = 0;
        while chunk.len() < Self::CHUNK_JOBS && bytes < Self::CHUNK_BYTES {
            let Some(job) = self.jobs.next() else { break };
            let mut new = EnqueueOne { pool: self.pool.clone(), job: draft(&self.pool, &job) };
            if let Some(key_of) = &self.key_of {
                new = new.idempotency_key(key_of(&job));
            }
            let new = self.options.apply(new).job?;
            bytes += new.payload.len();
            chunk.push(new);
        }
        Ok(chunk)
    }
}

impl Options {
    fn apply(&self, mut new: EnqueueOne) -> EnqueueOne {
        if let Some(queue) = &self.queue {
            new = new.queue(queue);
        }
        if let Some(priority) = self.priority {
            new = new.priority(priority);
        }
        new = match self.due {
            Due::Now => new,
            Due::After(delay) => new.delay(delay),
            Due::At(time) => new.at(time),
        };
        if !self.tags.is_empty() {
            new = new.tags(&self.tags);
        }
        if let Some(who) = &self.created_by {
            new = new.created_by(who);
        }
        new
    }
}

impl<T, I> IntoFuture for EnqueueAll<T, I>
where
    T: Enqueue,
    I: Iterator<Item = T> + Send + 'static,
{
    type Output = Result<EnqueuedAll>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
