//! The whole of it: everything goes wrong for a while, then nothing does, then the books are balanced.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use fastrand::Rng;
use tokio::time::sleep;

use crate::{
    Failure,
    args::Args,
    database::{self, Database, Look},
    fleet::Fleet,
    journal,
    observer::{Violations, watch},
    operators::{Record, locked, open_all, operate, produce, stall},
    verdict::{Evidence, Unseen},
    worker::LEASE,
};

/// How long jobs may take no step at the end before they count as stranded.
const PATIENCE: Duration = Duration::from_mins(2);

/// Answers whether nothing was violated.
pub(crate) async fn run(args: &Args) -> Result<bool, Failure> {
    let folder = tempfile::tempdir()?;
    let file = format!("sqlite:{}", folder.path().join("chaos.db").display());
    let url = args.url.clone().unwrap_or(file);
    let jobs = args.jobs.unwrap_or(100_000);
    println!("seed {}: {jobs} jobs, {} processes, {:?}", args.seed, args.processes, args.time);
    let mut random = Rng::with_seed(args.seed);
    let pool = database::pool(&url).await?;
    let database = Database::of(&url).await?;
    let start = database.look().await?;
    if start.hot + start.archived + start.dead > 0 {
        return Err("the tables must be empty: name another database or schema".into());
    }
    let (record, violations) = (Arc::new(Record::default()), Arc::new(Violations::default()));
    let watching = tokio::spawn({
        let (database, record, violations) = (database.clone(), record.clone(), violations.clone());
        async move { watch(&database, &record, &violations).await }
    });
    let fleet = Fleet::start(&url, folder.path(), args.processes)?;
    let trouble = async {
        let producing = produce(pool.clone(), &record, jobs, args.time.mul_f64(0.9), args.seed);
        let time = async {
            tokio::join!(producing, sleep(args.time));
        };
        tokio::select! {
            () = time => Ok(()),
            () = operate(&pool, &record, random.fork()) => Ok(()),
            error = stall(&database, &record, random.fork()) => Err(error),
            error = strike(&fleet, args.processes, random.fork()) => Err(error),
        }
    };
    trouble.await?;
    open_all(&pool).await;
    let drained = drain(&database).await;
    watching.abort();
    let lives = fleet.end()?;
    let look = drained?;
    if look.hot > 0 {
        violations.add(format!("{} jobs took no step for {PATIENCE:?}: {look:?}", look.hot));
    }
    let runs = journal::runs(folder.path(), lives.len())?;
    let evidence = Evidence { record: &record, lives, runs, ends: database.ends().await?, look };
    let unseen = evidence.check(&violations)?;
    report(&evidence, &unseen, violations.count());
    if violations.count() > 0 {
        let folder = folder.keep();
        println!("database and journals stay in {}", folder.display());
    }
    println!("seed {}: {} violations", args.seed, violations.count());
    Ok(violations.count() == 0)
}

/// Kills and stops processes, until it is dropped.
async fn strike(fleet: &Fleet, processes: usize, mut random: Rng) -> Failure {
    loop {
        sleep(Duration::from_millis(random.u64(200..2_500))).await;
        let slot = random.usize(..processes);
        let struck = if random.u32(..4) == 0 {
            fleet.stop_for(slot, LEASE.mul_f64(0.3 + 2.0 * random.f64())).await
        } else {
            fleet.kill(slot)
        };
        if let Err(error) = struck {
            return error;
        }
    }
}

/// Waits until every job has ended, or none takes a step any more.
async fn drain(database: &Database) -> Result<Look, Failure> {
    let mut last = database.look().await?;
    let mut moved = Instant::now();
    while last.hot > 0 && moved.elapsed() < PATIENCE {
        sleep(Duration::from_millis(300)).await;
        let look = database.look().await?;
        if look.hot < last.hot {
            moved = Instant::now();
        }
        last = look;
    }
    Ok(last)
}

fn report(evidence: &Evidence<'_>, unseen: &Unseen, violations: usize) {
    let record = evidence.record;
    let lives = &evidence.lives;
    let runs: usize = evidence.runs.values().map(Vec::len).sum();
    let attempts: u64 = evidence.ends.iter().map(|end| u64::from(end.attempts)).sum();
    let stops: usize = lives.iter().map(|life| life.stops.len()).sum();
    let stalled: u64 = locked(&record.stalls).iter().map(|(from, to)| to - from).sum();
    let figures: [(&str, u64); 16] = [
        ("jobs acknowledged", record.acknowledged() as u64),
        ("enqueues that failed", record.unanswered.load(Ordering::Relaxed)),
        ("jobs archived", evidence.look.archived.unsigned_abs()),
        ("jobs dead", evidence.look.dead.unsigned_abs()),
        ("processes killed", lives.iter().filter(|life| life.killed.is_some()).count() as u64),
        ("processes stopped and continued", stops as u64),
        ("stalls of the database", locked(&record.stalls).len() as u64),
        ("ms of stalls", stalled),
        ("cancels", record.cancels.load(Ordering::Relaxed)),
        ("resurrections, at most", record.resurrections().values().map(|n| u64::from(*n)).sum()),
        ("queue controls", record.controls.load(Ordering::Relaxed)),
        ("runs started", runs as u64),
        ("attempts counted in the last lifetimes", attempts),
        ("counted, not begun: killed", unseen.killed as u64),
        ("counted, not begun: stopped", unseen.stopped as u64),
        ("counted, not begun: stalled", unseen.stalled as u64),
    ];
    for (name, figure) in figures {
        println!("{figure:>10}  {name}");
    }
    println!("{violations:>10}  violations");
}
