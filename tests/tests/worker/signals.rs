//! A program as users write it, and the signals that stop it.

use std::{
    fs::File,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

use chokaq::{
    FailureReason, JobId, Pool,
    model::{JobState, JobStatus},
    prelude::*,
};
use tempfile::TempDir;

use crate::{
    processes::journal,
    support::{death, detail, file},
};

/// The producer's view: what rescue does with it stands in its row.
#[job(queue = "short", on_crash = "retry", retries = 1000, enqueue_only)]
struct Short;

/// A running program with one job in it.
struct Program {
    pool: Pool,
    folder: TempDir,
    id: JobId,
    process: Child,
}

impl Program {
    /// Starts it, with a job whose handler has begun.
    async fn with(key: &str, grace: &str) -> Self {
        Self::with_lease(key, grace, "2m").await
    }

    async fn with_lease(key: &str, grace: &str, lease: &str) -> Self {
        let (pool, folder) = file().await;
        let id = match key {
            "short" => Short::enqueue(&pool).await.unwrap().id,
            key => pool.enqueue_raw(key, "null").queue(key).await.unwrap().id,
        };
        let process = spawn(folder.path(), "stderr", grace, lease);
        let program = Self { pool, folder, id, process };
        program.until_begun(1).await;
        program
    }

    /// Waits until handlers have begun so often.
    async fn until_begun(&self, runs: usize) {
        while journal(self.folder.path()).len() < runs {
            tokio::task::yield_now().await;
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("stderr")).expect("the log")
    }

    fn terminate(&self) {
        signal(&self.process, "TERM");
    }

    async fn until_logged(&self, text: &str) {
        while !self.log().contains(text) {
            tokio::task::yield_now().await;
        }
    }

    fn ended(&mut self) -> ExitStatus {
        self.process.wait().expect("it ends")
    }

    /// The last line of its log.
    fn last_words(&self) -> String {
        self.log().lines().last().expect("a line").to_owned()
    }
}

fn spawn(folder: &Path, log: &str, grace: &str, lease: &str) -> Child {
    let url = format!("sqlite:{}", folder.join("jobs.db").display());
    Command::new(env!("CARGO_BIN_EXE_node"))
        .args(["serve", &url])
        .arg(folder)
        .env("CHOKAQ_SHUTDOWN_GRACE", grace)
        .env("CHOKAQ_CANCEL_GRACE", "100ms")
        .env("CHOKAQ_HEARTBEAT_INTERVAL", "100ms")
        .env("CHOKAQ_LEASE", lease)
        .env("CHOKAQ_SCAN_INTERVAL", "100ms")
        .env("NO_COLOR", "1")
        .stderr(File::create(folder.join(log)).expect("a file for its log"))
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts")
}

pub(crate) fn signal(process: &Child, name: &str) {
    let id = process.id().to_string();
    let status = Command::new("kill").args(["-s", name, &id]).status().expect("kill runs");
    assert!(status.success());
}

#[tokio::test]
async fn a_handler_that_stops_when_it_is_told_goes_back_with_no_attempt_used_and_all_is_well() {
    let mut program = Program::with("patient", "1ms").await;
    program.terminate();
    assert_eq!(program.ended().code(), Some(0));
    let job = detail(&program.pool, program.id).await;
    assert_eq!((job.state, job.attempts), (JobState::Active(JobStatus::Pending), 0));
    let last = program.last_words();
    assert!(last.contains("worker stopped") && last.contains("running=0"), "{last}");
}

#[tokio::test]
async fn a_handler_that_ends_inside_the_grace_is_archived_and_does_not_run_again() {
    let mut program = Program::with("short", "1h").await;
    program.terminate();
    program.until_logged("running jobs get the grace to finish").await;
    File::create(program.folder.path().join("go")).expect("a file");
    assert_eq!(program.ended().code(), Some(0));
    let job = detail(&program.pool, program.id).await;
    assert_eq!((job.state, job.attempts), (JobState::Succeeded, 1));
    assert_eq!(journal(program.folder.path()).len(), 1);
}

#[tokio::test]
async fn a_handler_that_blocks_for_ever_is_left_to_rescue_and_the_exit_code_says_so() {
    let mut program = Program::with("block", "1ms").await;
    program.terminate();
    assert_eq!(program.ended().code(), Some(1));
    let log = program.log();
    assert!(log.contains("worker stopped and left jobs to rescue"), "{log}");
    let last = program.last_words();
    assert!(
        last.contains("handlers still block their threads") && last.contains("jobs=1"),
        "{last}"
    );
    let job = detail(&program.pool, program.id).await;
    assert_eq!(job.state, JobState::Active(JobStatus::Processing));
}

/// A handler that blocks the only thread of the program's runtime: the signals are still heard.
#[tokio::test]
async fn a_second_signal_ends_a_program_at_once_and_says_how_many_jobs_ran() {
    let mut program = Program::with("block", "1h").await;
    program.terminate();
    // The first is heard before the second is sent: its log line says so.
    program.until_logged("a second signal ends at once").await;
    program.terminate();
    assert_eq!(program.ended().code(), Some(143));
    let last = program.last_words();
    assert!(last.contains("ended by a second signal") && last.contains("jobs=1"), "{last}");
}

/// A process that stands still cannot keep its lease, nor know that it lost it: the fence discards what it says.
#[tokio::test]
async fn a_process_that_was_stopped_past_its_lease_changes_nothing_that_it_no_longer_owns() {
    let mut program = Program::with_lease("short", "1ms", "1s").await;
    signal(&program.process, "STOP");
    let mut other = spawn(program.folder.path(), "other", "1ms", "1s");
    program.until_begun(2).await;
    File::create(program.folder.path().join("go")).expect("a file");
    while detail(&program.pool, program.id).await.state != JobState::Succeeded {
        tokio::task::yield_now().await;
    }
    let before = format!("{:?}", detail(&program.pool, program.id).await);
    signal(&program.process, "CONT");
    program.until_logged("lease was lost; its result is discarded").await;
    let job = detail(&program.pool, program.id).await;
    assert_eq!(format!("{job:?}"), before);
    assert!(job.attempts >= 2, "another process ran it again");
    let stats = program.pool.operator().summary_stats().await.unwrap();
    assert_eq!((stats.succeeded_total, stats.failed_total, stats.pending), (1, 0, 0));
    for process in [&mut program.process, &mut other] {
        signal(process, "TERM");
        assert_eq!(process.wait().expect("it ends").code(), Some(0));
    }
}

#[tokio::test]
async fn a_cancel_from_another_process_reaches_the_handler_and_the_job_dies_as_cancelled() {
    let mut program = Program::with("patient", "1h").await;
    program.pool.cancel(program.id).await.unwrap();
    let (reason, job) = loop {
        if matches!(detail(&program.pool, program.id).await.state, JobState::Dead(_)) {
            break death(&program.pool, program.id).await;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((reason, job.attempts), (FailureReason::Cancelled, 1));
    assert_eq!(job.errors[0].kind, "cancelled");
    program.terminate();
    assert_eq!(program.ended().code(), Some(0));
}
