//! One connection: how it is prepared, and whether it may be used again.

use std::time::Duration;

use tiberius::{Client, Command, error::Error as DriverError};
use tokio::net::TcpStream;
use tokio_util::compat::Compat;

use crate::storage::mssql::{
    answer::Answer,
    call::Call,
    failure::Failure,
    migrate::Recorded,
    numbers::ends_the_session,
    options::{MssqlOptions, Place},
    quiet::quietly,
    statement::Rendered,
};

/// Who uses a connection. The server shows it as the session's program name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Producers and workers.
    Worker,
    /// A worker's beats for its jobs: they wait behind nothing else.
    Heartbeat,
    /// What people look at and do.
    Page,
    /// Rescue, purges and migrations: the first to give way in a deadlock.
    Maintenance,
}

impl Role {
    pub(super) const ALL: [Self; 4] =
        [Self::Worker, Self::Heartbeat, Self::Page, Self::Maintenance];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Heartbeat => "heartbeat",
            Self::Page => "page",
            Self::Maintenance => "maintenance",
        }
    }
}

pub(super) type Driver = Client<Compat<TcpStream>>;

/// Whether a connection stands at the beginning of an answer to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    /// A call began and did not come to its end: it was dropped, it timed out, or the connection failed. Whatever
    /// arrives now belongs to that call, so nobody else may use the connection.
    InCall,
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Session {
    /// Boxed: it is large, and moves through many futures.
    driver: Box<Driver>,
    state: State,
    place: Place,
    /// Why the schema cannot be used, when the session began.
    schema_problem: Option<String>,
}

impl Session {
    /// Sets the session up and checks that the database can do what the statements need.
    pub(super) async fn prepare(
        driver: Driver,
        options: &MssqlOptions,
        role: Role,
    ) -> Result<Self, Failure> {
        let mut session = Self {
            driver: Box::new(driver),
            state: State::Ready,
            place: options.place(),
            schema_problem: None,
        };
        let batch = opening_batch(options, role);
        // Bounded by connect_timeout, like everything that opens a connection.
        let answer = session.batch("the session's settings", &batch, Duration::MAX).await?;
        session.check(answer, options)?;
        Ok(session)
    }

    fn check(&mut self, answer: Answer, options: &MssqlOptions) -> Result<(), Failure> {
        let rows = answer.rows()?;
        let row = rows
            .first()
            .ok_or_else(|| Failure::permanent(format!("{}: no database is open", self.place)))?;
        let (level, edition, database) =
            (row.get::<i32>(0)?, row.get::<i32>(1)?, row.get::<String>(2)?);
        if level < 130 {
            return Err(Failure::permanent(format!(
                "{}: database {database:?} has compatibility level {level}, and chokaq needs 130 (SQL Server 2016) or more: \
                 ALTER DATABASE [{}] SET COMPATIBILITY_LEVEL = 130",
                self.place,
                database.replace(']', "]]"),
            )));
        }
        // Dedicated and serverless pools of Synapse: no row locks to speak of.
        if matches!(edition, 6 | 11) {
            return Err(Failure::permanent(format!(
                "{} is an Azure Synapse pool (EngineEdition {edition}): chokaq needs SQL Server, Azure SQL Database or a managed \
                 instance",
                self.place
            )));
        }
        let recorded =
            Recorded { version: row.get(3)?, min_binary: row.get(4)?, applied_by: row.get(5)? };
        self.schema_problem = recorded.problem(&options.schema, &self.place.to_string());
        Ok(())
    }

    /// Whether the next call may use the connection.
    pub(super) fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    /// Why the schema cannot be used, when the session began.
    pub(super) fn schema_problem(&self) -> Option<&str> {
        self.schema_problem.as_deref()
    }

    /// Whether it may serve another caller. One that found no usable schema is opened anew, to look again.
    pub(super) fn is_reusable(&self) -> bool {
        self.is_ready() && self.schema_problem.is_none()
    }

    /// Runs a statement.
    pub(super) async fn run(
        &mut self,
        call: &Call,
        rendered: &Rendered,
        limit: Duration,
    ) -> Result<Answer, Failure> {
        if let Some(problem) = &self.schema_problem {
            return Err(Failure::schema(problem.clone()));
        }
        self.look(call, rendered, limit).await
    }

    /// Runs a statement that is about the schema itself: also where no other can use it.
    pub(super) async fn look(
        &mut self,
        call: &Call,
        rendered: &Rendered,
        limit: Duration,
    ) -> Result<Answer, Failure> {
        let work = Work::Statement(call.command(rendered)?);
        self.guarded(&call.what(), work, limit).await
    }

    /// Runs a text without parameters as it stands. What it SETs stays, unlike what a statement SETs.
    pub(super) async fn batch(
        &mut self,
        what: &str,
        sql: &str,
        limit: Duration,
    ) -> Result<Answer, Failure> {
        self.guarded(what, Work::Batch(sql), limit).await
    }

    /// The connection is in a call from before the first byte goes out until the last one is in: a future dropped in
    /// between leaves it so.
    async fn guarded(
        &mut self,
        what: &str,
        work: Work<'_>,
        limit: Duration,
    ) -> Result<Answer, Failure> {
        if !self.is_ready() {
            return Err(Failure::permanent(format!(
                "{what} was given a connection with another call in it"
            )));
        }
        self.state = State::InCall;
        // Boxed: the driver's futures are large.
        let work = Box::pin(quietly(carry_out(&mut self.driver, what, work)));
        match tokio::time::timeout(limit, work).await {
            Err(_) => Err(self.place.timed_out(what, limit)),
            Ok((result, state)) => {
                self.state = state;
                result.map_err(|error| self.place.explain(what, &error))
            }
        }
    }
}

enum Work<'a> {
    Statement(Command<'a>),
    Batch(&'a str),
}

/// Sends, and reads the answer to its end. Says how that leaves the connection.
async fn carry_out(
    driver: &mut Driver,
    what: &str,
    work: Work<'_>,
) -> (Result<Answer, DriverError>, State) {
    let result = send(driver, what, work).await;
    let state = match &result {
        Ok(_) => State::Ready,
        // The server answered to the end and goes on. XACT_ABORT has rolled back, except after what it lets pass
        // (RAISERROR): an open transaction in the pool would hold its locks for ever.
        Err(DriverError::Server(error)) if !ends_the_session(error.code(), error.class()) => {
            match send(driver, what, Work::Batch("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;")).await
            {
                Ok(_) => State::Ready,
                Err(_) => State::InCall,
            }
        }
        Err(_) => State::InCall,
    };
    (result, state)
}

async fn send(driver: &mut Driver, what: &str, work: Work<'_>) -> Result<Answer, DriverError> {
    match work {
        Work::Statement(command) => Answer::read(what, command.exec(driver).await?).await,
        Work::Batch(sql) => {
            Ok(Answer::of_batch(what, driver.simple_query(sql).await?.into_results().await?))
        }
    }
}

/// One round trip: the settings, then what [`Session::check`] reads.
///
/// The first line is what filtered indexes ask of every writer (error 1934 otherwise). The lock limit is half the command's
/// limit, so that a blocked statement is told so by the server, which rolls it back, before its connection is given up.
fn opening_batch(options: &MssqlOptions, role: Role) -> String {
    let lock_timeout_ms = (options.command_timeout / 2).as_millis();
    let priority = match role {
        Role::Worker | Role::Heartbeat | Role::Page => "",
        Role::Maintenance => "SET DEADLOCK_PRIORITY LOW;\n",
    };
    let schema = options.schema.quoted();
    format!(
        "/* chokaq:session */
SET ANSI_NULLS, ANSI_PADDING, ANSI_WARNINGS, ARITHABORT, CONCAT_NULL_YIELDS_NULL, QUOTED_IDENTIFIER ON;
SET NUMERIC_ROUNDABORT OFF;
SET XACT_ABORT ON;
SET LOCK_TIMEOUT {lock_timeout_ms};
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
{priority}DECLARE @version int, @min_binary int, @applied_by nvarchar(255);
IF OBJECT_ID(N'{schema}.SchemaMigrations', N'U') IS NOT NULL
BEGIN
    SELECT @version = MAX(Version) FROM {schema}.SchemaMigrations;
    SELECT TOP (1) @min_binary = MinBinary, @applied_by = AppliedBy FROM {schema}.SchemaMigrations ORDER BY MinBinary DESC, Version;
END
SELECT CASE WHEN SERVERPROPERTY('BabelfishVersion') IS NULL THEN CAST(compatibility_level AS int) ELSE 130 END,
    CAST(SERVERPROPERTY('EngineEdition') AS int), CAST(name AS nvarchar(128)),
    @version, @min_binary, @applied_by
FROM sys.databases WHERE database_id = DB_ID();"
    )
}
