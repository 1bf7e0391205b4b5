//! Every setting once: its place in `chokaq.toml`, its variable, its default, and how it is read.

use std::time::Duration;

use bytesize::ByteSize;

use crate::{
    Error, Result,
    config::{Settings, Synchronous},
    model::Limits,
};

/// One setting.
pub(crate) struct Setting {
    /// `section.key` in `chokaq.toml`.
    pub(crate) key: &'static str,
    /// The environment variable.
    pub(crate) variable: &'static str,
    /// The default as it is written in `chokaq.toml`.
    pub(crate) default: &'static str,
    /// What it is for.
    pub(crate) about: &'static str,
    /// Reads a value; the error says what is accepted.
    pub(crate) read: fn(&mut Settings, &str) -> Result<(), String>,
}

macro_rules! settings {
    ($($key:literal $variable:literal $default:literal $about:literal => $read:expr;)+) => {
        &[$(Setting {
            key: $key, variable: $variable, default: $default, about: $about, read: $read,
        }),+]
    };
}

pub(crate) const SETTINGS: &[Setting] = settings! {
    "database.url" "CHOKAQ_DATABASE_URL" "\"sqlite:chokaq.db\""
        "The database: sqlite:PATH, sqlite::memory:, or mssql://USER:PASSWORD@HOST:PORT/DATABASE."
        => |s, v| set(&mut s.database_url, Ok(Some(v.to_owned())));
    "database.sqlite_synchronous" "CHOKAQ_SQLITE_SYNCHRONOUS" "\"full\""
        "What an SQLite commit waits for: \"full\" (the disk) or \"normal\" (the operating system)."
        => |s, v| set(&mut s.sqlite_synchronous, synchronous(v));
    "database.auto_migrate" "CHOKAQ_AUTO_MIGRATE" "false"
        "Whether connecting to a SQL Server applies the migrations that it lacks (SQLite is always migrated)."
        => |s, v| set(&mut s.auto_migrate, yes_or_no(v));
    "jobs.retries" "CHOKAQ_RETRIES" "3"
        "Re-executions after the first, where a job type sets none."
        => |s, v| set(&mut s.policy.retries, count(v, 0, 1_000));
    "jobs.timeout" "CHOKAQ_TIMEOUT" "\"15m\""
        "How long one attempt may run, where a job type says nothing."
        => |s, v| set(&mut s.policy.timeout, duration(v));
    "jobs.max_age" "CHOKAQ_MAX_AGE" "\"1d\""
        "How long after it was first due a job may still be retried, where a job type says nothing."
        => |s, v| set(&mut s.policy.max_age, duration(v));
    "jobs.backoff_base" "CHOKAQ_BACKOFF_BASE" "\"3s\""
        "The wait before the first retry, where a job type has no backoff of its own."
        => |s, v| set(&mut s.policy.backoff_base, duration(v));
    "jobs.backoff_factor" "CHOKAQ_BACKOFF_FACTOR" "2.0"
        "What each further wait is multiplied by."
        => |s, v| set(&mut s.policy.backoff_factor, number(v, 1.0, 100.0));
    "jobs.backoff_max" "CHOKAQ_BACKOFF_MAX" "\"1h\""
        "The longest wait before a retry."
        => |s, v| set(&mut s.policy.backoff_max, duration(v));
    "jobs.jitter" "CHOKAQ_JITTER" "0.2"
        "The share of random time added to a retry's wait, 0.0 to 1.0."
        => |s, v| set(&mut s.worker.jitter, number(v, 0.0, 1.0));
    "jobs.payload_limit" "CHOKAQ_PAYLOAD_LIMIT" "\"1MB\""
        "The largest payload and output, as JSON; 1KB is 1,000 bytes, 1KiB is 1,024, a plain number is bytes."
        => |s, v| set(&mut s.limits.payload_bytes, size(v));
    "worker.concurrency" "CHOKAQ_CONCURRENCY" "20"
        "Jobs that run at once; the default is 10 for each core (20 on two cores)."
        => |s, v| set(&mut s.worker.concurrency, count(v, 1, 100_000));
    "worker.queues" "CHOKAQ_QUEUES" "[\"*\"]"
        "The queues served, \"*\" for all; the default is those of the registered types. In the variable: a,b,c."
        => |s, v| set(&mut s.worker.queues, names(v).map(Some));
    "worker.buffer" "CHOKAQ_BUFFER" "100"
        "The most rows held that have not started."
        => |s, v| set(&mut s.worker.buffer, count(v, 0, 10_000));
    "worker.batch" "CHOKAQ_BATCH" "100"
        "The most rows of one fetch."
        => |s, v| set(&mut s.worker.batch, count(v, 1, 1_000));
    "worker.poll_interval" "CHOKAQ_POLL_INTERVAL" "\"1s\""
        "How often to look for work where nothing wakes the worker."
        => |s, v| set(&mut s.worker.poll_interval, duration(v));
    "worker.heartbeat_interval" "CHOKAQ_HEARTBEAT_INTERVAL" "\"10s\""
        "How often running jobs renew their lease."
        => |s, v| set(&mut s.worker.heartbeat_interval, duration(v));
    "worker.lease" "CHOKAQ_LEASE" "\"2m\""
        "How old a heartbeat may be before its job counts as abandoned; at least three heartbeats."
        => |s, v| set(&mut s.worker.lease, duration(v));
    "worker.fetched_limit" "CHOKAQ_FETCHED_LIMIT" "\"10m\""
        "How long a row may be fetched without being started before it goes back."
        => |s, v| set(&mut s.worker.fetched_limit, duration(v));
    "worker.scan_interval" "CHOKAQ_SCAN_INTERVAL" "\"30s\""
        "How often to look for what dead workers hold."
        => |s, v| set(&mut s.worker.scan_interval, duration(v));
    "worker.shutdown_grace" "CHOKAQ_SHUTDOWN_GRACE" "\"30s\""
        "What running jobs get to finish when the worker stops."
        => |s, v| set(&mut s.worker.shutdown_grace, duration(v));
    "worker.cancel_grace" "CHOKAQ_CANCEL_GRACE" "\"5s\""
        "What a handler gets to stop once its context is cancelled."
        => |s, v| set(&mut s.worker.cancel_grace, duration(v));
    "worker.circuit_failures" "CHOKAQ_CIRCUIT_FAILURES" "5"
        "Failures of a job type, with no success between them, that open its circuit; 0 opens none."
        => |s, v| set(&mut s.worker.circuit.failures, count(v, 0, 1_000));
    "worker.circuit_window" "CHOKAQ_CIRCUIT_WINDOW" "\"1m\""
        "The time within which those failures count."
        => |s, v| set(&mut s.worker.circuit.window, duration(v));
    "worker.circuit_pause" "CHOKAQ_CIRCUIT_PAUSE" "\"30s\""
        "How long an open circuit lets no job of its type start, before it tries one."
        => |s, v| set(&mut s.worker.circuit.pause, duration(v));
};

/// Lets the environment override the settings.
pub(crate) fn apply_environment(
    settings: &mut Settings,
    lookup: impl Fn(&str) -> Result<Option<String>>,
) -> Result<()> {
    for setting in SETTINGS {
        if let Some(value) = lookup(setting.variable)? {
            (setting.read)(settings, value.trim()).map_err(|problem| {
                let name = setting.variable;
                Error::config(format!("the environment variable {name} is {value:?}: {problem}"))
            })?;
        }
    }
    Ok(())
}

/// Whether a variable is a setting, or one that names the file or belongs to the tests.
pub(crate) fn is_variable(name: &str) -> bool {
    name == "CHOKAQ_CONFIG"
        || name.starts_with("CHOKAQ_TEST_")
        || SETTINGS.iter().any(|setting| setting.variable == name)
}

/// The text of `chokaq.example.toml`.
pub(crate) fn example_toml() -> String {
    let mut lines = vec![
        "# Every setting of chokaq with its default. Copy what you change to chokaq.toml in the working directory, or"
            .to_owned(),
        "# name the file in CHOKAQ_CONFIG. The environment variable given with each overrides the file; both override"
            .to_owned(),
        "# what code sets.".to_owned(),
    ];
    let mut section = "";
    for setting in SETTINGS {
        let (own, key) = setting.key.split_once('.').unwrap_or(("", setting.key));
        if own != section {
            section = own;
            lines.push(format!("\n[{section}]"));
        }
        let Setting { variable, default, about, .. } = setting;
        lines.push(format!("# {about}\n# {variable}\n# {key} = {default}"));
    }
    lines.join("\n") + "\n"
}

fn set<T>(target: &mut T, value: Result<T, String>) -> Result<(), String> {
    *target = value?;
    Ok(())
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "expected true or false".to_owned())
}

fn count<T: TryFrom<u64>>(text: &str, least: u64, most: u64) -> Result<T, String> {
    let number: Option<u64> = text.replace('_', "").parse().ok();
    number
        .filter(|n| (least..=most).contains(n))
        .and_then(|n| T::try_from(n).ok())
        .ok_or_else(|| format!("expected a whole number from {least} to {most}"))
}

fn number(text: &str, least: f64, most: f64) -> Result<f64, String> {
    match text.parse() {
        Ok(n) if (least..=most).contains(&n) => Ok(n),
        _ => Err(format!("expected a number from {least} to {most}")),
    }
}

/// A size as people write it, from 1 kB to 100 MB.
fn size(text: &str) -> Result<usize, String> {
    let bytes = text.replace('_', "").parse::<ByteSize>().ok().map(|size| size.as_u64());
    bytes
        .filter(|bytes| (1_000..=100_000_000).contains(bytes))
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or_else(|| {
            "expected a size from 1KB to 100MB, such as \"1MB\" or \"512KiB\"".to_owned()
        })
}

fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(d) if d > Duration::ZERO && d <= Limits::MAX_DURATION => Ok(d),
        Ok(_) => Err("expected a duration longer than zero and at most 50 years".to_owned()),
        Err(e) => Err(format!("expected a duration such as \"500ms\", \"30s\" or \"15m\" ({e})")),
    }
}

fn names(text: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    for name in &names {
        Limits::check_name("queue", name).map_err(|e| e.to_string())?;
    }
    Ok(names)
}

fn synchronous(text: &str) -> Result<Synchronous, String> {
    match text.to_ascii_lowercase().as_str() {
        "full" => Ok(Synchronous::Full),
        "normal" => Ok(Synchronous::Normal),
        _ => Err("expected \"full\" or \"normal\"".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variable: &str, value: &str) -> Result<Settings> {
        let mut settings = Settings::default();
        apply_environment(
            &mut settings,
            |asked| Ok((asked == variable).then(|| value.to_owned())),
        )?;
        Ok(settings)
    }

    #[test]
    fn every_variable_refuses_a_bad_value_and_names_itself() {
        for setting in SETTINGS.iter().filter(|setting| setting.key != "database.url") {
            let bad = if setting.key == "worker.queues" { "a,,b" } else { "-1 nonsense" };
            let error = with(setting.variable, bad).expect_err(setting.variable);
            assert!(error.is_config(), "{}", setting.variable);
            assert!(error.to_string().contains(setting.variable), "{error}");
        }
    }

    #[test]
    fn the_environment_overrides_what_code_set() {
        let settings = with("CHOKAQ_LEASE", "3m").expect("a good value");
        assert_eq!(settings.worker.lease, Duration::from_mins(3));
        let settings = with("CHOKAQ_QUEUES", "mail, render").expect("a good value");
        assert_eq!(settings.worker.queues, Some(vec!["mail".to_owned(), "render".to_owned()]));
    }

    #[test]
    fn a_size_is_read_as_people_write_it() {
        let sizes =
            [("1MB", 1_000_000), ("512 KiB", 524_288), ("2000", 2_000), ("1.5mb", 1_500_000)];
        for (text, bytes) in sizes {
            let settings = with("CHOKAQ_PAYLOAD_LIMIT", text).expect(text);
            assert_eq!(settings.limits.payload_bytes, bytes, "{text}");
        }
        for bad in ["1 GB", "10", "one MB"] {
            assert!(with("CHOKAQ_PAYLOAD_LIMIT", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_defaults_of_the_table_are_those_of_the_code() {
        let defaults = Settings::default();
        let mut read = Settings::default();
        for setting in SETTINGS.iter().filter(|s| s.key != "worker.queues") {
            (setting.read)(&mut read, setting.default.trim_matches('"')).expect(setting.key);
        }
        assert_eq!(read.database_url.take().as_deref(), Some("sqlite:chokaq.db"));
        // Ten a core: the table shows it for two.
        read.worker.concurrency = defaults.worker.concurrency;
        assert_eq!(format!("{read:?}"), format!("{defaults:?}"));
    }

    #[test]
    fn the_example_file_in_the_repository_is_the_generated_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../chokaq.example.toml");
        // A packaged crate stands without the repository around it.
        if let Ok(text) = std::fs::read_to_string(path) {
            let hint = "write it anew: cargo run --example print_settings > chokaq.example.toml";
            assert_eq!(text, example_toml(), "{hint}");
        }
    }
}
