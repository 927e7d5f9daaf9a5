//! The debugging pipe: JSON messages, each ended by a NUL, on descriptors 3 and 4 of the browser,
//! which a shell makes of its standard input and output. When the pipe closes the browser ends.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fault::{Fault, Result};

/// How long a command may take: longer than any condition is waited for in a page.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most events that are kept.
const MAX_EVENTS: usize = 20_000;
/// Messages between the reader's thread and whoever asks.
const MESSAGES: usize = 4_096;

/// A browser's pipe.
pub(crate) struct Pipe {
    child: Child,
    profile: PathBuf,
    line: Mutex<Line>,
}

struct Line {
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    events: VecDeque<Value>,
    last: u64,
}

impl Pipe {
    pub(crate) fn start(program: &Path) -> Result<Self> {
        let fault = |error: std::io::Error| Fault(format!("{}: {error}", program.display()));
        let begun = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos();
        let profile =
            std::env::temp_dir().join(format!("longwire-browser-{}-{begun}", std::process::id()));
        std::fs::create_dir_all(&profile).map_err(fault)?;
        let mut child = Command::new("sh")
            .arg("-c")
            .arg("exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null")
            .arg(program)
            .args(["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-sync"])
            .args(["--disable-component-update", "--disable-default-apps", "--mute-audio"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(fault)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (sender, messages) = sync_channel(MESSAGES);
        thread::spawn(move || {
            let Some(stdout) = stdout else { return };
            let mut stdout = BufReader::new(stdout);
            let mut message = Vec::new();
            while stdout.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { continue };
                if sender.send(value).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let line = Line { stdin, messages, events: VecDeque::new(), last: 0 };
        Ok(Self { child, profile, line: Mutex::new(line) })
    }

    /// Sends a command and waits for its answer; what happens meanwhile is kept.
    pub(crate) fn ask(
        &self,
        session: Option<&str>,
        method: &str,
        parameters: Value,
    ) -> Result<Value> {
        let mut line = self.line();
        line.last += 1;
        let id = line.last;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let sent =
            line.stdin.as_mut().map(|stdin| stdin.write_all(&bytes).and_then(|()| stdin.flush()));
        if !matches!(sent, Some(Ok(()))) {
            return Err(Fault(format!("{method}: the browser has ended")));
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = line.messages.recv_timeout(left).map_err(|error| {
                Fault(match error {
                    RecvTimeoutError::Timeout => format!("{method}: no answer in time"),
                    RecvTimeoutError::Disconnected => format!("{method}: the browser has ended"),
                })
            })?;
            if message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(Fault(format!("{method}: {}", error["message"]))),
                    None => Ok(message["result"].clone()),
                };
            }
            line.keep(message);
        }
    }

    /// What has happened in a tab.
    pub(crate) fn events(&self, session: &str) -> Vec<Value> {
        let mut line = self.line();
        while let Ok(message) = line.messages.try_recv() {
            line.keep(message);
        }
        line.events.iter().filter(|event| event["sessionId"] == session).cloned().collect()
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn keep(&mut self, event: Value) {
        if self.events.len() >= MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // Without its pipe the browser ends by itself; whoever waits for it knows that its
        // profile is not written to any more.
        self.line().stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
