//! The state of the farm: the queue's numbers and the archive from the database, who renders what from the folder.

use std::{
    collections::{BTreeMap, HashSet},
    error::Error,
    path::PathBuf,
};

use chokaq::{
    JobId, Pool, QueueStats,
    model::{JobDetail, JobState, JobStatus},
};

use crate::{QUEUE, RenderVideo, Rendered, renderer};

/// Rows of one read of the archive.
const PAGE: usize = 100;

/// A moment of the farm. Totals count from when the watching began, or from the first render on.
#[derive(Default)]
pub(crate) struct Farm {
    pub(crate) waiting: u64,
    /// Of those that wait, how many failed or lost their node before.
    pub(crate) delayed: u64,
    pub(crate) rendering: u64,
    pub(crate) rendered: u64,
    pub(crate) retried: u64,
    pub(crate) dead: u64,
    pub(crate) nodes: BTreeMap<String, Node>,
}

#[derive(Default)]
pub(crate) struct Node {
    pub(crate) process: Option<u32>,
    pub(crate) now: Now,
    pub(crate) rendered: u64,
}

#[derive(Default)]
pub(crate) enum Now {
    #[default]
    Idle,
    Renders {
        composition: String,
        share: f64,
    },
    /// It died with a render half done, which waits for another node.
    Lost {
        composition: String,
    },
    /// Its process has ended.
    Gone {
        how: String,
        lost: Option<String>,
    },
}

impl Now {
    /// What is half done.
    pub(crate) fn composition(&self) -> Option<&str> {
        match self {
            Self::Renders { composition, .. } | Self::Lost { composition } => Some(composition),
            Self::Idle | Self::Gone { .. } => None,
        }
    }
}

impl Farm {
    pub(crate) fn is_done(&self) -> bool {
        self.waiting + self.rendering == 0
    }
}

/// Reads the farm again and again.
pub(crate) struct Watcher {
    pool: Pool,
    clips: PathBuf,
    before: Option<QueueStats>,
    /// The renders of the archive that were counted.
    seen: HashSet<JobId>,
    rendered: BTreeMap<String, u64>,
}

impl Watcher {
    /// Counts from the first render of the farm on.
    pub(crate) fn new(pool: Pool, clips: PathBuf) -> Self {
        Self { pool, clips, before: None, seen: HashSet::new(), rendered: BTreeMap::new() }
    }

    /// Counts from now on.
    pub(crate) async fn from_now(pool: Pool, clips: PathBuf) -> Result<Self, Box<dyn Error>> {
        let mut watcher = Self::new(pool, clips);
        watcher.before = watcher.queue().await?;
        watcher.read_archive().await?;
        watcher.rendered.clear();
        Ok(watcher)
    }

    pub(crate) async fn read(&mut self) -> Result<Farm, Box<dyn Error>> {
        let mut farm = Farm::default();
        if let Some(queue) = self.queue().await? {
            let since = |total: fn(&QueueStats) -> u64| {
                total(&queue) - self.before.as_ref().map_or(0, total)
            };
            farm.waiting = queue.ready + queue.delayed + queue.fetched;
            farm.delayed = queue.delayed;
            farm.rendering = queue.processing;
            farm.rendered = since(|queue| queue.succeeded_total);
            farm.retried = since(|queue| queue.retried_total);
            farm.dead = since(|queue| queue.failed_total);
        }
        self.read_archive().await?;
        for (node, rendered) in &self.rendered {
            farm.nodes.entry(node.clone()).or_default().rendered = *rendered;
        }
        self.read_parts(&mut farm).await?;
        Ok(farm)
    }

    async fn queue(&self) -> chokaq::Result<Option<QueueStats>> {
        let queues = self.pool.operator().queue_stats().await?;
        Ok(queues.into_iter().find(|queue| queue.queue == QUEUE))
    }

    /// Newest first, page by page, until one brings nothing new.
    async fn read_archive(&mut self) -> Result<(), Box<dyn Error>> {
        let mut after = None;
        loop {
            let page = self.pool.operator().archive_page(Some(QUEUE), after, PAGE).await?;
            let mut is_new = false;
            for row in page.iter().filter(|row| self.seen.insert(row.id)) {
                is_new = true;
                let output = row.output.as_deref().unwrap_or("null");
                let Rendered { node, .. } = serde_json::from_str(output)?;
                *self.rendered.entry(node).or_default() += 1;
            }
            match page.last() {
                Some(last) if is_new => after = Some(last.cursor()),
                _ => return Ok(()),
            }
        }
    }

    /// Who renders what: the files say which jobs to look at, their rows say how far they are.
    async fn read_parts(&self, farm: &mut Farm) -> Result<(), Box<dyn Error>> {
        for (id, attempt, node) in renderer::parts(&self.clips)? {
            let Some(job) = self.pool.job(id).await? else { continue };
            if job.attempts != attempt {
                continue; // left by a node that was killed; another one has the job now
            }
            let node = farm.nodes.entry(node).or_default();
            match job.state {
                JobState::Active(JobStatus::Processing) => {
                    node.process = process(&job);
                    let share = job.progress.as_ref().map_or(0.0, |progress| progress.0);
                    node.now = Now::Renders { composition: composition(&job)?, share };
                }
                JobState::Active(_) if matches!(node.now, Now::Idle) => {
                    node.now = Now::Lost { composition: composition(&job)? };
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn composition(job: &JobDetail) -> Result<String, serde_json::Error> {
    serde_json::from_str(&job.payload).map(|RenderVideo { composition, .. }| composition)
}

/// A worker is named after its host, its process and a random part.
fn process(job: &JobDetail) -> Option<u32> {
    job.worker.as_deref()?.rsplit(':').nth(1)?.parse().ok()
}
