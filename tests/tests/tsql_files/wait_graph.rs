//! Whoever waits holds only what comes earlier in the order: then no circle of waiting can close.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    files::{QueryFile, queries},
    locks::{ORDER, edges, stated},
};

/// Statements that go against the order, and why no circle can close through them, or what happens if one does.
///
/// `resurrect` holds a row of the dead-letter queue and waits for JobsHot. A circle needs somebody who holds the row of
/// JobsHot that it waits for, and waits for that row of the dead-letter queue. Who moves a job into the dead-letter queue
/// adds a row, with an id that stands there for nobody else: it waits for nothing there. Who puts a job into JobsHot looks
/// for its own id in the dead-letter queue: `enqueue`, called again for a job that has died and is being resurrected at
/// this moment. That circle can close; the server breaks it with error 1205, which both sides repeat.
const EXCEPTIONS: [&str; 1] = ["resurrect"];

/// Who looks into the dead-letter queue while it holds a row of JobsHot.
const LOOKS_FOR_ITS_OWN: [&str; 1] = ["enqueue"];

/// From each table that is held to those that are waited for then.
type Graph = BTreeMap<String, BTreeSet<String>>;

fn add(graph: &mut Graph, held: &str, next: &str) {
    graph.entry(held.to_owned()).or_default().insert(next.to_owned());
}

/// The graph of the headers.
fn stated_graph(files: &[QueryFile]) -> Graph {
    let mut graph = Graph::new();
    for file in files {
        let chain = stated(file).unwrap_or_else(|e| panic!("{}: {e}", file.name));
        for (n, held) in chain.iter().enumerate() {
            chain[n + 1..].iter().for_each(|next| add(&mut graph, held, next));
        }
    }
    graph
}

/// The graph of the texts.
fn written_graph(files: &[QueryFile]) -> Graph {
    let mut graph = Graph::new();
    for edge in files.iter().flat_map(edges).filter(|edge| edge.touch.waits) {
        add(&mut graph, &edge.held, &edge.touch.table);
    }
    graph
}

/// Tables on the way back to where it began.
fn cycle(graph: &Graph) -> Option<Vec<String>> {
    let from = |start: &String| {
        let mut ways = vec![vec![start.clone()]];
        while let Some(way) = ways.pop() {
            for next in graph.get(way.last()?).into_iter().flatten() {
                if next == start {
                    return Some(way);
                }
                if !way.contains(next) {
                    ways.push(way.iter().chain([next]).cloned().collect());
                }
            }
        }
        None
    };
    graph.keys().find_map(from)
}

fn without_exceptions() -> Vec<QueryFile> {
    let is_kept = |file: &QueryFile| !EXCEPTIONS.contains(&file.name.as_str());
    queries().into_iter().filter(is_kept).collect()
}

#[test]
fn the_wait_graph_has_no_cycle() {
    let files = without_exceptions();
    let graph = stated_graph(&files);
    assert!(graph.len() >= 4 && graph["JobsHot"].len() >= 4, "{graph:?}");
    assert_eq!(cycle(&graph), None, "of the headers");
    assert_eq!(cycle(&written_graph(&files)), None, "of the texts");
    for (held, next) in graph.iter().flat_map(|(held, next)| next.iter().map(move |n| (held, n))) {
        let place = |name: &String| ORDER.iter().position(|(_, table)| table == name);
        assert!(place(held) < place(next), "{held} before {next}: not the one order");
    }
}

#[test]
fn each_exception_is_one() {
    for name in EXCEPTIONS {
        let mut files = without_exceptions();
        files.extend(queries().into_iter().filter(|file| file.name == name));
        assert!(cycle(&stated_graph(&files)).is_some(), "{name} keeps to the order: no exception");
    }
}

/// What `EXCEPTIONS` rests on.
#[test]
fn nobody_waits_for_a_dead_row_of_another_job_while_it_holds_a_hot_one() {
    for file in without_exceptions() {
        let waits = edges(&file).into_iter().filter(|edge| {
            edge.held == "JobsHot" && edge.touch.table == "JobsDLQ" && edge.touch.waits
        });
        for edge in waits {
            let is_own = LOOKS_FOR_ITS_OWN.contains(&file.name.as_str()) && !edge.touch.is_kept;
            assert!(edge.touch.inserts || is_own, "{}, line {}", file.name, edge.line);
        }
    }
}

#[test]
fn a_cycle_is_noticed() {
    let file = |text: &str| QueryFile::planted(text);
    let one = "-- Locks: Hot > DLQ.\nBEGIN TRANSACTION;\nUPDATE [chokaq].JobsHot SET Status = 1;\nUPDATE [chokaq].JobsDLQ SET Error = NULL;\nCOMMIT TRANSACTION;";
    let other = "-- Locks: DLQ > Stats.\nBEGIN TRANSACTION;\nUPDATE [chokaq].JobsDLQ SET Error = NULL;\nUPDATE [chokaq].StatsSummary SET Shard = 1;\nCOMMIT TRANSACTION;";
    let good = [file(one), file(other)];
    assert_eq!((cycle(&stated_graph(&good)), cycle(&written_graph(&good))), (None, None));
    let bad = other
        .replace("Stats.", "Stats > Hot.")
        .replace("SET Shard = 1;", "SET Shard = 1;\nUPDATE [chokaq].JobsHot SET Status = 1;");
    let bad = [file(one), file(&bad)];
    assert!(cycle(&stated_graph(&bad)).is_some() && cycle(&written_graph(&bad)).is_some());
}
