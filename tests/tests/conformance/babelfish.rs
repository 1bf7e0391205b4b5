//! Where Babelfish for `PostgreSQL` is not SQL Server: what is sent to it instead. Short and named on purpose: every entry is
//! a claim that is not proven on the production text.

use chokaq::storage::mssql::Connections;

use crate::mssql::run;

/// Claims that no other text could make true there, each with its reason.
const DIFFERENCES: [(&str, &str); 9] = [
    ("an_output_is_kept", "OPENJSON cuts off at 4,000 characters"),
    ("a_payload_of_a_megabyte_comes_back", "OPENJSON cuts off at 4,000 characters"),
    ("keys_differ_by_case_accent_and_trailing_nul", "its texts hold no NUL"),
    ("any_text_comes_back_as_it_went_in", "its texts hold no NUL"),
    ("a_delay_of_fifty_years_is_kept", "DATEADD overflows within"),
    ("a_long_error_is_cut_and_marked", "STRING_ESCAPE takes UTF-8 for single characters"),
    ("any_text_can_be_an_error", "STRING_ESCAPE takes UTF-8 for single characters"),
    (
        "the_newest_twenty_five_errors_are_kept",
        "JSON_QUERY answers another text than the one it finds",
    ),
    ("a_job_is_found_whole_in_every_place", "OPENJSON leaves escapes of control characters"),
];

/// Why a claim cannot be proven there.
pub(crate) fn difference(claim: &str) -> Option<&'static str> {
    DIFFERENCES.iter().find(|(name, _)| *name == claim).map(|(_, why)| *why)
}

/// Whether the server is one.
pub(crate) async fn is_it(direct: &Connections) -> bool {
    let sql = "SELECT CONVERT(nvarchar(100), SERVERPROPERTY('BabelfishVersion'));";
    let rows = run(direct, sql.to_owned()).await;
    rows[0][0].is_some()
}

/// A database instead of a schema: with a join, `OUTPUT` of what was deleted works for tables in dbo only.
pub(crate) async fn make_database(direct: &Connections, name: &str) {
    run(direct, format!("IF DB_ID(N'{name}') IS NULL CREATE DATABASE [{name}];")).await;
}

/// The text for it.
pub(crate) fn rewrite(name: &str, sql: &str) -> String {
    // It knows no join hint on an outer join.
    let sql = sql.replace("LEFT LOOP JOIN", "LEFT JOIN");
    let sql = with_unescaped_texts(sql);
    let statements: Vec<String> = sql.split(";\n").map(updates_from_two_tables).collect();
    let sql = statements.join(";\n");
    if name == "fetch_next_batch" { one_claim_at_a_time(&sql) } else { sql }
}

/// `OPENJSON` leaves the escapes of a JSON string as they are.
fn with_unescaped_texts(mut sql: String) -> String {
    let columns = [
        "Queue",
        "Type",
        "Payload",
        "Tags",
        "[Output]",
        "OutputNote",
        "ErrorText",
        "Note",
        "IdempotencyKey",
        "CreatedBy",
        "[value]",
    ];
    for column in columns {
        let backslash = "NCHAR(57344)";
        let mut text = format!("REPLACE(j.{column}, N'\\\\', {backslash})");
        for (escape, character) in
            [("\\\"", "N'\"'"), ("\\n", "NCHAR(10)"), ("\\r", "NCHAR(13)"), ("\\t", "NCHAR(9)")]
        {
            text = format!("REPLACE({text}, N'{escape}', {character})");
        }
        let text = format!("REPLACE({text}, {backslash}, N'\\')");
        for end in [",", "\n", ")"] {
            sql = sql.replace(&format!("j.{column}{end}"), &format!("{text}{end}"));
        }
    }
    sql
}

/// An UPDATE with OUTPUT may read a second table, but not by a JOIN.
fn updates_from_two_tables(statement: &str) -> String {
    let changed = || {
        let (start, rest) = statement.split_once("\nFROM @")?;
        let (source, rest) = rest.split_once(" AS i\nINNER LOOP JOIN ")?;
        let (target, rest) = rest.split_once(" WITH (")?;
        let (_hints, rest) = rest.split_once("ON h.Seq = i.Seq\nWHERE ")?;
        (start.contains("UPDATE ") && start.contains("OUTPUT ")).then(|| {
            format!("{start}\nFROM {target}, @{source} AS i\nWHERE h.Seq = i.Seq AND {rest}")
        })
    };
    changed().unwrap_or_else(|| statement.to_owned())
}

/// It ignores READPAST and UPDLOCK: two claims would take one row. They are made one after the other, in a transaction
/// around those of the statement.
fn one_claim_at_a_time(sql: &str) -> String {
    let sql = sql.replace("@@TRANCOUNT > 0", "@@TRANCOUNT > 1");
    let sql = sql.replace("@@TRANCOUNT = 0", "@@TRANCOUNT = 1");
    let (start, rest) = sql.split_once("SET XACT_ABORT ON;\n").expect("it opens with its settings");
    format!(
        "{start}SET XACT_ABORT ON;
BEGIN TRANSACTION;
EXEC sp_getapplock @Resource = N'claims', @LockMode = N'Exclusive', @LockOwner = N'Transaction';
{rest}
COMMIT TRANSACTION;"
    )
}

/// Whether what the check of the schema says is due to it: index names come back with a hash, filters and included columns
/// not at all, another collation stands for ours, and locks never escalate.
pub(crate) fn cannot_show(difference: &str) -> bool {
    difference.starts_with("the index ")
        || difference.contains(" is LOCK_ESCALATION = ")
        || difference.contains(" COLLATE bbf_unicode_bin2 ")
}
