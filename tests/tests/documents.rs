//! The documents say what the code does.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use chokaq::{Edits, Error, JobId, Pool, Worker, prelude::*};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The first code span of each table row whose header says `text`, in all tables of docs/errors.md.
fn documented_texts() -> Vec<String> {
    let page = read("docs/errors.md");
    let rows = page.lines().filter(|line| line.starts_with("| "));
    rows.filter_map(|row| row.split('`').nth(1).map(str::to_owned)).collect()
}

/// Whether the text has the pattern's fixed parts, in order, from its start to its end.
fn matches(pattern: &str, text: &str) -> bool {
    let mut rest = text;
    let parts: Vec<&str> = pattern.split('…').collect();
    for (place, part) in parts.iter().enumerate() {
        let found = if place == 0 { rest.starts_with(part).then_some(0) } else { rest.find(part) };
        let Some(at) = found else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.is_empty() || parts.last() == Some(&"")
}

fn assert_documented(error: &Error) {
    let text = error.to_string();
    let texts = documented_texts();
    for line in text.lines() {
        let found = texts.iter().any(|pattern| matches(pattern, line));
        assert!(found, "docs/errors.md does not have: {line}");
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

#[job(type_key = "known", enqueue_only)]
struct Same;

impl Job for Same {
    type Output = ();
    async fn run(self, _: &JobContext) -> Result<(), JobError> {
        Ok(())
    }
}

fn known(text: &str) -> Known {
    Known { text: text.to_owned() }
}

#[tokio::test]
async fn refused_input_is_documented() {
    let pool = Pool::connect("sqlite::memory:").await.unwrap();
    let long = "x".repeat(256);
    let operator = pool.operator();
    let twice = JobId::new();
    let errors = [
        known("").enqueue(&pool).queue("").await.unwrap_err(),
        known("").enqueue(&pool).idempotency_key(&long).await.unwrap_err(),
        known("").enqueue(&pool).queue(" mail").await.unwrap_err(),
        known("").enqueue(&pool).tags(vec!["y".repeat(200); 6]).await.unwrap_err(),
        known(&"x".repeat(1_000_001)).enqueue(&pool).await.unwrap_err(),
        known("").enqueue(&pool).delay(Duration::MAX).await.unwrap_err(),
        Known::enqueue_all(&pool, [known(&"x".repeat(1_000_001))]).await.unwrap_err(),
        pool.enqueue_raw("known", "{").await.unwrap_err(),
        operator.resurrect(&[twice], Edits::default().payload("{")).await.unwrap_err(),
        operator.cancel(&[twice, twice], "").await.unwrap_err(),
        operator.cancel(&[twice; 1_001], "").await.unwrap_err(),
        operator.set_zombie_timeout("mail", Some(Duration::ZERO)).await.unwrap_err(),
        "not-an-id".parse::<JobId>().unwrap_err(),
    ];
    for error in &errors {
        assert!(error.is_invalid_input(), "{error}");
        assert_documented(error);
    }
}

#[tokio::test]
async fn settings_and_urls_that_cannot_be_are_documented() {
    let pool = Pool::connect("sqlite::memory:").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let build = || Worker::builder(&pool);
    let mut errors = vec![
        build().only::<(Known, Same)>().build().unwrap_err(),
        build().concurrency(0).build().unwrap_err(),
        build().scan_interval(Duration::MAX).build().unwrap_err(),
        build().shutdown_grace(Duration::MAX).build().unwrap_err(),
        build().lease(Duration::from_secs(20)).build().unwrap_err(),
        build().queues(Vec::<String>::new()).build().unwrap_err(),
        build().queues(["*", "mail"]).build().unwrap_err(),
    ];
    let directory = format!("sqlite:{}", folder.path().display());
    for url in [
        "postgres://x",
        "mssql://x",
        "sqlite:",
        "sqlite:a.db?mode=ro",
        "sqlite:/no/such/a.db",
        &directory,
    ] {
        errors.push(Pool::connect(url).await.unwrap_err());
    }
    for error in &errors {
        assert!(error.is_config(), "{error}");
        assert_documented(error);
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_documented() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letter.db");
    fs::write(&path, "Dear Ada, this is not a database but a letter, and a long one. ".repeat(100))
        .unwrap();
    let error = Pool::connect(format!("sqlite:{}", path.display())).await.unwrap_err();
    assert!(error.to_string().contains("letter.db"), "{error}");
    assert!(!error.is_transient());
    assert_documented(&error);
}

#[test]
fn every_setting_stands_in_the_readme_and_the_readme_names_no_other() {
    let readme = read("README.md");
    let example = read("chokaq.example.toml");
    let settings: Vec<&str> = example
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .filter(|l| l.starts_with("CHOKAQ_"))
        .collect();
    assert!(settings.len() > 15);
    for setting in &settings {
        assert!(readme.contains(setting), "README.md does not name {setting}");
    }
    for (at, _) in readme.match_indices("CHOKAQ_") {
        let end = readme[at..].find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap();
        let name = &readme[at..at + end];
        assert!(settings.contains(&name) || name == "CHOKAQ_CONFIG", "README.md names {name}");
    }
}

#[test]
fn every_relative_link_of_the_documents_leads_to_a_file() {
    let mut pages =
        vec!["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "sql/README.md"]
            .into_iter()
            .map(PathBuf::from)
            .collect::<Vec<_>>();
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(Path::new("docs").join(path.file_name().unwrap()));
        }
    }
    let mut broken = Vec::new();
    for page in pages {
        let text = read(page.to_str().unwrap());
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap();
            let is_relative = !file.is_empty() && !file.contains("://");
            if is_relative && !root().join(&page).parent().unwrap().join(file).exists() {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:?}");
}

#[test]
fn an_error_returned_from_main_prints_its_message_and_its_causes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("no/such/folder/jobs.db");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_node"))
        .args(["drain", &format!("sqlite:{}", file.display())])
        .arg(folder.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.starts_with("Error: the database file "), "{stderr}");
    assert!(stderr.contains("does not exist: make it first"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}
