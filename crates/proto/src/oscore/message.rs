//! Messages of CoAP in two parts: what is encrypted and what proxies see (RFC 8613 §4).

use crate::Error;

use super::{
    OSCORE,
    class::{
        Class, OBSERVE, PROXY_SCHEME, PROXY_URI, URI_HOST, URI_PATH, URI_PORT, URI_QUERY, class,
    },
    plaintext, proxy_uri,
};

/// 0.02 (POST).
pub(super) const POST: u8 = 0x02;
/// 0.05 (FETCH).
pub(super) const FETCH: u8 = 0x05;
/// 2.04 (Changed).
pub(super) const CHANGED: u8 = 0x44;
/// 2.05 (Content).
pub(super) const CONTENT: u8 = 0x45;

/// A message of CoAP as far as OSCORE has to do with it: type, message ID and token are the same in
/// a protected message, and its caller keeps them (RFC 8613 §4.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoapMessage {
    /// The code: class in the upper three bits, detail in the lower five (RFC 7252 §3).
    pub code: u8,
    /// Number and value of each option. They are in the order of their numbers in what comes out
    /// of here; in what comes in, those of one number are in their order.
    pub options: Vec<(u16, Vec<u8>)>,
    /// The payload; empty where there is none.
    pub payload: Vec<u8>,
}

impl CoapMessage {
    /// A message of these parts.
    pub fn new<'a>(
        code: u8,
        options: impl IntoIterator<Item = (u16, &'a [u8])>,
        payload: &[u8],
    ) -> Self {
        let options = options.into_iter().map(|(number, value)| (number, value.to_vec()));
        Self { code, options: options.collect(), payload: payload.to_vec() }
    }

    /// Numbers and values of the options.
    pub fn options(&self) -> impl Iterator<Item = (u16, &[u8])> {
        self.options.iter().map(|(number, value)| (*number, &value[..]))
    }

    /// The value of the first option of this number.
    #[must_use]
    pub fn first(&self, number: u16) -> Option<&[u8]> {
        self.options().find_map(|(one, value)| (one == number).then_some(value))
    }

    /// Whether the message is protected by OSCORE. An error of OSCORE itself is not.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.first(OSCORE).is_some()
    }
}

/// Which of an exchange's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Request,
    Response,
}

impl Direction {
    /// Whether it may have this code. Signaling messages are of either sort (RFC 8613 §4.3).
    fn may_have(self, code: u8) -> bool {
        match (self, code >> 5) {
            (Self::Request, 0) => code > 0,
            (Self::Response, 2..=5) => true,
            (_, class) => class == SIGNALING,
        }
    }
}

/// The class of the codes of signaling messages (RFC 8323 §5).
const SIGNALING: u8 = 7;

/// What is encrypted of `message`, and what proxies see without OSCORE option and payload.
///
/// # Errors
/// `Caller` where the message is protected already, or is no request or response, or its Proxy-Uri
/// is none; `Limit` where it is too long.
pub(super) fn split(
    direction: Direction,
    message: &CoapMessage,
) -> Result<(Vec<u8>, CoapMessage), Error> {
    if !direction.may_have(message.code) {
        return Err(Error::Caller { what: "a code that a message to protect cannot have" });
    }
    // RFC 8613 §4.1.3.7: OSCORE is not nested.
    if message.is_protected() {
        return Err(Error::Caller { what: "a message to protect that is protected" });
    }
    let mut inner = CoapMessage { code: message.code, ..CoapMessage::default() };
    inner.payload.clone_from(&message.payload);
    let has_observe = message.code >> 5 != SIGNALING && message.first(OBSERVE).is_some();
    let mut outer =
        CoapMessage { code: outer_code(direction, has_observe), ..CoapMessage::default() };
    for (number, value) in message.options() {
        let at = if message.code >> 5 == SIGNALING { Class::Inner } else { class(number) };
        match (at, number) {
            (Class::Inner, _) => inner.options.push((number, value.to_vec())),
            (Class::Both, OBSERVE) => {
                // RFC 8613 §4.1.3.5.2: the inner one of a notification is empty.
                let inside = if direction == Direction::Response { &[] } else { value };
                inner.options.push((number, inside.to_vec()));
                outer.options.push((number, value.to_vec()));
            }
            (Class::Both, _) => inner.options.push((number, value.to_vec())),
            (Class::Outer, _) => outer.options.push((number, value.to_vec())),
        }
    }
    if let Some(uri) = outer.first(PROXY_URI).map(<[u8]>::to_vec) {
        split_proxy_uri(&uri, &mut inner, &mut outer)?;
    }
    inner.options.sort_by_key(|(number, _)| *number);
    outer.options.sort_by_key(|(number, _)| *number);
    Ok((plaintext::encode(&inner)?, outer))
}

/// RFC 8613 §4.2: what the code of a protected message looks like to proxies.
fn outer_code(direction: Direction, has_observe: bool) -> u8 {
    match (direction, has_observe) {
        (Direction::Request, false) => POST,
        (Direction::Request, true) => FETCH,
        (Direction::Response, false) => CHANGED,
        (Direction::Response, true) => CONTENT,
    }
}

/// RFC 8613 §4.1.3.3. A Proxy-Uri takes the place of all Uri options (RFC 7252 §5.10.2).
fn split_proxy_uri(
    uri: &[u8],
    inner: &mut CoapMessage,
    outer: &mut CoapMessage,
) -> Result<(), Error> {
    let parts = proxy_uri::split(uri)?;
    inner.options.retain(|(number, _)| ![URI_PATH, URI_QUERY].contains(number));
    inner.options.extend(parts.path.into_iter().map(|value| (URI_PATH, value)));
    inner.options.extend(parts.query.into_iter().map(|value| (URI_QUERY, value)));
    let replaced = [PROXY_URI, PROXY_SCHEME, URI_HOST, URI_PORT];
    outer.options.retain(|(number, _)| !replaced.contains(number));
    outer.options.push((PROXY_URI, parts.outer.as_bytes().to_vec()));
    Ok(())
}

/// The message of what was decrypted and what was in the open. An outer option of Class E is
/// discarded, whatever it says (RFC 8613 §8.2, step 1); one of which there is an inner one, too.
///
/// # Errors
/// `Peer`, `Truncated` or `Limit` where the plaintext is no request or response.
pub(super) fn merge(
    direction: Direction,
    decrypted: &[u8],
    outer: &CoapMessage,
) -> Result<CoapMessage, Error> {
    let mut message = plaintext::decode(decrypted)?;
    if !direction.may_have(message.code) {
        let (what, value) = ("a code in a protected message", u64::from(message.code));
        return Err(Error::Peer { what, value });
    }
    if message.is_protected() {
        let (what, value) = ("an OSCORE option in a protected message", u64::from(OSCORE));
        return Err(Error::Peer { what, value });
    }
    let is_open = |number| class(number) == Class::Outer && number != OSCORE;
    let open: Vec<_> = outer
        .options()
        .filter(|(number, _)| is_open(*number) && message.first(*number).is_none())
        .map(|(number, value)| (number, value.to_vec()))
        .collect();
    message.options.extend(open);
    message.options.sort_by_key(|(number, _)| *number);
    Ok(message)
}
