//! What every text has, and what none has: columns by name, a tag on each statement over a table, no MERGE.

use crate::{
    blocks::{Block, Verb, blocks},
    files::QueryFile,
    flow::{Statement, statements},
    lints::{hold, notices},
    schema::Schema,
    tokens::Token,
};

pub(crate) fn faults(file: &QueryFile, _: &Schema) -> Vec<String> {
    let mut faults = Vec::new();
    let statements = statements(&file.text);
    for statement in &statements {
        let say = |what: String| format!("line {}: {what}", statement.line());
        faults.extend(column_faults(statement).into_iter().map(say));
        faults.extend(tag_fault(statement, &file.name).map(say));
        faults.extend(ending_fault(statement).map(say));
    }
    if statements.is_empty() {
        faults.push("no statement".to_owned());
    }
    let has = |words: &[&str]| statements.iter().any(|statement| statement.starts(words));
    if has(&["BEGIN", "TRANSACTION"]) && !has(&["SET", "XACT_ABORT", "ON"]) {
        faults.push("an error would leave its transaction open: no XACT_ABORT".to_owned());
    }
    if !has(&["SET", "NOCOUNT", "ON"]) {
        faults.push("counts of rows are sent: no NOCOUNT".to_owned());
    }
    faults
}

/// A star that stands for columns: not one of COUNT(*), nor a product.
fn is_open(tokens: &[Token], at: usize) -> bool {
    let before = |n: usize| at.checked_sub(n).map(|at| &tokens[at]);
    let is_count = before(2).is_some_and(|token| token.is_any(&["COUNT", "COUNT_BIG"]));
    tokens[at].is("*")
        && before(1).is_none_or(|t| {
            t.is_any(&["SELECT", ",", ".", "DISTINCT", "OUTPUT"]) || (t.is("(") && !is_count)
        })
}

fn column_faults(statement: &Statement) -> Vec<String> {
    let tokens = &statement.tokens;
    let mut faults = Vec::new();
    if (0..tokens.len()).any(|at| is_open(tokens, at)) {
        faults.push("a star for columns".to_owned());
    }
    if statement.starts(&["MERGE"]) {
        faults.push("a MERGE".to_owned());
    }
    if tokens.iter().any(|token| token.is_name() && token.text.starts_with('#')) {
        faults.push("a temporary table".to_owned());
    }
    for block in blocks(statement) {
        if block.verb == Verb::Insert && block.columns.is_empty() {
            faults.push("an INSERT without a column list".to_owned());
        }
        if block.output.as_ref().is_some_and(|o| o.into.as_ref().is_some_and(|(_, c)| c.is_empty()))
        {
            faults.push("an OUTPUT INTO without a column list".to_owned());
        }
    }
    faults
}

/// The Query Store shows it. Conditions and declarations cannot be told from their file in it either, but are few.
fn tag_fault(statement: &Statement, file: &str) -> Option<String> {
    let is_action = ["SELECT", "INSERT", "UPDATE", "DELETE"].iter().any(|w| statement.starts(&[w]));
    let reads =
        |block: &Block| block.sources.iter().any(|s| s.table().is_some_and(|t| t != "Queues"));
    let changes = |block: &Block| block.changed_table().is_some();
    let needs_one =
        is_action && blocks(statement).iter().any(|block| reads(block) || changes(block));
    match statement.tag() {
        Some(tag) if !tag.starts_with(file) || !tag[file.len()..].trim().is_empty() => {
            Some(format!("its tag says {tag}"))
        }
        None if needs_one => Some(format!("no /* chokaq:{file} */")),
        _ => None,
    }
}

/// Two statements without a `;` between them would be taken for one, by these checks as well.
fn ending_fault(statement: &Statement) -> Option<String> {
    let tokens = &statement.tokens;
    let first = tokens.first()?;
    if first.is("CREATE") {
        return None;
    }
    let mut selects = usize::from(first.is("INSERT"));
    for (n, token) in tokens.iter().enumerate().skip(1).filter(|(_, token)| token.depth == 0) {
        let is_next =
            token.is_any(&["UPDATE", "DELETE", "INSERT", "DECLARE", "COMMIT", "IF", "WHILE"]);
        let is_second = token.is("SELECT") && {
            let joins = tokens[n - 1].is_any(&["UNION", "ALL", "EXCEPT", "INTERSECT"]);
            selects = if joins { selects } else { selects.wrapping_sub(1) };
            selects == usize::MAX
        };
        let is_set = token.is("SET") && !first.is("UPDATE");
        if is_next || is_second || is_set {
            return Some(format!("no `;` before {} in line {}", token.text, token.line));
        }
    }
    None
}

#[test]
fn every_text_has_its_shape() {
    hold(faults);
}

#[test]
fn what_leaves_its_columns_open_is_noticed() {
    let good = "SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @t TABLE (A int NOT NULL);
BEGIN TRANSACTION;
UPDATE /* chokaq:planted */ h SET Status = 1 OUTPUT inserted.Status INTO @t (A) FROM [chokaq].JobsHot AS h WHERE h.Status = 0;
INSERT /* chokaq:planted */ INTO [chokaq].StatsSummary (Queue, Shard)
SELECT t.A, COUNT(*) + 2 * 3 FROM @t AS t;
COMMIT TRANSACTION;
SELECT t.A FROM @t AS t UNION ALL SELECT 1;";
    notices(
        faults,
        good,
        &[
            ("SELECT t.A FROM", "SELECT * FROM"),
            ("SELECT t.A FROM", "SELECT t.* FROM"),
            ("SELECT t.A FROM", "SELECT t.A, * FROM"),
            ("SELECT t.A FROM", "SELECT DISTINCT * FROM"),
            ("inserted.Status INTO", "inserted.* INTO"),
            (" (Queue, Shard)", ""),
            ("@t (A) FROM", "@t FROM"),
            ("SET XACT_ABORT ON;", ""),
            ("SET NOCOUNT ON;", ""),
            ("/* chokaq:planted */ h", "h"),
            ("/* chokaq:planted */ INTO", "/* chokaq:other */ INTO"),
            ("Status = 0;", "Status = 0"),
            ("FROM @t AS t;\nCOMMIT", "FROM @t AS t\nCOMMIT"),
            ("UNION ALL SELECT 1", "SELECT 1"),
            ("INTO [chokaq].StatsSummary", "INTO #t"),
            ("DECLARE @t", "MERGE INTO t USING s ON 1 = 1 WHEN MATCHED THEN DELETE;\nDECLARE @t"),
        ],
    );
}
