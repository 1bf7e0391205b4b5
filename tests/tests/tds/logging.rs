//! The driver's own log events.

use std::sync::{Arc, Mutex};

use chokaq::storage::mssql::Role;
use tracing_subscriber::{filter::LevelFilter, fmt::MakeWriter};

use crate::{
    answers::error,
    connected, open, probe,
    server::{Script, Server},
};

/// Keeps what is written.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("unpoisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Kept {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// What is logged at `level` while a statement and a login are refused.
async fn logged(level: LevelFilter) -> String {
    let kept = Kept::default();
    let subscriber =
        tracing_subscriber::fmt().with_writer(kept.clone()).with_max_level(level).finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let server = Server::start(Script::always(vec![error(1205)])).await;
    connected(&server, "").await.run(Role::Worker, &probe()).await.expect_err("a deadlock");
    open(&server.url_as("jobs", "hunter2", "")).await.expect_err("a wrong password");
    drop(guard);
    let bytes = kept.0.lock().expect("unpoisoned").clone();
    String::from_utf8(bytes).expect("UTF-8")
}

/// In a process of its own: `tracing` keeps for the whole process which events anybody listens to, and while other
/// tests run it is now and then wrong for a moment.
#[test]
fn the_driver_logs_nothing_unless_it_is_asked_to() {
    let program = std::env::current_exe().expect("this program");
    let output = std::process::Command::new(program)
        .args(["--exact", "logging::alone", "--ignored"])
        .output()
        .expect("this program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[tokio::test]
#[ignore = "the test above runs it"]
async fn alone() {
    let quiet = logged(LevelFilter::INFO).await;
    assert!(!quiet.contains("tiberius") && !quiet.contains("1205"), "{quiet}");
    let loud = logged(LevelFilter::DEBUG).await;
    assert!(loud.contains("tiberius") && loud.contains("1205"), "it is heard at DEBUG");
    assert!(!loud.contains("hunter2"));
}
