//! What a person sees while something long runs.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Without a terminal a line is printed this often.
const LINE_INTERVAL: Duration = Duration::from_secs(15);

/// One live line on a terminal, else a line now and then. On stderr.
pub(crate) struct Live {
    bar: ProgressBar,
    live: bool,
    last_line: Option<(Instant, &'static str)>,
}

impl Live {
    pub(crate) fn new() -> Self {
        let live = stderr().is_terminal();
        let target = if live { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) = ProgressStyle::with_template("[{bar:12}] {wide_msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar, live, last_line: None }
    }

    /// Shows that `done` of `all` are through a phase; a new phase is always printed.
    pub(crate) fn show(&mut self, phase: &'static str, done: usize, all: usize, text: &str) {
        if self.live {
            self.bar.set_length(all as u64);
            self.bar.set_position(done as u64);
            self.bar.set_message(text.to_string());
            self.bar.tick();
            return;
        }
        let is_time =
            |(at, before): (Instant, &str)| before != phase || at.elapsed() >= LINE_INTERVAL;
        if self.last_line.is_none_or(is_time) {
            self.last_line = Some((Instant::now(), phase));
            eprintln!("{text}");
        }
    }

    /// Removes the live line.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// Minutes and seconds.
pub(crate) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}
