//! A job that says how far it is, and a caller that watches it and takes its typed output.
//!
//! ```sh
//! cargo run --example progress
//! ```

use std::time::Duration;

use chokaq::{
    Pool, Worker,
    prelude::*,
    serde::{Deserialize, Serialize},
};
use tokio::time::sleep;

/// What the archive keeps of a run, as JSON; the caller reads it back as the same type.
#[derive(Debug, Serialize, Deserialize)]
#[serde(crate = "chokaq::serde")]
struct Report {
    rows: u32,
    pages: u32,
}

#[job(queue = "reports")]
struct MakeReport {
    pages: u32,
}

impl Job for MakeReport {
    type Output = Report;
    async fn run(self, ctx: &JobContext) -> Result<Report, JobError> {
        for page in 0..self.pages {
            ctx.progress(
                f64::from(page) / f64::from(self.pages),
                format!("{page} of {} pages", self.pages),
            );
            sleep(Duration::from_millis(200)).await; // stands for the work on a page
        }
        Ok(Report { rows: 40 * self.pages, pages: self.pages })
    }
}

#[tokio::main]
async fn main() -> chokaq::Result<()> {
    let pool = Pool::connect("sqlite::memory:").await?;
    let id = MakeReport { pages: 10 }.enqueue(&pool).await?.id;

    // Progress travels with the heartbeat: every 10 s by default, which a person who waits finds slow.
    let worker = Worker::builder(&pool).heartbeat_interval(Duration::from_millis(100)).build()?;
    let handle = worker.handle();
    let running = tokio::spawn(worker.run());

    let mut last = None;
    while let Some(job) = pool.job(id).await? {
        if let Some((share, note)) = job.progress.clone()
            && job.progress != last
        {
            println!("{:3.0} %  {note}", share * 100.0);
            last = job.progress;
        }
        if job.finished_at.is_some() {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    if let Some(job) = pool.job(id).await? {
        println!("{:?}: {:?}", job.state, job.output::<Report>()?);
    }
    handle.stop();
    running.await.expect("the worker does not panic")
}
