//! Several processes on one file.

use std::{
    collections::HashMap,
    path::Path,
    process::{Child, Command, Stdio},
};

use chokaq::Pool;

use crate::support::file;

fn spawn(mode: &str, folder: &Path) -> Child {
    let url = format!("sqlite:{}", folder.join("jobs.db").display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_node"));
    command.arg(mode).arg(url).arg(folder).stderr(Stdio::piped());
    command.spawn().expect("the node starts")
}

/// Waits for the nodes; none may have anything to complain of.
fn join(nodes: Vec<Child>) {
    for node in nodes {
        let output = node.wait_with_output().expect("the node ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.is_empty(), "{}: {stderr}", output.status);
    }
}

/// The lines that all nodes wrote.
pub(crate) fn journal(folder: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "log") {
            let text = std::fs::read_to_string(path).expect("a journal");
            lines.extend(text.lines().map(str::to_owned));
        }
    }
    lines
}

async fn fill(pool: &Pool, key: &str, jobs: usize) {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..jobs {
        tasks.spawn(pool.enqueue_raw(key, "null").queue(key).into_future());
    }
    while let Some(enqueued) = tasks.join_next().await {
        enqueued.unwrap().unwrap();
    }
}

async fn drain_with(processes: usize) {
    let (pool, folder) = file().await;
    fill(&pool, "drain", 20_000).await;
    join((0..processes).map(|_| spawn("drain", folder.path())).collect());
    let mut starts: HashMap<String, usize> = HashMap::new();
    for line in journal(folder.path()) {
        *starts.entry(line).or_default() += 1;
    }
    assert_eq!(starts.len(), 20_000);
    let doubled: Vec<_> = starts.iter().filter(|(_, starts)| **starts > 1).collect();
    assert!(doubled.is_empty(), "{doubled:?}");
    assert!(starts.keys().all(|line| line.ends_with(" 1")), "an attempt was repeated");
    let stats = pool.operator().summary_stats().await.unwrap();
    assert_eq!((stats.succeeded_total, stats.pending, stats.processing), (20_000, 0, 0));
}

#[tokio::test]
async fn two_processes_drain_one_file_and_start_no_job_twice() {
    drain_with(2).await;
}

#[tokio::test]
async fn four_processes_drain_one_file_and_start_no_job_twice() {
    drain_with(4).await;
}

#[tokio::test]
async fn max_workers_holds_over_four_processes() {
    let (pool, folder) = file().await;
    pool.operator().set_max_workers("limited", Some(3)).await.unwrap();
    fill(&pool, "limited", 300).await;
    // A queue that is full does not keep an idle worker, so nodes come and go until all is done.
    while pool.operator().summary_stats().await.unwrap().succeeded_total < 300 {
        join((0..4).map(|_| spawn("limited", folder.path())).collect());
    }
    let mut events: Vec<(u128, i32)> = journal(folder.path())
        .iter()
        .map(|line| {
            let (time, change) = line.split_once(' ').expect("two words");
            (time.parse().expect("a time"), change.parse().expect("a change"))
        })
        .collect();
    events.sort_unstable();
    let (mut inside, mut most) = (0, 0);
    for (_, change) in events {
        inside += change;
        most = most.max(inside);
    }
    assert_eq!(inside, 0);
    assert!(most <= 3, "{most} ran at once");
    assert!(most > 1, "nothing ran beside anything, so the limit was not tried");
}
