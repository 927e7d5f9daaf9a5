//! How far the demonstration is.

use std::time::Duration;

use crate::experiment::live::clock;

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

impl std::fmt::Display for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} of {} cells", self.phase, self.done, self.cells)?;
        if let Some(left) = self.left {
            write!(f, ", at most {} left", clock(left))?;
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
