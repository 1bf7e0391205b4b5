//! Which file a path leads to: a file that was deleted or replaced goes on being written by whoever has it open, and
//! what is written there is lost.

use std::path::{Path, PathBuf};

use crate::{Error, storage::sqlite::failure::DatabaseName};

/// A path, and the file that it led to when the database was opened.
///
/// Another file that stands there later is not opened: the old file's WAL beside it would be taken for its own. Only a
/// person knows which of them is right.
#[derive(Debug, Clone)]
pub(super) struct Place {
    path: PathBuf,
    opened: Option<Identity>,
}

impl Place {
    /// The place of a file that has just been opened.
    pub(super) fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), opened: Identity::of(path) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path still leads to that file.
    pub(super) fn is_kept(&self) -> bool {
        Identity::of(&self.path) == self.opened
    }

    /// The error of a call while it does not.
    pub(super) fn lost(name: &DatabaseName) -> Error {
        let remedy = "put it back, or restart to begin with what is there now";
        Error::transient(format!("{name} was deleted or moved while in use: {remedy}"), None)
    }
}

/// A file, whatever its name; where the system has no such thing, every file is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// The file that the path leads to now; `None`: there is none.
    #[cfg(unix)]
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self { device: metadata.dev(), inode: metadata.ino() })
    }

    /// The file that the path leads to now; `None`: there is none. A file in use cannot be deleted here.
    #[cfg(not(unix))]
    fn of(path: &Path) -> Option<Self> {
        path.exists().then_some(Self { device: 0, inode: 0 })
    }
}
