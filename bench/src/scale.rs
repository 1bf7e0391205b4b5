//! What fetching 100 jobs costs as the tables grow.

use std::{collections::HashMap, time::Instant};

use chokaq::{
    model::{FetchRequest, LeaseId, Release, WorkerId},
    storage::{
        WorkerStorage,
        sqlite::{Location, SqliteOptions, SqliteStorage, Synchronous},
    },
};
use rusqlite::Connection;
use serde_json::json;

use crate::{Failure, args::Args};

/// How the rows are spread.
struct Shape {
    name: &'static str,
    queues: usize,
    priorities: usize,
    /// Rows due in a year, as a multiple of the pending ones, and what is added to their priority.
    delayed: Option<i32>,
}

const SHAPES: &[Shape] = &[
    Shape { name: "pending", queues: 1, priorities: 1, delayed: None },
    Shape {
        name: "pending, as many delayed at the same priority",
        queues: 1,
        priorities: 1,
        delayed: Some(0),
    },
    Shape {
        name: "pending, as many delayed at a higher priority",
        queues: 1,
        priorities: 1,
        delayed: Some(100),
    },
    Shape { name: "200 queues of 10 priorities", queues: 200, priorities: 10, delayed: None },
];

const FETCH: usize = 100;
const ROUNDS: usize = 41;

/// Prints, for each shape and size, the median time of a fetch, and its ratio to that of the smallest size.
pub(crate) async fn run(args: &Args) -> Result<(), Failure> {
    let sizes = args.option("sizes").unwrap_or("1000,1000000");
    let sizes: Vec<usize> = sizes.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let only = args.option("shape");
    for shape in SHAPES.iter().filter(|shape| only.is_none_or(|only| shape.name.contains(only))) {
        let mut first = None;
        for &rows in &sizes {
            let micros = fetch_cost(args, shape, rows).await?;
            let base = *first.get_or_insert(micros);
            println!(
                "{}",
                json!({
                    "peer": "chokaq", "mode": "scale", "shape": shape.name, "rows": rows,
                    "fetch_100_us": micros, "ratio": crate::round(micros / base),
                })
            );
        }
    }
    Ok(())
}

/// Fetches and gives back, so that every round finds the same table; the fetch alone is timed.
async fn fetch_cost(args: &Args, shape: &Shape, rows: usize) -> Result<f64, Failure> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("scale.db");
    let synchronous = match args.synchronous() {
        "normal" => Synchronous::Normal,
        _ => Synchronous::Full,
    };
    let options = SqliteOptions { synchronous, ..SqliteOptions::default() };
    drop(SqliteStorage::open(Location::File(path.clone()), options)?);
    seed(&Connection::open(&path)?, shape, rows)?;
    let storage = SqliteStorage::open(Location::File(path), options)?;
    let queues: Vec<String> = (0..shape.queues).map(|n| format!("queue-{n}")).collect();
    let mut passed_over = HashMap::new();
    let mut micros = Vec::new();
    for _ in 0..ROUNDS {
        let request = FetchRequest {
            worker: WorkerId::new("bench"),
            lease: LeaseId::new(),
            is_repeat: false,
            queues: Some(queues.clone()),
            take: FETCH,
            take_limited: 0,
            max_bytes: 4_000_000,
            passed_over: std::mem::take(&mut passed_over),
            with_control: false,
        };
        let start = Instant::now();
        let reply = storage.fetch_next_batch(request).await?;
        micros.push(start.elapsed().as_secs_f64() * 1e6);
        if reply.jobs.len() != FETCH {
            return Err(format!("{} rows fetched, not {FETCH}", reply.jobs.len()).into());
        }
        passed_over = reply.passed_over;
        let give_back = |job: chokaq::model::FetchedJob| Release {
            lease: job.lease,
            delay: None,
            unknown_type: false,
        };
        storage.release(reply.jobs.into_iter().map(give_back).collect()).await?;
    }
    micros.sort_unstable_by(f64::total_cmp);
    Ok(micros[ROUNDS / 2].round())
}

fn seed(db: &Connection, shape: &Shape, rows: usize) -> Result<(), Failure> {
    const INSERT: &str = "
        WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)
        INSERT INTO JobsHot (Id, Queue, Type, Status, IsReady, Priority, AttemptCount, MaxRetries, TimeoutMs,
            MaxAgeMs, OnCrash, CreatedAtUtc, ScheduledAtUtc, DeadlineUtc, Payload)
        SELECT randomblob(16), 'queue-' || (i % ?2), 'noop', 0, ?4, ?5 + (i / ?2) % ?3, 0, 3, 900000,
            86400000, 0, ?6 + i, ?6 + i + ?7, ?6 + i + ?7 + 86400000, json_object('text', hex(zeroblob(110)))
        FROM n";
    let now = 1_700_000_000_000_i64;
    let year = 365 * 86_400_000 * 100_i64;
    db.execute_batch("BEGIN")?;
    for n in 0..shape.queues {
        let name = format!("queue-{n}");
        db.execute("INSERT OR IGNORE INTO Queues (Name, UpdatedAtUtc) VALUES (?1, 0)", [&name])?;
    }
    let (rows, queues, priorities) =
        (i64::try_from(rows)?, i64::try_from(shape.queues)?, i64::try_from(shape.priorities)?);
    db.execute(INSERT, rusqlite::params![rows, queues, priorities, 1, 0, now, 0])?;
    if let Some(above) = shape.delayed {
        db.execute(INSERT, rusqlite::params![rows, queues, priorities, 0, above, now, year])?;
    }
    db.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}
