//! Renders a composition to a file: with ffmpeg where there is one, or else a small clip of a moving shade.

use std::{
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use chokaq::{JobContext, JobError, JobId};
use tokio::{
    fs::File,
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
    select,
    time::interval,
};

use crate::RenderVideo;

const FRAMES_PER_SECOND: u32 = 25;
/// Width and height of the stand-in's clips.
const SIDE: u32 = 16;

/// Where a node keeps its clips, and what it renders with.
pub(crate) struct Studio {
    clips: PathBuf,
    node: String,
    has_ffmpeg: bool,
}

/// The file of a render that is not complete, named after the job, its attempt and the node: that is how a watcher knows
/// who renders what. It goes with its owner, unless the owner is killed.
struct Part(PathBuf);

impl Drop for Part {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0); // complete, it has another name by now
    }
}

impl Studio {
    pub(crate) async fn new(clips: PathBuf, node: &str) -> Result<Self, String> {
        if node.is_empty() || !node.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
            return Err(format!("a node cannot be named {node:?}: use letters, digits, - and _"));
        }
        let version = Command::new("ffmpeg").arg("-version").stdin(Stdio::null()).output().await;
        let has_ffmpeg = version.is_ok_and(|output| output.status.success());
        Ok(Self { clips, node: node.to_owned(), has_ffmpeg })
    }

    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    /// The address of the clip. The same job gives the same file: an attempt that finds it has nothing left to do. It is
    /// whole from the moment that it has its name, whoever is killed when.
    pub(crate) async fn render(
        &self,
        job: &RenderVideo,
        ctx: &JobContext,
    ) -> Result<String, JobError> {
        let kind = if self.has_ffmpeg { "mp4" } else { "y4m" };
        let clip = self.clips.join(format!("{}.{kind}", ctx.id()));
        if !clip.exists() {
            let part = format!("{}.{}.{}.part", ctx.id(), ctx.attempt(), self.node);
            let part = Part(self.clips.join(part));
            select! {
                rendered = self.render_to(&part.0, job, ctx) => rendered?,
                () = ctx.cancelled() => return Err("the render was told to stop".into()),
            }
            fs::rename(&part.0, &clip)?;
        }
        remove_parts(&self.clips, ctx.id())?;
        Ok(file_url(&std::path::absolute(&clip)?))
    }

    async fn render_to(&self, part: &Path, job: &RenderVideo, ctx: &JobContext) -> io::Result<()> {
        let frames = u32::from(job.seconds) * FRAMES_PER_SECOND;
        let progress = |frame: u32| {
            ctx.progress(
                f64::from(frame) / f64::from(frames),
                format!("{frame} of {frames} frames"),
            );
        };
        progress(0);
        if self.has_ffmpeg {
            with_ffmpeg(part, job.seconds, progress).await
        } else {
            by_hand(part, frames, progress).await
        }
    }
}

/// A clip in YUV4MPEG2, frame by frame in the time that it will play.
async fn by_hand(part: &Path, frames: u32, progress: impl Fn(u32)) -> io::Result<()> {
    let mut file = File::create(part).await?;
    let header = format!("YUV4MPEG2 W{SIDE} H{SIDE} F{FRAMES_PER_SECOND}:1 Ip A1:1 C420jpeg\n");
    file.write_all(header.as_bytes()).await?;
    let mut clock = interval(Duration::from_secs(1) / FRAMES_PER_SECOND);
    for frame in 0..frames {
        clock.tick().await;
        let luma = (0..SIDE * SIDE).map(|pixel| ((pixel % SIDE + frame) * 8).to_le_bytes()[0]);
        let chroma = (0..SIDE * SIDE / 2).map(|_| 128);
        let picture: Vec<u8> = b"FRAME\n".iter().copied().chain(luma).chain(chroma).collect();
        file.write_all(&picture).await?;
        progress(frame + 1);
    }
    file.sync_all().await
}

/// A test picture of the composition's length, at the speed that it will play. Without its node ffmpeg ends: nobody
/// reads its progress any more.
async fn with_ffmpeg(part: &Path, seconds: u16, progress: impl Fn(u32)) -> io::Result<()> {
    let source = format!("testsrc=size=320x180:rate={FRAMES_PER_SECOND}:duration={seconds}");
    let mut ffmpeg = Command::new("ffmpeg")
        .args([
            "-v",
            "error",
            "-nostdin",
            "-progress",
            "pipe:1",
            "-re",
            "-f",
            "lavfi",
            "-i",
            &source,
        ])
        .args(["-c:v", "mpeg4", "-bitexact", "-f", "mp4", "-y"])
        .arg(part)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stdout = ffmpeg.stdout.take().expect("it is piped");
    let mut lines = BufReader::new(stdout).lines();
    while let Some(line) = lines.next_line().await? {
        if let Some(frame) = line.strip_prefix("frame=").and_then(|frame| frame.trim().parse().ok())
        {
            progress(frame);
        }
    }
    let output = ffmpeg.wait_with_output().await?;
    if output.status.success() {
        return File::open(part).await?.sync_all().await;
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("ffmpeg, {}: {}", output.status, complaint.trim())))
}

/// What is being rendered, or was when its node was killed: job, attempt, node.
pub(crate) fn parts(clips: &Path) -> io::Result<Vec<(JobId, u32, String)>> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(clips)? {
        let name = entry?.file_name();
        let words: Vec<_> = name.to_str().unwrap_or_default().split('.').collect();
        if let [job, attempt, node, "part"] = words[..]
            && let (Ok(job), Ok(attempt)) = (job.parse(), attempt.parse())
        {
            parts.push((job, attempt, node.to_owned()));
        }
    }
    Ok(parts)
}

/// What nodes that were killed left of this job.
fn remove_parts(clips: &Path, job: JobId) -> io::Result<()> {
    for (_, attempt, node) in parts(clips)?.iter().filter(|part| part.0 == job) {
        let _ = fs::remove_file(clips.join(format!("{job}.{attempt}.{node}.part")));
    }
    Ok(())
}

fn file_url(path: &Path) -> String {
    let path = path.to_string_lossy().replace('\\', "/");
    let mut url = String::from(if path.starts_with('/') { "file://" } else { "file:///" });
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~:".contains(&byte) {
            url.push(char::from(byte));
        } else {
            let _ = write!(url, "%{byte:02X}");
        }
    }
    url
}
