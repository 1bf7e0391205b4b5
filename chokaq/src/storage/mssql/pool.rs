//! The connections of a process: a pool for each role, in which no connection is used again that is not at rest.
//!
//! `deadpool` rather than `bb8`: it opens a connection in the task that wants it, so that the caller gets the reason of a
//! failure (a wrong password) at once; `bb8` opens in the background, tries again by itself, and answers "timed out". It
//! also counts the wait for a free connection apart from the time it takes to open one.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use deadpool::{
    Runtime,
    managed::{
        self, Manager, Metrics, Object, PoolError, RecycleError, RecycleResult, TimeoutType,
    },
};

use crate::storage::mssql::{
    answer::Answer,
    call::Call,
    connect,
    failure::Failure,
    numbers::History,
    options::MssqlOptions,
    session::{Role, Session},
    statement::{Rendered, Statement},
};

/// Gateways and firewalls forget a connection that says nothing; one that rested longer is opened anew.
const LONGEST_REST: Duration = Duration::from_mins(5);

/// The connections to one database. Cheap to clone.
#[derive(Clone)]
pub struct Connections {
    inner: Arc<Inner>,
}

struct Inner {
    options: Arc<MssqlOptions>,
    pools: [managed::Pool<Opener>; Role::ALL.len()],
    /// By the file's name and text.
    statements: RwLock<HashMap<(&'static str, usize), Arc<Rendered>>>,
}

struct Opener {
    options: Arc<MssqlOptions>,
    role: Role,
    connected_before: Arc<AtomicBool>,
}

impl Manager for Opener {
    type Type = Session;
    type Error = Failure;

    async fn create(&self) -> Result<Session, Failure> {
        let history = if self.connected_before.load(Ordering::Relaxed) {
            History::ConnectedBefore
        } else {
            History::FirstConnect
        };
        let session = Box::pin(connect::open(&self.options, self.role, history)).await?;
        self.connected_before.store(true, Ordering::Relaxed);
        Ok(session)
    }

    async fn recycle(&self, session: &mut Session, metrics: &Metrics) -> RecycleResult<Failure> {
        if session.is_reusable() && metrics.last_used() < LONGEST_REST {
            Ok(())
        } else {
            Err(RecycleError::message("the connection is not at rest, or has rested too long"))
        }
    }
}

impl Connections {
    /// Describes them: none is opened yet.
    pub fn new(options: MssqlOptions) -> Self {
        let options = Arc::new(options);
        let connected_before = Arc::new(AtomicBool::new(false));
        let pools = Role::ALL.map(|role| {
            let opener = Opener {
                options: Arc::clone(&options),
                role,
                connected_before: Arc::clone(&connected_before),
            };
            managed::Pool::builder(opener)
                .max_size(size(&options, role))
                .wait_timeout(Some(options.pool_wait))
                .runtime(Runtime::Tokio1)
                .build()
                .expect("a runtime for the timeouts")
        });
        let inner = Inner { options, pools, statements: RwLock::default() };
        Self { inner: Arc::new(inner) }
    }

    /// Connects once, so that a wrong URL is noticed.
    ///
    /// # Errors
    /// The server cannot be reached, the login or the database is refused, or is too old.
    pub async fn try_once(&self) -> Result<(), Failure> {
        drop(self.session(Role::Worker).await?);
        Ok(())
    }

    /// How the connections were asked for.
    pub fn options(&self) -> &MssqlOptions {
        &self.inner.options
    }

    /// Runs one statement on a connection of the role.
    ///
    /// # Errors
    /// No connection was free or could be opened in time, the server refused the statement, or did not answer in time.
    pub async fn run(&self, role: Role, call: &Call) -> Result<Answer, Failure> {
        self.session(role).await?.run(call).await
    }

    /// A connection for several batches in one session, as migrations need it.
    ///
    /// # Errors
    /// No connection was free or could be opened in time.
    pub async fn session(&self, role: Role) -> Result<PooledSession, Failure> {
        let object = self.take(role).await?;
        Ok(PooledSession { object: Some(object), connections: self.clone() })
    }

    async fn take(&self, role: Role) -> Result<Object<Opener>, Failure> {
        let Inner { options, pools, .. } = &*self.inner;
        match Box::pin(pools[role as usize].get()).await {
            Ok(object) => Ok(object),
            Err(PoolError::Backend(failure)) => Err(failure),
            Err(PoolError::Timeout(TimeoutType::Wait)) => {
                Err(options.place().exhausted(size(options, role), options.pool_wait))
            }
            Err(error) => Err(Failure::permanent(format!("the connection pool failed: {error}"))),
        }
    }

    /// A connection that the server closed is seldom the only one: a failover or a restart closes all. Those at rest are
    /// let go, so that the next call opens a fresh one instead of failing on each in turn.
    fn let_go_after(&self, failure: &Failure) {
        if failure.lost_the_connection() {
            for pool in &self.inner.pools {
                pool.retain(|_, _| false);
            }
        }
    }

    fn rendered(&self, statement: &'static Statement) -> Result<Arc<Rendered>, Failure> {
        let key = statement.key();
        let statements = self.inner.statements.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(rendered) = statements.get(&key) {
            return Ok(Arc::clone(rendered));
        }
        drop(statements);
        let options = &self.inner.options;
        let mut rendered = statement.render(&options.schema)?;
        if let Some(rewrite) = options.rewrite {
            rendered.sql = rewrite(statement.name, &rendered.sql);
        }
        let rendered = Arc::new(rendered);
        let mut statements = self.inner.statements.write().unwrap_or_else(PoisonError::into_inner);
        statements.insert(key, Arc::clone(&rendered));
        Ok(rendered)
    }
}

/// What people do, and what looks after the tables, needs few connections and must not take the worker's.
fn size(options: &MssqlOptions, role: Role) -> usize {
    match role {
        Role::Worker => options.pool_size,
        Role::Page => options.pool_size.min(4),
        Role::Heartbeat | Role::Maintenance => options.pool_size.min(2),
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

/// A connection that goes back to its pool if it is at rest, and is closed at once if it is not: the server then rolls
/// back and frees the locks.
pub struct PooledSession {
    /// `None` only while it is dropped.
    object: Option<Object<Opener>>,
    connections: Connections,
}

impl PooledSession {
    /// Runs one statement.
    ///
    /// # Errors
    /// The server refused it, or did not answer in time; after the latter the session is of no more use.
    pub async fn run(&mut self, call: &Call) -> Result<Answer, Failure> {
        let rendered = self.connections.rendered(call.statement)?;
        let limit = call.limit.unwrap_or(self.connections.options().command_timeout);
        let result = self.get().run(call, &rendered, limit).await;
        result.inspect_err(|failure| self.connections.let_go_after(failure))
    }

    /// Runs a statement that is about the schema itself: also where no other can use it.
    pub(super) async fn look(&mut self, call: &Call) -> Result<Answer, Failure> {
        let rendered = self.connections.rendered(call.statement)?;
        let limit = call.limit.unwrap_or(self.connections.options().command_timeout);
        let result = self.get().look(call, &rendered, limit).await;
        result.inspect_err(|failure| self.connections.let_go_after(failure))
    }

    /// Why the schema cannot be used, where it cannot.
    pub(super) fn schema_problem(&mut self) -> Option<String> {
        self.get().schema_problem().map(str::to_owned)
    }

    /// Runs a text without parameters as it stands; `what` names it in messages.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn batch(
        &mut self,
        what: &str,
        sql: &str,
        limit: Duration,
    ) -> Result<Answer, Failure> {
        let result = self.get().batch(what, sql, limit).await;
        result.inspect_err(|failure| self.connections.let_go_after(failure))
    }

    /// Closes the connection instead of giving it back.
    pub(super) fn close(mut self) {
        drop(self.object.take().map(Object::take));
    }

    fn get(&mut self) -> &mut Session {
        self.object.as_mut().expect("held until it is dropped")
    }
}

impl Drop for PooledSession {
    fn drop(&mut self) {
        if let Some(object) = self.object.take()
            && !object.is_reusable()
        {
            drop(Object::take(object));
        }
    }
}

impl fmt::Debug for PooledSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PooledSession").finish_non_exhaustive()
    }
}
