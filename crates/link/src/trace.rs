//! Delivery traces: when a recorded link could send.

use crate::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that one line of a trace can send.
pub const OPPORTUNITY_BYTES: usize = 1500;

/// Most lines of a trace: over eight minutes at 100 Mbit/s.
pub const MAX_TRACE_OPPORTUNITIES: usize = 4 * 1024 * 1024;

/// Longest text of a trace, in bytes. Whoever reads the file reads no more than this and one byte.
pub const MAX_TRACE_BYTES: usize = 48 * 1024 * 1024;

/// A recording of when a link could send, in the format of mahimahi's `mm-link`: each line is a
/// time in milliseconds since the start, not before the line above, at which [`OPPORTUNITY_BYTES`]
/// can leave. Several small packets share an opportunity, a large one takes several; what is left
/// of one when no packet waits is lost. The last line's time is the trace's length: at its end it
/// begins again. It takes the place of a rate.
///
/// Cloning shares the recording.
#[derive(Clone, PartialEq, Eq)]
pub struct Trace {
    name: Arc<str>,
    times_ms: Arc<[u32]>,
}

impl Trace {
    /// Reads a trace's text; `name` (a file's path, say) stands for it in settings and messages.
    ///
    /// # Errors
    /// [`Error::Trace`] naming the line: not a number of milliseconds up to 2^32 - 1, earlier than
    /// the line before; or no line at all, a length of zero, more than
    /// [`MAX_TRACE_OPPORTUNITIES`] lines or [`MAX_TRACE_BYTES`] bytes.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let whole = |what: String| Error::Trace { name: name.to_owned(), line: None, what };
        if text.len() > MAX_TRACE_BYTES {
            return Err(whole(format!(
                "has {} bytes, at most {MAX_TRACE_BYTES} are read: shorten the recording",
                text.len()
            )));
        }
        let times_ms = parse_lines(text).map_err(|(line, what)| Error::Trace {
            name: name.to_owned(),
            line: Some(line),
            what,
        })?;
        if times_ms.last().is_none_or(|last| *last == 0) {
            return Err(whole(
                "lasts 0 ms: it needs a line with a time in milliseconds above 0".to_owned(),
            ));
        }
        Ok(Self { name: name.into(), times_ms: times_ms.into() })
    }

    /// The name given to [`Trace::parse`].
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long it lasts before it begins again.
    #[must_use]
    pub fn length(&self) -> Duration {
        Duration::from_millis(u64::from(self.length_ms()))
    }

    /// Mean rate in bit/s, rounded down.
    #[must_use]
    pub fn mean_rate_bps(&self) -> u64 {
        let bits = (self.times_ms.len() as u64) * (OPPORTUNITY_BYTES as u64) * 8;
        bits * 1_000 / u64::from(self.length_ms()).max(1)
    }

    fn length_ms(&self) -> u32 {
        self.times_ms.last().copied().unwrap_or(1)
    }

    /// When opportunity `index` is, counted on through the repetitions.
    fn time(&self, index: u64) -> Duration {
        let lines = self.times_ms.len() as u64;
        let line = usize::try_from(index % lines).unwrap_or(0);
        let cycles_ms = (index / lines).saturating_mul(u64::from(self.length_ms()));
        Duration::from_millis(cycles_ms.saturating_add(u64::from(self.times_ms[line])))
    }

    /// The first opportunity at or after `start`.
    fn first_from(&self, start: Duration) -> u64 {
        let length = self.length().as_nanos();
        // A cycle's last line falls on its end: an end belongs to the cycle that it closes.
        let cycle = start.as_nanos().saturating_sub(1) / length;
        let within = start.as_nanos() - cycle * length;
        let line = self.times_ms.partition_point(|ms| u128::from(*ms) * 1_000_000 < within);
        let cycle = u64::try_from(cycle).unwrap_or(u64::MAX);
        cycle.saturating_mul(self.times_ms.len() as u64).saturating_add(line as u64)
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("name", &self.name)
            .field("opportunities", &self.times_ms.len())
            .field("length", &self.length())
            .finish()
    }
}

/// Line and complaint on failure.
fn parse_lines(text: &str) -> Result<Vec<u32>, (usize, String)> {
    let mut times_ms: Vec<u32> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let at = index + 1;
        if index == MAX_TRACE_OPPORTUNITIES {
            let what = format!("only {MAX_TRACE_OPPORTUNITIES} lines are read: shorten it");
            return Err((at, what));
        }
        let time_ms = line.trim().parse().map_err(|_| {
            let shown = crate::error::quoted(line);
            (at, format!("{shown} is no time: one whole number of milliseconds up to {}", u32::MAX))
        })?;
        if let Some(before) = times_ms.last().filter(|before| **before > time_ms) {
            return Err((at, format!("{time_ms} ms comes after {before} ms: sort the lines")));
        }
        times_ms.push(time_ms);
    }
    Ok(times_ms)
}

/// A place in a trace.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cursor {
    index: u64,
    /// Bytes of opportunity `index` already used.
    used_bytes: usize,
}

impl Cursor {
    /// Sends a packet from `start` on; answers when its last byte leaves.
    pub(crate) fn send(&mut self, trace: &Trace, start: Duration, len_bytes: usize) -> Duration {
        if trace.time(self.index) < start {
            *self = Self { index: trace.first_from(start), used_bytes: 0 };
        }
        // The last byte leaves in the opportunity that byte number `last` falls into.
        let last = self.used_bytes.saturating_add(len_bytes).saturating_sub(1);
        let finish = trace.time(self.index.saturating_add((last / OPPORTUNITY_BYTES) as u64));
        let used = self.used_bytes.saturating_add(len_bytes);
        self.index = self.index.saturating_add((used / OPPORTUNITY_BYTES) as u64);
        self.used_bytes = used % OPPORTUNITY_BYTES;
        finish
    }
}

#[cfg(test)]
mod tests;
