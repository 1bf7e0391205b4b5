//! Identifiers: a job's, a lease's, a worker's.

use std::{fmt, str::FromStr, sync::Arc};

use uuid::Uuid;

/// A job's identifier: a UUIDv7, so ids sort by the time of their creation.
///
/// The id stays the same for the whole life of a job: through retries, the archive, the dead-letter queue and back.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct JobId(Uuid);

/// The fence of a claim: every fetch stamps a fresh one on the rows it takes.
///
/// Attempt numbers come back after a snooze or a resurrect, so they cannot tell a stale worker from the owner.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseId(Uuid);

macro_rules! uuid_newtype {
    ($name:ident) => {
        impl $name {
            /// A new id, later in order than every id this process made before.
            #[expect(clippy::new_without_default, reason = "a default id would not be a fresh one")]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }

            /// The id as 16 bytes, most significant first.
            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// The id from its 16 bytes, most significant first.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

uuid_newtype!(JobId);
uuid_newtype!(LeaseId);

impl FromStr for JobId {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self).map_err(|_| {
            crate::Error::invalid(format!(
                "{text:?} is not a job id: expected a UUID such as 01890a5d-ac96-774b-bcce-b302099a8057"
            ))
        })
    }
}

/// Names the worker that holds a claim: host, process and a random part, so that a restart is a different worker.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct WorkerId(Arc<str>);

impl WorkerId {
    /// A worker id from text; at most 255 characters are kept by the storage.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
