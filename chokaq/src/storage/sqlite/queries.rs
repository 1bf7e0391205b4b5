//! The named queries: one file each, compiled in, and split into the statements that one operation runs in turn.

use std::sync::OnceLock;

/// A `.sql` file with `N` statements.
#[derive(Debug)]
pub(super) struct Query<const N: usize> {
    #[cfg_attr(not(test), expect(dead_code, reason = "names the file in the tests' messages"))]
    name: &'static str,
    text: &'static str,
    statements: OnceLock<[&'static str; N]>,
}

impl<const N: usize> Query<N> {
    const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text, statements: OnceLock::new() }
    }

    /// The statements in the order of the file, without the comments above each.
    pub(super) fn statements(&self) -> [&'static str; N] {
        *self.statements.get_or_init(|| {
            let mut parts = split(self.text);
            std::array::from_fn(|_| parts.next().unwrap_or_default())
        })
    }
}

impl Query<1> {
    /// The only statement.
    pub(super) fn statement(&self) -> &'static str {
        let [statement] = self.statements();
        statement
    }
}

/// A file's statements: each ends with a `;` at the end of a line that is not a comment.
pub(super) fn split(text: &'static str) -> impl Iterator<Item = &'static str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = skip_comments(rest);
        let mut end = 0;
        for line in rest.split_inclusive('\n') {
            end += line.len();
            if line.trim_end().ends_with(';') && !line.trim_start().starts_with("--") {
                break;
            }
        }
        let (statement, after) = rest.split_at(end);
        rest = after;
        let statement = statement.trim_end().trim_end_matches(';');
        (!statement.is_empty()).then_some(statement)
    })
}

fn skip_comments(text: &'static str) -> &'static str {
    let mut rest = text.trim_start();
    while rest.starts_with("--") {
        rest = rest.split_once('\n').map_or("", |(_, after)| after).trim_start();
    }
    rest
}

macro_rules! queries {
    ($($(#[$doc:meta])* $constant:ident: $count:literal = $name:literal;)*) => {
        $(
            $(#[$doc])*
            pub(super) static $constant: Query<$count> = Query::new(
                $name,
                include_str!(concat!("../../../sql/sqlite/", $name, ".sql")),
            );
        )*

        /// Every query: its name, how many statements its constant names, and its text.
        #[cfg(test)]
        pub(super) fn all() -> Vec<(&'static str, usize, &'static str)> {
            vec![$(($constant.name, $count, $constant.text)),*]
        }
    };
}

queries! {
    ENSURE_QUEUE: 2 = "ensure_queue";
    ENQUEUE: 2 = "enqueue";

    PROMOTE_DUE: 1 = "promote_due";
    FETCH_HEADS: 2 = "fetch_heads";
    COUNT_ACTIVE: 1 = "count_active";
    FETCH_CANDIDATES: 1 = "fetch_candidates";
    FETCH_NEXT_BATCH: 1 = "fetch_next_batch";
    FIND_CLAIMED: 1 = "find_claimed";
    SET_ASIDE: 1 = "set_aside";
    NEXT_DELAYED: 2 = "next_delayed";

    MARK_AS_PROCESSING: 1 = "mark_as_processing";
    FIND_MARKED: 1 = "find_marked";
    KEEP_ALIVE: 1 = "keep_alive";
    RELEASE: 1 = "release";
    FIND_RELEASED: 1 = "find_released";

    ARCHIVE_SUCCEEDED: 2 = "archive_succeeded";
    MOVE_TO_DLQ: 2 = "move_to_dlq";
    RESCHEDULE_FOR_RETRY: 1 = "reschedule_for_retry";
    SNOOZE: 1 = "snooze";
    FIND_FINISHED: 1 = "find_finished";
    ADD_TO_TOTALS: 2 = "add_to_totals";
    IS_LIMITED: 1 = "is_limited";

    RECOVER_ABANDONED: 1 = "recover_abandoned";
    FIND_ZOMBIES: 1 = "find_zombies";
    NOTE_SUSPECTS: 1 = "note_suspects";
    ARCHIVE_ZOMBIES: 2 = "archive_zombies";
    RETRY_ZOMBIES: 1 = "retry_zombies";
    READ_CONTROL: 3 = "read_control";
    NEXT_DUE: 2 = "next_due";
    REPORT_CIRCUITS: 2 = "report_circuits";

    CANCEL_WAITING: 2 = "cancel_waiting";
    CANCEL_RUNNING: 1 = "cancel_running";
    FIND_CANCELLED: 1 = "find_cancelled";
    RESURRECT: 2 = "resurrect";
    FIND_RESURRECTED: 1 = "find_resurrected";
    SET_QUEUE: 1 = "set_queue";
    PURGE_ARCHIVE: 1 = "purge_archive";
    PURGE_DLQ: 1 = "purge_dlq";
    PURGE_BUCKETS: 1 = "purge_buckets";
    READ_SCHEMA: 4 = "read_schema";

    FIND_JOB: 1 = "find_job";
    GET_SUMMARY_STATS: 1 = "get_summary_stats";
    GET_QUEUE_STATS: 1 = "get_queue_stats";
    GET_QUEUE_HEALTH: 2 = "get_queue_health";
    GET_THROUGHPUT_STATS: 1 = "get_throughput_stats";
    GET_CIRCUITS: 1 = "get_circuits";
    GET_TOP_DLQ_ERRORS: 1 = "get_top_dlq_errors";
    GET_ARCHIVE_PAGED: 4 = "get_archive_paged";
    GET_DLQ_PAGED: 4 = "get_dlq_paged";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_the_statements_that_its_constant_names() {
        for (name, count, text) in all() {
            assert_eq!(split(text).count(), count, "{name}.sql");
        }
    }

    #[test]
    fn comments_do_not_end_a_statement() {
        let statements: Vec<_> =
            split("-- one;\nSELECT 1\n  -- not here;\n  + 2;\n\n-- two\nSELECT 3;\n").collect();
        assert_eq!(statements, ["SELECT 1\n  -- not here;\n  + 2", "SELECT 3"]);
    }

    #[test]
    fn every_file_says_who_calls_it_and_what_it_protects() {
        for (name, _, text) in all() {
            for heading in ["-- Caller: ", "-- Intent: ", "-- Invariant: ", "-- Twin: "] {
                assert!(text.contains(heading), "{name}.sql has no line {heading:?}");
            }
        }
    }
}
