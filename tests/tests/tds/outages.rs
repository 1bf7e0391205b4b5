//! A worker while its SQL Server is away: refused, disconnected, stalled, gone. It says so once, loses and doubles nothing, and
//! goes on by itself.

use std::{
    collections::BTreeMap,
    io::Write,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use chokaq::{Pool, Worker, WorkerHandle, prelude::*, storage::mssql::MssqlStorage};
use tokio::{sync::Semaphore, task::JoinHandle};

use crate::{
    answers::{Cell, Step, error, text},
    options,
    requests::Request,
    server::{Script, Server},
    storage::{
        columns::{empty, rows},
        stage::{batch, claimed, ended, int, job_cell},
    },
};

/// Pauses between tries grow up to 5 s, and there are several parts that try.
async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_mins(1), future).await.expect("within a minute")
}

const JOBS: i64 = 40;
const PERMITS: usize = 4;

/// Runs when it may.
#[job(queue = "outage")]
struct Held;

#[derive(Clone)]
struct Gate {
    open: Arc<Semaphore>,
    /// How often each job began.
    began: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Job for Held {
    type Output = ();
    async fn run(self, ctx: &JobContext) -> Result<(), JobError> {
        let gate = ctx.state::<Gate>()?.clone();
        *locked(&gate.began).entry(ctx.id().to_string()).or_default() += 1;
        gate.open.acquire().await?.forget();
        Ok(())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What workers log on their threads.
fn log() -> &'static Mutex<String> {
    static LOG: Mutex<String> = Mutex::new(String::new());
    static ONCE: OnceLock<()> = OnceLock::new();
    struct Kept;
    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            locked(&LOG).push_str(&String::from_utf8_lossy(bytes));
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    ONCE.get_or_init(|| {
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(|| Kept);
        subscriber.with_max_level(tracing_subscriber::filter::LevelFilter::INFO).init();
    });
    &LOG
}

fn told(worker: &str, text: &str) -> usize {
    locked(log()).lines().filter(|line| line.contains(worker) && line.contains(text)).count()
}

/// Numbered jobs in memory, and how the server behaves.
#[derive(Default)]
struct Farm {
    claimed: i64,
    /// Of each job that was archived: how often.
    archived: BTreeMap<i64, usize>,
    /// What every statement is answered with; none: as it should be.
    trouble: Option<Vec<Step>>,
    troubled: usize,
}

impl Farm {
    fn answer(&mut self, request: &Request) -> Vec<Step> {
        if let Some(steps) = &self.trouble {
            self.troubled += 1;
            return steps.clone();
        }
        match request.name() {
            "fetch_next_batch" => self.claim(request.take()),
            name @ "mark_as_processing" => {
                let start = |seq| [int(seq), int(1), int(1_772_366_400_250)];
                vec![rows(name, request.seqs().map(start).collect())]
            }
            name @ "keep_alive" => {
                let alive = |seq| [int(seq), int(1), int(0)];
                vec![rows(name, request.seqs().map(alive).collect())]
            }
            name @ "archive_succeeded" => {
                let seqs: Vec<i64> = request.seqs().collect();
                for seq in &seqs {
                    *self.archived.entry(*seq).or_default() += 1;
                }
                vec![rows(name, seqs.into_iter().map(ended).collect())]
            }
            name @ "snooze" => {
                vec![rows(name, request.seqs().map(|seq| [job_cell(seq)]).collect())]
            }
            name => empty(name),
        }
    }

    fn claim(&mut self, take: i64) -> Vec<Step> {
        let first = self.claimed + 1;
        self.claimed = JOBS.min(self.claimed + take);
        let row = |number| {
            let mut row: [Cell; 17] = claimed(number);
            row[3] = text(Held::JOB_TYPE.queue);
            row[4] = text(Held::JOB_TYPE.key);
            row[5] = text("null");
            row
        };
        batch((first..=self.claimed).map(row).collect())
    }
}

/// A worker with all its permits in use, on a server that can be troubled.
struct Shop {
    farm: Arc<Mutex<Farm>>,
    server: Server,
    gate: Gate,
    worker: String,
    handle: WorkerHandle,
    running: JoinHandle<chokaq::Result<()>>,
}

fn script(farm: &Arc<Mutex<Farm>>) -> Script {
    let farm = Arc::clone(farm);
    Script::new(move |request| locked(&farm).answer(request))
}

impl Shop {
    async fn open(url_options: &str) -> Self {
        log();
        let farm = Arc::<Mutex<Farm>>::default();
        let server = Server::start(script(&farm)).await;
        let storage = within(MssqlStorage::open(options(&server.url(url_options)))).await;
        let pool = Pool::over(storage.expect("the login is taken"));
        let gate = Gate { open: Arc::new(Semaphore::new(0)), began: Arc::default() };
        let worker = Worker::builder(&pool).only::<(Held,)>().state(gate.clone());
        let worker = worker.concurrency(PERMITS).build().expect("a worker");
        let handle = worker.handle();
        let port = server.address.port().to_string();
        let running = tokio::spawn(worker.run());
        let name = within(async {
            loop {
                let starts = |line: &&str| line.contains("worker starts") && line.contains(&port);
                if let Some(line) = locked(log()).lines().find(starts) {
                    let rest = line.split("worker=").nth(1).expect("its name");
                    break rest.split(' ').next().expect("a word").to_owned();
                }
                tokio::task::yield_now().await;
            }
        });
        let worker = name.await;
        let shop = Self { farm, server, gate, worker, handle, running };
        shop.until(|shop| locked(&shop.gate.began).len() == PERMITS).await;
        shop
    }

    async fn until(&self, condition: impl Fn(&Self) -> bool) {
        within(async {
            while !condition(self) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    /// Answers every statement so, until the worker has noticed and has tried some more.
    async fn trouble(&self, steps: Vec<Step>) {
        locked(&self.farm).trouble = Some(steps);
        self.gate.open.add_permits(1_000);
        self.until(|shop| told(&shop.worker, "the storage fails") == 1).await;
        let before = locked(&self.farm).troubled;
        self.until(|shop| locked(&shop.farm).troubled >= before + 2).await;
    }

    /// Every job began once and was archived once, and the log told of the one episode.
    async fn recovers(self) {
        let all = usize::try_from(JOBS).expect("not negative");
        self.until(|shop| locked(&shop.farm).archived.len() == all).await;
        self.until(|shop| told(&shop.worker, "the storage answers again") == 1).await;
        assert!(locked(&self.farm).archived.values().all(|times| *times == 1));
        assert_eq!(locked(&self.gate.began).len(), all);
        assert!(locked(&self.gate.began).values().all(|times| *times == 1));
        assert_eq!(told(&self.worker, "the storage fails"), 1, "{}", locked(log()));
        self.handle.stop();
        within(self.running).await.expect("no panic").expect("it ends well");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_fails_over_is_waited_for() {
    let shop = Shop::open("").await;
    shop.trouble(vec![error(40_613)]).await;
    locked(&shop.farm).trouble = None;
    shop.recovers().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_are_killed_are_opened_anew() {
    let shop = Shop::open("").await;
    shop.trouble(vec![Step::Close]).await;
    locked(&shop.farm).trouble = None;
    shop.recovers().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stalls_is_given_up_and_tried_again() {
    let shop = Shop::open("command_timeout=200ms").await;
    shop.trouble(vec![Step::Stall]).await;
    locked(&shop.farm).trouble = None;
    shop.recovers().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_find_no_free_connection_wait_and_are_tried_again() {
    let shop = Shop::open("command_timeout=200ms&pool_size=1&pool_wait=100ms").await;
    shop.trouble(vec![Step::Stall]).await;
    locked(&shop.farm).trouble = None;
    shop.recovers().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_gone_is_found_when_it_is_back() {
    let mut shop = Shop::open("connect_timeout=200ms").await;
    let address = shop.server.stop().await;
    shop.gate.open.add_permits(1_000);
    let worker = shop.worker.clone();
    within(async {
        while told(&worker, "the storage fails") == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    shop.server = Server::start_at(address, script(&shop.farm)).await;
    shop.recovers().await;
}
