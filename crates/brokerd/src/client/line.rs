//! The stream below a protocol: bytes come, and bytes are written while others come.

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

/// What happened to a connection.
#[derive(Debug)]
pub(super) enum Happening {
    /// Bytes came.
    Bytes(Bytes),
    /// The time of [`Line::wake_at`] is there.
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
    /// Something was written that the layers in between may still hold.
    must_flush: bool,
    /// When it is to be told that this time is there.
    pub(super) wake_at: Option<Duration>,
}

impl<'a> Line<'a> {
    pub(super) fn new(target: &'a Target) -> Self {
        Self {
            target,
            stream: None,
            began: Instant::now(),
            came: BytesMut::new(),
            leaves: BytesMut::new(),
            must_flush: false,
            wake_at: None,
        }
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
        Ok(())
    }

    /// The connection is of no use any more.
    pub(super) fn drop(&mut self) {
        self.stream = None;
        self.came.clear();
        self.leaves.clear();
        self.must_flush = false;
        self.wake_at = None;
    }

    /// Writes what is to be written, until something happens. May be dropped while it waits;
    /// without a connection nothing happens.
    pub(super) async fn happening(&mut self) -> Happening {
        let Self { stream, came, leaves, must_flush, wake_at, began, .. } = self;
        let Some(stream) = stream else { return std::future::pending().await };
        let (mut reader, mut writer) = tokio::io::split(stream);
        loop {
            let has_wake = wake_at.is_some();
            let wake = *began + wake_at.unwrap_or_default();
            let has_bytes = !leaves.is_empty();
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
                    }
                    _ => {
                        leaves.clear();
                        return Happening::Lost;
                    }
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
