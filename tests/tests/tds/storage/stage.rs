//! A storage on a scripted server, and what it sent.

use std::{
    collections::{HashMap, VecDeque},
    ops::RangeInclusive,
    sync::{Arc, Mutex},
};

use chokaq::{
    JobId,
    model::{FetchRequest, FetchedJob, Lease, LeaseId, WorkerId},
    storage::{WorkerStorage, mssql::MssqlStorage},
};
use uuid::Uuid;

use crate::{
    answers::{Cell, ServerError, Step, text},
    options,
    requests::{Form, Request, Wire},
    server::{Script, Server},
    storage::columns::{empty, rows, set},
    within,
};

/// What statements are answered, by their names: each call takes the next reply.
#[derive(Default)]
pub(crate) struct Replies {
    by_name: HashMap<&'static str, VecDeque<Vec<Step>>>,
    rest: Rest,
}

/// What a statement without a reply is answered.
#[derive(Default)]
enum Rest {
    /// An error, so that a statement that a test does not expect fails it.
    #[default]
    Refused,
    /// Its result sets, without rows.
    Empty,
}

impl Replies {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Everything that has no other reply finds nothing.
    pub(crate) fn nothing_found() -> Self {
        Self { rest: Rest::Empty, ..Self::default() }
    }

    /// One more reply for the statement.
    pub(crate) fn to(mut self, name: &'static str, steps: Vec<Step>) -> Self {
        self.by_name.entry(name).or_default().push_back(steps);
        self
    }

    /// A reply for the statement before those that it has.
    pub(crate) fn first(mut self, name: &'static str, steps: Vec<Step>) -> Self {
        self.by_name.entry(name).or_default().push_front(steps);
        self
    }

    /// One more reply of rows for a statement with one result set.
    pub(crate) fn rows<const N: usize>(self, name: &'static str, cells: Vec<[Cell; N]>) -> Self {
        self.to(name, vec![rows(name, cells)])
    }

    fn next(&mut self, request: &Request) -> Vec<Step> {
        let name = request.name();
        if let Some(steps) = self.by_name.get_mut(name).and_then(VecDeque::pop_front) {
            return steps;
        }
        match self.rest {
            Rest::Empty => empty(name),
            Rest::Refused => vec![Step::Error(ServerError {
                number: 50_000,
                severity: 16,
                state: 1,
                message: format!("the test expects no {name:?} here"),
            })],
        }
    }
}

/// A storage and its server.
pub(crate) struct Stage {
    pub(crate) server: Server,
    pub(crate) storage: Arc<MssqlStorage>,
}

impl Stage {
    pub(crate) async fn new(replies: Replies) -> Self {
        Self::with("", replies).await
    }

    /// With these options in the URL.
    pub(crate) async fn with(options: &str, replies: Replies) -> Self {
        let replies = Mutex::new(replies);
        let answer = move |request: &Request| replies.lock().expect("unpoisoned").next(request);
        Self::on(options, Script::new(answer)).await
    }

    pub(crate) async fn on(url_options: &str, script: Script) -> Self {
        let server = Server::start(script).await;
        let storage = MssqlStorage::open(options(&server.url(url_options)));
        let storage = within(storage).await.expect("the scripted server takes the login");
        Self { server, storage }
    }

    /// The names of the statements, in the order in which they came.
    pub(crate) fn names(&self) -> Vec<String> {
        self.server.statements().iter().map(|request| request.name().to_owned()).collect()
    }

    /// The parameters of a statement, counted from 0: `@name type = value`.
    pub(crate) fn sent(&self, index: usize) -> Vec<String> {
        shown(&self.server.statements()[index])
    }

    /// The parameters of the only statement, which has this name and came on a connection of this role.
    pub(crate) fn only(&self, name: &str, role: &str) -> Vec<String> {
        let statements = self.server.statements();
        assert_eq!(self.names(), [name]);
        assert_eq!(statements[0].program, format!("chokaq {role}"));
        shown(&statements[0])
    }
}

/// Each parameter as it was declared, with its value.
pub(crate) fn shown(request: &Request) -> Vec<String> {
    let Form::Procedure { declarations, values, .. } = &request.form else {
        panic!("a procedure call was expected");
    };
    let Some(declarations) = declarations else {
        assert!(values.is_empty(), "values without a declaration");
        return Vec::new();
    };
    let declarations: Vec<&str> = declarations.split(", ").collect();
    assert_eq!(declarations.len(), values.len());
    let show = |(declaration, sent): (&&str, &crate::requests::Sent)| {
        assert_eq!(declaration.split(' ').next(), Some(&*sent.name));
        format!("{declaration} = {}", value(&sent.value))
    };
    declarations.iter().zip(values).map(show).collect()
}

fn value(value: &Wire) -> String {
    match value {
        Wire::Null => "NULL".to_owned(),
        Wire::Int(number) => number.to_string(),
        Wire::Float(number) => number.to_string(),
        Wire::Text(text) => text.clone(),
        Wire::Guid(bytes) => Uuid::from_bytes_le(*bytes).to_string(),
        Wire::DateTime2 { .. } => panic!("times travel as text or as milliseconds"),
    }
}

/// A parameter's value as JSON.
pub(crate) fn json(shown: &str) -> serde_json::Value {
    let (_, value) = shown.split_once(" = ").expect("a value");
    serde_json::from_str(value).expect("JSON")
}

/// The name of the worker that holds [`leases`]; a parameter that is not ASCII.
pub(crate) const WORKER: &str = "wörker 🔑";

const JOBS: u128 = 0x0011_2233_4455_6677_8899_aabb_ccdd_0000;
const FENCES: u128 = 0xf0e1_d2c3_b4a5_7687_a879_6a5b_4c3d_0000;

fn numbered(base: u128, number: i64) -> Uuid {
    Uuid::from_u128(base + u128::try_from(number).expect("a small number"))
}

/// The id of the job with this number.
pub(crate) fn job_id(number: i64) -> JobId {
    JobId::from_bytes(numbered(JOBS, number).into_bytes())
}

/// It, as a server answers it.
pub(crate) fn job_cell(number: i64) -> Cell {
    Cell::Guid(numbered(JOBS, number).to_bytes_le())
}

/// The fence of the lease with this number.
pub(crate) fn fence(number: i64) -> LeaseId {
    LeaseId::from_bytes(numbered(FENCES, number).into_bytes())
}

pub(crate) fn fence_cell(number: i64) -> Cell {
    Cell::Guid(numbered(FENCES, number).to_bytes_le())
}

pub(crate) fn int(number: i64) -> Cell {
    Cell::Int(number)
}

pub(crate) const NULL: Cell = Cell::Null;

/// A row that left `JobsHot`, of a queue without a limit.
pub(crate) fn ended(number: i64) -> [Cell; 2] {
    [job_cell(number), int(0)]
}

/// A row that went to the dead-letter queue, of a queue without a limit.
pub(crate) fn buried(number: i64, reason: &str) -> [Cell; 3] {
    [job_cell(number), int(0), text(reason)]
}

/// A row of the claim with this number: its `Seq` is the number, and it has what may be NULL not.
pub(crate) fn claimed(number: i64) -> [Cell; 17] {
    [
        int(number),
        job_cell(number),
        fence_cell(number),
        text("mail"),
        text("send"),
        text("{}"),
        NULL,
        int(10),
        int(0),
        int(3),
        int(900_000),
        int(1_772_366_400_250),
        int(1_772_366_400_251),
        NULL,
        int(86_400_000),
        int(number),
        int(1),
    ]
}

/// The answer to a fetch: rows, and nothing else to say.
pub(crate) fn batch(claimed: Vec<[Cell; 17]>) -> Vec<Step> {
    let mut steps = empty("fetch_next_batch");
    steps[2] = set("fetch_next_batch", 2, claimed);
    steps
}

/// A fetch of at most `take` rows.
pub(crate) fn request(take: usize) -> FetchRequest {
    FetchRequest {
        worker: WorkerId::new(WORKER),
        lease: fence(0),
        is_repeat: false,
        queues: None,
        take,
        take_limited: take,
        max_bytes: 1 << 20,
        passed_over: HashMap::new(),
        with_control: false,
    }
}

/// Leases with these numbers, which only a fetch can make.
pub(crate) async fn leases(numbers: RangeInclusive<i64>) -> Vec<Lease> {
    leases_of(WORKER, numbers).await
}

pub(crate) async fn leases_of(worker: &str, numbers: RangeInclusive<i64>) -> Vec<Lease> {
    let claimed = numbers.map(claimed).collect();
    let stage = Stage::new(Replies::new().to("fetch_next_batch", batch(claimed))).await;
    let request = FetchRequest { worker: WorkerId::new(worker), ..request(100) };
    let reply = within(stage.storage.fetch_next_batch(request)).await.expect("rows");
    reply.jobs.into_iter().map(|job: FetchedJob| job.lease).collect()
}
