//! The scripts in `dba/` name what the schema has.

use std::collections::BTreeSet;

use crate::text::{files, read, without_comments};

/// The words of a text that begin in one of these ways.
fn words(text: &str, starts: &[&str]) -> BTreeSet<String> {
    let plain = without_comments(text);
    let words = plain.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter(|word| starts.iter().any(|start| word.starts_with(start)))
        .map(str::to_owned)
        .collect()
}

/// Every index and primary key of the schema.
fn indexes() -> BTreeSet<String> {
    let indexes = words(&read("schema.sql"), &["IX_", "PK_"]);
    assert!(indexes.len() >= 20, "{indexes:?}");
    indexes
}

#[test]
fn every_index_and_table_that_a_script_names_exists() {
    let schema = read("schema.sql");
    let indexes = indexes();
    for (name, text) in files("dba") {
        let unknown: Vec<_> = words(&text, &["IX_", "PK_"]).difference(&indexes).cloned().collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
        for table in without_comments(&text).split("[chokaq].").skip(1) {
            let end = table.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(table.len());
            let is_there = schema.contains(&format!("TABLE [chokaq].{} (", &table[..end]))
                || table[..end] == *"Enqueue"
                // `CONCAT(N'[chokaq].', e.Name)`
                || end == 0;
            assert!(is_there, "{name}: {}", &table[..end]);
        }
    }
}

#[test]
fn the_doctor_asks_for_every_index() {
    let doctor = read("dba/maintenance.sql");
    let (doctor, _) = doctor.split_once("\nGO\n").expect("it is the first batch");
    assert_eq!(words(doctor, &["IX_", "PK_"]), indexes());
    for index in indexes() {
        let table = index.split('_').nth(1).unwrap_or_default();
        assert!(doctor.contains(&format!("(N'{table}', N'{index}')")), "{index}");
    }
}

/// Partitioning makes the archive's indexes again: under their names, over the columns that they had.
#[test]
fn partitioning_keeps_the_archives_indexes() {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let script = one_line(&without_comments(&read("dba/partition_archive.sql")));
    let schema = one_line(&without_comments(&read("schema.sql")));
    for (index, key) in [
        ("PK_JobsArchive", "(FinishedAtUtc, Id)"),
        ("IX_JobsArchive_Id", "(Id)"),
        ("IX_JobsArchive_Queue", "(Queue, FinishedAtUtc, Id)"),
    ] {
        let made = format!("{index} ON [chokaq].JobsArchive {key} WITH (DROP_EXISTING = ON");
        assert!(script.contains(&made), "{made}");
        let was = if index == "PK_JobsArchive" {
            format!("{index} PRIMARY KEY CLUSTERED {key}")
        } else {
            format!("{index} ON [chokaq].JobsArchive {key}")
        };
        assert!(schema.contains(&was), "{was}");
    }
    let archive = indexes().into_iter().filter(|index| index.contains("JobsArchive"));
    assert_eq!(archive.count(), 3, "a new index of the archive has to be aligned too");
}
