//! The command line.

use std::time::Duration;

pub(crate) const USAGE: &str = "\
usage: mssql-proof --url mssql://user:password@host:1433/database [--rows 10000,1000000] [--rcsi on,off]
                   [--deadlock-seconds 2] [--only NAME,NAME] [--any-engine yes]

Makes a schema of its own (proof_ and digits) in the database, fills it to each number of rows, runs every statement of
chokaq there, prints tables in Markdown, and drops the schema. The numbers are those of JobsHot; JobsArchive gets as many,
JobsDLQ a tenth. Ten million rows take some 15 GB with their log, and an hour to fill.

  --url               the server; or the variable CHOKAQ_PROOF_URL, which no list of processes shows
  --rows              how many rows, one run each; default 10000
  --rcsi              READ_COMMITTED_SNAPSHOT on, off, or one after the other; default: as the database has it. It is set
                      for the WHOLE database (ALTER, and nobody else in it) and set back at the end.
  --deadlock-seconds  how long each pair of statements runs against each other; 0 leaves them out; default 2
  --only              only statements whose names contain one of these
  --any-engine yes    run pairs also where the engine is not SQL Server: the program is tried, not the engine

The login needs: db_owner; VIEW SERVER STATE for locks (VIEW SERVER PERFORMANCE STATE from SQL Server 2022); SHOWPLAN.
What it may not look at is skipped, and said. Not for a database that people use: see --rcsi, and the load.";

/// What was asked on the command line.
#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) url: String,
    pub(crate) rows: Vec<u64>,
    /// Empty: as it is.
    pub(crate) rcsi: Vec<bool>,
    pub(crate) each_pair: Duration,
    pub(crate) only: Vec<String>,
    pub(crate) any_engine: bool,
}

impl Args {
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut args = Self {
            url: std::env::var("CHOKAQ_PROOF_URL").unwrap_or_default(),
            rows: vec![10_000],
            rcsi: Vec::new(),
            each_pair: Duration::from_secs(2),
            only: Vec::new(),
            any_engine: false,
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--url" => args.url = value?,
                "--rows" => args.rows = list(&value?, rows)?,
                "--rcsi" => args.rcsi = list(&value?, on_or_off)?,
                "--deadlock-seconds" => args.each_pair = Duration::from_secs(number(&value?)?),
                "--any-engine" => args.any_engine = value? == "yes",
                "--only" => args.only = list(&value?, |name| Ok(name.to_owned()))?,
                _ => return Err(format!("unknown argument {word}")),
            }
        }
        if args.url.is_empty() {
            return Err("no server was named: --url mssql://...".to_owned());
        }
        Ok(args)
    }

    /// Whether a statement was asked for.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
}

fn list<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    text.split(',').map(|part| read(part.trim())).collect()
}

fn number(text: &str) -> Result<u64, String> {
    text.replace('_', "").parse().map_err(|_| format!("{text:?} is no number"))
}

/// Enough for every statement to find its own rows.
fn rows(text: &str) -> Result<u64, String> {
    match number(text)? {
        few if few < 1_000 => Err(format!("{few} rows are too few: 1,000 at least")),
        rows => Ok(rows),
    }
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("{text:?} is neither on nor off")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Args, String> {
        Args::parse(words.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn lists_are_read_and_mistakes_named() {
        let args = parse(&["--url", "mssql://x", "--rows", "10000, 1_000_000", "--rcsi", "on,off"])
            .expect("good arguments");
        assert_eq!((args.rows, args.rcsi), (vec![10_000, 1_000_000], vec![true, false]));
        for (words, part) in [
            (&["--url"] as &[&str], "needs a value"),
            (&["--url", "x", "--rows", "5"], "too few"),
            (&["--url", "x", "--rows", "many"], "no number"),
            (&["--url", "x", "--rcsi", "maybe"], "neither"),
            (&["--url", "x", "--size", "1"], "--size"),
        ] {
            let error = parse(words).expect_err(part);
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_part_of_a_name_is_enough() {
        let args = parse(&["--url", "x", "--only", "archive,fetch"]).expect("good arguments");
        assert!(args.wants("fetch_next_batch") && args.wants("archive_zombies"));
        assert!(!args.wants("enqueue"));
    }
}
