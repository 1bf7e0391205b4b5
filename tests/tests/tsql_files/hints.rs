//! How tables are read on the worker's path: by a named index or a whole key, with plans that do not change.

use std::ops::Range;

use crate::{
    blocks::{Block, Verb},
    files::QueryFile,
    lints::{hold, notices},
    schema::{Index, Schema},
    scope::{Place, Scope},
    sources::Source,
    tokens::Token,
};

/// Rows are as few as the queues: a walk over them is one page.
const SMALL: [&str; 1] = ["Queues"];

pub(crate) fn faults(file: &QueryFile, schema: &Schema) -> Vec<String> {
    let scope = Scope::of(file, schema);
    let is_hot = !file.is_for_operators();
    let mut faults = Vec::new();
    scope.each(|place| {
        for block in place.blocks {
            for source in block.sources.iter().filter(|source| source.table().is_some()) {
                let line = place.statement.tokens[source.at].line;
                let alias = &source.alias;
                let mut say = |what: &str| faults.push(format!("line {line}: {alias} {what}"));
                hint_faults(source, may_read_dirty(&file.name), &mut say);
                seek_faults(place, block, source, &mut say);
                if is_hot && !is_by_index(place, block, source) {
                    say("is read by no index");
                }
            }
        }
        if is_hot {
            faults.extend(plan_fault(place));
        }
    });
    faults
}

/// A beat looks at its leases without waiting for whoever has a row locked: a dirty yes renews nothing, and only the clean
/// look after it may say no.
fn may_read_dirty(name: &str) -> bool {
    name == "keep_alive"
}

fn hint_faults(source: &Source, may_read_dirty: bool, say: &mut impl FnMut(&str)) {
    if source.has("READPAST") && !(source.has("ROWLOCK") && source.has("READCOMMITTEDLOCK")) {
        say("is read past locks without ROWLOCK and READCOMMITTEDLOCK");
    }
    if source.has("UPDLOCK") && !(source.has("ROWLOCK") && source.has("READCOMMITTEDLOCK")) {
        say("is locked without ROWLOCK and READCOMMITTEDLOCK");
    }
    // 650 under SERIALIZABLE, dirty reads, and locks on more than rows.
    let never = [
        "NOLOCK",
        "READUNCOMMITTED",
        "HOLDLOCK",
        "SERIALIZABLE",
        "TABLOCK",
        "TABLOCKX",
        "PAGLOCK",
        "XLOCK",
    ];
    for hint in never.iter().filter(|hint| source.has(hint)) {
        if !(may_read_dirty && *hint == "READUNCOMMITTED") {
            say(&format!("has {hint}"));
        }
    }
}

/// The conjuncts of a query that speak of a column of a source.
fn of_column<'a>(
    place: Place<'a>,
    block: &'a Block,
    source: &Source,
    column: &str,
) -> impl Iterator<Item = &'a [Token]> {
    let tokens: &'a [Token] = &place.statement.tokens;
    let (alias, column) = (source.alias.clone(), column.to_owned());
    let parts = block.conjuncts.iter().map(move |range: &Range<usize>| &tokens[range.clone()]);
    parts.filter(move |part| position(part, &alias, &column).is_some())
}

/// Where `alias.column`, or `column` alone, stands in a conjunct, outside its parentheses.
fn position(part: &[Token], alias: &str, column: &str) -> Option<usize> {
    let depth = part.iter().map(|token| token.depth).min()?;
    let is_own = |at: usize| match at {
        2.. if part[at - 1].is(".") => part[at - 2].text == alias,
        _ => true,
    };
    (0..part.len()).find(|at| part[*at].depth == depth && part[*at].text == column && is_own(*at))
}

fn is_equal(part: &[Token], alias: &str, column: &str) -> bool {
    let Some(at) = position(part, alias, column) else { return false };
    let is_left = part.get(at + 1).is_some_and(|token| token.is("="));
    let before = if at > 1 && part[at - 1].is(".") { at - 2 } else { at };
    let is_right = before > 0 && part[before - 1].is("=") && at + 1 == part.len();
    is_left || is_right
}

fn is_by_index(place: Place<'_>, block: &Block, source: &Source) -> bool {
    let table = source.table().unwrap_or_default();
    let is_insert = block.verb == Verb::Insert;
    is_insert || SMALL.contains(&table) || source.index().is_some() || {
        let is_whole = |index: &Index| {
            index.key.iter().all(|column| {
                of_column(place, block, source, column).any(|p| is_equal(p, &source.alias, column))
            })
        };
        let indexes = place.scope.schema.indexes.values();
        let unique =
            |index: &&Index| index.table == table && index.is_unique && index.filter.is_empty();
        indexes.filter(unique).any(is_whole)
    }
}

fn seek_faults(place: Place<'_>, block: &Block, source: &Source, say: &mut impl FnMut(&str)) {
    let named = source.index().and_then(|name| place.scope.schema.indexes.get(name));
    let Some(index) = named else {
        if source.has("FORCESEEK") {
            say("is to be sought without an index");
        }
        return;
    };
    let compares = |part: &[Token]| {
        let first = position(part, &source.alias, &index.key[0]);
        first.is_some()
            && part.iter().any(|t| t.is_any(&["=", "<", "<=", ">", ">=", "IN", "BETWEEN"]))
    };
    let mut parts = of_column(place, block, source, &index.key[0]);
    if source.has("FORCESEEK") && !parts.any(compares) {
        say("is to be sought by a column that nothing compares: error 8622");
    }
    if source.has("UPDLOCK") && source.has("READPAST") && !reaches_row(place, block, source, index)
    {
        say("is locked in its index alone: another index leads to the row as well");
    }
}

/// Whether the query needs a column that the index does not have: then the row itself is locked, or skipped.
fn reaches_row(place: Place<'_>, block: &Block, source: &Source, index: &Index) -> bool {
    let filtered = index.filter.iter().map(|filter| &filter[0].text);
    let clustered = place.scope.schema.indexes.values();
    let clustered = clustered.filter(|other| other.table == index.table && other.is_clustered);
    let keys = clustered.flat_map(|other| &other.key);
    let held: Vec<&String> =
        index.key.iter().chain(&index.included).chain(keys).chain(filtered).collect();
    let tokens = &place.statement.tokens[block.range.clone()];
    let own = tokens.windows(3).filter(|w| w[0].text == source.alias && w[1].is("."));
    index.is_clustered || own.map(|window| &window[2].text).any(|column| !held.contains(&column))
}

/// Statements over JobsHot keep the plan that they were given: its size swings between nothing and millions.
fn plan_fault(place: Place<'_>) -> Option<String> {
    let statement = place.statement;
    let is_action = ["SELECT", "INSERT", "UPDATE", "DELETE"].iter().any(|w| statement.starts(&[w]));
    let reads_hot = |block: &Block| {
        block.verb != Verb::Insert && block.sources.iter().any(|s| s.table() == Some("JobsHot"))
    };
    if !is_action || !place.blocks.iter().any(reads_hot) {
        return None;
    }
    let tokens = &statement.tokens;
    let option = tokens.iter().rposition(|token| token.depth == 0 && token.is("OPTION"));
    let said = option.map_or(&[][..], |at| &tokens[at..]);
    let has =
        |words: [&str; 2]| said.windows(2).any(|w| w[0].is(words[0]) && w[1].text == words[1]);
    let joins = place.blocks.iter().any(|block| block.sources.len() > 1);
    let is_pinned = has(["MAXDOP", "1"]) && has(["KEEPFIXED", "PLAN"]);
    let is_ordered = !joins || has(["FORCE", "ORDER"]);
    (!(is_pinned && is_ordered))
        .then(|| format!("line {}: its plan is not pinned", statement.line()))
}

#[test]
fn the_workers_path_names_its_indexes() {
    hold(faults);
}

#[test]
fn another_way_to_a_row_is_noticed() {
    let good = "-- Caller: WorkerStorage::x.
INSERT INTO @found (Seq)
SELECT TOP (1000) h.Seq
FROM [chokaq].JobsHot AS h
    WITH (INDEX(IX_JobsHot_Delayed), FORCESEEK, UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
WHERE h.Status = 0 AND h.IsReady = 0 AND h.ScheduledAtUtc <= @now AND h.WorkerId IS NULL
OPTION (MAXDOP 1, KEEPFIXED PLAN);
UPDATE h SET IsReady = 1
FROM @found AS i
INNER LOOP JOIN [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot), FORCESEEK, ROWLOCK) ON h.Seq = i.Seq
OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1, KEEPFIXED PLAN);
INSERT INTO [chokaq].StatsSummary (Queue, Shard)
SELECT t.Queue, @shard FROM @sum AS t
WHERE NOT EXISTS (SELECT 1 FROM [chokaq].StatsSummary AS s WHERE s.Queue = t.Queue AND @shard = s.Shard);";
    notices(
        faults,
        good,
        &[
            ("READPAST, ROWLOCK,", "READPAST,"),
            (", READCOMMITTEDLOCK)", ")"),
            ("INDEX(IX_JobsHot_Delayed), FORCESEEK, ", ""),
            ("INDEX(IX_JobsHot_Delayed), ", ""),
            ("INDEX(PK_JobsHot), FORCESEEK, ROWLOCK", "NOLOCK, INDEX(PK_JobsHot)"),
            ("INDEX(PK_JobsHot), FORCESEEK", "HOLDLOCK, INDEX(PK_JobsHot), FORCESEEK"),
            ("h.ScheduledAtUtc <= @now AND ", ""),
            (" AND h.WorkerId IS NULL", ""),
            ("ON h.Seq = i.Seq", "ON h.Status = 1"),
            ("FORCE ORDER, ", ""),
            ("MAXDOP 1, KEEPFIXED PLAN", "MAXDOP 2, KEEPFIXED PLAN"),
            ("MAXDOP 1, KEEPFIXED PLAN", "MAXDOP 1"),
            (" AND @shard = s.Shard", ""),
            ("s.Queue = t.Queue AND", "s.Queue > t.Queue AND"),
        ],
    );
}
