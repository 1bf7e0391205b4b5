//! The table: redrawn in place on a terminal, a line for every change elsewhere.

use std::io::{self, IsTerminal, Write};

use crate::farm::{Farm, Node, Now};

/// Width of a progress bar.
const BAR: u8 = 20;

/// Where the table goes.
#[derive(Default)]
pub(crate) struct Screen {
    /// Lines of the table that stands on the terminal.
    drawn: usize,
    /// The line that was printed last, where there is no terminal.
    said: String,
}

impl Screen {
    pub(crate) fn show(&mut self, farm: &Farm) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if !out.is_terminal() {
            let line = numbers(farm);
            if line != self.said {
                writeln!(out, "{line}")?;
                self.said = line;
            }
            return Ok(());
        }
        let lines = table(farm);
        if self.drawn > 0 {
            write!(out, "\x1b[{}A", self.drawn)?; // up to the first line of the last table
        }
        // Without wrapping, a line that is wider than the terminal is cut and stays one line.
        write!(out, "\x1b[?7l")?;
        for line in &lines {
            writeln!(out, "{line}\x1b[K")?;
        }
        write!(out, "\x1b[J\x1b[?7h")?;
        self.drawn = lines.len();
        out.flush()
    }
}

fn numbers(farm: &Farm) -> String {
    let Farm { waiting, delayed, rendering, rendered, retried, dead, .. } = farm;
    format!(
        "waiting {waiting} ({delayed} for a retry), rendering {rendering}, rendered {rendered}, retried {retried}, dead {dead}"
    )
}

fn table(farm: &Farm) -> Vec<String> {
    let mut lines = vec![
        numbers(farm),
        String::new(),
        format!("{:<12} {:>8} {:>9}  now", "node", "process", "rendered"),
    ];
    lines.extend(farm.nodes.iter().map(|(name, node)| row(name, node)));
    lines
}

fn row(name: &str, node: &Node) -> String {
    let process = node.process.map(|process| process.to_string()).unwrap_or_default();
    let now = match &node.now {
        Now::Idle => "idle".to_owned(),
        Now::Renders { composition, share } => {
            let is_done = |step| f64::from(step) <= share * f64::from(BAR);
            let bar: String = (1..=BAR).map(|step| if is_done(step) { '#' } else { '-' }).collect();
            format!("{composition:<12} [{bar}] {:3.0} %", share * 100.0)
        }
        Now::Lost { composition } => format!("gone, {composition} waits for another node"),
        Now::Gone { how, lost: Some(lost) } => {
            format!("gone ({how}), {lost} waits for another node")
        }
        Now::Gone { how, lost: None } => format!("gone ({how})"),
    };
    format!("{name:<12} {process:>8} {:>9}  {now}", node.rendered)
}
