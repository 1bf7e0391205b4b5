//! `docs/errors.md` has every text that can be provoked here, and no text that is said no more.

#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use chokaq::{
    Edits, Error, JobId, Pool, Purge, Worker,
    prelude::*,
    storage::sqlite::{Location, SqliteOptions, SqliteStorage},
};
use tempfile::TempDir;

/// What this file cannot provoke: a full disk, a file system without shared memory, another build of chokaq, a fault
/// of chokaq. Some have tests beside the code that says them.
const NOT_PROVOKED_HERE: &[&str] = &[
    "this program was built without SQLite: …",
    "this program was built without SQL Server: …",
    "… stays in journal mode … where WAL is needed: …",
    "the … thread cannot be started: …",
    "… is locked by another process: the call can be repeated …",
    "… cannot grow, its disk is full: free some space …",
    "… could not be read or written: …",
    "… cannot be written: …",
    "… cannot be opened: …",
    "… cannot be locked: …",
    "… was deleted or moved while in use…",
    "a transaction on … was undone with the calls in it: …",
    "the storage is closed",
    "opening the database failed…",
    "the worker's … cannot start…",
    "the worker's thread panicked; its log says why",
    "…: this is a bug",
    "the worker stopped and left …: rescue finds these jobs when their lease of … has run out",
    "the circuit of the type … was still open when the job's lifetime ended",
    "the worker could not renew the job's lease",
    "no heartbeat for … s: the worker … died, froze or lost the database",
];

/// The code spans in the columns that are headed `text`.
fn documented() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors.md");
    let page = fs::read_to_string(path).unwrap();
    let mut texts = Vec::new();
    let mut column = None;
    for line in page.lines() {
        let mut cells = line.split(" | ").map(|cell| cell.trim_matches(['|', ' ']));
        if !line.starts_with("| ") {
            column = if line.starts_with("|--") { column } else { None };
        } else if let Some(column) = column {
            let cell: &str = cells.nth(column).unwrap();
            texts
                .extend(cell.strip_prefix('`').and_then(|c| c.strip_suffix('`')).map(String::from));
        } else {
            column = cells.position(|cell| cell == "text");
        }
    }
    assert!(texts.len() > 50, "the tables are not where this test looks");
    texts
}

/// Whether the text is the pattern's fixed parts, with anything where the pattern has `…`.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn a_pattern_matches_what_has_its_fixed_parts_in_order() {
    assert!(matches("the … is …: trim it", "the queue is \" a\": trim it"));
    assert!(matches("plain", "plain"));
    for (pattern, text) in
        [("plain", "plainly"), ("a … b …", "b x a y"), ("a …: b", "a x: b?"), ("a…", "b")]
    {
        assert!(!matches(pattern, text), "{pattern} {text}");
    }
}

#[job]
struct Known {
    text: String,
}

impl Job for Known {
    type Output = ();
    async fn run(self, _: &JobContext) -> Result<(), JobError> {
        Ok(())
    }
}

fn known(text: &str) -> Known {
    Known { text: text.to_owned() }
}

/// Another type with the same key.
#[job(type_key = "known", enqueue_only)]
struct Same;

impl Job for Same {
    type Output = ();
    async fn run(self, _: &JobContext) -> Result<(), JobError> {
        Ok(())
    }
}

/// A map whose keys are no text cannot be JSON.
#[job(enqueue_only)]
struct Unwritable {
    map: HashMap<(u8, u8), u8>,
}

/// Ends as its text says.
#[job(retries = 0, timeout = "20ms")]
struct Ends {
    how: String,
}

impl Job for Ends {
    type Output = serde_json::Value;
    async fn run(self, ctx: &JobContext) -> Result<serde_json::Value, JobError> {
        match self.how.as_str() {
            "panic" => panic!("index out of range"),
            "hang" => std::future::pending().await,
            "cancelled" => {
                ctx.pool().cancel(ctx.id()).await?;
                std::future::pending().await
            }
            "stateless" => Ok(ctx.state::<Known>()?.text.clone().into()),
            _ => Ok("x".repeat(1_000_001).into()),
        }
    }
}

#[job(enqueue_only)]
struct AnswersNoJson;

impl Job for AnswersNoJson {
    type Output = HashMap<(u8, u8), u8>;
    async fn run(self, _: &JobContext) -> Result<Self::Output, JobError> {
        Ok([((1, 2), 3)].into())
    }
}

fn url(folder: &TempDir) -> String {
    format!("sqlite:{}", folder.path().join("jobs.db").display())
}

fn execute(folder: &TempDir, sql: &str) {
    let connection = rusqlite::Connection::open(folder.path().join("jobs.db")).unwrap();
    connection.busy_timeout(Duration::from_secs(30)).unwrap();
    connection.execute_batch(sql).unwrap();
}

async fn refused_input() -> Vec<Error> {
    let pool = Pool::connect("sqlite::memory:").await.unwrap();
    let long = "x".repeat(256);
    let operator = pool.operator();
    let twice = JobId::new();
    let ran = known("x").enqueue(&pool).await.unwrap().id;
    execute_all(&pool).await;
    // `()` leaves no output; the detail is the one thing that a test can alter.
    let mut detail = pool.job(ran).await.unwrap().unwrap();
    detail.output = Some("7".to_owned());
    vec![
        known("").enqueue(&pool).queue("").await.unwrap_err(),
        known("").enqueue(&pool).idempotency_key(&long).await.unwrap_err(),
        known("").enqueue(&pool).queue(" mail").await.unwrap_err(),
        known("").enqueue(&pool).tags(vec!["y".repeat(200); 6]).await.unwrap_err(),
        known(&"x".repeat(1_000_001)).enqueue(&pool).await.unwrap_err(),
        known("").enqueue(&pool).delay(Duration::MAX).await.unwrap_err(),
        Unwritable { map: [((1, 2), 3)].into() }.enqueue(&pool).await.unwrap_err(),
        Known::enqueue_all(&pool, [known(&"x".repeat(1_000_001))]).await.unwrap_err(),
        pool.enqueue_raw("known", "{").await.unwrap_err(),
        operator.resurrect(&[twice], Edits::default().payload("{")).await.unwrap_err(),
        operator.cancel(&[twice, twice], "").await.unwrap_err(),
        operator.cancel(&[twice; 1_001], "").await.unwrap_err(),
        operator.set_zombie_timeout("mail", Some(Duration::ZERO)).await.unwrap_err(),
        operator.purge(Purge::DeadLetters, Duration::from_secs(59)).await.unwrap_err(),
        "not-an-id".parse::<JobId>().unwrap_err(),
        detail.output::<String>().unwrap_err(),
    ]
}

async fn execute_all(pool: &Pool) {
    let worker = Worker::builder(pool).only::<(Known,)>().build().unwrap();
    worker.run_until_idle().await.unwrap();
}

async fn settings_and_urls() -> Vec<Error> {
    let pool = Pool::connect("sqlite::memory:").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let build = || Worker::builder(&pool).only::<(Known,)>();
    let mut errors = vec![
        build().only::<(Known, Same)>().build().unwrap_err(),
        build().concurrency(0).build().unwrap_err(),
        build().scan_interval(Duration::MAX).build().unwrap_err(),
        build().shutdown_grace(Duration::MAX).build().unwrap_err(),
        build().lease(Duration::from_secs(20)).build().unwrap_err(),
        build().jitter(2.0).build().unwrap_err(),
        Pool::builder("sqlite::memory:").timeout(Duration::ZERO).connect().await.unwrap_err(),
        Pool::builder("sqlite::memory:")
            .backoff(Duration::from_secs(1), 0.5, Duration::from_secs(9))
            .connect()
            .await
            .unwrap_err(),
        build().queues(Vec::<String>::new()).build().unwrap_err(),
        build().queues(["*", "mail"]).build().unwrap_err(),
    ];
    let directory = format!("sqlite:{}", folder.path().display());
    let missing = format!("{directory}/no/such/jobs.db");
    for url in [
        "postgres://x",
        "mssql://x",
        "mssql://u:p@x?zebra=1",
        "sqlite:",
        "sqlite:a.db?mode=ro",
        &missing,
        &directory,
    ] {
        errors.push(Pool::connect(url).await.unwrap_err());
    }
    errors
}

/// The only way to another environment is another process; its `main` prints the error.
fn fails(arguments: &[&str], variables: &[(&str, &OsStr)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_fails"))
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    stderr.strip_prefix("Error: ").expect("main returned it").trim_end().to_owned()
}

fn environment_and_file() -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let faults = "lease = \"3m\"\n[worker]\nconcurency = 3\nbatch = 0\n";
    let faults = file("chokaq.toml", faults);
    let broken = file("broken.toml", "[worker]\nlease = = 3\n");
    let connect = |name, value: &OsStr| fails(&["connect"], &[(name, value)]);
    let mut texts = vec![
        connect("CHOKAQ_LEASE", "soon".as_ref()),
        connect("CHOKAQ_CONFIG", "nowhere.toml".as_ref()),
        connect("CHOKAQ_CONFIG", faults.as_os_str()),
        connect("CHOKAQ_CONFIG", broken.as_os_str()),
        fails(&["build"], &[]),
    ];
    #[cfg(unix)]
    texts.push(connect("CHOKAQ_LEASE", std::os::unix::ffi::OsStrExt::from_bytes(b"\xff")));
    texts
}

async fn too_new_a_schema() -> Error {
    let folder = tempfile::tempdir().unwrap();
    drop(Pool::connect(url(&folder)).await.unwrap());
    execute(
        &folder,
        "INSERT INTO SchemaMigrations (Version, Name, AppliedAtUtc, AppliedBy, MinBinary)
         VALUES (9999, '9999_of_a_later_release', 0, '9.9.9', 9999)",
    );
    Pool::connect(url(&folder)).await.unwrap_err()
}

async fn a_locked_database() -> Error {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    let options =
        SqliteOptions { call_limit: Duration::from_millis(50), ..SqliteOptions::default() };
    let storage = SqliteStorage::open(Location::File(path.clone()), options).unwrap();
    let other = rusqlite::Connection::open(path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    Pool::over(storage).operator().pause_queue("mail").await.unwrap_err()
}

async fn permanent_failures() -> Vec<Error> {
    let letter = tempfile::tempdir().unwrap();
    let text = "Dear Ada, this is not a database but a letter, and a long one. ".repeat(100);
    fs::write(letter.path().join("jobs.db"), text).unwrap();
    let mut errors = vec![Pool::connect(url(&letter)).await.unwrap_err()];

    let folder = tempfile::tempdir().unwrap();
    let pool = Pool::connect(url(&folder)).await.unwrap();
    let id = known("").enqueue(&pool).await.unwrap().id;
    pool.cancel(id).await.unwrap();
    execute(&folder, "UPDATE JobsDLQ SET Reason = 'Whim'; DROP TABLE MetricBuckets;");
    let operator = pool.operator();
    errors.push(operator.dlq_page(None, None, 10).await.unwrap_err());
    errors.push(operator.throughput_stats(Duration::from_mins(1)).await.unwrap_err());
    errors
}

/// The errors and the notes that stand in the histories of jobs that ended in every way.
async fn histories() -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let pool = Pool::connect(url(&folder)).await.unwrap();
    let mut ids = Vec::new();
    for how in ["panic", "hang", "stateless", "large"] {
        ids.push(Ends { how: how.to_owned() }.enqueue(&pool).await.unwrap().id);
    }
    ids.push(pool.enqueue_raw("ends", r#"{"how": 7}"#).await.unwrap().id);
    ids.push(AnswersNoJson.enqueue(&pool).await.unwrap().id);
    let waiting = known("").enqueue(&pool).await.unwrap().id;
    pool.cancel(waiting).await.unwrap();
    ids.push(waiting);
    let unknown = pool.enqueue_raw("of_another_release", "{}").await.unwrap().id;
    execute(
        &folder,
        "UPDATE JobsHot SET UnknownSinceUtc = CreatedAtUtc - 7200000 WHERE Type = 'of_another_release'",
    );
    ids.push(unknown);
    let build = || {
        let builder = Worker::builder(&pool).only::<(Ends, AnswersNoJson)>();
        builder.cancel_grace(Duration::from_millis(1)).build().unwrap()
    };
    build().run_until_idle().await.unwrap();
    // A job with time enough to hear of its cancellation.
    let slow = Ends { how: "cancelled".to_owned() }.enqueue(&pool).await.unwrap().id;
    execute(&folder, "UPDATE JobsHot SET TimeoutMs = 3600000");
    build().run_until_idle().await.unwrap();
    ids.push(slow);

    let mut texts = Vec::new();
    for id in ids {
        let job = pool.job(id).await.unwrap().unwrap();
        assert!(job.finished_at.is_some(), "{job:?}");
        texts.extend(job.errors.into_iter().map(|error| error.text));
        texts.extend(job.output_note);
    }
    texts
}

/// Every text that this file provokes, each with the predicate that is true of its error.
async fn provoked() -> Vec<String> {
    let mut texts = Vec::new();
    let mut keep = |errors: Vec<Error>, predicate: fn(&Error) -> bool| {
        for error in errors {
            assert!(predicate(&error), "{error}");
            texts.push(error.to_string());
        }
    };
    keep(Box::pin(refused_input()).await, Error::is_invalid_input);
    keep(settings_and_urls().await, Error::is_config);
    keep(vec![too_new_a_schema().await], Error::is_schema);
    keep(vec![a_locked_database().await], Error::is_transient);
    keep(permanent_failures().await, |e| {
        !e.is_transient() && !e.is_config() && !e.is_invalid_input() && !e.is_schema()
    });
    texts.extend(environment_and_file());
    texts.extend(histories().await);
    // A file with several faults says one in a line.
    texts.iter().flat_map(|text| text.lines()).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_page_has_every_text_that_can_be_provoked_and_none_that_is_said_no_more() {
    let (documented, provoked) = (documented(), Box::pin(provoked()).await);
    let unknown: Vec<_> = provoked
        .iter()
        .filter(|text| !documented.iter().any(|pattern| matches(pattern, text)))
        .collect();
    assert!(unknown.is_empty(), "docs/errors.md lacks {unknown:#?}");

    let stale: Vec<_> = documented
        .iter()
        .filter(|pattern| !NOT_PROVOKED_HERE.contains(&pattern.as_str()))
        .filter(|pattern| !provoked.iter().any(|text| matches(pattern, text)))
        .collect();
    assert!(stale.is_empty(), "docs/errors.md has what nothing said: {stale:#?}");
    for excused in NOT_PROVOKED_HERE {
        assert!(documented.iter().any(|pattern| pattern == excused), "{excused}");
    }
}

#[test]
fn an_error_returned_from_main_prints_its_message_and_its_causes_in_one_line() {
    let text = fails(&["enqueue"], &[]);
    assert_eq!(
        text,
        "1000 jobs were committed before this failed, the rest were not (to go on, skip the first 1000): \
         the payload of a \"text\" job has 1000012 bytes; the limit is 1000000: store the data elsewhere and \
         enqueue a reference"
    );
}

#[test]
fn an_error_never_prints_the_password_of_a_url() {
    let url = "postgres://ada:open-sesame@db.example.com/jobs";
    let texts = [
        fails(&["connect", url], &[]),
        fails(&["connect", "mssql://sa:open-sesame@localhost/jobs?open-sesame"], &[]),
        fails(&["connect", "Server=localhost;Password=open-sesame;Zebra=open-sesame"], &[]),
        fails(&["connect", "sqlite:a.db?key=open-sesame"], &[]),
    ];
    for text in &texts {
        assert!(text.contains("URL") && !text.contains("open-sesame"), "{text}");
    }
}
