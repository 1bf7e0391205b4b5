//! The result sets of the statements, as their files have them.

use crate::answers::{Cell, Column, Step};

type Columns = &'static [(&'static str, Column)];

const ID: (&str, Column) = ("Id", Column::UniqueIdentifier);
const SEQ: (&str, Column) = ("Seq", Column::BigInt);
const QUEUE: (&str, Column) = ("Queue", Column::NVarChar(255));
const TYPE: (&str, Column) = ("Type", Column::NVarChar(255));
const WORKER_ID: (&str, Column) = ("WorkerId", Column::NVarChar(255));
const TAGS: (&str, Column) = ("Tags", Column::NVarChar(1000));
const REASON: (&str, Column) = ("Reason", Column::NVarChar(32));

const STOPPED: Columns = &[("Name", Column::NVarChar(255))];

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

/// The result sets of a statement.
fn sets(name: &str) -> Vec<Columns> {
    let only: Columns = match name {
        "fetch_next_batch" => {
            return vec![
                STOPPED,
                &[ID],
                CLAIMED,
                &[QUEUE, ("PassedOver", Column::Int), ("IsBusy", Column::Bit)],
                &[("NextDueMs", Column::BigInt)],
            ];
        }
        "read_control" => return vec![STOPPED, &[ID]],
        "set_queue" => return Vec::new(),
        "enqueue" => &[
            ("Ord", Column::Int),
            ("IsStored", Column::Bit),
            ("HolderId", Column::UniqueIdentifier),
        ],
        "find_claimed" => &CLAIMED[..14],
        "mark_as_processing" | "find_marked" => {
            &[SEQ, ("AttemptCount", Column::Int), ("StartedAtMs", Column::BigInt)]
        }
        "keep_alive" => &[SEQ, ("IsRenewed", Column::Bit), ("IsCancelRequested", Column::Bit)],
        "release" | "find_released" => &[SEQ],
        "archive_succeeded"
        | "reschedule_for_retry"
        | "snooze"
        | "cancel_waiting"
        | "find_cancelled" => &[ID],
        "move_to_dlq" => &[ID, REASON],
        "find_finished" => &[
            ID,
            // Expressions, and so of type int.
            ("IsPending", Column::Int),
            ("IsArchived", Column::Int),
            ("DeadReason", Column::NVarChar(32)),
        ],
        "recover_abandoned" => &[("Recovered", Column::Int)],
        "retry_zombies" => &[ID, QUEUE, TYPE, WORKER_ID],
        "archive_zombies" => &[ID, QUEUE, TYPE, WORKER_ID, REASON],
        "note_suspects" => &[("Noted", Column::Int)],
        "next_due" => &[("DueMs", Column::BigInt)],
        "cancel_running" => &[ID, ("IsFlagged", Column::Int)],
        "resurrect" => &[
            ID,
            ("IsResurrected", Column::Bit),
            ("IsDead", Column::Bit),
            ("HolderId", Column::UniqueIdentifier),
        ],
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
