//! What is deleted once it is old.

use std::fmt;

/// What a purge deletes; lifetime totals stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Purge {
    /// Succeeded jobs, by when they finished.
    Archive,
    /// Dead jobs, by when they failed.
    DeadLetters,
    /// The buckets of 10 s behind the rates, by when they began.
    Buckets,
}

impl Purge {
    /// Each.
    pub const ALL: [Self; 3] = [Self::Archive, Self::DeadLetters, Self::Buckets];

    /// The most rows of one call of the storage.
    pub(crate) const BATCH_AT_MOST: usize = 10_000;
}

impl fmt::Display for Purge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Archive => "the archive",
            Self::DeadLetters => "the dead-letter queue",
            Self::Buckets => "the buckets of the rates",
        })
    }
}
