//! The two programs on one file.

use std::{path::Path, process::Command};

use chokaq::{JobId, Pool};

const PRODUCER: &str = env!("CARGO_BIN_EXE_two-crates-producer");
const WORKER: &str = env!("CARGO_BIN_EXE_two-crates-worker");

/// Runs a program in the folder and answers what it printed.
fn run(program: &str, folder: &Path) -> String {
    let mut command = Command::new(program);
    command.current_dir(folder).env("CHOKAQ_DATABASE_URL", "sqlite:shared.db");
    let output = command.output().expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{program}: {stderr}");
    String::from_utf8(output.stdout).expect("text")
}

#[tokio::test]
async fn what_one_program_enqueues_another_runs_under_the_same_type_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let printed = run(PRODUCER, folder.path());
    let ids: Vec<JobId> = printed.lines().map(|line| line.parse().expect("an id")).collect();
    assert_eq!(ids.len(), 2);

    let url = format!("sqlite:{}", folder.path().join("shared.db").display());
    let pool = Pool::connect(url).await.expect("the file opens");
    for id in &ids {
        let job = pool.job(*id).await.expect("it answers").expect("it is there");
        assert_eq!((job.finished_at, job.attempts), (None, 0), "the producer has run nothing");
        assert_eq!(job.job_type, "send_receipt");
        assert_eq!(job.retries, 5, "the policy in the row is the producer's");
    }

    run(WORKER, folder.path());
    let mut outputs = Vec::new();
    for id in &ids {
        let job = pool.job(*id).await.expect("it answers").expect("it is there");
        outputs.push(job.output::<String>().expect("text"));
    }
    let expected = ["receipt of order 7", "receipt of order 8"];
    assert_eq!(outputs, expected.map(|text| Some(text.to_owned())));
}

#[test]
fn the_producer_does_not_link_the_handler() {
    let text_of_the_handler = b"sending the receipt of order";
    let holds = |program| {
        let bytes = std::fs::read(program).expect("the program");
        bytes.windows(text_of_the_handler.len()).any(|part| part == text_of_the_handler)
    };
    assert!(holds(WORKER), "the text that the test looks for stands in the handler");
    assert!(!holds(PRODUCER));
}
