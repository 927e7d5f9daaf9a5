//! The stream below a protocol: bytes come, and bytes are written while others come. Above it is
//! the protocol's machine, which says what is written.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use proxy::dial;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

use super::Target;
use crate::error::Error;
use crate::websocket;

/// How long the last bytes may wait before some of them leave.
const FAREWELL: Duration = Duration::from_secs(10);
/// Room that is made to read to, and that there is at least.
const READ_BYTES: usize = 64 << 10;
const MIN_READ_BYTES: usize = 4 << 10;

/// A client's machine, as far as its protocol does not matter.
pub(super) trait Machine {
    /// What it tells the caller.
    type Said;

    /// The next thing to do; `None` when there is nothing until the next input.
    fn poll(&mut self) -> Option<Step<Self::Said>>;

    /// Bytes came.
    fn received(&mut self, now: Duration, bytes: Bytes);

    /// The time that it has named is there.
    fn woken(&mut self, now: Duration);
}

/// What a machine wants.
pub(super) enum Step<T> {
    /// These bytes are to be written.
    Transmit(Bytes),
    /// It is to be woken then, and not as it said before.
    WakeAt(Duration),
    /// The caller is to hear this.
    Said(T),
}

/// What comes next of a connection with its machine.
pub(super) enum Next<T> {
    /// The machine says something.
    Said(T),
    /// What was to be written has left: there is room for more.
    Written,
    /// The connection is broken, or over.
    Lost,
}

/// What happened to a connection.
#[derive(Debug)]
enum Happening {
    /// Bytes came.
    Bytes(Bytes),
    /// The time of `wake_at` is there.
    Wake,
    /// What was to be written has left: there is room again.
    Written,
    /// It is broken, or over.
    Lost,
}

/// A connection where there is one, with what is to be written.
pub(super) struct Line<'a> {
    target: &'a Target,
    stream: Option<dial::Stream>,
    began: Instant,
    came: BytesMut,
    /// What is to be written; whoever fills it bounds it.
    pub(super) leaves: BytesMut,
    /// Bytes of this connection that were to be written so far.
    appended: u64,
    /// Something was written that the layers in between may still hold.
    must_flush: bool,
    /// When it is to be told that this time is there.
    wake_at: Option<Duration>,
    /// When the connection was made, bytes last left, or there came to be some.
    moved_at: Duration,
}

impl<'a> Line<'a> {
    pub(super) fn new(target: &'a Target) -> Self {
        Self {
            target,
            stream: None,
            began: Instant::now(),
            came: BytesMut::new(),
            leaves: BytesMut::new(),
            appended: 0,
            must_flush: false,
            wake_at: None,
            moved_at: Duration::ZERO,
        }
    }

    /// These bytes are to be written.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.leaves.is_empty() {
            self.moved_at = self.now();
        }
        self.appended += bytes.len() as u64;
        self.leaves.extend_from_slice(bytes);
    }

    /// Bytes of this connection that were to be written so far.
    pub(super) fn appended(&self) -> u64 {
        self.appended
    }

    /// Those of them that were.
    pub(super) fn written(&self) -> u64 {
        self.appended - self.leaves.len() as u64
    }

    /// When the connection was made, bytes last left, or there came to be some.
    pub(super) fn moved_at(&self) -> Duration {
        self.moved_at
    }

    /// Sleeps until a time of [`Line::now`].
    pub(super) fn sleep_until(&self, at: Duration) -> tokio::time::Sleep {
        tokio::time::sleep_until(self.began + at)
    }

    /// The time since it was made.
    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Connects, once.
    ///
    /// # Errors
    /// Where the broker is not reached.
    pub(super) async fn connect(&mut self) -> Result<(), Error> {
        self.drop();
        let Target { host, address, layers, .. } = self.target;
        let stream = dial::open(address, host, address, layers)
            .await
            .map_err(|error| Error::System(format!("{address}: {error}")))?;
        self.stream = Some(match layers.websocket {
            None => stream,
            Some(_) => Box::new(websocket::of_client(stream)),
        });
        self.moved_at = self.now();
        Ok(())
    }

    /// What comes next of the connection and the machine above it. May be dropped while it waits.
    pub(super) async fn next<M: Machine>(&mut self, machine: &mut M) -> Next<M::Said> {
        loop {
            while let Some(step) = machine.poll() {
                match step {
                    Step::Transmit(bytes) => self.write(&bytes),
                    Step::WakeAt(at) => self.wake_at = Some(at),
                    Step::Said(said) => return Next::Said(said),
                }
            }
            match self.happening().await {
                Happening::Bytes(bytes) => machine.received(self.now(), bytes),
                Happening::Wake => machine.woken(self.now()),
                Happening::Written => return Next::Written,
                Happening::Lost => return Next::Lost,
            }
        }
    }

    /// The connection is of no use any more.
    pub(super) fn drop(&mut self) {
        self.stream = None;
        self.came.clear();
        self.leaves.clear();
        self.appended = 0;
        self.must_flush = false;
        self.wake_at = None;
    }

    /// Writes what is to be written, until something happens. May be dropped while it waits;
    /// without a connection nothing happens.
    async fn happening(&mut self) -> Happening {
        let Self { stream, came, leaves, must_flush, wake_at, began, moved_at, .. } = self;
        let Some(stream) = stream else { return std::future::pending().await };
        let (mut reader, mut writer) = tokio::io::split(stream);
        loop {
            let has_wake = wake_at.is_some();
            let wake = *began + wake_at.unwrap_or_default();
            let has_bytes = !leaves.is_empty();
            // What was handed on took its room with it.
            if came.capacity() - came.len() < MIN_READ_BYTES {
                came.reserve(READ_BYTES);
            }
            // Each may be dropped before it is done, and is begun anew.
            let push = async {
                match has_bytes {
                    true => writer.write_buf(leaves).await,
                    false => writer.flush().await.map(|()| 0),
                }
            };
            tokio::select! {
                pushed = push, if has_bytes || *must_flush => match pushed {
                    Ok(written) if has_bytes == (written > 0) => {
                        *must_flush = has_bytes;
                        if !has_bytes {
                            return Happening::Written;
                        }
                        *moved_at = began.elapsed();
                    }
                    // What is left stays, so that whoever ends hears of it.
                    _ => return Happening::Lost,
                },
                read = reader.read_buf(came) => {
                    return match read {
                        Ok(0) | Err(_) => Happening::Lost,
                        Ok(_) => Happening::Bytes(came.split().freeze()),
                    };
                }
                () = tokio::time::sleep_until(wake), if has_wake => {
                    *wake_at = None;
                    return Happening::Wake;
                }
            }
        }
    }

    /// Writes what is left and ends the connection.
    ///
    /// # Errors
    /// Where bytes could not be written.
    pub(super) async fn finish(&mut self) -> Result<(), Error> {
        let Some(mut stream) = self.stream.take() else { return Ok(()) };
        while !self.leaves.is_empty() {
            let written = tokio::time::timeout(FAREWELL, stream.write_buf(&mut self.leaves)).await;
            let error = match written {
                Ok(Ok(1..)) => continue,
                Ok(Ok(0)) => "the connection is closed".to_owned(),
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("nothing leaves for {} s", FAREWELL.as_secs()),
            };
            let (address, bytes) = (&self.target.address, self.leaves.len());
            let text = format!("{address}: {bytes} bytes have not left: {error}");
            return Err(Error::System(text));
        }
        // Whether the broker still hears of the end changes nothing any more.
        let _ = tokio::time::timeout(FAREWELL, stream.shutdown()).await;
        Ok(())
    }
}
