//! The documents say what the code does.

#![expect(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::{
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Variable, `section.key` and default of every setting, as chokaq.example.toml has them.
fn settings() -> Vec<[String; 3]> {
    let text = read("chokaq.example.toml");
    let (mut section, mut variable) = (String::new(), String::new());
    let mut settings = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name.clone_into(&mut section);
        }
        let Some(comment) = line.strip_prefix("# ") else { continue };
        if comment.starts_with("CHOKAQ_") {
            comment.clone_into(&mut variable);
        } else if let Some((key, default)) = comment.split_once(" = ")
            && !key.contains(' ')
        {
            let key = format!("{section}.{key}");
            settings.push([variable.clone(), key, default.trim_matches('"').to_owned()]);
        }
    }
    assert!(settings.len() > 15, "the settings are not where this test looks");
    settings
}

/// The first three cells of the README's rows that begin with a variable.
fn readme_rows() -> Vec<[String; 3]> {
    let readme = read("README.md");
    let rows = readme.lines().filter(|line| line.starts_with("| `CHOKAQ_"));
    rows.map(|row| {
        let mut cells = row.split('|').skip(1).map(|cell| cell.trim().trim_matches('`').to_owned());
        std::array::from_fn(|_| cells.next().unwrap())
    })
    .collect()
}

#[test]
fn the_readmes_table_has_exactly_the_settings_with_their_keys_and_defaults() {
    let mut rows = readme_rows();
    let mut settings = settings();
    // Two defaults depend on the machine and on the program: the README says how, the file shows an example.
    for table in [&mut rows, &mut settings] {
        for row in table.iter_mut() {
            if ["worker.concurrency", "worker.queues"].contains(&row[1].as_str()) {
                row[2].clear();
            }
        }
        table.sort();
    }
    assert_eq!(rows, settings);
}

#[test]
fn the_readme_names_no_variable_that_is_not_a_setting() {
    let (readme, settings) = (read("README.md"), settings());
    for (at, _) in readme.match_indices("CHOKAQ_") {
        let end = readme[at..].find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap();
        let name = &readme[at..at + end];
        let is_known = name == "CHOKAQ_CONFIG" || settings.iter().any(|row| row[0] == name);
        assert!(is_known, "README.md names {name}");
    }
}

/// Links to this repository stand in the README with their whole address, because it is also the crate's page.
const REPOSITORY: &str = "https://github.com/chokaq/chokaq/";

/// Every page of the repository, by its path from the root.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let (name, path) = (entry.file_name(), folder.join(entry.file_name()));
        // A link to a page is that page once more.
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && name != "target" && !name.to_string_lossy().starts_with('.') {
            pages(&path, found);
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The file, from the root, and the place in it that a link leads to; `None` for other people's pages.
fn target(page: &Path, link: &str) -> Option<(PathBuf, Option<String>)> {
    let (file, place) = link.split_once('#').unwrap_or((link, ""));
    let place = (!place.is_empty()).then(|| place.to_owned());
    let own = file.strip_prefix(REPOSITORY).and_then(|path| {
        path.strip_prefix("blob/main/").or_else(|| path.strip_prefix("tree/main/"))
    });
    match own {
        Some(path) => Some((path.into(), place)),
        None if file.contains("://") => None,
        None if file.is_empty() => Some((page.to_owned(), place)),
        None => Some((page.parent().unwrap().join(file), place)),
    }
}

/// The name of a heading's place, as the repository's pages are shown.
fn place_of(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter(kept)
        .collect::<String>()
        .replace(' ', "-")
}

#[test]
fn every_link_into_this_repository_leads_to_a_file_and_to_a_heading_in_it() {
    let mut all = Vec::new();
    pages(Path::new(""), &mut all);
    assert!(all.len() > 6, "the pages are not where this test looks: {all:?}");
    let mut broken = Vec::new();
    let mut followed = 0;
    for page in all {
        let text = read(page.to_str().unwrap());
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let Some((file, place)) = target(&page, link) else { continue };
            followed += 1;
            let is_there = match place {
                None => root().join(&file).exists(),
                Some(place) => fs::read_to_string(root().join(&file)).is_ok_and(|text| {
                    text.lines().any(|line| line.starts_with('#') && place_of(line) == place)
                }),
            };
            if !is_there {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(followed > 10, "only {followed} links were found");
}
