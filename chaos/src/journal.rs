//! What handlers did, line by line, and what it shows when all is over.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    sync::Mutex,
};

use chokaq::JobId;

use crate::Failure;

/// The file of one process.
pub(crate) struct Journal(Mutex<File>);

impl Journal {
    pub(crate) fn open(path: &Path) -> std::io::Result<Self> {
        Ok(Self(Mutex::new(OpenOptions::new().create(true).append(true).open(path)?)))
    }

    /// One line, whole, in one write: a killed process leaves no half of it.
    pub(crate) fn write(&self, what: char, job: &str) -> std::io::Result<()> {
        let line = format!("{what} {job} {}\n", uptime_ms()?);
        let mut file = self.0.lock().map_err(|_| std::io::Error::other("a writer panicked"))?;
        file.write_all(line.as_bytes())
    }
}

/// The clock that all processes of this machine share, whatever they think the time is.
pub(crate) fn uptime_ms() -> std::io::Result<u64> {
    let text = std::fs::read_to_string("/proc/uptime")?;
    let seconds = text.split(' ').next().and_then(|seconds| seconds.parse::<f64>().ok());
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small and positive"
    )]
    let ms = seconds.map(|seconds| (seconds * 1_000.0) as u64);
    ms.ok_or_else(|| std::io::Error::other("/proc/uptime cannot be read"))
}

/// One run of user code.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) attempt: u32,
    pub(crate) node: usize,
    pub(crate) start: u64,
    /// `None`: its process ended first.
    pub(crate) end: Option<u64>,
}

/// Every run of every job, by its start.
pub(crate) fn runs(folder: &Path, nodes: usize) -> Result<HashMap<JobId, Vec<Run>>, Failure> {
    let mut runs: HashMap<JobId, Vec<Run>> = HashMap::new();
    for node in 0..nodes {
        // A process that was killed early has none.
        let Ok(text) = std::fs::read_to_string(folder.join(format!("{node}.log"))) else {
            continue;
        };
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [what, id, attempt, at] = words[..] else {
                return Err(format!("{node}.log: {line:?}").into());
            };
            let (id, attempt, at): (JobId, u32, u64) = (id.parse()?, attempt.parse()?, at.parse()?);
            let of_job = runs.entry(id).or_default();
            if what == "S" {
                of_job.push(Run { attempt, node, start: at, end: None });
                continue;
            }
            let begun = of_job
                .iter_mut()
                .rfind(|run| run.node == node && run.attempt == attempt && run.end.is_none());
            begun.ok_or(format!("{node}.log: an end without a start: {line}"))?.end = Some(at);
        }
    }
    for of_job in runs.values_mut() {
        of_job.sort_by_key(|run| run.start);
    }
    Ok(runs)
}
