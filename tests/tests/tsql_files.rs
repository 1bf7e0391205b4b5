//! Offline checks over `sql/mssql/*.sql`: what can be held to the rules without a server.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use chokaq::model::{TRANSITIONS, Transition};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../sql/mssql")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Every named query: name and text.
fn queries() -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder()).expect("the folder is listed");
    let paths = entries.map(|entry| entry.expect("an entry is read").path());
    let named = paths.filter(|path| path.extension().is_some_and(|extension| extension == "sql"));
    let mut files = BTreeMap::new();
    for path in named {
        let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        if name != "schema" && name != "ledger" {
            files.insert(name, read(&path));
        }
    }
    assert!(files.len() > 30, "{} files", files.len());
    files
}

fn schema() -> String {
    read(&folder().join("schema.sql"))
}

fn without_comments(text: &str) -> String {
    let mut plain = String::new();
    for line in text.lines() {
        plain.push_str(line.split("--").next().unwrap_or_default());
        plain.push(' ');
    }
    while let Some((before, rest)) = plain.split_once("/*") {
        let after = rest.split_once("*/").map_or("", |(_, after)| after);
        plain = format!("{before}{after}");
    }
    plain
}

/// Without comments, each on one line with single spaces.
fn statements(text: &str) -> Vec<String> {
    let plain = without_comments(text);
    let one_line = |statement: &str| statement.split_whitespace().collect::<Vec<_>>().join(" ");
    plain.split(';').map(one_line).filter(|statement| !statement.is_empty()).collect()
}

/// The text between the places where `word` stands outside parentheses.
fn split_outside<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 && text[at..].starts_with(word) => {
                parts.push(&text[start..at]);
                start = at + word.len();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The conjuncts of the statement's own WHERE clause; none where an OR stands beside them.
fn conjuncts(statement: &str) -> Vec<&str> {
    let parts = split_outside(statement, " WHERE ");
    let [_, .., last] = parts.as_slice() else { return Vec::new() };
    let clause = split_outside(last, " OPTION ")[0];
    if split_outside(clause, " OR ").len() > 1 {
        return Vec::new();
    }
    split_outside(clause, " AND ").into_iter().map(str::trim).collect()
}

fn changes_hot(statement: &str) -> bool {
    let changes = ["UPDATE h SET", "UPDATE TOP (@batch) h SET", "DELETE h "];
    let by_alias = changes.iter().any(|change| statement.contains(change));
    let direct = ["UPDATE [chokaq].JobsHot", "DELETE FROM [chokaq].JobsHot"];
    (by_alias && statement.contains("[chokaq].JobsHot AS h"))
        || direct.iter().any(|change| statement.contains(change))
}

/// Which conjuncts the transition needs, as they are written.
fn guards(transition: &Transition) -> Vec<String> {
    let numbers: Vec<String> =
        transition.from.iter().map(|status| (*status as u8).to_string()).collect();
    let mut guards = vec![match numbers.as_slice() {
        [one] => format!("h.Status = {one}"),
        more => format!("h.Status IN ({})", more.join(", ")),
    }];
    if transition.owned {
        guards.push("h.WorkerId = @worker".to_owned());
        guards.push("h.LeaseId = i.LeaseId".to_owned());
    }
    guards
}

fn guard_faults(text: &str, transition: &Transition) -> Vec<String> {
    let statements = statements(text);
    let changing: Vec<_> = statements.iter().filter(|statement| changes_hot(statement)).collect();
    let mut faults = Vec::new();
    if changing.is_empty() {
        faults.push(format!("{} changes no row of JobsHot", transition.query));
    }
    for statement in changing {
        if !statement.contains("ON h.Seq = i.Seq") {
            faults.push("it does not say which rows".to_owned());
        }
        let present = conjuncts(statement);
        for guard in guards(transition) {
            if !present.contains(&guard.as_str()) {
                faults.push(format!("{guard} is missing in {statement}"));
            }
        }
    }
    faults
}

#[test]
fn every_transition_is_a_named_query_with_its_guards() {
    let files = queries();
    for transition in TRANSITIONS {
        let text = files.get(transition.query);
        let text = text.unwrap_or_else(|| panic!("{}.sql is missing", transition.query));
        let faults = guard_faults(text, transition);
        assert!(faults.is_empty(), "{}: {faults:#?}", transition.query);
    }
}

#[test]
fn the_check_notices_each_guard_that_is_taken_away() {
    let files = queries();
    let mut tried = 0;
    for transition in TRANSITIONS {
        let statements = statements(&files[transition.query]);
        for (n, statement) in statements.iter().enumerate().filter(|(_, s)| changes_hot(s)) {
            let mut needed = guards(transition);
            needed.push("h.Seq = i.Seq".to_owned());
            for guard in needed {
                let at = statement.rfind(&guard).expect("the file has its guards");
                let mut mutant = statements.clone();
                mutant[n].replace_range(at..at + guard.len(), "1 = 1");
                let faults = guard_faults(&mutant.join(";\n"), transition);
                assert!(!faults.is_empty(), "{} without {guard}: unnoticed", transition.query);
                let mut mutant = statements.clone();
                mutant[n].replace_range(at..at + guard.len(), &format!("{guard} OR 1 = 1"));
                let faults = guard_faults(&mutant.join(";\n"), transition);
                let in_join = guard == "h.Seq = i.Seq";
                assert!(in_join || !faults.is_empty(), "{}: an OR: unnoticed", transition.query);
                tried += 1;
            }
        }
    }
    assert!(tried >= 40, "only {tried} guards were found to take away");
}

#[test]
fn every_change_of_a_hot_row_compares_its_status() {
    for (name, text) in queries() {
        for statement in statements(&text).iter().filter(|statement| changes_hot(statement)) {
            let compares = conjuncts(statement).iter().any(|c| c.starts_with("h.Status "));
            assert!(compares, "{name}: {statement}");
        }
    }
}

fn header(text: &str) -> Vec<&str> {
    text.lines().map_while(|line| line.strip_prefix("-- ")).collect()
}

#[test]
fn every_query_has_its_header() {
    for (name, text) in queries() {
        let header = header(&text);
        let mut from = 0;
        for word in
            ["Caller: ", "Intent: ", "Invariant: ", "Twin: ", "Locks: ", "Retry: ", "Answers: "]
        {
            let found = header[from..].iter().position(|line| line.starts_with(word));
            from += found.unwrap_or_else(|| panic!("{name}: {word}")) + 1;
        }
    }
}

/// The `@words` of a text; system functions (`@@...`) are none.
fn variables(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        rest = &rest[at + 1..];
        let name: String =
            rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == '@').collect();
        if !name.starts_with('@') {
            found.insert(name.clone());
        }
        rest = &rest[name.len()..];
    }
    found
}

#[test]
fn the_parameters_that_a_header_declares_are_those_that_the_query_uses() {
    for (name, text) in queries() {
        let lines = header(&text);
        let parameters = lines.iter().filter_map(|line| line.strip_prefix('@'));
        let declared: BTreeSet<String> =
            parameters.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
        let mut locals = BTreeSet::new();
        for statement in statements(&text) {
            if let Some((_, list)) = statement.split_once("DECLARE ") {
                for item in split_outside(list, ", ") {
                    let local = item.trim_start_matches('@').split(' ').next().unwrap_or_default();
                    locals.insert(local.to_owned());
                }
            }
        }
        let used: BTreeSet<String> =
            variables(&without_comments(&text)).difference(&locals).cloned().collect();
        assert_eq!(used, declared, "{name}");
    }
}

#[test]
fn no_statement_leaves_its_columns_open() {
    for (name, text) in queries() {
        for statement in statements(&text) {
            for star in ["SELECT *", "deleted.*", "inserted.*", ".* ", ", *"] {
                assert!(!statement.contains(star), "{name}: {star} in {statement}");
            }
            for insert in statement.split("INSERT INTO ").skip(1) {
                let target = insert.split(' ').nth(1).unwrap_or_default();
                assert!(target.starts_with('('), "{name}: no column list in {statement}");
            }
            assert!(!statement.contains("MERGE "), "{name}: {statement}");
        }
    }
}

/// Rows must not go to the client while locks are held: a slow reader would hold them too.
#[test]
fn nothing_is_sent_inside_a_transaction() {
    for (name, text) in queries() {
        let mut open = 0;
        for statement in statements(&text) {
            for output in statement.split("OUTPUT ").skip(1) {
                assert!(output.contains("INTO @"), "{name}: OUTPUT to the client: {statement}");
            }
            open += statement.matches("BEGIN TRANSACTION").count();
            let is_sent = statement.starts_with("SELECT ") && !statement.starts_with("SELECT @");
            assert!(open == 0 || !is_sent, "{name}: rows are sent in a transaction: {statement}");
            if statement.ends_with("COMMIT TRANSACTION") {
                open = 0;
            }
        }
        assert_eq!(open, 0, "{name} ends in a transaction");
        if text.contains("BEGIN TRANSACTION") {
            assert!(text.contains("SET XACT_ABORT ON;"), "{name}: an error would leave it open");
        }
    }
}

/// The filter of each filtered index.
fn filters() -> BTreeMap<String, String> {
    let mut filters = BTreeMap::new();
    for statement in statements(&schema()) {
        if let Some((_, index)) = statement.split_once(" INDEX ")
            && let Some((_, filter)) = index.split_once(" WHERE ")
        {
            let name = index.split(' ').next().unwrap_or_default().to_owned();
            let filter = filter.split(" WITH ").next().unwrap_or_default();
            filters.insert(name, filter.to_owned());
        }
    }
    assert!(filters.len() >= 6, "{filters:?}");
    filters
}

#[test]
fn a_filtered_index_is_named_with_its_filter_word_for_word() {
    let filters = filters();
    let mut checked = 0;
    for (name, text) in queries() {
        for statement in statements(&text) {
            let mut plain = statement.clone();
            for alias in ["h.", "f.", "a.", "k.", "p.", "x."] {
                plain = plain.replace(&format!(" {alias}"), " ");
            }
            for (index, filter) in &filters {
                if plain.contains(&format!("INDEX({index})")) {
                    for condition in filter.split(" AND ") {
                        assert!(plain.contains(condition), "{name}: {condition} in {statement}");
                    }
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 20, "{checked}");
}

#[test]
fn every_index_that_is_named_exists() {
    let schema = schema();
    for (name, text) in queries() {
        for hint in without_comments(&text).split("INDEX(").skip(1) {
            let index = hint.split(')').next().unwrap_or_default();
            assert!(schema.contains(&format!("{index} ")), "{name}: {index}");
        }
    }
}

/// The order in which statements that wait take their locks: no two may go round in a circle.
#[test]
fn the_lock_orders_of_the_headers_have_no_cycle() {
    const ORDER: [&str; 6] = ["Queues", "Hot", "Archive", "DLQ", "Buckets", "Stats"];
    let mut chains = 0;
    for (name, text) in queries() {
        let header = header(&text);
        let locks = header.iter().find_map(|line| line.strip_prefix("Locks: "));
        let locks = locks.unwrap_or_else(|| panic!("{name}: no locks"));
        let first = locks.split(['.', ';', ':']).next().unwrap_or_default();
        if first == "none kept" {
            continue;
        }
        let places: Vec<usize> = first
            .split(" > ")
            .map(|table| {
                let place = ORDER.iter().position(|known| *known == table);
                place.unwrap_or_else(|| panic!("{name}: {table:?} is no table"))
            })
            .collect();
        let ascends = places.is_sorted_by(|a, b| a < b);
        // The named exception: see its header.
        assert!(ascends || name == "resurrect", "{name}: {first}");
        chains += 1;
    }
    assert!(chains >= 15, "{chains}");
}

fn key_bytes(definition: &str) -> usize {
    let kind = definition.split(' ').nth(1).unwrap_or_default();
    match kind {
        "bit" | "tinyint" => 1,
        "int" => 4,
        "datetime2(3)" => 7,
        "bigint" => 8,
        "uniqueidentifier" => 16,
        _ => {
            let length = kind.strip_prefix("nvarchar(").and_then(|rest| rest.strip_suffix(')'));
            // (max) is no key at all.
            length.and_then(|length| length.parse::<usize>().ok()).map_or(1_000_000, |n| 2 * n)
        }
    }
}

/// SQL Server only warns at the creation of a longer key; the insert of a long row fails.
#[test]
fn every_index_key_fits() {
    let mut columns: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut indexes = Vec::new();
    let names = |list: &str| -> Vec<String> {
        let list = list.split(')').next().unwrap_or_default();
        list.split(", ").map(|column| column.split(' ').next().unwrap_or_default().into()).collect()
    };
    for statement in statements(&schema()) {
        let (_, rest) = statement.split_once("[chokaq].").expect("a table is named");
        let (table, body) = rest.split_once(" (").expect("columns are listed");
        if statement.starts_with("CREATE TABLE") {
            for line in split_outside(body.trim_end_matches(')'), ", ") {
                let line = line.trim();
                let column = line.split(' ').next().unwrap_or_default();
                if column == "CONSTRAINT" {
                    let (_, key) = line.split_once("CLUSTERED (").expect("a primary key");
                    indexes.push((table.to_owned(), names(key), 900));
                } else {
                    columns.insert((table.to_owned(), column.to_owned()), key_bytes(line));
                }
            }
        } else {
            indexes.push((table.to_owned(), names(body), 1_700));
        }
    }
    assert!(indexes.len() >= 20, "{}", indexes.len());
    for (table, key, limit) in indexes {
        let bytes: usize = key.iter().map(|column| columns[&(table.clone(), column.clone())]).sum();
        assert!(bytes <= limit, "{table} {key:?}: {bytes} bytes, at most {limit}");
    }
}

#[test]
fn the_schema_is_what_the_migrations_make() {
    let migration = read(&folder().join("migrations/0001_three_pillars.sql"));
    let made = statements(&migration).into_iter().filter(|s| !s.starts_with("ALTER TABLE"));
    let stated = statements(&schema()).into_iter().filter(|s| !s.contains("SchemaMigrations"));
    assert!(made.eq(stated));
    let ledger = statements(&schema()).pop().expect("the ledger is last");
    let created = statements(&read(&folder().join("ledger.sql"))).pop().unwrap_or_default();
    assert!(created.ends_with(&ledger), "{created}");
}

#[test]
fn every_statement_over_a_table_says_whose_it_is() {
    for (name, text) in queries() {
        let tag = format!("/* chokaq:{name} */");
        assert!(text.contains(&tag), "{name}: {tag} is missing");
        assert_eq!(text.matches("/* chokaq:").count(), text.matches(&tag).count(), "{name}");
    }
}
