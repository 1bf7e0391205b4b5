//! The result sets of the statements, as their files have them.

use crate::answers::{Cell, Column, Step};

type Columns = &'static [(&'static str, Column)];

const ID: (&str, Column) = ("Id", Column::UniqueIdentifier);
const SEQ: (&str, Column) = ("Seq", Column::BigInt);
const QUEUE: (&str, Column) = ("Queue", Column::NVarChar(255));
const TYPE: (&str, Column) = ("Type", Column::NVarChar(255));
const WORKER_ID: (&str, Column) = ("WorkerId", Column::NVarChar(255));
const TAGS: (&str, Column) = ("Tags", Column::NVarChar(1000));
/// An expression, and so of type int.
const IS_LIMITED: (&str, Column) = ("IsLimited", Column::Int);
const REASON: (&str, Column) = ("Reason", Column::NVarChar(32));

const SETTINGS: Columns = &[
    ("Name", Column::NVarChar(255)),
    ("IsStopped", Column::Int),
    ("ZombieTimeoutMs", Column::BigInt),
];

const CLAIMED: Columns = &[
    SEQ,
    ID,
    ("LeaseId", Column::UniqueIdentifier),
    QUEUE,
    TYPE,
    ("Payload", Column::NVarCharMax),
    TAGS,
    ("Priority", Column::Int),
    ("AttemptCount", Column::Int),
    ("MaxRetries", Column::Int),
    ("TimeoutMs", Column::BigInt),
    ("CreatedAtMs", Column::BigInt),
    ("ScheduledAtMs", Column::BigInt),
    ("UnknownForMs", Column::BigInt),
    ("ExpiresInMs", Column::BigInt),
    // ROW_NUMBER is a bigint.
    ("Turn", Column::BigInt),
    ("Place", Column::Int),
];

const JOB: Columns = &[
    // Expressions, and so of type int.
    ("Place", Column::Int),
    ("Status", Column::TinyInt),
    REASON,
    ID,
    QUEUE,
    TYPE,
    ("Payload", Column::NVarCharMax),
    TAGS,
    ("IdempotencyKey", Column::NVarChar(255)),
    ("CreatedBy", Column::NVarChar(255)),
    ("Priority", Column::Int),
    ("AttemptCount", Column::Int),
    ("MaxRetries", Column::Int),
    ("CreatedAtMs", Column::BigInt),
    ("ScheduledAtMs", Column::BigInt),
    ("DeadlineMs", Column::BigInt),
    ("StartedAtMs", Column::BigInt),
    ("FinishedAtMs", Column::BigInt),
    WORKER_ID,
    ("CancelRequestedMs", Column::BigInt),
    ("Progress", Column::Float),
    ("ProgressNote", Column::NVarCharMax),
    ("Output", Column::NVarCharMax),
    ("OutputNote", Column::NVarCharMax),
    ("Errors", Column::NVarCharMax),
];

const QUEUE_STATS: Columns = &[
    ("Name", Column::NVarChar(255)),
    ("IsPaused", Column::Bit),
    ("IsActive", Column::Bit),
    ("MaxWorkers", Column::Int),
    ("ZombieTimeoutMs", Column::BigInt),
    ("Ready", Column::BigInt),
    ("Delayed", Column::BigInt),
    ("Fetched", Column::BigInt),
    ("Processing", Column::BigInt),
    ("SucceededTotal", Column::BigInt),
    ("FailedTotal", Column::BigInt),
    ("RetriedTotal", Column::BigInt),
    ("LastActivityMs", Column::BigInt),
];

const ARCHIVE: Columns = &[
    ID,
    QUEUE,
    TYPE,
    TAGS,
    ("AttemptCount", Column::Int),
    ("CreatedAtMs", Column::BigInt),
    ("StartedAtMs", Column::BigInt),
    ("FinishedAtMs", Column::BigInt),
    WORKER_ID,
    ("Output", Column::NVarCharMax),
];

const DLQ: Columns = &[
    ID,
    QUEUE,
    TYPE,
    TAGS,
    REASON,
    ("Error", Column::NVarCharMax),
    ("AttemptCount", Column::Int),
    ("CreatedAtMs", Column::BigInt),
    ("FailedAtMs", Column::BigInt),
    WORKER_ID,
];

const CIRCUITS: Columns = &[
    TYPE,
    WORKER_ID,
    ("State", Column::TinyInt),
    ("Failures", Column::Int),
    ("Error", Column::NVarChar(1000)),
    ("OpenedAtMs", Column::BigInt),
    ("RetryAtMs", Column::BigInt),
    ("SeenAtMs", Column::BigInt),
];

/// The result sets of a statement.
fn sets(name: &str) -> Vec<Columns> {
    let only: Columns = match name {
        "fetch_next_batch" => {
            return vec![
                SETTINGS,
                &[ID],
                CLAIMED,
                &[QUEUE, ("PassedOver", Column::Int), ("IsBusy", Column::Bit)],
                &[("NextDueMs", Column::BigInt)],
            ];
        }
        "read_control" => return vec![SETTINGS, &[ID]],
        "set_queue" | "report_circuits" => return Vec::new(),
        "enqueue" => &[
            ("Ord", Column::Int),
            ("IsStored", Column::Bit),
            ("HolderId", Column::UniqueIdentifier),
        ],
        "find_claimed" => &CLAIMED[..15],
        "mark_as_processing" | "find_marked" => {
            &[SEQ, ("AttemptCount", Column::Int), ("StartedAtMs", Column::BigInt)]
        }
        "keep_alive" => &[SEQ, ("IsRenewed", Column::Bit), ("IsCancelRequested", Column::Int)],
        "release" | "find_released" => &[SEQ],
        "archive_succeeded" | "cancel_waiting" => &[ID, IS_LIMITED],
        "reschedule_for_retry" | "snooze" | "find_cancelled" => &[ID],
        "move_to_dlq" => &[ID, IS_LIMITED, REASON],
        "find_finished" => &[
            ID,
            // Expressions, and so of type int.
            ("IsPending", Column::Int),
            ("IsArchived", Column::Int),
            ("DeadReason", Column::NVarChar(32)),
        ],
        "recover_abandoned" => &[("Recovered", Column::Int)],
        "retry_zombies" => &[ID, QUEUE, TYPE, WORKER_ID],
        "archive_zombies" => &[ID, QUEUE, TYPE, WORKER_ID, REASON, IS_LIMITED],
        "note_suspects" => &[("Noted", Column::Int)],
        "next_due" => &[("DueMs", Column::BigInt)],
        "cancel_running" => &[ID, ("IsFlagged", Column::Int)],
        "resurrect" => &[
            ID,
            ("IsResurrected", Column::Bit),
            ("IsDead", Column::Bit),
            ("HolderId", Column::UniqueIdentifier),
        ],
        "purge_archive" | "purge_dlq" | "purge_buckets" => &[("Purged", Column::Int)],
        "find_job" => JOB,
        "get_summary_stats" => &[
            ("Pending", Column::BigInt),
            ("Fetched", Column::BigInt),
            ("Processing", Column::BigInt),
            ("SucceededTotal", Column::BigInt),
            ("FailedTotal", Column::BigInt),
            ("RetriedTotal", Column::BigInt),
            ("Dead", Column::BigInt),
        ],
        "get_queue_stats" => QUEUE_STATS,
        "get_queue_health" => &[
            ("Name", Column::NVarChar(255)),
            ("MaxWorkers", Column::Int),
            ("Ready", Column::BigInt),
            ("Active", Column::BigInt),
            ("WorstLagMs", Column::BigInt),
        ],
        "get_circuits" => CIRCUITS,
        "get_throughput_stats" => &[
            QUEUE,
            ("BucketMs", Column::BigInt),
            ("Succeeded", Column::BigInt),
            ("Failed", Column::BigInt),
            ("DurationMs", Column::BigInt),
        ],
        "get_top_dlq_errors" => &[
            TYPE,
            REASON,
            ("ErrorStart", Column::NVarCharMax),
            ("Count", Column::BigInt),
            ("LastMs", Column::BigInt),
        ],
        "get_archive_paged" => ARCHIVE,
        "get_dlq_paged" => DLQ,
        other => panic!("no statement is named {other:?}"),
    };
    vec![only]
}

/// Every result set of a statement, without rows.
pub(crate) fn empty(name: &str) -> Vec<Step> {
    sets(name).into_iter().map(|columns| Step::Rows(columns.to_vec(), Vec::new())).collect()
}

/// One of the result sets, counted from 0.
pub(crate) fn set<const N: usize>(name: &str, index: usize, cells: Vec<[Cell; N]>) -> Step {
    let columns = sets(name)[index];
    assert_eq!(columns.len(), N, "{name} answers other columns");
    Step::Rows(columns.to_vec(), cells.into_iter().map(Vec::from).collect())
}

/// The only result set.
pub(crate) fn rows<const N: usize>(name: &str, cells: Vec<[Cell; N]>) -> Step {
    assert_eq!(sets(name).len(), 1, "{name} answers several sets");
    set(name, 0, cells)
}

/// Of a statement with one result set: the text of what each column holds.
fn selected(sql: &str, name: &str) -> Vec<String> {
    let marked = format!("SELECT /* chokaq:{name} */");
    let is_last = |line: &&str| line.starts_with("SELECT") || line.starts_with("    SELECT");
    let unmarked = || sql.lines().rfind(is_last).and_then(|line| sql.rfind(line));
    // One that sets a variable sends nothing.
    let sends = |place: &usize| !sql[*place..].lines().next().is_some_and(|l| l.contains(" = "));
    let marked = sql.match_indices(&marked).map(|(place, _)| place).find(sends);
    let start = marked.or_else(unmarked).expect("a SELECT");
    let (mut items, mut depth) = (vec![String::new()], 0);
    for word in sql[start..].split_whitespace() {
        if depth == 0 && matches!(word, "FROM" | "OPTION") {
            break;
        }
        let item = items.last_mut().expect("the first");
        *item += " ";
        *item += word.trim_end_matches([',', ';']);
        let count = |c| word.matches(c).count();
        depth = depth + count('(') - count(')');
        if depth == 0 && word.ends_with(',') {
            items.push(String::new());
        }
        if depth == 0 && word.ends_with(';') {
            break;
        }
    }
    items
}

#[test]
fn the_columns_of_the_script_are_those_of_the_files() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../sql/mssql");
    let mut checked = 0;
    for entry in std::fs::read_dir(folder).expect("the folder of the statements") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        let is_sql = path.extension().is_some_and(|extension| extension == "sql");
        // Several sets, or none; or no statement.
        let others = [
            "fetch_next_batch",
            "ledger",
            "read_control",
            "read_schema",
            "report_circuits",
            "schema",
            "set_queue",
        ];
        if !is_sql || others.contains(&&*name) {
            continue;
        }
        let sql = std::fs::read_to_string(&path).expect("a file");
        let items = selected(&sql, &name);
        let columns = sets(&name)[0];
        assert_eq!(items.len(), columns.len(), "{name}: {items:#?}");
        for (item, (column, _)) in items.iter().zip(columns) {
            let last = item.rsplit([' ', '.']).next().unwrap_or_default();
            assert_eq!(last.trim_matches(['[', ']']), *column, "{name}: {item}");
        }
        checked += 1;
    }
    assert!(checked >= 28, "{checked}");
}
