//! What may be locked when a statement runs: every way through the IFs and WHILEs of a file is followed.

use std::collections::BTreeSet;

use crate::{
    blocks::{Verb, blocks},
    flow::{Node, Statement, flow},
    sources::Source,
    tokens::render,
};

/// What may hold when a statement begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// Whether a transaction may be open.
    pub(crate) is_open: bool,
    /// The condition under which it was opened, if it was under one.
    opened_under: Option<String>,
    /// The tables in which it may hold rows until it ends.
    pub(crate) held: BTreeSet<String>,
}

/// One table as a statement comes to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Touch {
    pub(crate) table: String,
    /// Whether it keeps its locks until the transaction ends.
    pub(crate) is_kept: bool,
    /// Whether it waits for rows that another has locked.
    pub(crate) waits: bool,
    /// Whether it only adds rows.
    pub(crate) inserts: bool,
}

/// Runs `visit` over every statement that is no BEGIN, COMMIT or ROLLBACK, with what may hold before it: several times
/// where several ways lead to it. A CATCH is taken to follow the end of its TRY. Answers what may hold at the end.
pub(crate) fn walk(text: &str, visit: &mut dyn FnMut(&Statement, &State)) -> State {
    run(&flow(text), State::default(), visit)
}

fn run(nodes: &[Node], mut state: State, visit: &mut dyn FnMut(&Statement, &State)) -> State {
    for node in nodes {
        state = match node {
            Node::Statement(statement) => after(statement, state, visit),
            Node::If { condition, then, otherwise } => {
                visit(condition, &state);
                let (yes, no) = ways(condition, &state);
                let was_open = yes.is_open;
                let mut yes = run(then, yes, visit);
                if yes.is_open && !was_open {
                    yes.opened_under = Some(render(&condition.tokens));
                }
                either(yes, run(otherwise, no, visit))
            }
            Node::While { condition, body } => {
                visit(condition, &state);
                let once = either(state.clone(), run(body, state, visit));
                visit(condition, &once);
                either(once.clone(), run(body, once, visit))
            }
        };
    }
    state
}

/// What may hold under a condition, and under its ELSE: @@TRANCOUNT says whether a transaction is open, and so does the
/// condition that it was opened under.
fn ways(condition: &Statement, state: &State) -> (State, State) {
    if state.opened_under.as_ref() == Some(&render(&condition.tokens)) {
        return (state.clone(), State::default());
    }
    let words: Vec<&str> = condition.tokens.iter().map(|token| token.text.as_str()).collect();
    match words.as_slice() {
        ["IF", "@@TRANCOUNT", ">", "0"] => (state.clone(), State::default()),
        ["IF", "@@TRANCOUNT", "=", "0"] => (State::default(), state.clone()),
        _ => (state.clone(), state.clone()),
    }
}

fn either(a: State, mut b: State) -> State {
    b.held.extend(a.held);
    let opened_under = match (a.is_open, b.is_open) {
        (true, true) if a.opened_under != b.opened_under => None,
        (true, _) => a.opened_under,
        _ => b.opened_under,
    };
    State { is_open: a.is_open || b.is_open, opened_under, held: b.held }
}

fn after(
    statement: &Statement,
    mut state: State,
    visit: &mut dyn FnMut(&Statement, &State),
) -> State {
    if statement.starts(&["BEGIN"]) {
        state.is_open = true;
        state.opened_under = None;
        return state;
    }
    if statement.starts(&["COMMIT"]) || statement.starts(&["ROLLBACK"]) {
        return State::default();
    }
    visit(statement, &state);
    if state.is_open {
        let kept = touches(statement).into_iter().filter(|touch| touch.is_kept);
        state.held.extend(kept.map(|touch| touch.table));
    }
    state
}

/// The tables of the schema that a statement comes to, in order: what an INSERT reads is read before it adds a row.
pub(crate) fn touches(statement: &Statement) -> Vec<Touch> {
    let (mut found, mut last) = (Vec::new(), Vec::new());
    for block in blocks(statement) {
        for source in &block.sources {
            let Some(table) = source.table() else { continue };
            let is_target = block.target.as_deref() == Some(source.alias.as_str());
            let inserts = is_target && block.verb == Verb::Insert;
            let touch = Touch {
                table: table.to_owned(),
                is_kept: is_target || keeps(source),
                waits: !["READPAST", "NOLOCK", "READUNCOMMITTED"]
                    .iter()
                    .any(|hint| source.has(hint)),
                inserts,
            };
            if inserts { last.push(touch) } else { found.push(touch) }
        }
    }
    found.append(&mut last);
    found
}

fn keeps(source: &Source) -> bool {
    let hints = ["UPDLOCK", "XLOCK", "TABLOCKX", "HOLDLOCK", "SERIALIZABLE", "REPEATABLEREAD"];
    hints.iter().any(|hint| source.has(hint))
}

#[test]
fn every_way_is_followed() {
    let text = "WHILE @n > 0\nBEGIN\n IF @@TRANCOUNT > 0 COMMIT TRANSACTION;\n SELECT 1;\n BEGIN TRANSACTION;\n UPDATE [chokaq].Queues SET IsPaused = 1;\n IF @a = 1 COMMIT TRANSACTION;\n SELECT 2;\nEND\nSELECT 3;";
    let mut open = Vec::new();
    let end = walk(text, &mut |statement, state| {
        if statement.starts(&["SELECT"]) {
            open.push((statement.tokens[1].text.clone(), state.is_open, state.held.len()));
        }
    });
    let is_open =
        |n: &str| open.iter().any(|(known, open, held)| known == n && (*open || *held > 0));
    assert!(!is_open("1") && is_open("2") && is_open("3") && end.is_open);
    let own = "IF @own = 1 BEGIN TRANSACTION;\nUPDATE [chokaq].Queues SET IsPaused = 1;\nIF @own = 1 COMMIT TRANSACTION;";
    assert!(!walk(own, &mut |_, _| {}).is_open);
    assert!(walk(&own.replace("IF @own = 1 COMMIT", "IF @own = 2 COMMIT"), &mut |_, _| {}).is_open);
}

#[test]
fn tables_are_touched_in_order() {
    let text = "INSERT INTO [chokaq].JobsDLQ (Id) SELECT h.Id FROM [chokaq].JobsHot AS h WITH (UPDLOCK, READPAST) WHERE EXISTS (SELECT 1 FROM [chokaq].Queues AS q);";
    let statement = &crate::flow::statements(text)[0];
    let found: Vec<_> =
        touches(statement).into_iter().map(|t| (t.table, t.is_kept, t.waits)).collect();
    let expected = [("JobsHot", true, false), ("Queues", false, true), ("JobsDLQ", true, true)];
    assert_eq!(found, expected.map(|(table, kept, waits)| (table.to_owned(), kept, waits)));
}
