//! Reads every file of a directory, one job a file, and keeps each file's size, lines and SHA-256 as the job's output.
//!
//! ```sh
//! cargo run --release --example index_files -- DIRECTORY --sums sums.txt
//! sha256sum --check --quiet sums.txt
//! ```
//!
//! Without a directory it reads this repository, except for `.git` and `target`.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs::File,
    io::{BufWriter, Read, Write, sink},
    path::{Path, PathBuf},
    sync::mpsc::{self, Sender},
    time::Instant,
};

use chokaq::{
    Pool, Worker,
    prelude::*,
    serde::{Deserialize, Serialize},
};
use sha2::{Digest, Sha256};
use walkdir::{DirEntry, WalkDir};

#[job(queue = "files", retries = 1, backoff = fixed("100ms"))]
struct IndexFile {
    path: String,
}

/// What the archive keeps of one file.
#[derive(Serialize, Deserialize)]
#[serde(crate = "chokaq::serde")]
struct IndexedFile {
    path: String,
    size: u64,
    lines: u64,
    sha256: String,
}

impl Job for IndexFile {
    type Output = IndexedFile;
    async fn run(self, ctx: &JobContext) -> Result<IndexedFile, JobError> {
        let ctx = ctx.clone();
        tokio::task::spawn_blocking(move || read(self.path, &ctx)).await?
    }
}

/// On a thread where blocking is allowed, in pieces: a file may be larger than the memory.
fn read(path: String, ctx: &JobContext) -> Result<IndexedFile, JobError> {
    let (mut size, mut lines, mut hash) = (0, 0, Sha256::new());
    let named = |e| format!("{path}: {e}");
    let mut file = File::open(&path).map_err(named)?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let piece = match file.read(&mut buffer).map_err(named)? {
            0 => break,
            length => &buffer[..length],
        };
        if ctx.is_cancelled() {
            return Err("cancelled".into());
        }
        size += piece.len() as u64;
        lines += piece.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
        hash.update(piece);
    }
    Ok(IndexedFile { path, size, lines, sha256: hex(&hash.finalize()) })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let (root, sums) = arguments()?;
    let mut sums: Box<dyn Write> = match sums {
        Some(path) => Box::new(BufWriter::new(File::create(path)?)),
        None => Box::new(sink()),
    };
    let directory = tempfile::tempdir()?;
    let database = directory.path().join("index.db");
    let pool = Pool::connect(&format!("sqlite:{}", database.display())).await?;

    let (not_enqueued, problems) = mpsc::channel();
    IndexFile::enqueue_all(&pool, jobs(root, not_enqueued))
        .idempotency_key_by(|job| idempotency_key(&job.path))
        .await?;
    Worker::builder(&pool).build()?.run_until_idle().await?;

    let (mut files, mut bytes, mut lines) = (0u64, 0, 0);
    let mut after = None;
    loop {
        let page = pool.operator().archive_page(None, after, 500).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.cursor());
        for row in &page {
            let file: IndexedFile = serde_json::from_str(row.output.as_deref().unwrap_or("null"))?;
            (files, bytes, lines) = (files + 1, bytes + file.size, lines + file.lines);
            writeln!(sums, "{}", sums_line(&file))?;
        }
    }
    sums.flush()?;

    let mut failures: Vec<String> = problems.try_iter().collect();
    failures.extend(unreadable(&pool).await?);
    for failure in &failures {
        eprintln!("failed: {failure}");
    }
    println!("files      {files:>12}");
    println!("bytes      {bytes:>12}");
    println!("lines      {lines:>12}");
    println!("failures   {:>12}", failures.len());
    println!("seconds    {:>12.2}", started.elapsed().as_secs_f64());
    Ok(())
}

fn arguments() -> Result<(Option<PathBuf>, Option<PathBuf>), Box<dyn Error>> {
    let (mut root, mut sums) = (None, None);
    let mut arguments = env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--sums" {
            sums = Some(arguments.next().ok_or("--sums needs a file")?.into());
        } else if root.replace(argument.into()).is_some() {
            return Err("usage: index_files [DIRECTORY] [--sums FILE]".into());
        }
    }
    Ok((root, sums))
}

/// A job for every regular file, found while they are enqueued; what cannot be one is reported.
fn jobs(root: Option<PathBuf>, problems: Sender<String>) -> impl Iterator<Item = IndexFile> + Send {
    let skipped: &[&str] = if root.is_some() { &[] } else { &[".git", "target"] };
    let root = root.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    let walk = WalkDir::new(root).into_iter();
    let walk = walk.filter_entry(|entry| !skipped.iter().any(|name| entry.file_name() == *name));
    walk.filter_map(move |entry| {
        match entry.map_err(|e| e.to_string()).and_then(|entry| path_of(&entry)) {
            Ok(path) => path.map(|path| IndexFile { path }),
            Err(problem) => {
                let _ = problems.send(problem);
                None
            }
        }
    })
}

/// The payload is JSON, so a path that is not Unicode cannot be in it.
fn path_of(entry: &DirEntry) -> Result<Option<String>, String> {
    if !entry.file_type().is_file() {
        return Ok(None);
    }
    match entry.path().to_str() {
        Some(path) => Ok(Some(path.to_owned())),
        None => Err(format!("{}: the path is not Unicode", entry.path().display())),
    }
}

/// The path, or its hash where the path is not a valid key: at most 255 characters, no white space at its ends.
fn idempotency_key(path: &str) -> String {
    if path.len() <= 255 && path.trim() == path {
        path.to_owned()
    } else {
        hex(&Sha256::digest(path))
    }
}

/// The jobs that gave up, with their last error.
async fn unreadable(pool: &Pool) -> Result<Vec<String>, Box<dyn Error>> {
    let mut failures = Vec::new();
    let mut after = None;
    loop {
        let page = pool.operator().dlq_page(None, after, 500).await?;
        let Some(last) = page.last() else { return Ok(failures) };
        after = Some(last.cursor());
        failures.extend(page.into_iter().map(|job| job.error.unwrap_or_default()));
    }
}

/// One line of `sha256sum`, which marks a line with escapes by a backslash before it.
fn sums_line(file: &IndexedFile) -> String {
    let escaped = file.path.replace('\\', r"\\").replace('\n', r"\n").replace('\r', r"\r");
    let mark = if escaped == file.path { "" } else { r"\" };
    format!("{mark}{}  {escaped}", file.sha256)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
