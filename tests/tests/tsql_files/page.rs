//! The page for whoever looks after the database says of each statement what its file says.
//!
//! `CHOKAQ_TEST_RENEW=1 cargo test -p chokaq-tests --test tsql_files page` writes the page anew; what people wrote below the
//! points of a statement stays.

use std::{collections::BTreeSet, fmt::Write as _, fs};

use crate::{files::QueryFile, files::queries};

fn path() -> String {
    format!("{}/../docs/sql-server.md", env!("CARGO_MANIFEST_DIR"))
}

/// The points of a statement, from its file.
fn points(file: &QueryFile) -> String {
    let mut points = String::new();
    for (title, word) in [("Intent", "Intent: "), ("Protects", "Invariant: ")] {
        let text = file.heading(word).expect("a heading that another test asks for");
        let _ = writeln!(points, "- {title}: {text}");
    }
    let mut seen = BTreeSet::new();
    let named = file.text.split("INDEX(").skip(1).filter_map(|rest| rest.split(')').next());
    let indexes: Vec<String> =
        named.filter(|name| seen.insert(*name)).map(|name| format!("`{name}`")).collect();
    if !indexes.is_empty() {
        let _ = writeln!(points, "- Indexes: {}", indexes.join(", "));
    }
    for (title, word) in [("Locks", "Locks: "), ("Retry", "Retry: ")] {
        let text = file.heading(word).expect("a heading that another test asks for");
        let _ = writeln!(points, "- {title}: {text}");
    }
    points
}

#[test]
fn the_page_says_what_the_files_say() {
    let mut page = fs::read_to_string(path()).expect("docs/sql-server.md");
    let renews = std::env::var("CHOKAQ_TEST_RENEW").is_ok_and(|value| value == "1");
    let mut faults = Vec::new();
    for file in queries().iter().filter(|file| file.name != "ledger") {
        let heading = format!("### `{}`\n\n", file.name);
        let Some(at) = page.find(&heading).map(|at| at + heading.len()) else {
            faults.push(format!("{} has no section", file.name));
            continue;
        };
        let length = page[at..].find("\n\n").map_or(page.len() - at, |end| end + 1);
        let (found, points) = (&page[at..at + length], points(file));
        if found != points {
            faults.push(format!("{}: the page says\n{found}and the file\n{points}", file.name));
            page.replace_range(at..at + length, &points);
        }
        let rest = &page[at..];
        let section = &rest[..rest.find("\n#").unwrap_or(rest.len())];
        if !section.contains("\n\n") {
            faults.push(format!("{}: nothing is said of deadlocks, snapshots and cost", file.name));
        }
    }
    if renews {
        fs::write(path(), page).expect("docs/sql-server.md can be written");
    }
    assert!(renews || faults.is_empty(), "{faults:#?}");
}
