//! The `.sql` files of SQL Server, and what their headers say.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// One named query.
#[derive(Debug, Clone)]
pub(crate) struct QueryFile {
    pub(crate) name: String,
    pub(crate) text: String,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../sql/mssql")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A file of the folder that is no named query.
pub(crate) fn other(name: &str) -> String {
    read(&folder().join(name))
}

fn sql_files(folder: &Path) -> Vec<QueryFile> {
    let entries = fs::read_dir(folder).expect("the folder is listed");
    let paths = entries.map(|entry| entry.expect("an entry is read").path());
    let mut files = Vec::new();
    for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "sql")) {
        let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        files.push(QueryFile { name, text: read(&path) });
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files
}

/// Every named query, in the order of their names.
pub(crate) fn queries() -> Vec<QueryFile> {
    let mut files = sql_files(&folder());
    files.retain(|file| file.name != "schema" && file.name != "ledger");
    assert!(files.len() > 30, "{} files", files.len());
    files
}

/// The procedures, each as the migrations make it.
pub(crate) fn procedures() -> Vec<QueryFile> {
    let folder = folder().join("procedures");
    if folder.exists() { sql_files(&folder) } else { Vec::new() }
}

/// Every migration, in order.
pub(crate) fn migrations() -> Vec<QueryFile> {
    sql_files(&folder().join("migrations"))
}

impl QueryFile {
    /// A text that a test plants a fault in.
    pub(crate) fn planted(text: &str) -> Self {
        Self { name: "planted".to_owned(), text: text.to_owned() }
    }

    /// The comment lines before the first statement, without their dashes.
    pub(crate) fn header(&self) -> Vec<&str> {
        self.text.lines().map_while(|line| line.strip_prefix("-- ")).collect()
    }

    /// What stands behind a word of the header, up to the next one.
    pub(crate) fn heading(&self, word: &str) -> Option<String> {
        let header = self.header();
        let at = header.iter().position(|line| line.starts_with(word))?;
        let mut found = header[at][word.len()..].trim().to_owned();
        for line in header[at + 1..].iter().take_while(|line| line.starts_with("  ")) {
            found.push(' ');
            found.push_str(line.trim());
        }
        Some(found)
    }

    /// The parameters that the header declares: name with its `@`, and type.
    pub(crate) fn parameters(&self) -> Vec<(String, String)> {
        let lines = self.header().into_iter().filter(|line| line.starts_with('@'));
        let declared = lines.filter_map(|line| line.split_once(' '));
        declared.map(|(name, rest)| (name.to_owned(), type_at_start(rest).to_owned())).collect()
    }

    /// Whether people call it, and not a worker or a producer.
    pub(crate) fn is_for_operators(&self) -> bool {
        let caller = self.heading("Caller:").unwrap_or_default();
        caller.contains("Operator") || caller.starts_with("cancel")
    }
}

/// The type at the start of a text: up to the first space or comma outside parentheses.
fn type_at_start(text: &str) -> &str {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ' ' | ',' if depth == 0 => return &text[..at],
            _ => {}
        }
    }
    text
}

#[test]
fn a_header_is_read() {
    let file = QueryFile::planted(
        "-- Caller: OperatorStorage::x.\n-- Locks: Hot > DLQ. Waits,\n--   in order.\n-- @a decimal(10, 2), an amount\n-- @b int\nSELECT 1;\n-- Locks: none\n",
    );
    assert_eq!(file.heading("Locks:").as_deref(), Some("Hot > DLQ. Waits, in order."));
    let parameters = [("@a", "decimal(10, 2)"), ("@b", "int")];
    assert_eq!(file.parameters(), parameters.map(|(a, b)| (a.to_owned(), b.to_owned())));
    assert!(file.is_for_operators());
}
