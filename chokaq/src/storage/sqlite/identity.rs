//! Which file a path leads to: a file that was deleted or replaced goes on being written by whoever has it open, and
//! what is written there is lost.

use std::path::Path;

/// A file, whatever its name; where the system has no such thing, every file is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// The file that the path leads to now; `None`: there is none.
    #[cfg(unix)]
    pub(super) fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self { device: metadata.dev(), inode: metadata.ino() })
    }

    /// The file that the path leads to now; `None`: there is none. A file in use cannot be deleted here.
    #[cfg(not(unix))]
    pub(super) fn of(path: &Path) -> Option<Self> {
        path.exists().then_some(Self { device: 0, inode: 0 })
    }
}
