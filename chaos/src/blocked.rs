//! Handlers that block every thread of the runtime for several leases: their leases are kept from another thread.

use std::time::Duration;

use chokaq::{Pool, Worker, model::JobState, prelude::*};

use crate::{Failure, args::Args};

/// Blocks its thread, as code that does not know of async does.
#[job(queue = "block", retries = 0)]
struct Block {
    seconds: u64,
}

impl Job for Block {
    type Output = ();
    async fn run(self, _ctx: &JobContext) -> Result<(), JobError> {
        std::thread::sleep(Duration::from_secs(self.seconds));
        Ok(())
    }
}

/// Answers whether every job ran once and succeeded.
pub(crate) async fn run(args: &Args) -> Result<bool, Failure> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("blocked.db").display());
    let pool = Pool::connect(url).await?;
    let seconds = args.seconds;
    let lease = Duration::from_secs(seconds) / 3;
    println!(
        "{} handlers block {} threads for {seconds} s; the lease is {lease:?}",
        args.threads, args.threads
    );
    let mut ids = Vec::new();
    for _ in 0..args.threads {
        ids.push(Block { seconds }.enqueue(&pool).await?.id);
    }
    let worker = Worker::builder(&pool)
        .only::<(Block,)>()
        .concurrency(args.threads)
        .heartbeat_interval(lease / 5)
        .lease(lease)
        .scan_interval(lease / 5);
    worker.build()?.run_until_idle().await?;
    let mut good = 0;
    for id in &ids {
        let job = pool.job(*id).await?.ok_or("a job is gone")?;
        good += usize::from((job.state, job.attempts) == (JobState::Succeeded, 1));
    }
    println!("{good} of {} ran once and succeeded", ids.len());
    Ok(good == ids.len())
}
