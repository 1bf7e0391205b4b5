//! Real processes, real kills.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use chokaq::{
    JobId, Pool,
    model::{JobDetail, JobState},
    prelude::*,
};

use crate::{
    processes::journal,
    support::{detail, file},
};

/// The producer's view of the node's job: what rescue does with it stands in its row.
#[job(queue = "crash", on_crash = "retry", retries = 1000, enqueue_only)]
struct Crash;

const JOBS: usize = 5_000;
const KILLS: usize = 50;

/// A node whose leases are short, so that what it leaves behind is found soon.
fn spawn(mode: &str, folder: &Path, from: u64) -> Child {
    let url = format!("sqlite:{}", folder.join("jobs.db").display());
    Command::new(env!("CARGO_BIN_EXE_node"))
        .arg(mode)
        .arg(url)
        .arg(folder)
        .arg(from.to_string())
        .env("CHOKAQ_HEARTBEAT_INTERVAL", "100ms")
        .env("CHOKAQ_LEASE", "500ms")
        .env("CHOKAQ_FETCHED_LIMIT", "500ms")
        .env("CHOKAQ_SCAN_INTERVAL", "100ms")
        .stderr(Stdio::null())
        .spawn()
        .expect("the node starts")
}

fn kill(mut node: Child) {
    node.kill().expect("SIGKILL is sent");
    node.wait().expect("the node ends");
}

/// A generator whose seed is printed: a failure shows the seed to run again with.
fn random() -> fastrand::Rng {
    let seed = std::env::var("CHOKAQ_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("CHOKAQ_TEST_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

/// Every attempt that was started: job and attempt. No attempt of a job was started twice.
fn starts(folder: &Path) -> HashMap<JobId, HashSet<u32>> {
    let mut starts: HashMap<JobId, HashSet<u32>> = HashMap::new();
    for line in journal(folder) {
        let (id, attempt) = line.split_once(' ').expect("two words");
        let (id, attempt) = (id.parse().expect("an id"), attempt.parse().expect("an attempt"));
        assert!(
            starts.entry(id).or_default().insert(attempt),
            "attempt {attempt} of {id} ran twice"
        );
    }
    starts
}

/// What the crash test demands of one job at the end.
fn check(job: &JobDetail, started: &HashSet<u32>) {
    let id = job.id;
    assert_eq!(job.state, JobState::Succeeded, "{id}");
    // Every attempt but the last ended with its worker, and was found by rescue.
    let killed: HashSet<u32> = job.errors.iter().map(|error| error.attempt).collect();
    assert!(job.errors.iter().all(|error| error.kind == "zombie"), "{id}: {:?}", job.errors);
    let expected: HashSet<u32> = (1..job.attempts).collect();
    assert_eq!(killed, expected, "{id} had {} attempts", job.attempts);
    // The last one was started, or it could not have succeeded; nothing was started after it.
    assert!(started.contains(&job.attempts), "{id}");
    assert!(
        started.iter().all(|attempt| *attempt <= job.attempts),
        "{id} ran after its completion"
    );
}

#[tokio::test]
async fn a_worker_that_is_killed_fifty_times_loses_no_job_and_repeats_no_finished_one() {
    let mut random = random();
    let (pool, folder) = file().await;
    let mut ids = Vec::new();
    for _ in 0..JOBS / 100 {
        let calls = (0..100).map(|_| Crash::enqueue(&pool).into_future());
        for call in calls.map(tokio::spawn).collect::<Vec<_>>() {
            ids.push(call.await.unwrap().unwrap().id);
        }
    }
    for _ in 0..KILLS {
        let node = spawn("crash", folder.path(), 0);
        tokio::time::sleep(Duration::from_millis(random.u64(20..120))).await;
        kill(node);
    }
    let left = pool.operator().summary_stats().await.unwrap().pending;
    assert!(left > 0, "all was done before the last kill: it proves less than it says");
    let node = spawn("crash", folder.path(), 0);
    loop {
        let stats = pool.operator().summary_stats().await.unwrap();
        if stats.pending + stats.fetched + stats.processing == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    kill(node);

    let starts = starts(folder.path());
    for id in &ids {
        check(&detail(&pool, *id).await, starts.get(id).expect("it was started"));
    }
    let stats = pool.operator().summary_stats().await.unwrap();
    assert_eq!((stats.succeeded_total, stats.dead), (JOBS as u64, 0));
    one_table_each(folder.path(), JOBS);
}

/// Every job is in exactly one of the three tables, and there are as many as were enqueued.
fn one_table_each(folder: &Path, jobs: usize) {
    let db = rusqlite::Connection::open(folder.join("jobs.db")).unwrap();
    let counts: (i64, i64) = db
        .query_row(
            "SELECT count(*), count(DISTINCT Id) FROM (
                SELECT Id FROM JobsHot UNION ALL SELECT Id FROM JobsArchive UNION ALL SELECT Id FROM JobsDLQ
            )",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    let jobs = i64::try_from(jobs).unwrap();
    assert_eq!(counts, (jobs, jobs));
}

#[tokio::test]
async fn what_a_killed_producer_was_told_is_stored_is_there_once_and_whole() {
    let mut random = random();
    let (pool, folder) = file().await;
    let mut from = 0;
    for _ in 0..KILLS {
        let node = spawn("produce", folder.path(), from);
        tokio::time::sleep(Duration::from_millis(random.u64(30..150))).await;
        kill(node);
        // The next one starts over a little before where this one was cut off.
        from = next_number(folder.path());
    }
    assert!(from > 0, "nothing was enqueued");
    acknowledged_are_there(&pool, folder.path()).await;
}

/// One past the highest number that was acknowledged.
fn next_number(folder: &Path) -> u64 {
    let journal = journal(folder);
    let ends = journal.iter().filter_map(|line| match words(line)[..] {
        ["one", number, _] => number.parse::<u64>().ok().map(|number| number + 1),
        ["batch", _, end] => end.parse().ok(),
        _ => None,
    });
    ends.max().unwrap_or(0)
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

async fn acknowledged_are_there(pool: &Pool, folder: &Path) {
    let db = rusqlite::Connection::open(folder.join("jobs.db")).unwrap();
    let mut query = db.prepare("SELECT IdempotencyKey, Payload FROM JobsHot").unwrap();
    let rows = query.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
    let mut payloads = HashMap::new();
    for row in rows.unwrap() {
        let (key, payload) = row.unwrap();
        let whole: serde_json::Value = serde_json::from_str(&payload).expect("a whole payload");
        assert_eq!(whole["text"].as_str().map(str::len), Some(2_000));
        assert_eq!(key, format!("key-{}", whole["number"]));
        assert!(payloads.insert(key.clone(), payload).is_none(), "{key} stands twice");
    }
    for line in journal(folder) {
        match words(&line)[..] {
            ["one", number, id] => {
                assert!(payloads.contains_key(&format!("key-{number}")), "{line}");
                detail(pool, id.parse().unwrap()).await;
            }
            ["batch", start, end] => {
                for number in start.parse::<u64>().unwrap()..end.parse().unwrap() {
                    assert!(payloads.contains_key(&format!("key-{number}")), "{line}");
                }
            }
            _ => panic!("{line}"),
        }
    }
}
