//! One worker process: serves everything until it is killed.

use std::{sync::Arc, time::Duration};

use chokaq::{Pool, Worker};

use crate::{Failure, args::Args, database, journal::Journal};

/// How often a running job beats; rescue waits for two of them.
pub(crate) const HEARTBEAT: Duration = Duration::from_millis(300);
/// Short, so that rescue has something to do.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::ERROR)
        .with_writer(std::io::stderr)
        .init();
    let url = args.url.as_deref().ok_or("a worker needs --url")?;
    let journal = Arc::new(Journal::open(&args.journal)?);
    let pool: Pool = database::pool(url).await?;
    Worker::builder(&pool)
        .queues(["*"])
        .state(journal)
        .concurrency(16)
        .heartbeat_interval(HEARTBEAT)
        .lease(LEASE)
        .fetched_limit(LEASE)
        .scan_interval(HEARTBEAT)
        .poll_interval(Duration::from_millis(200))
        .circuit_pause(Duration::from_secs(1))
        .build()?
        .run()
        .await?;
    Ok(())
}
