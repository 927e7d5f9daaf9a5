//! A connection: what comes is handed in, what the broker has for it goes out.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use broker::{Input, Protocol};
use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Sleep, sleep};

use crate::link::Link;
use crate::owner::Owner;

/// Bytes read at once: what is behind them waits until others have had their turn.
const READ_BYTES: usize = 16 << 10;
/// How long a client may take nothing of what is written to it.
const WRITE_PATIENCE: Duration = Duration::from_secs(60);
/// How long a client may take to learn that the broker has ended its connection.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// How a connection ends.
enum End {
    /// The client closes its side, which wants nothing more, or the connection broke.
    There,
    /// The broker closes it.
    Here,
}

/// Both directions of a connection. It is one future by hand, since there are tens of thousands of
/// them, and each message of each client passes here.
struct Pipe<R, W> {
    owner: Rc<Owner>,
    link: Rc<Link>,
    reader: R,
    writer: W,
    /// Until when the client has to take something, while it takes nothing.
    patience: Option<Pin<Box<Sleep>>>,
}

/// Serves a connection until it ends.
pub(crate) async fn run(
    owner: &Rc<Owner>,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
    protocol: Protocol,
    certified: Option<Arc<str>>,
    peer: SocketAddr,
) {
    let link = owner.connect(protocol, certified, peer);
    serve(owner, link, reader, writer).await;
}

/// The same for one that the broker knows already.
pub(crate) async fn serve(
    owner: &Rc<Owner>,
    link: Rc<Link>,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
) {
    let mut pipe = Pipe { owner: owner.clone(), link, reader, writer, patience: None };
    let end = poll_fn(|context| pipe.poll(context)).await;
    let Pipe { owner, link, reader, writer, .. } = pipe;
    owner.lose(&link);
    // Apart, so that connections have no room for it before they end.
    Box::pin(last(&link, reader, writer, end)).await;
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Pipe<R, W> {
    /// Writes and reads what goes. What a reading leads to is written in a further turn: behind
    /// what it has led to for others, so that publications do not wait for acknowledgements.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        self.link.set_waker(context.waker());
        match self.poll_write(context) {
            Poll::Ready(Ok(())) if self.link.is_closing() => return Poll::Ready(End::Here),
            Poll::Ready(Err(error)) => {
                tracing::debug!(connection = self.link.id.0, %error, "a connection broke");
                return Poll::Ready(End::Here);
            }
            Poll::Ready(Ok(())) | Poll::Pending => {}
        }
        loop {
            match ready!(self.poll_read(context)) {
                Ok(bytes) if !bytes.is_empty() => {
                    let is_full = bytes.len() >= READ_BYTES;
                    self.owner.input(Input::Received { connection: self.link.id, bytes });
                    if is_full {
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                }
                Ok(_) | Err(_) => return Poll::Ready(End::There),
            }
        }
    }

    /// Reads into memory that all connections share, so that one over which nothing comes has none.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<BytesMut>> {
        let mut room = self.owner.room.borrow_mut();
        // The same memory again, if nobody has kept any of it.
        room.reserve(READ_BYTES);
        ready!(pin!(self.reader.read_buf(&mut *room)).poll(context))?;
        Poll::Ready(Ok(room.split()))
    }

    /// Writes until all has left, as far as that goes.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.link.is_empty() {
            match self.link.poll_write(Pin::new(&mut self.writer), context) {
                Poll::Ready(bytes) => {
                    let bytes = bytes?;
                    self.patience = None;
                    self.owner.input(Input::Sent { connection: self.link.id, bytes });
                }
                Poll::Pending => return self.poll_patience(context),
            }
        }
        match Pin::new(&mut self.writer).poll_flush(context) {
            Poll::Ready(flushed) => {
                self.patience = None;
                Poll::Ready(flushed)
            }
            Poll::Pending => self.poll_patience(context),
        }
    }

    /// The client takes nothing: how long already.
    fn poll_patience(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // sleep: a client that takes nothing for so long is not there any more.
        let patience = self.patience.get_or_insert_with(|| Box::pin(sleep(WRITE_PATIENCE)));
        ready!(patience.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing")))
    }
}

/// What the broker said last may still be there, such as why it ended the connection.
async fn last(
    link: &Link,
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    end: End,
) {
    let _ = tokio::time::timeout(WRITE_PATIENCE, flush(link, &mut writer)).await;
    if let End::Here = end {
        let _ = tokio::time::timeout(LAST_PATIENCE, discard(&mut reader)).await;
    }
}

/// Reads what a client sends that has not learned yet that its connection has ended: closed at
/// once, the system would answer that by a reset, which throws away what the client has not read.
async fn discard(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut piece = [0; 4096];
    while reader.read(&mut piece).await? > 0 {}
    Ok(())
}

async fn flush(link: &Link, writer: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    while !link.is_empty() {
        poll_fn(|context| link.poll_write(Pin::new(&mut *writer), context)).await?;
    }
    writer.flush().await?;
    writer.shutdown().await
}
