//! What a person sees while the demonstration runs.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Without a terminal a line is printed this often.
const LINE_INTERVAL: Duration = Duration::from_secs(15);

/// One live line on a terminal, else a line now and then. On stderr.
pub(super) struct Progress {
    bar: ProgressBar,
    live: bool,
    last_line: Option<(Instant, &'static str)>,
}

/// How far it is.
pub(super) struct Standing {
    /// What happens now.
    pub(super) phase: &'static str,
    /// Cells that have come through this phase.
    pub(super) done: usize,
    /// All cells.
    pub(super) cells: usize,
    /// The longest that it can still take; none before the measuring.
    pub(super) left: Option<Duration>,
    /// Cells not through yet, by network.
    pub(super) waiting: Vec<(String, usize)>,
}

impl Progress {
    pub(super) fn new() -> Self {
        let live = stderr().is_terminal();
        let target = if live { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) = ProgressStyle::with_template("[{bar:12}] {wide_msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar, live, last_line: None }
    }

    /// Shows how far it is.
    pub(super) fn show(&mut self, standing: &Standing) {
        let text = standing.to_string();
        if self.live {
            self.bar.set_length(standing.cells as u64);
            self.bar.set_position(standing.done as u64);
            self.bar.set_message(text);
            self.bar.tick();
            return;
        }
        let is_time =
            |(at, phase): (Instant, &str)| phase != standing.phase || at.elapsed() >= LINE_INTERVAL;
        if self.last_line.is_none_or(is_time) {
            self.last_line = Some((Instant::now(), standing.phase));
            eprintln!("{text}");
        }
    }

    /// Removes the live line.
    pub(super) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

impl std::fmt::Display for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} of {} cells", self.phase, self.done, self.cells)?;
        if let Some(left) = self.left {
            let seconds = left.as_secs();
            write!(f, ", at most {}:{:02} left", seconds / 60, seconds % 60)?;
        }
        let mut separator = "; waiting for ";
        for (network, cells) in &self.waiting {
            write!(f, "{separator}{network} ×{cells}")?;
            separator = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standing_says_how_far_how_long_and_for_whom() {
        let mut standing = Standing {
            phase: "measuring",
            done: 42,
            cells: 45,
            left: Some(Duration::from_millis(65_900)),
            waiting: vec![("cnr".to_string(), 2), ("satcom".to_string(), 1)],
        };
        let line = "measuring: 42 of 45 cells, at most 1:05 left; waiting for cnr ×2, satcom ×1";
        assert_eq!(standing.to_string(), line);
        (standing.left, standing.waiting) = (None, Vec::new());
        assert_eq!(standing.to_string(), "measuring: 42 of 45 cells");
    }
}
