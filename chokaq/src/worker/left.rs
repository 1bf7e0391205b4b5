//! What a worker leaves behind when it ends.

use std::{sync::OnceLock, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{Error, Result, config::Pretty};

/// Jobs that could not be brought to an end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Left {
    /// Their handlers block their threads and cannot be stopped.
    pub(crate) running: usize,
    /// Their handlers have ended, and the storage did not take the outcome.
    pub(crate) unstored: usize,
}

impl Left {
    /// What the caller of a worker is told.
    pub(crate) fn result(self, lease: Duration) -> Result<()> {
        if self == Self::default() {
            return Ok(());
        }
        let Self { running, unstored } = self;
        let mut parts = Vec::new();
        if running > 0 {
            parts.push(format!(
                "{running} jobs running in handlers that block their threads (let them await, or look at `ctx.cancelled()`)"
            ));
        }
        if unstored > 0 {
            parts.push(format!("{unstored} outcomes that the database did not take"));
        }
        Err(Error::permanent(
            format!(
                "the worker stopped and left {}: rescue finds these jobs when their lease of {} has run out",
                parts.join(" and "),
                Pretty(lease)
            ),
            None,
        ))
    }
}

/// A worker's end, for whoever waits for it.
#[derive(Debug, Default)]
pub(crate) struct TheEnd {
    left: OnceLock<Left>,
    reached: CancellationToken,
}

impl TheEnd {
    pub(crate) fn reach(&self, left: Left) {
        let _ = self.left.set(left);
        self.reached.cancel();
    }

    pub(crate) async fn reached(&self) -> Left {
        self.reached.cancelled().await;
        self.left.get().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_left_is_no_error_and_what_is_left_is_counted_with_what_becomes_of_it() {
        let lease = Duration::from_mins(2);
        assert!(Left::default().result(lease).is_ok());
        let error = Left { running: 2, unstored: 1 }.result(lease).expect_err("three are left");
        for part in ["2 jobs running", "1 outcomes", "2m"] {
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
