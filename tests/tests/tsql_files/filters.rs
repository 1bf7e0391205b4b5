//! A filtered index is used only where the query repeats its filter, with the same literals.

use crate::{
    blocks::Block,
    files::QueryFile,
    lints::{hold, notices},
    relations::comparisons,
    schema::Schema,
    scope::{Origin, Place, Scope},
    sources::Source,
    tokens::{Kind, Token, render},
};

/// The columns that filters are made of: a parameter for one of them would rule the index out.
const FILTERING: [&str; 2] = ["Status", "IsReady"];

pub(crate) fn faults(file: &QueryFile, schema: &Schema) -> Vec<String> {
    let scope = Scope::of(file, schema);
    let mut faults = Vec::new();
    scope.each(|place| {
        for block in place.blocks {
            for source in &block.sources {
                faults.extend(index_faults(place, block, source));
            }
        }
        faults.extend(parameter_faults(place));
    });
    faults
}

fn index_faults(place: Place<'_>, block: &Block, source: &Source) -> Vec<String> {
    let tokens = &place.statement.tokens;
    let line = tokens[source.at].line;
    let Some(name) = source.index() else { return Vec::new() };
    let Some(index) = place.scope.schema.indexes.get(name) else {
        return vec![format!("line {line}: there is no {name}")];
    };
    if source.table() != Some(index.table.as_str()) {
        return vec![format!("line {line}: {name} is of {}", index.table)];
    }
    let is_said = |filter: &&Vec<Token>| {
        let says = |part: &[Token]| is_condition(part, &source.alias, filter);
        !block.conjuncts.iter().any(|range| says(&tokens[range.clone()]))
    };
    let missing = index.filter.iter().filter(is_said);
    missing.map(|filter| format!("line {line}: {name} without {}", render(filter))).collect()
}

/// Whether a conjunct is a filter's, of the source that is called `alias`.
fn is_condition(part: &[Token], alias: &str, filter: &[Token]) -> bool {
    let part = match part {
        [first, dot, rest @ ..] if dot.is(".") => {
            if first.text != alias {
                return false;
            }
            rest
        }
        _ => part,
    };
    part.len() == filter.len()
        && part.iter().zip(filter).all(|(a, b)| a.kind == b.kind && a.text == b.text)
}

/// Comparisons of a filter's column with anything but a number.
fn parameter_faults(place: Place<'_>) -> Vec<String> {
    let tokens = &place.statement.tokens;
    let mut faults = Vec::new();
    for comparison in comparisons(place) {
        let Some(left) = comparison.left.filter(|left| !left.is_empty()) else { continue };
        let column = &tokens[left.end - 1];
        let is_filtering = FILTERING.contains(&column.text.as_str())
            && place.value(left.clone()).is_some_and(|value| value.origin == Origin::Table);
        let right = comparison.right.map(|right| &tokens[right]);
        let is_number = matches!(right, Some([one]) if one.kind == Kind::Number);
        if is_filtering && !is_number {
            faults
                .push(format!("line {}: {} is compared with no literal", column.line, column.text));
        }
    }
    faults
}

#[test]
fn a_filtered_index_is_named_with_its_filter_word_for_word() {
    hold(faults);
}

#[test]
fn another_filter_is_noticed() {
    let good = "SELECT h.Seq
FROM [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_Fetch), FORCESEEK)
WHERE h.Queue = @queue AND h.Status = 0 AND h.IsReady = 1;
SELECT i.Seq
FROM @in AS i
INNER JOIN [chokaq].JobsHot AS h WITH (INDEX(IX_JobsHot_QueueStats)) ON h.Queue = i.Queue AND h.Status > 0
WHERE h.Status IN (1, 2) AND EXISTS (
    SELECT 1 FROM [chokaq].JobsHot AS k WITH (INDEX(IX_JobsHot_Idempotency)) WHERE k.Type = h.Type AND k.IdempotencyKey IS NOT NULL
);";
    notices(
        faults,
        good,
        &[
            ("h.Status = 0", "h.Status = @pending"),
            ("h.Status = 0", "h.Status < 1"),
            ("h.Status = 0", "k.Status = 0"),
            (" AND h.IsReady = 1", ""),
            ("AND h.IsReady = 1", "OR h.IsReady = 1"),
            ("IX_JobsHot_Fetch", "IX_JobsHot_Delayed"),
            ("IX_JobsHot_Fetch", "IX_JobsHot_Missing"),
            ("IX_JobsHot_Fetch", "IX_JobsDLQ_Id"),
            (" AND h.Status > 0", ""),
            ("h.Status IN (1, 2)", "h.Status IN (1, @status)"),
            (" AND k.IdempotencyKey IS NOT NULL", ""),
        ],
    );
}
