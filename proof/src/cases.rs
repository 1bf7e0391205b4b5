//! Every statement of `sql/mssql`, and calls of it with what a program would send.

use chokaq::{
    model::JobId,
    storage::mssql::{Call, Role, Statement},
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    fill::{HotRow, LEASE, LIMITED, QUEUES, WORKER},
    supply::Supply,
};

macro_rules! files {
    ($($constant:ident $name:literal;)+) => {
        $(static $constant: Statement =
            Statement::new($name, include_str!(concat!("../../sql/mssql/", $name, ".sql")));)+
        /// Name and text of every statement.
        #[cfg(test)]
        pub(crate) const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../sql/mssql/", $name, ".sql")))),+];
    };
}

files! {
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

/// A way to call a statement.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Which of several.
    pub(crate) variant: &'static str,
    pub(crate) role: Role,
    /// Indexes that it may walk: they hold few rows, or the walk stops at a count.
    pub(crate) walks: &'static [&'static str],
    /// Whether it changes rows: pairs of those are run against each other.
    pub(crate) writes: bool,
    pub(crate) call: fn(&mut Supply) -> Call,
}

/// How a call of a statement is made.
type Make = fn(&mut Supply) -> Call;

fn writer(name: &'static str, variant: &'static str, role: Role, call: Make) -> Case {
    Case { name, variant, role, walks: &[], writes: true, call }
}

fn reader(
    name: &'static str,
    variant: &'static str,
    walks: &'static [&'static str],
    call: Make,
) -> Case {
    Case { name, variant, role: Role::Page, walks, writes: false, call }
}

/// The settings of all queues, a row each.
const FEW: &[&str] = &["PK_Queues"];

/// All cases, the worker's path first.
pub(crate) fn all() -> Vec<Case> {
    [workers_path(), finishes(), rescue(), operators(), purges(), pages()]
        .into_iter()
        .flatten()
        .collect()
}

fn workers_path() -> Vec<Case> {
    use Role::{Heartbeat, Maintenance, Worker};
    vec![
        writer("enqueue", "1 job", Worker, |supply| enqueue(supply, 1)),
        writer("enqueue", "a batch", Worker, |supply| enqueue(supply, supply.batch())),
        writer("fetch_next_batch", "ten queues", Worker, |supply| {
            fetch(Some(&queues()), supply.batch())
        }),
        writer("fetch_next_batch", "a limited queue", Worker, |supply| {
            fetch(Some(&[LIMITED.to_owned()]), supply.batch())
        }),
        Case {
            walks: FEW,
            ..writer("fetch_next_batch", "all queues", Worker, |supply| fetch(None, supply.batch()))
        },
        writer("fetch_next_batch", "nothing there", Worker, |supply| {
            fetch(Some(&["paused".to_owned()]), supply.batch())
        }),
        reader("find_claimed", "", &["IX_JobsHot_FetchedRecovery"], |_| {
            Call::new(&FIND_CLAIMED).bind("worker", WORKER).bind("lease", Uuid::now_v7())
        }),
        reader("read_control", "", FEW, |_| {
            Call::new(&READ_CONTROL).bind("queues", text(&queues())).bind("worker", WORKER)
        }),
        reader("next_due", "", FEW, |_| {
            let call = Call::new(&NEXT_DUE).bind("queues", text(&queues()));
            call.bind("horizon_s", 60).bind("horizon_ms", 0)
        }),
        writer("mark_as_processing", "", Worker, |supply| {
            owned(&MARK_AS_PROCESSING, &supply.fetched(), &json!({}))
        }),
        writer("find_marked", "", Worker, |supply| {
            owned(&FIND_MARKED, &supply.running(), &json!({}))
        }),
        writer("keep_alive", "", Heartbeat, |supply| {
            owned(&KEEP_ALIVE, &supply.running(), &json!({"p": 0.5, "n": "half"}))
        }),
        writer("release", "", Worker, |supply| {
            owned(&RELEASE, &supply.fetched(), &json!({"ds": 30, "dm": 0, "u": true}))
        }),
        writer("report_circuits", "", Maintenance, |_| {
            let item =
                json!({"y": "proof", "st": 1, "f": 5, "e": "503", "os": 1, "rs": 30, "rm": 0});
            Call::new(&REPORT_CIRCUITS).bind("worker", WORKER).bind("items", text(&[item]))
        }),
        reader("find_released", "", &[], |supply| {
            Call::new(&FIND_RELEASED).bind("items", items(&supply.fetched(), &json!({})))
        }),
    ]
}

fn finishes() -> Vec<Case> {
    vec![
        writer("archive_succeeded", "", Role::Worker, |supply| {
            owned(&ARCHIVE_SUCCEEDED, &supply.running(), &json!({"o": "{\"width\":10}"}))
        }),
        writer("move_to_dlq", "", Role::Worker, |supply| {
            let error =
                json!({"r": "FatalError", "a": 1, "k": "error", "t": "503 Service Unavailable"});
            owned(&MOVE_TO_DLQ, &supply.running(), &error)
        }),
        writer("reschedule_for_retry", "", Role::Worker, |supply| {
            let error =
                json!({"ds": 3, "dm": 500, "a": 1, "k": "error", "t": "503 Service Unavailable"});
            owned(&RESCHEDULE_FOR_RETRY, &supply.running(), &error)
        }),
        writer("snooze", "", Role::Worker, |supply| {
            owned(&SNOOZE, &supply.running(), &json!({"ds": 60, "dm": 0}))
        }),
        reader("find_finished", "", &[], |supply| {
            let item = |row: &HotRow| json!({"i": row.id, "l": LEASE});
            let items: Vec<Value> = supply.running().iter().map(item).collect();
            Call::new(&FIND_FINISHED).bind("items", text(&items))
        }),
    ]
}

fn rescue() -> Vec<Case> {
    use Role::Maintenance;
    vec![
        writer("recover_abandoned", "", Maintenance, |supply| {
            let call = Call::new(&RECOVER_ABANDONED).bind("limit_ms", 600_000_i64);
            call.bind("batch", count(supply.batch()))
        }),
        Case {
            walks: FEW,
            ..writer("retry_zombies", "", Maintenance, |supply| zombies(&RETRY_ZOMBIES, supply))
        },
        Case {
            walks: FEW,
            ..writer("archive_zombies", "", Maintenance, |supply| zombies(&ARCHIVE_ZOMBIES, supply))
        },
        Case {
            walks: FEW,
            ..writer("note_suspects", "", Maintenance, |_| {
                Call::new(&NOTE_SUSPECTS).bind("lease_ms", LEASE_MS)
            })
        },
    ]
}

fn operators() -> Vec<Case> {
    use Role::Page;
    vec![
        writer("cancel_waiting", "", Page, |supply| {
            let ids: Vec<JobId> = supply.waiting().iter().map(|row| row.id).collect();
            Call::new(&CANCEL_WAITING).bind("ids", text(&ids)).bind("reason", "by mssql-proof")
        }),
        writer("cancel_running", "", Page, |supply| {
            let ids: Vec<JobId> = supply.running().iter().map(|row| row.id).collect();
            Call::new(&CANCEL_RUNNING).bind("ids", text(&ids))
        }),
        reader("find_cancelled", "", &[], |supply| {
            Call::new(&FIND_CANCELLED)
                .bind("ids", text(&supply.dead()))
                .bind("reason", "by a person")
        }),
        writer("resurrect", "", Page, |supply| {
            let call = Call::new(&RESURRECT).bind("ids", text(&supply.dead()));
            let call = call.bind("queue", None::<String>).bind("priority", Some(50));
            call.bind("payload", None::<String>)
                .bind("edits_tags", false)
                .bind("tags", None::<String>)
        }),
        writer("set_queue", "", Page, |_| {
            let call = Call::new(&SET_QUEUE).bind("queue", LIMITED).bind("paused", Some(false));
            let call = call.bind("active", None::<bool>).bind("sets_max_workers", true);
            let call = call.bind("max_workers", Some(100_000)).bind("sets_zombie_timeout", false);
            call.bind("zombie_timeout_ms", None::<i64>)
        }),
    ]
}

/// The ages leave most of what `fill` makes: archived in a week, dead in a month, buckets of a quarter of an hour.
fn purges() -> Vec<Case> {
    vec![
        writer("purge_archive", "", Role::Maintenance, |supply| {
            purge(&PURGE_ARCHIVE, 6 * DAY_MS, supply)
        }),
        writer("purge_dlq", "", Role::Maintenance, |supply| purge(&PURGE_DLQ, 29 * DAY_MS, supply)),
        writer("purge_buckets", "", Role::Maintenance, |supply| {
            purge(&PURGE_BUCKETS, 600_000, supply)
        }),
    ]
}

fn pages() -> Vec<Case> {
    const DELAYED: &[&str] = &["IX_JobsHot_Delayed", "PK_Queues"];
    // Each stops at a million rows.
    const COUNTED: &[&str] = &[
        "IX_JobsHot_PendingLag",
        "IX_JobsHot_Delayed",
        "IX_JobsHot_QueueStats",
        "IX_JobsDLQ_Id",
        "PK_StatsSummary",
    ];
    vec![
        reader("get_circuits", "", &[], |_| Call::new(&GET_CIRCUITS).bind("fresh_s", 120)),
        reader("read_schema", "", &[], |_| Call::new(&READ_SCHEMA)),
        reader("find_job", "in the archive", &[], |supply| {
            Call::new(&FIND_JOB).bind("id", supply.archived())
        }),
        reader("get_archive_paged", "all", &[], |_| page(&GET_ARCHIVE_PAGED, None)),
        reader("get_archive_paged", "a queue", &[], |_| page(&GET_ARCHIVE_PAGED, Some("q3"))),
        reader("get_dlq_paged", "all", &[], |_| page(&GET_DLQ_PAGED, None)),
        reader("get_dlq_paged", "a queue", &[], |_| page(&GET_DLQ_PAGED, Some("q3"))),
        reader("get_summary_stats", "", COUNTED, |_| Call::new(&GET_SUMMARY_STATS)),
        reader("get_queue_stats", "", DELAYED, |_| Call::new(&GET_QUEUE_STATS)),
        reader("get_queue_health", "", DELAYED, |_| Call::new(&GET_QUEUE_HEALTH)),
        reader("get_throughput_stats", "an hour", &[], |_| {
            Call::new(&GET_THROUGHPUT_STATS).bind("window_ms", 3_600_000_i64)
        }),
        reader("get_top_dlq_errors", "", &["PK_JobsDLQ"], |_| {
            Call::new(&GET_TOP_DLQ_ERRORS).bind("limit", 20)
        }),
    ]
}

const LEASE_MS: i64 = 120_000;
const DAY_MS: i64 = 86_400_000;

fn purge(statement: &'static Statement, age_ms: i64, supply: &mut Supply) -> Call {
    Call::new(statement).bind("age_ms", age_ms).bind("batch", count(supply.batch()))
}

fn zombies(statement: &'static Statement, supply: &mut Supply) -> Call {
    let call = Call::new(statement).bind("lease_ms", LEASE_MS).bind("suspicion_ms", 20_000_i64);
    call.bind("batch", count(supply.batch()))
}

fn page(statement: &'static Statement, queue: Option<&str>) -> Call {
    let call = Call::new(statement).bind("queue", queue.map(str::to_owned));
    call.bind("after_at_ms", None::<i64>).bind("after_id", None::<Uuid>).bind("limit", 100)
}

fn enqueue(supply: &mut Supply, jobs: usize) -> Call {
    let job = |number: usize| {
        json!({
            "i": JobId::new(), "q": format!("q{}", number as u64 % QUEUES), "y": "proof", "b": "{\"order_id\":7}",
            "k": supply.key(), "c": "mssql-proof", "p": 10, "r": 3, "to": 900_000, "ma": 86_400_000, "oc": 0,
        })
    };
    Call::new(&ENQUEUE).bind("jobs", text(&(0..jobs).map(job).collect::<Vec<_>>()))
}

fn fetch(queues: Option<&[String]>, take: usize) -> Call {
    let call = Call::new(&FETCH_NEXT_BATCH).bind("worker", WORKER).bind("lease", Uuid::now_v7());
    let call = call.bind("queues", queues.map(|queues| text(&queues)));
    let call =
        call.bind("passed_over", "[]").bind("take", count(take)).bind("take_limited", count(take));
    call.bind("max_bytes", 16_000_000_i64).bind("with_control", true)
}

/// A call for rows of this program's worker and lease.
fn owned(statement: &'static Statement, rows: &[HotRow], each: &Value) -> Call {
    Call::new(statement).bind("worker", WORKER).bind("items", items(rows, each))
}

/// Seq and lease of each row, and what else the statement reads.
fn items(rows: &[HotRow], each: &Value) -> String {
    let item = |row: &HotRow| {
        let mut item = each.clone();
        item["s"] = row.seq.into();
        item["l"] = json!(LEASE);
        item
    };
    text(&rows.iter().map(item).collect::<Vec<_>>())
}

fn queues() -> Vec<String> {
    (0..QUEUES).map(|number| format!("q{number}")).collect()
}

fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("numbers and text have a JSON form")
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use super::*;

    #[test]
    fn every_statement_of_the_folder_has_a_case() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../sql/mssql");
        let files: BTreeSet<String> = fs::read_dir(folder)
            .expect("the folder of the statements")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .filter(|name| !["schema", "ledger"].contains(&name.as_str()))
            .collect();
        let cases: BTreeSet<String> = all().iter().map(|case| case.name.to_owned()).collect();
        assert_eq!(files, cases);
        assert_eq!(FILES.len(), files.len());
    }

    /// A parameter that a case forgets would be told by the server's first run only.
    #[test]
    fn every_case_gives_the_parameters_that_its_file_declares() {
        let mut supply = Supply::sample();
        for case in all() {
            let (_, text) = FILES.iter().find(|(name, _)| *name == case.name).expect("a file");
            let declared = text.lines().filter_map(|line| line.strip_prefix("-- @"));
            let declared: BTreeSet<&str> =
                declared.filter_map(|line| line.split(' ').next()).collect();
            let call = format!("{:?}", (case.call)(&mut supply));
            for name in declared {
                assert!(call.contains(&format!("(\"{name}\", ")), "{}: @{name}", case.name);
            }
        }
    }
}
