//! The command line, the same as that of the programs that measure other job systems.

use std::{collections::HashMap, str::FromStr};

use tempfile::TempDir;

pub(crate) const USAGE: &str = "\
usage: chokaq-bench --mode MODE [--jobs N] [--concurrency C] [--db FILE] [--opt key=value]...
modes:
  drain          N no-op jobs stored beforehand; from worker start until the database shows all of them done
  enqueue-one    N sequential awaited calls
  enqueue-batch  N jobs through enqueue_all
  enqueue-many   N single calls from C tasks at once
  latency        N times, idle worker: from the call of enqueue to the handler's first line
  memory         the resident memory of a worker through which N jobs pass (Linux)
  scale          the cost of fetching 100 jobs as pending and delayed rows grow (up to N rows)
options: sync=full|normal (default full), sizes=1000,1000000 and shape=TEXT (scale), threads=T (tokio's workers)";

/// What was asked on the command line.
pub(crate) struct Args {
    pub(crate) mode: String,
    pub(crate) jobs: usize,
    pub(crate) concurrency: usize,
    options: HashMap<String, String>,
    database: String,
    /// Removed with the program, where no file was named.
    _folder: TempDir,
}

impl Args {
    pub(crate) fn parse() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let mut args = Self {
            mode: String::new(),
            jobs: 0,
            concurrency: 20,
            options: HashMap::new(),
            database: folder.path().join("bench.db").display().to_string(),
            _folder: folder,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--mode" => args.mode = value()?,
                "--jobs" => args.jobs = number(&value()?)?,
                "--concurrency" => args.concurrency = number(&value()?)?,
                "--db" => args.database = value()?,
                "--opt" => {
                    let option = value()?;
                    let (key, value) =
                        option.split_once('=').ok_or(format!("--opt {option}: key=value"))?;
                    args.options.insert(key.to_owned(), value.to_owned());
                }
                _ => return Err(format!("unknown argument {word}")),
            }
        }
        if args.jobs == 0 {
            args.jobs = match args.mode.as_str() {
                "latency" => 500,
                "scale" => 1_000_000,
                _ => 10_000,
            };
        }
        Ok(args)
    }

    pub(crate) fn option(&self, key: &str) -> Option<&str> {
        self.options.get(key).map(String::as_str)
    }

    pub(crate) fn synchronous(&self) -> &str {
        self.option("sync").unwrap_or("full")
    }

    pub(crate) fn url(&self) -> String {
        format!("sqlite:{}?synchronous={}", self.database, self.synchronous())
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text} is not a number"))
}
