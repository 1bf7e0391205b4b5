//! The `.sql` files, and SQL text taken apart as far as the checks need.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// One named query.
pub(crate) struct QueryFile {
    pub(crate) name: String,
    pub(crate) text: String,
}

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../sql/sqlite")
}

fn sql_files(folder: &Path) -> Vec<QueryFile> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("the folder is listed").path();
        if path.extension().is_some_and(|extension| extension == "sql") {
            let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
            files.push(QueryFile { name, text: fs::read_to_string(&path).expect("it is text") });
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(!files.is_empty(), "{} holds .sql files", folder.display());
    files
}

/// Every named query.
pub(crate) fn queries() -> Vec<QueryFile> {
    sql_files(&folder())
}

/// Every migration, in order.
pub(crate) fn migrations() -> Vec<QueryFile> {
    sql_files(&folder().join("migrations"))
}

impl QueryFile {
    /// The comment lines before the first statement, without their dashes.
    pub(crate) fn header(&self) -> Vec<&str> {
        let comments = self.text.lines().map_while(|line| line.trim_start().strip_prefix("--"));
        comments.map(str::trim).collect()
    }

    pub(crate) fn statements(&self) -> Vec<String> {
        statements(&self.text)
    }
}

/// The statements of a file without comments, each on one line with single spaces.
pub(crate) fn statements(text: &str) -> Vec<String> {
    let mut plain = String::new();
    for line in text.lines() {
        plain.push_str(line.split("--").next().unwrap_or_default());
        plain.push(' ');
    }
    let one_line = |statement: &str| statement.split_whitespace().collect::<Vec<_>>().join(" ");
    plain.split(';').map(one_line).filter(|statement| !statement.is_empty()).collect()
}

/// The words of a statement that stand in no parentheses, with their positions.
pub(crate) fn outer_words(statement: &str) -> Vec<(usize, &str)> {
    let (mut words, mut depth, mut start) = (Vec::new(), 0_usize, None);
    for (at, c) in statement.char_indices().chain([(statement.len(), ' ')]) {
        if c.is_alphanumeric() || c == '_' || c == '@' {
            if depth == 0 && start.is_none() {
                start = Some(at);
            }
            continue;
        }
        if let Some(from) = start.take() {
            words.push((from, &statement[from..at]));
        }
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    words
}

/// The conjuncts of a statement's own WHERE clause; none without one.
pub(crate) fn conjuncts(statement: &str) -> Vec<&str> {
    let words = outer_words(statement);
    let Some(first) = words.iter().rposition(|(_, word)| *word == "WHERE") else {
        return Vec::new();
    };
    let ends = |word: &str| matches!(word, "RETURNING" | "ORDER" | "LIMIT" | "GROUP" | "ON");
    let mut start = words[first].0 + "WHERE".len();
    let mut parts = Vec::new();
    for (at, word) in &words[first + 1..] {
        if *word == "AND" {
            parts.push(statement[start..*at].trim());
            start = at + "AND".len();
        } else if ends(word) {
            parts.push(statement[start..*at].trim());
            return parts;
        } else if *word == "OR" || *word == "BETWEEN" {
            // A guard in an outer OR guards nothing: what follows is no conjunct.
            return Vec::new();
        }
    }
    parts.push(statement[start..].trim());
    parts
}

#[test]
fn a_file_is_split_into_statements_without_comments() {
    let text =
        "-- one; two\nSELECT 1 -- here; too\n  FROM t;\n\n-- next\nDELETE FROM t\nWHERE a = 1;\n";
    assert_eq!(statements(text), ["SELECT 1 FROM t", "DELETE FROM t WHERE a = 1"]);
}

#[test]
fn conjuncts_are_those_of_the_outer_where() {
    let of = |statement| conjuncts(statement);
    assert_eq!(
        of(
            "UPDATE t SET a = 1 WHERE Seq IN (SELECT b FROM c WHERE d = 1 AND e = 2) AND f = 3 RETURNING g"
        ),
        ["Seq IN (SELECT b FROM c WHERE d = 1 AND e = 2)", "f = 3"]
    );
    assert_eq!(of("UPDATE t SET a = (SELECT b FROM c WHERE d = 1)"), [""; 0]);
    assert_eq!(of("DELETE FROM t WHERE a = 1 OR b = 2"), [""; 0]);
    assert_eq!(of("DELETE FROM t WHERE (a = 1 OR b = 2) AND c = 3"), ["(a = 1 OR b = 2)", "c = 3"]);
}
