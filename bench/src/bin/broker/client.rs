//! A client of MQTT 3.1.1, as lean as it can be: packets are written by hand, read where they came.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// How long a broker may take for one answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// Bits of the first byte of a PUBLISH (MQTT 3.1.1 §3.3.1).
const PUBLISH: u8 = 0x30;
const CONNACK: u8 = 0x20;
const PUBACK: u8 = 0x40;
const SUBACK: u8 = 0x90;

/// What came.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Came<'a> {
    /// The payload of a publication.
    Publish(&'a [u8]),
    /// A publication of this side has arrived.
    Acknowledged,
    /// A subscription was granted, or not.
    Subscribed(bool),
    /// The connection was accepted, or not.
    Connected(bool),
}

/// A connection.
pub(crate) struct Client {
    stream: TcpStream,
    input: Vec<u8>,
    /// Where is read to; nothing, until something is.
    room: Vec<u8>,
    output: Vec<u8>,
    written: usize,
    /// The system takes no more for the time being.
    is_blocked: bool,
    /// Numbers of publications: the next one.
    next_id: u16,
}

impl Client {
    /// Connects, and waits until the broker has accepted. `clean`: no session is kept.
    pub(crate) fn connect(broker: SocketAddr, name: &str, clean: bool) -> Result<Self> {
        let mut client = Self::open(broker, name, clean)?;
        client.wait(|came| matches!(came, Came::Connected(true)))?;
        Ok(client)
    }

    /// Connects; the broker's answer is the first that comes.
    pub(crate) fn open(broker: SocketAddr, name: &str, clean: bool) -> Result<Self> {
        let stream = TcpStream::connect(broker).with_context(|| format!("connect to {broker}"))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut client = Self {
            stream,
            input: Vec::new(),
            room: Vec::new(),
            output: Vec::new(),
            written: 0,
            is_blocked: false,
            next_id: 0,
        };
        let mut body = b"\x00\x04MQTT\x04".to_vec();
        body.extend([if clean { 2 } else { 0 }, 0, 0]);
        text(&mut body, name.as_bytes());
        client.packet(0x10, &body);
        Ok(client)
    }

    /// The same connection, without the memory that reading takes.
    pub(crate) fn shrink(self) -> Self {
        Self { room: Vec::new(), input: Vec::new(), output: Vec::new(), ..self }
    }

    /// Subscribes, and waits until that is granted; what comes meanwhile is thrown away.
    pub(crate) fn subscribe(&mut self, filter: &str, qos: u8) -> Result<()> {
        self.ask(filter, qos);
        self.wait(|came| matches!(came, Came::Subscribed(true)))
    }

    /// Asks for a subscription.
    pub(crate) fn ask(&mut self, filter: &str, qos: u8) {
        let mut body = vec![0, 1];
        text(&mut body, filter.as_bytes());
        body.push(qos);
        self.packet(0x82, &body);
    }

    /// Queues a publication.
    pub(crate) fn publish(&mut self, topic: &str, payload: &[u8], qos: u8, retain: bool) {
        let len = 2 + topic.len() + payload.len() + if qos > 0 { 2 } else { 0 };
        self.output.push(PUBLISH | qos << 1 | u8::from(retain));
        length(&mut self.output, len);
        text(&mut self.output, topic.as_bytes());
        if qos > 0 {
            self.next_id = self.next_id.wrapping_add(1).max(1);
            self.output.extend(self.next_id.to_be_bytes());
        }
        self.output.extend_from_slice(payload);
    }

    /// Ends in an orderly way.
    pub(crate) fn leave(mut self) -> Result<()> {
        self.packet(0xe0, &[]);
        self.flush_all()
    }

    /// Writes what the system takes.
    pub(crate) fn flush(&mut self) -> Result<()> {
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => bail!("a broker has closed a connection"),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("a broker has ended a connection"),
            }
        }
        self.output.clear();
        self.written = 0;
        self.is_blocked = false;
        Ok(())
    }

    /// Writes all of it, however long the broker takes.
    pub(crate) fn flush_all(&mut self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            self.flush()?;
            if !self.is_blocked() {
                return Ok(());
            }
            self.block(PollFlags::POLLOUT, until)?;
        }
    }

    /// Whether something was left to write, the last time.
    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Reads once and hands on what came, publications of QoS 1 acknowledged.
    pub(crate) fn read(&mut self, mut take: impl FnMut(Came<'_>) -> Result<()>) -> Result<()> {
        self.room.resize(READ_BYTES, 0);
        let count = match self.stream.read(&mut self.room) {
            Ok(0) => bail!("a broker has closed a connection"),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error).context("a broker has ended a connection"),
        };
        let read = self.room.get(..count).unwrap_or_default();
        // Most reads begin and end with a packet: these are not copied.
        let mut input = std::mem::take(&mut self.input);
        let used = if input.is_empty() {
            let used = packets(read, &mut self.output, &mut take)?;
            input.extend_from_slice(&read[used..]);
            0
        } else {
            input.extend_from_slice(read);
            packets(&input, &mut self.output, &mut take)?
        };
        input.drain(..used);
        self.input = input;
        Ok(())
    }

    /// Until something has come that `is_it`.
    pub(crate) fn wait(&mut self, mut is_it: impl FnMut(Came<'_>) -> bool) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        let mut is_there = false;
        while !is_there {
            self.flush_all()?;
            self.wait_readable(until)?;
            self.read(|came| {
                if let Came::Connected(false) | Came::Subscribed(false) = came {
                    bail!("a broker refuses a client: {came:?}");
                }
                is_there |= is_it(came);
                Ok(())
            })?;
        }
        self.flush_all()
    }

    /// Until something has come, or the broker has taken too long.
    pub(crate) fn wait_readable(&self, until: Instant) -> Result<()> {
        self.block(PollFlags::POLLIN, until)
    }

    fn block(&self, flags: PollFlags, until: Instant) -> Result<()> {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        if poll(&mut [PollFd::new(self.as_fd(), flags)], timeout)? == 0 {
            bail!("a broker says nothing for {} s", PATIENCE.as_secs());
        }
        Ok(())
    }

    fn packet(&mut self, first: u8, body: &[u8]) {
        self.output.push(first);
        length(&mut self.output, body.len());
        self.output.extend_from_slice(body);
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Hands on the whole packets of `input`; how many bytes these are.
fn packets(
    input: &[u8],
    output: &mut Vec<u8>,
    take: &mut impl FnMut(Came<'_>) -> Result<()>,
) -> Result<usize> {
    let mut used = 0;
    while let Some((first, body, len)) = frame(&input[used..])? {
        used += len;
        let short = "a broker sends a short packet";
        match first & 0xf0 {
            PUBLISH => {
                let head = body.first_chunk::<2>().context(short)?;
                let at = 2 + usize::from(u16::from_be_bytes(*head));
                let mut payload = body.get(at..).context(short)?;
                if first & 0x06 > 0 {
                    let (number, rest) = payload.split_first_chunk::<2>().context(short)?;
                    output.extend([PUBACK, 2, number[0], number[1]]);
                    payload = rest;
                }
                take(Came::Publish(payload))?;
            }
            PUBACK => take(Came::Acknowledged)?,
            SUBACK => take(Came::Subscribed(body.get(2).is_some_and(|code| *code < 0x80)))?,
            CONNACK => take(Came::Connected(body.get(1) == Some(&0)))?,
            _ => bail!("a broker sends a packet of type {}", first >> 4),
        }
    }
    Ok(used)
}

/// The first packet of some bytes, if it is whole: its first byte, its body, and its length.
fn frame(input: &[u8]) -> Result<Option<(u8, &[u8], usize)>> {
    let mut len = 0_usize;
    for at in 1..5 {
        let Some(byte) = input.get(at) else { return Ok(None) };
        len |= usize::from(byte & 0x7f) << (7 * (at - 1));
        if byte & 0x80 == 0 {
            let (start, end) = (at + 1, at + 1 + len);
            return Ok(input.get(start..end).map(|body| (input[0], body, end)));
        }
    }
    bail!("a broker sends a length that is none")
}

fn text(out: &mut Vec<u8>, text: &[u8]) {
    // Names and topics are this program's own, and short.
    out.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend_from_slice(text);
}

fn length(out: &mut Vec<u8>, mut len: usize) {
    loop {
        let low = u8::try_from(len & 0x7f).unwrap_or_default();
        len >>= 7;
        out.push(if len > 0 { low | 0x80 } else { low });
        if len == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_taken_apart_and_acknowledged() {
        let mut bytes = vec![0x32];
        length(&mut bytes, 2 + 3 + 2 + 200);
        text(&mut bytes, b"a/b");
        bytes.extend([0, 7]);
        bytes.extend([b'x'; 200]);
        bytes.extend([0x40, 2, 0, 9, 0x30]);
        let (mut output, mut seen) = (Vec::new(), Vec::new());
        let used = packets(&bytes, &mut output, &mut |came| {
            match came {
                Came::Publish(payload) => seen.push(payload.len()),
                other => assert!(matches!(other, Came::Acknowledged)),
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(used, bytes.len() - 1);
        assert_eq!(output, [0x40, 2, 0, 7]);
        assert_eq!(seen, [200]);
    }
}
