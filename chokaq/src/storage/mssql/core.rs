//! What every operation works with: the connections, how long to go on trying, and who is told of new work.

use std::time::Duration;

use tokio::sync::watch;

use crate::storage::mssql::{
    answer::Answer,
    call::Call,
    failure::Failure,
    pool::Connections,
    retry::{Retry, Tries},
    session::Role,
};

/// How long an operation repeats what may pass. Every statement may be repeated: its header says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    /// A deadlock, a failover that is over: whoever calls goes on longer by itself.
    Brief,
    /// Nobody tries again after this.
    Patient,
}

impl Effort {
    pub(super) fn tries(self) -> Tries {
        let (limit, longest_pause) = match self {
            Self::Brief => (Duration::from_secs(1), Duration::from_millis(200)),
            Self::Patient => (Duration::from_secs(10), Duration::from_secs(2)),
        };
        Retry { limit, first_pause: Duration::from_millis(20), longest_pause }.tries()
    }
}

#[derive(Debug)]
pub(super) struct Core {
    pub(super) connections: Connections,
    pub(super) work_arrived: watch::Sender<u64>,
}

impl Core {
    /// Runs a call, and again while its failure may pass.
    pub(super) async fn run(
        &self,
        role: Role,
        effort: Effort,
        call: &Call,
    ) -> Result<Answer, Failure> {
        let mut tries = effort.tries();
        loop {
            match self.once(role, call).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => tries.after(failure).await?,
            }
        }
    }

    pub(super) async fn once(&self, role: Role, call: &Call) -> Result<Answer, Failure> {
        self.connections.run(role, call).await
    }

    /// Wakes this process's fetchers: a row may have become claimable.
    pub(super) fn note_work(&self) {
        self.work_arrived.send_modify(|count| *count = count.wrapping_add(1));
    }
}
