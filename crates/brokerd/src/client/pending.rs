//! What a publisher has handed on and does not know the end of.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::line::Line;
use crate::error::Error;
use crate::moving::on_the_way;

/// Messages that a publisher has open at once; further ones wait with who makes them.
const MAX_OPEN: usize = 1000;
/// Their bytes, beyond which no further message is taken.
const MAX_OPEN_BYTES: usize = 16 << 20;
/// How long a broker may say nothing of any of them while nothing leaves, besides the time that
/// what has left may be on the way.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 3 } else { 30 });

/// Messages without their end, by their keys.
#[derive(Debug)]
pub(super) struct Pending {
    // bound: MAX_OPEN.
    sizes: BTreeMap<u64, usize>,
    bytes: usize,
    /// Those that nobody acknowledges and that leave: how many bytes of the connection are written
    /// when they have left.
    leaving: VecDeque<(u64, u64)>,
    /// When the broker last said something of one of them, or there came to be one.
    heard_at: Duration,
    /// For how long a broker is tried again that says nothing.
    retry: Duration,
}

impl Pending {
    pub(super) fn new(retry: Duration) -> Self {
        Self {
            sizes: BTreeMap::new(),
            bytes: 0,
            leaving: VecDeque::new(),
            heard_at: Duration::ZERO,
            retry,
        }
    }

    /// Whether one more is taken.
    pub(super) fn has_room(&self) -> bool {
        self.sizes.len() < MAX_OPEN && self.bytes < MAX_OPEN_BYTES
    }

    /// Whether all have their end.
    pub(super) fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// There is one more, of so many bytes.
    pub(super) fn begin(&mut self, now: Duration, key: u64, bytes: usize) {
        if self.sizes.is_empty() {
            self.heard_at = now;
        }
        self.sizes.insert(key, bytes);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// One has its end; whether it had none before.
    pub(super) fn end(&mut self, now: Duration, key: u64) -> bool {
        let size = self.sizes.remove(&key);
        self.bytes = self.bytes.saturating_sub(size.unwrap_or(0));
        self.heard(now);
        size.is_some()
    }

    /// One has its end, as nobody acknowledges it, when so many bytes of the connection have left.
    pub(super) fn leaves_with(&mut self, bytes: u64, key: u64) {
        self.leaving.push_back((bytes, key));
    }

    /// One that has its end with that.
    pub(super) fn left(&mut self, line: &Line<'_>) -> Option<u64> {
        while let Some((_, key)) = self.leaving.pop_front_if(|(bytes, _)| *bytes <= line.written())
        {
            // It may have failed meanwhile.
            if self.end(line.now(), key) {
                return Some(key);
            }
        }
        None
    }

    /// The connection is lost, or what goes over it is refused: those that have not left.
    pub(super) fn stayed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.leaving).into_iter().map(|(_, key)| key).collect()
    }

    /// The broker said something that brings them on.
    pub(super) fn heard(&mut self, now: Duration) {
        self.heard_at = now;
    }

    /// When it has been silent for too long; `None` while nothing is awaited of it, and nothing is
    /// to leave.
    pub(super) fn late_at(&self, line: &Line<'_>) -> Option<Duration> {
        if self.sizes.is_empty() && line.leaves.is_empty() {
            return None;
        }
        Some(self.heard_at.max(line.moved_at()) + ANSWER_TIMEOUT + on_the_way(self.bytes))
    }

    /// It has been: whether the connection is to be made again.
    ///
    /// # Errors
    /// Where it has been for so long that it is not tried again.
    pub(super) fn late(&self, line: &Line<'_>, address: &str) -> Result<(), Error> {
        let waited = line.now().saturating_sub(self.heard_at);
        if self.sizes.is_empty() || waited < self.retry {
            return Ok(());
        }
        let (count, bytes, seconds) = (self.sizes.len(), line.leaves.len(), waited.as_secs());
        let text = format!(
            "{address}: the broker has said nothing of {count} messages for {seconds} s, and \
             {bytes} bytes have not left"
        );
        Err(Error::System(text))
    }
}

#[cfg(test)]
mod tests {
    use super::super::target::{Identity, Target};
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_broker_is_late_where_something_is_awaited_of_it() {
        let target = Target::parse("mqtt://a.example", Identity::default()).unwrap();
        let mut line = Line::new(&target);
        let mut pending = Pending::new(seconds(60));
        assert_eq!(pending.late_at(&line), None);
        pending.begin(seconds(100), 1, 10);
        pending.begin(seconds(110), 2, 100 << 20);
        assert!(!pending.has_room(), "so many bytes are enough");
        // What may still be in the buffers of the system has its time.
        assert_eq!(pending.late_at(&line), Some(ANSWER_TIMEOUT + seconds(100 + 1024)));
        assert!(pending.end(seconds(120), 2) && !pending.end(seconds(120), 2));
        assert_eq!(pending.late_at(&line), Some(ANSWER_TIMEOUT + seconds(120)));
        assert!(pending.has_room());
        line.write(b"12345678");
        pending.leaves_with(line.appended(), 1);
        assert_eq!(
            (pending.left(&line), pending.stayed(), pending.stayed()),
            (None, vec![1], vec![])
        );
        pending.leaves_with(line.appended(), 1);
        line.leaves.clear();
        assert_eq!((pending.left(&line), pending.left(&line)), (Some(1), None));
        pending.heard(seconds(130));
        assert_eq!(pending.late_at(&line), None);
        line.leaves.extend_from_slice(b"x");
        assert_eq!(pending.late_at(&line), Some(ANSWER_TIMEOUT + seconds(130)));
        assert!(
            pending.late(&line, "a").is_ok(),
            "nothing is awaited: there is another connection"
        );
    }
}
