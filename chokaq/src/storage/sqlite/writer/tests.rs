//! The writer by itself, with a table of its own.

use std::{future::Future, path::PathBuf, sync::Mutex, sync::mpsc, task::Poll};

use super::*;
use crate::storage::sqlite::failure::Fault;

const FOREVER: Duration = Duration::from_hours(1);

struct Bench {
    writer: Writer,
    _directory: tempfile::TempDir,
    path: PathBuf,
}

fn bench(quantum: Duration, call_limit: Duration) -> Bench {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("writer.db");
    let connection = Connection::open(&path).unwrap();
    connection.busy_timeout(Duration::ZERO).unwrap();
    connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE Notes (Text)").unwrap();
    let setup = Setup {
        connection,
        reopen: None,
        name: DatabaseName::new(format!("the database file {}", path.display())),
        call_limit,
        work_arrived: watch::Sender::new(0),
        checkpoints: None,
        place: None,
    };
    let writer = Writer::start_with_quantum(setup, quantum).unwrap();
    Bench { writer, _directory: directory, path }
}

impl Bench {
    fn note(&self, class: Class, text: &'static str) -> impl Future<Output = Result<()>> {
        self.writer.submit(class, Effect::Writes, move |tx| insert(tx, text))
    }

    fn notes(&self) -> Vec<String> {
        notes(&self.path)
    }

    /// Holds the writer inside a transaction until the sender is used or dropped.
    async fn hold(&self) -> (impl Future<Output = Result<()>>, mpsc::Sender<()>) {
        let (go, wait) = mpsc::channel();
        let (entered, inside) = tokio::sync::oneshot::channel();
        let held = self.writer.submit(Class::Heartbeat, Effect::Writes, move |_| {
            let _ = entered.send(());
            let _ = wait.recv();
            Ok(())
        });
        let mut held = Box::pin(held);
        submit(&mut held).await;
        inside.await.unwrap();
        (held, go)
    }
}

fn insert(tx: &Tx<'_>, text: &str) -> Outcome<()> {
    tx.connection().execute("INSERT INTO Notes VALUES (?1)", [text])?;
    Ok(())
}

fn notes(path: &std::path::Path) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection.prepare("SELECT Text FROM Notes ORDER BY rowid").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Polls once: the call stands in the queue after it.
async fn submit<F: Future + Unpin>(call: &mut F) {
    std::future::poll_fn(|context| {
        let polled = std::pin::Pin::new(&mut *call).poll(context);
        assert!(polled.is_pending(), "answered before the transaction was released");
        Poll::Ready(())
    })
    .await;
}

#[tokio::test]
async fn a_call_that_fails_fails_alone() {
    let bench = bench(FOREVER, FOREVER);
    let (held, go) = bench.hold().await;
    let mut good = Box::pin(bench.note(Class::Finalise, "good"));
    let mut bad = Box::pin(bench.writer.submit(Class::Mark, Effect::Writes, |tx| {
        insert(tx, "undone")?;
        tx.connection().execute("INSERT INTO Nowhere VALUES (1)", [])?;
        Ok(())
    }));
    let mut late = Box::pin(bench.note(Class::Operator, "late"));
    submit(&mut good).await;
    submit(&mut bad).await;
    submit(&mut late).await;
    drop(go);
    held.await.unwrap();
    good.await.unwrap();
    let error = bad.await.unwrap_err();
    assert!(error.to_string().contains("Nowhere") && !error.is_transient(), "{error}");
    late.await.unwrap();
    assert_eq!(bench.notes(), ["good", "late"]);
}

#[tokio::test]
async fn a_first_call_that_fails_leaves_nothing_for_the_next_ones_commit() {
    let bench = bench(FOREVER, FOREVER);
    let (go, wait) = mpsc::channel::<()>();
    let (entered, inside) = tokio::sync::oneshot::channel();
    let mut bad = Box::pin(bench.writer.submit(Class::Heartbeat, Effect::Writes, move |tx| {
        insert(tx, "undone")?;
        let _ = entered.send(());
        let _ = wait.recv();
        Err::<(), _>(Fault::Malformed("by design".into()))
    }));
    submit(&mut bad).await;
    inside.await.unwrap();
    let mut good = Box::pin(bench.note(Class::Finalise, "good"));
    submit(&mut good).await;
    drop(go);
    assert!(bad.await.is_err());
    good.await.unwrap();
    assert_eq!(bench.notes(), ["good"]);
}

#[tokio::test]
async fn a_call_that_panics_is_undone_and_the_thread_goes_on() {
    let bench = bench(FOREVER, FOREVER);
    let (held, go) = bench.hold().await;
    let mut bad = Box::pin(bench.writer.submit(Class::Mark, Effect::Writes, |tx| {
        insert(tx, "undone")?;
        assert!(tx.now_ms() == 0, "by design");
        Ok(())
    }));
    submit(&mut bad).await;
    drop(go);
    held.await.unwrap();
    let error = bad.await.unwrap_err();
    assert!(error.to_string().contains("by design"), "{error}");
    bench.note(Class::Mark, "after").await.unwrap();
    assert_eq!(bench.notes(), ["after"]);
}

/// Two calls of every class, written in the opposite order while the writer is held, and the order they ran in.
async fn order(bench: &Bench) -> Vec<String> {
    let (held, go) = bench.hold().await;
    let names = ["heartbeat", "finalise", "mark", "claim", "enqueue", "operator"].into_iter().rev();
    let mut calls = Vec::new();
    for (class, name) in Class::ALL.into_iter().rev().zip(names) {
        for _ in 0..2 {
            let mut call = Box::pin(bench.note(class, name));
            submit(&mut call).await;
            calls.push(call);
        }
    }
    drop(go);
    held.await.unwrap();
    for call in calls {
        call.await.unwrap();
    }
    bench.notes()
}

#[tokio::test]
async fn after_one_of_each_class_the_calls_run_in_the_order_of_their_classes() {
    let bench = bench(FOREVER, FOREVER);
    assert_eq!(
        order(&bench).await,
        [
            "finalise",
            "mark",
            "claim",
            "enqueue",
            "operator",
            "heartbeat",
            "heartbeat",
            "finalise",
            "mark",
            "claim",
            "enqueue",
            "operator"
        ]
    );
}

#[tokio::test]
async fn a_transaction_without_time_still_takes_one_of_each_class() {
    let bench = bench(Duration::ZERO, FOREVER);
    assert_eq!(
        order(&bench).await,
        [
            "finalise",
            "mark",
            "claim",
            "enqueue",
            "operator",
            "heartbeat",
            "finalise",
            "mark",
            "claim",
            "enqueue",
            "operator",
            "heartbeat"
        ]
    );
}

#[tokio::test]
async fn calls_that_wait_together_are_one_transaction_with_one_clock_reading() {
    let bench = bench(FOREVER, FOREVER);
    let (held, go) = bench.hold().await;
    let times = Arc::new(Mutex::new(Vec::new()));
    let mut calls = Vec::new();
    for class in Class::ALL {
        let times = Arc::clone(&times);
        let mut call = Box::pin(bench.writer.submit(class, Effect::Writes, move |tx| {
            times.lock().unwrap().push(tx.now_ms());
            insert(tx, "one")?;
            // Another connection sees nothing yet.
            Ok(())
        }));
        submit(&mut call).await;
        calls.push(call);
    }
    assert!(bench.notes().is_empty());
    drop(go);
    held.await.unwrap();
    for call in calls {
        call.await.unwrap();
    }
    let times = times.lock().unwrap();
    assert!(times.iter().all(|time| *time == times[0]));
    assert_eq!(bench.notes().len(), 6);
}

#[tokio::test]
async fn a_foreign_lock_fails_a_call_at_its_limit_with_a_transient_error_that_names_the_file() {
    let bench = bench(FOREVER, Duration::from_millis(50));
    let other = Connection::open(&bench.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = bench.note(Class::Heartbeat, "too late").await.unwrap_err();
    assert!(error.is_transient());
    let text = error.to_string();
    assert!(text.contains("writer.db") && text.contains("50ms"), "{text}");
    other.execute_batch("ROLLBACK").unwrap();
    bench.note(Class::Heartbeat, "in time").await.unwrap();
    assert_eq!(bench.notes(), ["in time"]);
}

#[tokio::test]
async fn a_call_waits_for_a_foreign_lock_and_then_runs() {
    let bench = bench(FOREVER, FOREVER);
    let other = Connection::open(&bench.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; INSERT INTO Notes VALUES ('theirs')").unwrap();
    let mut ours = Box::pin(bench.note(Class::Mark, "ours"));
    submit(&mut ours).await;
    other.execute_batch("COMMIT").unwrap();
    ours.await.unwrap();
    assert_eq!(bench.notes(), ["theirs", "ours"]);
}

#[tokio::test]
async fn dropping_the_writer_runs_what_waits_first() {
    let bench = bench(FOREVER, FOREVER);
    let (held, go) = bench.hold().await;
    let (reply, answer) = oneshot::channel();
    let call = Call::new(
        |tx: &Tx<'_>| insert(tx, "queued"),
        reply,
        Instant::now() + FOREVER,
        Effect::Writes,
    );
    bench.writer.shared.waiting.push(Class::Operator, Box::new(call));
    drop(held);
    drop(go);
    let Bench { writer, _directory, path } = bench;
    drop(writer);
    answer.await.unwrap().unwrap();
    assert_eq!(notes(&path), ["queued"]);
}

#[tokio::test]
async fn a_call_whose_caller_has_gone_is_not_run() {
    let bench = bench(FOREVER, FOREVER);
    let (held, go) = bench.hold().await;
    let mut abandoned = Box::pin(bench.note(Class::Claim, "abandoned"));
    submit(&mut abandoned).await;
    drop(abandoned);
    drop(go);
    held.await.unwrap();
    bench.note(Class::Mark, "after").await.unwrap();
    assert_eq!(bench.notes(), ["after"]);
}

#[tokio::test]
async fn a_lost_reply_is_committed_and_answered_with_a_transient_error() {
    let bench = bench(FOREVER, FOREVER);
    bench.writer.lose_replies(1);
    let read = bench.writer.submit(Class::Claim, Effect::Reads, |_| Ok(7)).await;
    assert_eq!(read.unwrap(), 7);
    let error = bench.note(Class::Mark, "kept").await.unwrap_err();
    assert!(error.is_transient());
    assert_eq!(bench.notes(), ["kept"]);
    bench.note(Class::Mark, "told").await.unwrap();
}

#[tokio::test]
async fn a_broken_connection_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("writer.db");
    let good = Connection::open(&path).unwrap();
    good.execute_batch("CREATE TABLE Notes (Text)").unwrap();
    let read_only = Connection::open_with_flags(&path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY);
    let mut next = Some(good);
    let setup = Setup {
        connection: read_only.unwrap(),
        reopen: Some(Box::new(move || next.take().ok_or_else(stopped))),
        name: DatabaseName::new("the test database"),
        call_limit: FOREVER,
        work_arrived: watch::Sender::new(0),
        checkpoints: None,
        place: None,
    };
    let writer = Writer::start(setup).unwrap();
    let write = || writer.submit(Class::Mark, Effect::Writes, |tx| insert(tx, "x"));
    let error = write().await.unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("permissions"), "{error}");
    write().await.unwrap();
}
