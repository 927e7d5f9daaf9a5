//! A connection: what comes is handed in, what the broker has for it goes out.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use broker::{Input, Protocol};
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::owner::{Link, Owner};

/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;
/// Pieces written at once.
const MAX_PIECES: usize = 64;
/// How long a client may take nothing of what is written to it.
const WRITE_PATIENCE: Duration = Duration::from_secs(60);
/// How long a client may take to learn that the broker has ended its connection.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// Serves a connection until it ends.
pub(crate) async fn run(
    owner: &Rc<Owner>,
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    protocol: Protocol,
    certified: Option<Arc<str>>,
    peer: SocketAddr,
) {
    let link = owner.connect(protocol, certified, peer);
    let reading = async {
        let mut buffer = BytesMut::new();
        loop {
            buffer.reserve(READ_BYTES);
            match reader.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {
                    let bytes = buffer.split();
                    owner.input(Input::Received { connection: link.id, bytes });
                }
            }
        }
    };
    let writing = async {
        let result = write(owner, &link, &mut writer).await;
        if let Err(error) = result {
            tracing::debug!(%peer, %error, "a connection broke");
        }
    };
    // Whichever ends first: a client that closes its side wants nothing more.
    let was_closed_here = tokio::select! {
        () = reading => false,
        () = writing => true,
    };
    owner.lose(&link);
    // What the broker said last may still be there, such as why it ended the connection.
    let _ = tokio::time::timeout(WRITE_PATIENCE, flush(&link, &mut writer)).await;
    if was_closed_here {
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

/// Writes what there is until the broker closes the connection.
async fn write(
    owner: &Rc<Owner>,
    link: &Link,
    writer: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    loop {
        let pieces = link.take(MAX_PIECES);
        if pieces.is_empty() {
            if link.is_closing() {
                return Ok(());
            }
            link.changed().await;
            continue;
        }
        let bytes = pieces.iter().map(Bytes::len).sum();
        let late = || io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing");
        tokio::time::timeout(WRITE_PATIENCE, write_all(writer, pieces))
            .await
            .unwrap_or_else(|_| Err(late()))?;
        owner.input(Input::Sent { connection: link.id, bytes });
    }
}

async fn flush(link: &Link, writer: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    loop {
        let pieces = link.take(MAX_PIECES);
        if pieces.is_empty() {
            return writer.shutdown().await;
        }
        write_all(writer, pieces).await?;
    }
}

async fn write_all(
    writer: &mut (impl AsyncWrite + Unpin),
    mut pieces: Vec<Bytes>,
) -> io::Result<()> {
    if let [piece] = &*pieces {
        writer.write_all(piece).await?;
        return writer.flush().await;
    }
    let mut done = 0;
    while done < pieces.len() {
        let slices: Vec<IoSlice<'_>> =
            pieces.iter().skip(done).map(|piece| IoSlice::new(piece)).collect();
        let mut written = writer.write_vectored(&slices).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        while let Some(piece) = pieces.get_mut(done) {
            let taken = written.min(piece.len());
            piece.advance(taken);
            written -= taken;
            if !piece.is_empty() {
                break;
            }
            done += 1;
        }
    }
    writer.flush().await
}
