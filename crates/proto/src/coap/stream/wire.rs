//! Messages as bytes of the transport.

use bytes::Bytes;

use super::settings::Framing;
use crate::Error;
use crate::coap::{Code, Content, Token, Writer, framed};

/// Options and payload of a message, into `room`; the bytes that they take or would take.
fn write(room: &mut [u8], content: &Content) -> Result<usize, Error> {
    let mut writer = Writer::body(room);
    content.options().try_for_each(|(number, value)| writer.option(number, value))?;
    writer.payload(&content.payload)?;
    Ok(writer.len())
}

/// The message; refuses one that is over `max_bytes` with its head.
pub(super) fn encode(
    framing: Framing,
    token: Token,
    content: &Content,
    max_bytes: u64,
) -> Result<Bytes, Error> {
    let len = write(&mut [], content)?;
    let limit = Error::Limit { what: "message in bytes", value: len as u64, limit: max_bytes };
    let body_bytes = u32::try_from(len).map_err(|_| limit.clone())?;
    let head = match framing {
        Framing::Stream => framed::head(content.code, &token, body_bytes),
        Framing::WebSocket => framed::head_of_websocket(content.code, &token),
    };
    // RFC 8323 §5.3.1: the limit is of the whole message.
    if (head.len() + len) as u64 > max_bytes {
        return Err(limit);
    }
    let mut bytes = vec![0; head.len() + len];
    let (before, behind) = bytes.split_at_mut(head.len());
    before.copy_from_slice(&head);
    write(behind, content)?;
    Ok(bytes.into())
}

/// A signal, which fits whatever a peer may announce.
pub(super) fn signal(framing: Framing, token: Token, content: &Content) -> Bytes {
    encode(framing, token, content, u64::MAX).unwrap_or_default()
}

/// An empty answer with this code: what is left to say where nothing else fits.
pub(super) fn bare(framing: Framing, token: Token, code: Code) -> Bytes {
    signal(framing, token, &Content::new(code))
}
