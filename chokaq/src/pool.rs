//! From a URL to a storage.

use std::{fmt, sync::Arc};

use crate::{
    Result,
    model::{EnqueueOutcome, Limits, NewJob, PolicyDefaults},
    storage::Storage,
};

/// A connection to a job database. Cheap to clone.
#[derive(Clone)]
pub struct Pool {
    inner: Arc<Inner>,
}

struct Inner {
    storage: Arc<dyn Storage>,
    limits: Limits,
    policy: PolicyDefaults,
}

impl Pool {
    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    pub(crate) fn policy_defaults(&self) -> &PolicyDefaults {
        &self.inner.policy
    }

    /// The storage behind the pool. Not part of the public API.
    #[doc(hidden)]
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.inner.storage
    }

    /// Inserts; a transient failure is answered by repeating the same insert, which recognises itself.
    pub(crate) async fn insert(&self, jobs: Vec<NewJob>) -> Result<Vec<EnqueueOutcome>> {
        self.storage().enqueue(jobs).await
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("database", &self.inner.storage.describe()).finish()
    }
}
