//! The parameters of IST-118's Table III. `docs/parameters.md` defines each.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::Error;

/// Every timeout. Shorter ones would only measure the machine.
const TIMEOUTS: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(24 * 60 * 60);
/// Every buffer, in bytes: the least of IST-118's in-depth sweep, and the most that a connection
/// may hold at once.
const BUFFERS_BYTES: RangeInclusive<usize> = 256..=16 * 1024 * 1024;

/// When answers go under the gzip content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Never; `Accept-Encoding` is not looked at.
    Off,
    /// When the client likes it at least as well as the plain content (RFC 9110 §12.5.3).
    ByRequest,
    /// Always; `Accept-Encoding` is not looked at.
    Forced,
}

/// How the end of an answer's content is told (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunking {
    /// By `Content-Length`.
    Off,
    /// By the last chunk; each chunk has the content of one send buffer.
    On,
    /// By the end of the connection.
    Close,
}

/// How long a connection may do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Between requests: from the hand-over of an answer's last byte to the kernel, or from the
    /// connection's beginning, to the first byte of a request.
    pub keep_alive: Duration,
    /// Without a byte read or written.
    pub idle: Duration,
    /// Without a byte of a request that has begun and is not whole.
    pub read: Duration,
    /// Without the kernel taking a byte of an answer.
    pub write: Duration,
    /// Until the connection looks at `idle`, `read` and `write` although nothing happened.
    pub poll: Duration,
}

/// Settings of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Timeouts, each from 1 ms to 24 h.
    pub timeouts: Timeouts,
    /// Content coding of answers.
    pub compression: Compression,
    /// Framing of answers.
    pub chunking: Chunking,
    /// Content of an answer that goes out with one write, in bytes: 256 to 16777216.
    pub send_buffer_bytes: usize,
    /// Largest head of a request, in bytes: 256 to 16777216. A larger one is answered with 431.
    pub header_buffer_bytes: usize,
    /// Most that one read takes from the socket, in bytes: 256 to 16777216.
    pub tcp_buffer_bytes: usize,
    /// `TCP_NODELAY`: small segments are not held back (Nagle's algorithm is off).
    pub nodelay: bool,
}

impl Default for Settings {
    /// Those of IST-118, but that answers are compressed when a client asks for it.
    fn default() -> Self {
        let usual = Duration::from_secs(120);
        Self {
            timeouts: Timeouts {
                keep_alive: Duration::from_secs(180),
                idle: usual,
                read: usual,
                write: usual,
                poll: usual,
            },
            compression: Compression::ByRequest,
            chunking: Chunking::Off,
            send_buffer_bytes: 32 * 1024,
            header_buffer_bytes: 32 * 1024,
            tcp_buffer_bytes: 32 * 1024,
            nodelay: true,
        }
    }
}

impl Settings {
    /// Whether each value is in its range.
    ///
    /// # Errors
    /// [`Error::Caller`] naming the first that is not, its value and its range.
    pub fn check(&self) -> Result<(), Error> {
        let of = &self.timeouts;
        for (name, timeout) in [
            ("keep-alive", of.keep_alive),
            ("idle", of.idle),
            ("read", of.read),
            ("write", of.write),
            ("poll", of.poll),
        ] {
            if !TIMEOUTS.contains(&timeout) {
                let line = format!("{name} timeout {timeout:?}; choose one from 1 ms to 24 h");
                return Err(Error::Caller(line));
            }
        }
        for (name, bytes) in [
            ("send", self.send_buffer_bytes),
            ("header", self.header_buffer_bytes),
            ("TCP", self.tcp_buffer_bytes),
        ] {
            if !BUFFERS_BYTES.contains(&bytes) {
                let line = format!("{name} buffer of {bytes} B; choose one from 256 B to 16 MiB");
                return Err(Error::Caller(line));
            }
        }
        Ok(())
    }
}
