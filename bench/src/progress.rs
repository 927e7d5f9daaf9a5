//! What a person sees while a measurement runs: what is being done and how long it will take.

use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

/// One line that changes on a terminal, a line for each step elsewhere.
pub struct Progress {
    left: Duration,
    live: bool,
}

impl Progress {
    /// `total` is how long all steps will take.
    #[must_use]
    pub fn new(total: Duration) -> Self {
        Self { left: total, live: stderr().is_terminal() }
    }

    /// Says that a step begins which will take `planned`.
    pub fn step(&mut self, what: &str, planned: Duration) {
        let left = words(self.left);
        // Nobody is told when the standard error is closed.
        let _ = if self.live {
            write!(stderr(), "\r\x1b[2K{what}; {left} left")
        } else {
            writeln!(stderr(), "{what}; {left} left")
        };
        self.left = self.left.saturating_sub(planned);
    }

    /// Adds a step that was not planned, such as one that is repeated.
    pub fn extend(&mut self, planned: Duration) {
        self.left += planned;
    }

    /// Removes the line.
    pub fn finish(&self) {
        if self.live {
            let _ = write!(stderr(), "\r\x1b[2K");
        }
    }
}

/// A duration as a person says it.
fn words(duration: Duration) -> String {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    match (seconds / 60, seconds % 60) {
        (0, s) => format!("{s} s"),
        (m, s) => format!("{m} min {s} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        assert_eq!(words(Duration::from_millis(1500)), "2 s");
        assert_eq!(words(Duration::from_secs(61)), "1 min 1 s");
    }
}
