//! A server that speaks TDS from a script, and remembers what it was asked.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use crate::{
    answers::{
        Cell, Column, Ending, ServerError, Step, put_block, put_done, put_end, put_message, text,
    },
    requests::{Form, Login, Request},
    wire::{self, End, put_short_text, read_message, to_utf16, write_message},
};

pub(crate) const USER: &str = "jobs";
pub(crate) const PASSWORD: &str = "s3cret!";

type OnLogin = dyn Fn(&Login) -> LoginReply + Send + Sync;
type OnRequest = dyn Fn(&Request) -> Vec<Step> + Send + Sync;

/// What becomes of a login.
#[derive(Debug, Clone)]
pub(crate) enum LoginReply {
    Accept,
    /// These errors, in their order, and the end.
    Refuse(Vec<ServerError>),
    Route(SocketAddr),
    Stall,
    Close,
}

/// How the server behaves.
#[derive(Clone)]
pub(crate) struct Script {
    on_login: Arc<OnLogin>,
    on_request: Arc<OnRequest>,
    compatibility_level: i64,
    engine_edition: i64,
    /// The newest migration that `SchemaMigrations` records; `None` without the table.
    schema_version: Option<i64>,
    min_binary: i64,
}

impl Script {
    /// Answers each statement with these steps; the session's settings and roll-backs it answers by itself.
    pub(crate) fn new(on_request: impl Fn(&Request) -> Vec<Step> + Send + Sync + 'static) -> Self {
        Self {
            on_login: Arc::new(check_password),
            on_request: Arc::new(on_request),
            compatibility_level: 150,
            engine_edition: 3,
            schema_version: Some(1_000),
            min_binary: 1,
        }
    }

    /// Answers every statement the same.
    pub(crate) fn always(steps: Vec<Step>) -> Self {
        Self::new(move |_| steps.clone())
    }

    pub(crate) fn on_login(
        mut self,
        on_login: impl Fn(&Login) -> LoginReply + Send + Sync + 'static,
    ) -> Self {
        self.on_login = Arc::new(on_login);
        self
    }

    pub(crate) fn database(mut self, compatibility_level: i64, engine_edition: i64) -> Self {
        (self.compatibility_level, self.engine_edition) = (compatibility_level, engine_edition);
        self
    }
}

impl Script {
    pub(crate) fn schema(mut self, version: Option<i64>, min_binary: i64) -> Self {
        (self.schema_version, self.min_binary) = (version, min_binary);
        self
    }
}

/// As a server does that knows one login.
pub(crate) fn check_password(login: &Login) -> LoginReply {
    if login.user == USER && login.password == PASSWORD {
        return LoginReply::Accept;
    }
    LoginReply::Refuse(vec![ServerError {
        number: 18456,
        severity: 14,
        state: 1,
        message: format!("Login failed for user '{}'.", login.user),
    }])
}

#[derive(Default)]
struct Seen {
    connections: usize,
    logins: Vec<Login>,
    requests: Vec<Request>,
    closed: Vec<usize>,
}

struct Shared {
    script: Script,
    seen: Mutex<Seen>,
    changes: watch::Sender<u64>,
}

/// The running server; it ends when it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(script: Script) -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), script).await
    }

    pub(crate) async fn start_at(address: SocketAddr, script: Script) -> Self {
        let listener = TcpListener::bind(address).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (changes, _) = watch::channel(0);
        let shared = Arc::new(Shared { script, seen: Mutex::default(), changes });
        let mut tasks = JoinSet::new();
        let accepting = Arc::clone(&shared);
        tasks.spawn(async move {
            // The connections end with the task that took them.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&accepting)));
            }
        });
        Self { address, shared, tasks }
    }

    /// A URL with the right login.
    pub(crate) fn url(&self, options: &str) -> String {
        self.url_as(USER, &PASSWORD.replace('!', "%21"), options)
    }

    pub(crate) fn url_as(&self, user: &str, password: &str, options: &str) -> String {
        format!("mssql://{user}:{password}@{}/shop?encrypt=plaintext&{options}", self.address)
    }

    pub(crate) fn logins(&self) -> Vec<Login> {
        self.shared.seen().logins.clone()
    }

    /// The statements, without what every session begins with.
    pub(crate) fn statements(&self) -> Vec<Request> {
        let is_statement = |request: &&Request| request.form != Form::Batch;
        self.shared.seen().requests.iter().filter(is_statement).cloned().collect()
    }

    pub(crate) fn batches(&self) -> Vec<Request> {
        let is_batch = |request: &&Request| request.form == Form::Batch;
        self.shared.seen().requests.iter().filter(is_batch).cloned().collect()
    }

    /// Waits until this many statements have arrived.
    pub(crate) async fn has_statements(&self, count: usize) {
        self.until(|seen| seen.requests.iter().filter(|r| r.form != Form::Batch).count() >= count)
            .await;
    }

    /// Waits until this many statements of this name have arrived.
    pub(crate) async fn has_named(&self, name: &str, count: usize) {
        self.has_matching(|request| request.name() == name, count).await;
    }

    /// Waits until this many statements that match have arrived.
    pub(crate) async fn has_matching(&self, matches: impl Fn(&Request) -> bool, count: usize) {
        self.until(|seen| seen.requests.iter().filter(|r| matches(r)).count() >= count).await;
    }

    /// Waits until the client has closed the connection.
    pub(crate) async fn has_closed(&self, connection: usize) {
        self.until(|seen| seen.closed.contains(&connection)).await;
    }

    async fn until(&self, condition: impl Fn(&Seen) -> bool) {
        let mut changes = self.shared.changes.subscribe();
        while !condition(&self.shared.seen()) {
            changes.changed().await.expect("the server lives");
        }
    }

    /// Ends the server: every connection breaks, and nobody answers any more.
    pub(crate) async fn stop(mut self) -> SocketAddr {
        self.tasks.shutdown().await;
        self.address
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen());
        self.changes.send_modify(|count| *count += 1);
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut number = 0;
    shared.note(|seen| {
        number = seen.connections;
        seen.connections += 1;
    });
    // A peer that is gone ends the conversation, however far it is.
    drop(converse(&mut stream, number, &shared).await);
    drop(stream);
    shared.note(|seen| seen.closed.push(number));
}

async fn converse(stream: &mut TcpStream, number: usize, shared: &Shared) -> io::Result<()> {
    let mut program = String::new();
    while let Some((kind, payload)) = read_message(stream).await {
        let (request, ending) = match kind {
            wire::PRELOGIN => {
                write_message(stream, &prelogin(), End::Message).await?;
                continue;
            }
            wire::LOGIN => {
                let login = Login::decode(number, &payload);
                program.clone_from(&login.program);
                let reply = (shared.script.on_login)(&login);
                shared.note(|seen| seen.logins.push(login));
                if answer_login(stream, reply).await? == Stays::Gone {
                    return Ok(());
                }
                continue;
            }
            wire::BATCH => (Request::batch(number, &program, &payload), Ending::Batch),
            wire::RPC => (Request::procedure(number, &program, &payload), Ending::Procedure),
            other => panic!("a message of type {other}"),
        };
        shared.note(|seen| seen.requests.push(request.clone()));
        let steps = match own_answer(&request, &shared.script) {
            Some(steps) => steps,
            None => (shared.script.on_request)(&request),
        };
        if answer(stream, &steps, ending).await? == Stays::Gone {
            return Ok(());
        }
    }
    Ok(())
}

#[derive(PartialEq, Eq)]
enum Stays {
    Connected,
    Gone,
}

/// Version 16, no encryption, and access tokens taken.
fn prelogin() -> Vec<u8> {
    let mut out = vec![0, 0, 16, 0, 6, 1, 0, 22, 0, 1, 6, 0, 23, 0, 1, 0xFF];
    out.extend([16, 0, 0, 0, 0, 0, 2, 1]);
    out
}

async fn answer_login(stream: &mut TcpStream, reply: LoginReply) -> io::Result<Stays> {
    let mut out = Vec::new();
    match reply {
        LoginReply::Close => return Ok(Stays::Gone),
        LoginReply::Stall => return wait_for_the_end(stream).await,
        LoginReply::Refuse(errors) => {
            for error in &errors {
                put_message(&mut out, 0xAA, error);
            }
            put_done(&mut out, 0xFD, 2, 0);
            write_message(stream, &out, End::Message).await?;
            return Ok(Stays::Gone);
        }
        LoginReply::Accept => put_login_ack(&mut out),
        LoginReply::Route(to) => {
            put_login_ack(&mut out);
            put_routing(&mut out, to);
        }
    }
    put_done(&mut out, 0xFD, 0, 0);
    write_message(stream, &out, End::Message).await?;
    Ok(Stays::Connected)
}

fn put_login_ack(out: &mut Vec<u8>) {
    let mut body = vec![1, 0x74, 0, 0, 4];
    put_short_text(&mut body, "Scripted SQL Server");
    body.extend([16, 0, 0, 0]);
    put_block(out, 0xAD, &body);
}

fn put_routing(out: &mut Vec<u8>, to: SocketAddr) {
    let host = to.ip().to_string();
    let mut body = vec![20];
    body.extend(u16::try_from(5 + 2 * host.len()).expect("a short host").to_le_bytes());
    body.push(0);
    body.extend(to.port().to_le_bytes());
    body.extend(u16::try_from(host.len()).expect("a short host").to_le_bytes());
    body.extend(to_utf16(&host));
    body.extend([0, 0]);
    put_block(out, 0xE3, &body);
}

/// What is no statement of a test.
fn own_answer(request: &Request, script: &Script) -> Option<Vec<Step>> {
    if request.form != Form::Batch {
        return None;
    }
    match request.name() {
        "session" => Some(vec![Step::Rows(
            vec![
                ("level", Column::Int),
                ("edition", Column::Int),
                ("name", Column::NVarChar(128)),
                ("version", Column::Int),
                ("min_binary", Column::Int),
                ("applied_by", Column::NVarChar(255)),
            ],
            vec![vec![
                Cell::Int(script.compatibility_level),
                Cell::Int(script.engine_edition),
                text("shop"),
                script.schema_version.map_or(Cell::Null, Cell::Int),
                script.schema_version.map_or(Cell::Null, |_| Cell::Int(script.min_binary)),
                script.schema_version.map_or(Cell::Null, |_| text("9.9.9")),
            ]],
        )]),
        _ if request.sql.starts_with("IF @@TRANCOUNT") => Some(Vec::new()),
        _ => None,
    }
}

async fn answer(stream: &mut TcpStream, steps: &[Step], ending: Ending) -> io::Result<Stays> {
    let mut out = Vec::new();
    let mut failed = false;
    for step in steps {
        step.tokens(ending, &mut out);
        match step {
            Step::Error(_) => failed = true,
            Step::Pause(_) | Step::Stall | Step::Close if !out.is_empty() => {
                write_message(stream, &out, End::MoreFollows).await?;
                out.clear();
            }
            _ => {}
        }
        match step {
            Step::Pause(time) => tokio::time::sleep(*time).await,
            Step::Stall => return wait_for_the_end(stream).await,
            Step::Close => return Ok(Stays::Gone),
            _ => {}
        }
    }
    put_end(&mut out, ending, failed);
    write_message(stream, &out, End::Message).await?;
    Ok(Stays::Connected)
}

/// Says nothing more, and waits until the client gives up.
async fn wait_for_the_end(stream: &mut TcpStream) -> io::Result<Stays> {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await?;
    Ok(Stays::Gone)
}
