//! `dba/roles.sql` grants what the statements need: no less, no more.

use std::collections::{BTreeMap, BTreeSet};

use crate::text::{files, read, statements};

type Table = String;
type Rights = BTreeSet<(Table, &'static str)>;

const RIGHTS: [&str; 4] = ["SELECT", "INSERT", "UPDATE", "DELETE"];
const ROLES: [&str; 4] = ["chokaq_producer", "chokaq_worker", "chokaq_reader", "chokaq_operator"];

/// Who calls a method of the contract.
fn role_of(contract: &str, method: &str) -> &'static str {
    match contract {
        "ProducerStorage" => "chokaq_producer",
        "WorkerStorage" => "chokaq_worker",
        "OperatorStorage" if method == "find_job" || method.starts_with("get_") => "chokaq_reader",
        "OperatorStorage" => "chokaq_operator",
        // It reads the catalogue, where everybody sees what they may read.
        "MigrationStorage" => "chokaq_reader",
        other => panic!("{other} is for nobody"),
    }
}

/// What a statement does to tables. A changed row is also read: it is chosen by its columns.
fn touched(statement: &str) -> Rights {
    let changed = |verb: &str, after: &str| -> Option<String> {
        let (_, rest) = statement.split_once(verb)?;
        let rest = rest.strip_prefix("TOP (@batch) ").unwrap_or(rest);
        let alias = rest.split(' ').next()?;
        rest[alias.len()..].trim_start().starts_with(after).then(|| format!(" AS {alias} "))
    };
    let changes = [("UPDATE", changed("UPDATE ", "SET ")), ("DELETE", changed("DELETE ", ""))];
    let mut rights = Rights::new();
    for (at, _) in statement.match_indices("[chokaq].") {
        let (before, after) = (&statement[..at], &statement[at + "[chokaq].".len()..]);
        let end = after.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(after.len());
        let (table, after) = after.split_at(end);
        if before.ends_with("INSERT INTO ") {
            rights.insert((table.to_owned(), "INSERT"));
            continue;
        }
        assert!(before.ends_with("FROM ") || before.ends_with("JOIN "), "{statement}");
        rights.insert((table.to_owned(), "SELECT"));
        for (right, alias) in &changes {
            if alias.as_ref().is_some_and(|alias| after.starts_with(&**alias)) {
                rights.insert((table.to_owned(), right));
            }
        }
    }
    rights
}

/// What each role needs, by the files and their headers.
fn needed() -> BTreeMap<&'static str, Rights> {
    let mut queries = files("");
    queries.retain(|name, _| name != "schema" && name != "ledger");
    // `WorkerStorage::release`, or `release` alone where a query helps another.
    let callers: BTreeMap<&str, String> = queries
        .iter()
        .map(|(name, text)| {
            let caller = text.lines().find_map(|line| line.strip_prefix("-- Caller: "));
            let caller = caller.unwrap_or_else(|| panic!("{name} has a caller"));
            let first = caller.split([',', ' ']).next().unwrap_or_default();
            (name.as_str(), first.trim_end_matches('.').to_owned())
        })
        .collect();
    let mut needed = BTreeMap::new();
    for (name, text) in &queries {
        let caller = &callers[name.as_str()];
        let whole = callers.values().find(|whole| whole.ends_with(&format!("::{caller}")));
        let (contract, method) = whole
            .unwrap_or(caller)
            .split_once("::")
            .unwrap_or_else(|| panic!("{name} is called by {caller}, which nothing else names"));
        let rights: &mut Rights = needed.entry(role_of(contract, method)).or_default();
        rights.extend(statements(text).iter().flat_map(|statement| touched(statement)));
    }
    // Every program looks at the recorded migrations when it connects.
    for role in ROLES {
        let rights = needed.get_mut(role).unwrap_or_else(|| panic!("{role} has statements"));
        rights.insert(("SchemaMigrations".to_owned(), "SELECT"));
    }
    // An operator looks before it acts.
    let reads = needed["chokaq_reader"].clone();
    needed.get_mut("chokaq_operator").expect("it is there").extend(reads);
    needed
}

/// `GRANT rights ON object TO role`, as the file has them: object and rights by role.
fn grants() -> Vec<(String, String, Vec<String>)> {
    let mut grants = Vec::new();
    for statement in statements(&read("dba/roles.sql")) {
        let Some((_, grant)) = statement.split_once("GRANT ") else { continue };
        let (rights, rest) = grant.split_once(" ON ").map_or_else(
            || {
                let (rights, role) = grant.split_once(" TO ").expect("to somebody");
                (rights, format!("DATABASE TO {role}"))
            },
            |(rights, rest)| (rights, rest.to_owned()),
        );
        let (object, role) = rest.split_once(" TO ").expect("to somebody");
        let rights = rights.split(", ").map(str::to_owned).collect();
        grants.push((role.to_owned(), object.to_owned(), rights));
    }
    grants
}

fn granted(role: &str) -> Rights {
    let mut found = Rights::new();
    for (_, object, rights) in grants().into_iter().filter(|(to, ..)| to == role) {
        let Some(table) = object.strip_prefix("[chokaq].") else { continue };
        for right in rights.iter().filter(|right| *right != "EXECUTE") {
            let right = RIGHTS.into_iter().find(|known| known == right).expect("a right on rows");
            assert!(found.insert((table.to_owned(), right)), "{role}: {right} on {table} twice");
        }
    }
    found
}

#[test]
fn each_role_has_what_its_statements_need_and_nothing_else() {
    let needed = needed();
    for role in ROLES {
        let mut granted = granted(role);
        if role == "chokaq_operator" {
            assert!(
                read("dba/roles.sql")
                    .contains("ALTER ROLE chokaq_reader ADD MEMBER chokaq_operator")
            );
            granted.extend(self::granted("chokaq_reader"));
        }
        let missing: Vec<_> = needed[role].difference(&granted).collect();
        let idle: Vec<_> = granted.difference(&needed[role]).collect();
        assert!(
            missing.is_empty() && idle.is_empty(),
            "{role} lacks {missing:?}, and has {idle:?} for nothing"
        );
    }
}

#[test]
fn the_check_notices_what_is_not_granted_and_what_is_not_needed() {
    let rights = touched(
        "UPDATE TOP (@batch) h SET Status = 0 FROM @found AS i INNER LOOP JOIN [chokaq].JobsHot AS h WITH (ROWLOCK) ON 1 = 1",
    );
    let of = |rights: &[&'static str]| -> Rights {
        rights.iter().map(|right| ("JobsHot".to_owned(), *right)).collect()
    };
    assert_eq!(rights, of(&["SELECT", "UPDATE"]));
    assert_eq!(
        touched("DELETE h FROM @found AS i INNER LOOP JOIN [chokaq].JobsHot AS h ON 1 = 1"),
        of(&["DELETE", "SELECT"])
    );
    assert_eq!(
        touched("IF 1 = 1 INSERT INTO [chokaq].JobsHot (Id) SELECT i.Id FROM @in AS i"),
        of(&["INSERT"])
    );
    assert_eq!(
        touched("DELETE i FROM @in AS i WHERE EXISTS (SELECT 1 FROM [chokaq].JobsHot AS h )"),
        of(&["SELECT"])
    );
    // A worker moves jobs into history and takes none out of it.
    let worker = &needed()["chokaq_worker"];
    assert!(worker.contains(&("JobsDLQ".to_owned(), "INSERT")));
    assert!(!worker.contains(&("JobsDLQ".to_owned(), "DELETE")));
}

#[test]
fn only_the_migrator_may_change_the_schema() {
    let mut migrator = BTreeSet::new();
    for (role, object, rights) in grants() {
        let is_ddl = object == "DATABASE" || object.starts_with("SCHEMA::");
        if role == "chokaq_migrator" {
            migrator.extend(rights.into_iter().map(|right| format!("{right} ON {object}")));
        } else {
            assert!(!is_ddl, "{role} on {object}");
            let is_procedure = object == "[chokaq].Enqueue" && role == "chokaq_producer";
            assert_eq!(rights.contains(&"EXECUTE".to_owned()), is_procedure, "{role} on {object}");
        }
    }
    // What the migrations create, and the ledger that they are recorded in. The tables do not exist before the first one.
    let expected = [
        "ALTER ON SCHEMA::[chokaq]",
        "CREATE PROCEDURE ON DATABASE",
        "CREATE TABLE ON DATABASE",
        "INSERT ON SCHEMA::[chokaq]",
        "SELECT ON SCHEMA::[chokaq]",
    ];
    assert_eq!(migrator, expected.map(str::to_owned).into());
    let migrations: String = files("migrations").into_values().collect();
    // Up to a procedure's own text, which runs with its caller's rights or its owner's.
    let (made, _) = migrations.split_once("EXEC (N'ALTER PROCEDURE").expect("it is last");
    let kinds = ["CREATE TABLE", "ALTER TABLE", "CREATE UNIQUE NONCLUSTERED INDEX"];
    let more = ["CREATE NONCLUSTERED INDEX", "IF OBJECT_ID(N'[chokaq].Enqueue', N'P')", "')"];
    for statement in statements(made) {
        let is_covered = kinds.iter().chain(&more).any(|kind| statement.starts_with(kind));
        assert!(is_covered, "does the migrator's role cover {statement}?");
    }
}
