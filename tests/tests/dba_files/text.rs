//! The files under `sql/mssql`, and their statements.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../sql/mssql")
}

pub(crate) fn read(path: &str) -> String {
    read_path(&folder().join(path))
}

fn read_path(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The .sql files of a folder by their names.
pub(crate) fn files(under: &str) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder().join(under)).expect("the folder is listed");
    let paths = entries.map(|entry| entry.expect("an entry is read").path());
    let sql = paths.filter(|path| path.extension().is_some_and(|extension| extension == "sql"));
    sql.map(|path| {
        let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        (name, read_path(&path))
    })
    .collect()
}

/// Without comments; a `--` inside a string would be taken for one, and no file has any.
pub(crate) fn without_comments(text: &str) -> String {
    let mut plain = String::new();
    for line in text.lines() {
        plain.push_str(line.split("--").next().unwrap_or_default());
        plain.push('\n');
    }
    while let Some((before, rest)) = plain.split_once("/*") {
        let after = rest.split_once("*/").map_or("", |(_, after)| after);
        plain = format!("{before}{after}");
    }
    plain
}

/// Without comments, each on one line with single spaces.
pub(crate) fn statements(text: &str) -> Vec<String> {
    let plain = without_comments(text);
    let one_line = |statement: &str| statement.split_whitespace().collect::<Vec<_>>().join(" ");
    plain.split(';').map(one_line).filter(|statement| !statement.is_empty()).collect()
}
