//! The log of a side, on stderr. Nobody waits for it: lines wait in a bounded queue for a thread of
//! their own, and what cannot be written (a full disk, a pipe that nobody reads any more, or that
//! somebody does not read) is counted and told once there is room again.

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _, Write, stderr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use proxy::config::LogSettings;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Bytes of lines that wait to be written; beyond it lines are lost. A second of a busy side.
const MAX_WAITING_BYTES: usize = 1 << 20;
/// How long the end of the process waits for its last lines.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

/// Lines that wait.
#[derive(Default)]
struct Waiting {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// The thread has one in its hands.
    writing: bool,
    /// Lines that could not be written, or found no room, since it was told.
    lost: u64,
}

/// What the process logs into and the thread writes from.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a line, or counts it as lost where the bytes that wait are too many.
    fn push(&self, line: &[u8]) {
        let mut waiting = self.lock();
        if waiting.bytes + line.len() > MAX_WAITING_BYTES {
            waiting.lost += 1;
            return;
        }
        waiting.bytes += line.len();
        waiting.lines.push_back(line.to_vec());
        self.changed.notify_all();
    }

    /// Writes lines for ever.
    fn write_to(&self, mut out: impl Write) {
        loop {
            let mut waiting = self.lock();
            let line = loop {
                match waiting.lines.pop_front() {
                    Some(line) => break line,
                    None => {
                        waiting =
                            self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                    }
                }
            };
            waiting.bytes -= line.len();
            waiting.writing = true;
            drop(waiting);
            let written = out.write_all(&line);
            let mut waiting = self.lock();
            waiting.writing = false;
            let lost = match written {
                Ok(()) => std::mem::take(&mut waiting.lost),
                Err(_) => {
                    waiting.lost += 1;
                    0
                }
            };
            self.changed.notify_all();
            drop(waiting);
            if lost > 0 {
                tracing::warn!(lines = lost, "lines of the log are lost: it could not be written");
            }
        }
    }

    /// Waits until all is written, or written in vain, but not for long.
    fn drain(&self, patience: Duration) {
        let left = |waiting: &mut Waiting| waiting.writing || !waiting.lines.is_empty();
        drop(self.changed.wait_timeout_while(self.lock(), patience, left));
    }
}

/// The process's one; none until a side logs.
static QUEUE: OnceLock<Arc<Queue>> = OnceLock::new();

/// How to take another level; none until a side logs.
static SET_LEVEL: OnceLock<SetLevel> = OnceLock::new();
type SetLevel = Box<dyn Fn(&str) + Send + Sync>;

/// Gives the lines of `tracing` to the queue.
struct ToQueue(Arc<Queue>);

impl<'a> MakeWriter<'a> for ToQueue {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

impl Write for &ToQueue {
    /// A whole line comes at once.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The level that is meant.
pub(crate) fn level(settings: &LogSettings) -> &str {
    settings.level.as_deref().unwrap_or("info")
}

/// What is wrong with the settings, by key; an error names the value and what is allowed.
pub(crate) fn check(settings: &LogSettings) -> Vec<(&'static str, proxy::Error)> {
    let mut wrong = Vec::new();
    let level = level(settings);
    if !["error", "warn", "info", "debug", "trace"].contains(&level) {
        let known = "one of error, warn, info, debug, trace";
        wrong.push(("level", proxy::Error::Caller(format!("log level '{level}': {known}"))));
    }
    if let Some(other) = &settings.format
        && !["text", "json"].contains(&other.as_str())
    {
        let what = format!("log format '{other}': one of text, json");
        wrong.push(("format", proxy::Error::Caller(what)));
    }
    wrong
}

/// Takes another level from now on.
pub(crate) fn set_level(level: &str) {
    if let Some(set) = SET_LEVEL.get() {
        set(level);
    }
}

/// Begins to log to stderr, by settings that were checked.
pub(crate) fn start(settings: &LogSettings) -> Result<(), proxy::Error> {
    let (level, json) = (level(settings), settings.format.as_deref() == Some("json"));
    let queue = Arc::clone(QUEUE.get_or_init(Arc::default));
    let thread = std::thread::Builder::new().name("log".to_owned());
    let writing = Arc::clone(&queue);
    thread
        .spawn(move || writing.write_to(stderr()))
        .map_err(|source| proxy::Error::System { doing: "start to log".to_owned(), source })?;
    let builder = tracing_subscriber::fmt()
        .with_writer(ToQueue(queue))
        // Nobody reads where a line comes from, and fields may be called target too.
        .with_target(false)
        .with_ansi(stderr().is_terminal())
        // Of a line that it cannot format it would tell by a macro that panics where stderr fails.
        .log_internal_errors(false);
    let filter = EnvFilter::new(level);
    // Starting fails only where the process has a subscriber already, which then logs. A level that
    // cannot be set leaves the one that was.
    if json {
        let builder = builder.json().flatten_event(true);
        let builder = builder.with_env_filter(filter).with_filter_reloading();
        let handle = builder.reload_handle();
        let set = move |level: &str| drop(handle.reload(EnvFilter::new(level)));
        if builder.try_init().is_ok() {
            let _ = SET_LEVEL.set(Box::new(set));
        }
    } else {
        let builder = builder.with_env_filter(filter).with_filter_reloading();
        let handle = builder.reload_handle();
        let set = move |level: &str| drop(handle.reload(EnvFilter::new(level)));
        if builder.try_init().is_ok() {
            let _ = SET_LEVEL.set(Box::new(set));
        }
    }
    proxy::fault::end_whole(finish);
    Ok(())
}

/// Waits for the last lines, but not for long.
pub(crate) fn finish() {
    if let Some(queue) = QUEUE.get() {
        queue.drain(LAST_PATIENCE);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Takes what it is given through a gate that opens with each unit sent.
    struct Gated(mpsc::Receiver<bool>, mpsc::Sender<Vec<u8>>);

    impl Write for Gated {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            match self.0.recv() {
                Ok(true) => {
                    let _ = self.1.send(line.to_vec());
                    Ok(line.len())
                }
                _ => Err(io::ErrorKind::StorageFull.into()),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_nobody_takes_are_lost_and_nobody_waits() {
        let queue = Arc::new(Queue::default());
        let ((gate, gated), (written, lines)) = (mpsc::channel(), mpsc::channel());
        let writing = Arc::clone(&queue);
        std::thread::spawn(move || writing.write_to(Gated(gated, written)));
        let line = vec![b'x'; 1024];
        for _ in 0..2 * MAX_WAITING_BYTES / line.len() {
            queue.push(&line);
        }
        let lost = queue.lock().lost;
        // One may be in the hands of the thread.
        assert!((1023..=1024).contains(&lost), "{lost}");
        // A failure is one more, and the next that is written ends the count.
        gate.send(false).unwrap();
        gate.send(true).unwrap();
        assert_eq!(lines.recv().unwrap(), line);
        gate.send(true).unwrap();
        assert_eq!(lines.recv().unwrap(), line);
        assert_eq!(queue.lock().lost, 0);
        // Whoever ends waits no longer than it may.
        queue.drain(Duration::from_millis(1));
    }
}
