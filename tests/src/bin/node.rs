//! One process of the tests that need several: `node drain|limited|serve|lock|crash|produce URL FOLDER`.
//!
//! `drain` and `limited` run a worker until it is idle, `crash` runs one until it is killed, `serve` is a program as users
//! write it, which hears signals and logs what it does; the handlers write what
//! they did to a file of their own process in the folder. `lock` locks the database and does nothing else. `produce` enqueues until it is killed, and writes what was
//! acknowledged.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::Mutex,
    time::{Duration, SystemTime},
};

use chokaq::{Pool, Worker, prelude::*};

struct Journal {
    folder: PathBuf,
    file: Mutex<File>,
}

impl Journal {
    fn open(folder: &str) -> std::io::Result<Self> {
        let path = Path::new(folder).join(format!("{}.log", std::process::id()));
        let file = Mutex::new(OpenOptions::new().create(true).append(true).open(path)?);
        Ok(Self { folder: folder.into(), file })
    }

    /// One line, whole, in one write: a killed process leaves no half of it behind another.
    fn write(&self, line: &str) -> std::io::Result<()> {
        let mut file = self.file.lock().map_err(|_| std::io::Error::other("a writer panicked"))?;
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

/// Notes that it started, and works a little: a kill finds many of them running.
#[job(queue = "crash", on_crash = "retry", retries = 1000)]
struct Crash;

impl Job for Crash {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        ctx.state::<Journal>()?.write(&format!("{} {}", ctx.id(), ctx.attempt()))?;
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok(())
    }
}

/// Blocks its thread for longer than any test waits.
#[job(queue = "block")]
struct Block;

impl Job for Block {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        ctx.state::<Journal>()?.write("blocks")?;
        std::thread::sleep(Duration::from_hours(1));
        Ok(())
    }
}

/// Stops when it is told to.
#[job(queue = "patient")]
struct Patient;

impl Job for Patient {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        ctx.state::<Journal>()?.write("waits")?;
        ctx.cancelled().await;
        Err("told to stop".into())
    }
}

/// Ends when the folder has a file named `go`.
#[job(queue = "short", on_crash = "retry", retries = 1000, backoff = fixed("1ms"))]
struct Short;

impl Job for Short {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        let journal = ctx.state::<Journal>()?;
        journal.write(&format!("{} {}", ctx.id(), ctx.attempt()))?;
        while !journal.folder.join("go").exists() {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
                () = ctx.cancelled() => return Err("told to stop".into()),
            }
        }
        Ok(())
    }
}

/// What a producer that is killed leaves.
#[job(queue = "produced", enqueue_only)]
struct Produced {
    number: u64,
    text: String,
}

/// Enqueues numbered jobs from where the last producer left off; each number has a key, some come in batches.
async fn produce(pool: &Pool, journal: &Journal, from: u64) -> Result<(), JobError> {
    let job = |number: u64| Produced { number, text: "x".repeat(2_000) };
    let mut number = from;
    loop {
        let key = format!("key-{number}");
        let id = job(number).enqueue(pool).idempotency_key(key).await?.id;
        journal.write(&format!("one {number} {id}"))?;
        let batch = number + 1..number + 50;
        let jobs: Vec<_> = batch.clone().map(job).collect();
        let keyed = Produced::enqueue_all(pool, jobs)
            .idempotency_key_by(|job| format!("key-{}", job.number));
        keyed.await?;
        journal.write(&format!("batch {} {}", batch.start, batch.end))?;
        number = batch.end;
    }
}

/// Holds the file until it is killed.
fn lock(file: &str) -> Result<(), Box<dyn std::error::Error>> {
    let connection = rusqlite::Connection::open(file)?;
    connection.busy_timeout(Duration::from_secs(30))?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    println!("locked");
    loop {
        std::thread::park();
    }
}

fn now() -> Result<u128, JobError> {
    Ok(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let speaks = std::env::args().nth(1).is_some_and(|mode| mode == "serve");
    tracing_subscriber::fmt()
        .with_max_level(if speaks { tracing::Level::INFO } else { tracing::Level::WARN })
        .with_writer(std::io::stderr)
        .init();
    let mut args = std::env::args().skip(1);
    let (Some(mode), Some(url), Some(folder)) = (args.next(), args.next(), args.next()) else {
        return Err("usage: node drain|limited|serve|lock|crash|produce URL FOLDER [FROM]".into());
    };
    if mode == "lock" {
        return lock(url.trim_start_matches("sqlite:"));
    }
    let pool = Pool::connect(url).await?;
    let journal = Journal::open(&folder)?;
    if mode == "produce" {
        let from = args.next().unwrap_or_default().parse()?;
        return produce(&pool, &journal, from).await.map_err(|e| e.to_string().into());
    }
    if mode == "serve" {
        let app = chokaq::app().pool(&pool).state(journal);
        return Ok(app
            .worker(chokaq::WorkerBuilder::only::<(Block, Patient, Short)>)
            .run()
            .await?);
    }
    let worker = Worker::builder(&pool).state(journal).concurrency(20);
    if mode == "crash" {
        return Ok(worker.only::<(Crash,)>().build()?.run().await?);
    }
    let worker = match mode.as_str() {
        "drain" => worker.only::<(Drain,)>(),
        "limited" => worker.only::<(Limited,)>(),
        _ => return Err(format!("there is no mode {mode:?}").into()),
    };
    worker.build()?.run_until_idle().await?;
    Ok(())
}
