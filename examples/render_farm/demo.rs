//! A farm of several processes on this machine, and the watcher of any farm.

use std::{
    error::Error,
    fs::File,
    io::{Read, stdin},
    process::{Child, Command, Stdio},
    time::Duration,
};

use chokaq::{Pool, prelude::*};
use tokio::{
    select, signal,
    sync::oneshot,
    time::{interval, sleep},
};

use crate::{
    QUEUE, RenderVideo, enqueue,
    farm::{Farm, Now, Watcher},
    folder, open,
    table::Screen,
};

/// The word that makes a node stop when its standard input ends.
pub(crate) const WITH_PARENT: &str = "with-parent";

/// Between two looks at the farm.
const LOOK: Duration = Duration::from_millis(500);

/// Ends when the process that started this one is gone, or lets it go.
pub(crate) async fn parent_gone() {
    let (gone, wait) = oneshot::channel::<()>();
    // A thread that nobody waits for: at its end the program need not wait for input that does not come.
    std::thread::spawn(move || {
        let _ = stdin().read_to_end(&mut Vec::new());
        drop(gone);
    });
    let _ = wait.await;
}

/// The table of a farm, until ctrl-c.
pub(crate) async fn watch() -> Result<(), Box<dyn Error>> {
    let mut watcher = Watcher::new(open().await?, folder().join("clips"));
    let mut screen = Screen::default();
    let mut clock = interval(LOOK);
    loop {
        select! {
            _ = clock.tick() => screen.show(&watcher.read().await?)?,
            stopped = signal::ctrl_c() => return Ok(stopped?),
        }
    }
}

/// Enqueues, starts the nodes, and shows the farm until every render is done.
pub(crate) async fn run(renders: u32, seconds: u16, nodes: u32) -> Result<(), Box<dyn Error>> {
    let pool = open().await?;
    let mut watcher = Watcher::from_now(pool.clone(), folder().join("clips")).await?;
    let left = watcher.read().await?.waiting;
    if left > 0 {
        println!("{left} renders of an earlier run are still in the queue");
    }
    enqueue(&pool, renders, seconds).await?;
    enqueue_troubles(&pool, seconds).await?;
    let mut nodes = Nodes::start(nodes)?;
    let ended = select! {
        ended = nodes.work(&mut watcher) => ended,
        stopped = signal::ctrl_c() => stopped.map_err(Into::into),
    };
    println!("\nthe nodes stop");
    select! {
        () = nodes.stop() => {}
        stopped = signal::ctrl_c() => stopped?, // a second time: the nodes have heard it too
    }
    report(&pool, &watcher.read().await?).await?;
    ended
}

/// One render whose asset is there at the third attempt, one whose asset is gone for good.
async fn enqueue_troubles(pool: &Pool, seconds: u16) -> chokaq::Result<()> {
    for (composition, asset) in [("slow-asset", "flaky.png"), ("no-asset", "missing.png")] {
        let (composition, asset) = (composition.to_owned(), asset.to_owned());
        RenderVideo { composition, seconds, asset }.enqueue(pool).created_by("webhook").await?;
    }
    println!("and two with troubles: an asset that comes late, and one that is missing");
    Ok(())
}

/// What became of the renders since the demo began.
async fn report(pool: &Pool, farm: &Farm) -> Result<(), Box<dyn Error>> {
    println!("rendered  {:>5}", farm.rendered);
    for (name, node) in &farm.nodes {
        println!("  {name:<12} {:>3}", node.rendered);
    }
    println!("retried   {:>5}", farm.retried);
    println!("dead      {:>5}", farm.dead);
    for job in
        pool.operator().dlq_page(Some(QUEUE), None, usize::try_from(farm.dead.min(10))?).await?
    {
        let (reason, error) = (job.reason.as_str(), job.error.unwrap_or_default());
        println!("  {reason} after {} attempts: {error}", job.attempts);
    }
    println!("the clips are in {}", std::path::absolute(folder().join("clips"))?.display());
    if !farm.is_done() {
        let left = farm.waiting + farm.rendering;
        println!("{left} renders wait in the queue: `demo` or `node NAME` goes on with them");
    }
    Ok(())
}

/// The processes of the demo.
struct Nodes(Vec<(String, Child)>);

impl Nodes {
    /// Their logs go to files: the table has the terminal.
    fn start(nodes: u32) -> Result<Self, Box<dyn Error>> {
        let program = std::env::current_exe()?;
        let start = |number| {
            let name = format!("node-{number}");
            let log = File::create(folder().join(format!("{name}.log")))?;
            let mut command = Command::new(&program);
            command.args(["node", &name, WITH_PARENT]).stdin(Stdio::piped());
            let node = command.stdout(Stdio::null()).stderr(log).spawn()?;
            Ok((name, node))
        };
        println!("{nodes} nodes, with their logs in {}\n", folder().display());
        Ok(Self((1..=nodes).map(start).collect::<Result<_, Box<dyn Error>>>()?))
    }

    /// Until nothing is left to do, or nobody to do it.
    async fn work(&mut self, watcher: &mut Watcher) -> Result<(), Box<dyn Error>> {
        let mut screen = Screen::default();
        let mut clock = interval(LOOK);
        loop {
            clock.tick().await;
            let mut farm = watcher.read().await?;
            let alive = self.look(&mut farm)?;
            screen.show(&farm)?;
            if farm.is_done() {
                return Ok(());
            }
            if alive == 0 {
                return Err("every node is gone; their logs may say why".into());
            }
        }
    }

    /// Notes in the farm which processes there are, and which have ended; answers how many have not.
    fn look(&mut self, farm: &mut Farm) -> Result<usize, Box<dyn Error>> {
        let mut alive = 0;
        for (name, process) in &mut self.0 {
            let node = farm.nodes.entry(name.clone()).or_default();
            node.process = Some(process.id());
            match process.try_wait()? {
                Some(status) => {
                    let lost = node.now.composition().map(str::to_owned);
                    node.now = Now::Gone { how: status.to_string(), lost };
                }
                None => alive += 1,
            }
        }
        Ok(alive)
    }

    /// Their standard input ends, and so do they: what they render goes back to the queue.
    async fn stop(&mut self) {
        for (_, node) in &mut self.0 {
            drop(node.stdin.take());
        }
        while self.0.iter_mut().any(|(_, node)| matches!(node.try_wait(), Ok(None))) {
            sleep(Duration::from_millis(50)).await;
        }
    }
}
