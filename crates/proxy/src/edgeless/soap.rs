//! A profile in the header of a SOAP message: seen in passing, for the message goes on untouched.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use codec::Limits;
use codec::xml::{Event, Reader};
use http::header::{self, HeaderMap};
use http_body::{Body, Frame, SizeHint};
use proto::profile::soap::{NAME, NAMESPACE, Version, decode_content};
use proto::profile::{MAX_TEXT_BYTES, Packet};

/// Bytes of a message in which its header is looked for.
const MAX_HEARD_BYTES: usize = 16 * 1024;

/// What has passed of a body so far, from its beginning.
#[derive(Clone, Default)]
pub(crate) struct Heard {
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Heard {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The profile in what has passed, if there is one.
    pub(crate) fn profile(&self) -> Option<Result<Packet, proto::Error>> {
        let bytes = std::mem::take(&mut *self.lock());
        // Most messages have none, which is seen at once.
        let mut windows = bytes.windows(NAMESPACE.len());
        windows.any(|window| window == NAMESPACE.as_bytes()).then(|| find(&bytes)).flatten()
    }
}

/// Whether a request's content can be a SOAP message: XML by its media type (RFC 7303), which
/// `application/soap+xml` is too.
pub(crate) fn may_be_soap(headers: &HeaderMap) -> bool {
    let media = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    media.is_some_and(|media| {
        let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        matches!(&*media, "text/xml" | "application/xml") || media.ends_with("+xml")
    }) && !headers.contains_key(header::CONTENT_ENCODING)
}

/// The content of the block, in a document that may be cut off behind it.
fn find(bytes: &[u8]) -> Option<Result<Packet, proto::Error>> {
    let whole = bytes.utf8_chunks().next()?.valid();
    let mut reader = Reader::of(whole, &Limits::default());
    let (mut depth, mut content) = (0, None::<String>);
    loop {
        match reader.next().ok()? {
            Event::Start(start) => {
                let name = reader.names().name(start.name);
                let of_soap = Version::ALL.iter().any(|version| version.namespace() == name.uri);
                match (depth, name.local) {
                    (0, "Envelope") | (1, "Header") if of_soap => {}
                    (0 | 1, _) => return None,
                    (2, NAME) if name.uri == NAMESPACE => content = Some(String::new()),
                    // A block has no elements inside.
                    _ if content.is_some() => return None,
                    _ => {}
                }
                depth += 1;
            }
            Event::Text(text) => {
                if let Some(content) = content.as_mut().filter(|one| one.len() <= MAX_TEXT_BYTES) {
                    content.push_str(&text);
                }
            }
            Event::End { .. } => {
                depth -= 1;
                match content {
                    Some(content) => return Some(decode_content(&content)),
                    None if depth < 2 => return None,
                    None => {}
                }
            }
            Event::Eof | Event::EntityRef(_) => return None,
            _ => {}
        }
    }
}

/// A body whose beginning is kept as it passes.
pub(crate) struct Overheard<B> {
    inner: B,
    heard: Heard,
}

impl<B> Overheard<B> {
    pub(crate) fn new(inner: B, heard: Heard) -> Self {
        Self { inner, heard }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Overheard<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            let mut heard = self.heard.lock();
            let room = MAX_HEARD_BYTES.saturating_sub(heard.len());
            heard.extend_from_slice(data.get(..room).unwrap_or(data));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use proto::profile::Profile;
    use proto::profile::soap::encode_block;

    use super::*;

    fn in_passing(message: &str) -> Option<Result<Packet, proto::Error>> {
        let heard = Heard::default();
        heard.lock().extend_from_slice(message.as_bytes());
        heard.profile()
    }

    #[test]
    fn a_block_is_found_in_the_header_and_nowhere_else() {
        let profile = Profile { hash: *b"01234567", ..Profile::default() };
        for version in Version::ALL {
            let block = encode_block(&profile, version);
            let soap = version.namespace();
            let envelope = |header: &str, body: &str| {
                format!(
                    "<?xml version='1.0'?><!-- a --><e:Envelope xmlns:e='{soap}'>\
                     <e:Header><o:other xmlns:o='urn:o'><o:x>y</o:x></o:other>{header}</e:Header>\
                     <e:Body>{body}</e:Body></e:Envelope>"
                )
            };
            let found = Some(Ok(Packet::Profile(profile.clone())));
            assert_eq!(in_passing(&envelope(&block, "")), found);
            // Cut off behind the block, within a character at that.
            let message = envelope(&block, "é");
            let cut = message.find('é').unwrap() + 1;
            let heard = Heard::default();
            heard.lock().extend_from_slice(&message.as_bytes()[..cut]);
            assert_eq!(heard.profile(), found);
            for elsewhere in [
                envelope("", &block),
                envelope(&format!("<o:in xmlns:o='urn:o'>{block}</o:in>"), ""),
                block.clone(),
                format!("<Envelope><Header>{block}</Header></Envelope>"),
                envelope(&block[..block.len() - 4], ""),
                envelope(&block.replace("</p:", "<p:x/></p:"), ""),
                envelope(&block.replace("</p:", "&e;</p:"), ""),
            ] {
                assert_eq!(in_passing(&elsewhere), None, "{elsewhere}");
            }
            let absurd = envelope(&block.replace("AQAw", "%%%%"), "");
            assert!(matches!(in_passing(&absurd), Some(Err(_))));
        }
    }

    #[test]
    fn xml_that_is_not_coded_may_be_soap() {
        let of = |lines: &[(&'static str, &'static str)]| {
            let line = |(name, value): &(&'static str, &'static str)| {
                (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
            };
            may_be_soap(&lines.iter().map(line).collect())
        };
        assert!(of(&[("content-type", "text/xml; charset=utf-8")]));
        assert!(of(&[("content-type", "Application/SOAP+xml;action=\"x\"")]));
        assert!(!of(&[]) && !of(&[("content-type", "application/json")]));
        assert!(!of(&[("content-type", "text/xml"), ("content-encoding", "gzip")]));
    }
}
