//! `chokaq.toml`.

use std::{ops::Range, path::PathBuf};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{
    Error, Result,
    config::{
        Settings,
        table::{SETTINGS, Setting},
    },
};

/// The file and its text: the one that `CHOKAQ_CONFIG` names, which must be there, or `chokaq.toml` where there is one.
pub(crate) fn find(named: Option<String>) -> Result<Option<(PathBuf, String)>> {
    let named = named.map(PathBuf::from);
    let is_named = named.is_some();
    let path = named.unwrap_or_else(|| "chokaq.toml".into());
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some((path, text))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && !is_named => Ok(None),
        Err(e) => {
            let why = if is_named { ", which CHOKAQ_CONFIG names," } else { "" };
            Err(Error::config(format!(
                "the configuration file {}{why} cannot be read: {e}",
                path.display()
            )))
        }
    }
}

/// Lets the file override the settings. Every fault of the file is reported at once.
pub(crate) fn apply(settings: &mut Settings, path: &std::path::Path, text: &str) -> Result<()> {
    let document = DeTable::parse(text).map_err(|e| {
        let at = place(path, text, e.span().unwrap_or_default());
        Error::config(format!("{at}: {}", e.message()))
    })?;
    let mut faults = Vec::new();
    for (section, keys) in document.get_ref() {
        let DeValue::Table(keys) = keys.get_ref() else {
            faults.push((section.span(), outside(section.get_ref())));
            continue;
        };
        for (key, value) in keys {
            let name = format!("{}.{}", section.get_ref(), key.get_ref());
            if let Err(fault) = apply_one(settings, &name, key.span(), value) {
                faults.push(fault);
            }
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    faults.sort_by_key(|(span, _)| span.start);
    let lines =
        faults.into_iter().map(|(span, fault)| format!("{}: {fault}", place(path, text, span)));
    Err(Error::config(lines.collect::<Vec<_>>().join("\n")))
}

fn apply_one(
    settings: &mut Settings,
    name: &str,
    key: Range<usize>,
    value: &Spanned<DeValue<'_>>,
) -> Result<(), (Range<usize>, String)> {
    let Some(setting) = SETTINGS.iter().find(|setting| setting.key == name) else {
        return Err((key, unknown(name)));
    };
    let is_switch = matches!(setting.default, "true" | "false");
    let text = match value.get_ref() {
        DeValue::Boolean(yes) if is_switch => Some(yes.to_string()),
        value => plain(value),
    };
    let read = match text {
        Some(text) => (setting.read)(settings, text.trim()),
        None => Err(format!("expected a value such as {}", setting.default)),
    };
    read.map_err(|problem| (value.span(), format!("{name}: {problem}")))
}

/// A value as it would stand in a variable.
fn plain(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(value) => Some(value.to_string()),
        DeValue::Array(items) => {
            let names: Option<Vec<_>> = items.iter().map(|item| item.get_ref().as_str()).collect();
            names.map(|names| names.join(","))
        }
        _ => None,
    }
}

fn unknown(name: &str) -> String {
    let likeness = |setting: &Setting| strsim::normalized_levenshtein(setting.key, name);
    let nearest = SETTINGS.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match nearest.filter(|setting| likeness(setting) > 0.6) {
        Some(setting) => format!("there is no setting {name}; did you mean {}?", setting.key),
        None => format!("there is no setting {name}; chokaq.example.toml lists them all"),
    }
}

/// A key at the top of the file; most often its section's line is missing.
fn outside(key: &str) -> String {
    match SETTINGS
        .iter()
        .find_map(|setting| setting.key.split_once('.').filter(|(_, own)| *own == key))
    {
        Some((section, _)) => format!("{key} stands outside a section: write it under [{section}]"),
        None => format!("{key} stands outside a section; chokaq.example.toml lists what there is"),
    }
}

/// `file:line`.
fn place(path: &std::path::Path, text: &str, span: Range<usize>) -> String {
    let before = text.get(..span.start).unwrap_or(text);
    format!("{}:{}", path.display(), before.matches('\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use super::*;

    fn read(text: &str) -> Result<Settings> {
        let mut settings = Settings::default();
        apply(&mut settings, Path::new("chokaq.toml"), text)?;
        Ok(settings)
    }

    #[test]
    fn the_file_overrides_what_code_set() {
        let text = "[worker]\nlease = \"3m\"\nconcurrency = 1_000\nqueues = [\"a\", \"b\"]\n[jobs]\njitter = 0.5\n[database]\nauto_migrate = true\n";
        let settings = read(text).expect("a good file");
        assert!(settings.auto_migrate);
        assert_eq!(settings.worker.lease, Duration::from_mins(3));
        assert_eq!(settings.worker.concurrency, 1_000);
        assert_eq!(settings.worker.queues, Some(vec!["a".to_owned(), "b".to_owned()]));
        assert!((settings.worker.jitter - 0.5).abs() < f64::EPSILON);
    }

    #[test]
    fn every_fault_is_reported_with_its_line_and_what_is_accepted() {
        let text = "[worker]\nlease = \"soon\"\nconcurency = 3\nbatch = 0\nbuffer = 2030-01-01\n\n[job]\nretries = 1\n";
        let error = read(text).expect_err("five faults");
        assert!(error.is_config());
        let text = error.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("chokaq.toml:2: worker.lease: expected a duration"), "{text}");
        assert!(
            lines[1].starts_with("chokaq.toml:3: there is no setting worker.concurency; did you mean worker.concurrency?"),
            "{text}"
        );
        assert!(
            lines[2].starts_with("chokaq.toml:4: worker.batch: expected a whole number"),
            "{text}"
        );
        assert!(
            lines[3].starts_with("chokaq.toml:5: worker.buffer: expected a value such as 100"),
            "{text}"
        );
        assert_eq!(
            lines[4],
            "chokaq.toml:8: there is no setting job.retries; did you mean jobs.retries?"
        );
        assert_eq!(lines.len(), 5);
    }

    #[test]
    fn a_setting_outside_its_section_is_told_where_it_belongs() {
        let error = read("lease = \"3m\"\ncolour = 1\n").expect_err("two faults").to_string();
        let lines: Vec<&str> = error.lines().collect();
        assert_eq!(
            lines[0],
            "chokaq.toml:1: lease stands outside a section: write it under [worker]"
        );
        assert!(
            lines[1].starts_with("chokaq.toml:2: colour stands outside a section; "),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_is_not_toml_is_refused_with_its_line() {
        let error = read("[worker]\nlease = = 3\n").expect_err("not toml");
        assert!(error.to_string().starts_with("chokaq.toml:2: "), "{error}");
    }

    #[test]
    fn a_file_that_is_named_must_be_there() {
        let error = find(Some("/nowhere/chokaq.toml".to_owned())).expect_err("not there");
        assert!(error.to_string().contains("CHOKAQ_CONFIG"), "{error}");
    }

    #[test]
    fn the_example_file_with_its_comments_taken_off_says_the_defaults() {
        let text: String = crate::config::table::example_toml()
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(setting) if setting.contains(" = ") => format!("{setting}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        assert!(read(&text).is_ok(), "{:?}", read(&text));
    }
}
