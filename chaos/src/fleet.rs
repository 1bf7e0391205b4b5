//! The worker processes, and what was done to them.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::sleep;

use crate::{Failure, journal::uptime_ms};

/// What became of one process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Life {
    pub(crate) pid: u32,
    pub(crate) killed: Option<u64>,
    /// When it was stopped, and when it went on.
    pub(crate) stops: Vec<(u64, u64)>,
}

pub(crate) struct Fleet {
    url: String,
    folder: PathBuf,
    /// A worker whose clock is a day ahead, where that can be made.
    fake_time: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    lives: Vec<Life>,
    /// The processes that live, each with its number in `lives`.
    slots: Vec<(usize, Child)>,
}

impl Fleet {
    pub(crate) fn start(url: &str, folder: &Path, processes: usize) -> Result<Self, Failure> {
        let library = Path::new("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1");
        let fake_time = (!url.starts_with("sqlite:")).then(|| library.to_owned());
        if fake_time.is_some() && !library.exists() {
            eprintln!("!!! libfaketime is not installed: NO WORKER HAS A WRONG CLOCK");
        }
        let fleet = Self {
            url: url.to_owned(),
            folder: folder.to_owned(),
            fake_time: fake_time.filter(|library| library.exists()),
            state: Mutex::default(),
        };
        for slot in 0..processes {
            let child = fleet.spawn(slot)?;
            fleet.lock().slots.push(child);
        }
        Ok(fleet)
    }

    fn spawn(&self, slot: usize) -> Result<(usize, Child), Failure> {
        let number = self.lock().lives.len();
        let errors = self.folder.join("errors.log");
        let log = std::fs::File::options().create(true).append(true).open(errors)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("worker").arg("--url").arg(&self.url);
        command.arg("--journal").arg(self.folder.join(format!("{number}.log")));
        if let Some(library) = self.fake_time.as_ref().filter(|_| slot == 0) {
            command.env("LD_PRELOAD", library).env("FAKETIME", "+1d");
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        let child = command.stdout(Stdio::null()).stderr(log).spawn()?;
        self.lock().lives.push(Life { pid: child.id(), ..Life::default() });
        Ok((number, child))
    }

    /// SIGKILL, and another in its place.
    pub(crate) fn kill(&self, slot: usize) -> Result<(), Failure> {
        let mut state = self.lock();
        let (number, child) = &mut state.slots[slot];
        let number = *number;
        child.kill()?;
        child.wait()?;
        state.lives[number].killed = Some(uptime_ms()?);
        drop(state);
        let next = self.spawn(slot)?;
        self.lock().slots[slot] = next;
        Ok(())
    }

    /// SIGSTOP, and SIGCONT after a while.
    pub(crate) async fn stop_for(&self, slot: usize, time: Duration) -> Result<(), Failure> {
        let (number, pid) = {
            let state = self.lock();
            let (number, child) = &state.slots[slot];
            (*number, child.id())
        };
        let from = uptime_ms()?;
        signal("STOP", pid)?;
        sleep(time).await;
        signal("CONT", pid)?;
        let to = uptime_ms()?;
        self.lock().lives[number].stops.push((from, to));
        Ok(())
    }

    /// All lives, after the last of them was ended.
    pub(crate) fn end(&self) -> Result<Vec<Life>, Failure> {
        let mut state = self.lock();
        for (_, child) in &mut state.slots {
            child.kill()?;
            child.wait()?;
        }
        Ok(state.lives.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // However the program ends, no worker stays behind.
        drop(self.end());
    }
}

fn signal(name: &str, pid: u32) -> Result<(), Failure> {
    let status = Command::new("sh").arg("-c").arg(format!("kill -{name} {pid}")).status()?;
    if status.success() { Ok(()) } else { Err(format!("kill -{name} {pid} failed").into()) }
}
