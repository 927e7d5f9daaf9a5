//! HTTP/1 on sockets: what stands between a connection and the library that speaks HTTP.
//!
//! Each head passes [`proto::http1`] on its way in, so that the framing is decided once, what has
//! to be repaired is repaired, and what is refused is refused with a reason. On its way out it gets
//! back what the library's types do not hold: the target as it was sent, the case of field names,
//! the reason phrase, interim responses.

mod line;
mod shared;
mod talk;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use proto::http1::{Body, Fault, Field, Scan};
use tokio::io::{AsyncRead, ReadBuf};

pub(crate) use line::{Line, LineStream};
pub(crate) use shared::Shared;
pub(crate) use talk::{Asked, OnInterim, Talk, TalkStream};

/// Adds the fields that the library was not shown, behind those that it was.
///
/// # Errors
/// A field that its types cannot hold.
pub(crate) fn add_surplus(surplus: &[&Field], headers: &mut HeaderMap) -> Result<(), Fault> {
    for field in surplus {
        let name = HeaderName::from_bytes(&field.name);
        let value = HeaderValue::from_bytes(&field.value);
        let (Ok(name), Ok(value)) = (name, value) else {
            let reason = format!("'{}' is no field", field.name.escape_ascii());
            return Err(Fault { status: 400, reason });
        };
        headers.append(name, value);
    }
    Ok(())
}

/// Reads a piece of a body into the library's buffer as it comes; what is behind the body's end
/// goes to `rest`. `None`: the other side has ended.
fn poll_body<S: AsyncRead + Unpin>(
    socket: &mut S,
    body: &mut Body,
    rest: &mut BytesMut,
    cx: &mut Context<'_>,
    buf: &mut ReadBuf<'_>,
) -> Poll<io::Result<Option<Result<Scan, Fault>>>> {
    let before = buf.filled().len();
    ready!(Pin::new(socket).poll_read(cx, buf))?;
    let came = &buf.filled()[before..];
    if came.is_empty() {
        return Poll::Ready(Ok(None));
    }
    let scan = body.scan(came);
    let used = scan.as_ref().map_or(0, |scan| scan.used);
    rest.extend_from_slice(&came[used..]);
    buf.set_filled(before + used);
    Poll::Ready(Ok(Some(scan)))
}
