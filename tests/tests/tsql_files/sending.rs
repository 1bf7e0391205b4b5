//! Rows go to the client after the commit: a slow reader must not hold locks.

use crate::{
    blocks::{Verb, blocks},
    files::QueryFile,
    flow::Statement,
    lints::{hold, notices},
    schema::Schema,
    tokens::render,
    transactions::walk,
};

pub(crate) fn faults(file: &QueryFile, _: &Schema) -> Vec<String> {
    let mut faults = Vec::new();
    let end = walk(&file.text, &mut |statement, state| {
        if state.is_open && sends(statement) {
            faults.push(format!("line {}: rows are sent in a transaction", statement.line()));
        }
        if let Some(what) = puts_out(statement) {
            faults.push(format!("line {}: OUTPUT to the client: {what}", statement.line()));
        }
    });
    if end.is_open {
        faults.push("it may end in a transaction".to_owned());
    }
    faults.dedup();
    faults
}

/// A SELECT whose rows nothing takes up.
fn sends(statement: &Statement) -> bool {
    let blocks = blocks(statement);
    let own = blocks.iter().find(|block| block.depth == 0);
    own.is_some_and(|block| {
        block.verb == Verb::Select && block.items.iter().any(|item| item.assigns.is_none())
    })
}

/// Also outside a transaction: the statement is one of its own, and holds its locks until the last row is read.
fn puts_out(statement: &Statement) -> Option<String> {
    let blocks = blocks(statement);
    let open =
        blocks.iter().find(|block| block.output.as_ref().is_some_and(|o| o.into.is_none()))?;
    Some(render(&statement.tokens[open.range.clone()]))
}

#[test]
fn nothing_is_sent_inside_a_transaction() {
    hold(faults);
}

#[test]
fn rows_sent_in_a_transaction_are_noticed() {
    let good = "DECLARE @out TABLE (Seq bigint NOT NULL);
BEGIN TRANSACTION;
UPDATE h SET Status = 1 OUTPUT inserted.Seq INTO @out (Seq) FROM [chokaq].JobsHot AS h WHERE h.Status = 0;
IF @n = 1
    SELECT @n = COUNT(*) FROM @out;
COMMIT TRANSACTION;
SELECT o.Seq FROM @out AS o;";
    notices(
        faults,
        good,
        &[
            (" INTO @out (Seq)", ""),
            ("SELECT @n = COUNT(*)", "SELECT COUNT(*)"),
            ("COMMIT TRANSACTION;\n", ""),
            ("COMMIT TRANSACTION;", "IF @n = 1 COMMIT TRANSACTION;"),
            ("BEGIN TRANSACTION;", "BEGIN TRANSACTION; SELECT 1;"),
            (
                "COMMIT TRANSACTION;\nSELECT o.Seq FROM @out AS o;",
                "SELECT o.Seq FROM @out AS o;\nCOMMIT TRANSACTION;",
            ),
        ],
    );
}
