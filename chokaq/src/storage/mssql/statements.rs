//! The named statements: one file each, compiled in.

use crate::storage::mssql::statement::Statement;

macro_rules! statements {
    ($($name:ident $file:literal;)+) => {
        $(
            pub(super) static $name: Statement = Statement::new(
                $file,
                include_str!(concat!("../../../sql/mssql/", $file, ".sql")),
            );
        )+
        #[cfg(test)]
        const ALL: &[&Statement] = &[$(&$name),+];
    };
}

statements! {
    ARCHIVE_SUCCEEDED "archive_succeeded";
    ARCHIVE_ZOMBIES "archive_zombies";
    CANCEL_RUNNING "cancel_running";
    CANCEL_WAITING "cancel_waiting";
    ENQUEUE "enqueue";
    FETCH_NEXT_BATCH "fetch_next_batch";
    FIND_CANCELLED "find_cancelled";
    FIND_CLAIMED "find_claimed";
    FIND_FINISHED "find_finished";
    FIND_JOB "find_job";
    FIND_MARKED "find_marked";
    FIND_RELEASED "find_released";
    GET_ARCHIVE_PAGED "get_archive_paged";
    GET_CIRCUITS "get_circuits";
    GET_DLQ_PAGED "get_dlq_paged";
    GET_QUEUE_HEALTH "get_queue_health";
    GET_QUEUE_STATS "get_queue_stats";
    GET_SUMMARY_STATS "get_summary_stats";
    GET_THROUGHPUT_STATS "get_throughput_stats";
    GET_TOP_DLQ_ERRORS "get_top_dlq_errors";
    KEEP_ALIVE "keep_alive";
    MARK_AS_PROCESSING "mark_as_processing";
    MOVE_TO_DLQ "move_to_dlq";
    NEXT_DUE "next_due";
    NOTE_SUSPECTS "note_suspects";
    PURGE_ARCHIVE "purge_archive";
    PURGE_BUCKETS "purge_buckets";
    PURGE_DLQ "purge_dlq";
    READ_CONTROL "read_control";
    READ_SCHEMA "read_schema";
    RECOVER_ABANDONED "recover_abandoned";
    RELEASE "release";
    REPORT_CIRCUITS "report_circuits";
    RESCHEDULE_FOR_RETRY "reschedule_for_retry";
    RESURRECT "resurrect";
    RETRY_ZOMBIES "retry_zombies";
    SET_QUEUE "set_queue";
    SNOOZE "snooze";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::storage::mssql::options::SchemaName;

    #[test]
    fn every_statement_can_be_sent() {
        let schema = SchemaName::new("jobs").expect("a name");
        for statement in ALL {
            let rendered = statement.render(&schema).expect(statement.name);
            assert!(!rendered.sql.contains("[chokaq]"), "{}", statement.name);
        }
    }

    #[test]
    fn every_file_is_a_statement_of_this_list() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/sql/mssql");
        let files: BTreeSet<String> = std::fs::read_dir(folder)
            .expect("the folder of the statements")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .filter(|name| !["schema", "ledger"].contains(&name.as_str()))
            .collect();
        let listed: BTreeSet<String> = ALL.iter().map(|s| s.name.to_owned()).collect();
        assert_eq!(files, listed);
    }
}
