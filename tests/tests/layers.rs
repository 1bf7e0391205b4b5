//! Imports go one way: the `use` lines of the crate are held to the order in ARCHITECTURE.md.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The layers, lowest first: a module imports from its own layer and from lower ones.
const LAYERS: &[&[&str]] = &[
    &["error"],
    &["config", "model"],
    &["storage"],
    &["pool", "enqueue", "operator"],
    &["job", "registry"],
    &["worker"],
    &["run"],
];

/// Where the names that stand at the crate's root come from.
const AT_THE_ROOT: &[(&str, &str)] = &[
    ("Error", "error"),
    ("Result", "error"),
    ("JobId", "model"),
    ("Timestamp", "model"),
    ("Pool", "pool"),
    ("Enqueue", "enqueue"),
    ("Job", "job"),
    ("JobContext", "job"),
    ("Worker", "worker"),
    ("WorkerHandle", "worker"),
];

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The first-level names of every `use crate::...;` in the text, and of every `crate::name` in its code.
fn imports(text: &str) -> Vec<String> {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut names = Vec::new();
    for (start, _) in code.match_indices("crate::") {
        let rest = &code[start + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            names.extend(first_level(group));
        } else {
            names.extend(word(rest));
        }
    }
    names
}

/// The names at the first level of a braced list, whose opening brace is already gone.
fn first_level(group: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut depth = 0;
    let mut expects_name = true;
    for (place, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => expects_name = true,
            c if depth == 0 && expects_name && (c.is_alphabetic() || c == '_') => {
                names.extend(word(&group[place..]));
                expects_name = false;
            }
            _ => {}
        }
    }
    names
}

fn word(text: &str) -> Option<String> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    (end > 0).then(|| text[..end].to_owned())
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// What one file imports against the order.
fn offences(file: &Path, module: &str, text: &str) -> Vec<String> {
    let own = layer(module).unwrap_or_else(|| panic!("{module} stands in no layer: add it"));
    let mut offences = Vec::new();
    for name in imports(text) {
        let from = AT_THE_ROOT.iter().find(|(root, _)| *root == name).map_or(&*name, |(_, m)| m);
        match layer(from) {
            Some(theirs) if theirs > own => {
                offences.push(format!("{}: {module} imports {name}", file.display()));
            }
            Some(_) => {}
            None => offences.push(format!("{}: {name} stands in no layer", file.display())),
        }
    }
    offences
}

#[test]
fn no_module_imports_from_a_layer_above_its_own() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../chokaq/src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 40, "the sources are not where this test looks");
    let mut all = Vec::new();
    for file in files {
        let path = file.strip_prefix(&root).expect("below the root");
        let first = path.components().next().expect("a name").as_os_str().to_string_lossy();
        let module = first.trim_end_matches(".rs");
        if module != "lib" {
            all.extend(offences(path, module, &fs::read_to_string(&file).expect("a source")));
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn an_import_against_the_order_is_noticed() {
    let text =
        "use crate::{\n    Error,\n    worker::{Worker, a::B},\n};\nlet x = crate::Pool::new();\n";
    assert_eq!(imports(text), ["Error", "worker", "Pool"]);
    assert_eq!(offences(Path::new("x.rs"), "storage", text).len(), 2);
    assert_eq!(offences(Path::new("x.rs"), "run", text).len(), 0);
}
