//! A database that cannot be written for a while: locked by another process, on a full disk, on a disk that may not be
//! written. Each is the real thing; the file systems stand in a name space of their own.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use chokaq::{
    Pool, WorkerHandle,
    model::JobState,
    prelude::*,
    storage::sqlite::{Location, SqliteOptions, SqliteStorage},
};

use crate::support::{Gate, Gated, detail, worker, worker_log};

/// Waits for what a log line says, and names the worker of that line.
async fn until_begun(path: &Path) -> String {
    let path = path.display().to_string();
    loop {
        let lines = worker_log().lines();
        let begun = |line: &&String| line.contains("the storage fails") && line.contains(&path);
        if let Some(line) = lines.iter().find(begun) {
            let rest = line.split("worker=").nth(1).expect("it names the worker");
            return rest.split(' ').next().expect("a word").to_owned();
        }
        tokio::task::yield_now().await;
    }
}

fn lines_of(worker: &str, text: &str) -> usize {
    let lines = worker_log().lines();
    lines.iter().filter(|line| line.contains(text) && line.contains(worker)).count()
}

/// A pool whose calls do not wait long for a lock.
fn impatient(file: &Path) -> Pool {
    let options =
        SqliteOptions { call_limit: Duration::from_millis(300), ..SqliteOptions::default() };
    Pool::over(SqliteStorage::open(Location::File(file.to_owned()), options).unwrap())
}

/// Waits at the gate, and has much to say then.
#[job(queue = "bulky")]
struct Bulky;

impl Job for Bulky {
    type Output = String;
    async fn run(self, ctx: &JobContext) -> Result<String, JobError> {
        ctx.state::<Gate>()?.pass(ctx).await;
        Ok("x".repeat(300_000))
    }
}

/// A worker with as many jobs at its gate as it has permits, and as many that wait.
struct Busy {
    pool: Pool,
    gate: Gate,
    ids: Vec<chokaq::JobId>,
    handle: WorkerHandle,
    running: tokio::task::JoinHandle<chokaq::Result<()>>,
}

impl Busy {
    async fn on<T: Enqueue + Job>(pool: Pool, job: impl Fn() -> T) -> Self {
        const PERMITS: usize = 4;
        worker_log();
        let (gate, mut starts) = Gate::new();
        let mut ids = Vec::new();
        for _ in 0..2 * PERMITS {
            ids.push(job().enqueue(&pool).await.unwrap().id);
        }
        let worker =
            worker(&pool).only::<(Gated, Bulky)>().state(gate.clone()).concurrency(PERMITS);
        let worker = worker.heartbeat_interval(Duration::from_millis(100)).build().unwrap();
        let handle = worker.handle();
        let running = tokio::spawn(worker.run());
        for _ in 0..PERMITS {
            starts.recv().await.expect("it starts");
        }
        // Later starts are of no interest.
        tokio::spawn(async move { while starts.recv().await.is_some() {} });
        Self { pool, gate, ids, handle, running }
    }

    /// All jobs end, each after one attempt, and the log has told of one episode.
    async fn recovers(self, worker: &str) {
        let all = self.ids.len();
        for id in &self.ids {
            while detail(&self.pool, *id).await.state != JobState::Succeeded {
                tokio::task::yield_now().await;
            }
            assert_eq!(detail(&self.pool, *id).await.attempts, 1);
        }
        let stats = self.pool.operator().summary_stats().await.unwrap();
        assert_eq!((stats.succeeded_total, stats.dead, stats.processing), (all as u64, 0, 0));
        while lines_of(worker, "the storage answers again") == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(lines_of(worker, "the storage fails"), 1, "{:?}", worker_log().lines());
        assert_eq!(lines_of(worker, "the storage answers again"), 1);
        self.handle.stop();
        self.running.await.unwrap().unwrap();
    }
}

fn lock(file: &Path) -> Child {
    let mut locker = Command::new(env!("CARGO_BIN_EXE_node"))
        .args(["lock", &format!("sqlite:{}", file.display())])
        .arg(file.parent().expect("a folder"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("the locker starts");
    let mut line = String::new();
    let stdout = locker.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    assert_eq!(line.trim(), "locked");
    locker
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_another_process_locks_is_waited_for_and_told_of_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.db");
    let mut busy = Busy::on(impatient(&file), || Gated { cooperative: true }).await;
    let mut locker = lock(&file);
    // Outcomes, claims and beats now all fail.
    busy.gate.open.add_permits(100);
    let worker = until_begun(&file).await;
    let enqueued = tokio::spawn({
        let pool = busy.pool.clone();
        async move { Gated { cooperative: true }.enqueue(&pool).await }
    });
    locker.kill().expect("SIGKILL is sent");
    locker.wait().expect("it ends");
    busy.ids.push(enqueued.await.unwrap().expect("it waits for the lock, up to half a minute").id);
    busy.recovers(&worker).await;
}

/// Runs one of the ignored tests below in a name space where it may mount file systems.
fn in_a_name_space(test: &str) {
    let inside = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "--"])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--ignored", "--nocapture"])
        .output();
    let can =
        Command::new("unshare").args(["--user", "--map-root-user", "--mount", "true"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        eprintln!("!!! no name space can be made here: {test} WAS NOT RUN");
        return;
    }
    let output = inside.expect("unshare runs");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.contains("1 passed"), "{told}");
}

fn mount(arguments: &[&str], folder: &Path) {
    let status = Command::new("mount").args(arguments).arg(folder).status().expect("mount runs");
    assert!(status.success(), "mount {arguments:?}");
}

#[test]
fn a_full_disk_is_waited_for_and_told_of_once() {
    in_a_name_space("outages::inside_a_full_disk");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs in a name space of its own: a_full_disk_is_waited_for_and_told_of_once"]
async fn inside_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    mount(&["-t", "tmpfs", "-o", "size=24m", "tmpfs"], folder.path());
    let file = folder.path().join("jobs.db");
    let mut busy = Busy::on(impatient(&file), || Bulky).await;
    let filler = folder.path().join("filler");
    for bytes in [65_536, 1] {
        let mut file = std::fs::File::options().create(true).append(true).open(&filler).unwrap();
        while file.write_all(&vec![b'x'; bytes]).is_ok() {}
    }
    // The log of the database may have room that it can use again: outputs take more.
    busy.gate.open.add_permits(100);
    let worker = until_begun(&file).await;
    assert_eq!(lines_of(&worker, "its disk is full: free some space"), 1);
    let enqueued = tokio::spawn({
        let pool = busy.pool.clone();
        async move { Bulky.enqueue(&pool).await }
    });
    std::fs::remove_file(&filler).unwrap();
    busy.ids.push(enqueued.await.unwrap().expect("it waits for room, up to half a minute").id);
    busy.recovers(&worker).await;
}

#[test]
fn a_disk_that_may_not_be_written_is_named_with_what_to_do() {
    in_a_name_space("outages::inside_a_read_only_disk");
}

#[tokio::test]
#[ignore = "runs in a name space of its own: a_disk_that_may_not_be_written_is_named_with_what_to_do"]
async fn inside_a_read_only_disk() {
    let folder = tempfile::tempdir().unwrap();
    mount(&["-t", "tmpfs", "tmpfs"], folder.path());
    let file = folder.path().join("jobs.db");
    let url = format!("sqlite:{}", file.display());
    let pool = Pool::connect(&url).await.unwrap();
    let id = Gated { cooperative: true }.enqueue(&pool).await.unwrap().id;
    drop(pool);
    mount(&["-o", "remount,ro"], folder.path());
    let refused = Pool::connect(&url).await.unwrap_err();
    for part in [&*file.display().to_string(), "cannot be", "check"] {
        assert!(refused.to_string().contains(part), "{refused}");
    }
    mount(&["-o", "remount,rw"], folder.path());
    let pool = Pool::connect(&url).await.unwrap();
    assert_eq!(detail(&pool, id).await.attempts, 0);
}
