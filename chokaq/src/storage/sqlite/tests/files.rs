//! Files: opening, sharing, and what stands in the way.

use super::*;
use crate::{
    Error,
    storage::{
        MigrationStorage,
        sqlite::{tx::Tx, waiting::Class},
    },
};

fn open(path: &Path, options: SqliteOptions) -> Result<Arc<SqliteStorage>, Error> {
    SqliteStorage::open(Location::File(path.to_owned()), options)
}

#[tokio::test]
async fn what_was_stored_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let new = job("mail");
    let id = new.id;
    file(&path).enqueue(vec![new]).await.unwrap();
    let storage = file(&path);
    assert!(storage.migrate().await.unwrap().is_empty());
    assert_eq!(storage.migration_plan().await.unwrap(), "");
    assert_eq!(fetch(&storage, 9).await.jobs[0].lease.job, id);
}

#[test]
fn a_missing_directory_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nowhere").join("jobs.db");
    let error = open(&path, SqliteOptions::default()).unwrap_err();
    assert!(error.is_config(), "{error}");
    assert!(error.to_string().contains("nowhere does not exist"), "{error}");
}

#[test]
fn a_file_that_is_no_database_is_named_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("letter.txt");
    let text = "Dear reader, this is no database. ".repeat(100);
    std::fs::write(&path, &text).unwrap();
    let error = open(&path, SqliteOptions::default()).unwrap_err();
    assert!(!error.is_transient());
    assert!(error.to_string().contains("letter.txt is not a SQLite database"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_name_that_looks_like_a_uri_is_a_file_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file:jobs.db?mode=memory");
    open(&path, SqliteOptions::default()).unwrap();
    assert!(path.is_file());
}

#[test]
fn several_may_open_and_migrate_a_new_file_at_once() {
    for _ in 0..5 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs.db");
        let start = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    open(&path, SqliteOptions::default()).unwrap();
                });
            }
        });
    }
}

#[tokio::test]
async fn two_storages_share_a_file_and_no_row_is_claimed_twice() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let (a, b) = (file(&path), file(&path));
    a.enqueue((0..200).map(|_| job("mail")).collect()).await.unwrap();
    let claim = async |storage: &SqliteStorage| {
        let mut claimed = Vec::new();
        loop {
            let jobs = fetch(storage, 7).await.jobs;
            if jobs.is_empty() {
                return claimed;
            }
            claimed.extend(jobs.into_iter().map(|job| job.lease.job));
        }
    };
    let (mut of_a, of_b) = tokio::join!(claim(&a), claim(&b));
    of_a.extend(of_b);
    let distinct: std::collections::HashSet<_> = of_a.iter().collect();
    assert_eq!((of_a.len(), distinct.len()), (200, 200));
}

#[tokio::test]
async fn readers_answer_while_another_process_holds_the_write_lock() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let options =
        SqliteOptions { call_limit: Duration::from_millis(50), ..SqliteOptions::default() };
    let storage = open(&path, options).unwrap();
    let new = job("mail");
    let id = new.id;
    storage.enqueue(vec![new]).await.unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(detail(&storage, id).await.id, id);
    let error = storage.enqueue(vec![job("mail")]).await.unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("jobs.db"), "{error}");
    // A database that is up to date opens all the same.
    open(&path, options).unwrap();
}

#[tokio::test]
async fn the_wal_is_begun_anew_under_writes_that_do_not_pause() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let options = SqliteOptions { synchronous: Synchronous::Normal, ..SqliteOptions::default() };
    let storage = open(&path, options).unwrap();
    let payload = "x".repeat(100_000);
    // The header counts how often the file was begun.
    let count = || {
        let wal = std::fs::read(directory.path().join("jobs.db-wal")).unwrap();
        wal.get(12..16).map(<[u8]>::to_vec)
    };
    let write = async || {
        let batch = (0..10).map(|_| NewJob { payload: payload.clone(), ..job("mail") });
        storage.enqueue(batch.collect()).await.unwrap();
    };
    write().await;
    let first = count();
    for _ in 0..1_000 {
        for _ in 0..10 {
            write().await;
        }
        if count() != first {
            return;
        }
    }
    panic!("10 GB were written into one WAL");
}

#[tokio::test]
async fn a_file_that_is_deleted_while_in_use_takes_no_job_and_goes_on_when_it_is_put_back() {
    let directory = tempfile::tempdir().unwrap();
    let (path, aside) = (directory.path().join("jobs.db"), directory.path().join("aside.db"));
    let storage = file(&path);
    storage.enqueue(vec![job("mail")]).await.unwrap();
    std::fs::rename(&path, &aside).unwrap();
    let error = storage.enqueue(vec![job("mail")]).await.unwrap_err();
    assert!(error.is_transient());
    assert!(error.to_string().contains("jobs.db was deleted or moved while in use"), "{error}");
    assert!(storage.get_summary_stats().await.unwrap_err().is_transient());
    assert!(!path.exists(), "nothing is made in its place");
    std::fs::rename(&aside, &path).unwrap();
    storage.enqueue(vec![job("mail")]).await.unwrap();
    assert_eq!(storage.get_summary_stats().await.unwrap().pending, 2);
}

#[tokio::test]
async fn a_file_that_is_replaced_while_in_use_is_neither_written_nor_opened() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let storage = file(&path);
    storage.enqueue(vec![job("mail")]).await.unwrap();
    let aside = directory.path().join("aside.db");
    std::fs::rename(&path, &aside).unwrap();
    std::fs::write(&path, "another file").unwrap();
    let error = storage.enqueue(vec![job("mail")]).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "another file");
    std::fs::rename(&aside, &path).unwrap();
    storage.enqueue(vec![job("mail")]).await.unwrap();
    assert_eq!(storage.get_summary_stats().await.unwrap().pending, 2);
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_set_aside_and_the_rest_is_claimed() {
    let storage = memory();
    let batch = (0..5).map(|_| job("mail")).collect();
    storage.enqueue(batch).await.unwrap();
    let harm = |tx: &Tx<'_>| {
        let connection = tx.connection();
        connection.execute("UPDATE JobsHot SET TimeoutMs = -1 WHERE Seq = 1", [])?;
        connection.execute("UPDATE JobsHot SET Id = x'0102' WHERE Seq = 2", [])?;
        Ok(())
    };
    storage.write(Class::Operator, harm).await.unwrap();
    assert_eq!(fetch(&storage, 9).await.jobs.len(), 3);
    assert_eq!(fetch(&storage, 9).await.jobs.len(), 0);
    let stats = storage.get_summary_stats().await.unwrap();
    assert_eq!((stats.pending, stats.fetched), (2, 3));
    let mend = |tx: &Tx<'_>| {
        let mend = "UPDATE JobsHot SET TimeoutMs = 1000, ScheduledAtUtc = 0 WHERE Seq = 1";
        Ok(tx.connection().execute(mend, [])?)
    };
    storage.write(Class::Operator, mend).await.unwrap();
    assert_eq!(fetch(&storage, 9).await.jobs[0].lease.seq, 1);
}

#[tokio::test]
async fn a_fetcher_is_told_of_delayed_rows_of_its_own_queues_only() {
    let storage = memory();
    let delayed =
        |queue, seconds| NewJob { due: Due::After(Duration::from_secs(seconds)), ..job(queue) };
    storage.enqueue(vec![delayed("theirs", 5), delayed("ours", 60)]).await.unwrap();
    let of = |queues: &[&str]| {
        let queues = Some(queues.iter().map(|queue| (*queue).to_owned()).collect());
        storage.fetch_next_batch(FetchRequest { queues, ..request(9) })
    };
    let due = of(&["ours"]).await.unwrap().next_due.unwrap();
    assert!(due > Duration::from_secs(30), "{due:?}");
    let due = of(&["ours", "theirs"]).await.unwrap().next_due.unwrap();
    assert!(due <= Duration::from_secs(5), "{due:?}");
    assert_eq!(of(&["nobodys"]).await.unwrap().next_due, None);
}
