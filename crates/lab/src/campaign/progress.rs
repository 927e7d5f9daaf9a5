//! How far a campaign is, in a file that other programs read while it runs.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use record::campaign::Run;
use serde_json::{Value, json};

/// How often the file is written.
const INTERVAL: Duration = Duration::from_secs(1);
/// So many of the last runs are told of.
const MAX_LATEST: usize = 12;

/// How a campaign ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every run is done.
    Complete,
    /// By a signal; the same command goes on.
    Interrupted,
    /// Results could not be kept.
    Failed,
}

/// A run that has just ended.
#[derive(Clone, Debug)]
pub struct Latest {
    /// Name of its cell.
    pub cell: String,
    /// From 1.
    pub repetition: u32,
    /// Mean time of its exchanges.
    pub mean_s: Option<f64>,
    /// What was wrong with it.
    pub remark: Option<String>,
}

/// How far it is.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The process.
    pub pid: u32,
    /// Runs of the plan.
    pub runs: usize,
    /// Those that are done.
    pub done: usize,
    /// Those under way.
    pub active: usize,
    /// Those that were done again.
    pub repeated: usize,
    /// Those spoilt by the machine.
    pub flagged: usize,
    /// Those without a result.
    pub failed: usize,
    /// About how many seconds are left.
    pub left_s: f64,
    /// Since this start.
    pub elapsed_s: f64,
    /// The greatest p99 of the runs of this start.
    pub lateness_p99_us: u64,
    /// None while it goes on.
    pub ended: Option<Ended>,
    /// The last runs, newest first.
    pub latest: Vec<Latest>,
}

impl Progress {
    /// What the file holds.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let state = match self.ended {
            None => "running",
            Some(Ended::Complete) => "complete",
            Some(Ended::Interrupted) => "interrupted",
            Some(Ended::Failed) => "failed",
        };
        let latest = self.latest.iter().map(|one| {
            json!({"cell": one.cell, "repetition": one.repetition, "mean_s": one.mean_s,
                "remark": one.remark})
        });
        json!({
            "state": state,
            "pid": self.pid,
            "runs": self.runs,
            "done": self.done,
            "active": self.active,
            "repeated": self.repeated,
            "flagged": self.flagged,
            "failed": self.failed,
            "left_s": self.left_s.round(),
            "elapsed_s": self.elapsed_s.round(),
            "lateness_p99_us": self.lateness_p99_us,
            "latest": latest.collect::<Vec<_>>(),
        })
    }
}

/// Writes the file.
pub(super) struct Reporter {
    path: PathBuf,
    last: Option<Duration>,
    latest: VecDeque<Latest>,
}

impl Reporter {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, last: None, latest: VecDeque::new() }
    }

    /// Remembers a run that has ended.
    pub(super) fn note(&mut self, cell: &str, run: &Run) {
        self.latest.truncate(MAX_LATEST - 1);
        self.latest.push_front(Latest {
            cell: cell.to_string(),
            repetition: run.repetition,
            mean_s: run.mean_s(),
            remark: run.failure.clone().or_else(|| run.flagged.clone()),
        });
    }

    pub(super) fn latest(&mut self) -> &[Latest] {
        self.latest.make_contiguous()
    }

    pub(super) fn is_due(&mut self, now: Duration, is_last: bool) -> bool {
        let is_due = is_last || self.last.is_none_or(|last| now >= last + INTERVAL);
        if is_due {
            self.last = Some(now);
        }
        is_due
    }

    /// Written aside first, so that it is never read in part. A disk that is full ends the campaign
    /// where results are kept, not here.
    pub(super) fn write(&self, progress: &Progress) {
        let aside = self.path.with_extension("aside");
        let put = fs::write(&aside, progress.to_json().to_string())
            .and_then(|()| fs::rename(&aside, &self.path));
        if let Err(error) = put {
            tracing::warn!(path = %self.path.display(), %error, "cannot say how far it is");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::scratch::Scratch;

    #[test]
    fn the_file_is_written_once_a_second_and_at_the_end() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().join("progress.json");
        let mut reporter = Reporter::new(path.clone());
        let due = |reporter: &mut Reporter, ms| reporter.is_due(Duration::from_millis(ms), false);
        assert!(due(&mut reporter, 0) && !due(&mut reporter, 999) && due(&mut reporter, 1000));
        assert!(reporter.is_due(Duration::from_millis(1001), true));
        for repetition in 1..=20 {
            reporter.note("los/x", &Run { repetition, ..Run::default() });
        }
        let progress = Progress {
            pid: 7,
            runs: 20,
            done: 20,
            active: 0,
            repeated: 0,
            flagged: 0,
            failed: 0,
            left_s: 0.0,
            elapsed_s: 1.2,
            lateness_p99_us: 60,
            ended: Some(Ended::Complete),
            latest: reporter.latest().to_vec(),
        };
        reporter.write(&progress);
        let read: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!((read["state"].as_str(), read["done"].as_u64()), (Some("complete"), Some(20)));
        assert_eq!(read["latest"].as_array().map(Vec::len), Some(MAX_LATEST));
        assert_eq!(read["latest"][0]["repetition"], 20);
        assert!(!path.with_extension("aside").exists());
    }
}
