//! What a job type declares about itself.

use crate::model::JobPolicy;

/// What `#[job(...)]` declares about a struct.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct JobType {
    /// The persisted name of the type, in `Type` columns.
    pub key: &'static str,
    /// Older keys whose rows this type still runs.
    pub aliases: &'static [&'static str],
    /// The queue that new jobs go to unless the enqueue call names another.
    pub queue: &'static str,
    /// The priority of new jobs unless the enqueue call sets another; higher is fetched first.
    pub priority: i32,
    /// Retries, time limits and backoff.
    pub policy: JobPolicy,
    /// The Rust path of the struct, for messages.
    pub rust_name: &'static str,
    /// Where the struct stands, `file:line`.
    pub location: &'static str,
}

impl JobType {
    /// A type with this key, of this Rust name, declared at this place, and with every default.
    pub const fn new(key: &'static str, rust_name: &'static str, location: &'static str) -> Self {
        Self {
            key,
            aliases: &[],
            queue: "default",
            priority: 10,
            policy: JobPolicy::INHERIT,
            rust_name,
            location,
        }
    }

    /// With these older keys.
    #[must_use]
    pub const fn with_aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// On this queue.
    #[must_use]
    pub const fn with_queue(mut self, queue: &'static str) -> Self {
        self.queue = queue;
        self
    }

    /// With this priority.
    #[must_use]
    pub const fn with_priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// With this policy.
    #[must_use]
    pub const fn with_policy(mut self, policy: JobPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// The key and the aliases.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.key).chain(self.aliases.iter().copied())
    }
}
