//! One process of the tests that need several: `node drain|limited URL FOLDER`.
//!
//! A worker runs until it is idle; its handlers write what they did to a file of their own process in the folder.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    sync::Mutex,
    time::{Duration, SystemTime},
};

use chokaq::{Pool, Worker, prelude::*};

struct Journal(Mutex<File>);

impl Journal {
    fn open(folder: &str) -> std::io::Result<Self> {
        let path = Path::new(folder).join(format!("{}.log", std::process::id()));
        Ok(Self(Mutex::new(OpenOptions::new().create(true).append(true).open(path)?)))
    }

    /// One line, whole, in one write: a killed process leaves no half of it behind another.
    fn write(&self, line: &str) -> std::io::Result<()> {
        let mut file = self.0.lock().map_err(|_| std::io::Error::other("a writer panicked"))?;
        file.write_all(format!("{line}\n").as_bytes())
    }
}

/// Notes that it started.
#[job(queue = "drain")]
struct Drain;

impl Job for Drain {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        ctx.state::<Journal>()?.write(&format!("{} {}", ctx.id(), ctx.attempt()))?;
        Ok(())
    }
}

/// Notes when it started and when it ended.
#[job(queue = "limited")]
struct Limited;

impl Job for Limited {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        let journal = ctx.state::<Journal>()?;
        journal.write(&format!("{} +1", now()?))?;
        tokio::time::sleep(Duration::from_millis(10)).await;
        journal.write(&format!("{} -1", now()?))?;
        Ok(())
    }
}

fn now() -> Result<u128, JobError> {
    Ok(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_writer(std::io::stderr)
        .init();
    let mut args = std::env::args().skip(1);
    let (Some(mode), Some(url), Some(folder)) = (args.next(), args.next(), args.next()) else {
        return Err("usage: node drain|limited URL FOLDER".into());
    };
    let pool = Pool::connect(url).await?;
    let worker = Worker::builder(&pool).state(Journal::open(&folder)?).concurrency(20);
    let worker = match mode.as_str() {
        "drain" => worker.only::<(Drain,)>(),
        "limited" => worker.only::<(Limited,)>(),
        _ => return Err("the mode is drain or limited".into()),
    };
    worker.build()?.run_until_idle().await?;
    Ok(())
}
