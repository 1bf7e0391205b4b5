//! The states of a job and the transitions between them, as data that tests read.

/// Where a job in JobsHot stands. The numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum JobStatus {
    /// Waiting to be due and fetched.
    Pending = 0,
    /// Claimed by a worker that has not started it: no attempt is used.
    Fetched = 1,
    /// A worker runs it, under a heartbeat.
    Processing = 2,
}

impl JobStatus {
    /// The status behind a stored number.
    pub const fn from_number(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::Pending),
            1 => Some(Self::Fetched),
            2 => Some(Self::Processing),
            _ => None,
        }
    }
}

/// One row of the transition table: the statement that makes it, and what its WHERE clause must compare.
///
/// The tests over the `.sql` files hold each statement to its guards.
#[derive(Debug, Clone, Copy)]
pub struct Transition {
    /// The named query, `sql/*/<query>.sql`.
    pub query: &'static str,
    /// The statuses a row may have before it.
    pub from: &'static [JobStatus],
    /// Whether the statement compares Seq, WorkerId and LeaseId: only the owner may do it.
    pub owned: bool,
}

const fn owned(query: &'static str, from: &'static [JobStatus]) -> Transition {
    Transition { query, from, owned: true }
}

const fn unowned(query: &'static str, from: &'static [JobStatus]) -> Transition {
    Transition { query, from, owned: false }
}

/// Every transition of a row that stands in JobsHot.
pub const TRANSITIONS: &[Transition] = {
    use JobStatus::{Fetched, Pending, Processing};
    &[
        unowned("fetch_next_batch", &[Pending]),
        owned("mark_as_processing", &[Fetched]),
        owned("keep_alive", &[Processing]),
        owned("release", &[Fetched]),
        owned("archive_succeeded", &[Processing]),
        owned("move_to_dlq", &[Processing]),
        owned("reschedule_for_retry", &[Processing]),
        owned("snooze", &[Processing]),
        unowned("recover_abandoned", &[Fetched]),
        unowned("archive_zombies", &[Processing]),
        unowned("cancel_waiting", &[Pending, Fetched]),
        unowned("cancel_running", &[Processing]),
    ]
};
