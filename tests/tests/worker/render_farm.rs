//! The example `render_farm`, its own program: nodes, kills, shares.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use chokaq::{
    ArchiveRow, FailureReason, JobId, Pool,
    model::{JobState, JobStatus},
};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::support::detail;

/// Between two looks at a real state.
const LOOK: Duration = Duration::from_millis(5);

/// A farm in a folder of the test's own.
struct Farm {
    pool: Pool,
    folder: TempDir,
}

impl Farm {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("sqlite:{}", folder.path().join("farm.db").display());
        Self { pool: Pool::connect(url).await.expect("a database file"), folder }
    }

    /// The program, with leases that only a kill outlasts, soon found, and without ffmpeg, wherever it is installed.
    fn program(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_render_farm"));
        command.args(words).env("RENDER_FARM_DIR", self.folder.path()).env("PATH", "");
        command.env("CHOKAQ_HEARTBEAT_INTERVAL", "200ms").env("CHOKAQ_LEASE", "5s");
        command.env("CHOKAQ_SCAN_INTERVAL", "200ms").env("CHOKAQ_POLL_INTERVAL", "100ms");
        command
    }

    /// Runs the program to its end and answers what it printed.
    fn run(&self, words: &[&str]) -> String {
        let output = self.program(words).output().expect("the program starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.is_empty(), "{}: {stderr}", output.status);
        String::from_utf8(output.stdout).expect("text")
    }

    fn node(&self, name: &str) -> Node {
        let mut command = self.program(&["node", name]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut node = Node(command.spawn().expect("the node starts"));
        let mut line = String::new();
        let stdout = node.0.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        assert_eq!(line.trim_end(), format!("node {name} is ready"));
        node
    }

    fn clips(&self) -> PathBuf {
        self.folder.path().join("clips")
    }

    /// The render that this node has in hand, once it has one: its temporary file says so.
    async fn render_of(&self, node: &str) -> JobId {
        loop {
            let ending = format!(".{node}.part");
            let part = files(&self.clips()).into_iter().find(|name| name.ends_with(&ending));
            if let Some(part) = part {
                return part.split('.').next().expect("a word").parse().expect("an id");
            }
            sleep(LOOK).await;
        }
    }

    /// Waits until nothing waits or runs; answers what was rendered.
    async fn complete(&self) -> Vec<ArchiveRow> {
        loop {
            let stats = self.pool.operator().summary_stats().await.unwrap();
            if stats.pending + stats.fetched + stats.processing == 0 {
                return self.pool.operator().archive_page(Some("render"), None, 100).await.unwrap();
            }
            sleep(LOOK).await;
        }
    }
}

/// A process that ends with its test, however that ends.
struct Node(Child);

impl Node {
    fn kill(&mut self) {
        self.0.kill().expect("SIGKILL is sent");
        self.0.wait().expect("the node ends");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder");
    entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect()
}

/// A field of a render's output.
fn field(row: &ArchiveRow, field: &str) -> String {
    let output: serde_json::Value = serde_json::from_str(row.output.as_ref().unwrap()).unwrap();
    output[field].as_str().unwrap().to_owned()
}

fn shares(rendered: &[ArchiveRow]) -> HashMap<String, usize> {
    let mut shares = HashMap::new();
    for row in rendered {
        *shares.entry(field(row, "node")).or_default() += 1;
    }
    shares
}

#[tokio::test]
async fn the_render_of_a_killed_node_is_done_once_more_by_another_and_the_farm_ends_complete() {
    let farm = Farm::new().await;
    farm.run(&["enqueue", "9", "2"]);
    let mut nodes = ["a", "b", "c"].map(|name| farm.node(name));
    let lost = farm.render_of("b").await;
    nodes[1].kill();
    let job = detail(&farm.pool, lost).await;
    assert_eq!(
        job.state,
        JobState::Active(JobStatus::Processing),
        "it was killed while it rendered"
    );

    let rendered = farm.complete().await;
    assert_eq!(rendered.len(), 9);
    for row in &rendered {
        let expected = if row.id == lost { 2 } else { 1 };
        assert_eq!(row.attempts, expected, "{row:?}");
    }
    let errors = detail(&farm.pool, lost).await.errors;
    let errors: Vec<_> = errors.iter().map(|error| (error.attempt, error.kind.as_str())).collect();
    assert_eq!(errors, [(1, "zombie")]);
    let again = rendered.iter().find(|row| row.id == lost).expect("it is rendered");
    assert_ne!(field(again, "node"), "b");
    assert_eq!(farm.pool.operator().summary_stats().await.unwrap().dead, 0);
    whole_clips(&farm, &rendered);
}

/// One whole file for each render, where its output says, and nothing half done beside them.
fn whole_clips(farm: &Farm, rendered: &[ArchiveRow]) {
    let mut expected: Vec<_> = rendered.iter().map(|row| format!("{}.y4m", row.id)).collect();
    let mut found = files(&farm.clips());
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    let clip = |row| std::fs::read(field(row, "url").strip_prefix("file://").unwrap()).unwrap();
    let first = clip(&rendered[0]);
    assert_eq!(first.windows(6).filter(|bytes| bytes == b"FRAME\n").count(), 50);
    assert!(rendered.iter().all(|row| clip(row) == first), "a clip differs from the others");
}

#[tokio::test]
async fn four_nodes_with_one_permit_each_share_forty_renders_and_none_does_more_than_twelve() {
    let farm = Farm::new().await;
    farm.pool.operator().pause_queue("render").await.unwrap();
    farm.run(&["enqueue", "40", "1"]);
    let _nodes = ["a", "b", "c", "d"].map(|name| farm.node(name));
    farm.pool.operator().resume_queue("render").await.unwrap();
    let rendered = farm.complete().await;
    assert_eq!(rendered.len(), 40);
    let shares = shares(&rendered);
    assert!(shares.values().all(|share| *share <= 12), "{shares:?}");
}

#[tokio::test]
async fn the_demo_ends_complete_with_the_late_asset_rendered_and_the_missing_one_dead() {
    let farm = Farm::new().await;
    let printed = farm.run(&["demo", "6", "1", "3"]);
    let (_, report) = printed.split_once("the nodes stop").expect("it reports");
    for line in ["rendered      7", "retried       5", "dead          1"] {
        assert!(report.contains(line), "{printed}");
    }
    let rendered = farm.complete().await;
    let mut attempts: Vec<_> = rendered.iter().map(|row| row.attempts).collect();
    attempts.sort_unstable();
    assert_eq!(attempts, [1, 1, 1, 1, 1, 1, 3]);
    let dead = farm.pool.operator().dlq_page(Some("render"), None, 10).await.unwrap();
    let reasons: Vec<_> = dead.iter().map(|job| (job.reason, job.attempts)).collect();
    assert_eq!(reasons, [(FailureReason::MaxRetriesExceeded, 4)]);
    assert_eq!(dead[0].error.as_deref(), Some("no-asset: asset missing.png: 404 Not Found"));
}
