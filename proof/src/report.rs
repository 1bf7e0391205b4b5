//! The tables, in Markdown.

use std::{collections::BTreeMap, fmt::Write};

use crate::{cases::Case, deadlocks::Outcome, measure::Measured, server::Facts};

/// What all the tables below it were measured on.
pub(crate) fn heading(facts: &Facts, rows: u64) -> String {
    let rcsi = if facts.rcsi { "on" } else { "off" };
    format!(
        "\n### {rows} rows, READ_COMMITTED_SNAPSHOT {rcsi}\n\n{}, compatibility level {}, mssql-proof {}.\n",
        facts.version,
        facts.compatibility_level,
        env!("CARGO_PKG_VERSION"),
    )
}

pub(crate) const STATEMENTS: &str = "\
| statement | ms | rows | reads | rows read | locks held at the end | plan |
|---|---|---|---|---|---|---|";

/// A row of the table of statements.
pub(crate) fn statement(case: &Case, measured: &Measured) -> String {
    let name = match case.variant {
        "" => format!("`{}`", case.name),
        variant => format!("`{}`, {variant}", case.name),
    };
    let none = || "-".to_owned();
    if let Some(failure) = &measured.failure {
        return format!("| {name} | **failed** | | | | | {} |", one_cell(failure));
    }
    let ms = measured.duration.map_or_else(none, |took| format!("{:.1}", took.as_secs_f64() * 1e3));
    let reads = measured.reads.map_or_else(none, |reads| reads.to_string());
    let rows_read = measured.plan.as_ref().map_or_else(none, |plan| plan.rows_read.to_string());
    let locks = measured.locks.as_ref().map_or_else(none, locks);
    let plan = measured.plan.as_ref().map_or_else(none, |plan| {
        let walked = plan.walks.iter().filter(|index| !case.walks.contains(&index.as_str()));
        let mut faults: Vec<String> = walked.map(|index| format!("**scan of {index}**")).collect();
        faults.extend(plan.faults.iter().map(|fault| format!("**{}**", one_cell(fault))));
        let meant = plan.walks.iter().filter(|index| case.walks.contains(&index.as_str()));
        faults.extend(meant.map(|index| format!("walks {index}, as meant")));
        if faults.is_empty() { "seeks".to_owned() } else { faults.join("; ") }
    });
    format!("| {name} | {ms} | {} | {reads} | {rows_read} | {locks} | {plan} |", measured.rows)
}

fn locks(locks: &BTreeMap<String, i64>) -> String {
    let held: Vec<String> = locks.iter().map(|(what, count)| format!("{count} {what}")).collect();
    if held.is_empty() { "none".to_owned() } else { held.join(", ") }
}

/// The pairs that did not get on, and how many there were in all.
pub(crate) fn deadlocks(outcomes: &[(String, Outcome)]) -> String {
    let calls: u64 = outcomes.iter().map(|(_, outcome)| outcome.calls).sum();
    let mut text = format!("\n{} pairs, {calls} calls.", outcomes.len());
    let bad = |outcome: &Outcome| outcome.deadlocks > 0 || !outcome.others.is_empty();
    let bad: Vec<_> = outcomes.iter().filter(|(_, outcome)| bad(outcome)).collect();
    if bad.is_empty() {
        text.push_str(" No deadlock, and no failure that a retry does not heal.\n");
        return text;
    }
    text.push_str("\n\n| pair | calls | deadlocks | other failures |\n|---|---|---|---|\n");
    for (pair, outcome) in bad {
        let others: Vec<String> =
            outcome.others.iter().map(|(number, count)| format!("{count} x {number}")).collect();
        let _ = writeln!(
            text,
            "| {pair} | {} | {} | {} |",
            outcome.calls,
            outcome.deadlocks,
            others.join(", ")
        );
    }
    text
}

/// Text that does not end its cell.
fn one_cell(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = line.chars().take(300).collect();
    short.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::showplan::Findings;

    fn case() -> Case {
        let mut all = crate::cases::all().into_iter();
        all.find(|case| case.name == "get_top_dlq_errors").expect("it is there")
    }

    #[test]
    fn a_walk_that_is_meant_is_no_fault_and_others_are() {
        let walks = ["PK_JobsDLQ", "PK_JobsHot"].map(str::to_owned).into();
        let plan = Findings { walks, rows_read: 7, ..Findings::default() };
        let locks = BTreeMap::from([("KEY U".to_owned(), 100), ("PAGE IU".to_owned(), 3)]);
        let measured = Measured {
            duration: Some(Duration::from_micros(1_540)),
            rows: 20,
            reads: Some(12),
            locks: Some(locks),
            plan: Some(plan),
            failure: None,
        };
        assert_eq!(
            statement(&case(), &measured),
            "| `get_top_dlq_errors` | 1.5 | 20 | 12 | 7 | 100 KEY U, 3 PAGE IU | **scan of PK_JobsHot**; walks PK_JobsDLQ, as meant |"
        );
    }

    #[test]
    fn what_was_not_seen_is_not_told() {
        let seen = Measured { duration: Some(Duration::from_millis(2)), ..Measured::default() };
        assert_eq!(statement(&case(), &seen), "| `get_top_dlq_errors` | 2.0 | 0 | - | - | - | - |");
        let failed = Measured { failure: Some("a |\n b".to_owned()), ..Measured::default() };
        assert!(statement(&case(), &failed).ends_with("| a \\| b |"));
    }

    #[test]
    fn only_pairs_that_failed_are_listed() {
        let good = ("a + b".to_owned(), Outcome { calls: 5, ..Outcome::default() });
        assert!(deadlocks(std::slice::from_ref(&good)).contains("No deadlock"));
        let bad = ("a + c".to_owned(), Outcome { calls: 5, deadlocks: 2, ..Outcome::default() });
        let text = deadlocks(&[good, bad]);
        assert!(
            text.contains("2 pairs, 10 calls") && text.contains("| a + c | 5 | 2 |  |"),
            "{text}"
        );
        assert!(!text.contains("a + b"));
    }
}
