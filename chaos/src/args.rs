//! The command line.

use std::{path::PathBuf, str::FromStr, time::Duration};

pub(crate) const USAGE: &str = "\
usage: chokaq-chaos MODE [--name value]...
modes:
  chaos    workers are killed, stopped and starved, operators interfere, an observer checks: 0 violations or exit code 1
           --seed N (random)  --minutes M (20)  --processes P (4)  --jobs N (100000)
  blocked  handlers block every thread of the runtime for three times the lease: each job runs once
           --threads T (16)  --seconds S (45)
  stall    the database stands still for twice the lease while jobs run: none becomes a zombie, all succeed
           --jobs N (50)  --lease S (15)
--url URL  the database; the default is an SQLite file in a folder of its own. On SQL Server the tables must be empty, and
           READ_COMMITTED_SNAPSHOT on: each look of the observer is one statement.";

/// What was asked on the command line.
#[derive(Debug, Clone)]
pub(crate) struct Args {
    pub(crate) mode: String,
    pub(crate) seed: u64,
    pub(crate) time: Duration,
    pub(crate) processes: usize,
    /// `None`: what the mode takes by default.
    pub(crate) jobs: Option<usize>,
    pub(crate) threads: usize,
    pub(crate) seconds: u64,
    pub(crate) lease: u64,
    pub(crate) url: Option<String>,
    /// Where a worker process writes what it did.
    pub(crate) journal: PathBuf,
}

impl Args {
    /// `None`: the usage was asked for.
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Option<Self>, String> {
        let mut words = words.into_iter();
        let mut args = Self {
            mode: words.next().unwrap_or_else(|| "--help".to_owned()),
            seed: fastrand::u64(..),
            time: Duration::from_mins(20),
            processes: 4,
            jobs: None,
            threads: 16,
            seconds: 45,
            lease: 15,
            url: None,
            journal: PathBuf::new(),
        };
        if args.mode == "--help" {
            return Ok(None);
        }
        if !["chaos", "blocked", "stall", "worker"].contains(&args.mode.as_str()) {
            return Err(format!("there is no mode {:?}", args.mode));
        }
        while let Some(name) = words.next() {
            let value = words.next().ok_or(format!("{name} needs a value"))?;
            match name.as_str() {
                "--seed" => args.seed = number(&name, &value)?,
                "--minutes" => args.time = minutes(&name, &value)?,
                "--processes" => args.processes = number(&name, &value)?,
                "--jobs" => args.jobs = Some(number(&name, &value)?),
                "--threads" => args.threads = number(&name, &value)?,
                "--seconds" => args.seconds = number(&name, &value)?,
                "--lease" => args.lease = number(&name, &value)?,
                "--url" => args.url = Some(value),
                "--journal" => args.journal = value.into(),
                _ => return Err(format!("there is no option {name:?}")),
            }
        }
        Ok(Some(args))
    }
}

fn number<T: FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{name} {text}: a number is expected"))
}

fn minutes(name: &str, text: &str) -> Result<Duration, String> {
    let minutes: f64 = number(name, text)?;
    Duration::try_from_secs_f64(60.0 * minutes).map_err(|e| format!("{name} {text}: {e}"))
}
