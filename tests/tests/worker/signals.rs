//! A program as users write it, and the signals that stop it.

use std::{
    fs::File,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

use chokaq::{
    JobId, Pool,
    model::{JobState, JobStatus},
};
use tempfile::TempDir;

use crate::{
    processes::journal,
    support::{detail, file},
};

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
        let (pool, folder) = file().await;
        let id = pool.enqueue_raw(key, "null").queue(key).await.unwrap().id;
        let process = spawn(folder.path(), grace);
        while journal(folder.path()).is_empty() {
            tokio::task::yield_now().await;
        }
        Self { pool, folder, id, process }
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

fn spawn(folder: &Path, grace: &str) -> Child {
    let url = format!("sqlite:{}", folder.join("jobs.db").display());
    Command::new(env!("CARGO_BIN_EXE_node"))
        .args(["serve", &url])
        .arg(folder)
        .env("CHOKAQ_SHUTDOWN_GRACE", grace)
        .env("CHOKAQ_CANCEL_GRACE", "100ms")
        .env("NO_COLOR", "1")
        .stderr(File::create(folder.join("stderr")).expect("a file for its log"))
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
