//! EXIficient as a process that answers line by line (`interop/exificient`).

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// The process; it ends with this value.
pub(super) struct Peer {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// A piece of work for it, in its words.
#[derive(Clone, Debug)]
pub(super) struct Request<'a> {
    /// `encode`, `decode` or `events`.
    pub(super) verb: &'a str,
    /// Options, with commas between them.
    pub(super) words: &'a str,
    /// `-` for none.
    pub(super) schema: &'a Path,
    /// What it reads.
    pub(super) input: &'a Path,
    /// Where it writes, if anywhere.
    pub(super) output: Option<&'a Path>,
    /// How long it repeats the work at least.
    pub(super) time: Duration,
}

/// How often work was done, and how long that took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    /// Times.
    pub(super) rounds: u64,
    /// In all.
    pub(super) elapsed: Duration,
}

impl Peer {
    /// Builds it, which wants a network the first time, and starts it.
    ///
    /// # Errors
    /// When Java, Maven or its libraries are not to be had.
    pub(super) fn start(folder: &Path) -> Result<Self> {
        let built = Command::new(folder.join("build")).status();
        let built = built.with_context(|| format!("run {}/build", folder.display()))?;
        if !built.success() {
            bail!("cannot build {}; apt install maven default-jdk-headless", folder.display());
        }
        let mut child = Command::new(folder.join("serve"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start the peer")?;
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the peer has no pipes");
        };
        Ok(Self { child, requests, answers: BufReader::new(answers) })
    }

    /// Has it work.
    ///
    /// # Errors
    /// When it refuses, with its reason.
    pub(super) fn ask(&mut self, request: &Request) -> Result<Done> {
        let output = request.output.map_or_else(|| PathBuf::from("-"), Path::to_path_buf);
        let line = format!(
            "{}\t{}\t{}\t{}\t{}\t{}",
            request.verb,
            request.words,
            request.schema.display(),
            request.input.display(),
            output.display(),
            request.time.as_millis()
        );
        writeln!(self.requests, "{line}").context("ask the peer")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).context("hear the peer")?;
        let fields: Vec<&str> = answer.trim_end().split('\t').collect();
        match fields[..] {
            ["ok", _, rounds, ns] => Ok(Done {
                rounds: rounds.parse().context("rounds")?,
                elapsed: Duration::from_nanos(ns.parse().context("nanoseconds")?),
            }),
            _ => bail!("the peer answers '{}' to '{line}'", answer.trim_end()),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
