//! The guards: what a statement compares before it changes a job, chooses one, or recognises its own effect.

use std::{collections::BTreeMap, fs, path::PathBuf};

use chokaq::model::{JobStatus, TRANSITIONS, Transition};

use crate::{
    blocks::{Block, Verb, blocks},
    files::{QueryFile, queries},
    flow::{Statement, statements},
    lints::{hold, notices},
    schema::Schema,
    sources::Source,
    tokens::{are, render},
};

/// Whether a query changes rows of JobsHot.
pub(crate) fn changes_hot(block: &Block) -> bool {
    matches!(block.verb, Verb::Update | Verb::Delete) && block.changed_table() == Some("JobsHot")
}

/// The tables that jobs stand in.
const PILLARS: [&str; 3] = ["JobsHot", "JobsArchive", "JobsDLQ"];

/// Whether a query changes or takes away jobs, wherever they stand.
fn changes_jobs(block: &Block) -> bool {
    let is_change = matches!(block.verb, Verb::Update | Verb::Delete);
    is_change && block.changed_table().is_some_and(|table| PILLARS.contains(&table))
}

/// Whether a query reads jobs, or the settings that decide over them.
fn reads_jobs(block: &Block) -> bool {
    let mut tables = block.sources.iter().filter_map(Source::table);
    block.verb != Verb::Insert && tables.any(|t| t == "Queues" || PILLARS.contains(&t))
}

/// Which conjuncts a transition needs, as they are written.
fn needed(transition: &Transition) -> Vec<String> {
    let number = |status: &JobStatus| (*status as u8).to_string();
    let numbers: Vec<String> = transition.from.iter().map(number).collect();
    let mut guards = vec!["h.Seq = i.Seq".to_owned()];
    guards.push(match numbers.as_slice() {
        [one] => format!("h.Status = {one}"),
        more => format!("h.Status IN ({})", more.join(", ")),
    });
    if transition.owned {
        guards.extend(["h.WorkerId = @worker", "h.LeaseId = i.LeaseId"].map(str::to_owned));
    }
    guards
}

/// What the table of transitions asks of a file.
pub(crate) fn transition_faults(file: &QueryFile, _: &Schema) -> Vec<String> {
    let mut faults = Vec::new();
    for statement in statements(&file.text) {
        let line = statement.line();
        for block in blocks(&statement).iter().filter(|block| changes_hot(block)) {
            let has = |guard: &str| {
                block.conjuncts.iter().any(|range| are(&statement.tokens[range.clone()], guard))
            };
            let statuses = ["= 0", "= 1", "= 2", "IN (0, 1)"];
            if !statuses.iter().any(|way| {
                has(&format!("{}.Status {way}", block.target.as_deref().unwrap_or_default()))
            }) {
                faults.push(format!("line {line}: any status passes"));
            }
            for transition in TRANSITIONS.iter().filter(|known| known.query == file.name) {
                let missing = needed(transition).into_iter().filter(|guard| !has(guard));
                faults.extend(missing.map(|guard| format!("line {line}: {guard} is missing")));
            }
        }
    }
    faults
}

/// The statements whose guards are listed: those that change jobs, those that choose rows for one that does, and those that
/// recognise what an earlier run did.
pub(crate) fn guarded(file: &QueryFile) -> Vec<(Statement, Vec<Block>)> {
    let with_blocks = |statement: Statement| {
        let blocks = blocks(&statement);
        (statement, blocks)
    };
    let mut found: Vec<_> = statements(&file.text).into_iter().map(with_blocks).collect();
    let changes = found.iter().any(|(_, blocks)| blocks.iter().any(changes_jobs));
    let recognises = file.name.starts_with("find_") && file.name != "find_job";
    found.retain(|(_, blocks)| {
        let chooses = blocks.first().is_some_and(|block| {
            block.verb == Verb::Insert || block.items.iter().any(|item| item.assigns.is_some())
        });
        let is_part = recognises || changes && (chooses || !file.is_for_operators());
        blocks.iter().any(changes_jobs) || (is_part && blocks.iter().any(reads_jobs))
    });
    found.retain(|(_, blocks)| blocks.iter().any(|block| !block.conjuncts.is_empty()));
    found
}

/// The conjuncts of each guarded statement, those of its sub-queries too.
fn written(file: &QueryFile) -> Vec<Vec<String>> {
    let of_statement = |(statement, blocks): (Statement, Vec<Block>)| {
        let parts = blocks.iter().flat_map(|block| block.conjuncts.iter().cloned());
        parts.map(|range| without_queries(&render(&statement.tokens[range]))).collect()
    };
    guarded(file).into_iter().map(of_statement).collect()
}

/// The guards inside a sub-query are listed after the condition that it stands in.
fn without_queries(text: &str) -> String {
    let mut left = String::new();
    let mut depth = None;
    for (at, c) in text.char_indices() {
        match (depth, c) {
            (None, '(') if text[at..].starts_with("(SELECT ") => {
                left.push_str("(SELECT ...)");
                depth = Some(1);
            }
            (None, _) => left.push(c),
            (Some(n), '(') => depth = Some(n + 1),
            (Some(1), ')') => depth = None,
            (Some(n), ')') => depth = Some(n - 1),
            _ => {}
        }
    }
    left
}

/// `guards.txt`: a file's name, then the guards of its statements, each statement after an empty line.
fn listed() -> BTreeMap<String, Vec<Vec<String>>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tsql_files/guards.txt");
    let text = fs::read_to_string(path).expect("the list is read");
    let (mut list, mut name) = (BTreeMap::<String, Vec<Vec<String>>>::new(), String::new());
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if let Some(file) = line.strip_suffix(':') {
            file.clone_into(&mut name);
            list.entry(name.clone()).or_default().push(Vec::new());
        } else {
            let statements = list.get_mut(&name).expect("a file is named first");
            statements.last_mut().expect("a statement is begun").push(line.trim().to_owned());
        }
    }
    list
}

/// What a file has that the list has not, and the other way round.
pub(crate) fn faults(file: &QueryFile, _: &Schema) -> Vec<String> {
    let listed = listed().remove(&file.name).unwrap_or_default();
    let written = written(file);
    if written == listed {
        return Vec::new();
    }
    let stanza = |guards: &Vec<String>| format!("{}:\n    {}\n", file.name, guards.join("\n    "));
    let show = |all: &[Vec<String>]| all.iter().map(stanza).collect::<String>();
    vec![format!("guards.txt says\n{}the file has\n{}", show(&listed), show(&written))]
}

#[test]
fn every_transition_is_a_named_query_with_its_guards() {
    let files = queries();
    for transition in TRANSITIONS {
        let file = files.iter().find(|file| file.name == transition.query);
        let file = file.unwrap_or_else(|| panic!("{}.sql is missing", transition.query));
        let changes = guarded(file).iter().any(|(_, blocks)| blocks.iter().any(changes_hot));
        assert!(changes, "{} changes no row of JobsHot", transition.query);
    }
    hold(transition_faults);
}

#[test]
fn the_guards_are_those_of_the_list() {
    hold(faults);
    let files: Vec<String> = queries().into_iter().map(|file| file.name).collect();
    for name in listed().into_keys() {
        assert!(files.contains(&name), "guards.txt lists {name}, which is no file");
    }
}

#[test]
fn a_status_that_is_not_compared_is_noticed() {
    let good = "UPDATE h SET IsReady = 1 FROM @in AS i INNER JOIN [chokaq].JobsHot AS h ON h.Seq = i.Seq WHERE h.Status = 2 AND h.WorkerId = @worker;";
    notices(
        transition_faults,
        good,
        &[
            ("h.Status = 2 AND ", ""),
            ("h.Status = 2 AND", "h.Status = 2 OR"),
            ("h.Status = 2", "h.Status = @status"),
            ("h.Status = 2", "h.Status IN (0, 1, 2)"),
            ("h.Status = 2 AND", "-- h.Status = 2 AND\n"),
            (
                "h.Status = 2",
                "h.Seq IN (SELECT k.Seq FROM [chokaq].JobsHot AS k WHERE k.Status = 2)",
            ),
        ],
    );
    let other = good.replace("h.Status = 2", "i.Status = 2");
    assert!(!crate::lints::found(transition_faults, &other).is_empty());
}
