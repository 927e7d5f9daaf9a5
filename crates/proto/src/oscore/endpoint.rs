//! One end of a security context: protects what it sends and verifies what it receives
//! (RFC 8613 §8).

use zeroize::Zeroizing;

use crate::Error;

use super::{
    class::{ECHO, OBSERVE},
    context::Context,
    message::{CoapMessage, Direction, merge, split},
    option::{OSCORE, OscoreOption, aad},
    plaintext::MAX_PLAINTEXT_BYTES,
    refusal::Refusal,
    replay::{ECHO_BYTES, MAX_WINDOW, Replay, ReplayWindow, Verdict},
    sequence::SenderSequence,
};

/// The longest ciphertext, in bytes.
const MAX_CIPHERTEXT_BYTES: usize = MAX_PLAINTEXT_BYTES + super::algorithm::MAX_TAG_BYTES;
/// 4.01 (Unauthorized).
const UNAUTHORIZED: u8 = 0x81;

/// One end of a security context, which may be client and server at a time (RFC 8613 §3.1).
///
/// There must be one for a [`Context`] and not two, or numbers would be used twice. Outer blocks
/// are put together before a message comes here (RFC 8613 §4.1.3.4.2).
#[derive(Debug)]
pub struct Endpoint {
    context: Context,
    sequence: SenderSequence,
    replay: Replay,
    sends_id_context: bool,
}

/// A request that was sent, to which responses belong: the caller keeps it beside the token
/// (RFC 8613 §8).
#[derive(Debug)]
pub struct SentRequest {
    partial_iv: u64,
    /// It asked for notifications.
    registers: bool,
    /// A response had the nonce of the request.
    request_nonce_used: bool,
    /// A response that was no notification came: there is no further one.
    answered: bool,
    /// Of notifications (RFC 8613 §7.4.1).
    notified: ReplayWindow,
}

/// A request that was received, to which responses belong. It cannot be copied: each copy could use
/// the nonce of the request once. For the same reason it is for the [`Endpoint`] that gave it and
/// for no other.
#[derive(Debug)]
pub struct ReceivedRequest {
    partial_iv: u64,
    /// A response had the nonce of the request, or none may have it.
    request_nonce_used: bool,
}

/// What a request that is authentic is.
#[derive(Debug)]
pub enum Verified {
    /// It is new: the request as it was before it was protected, and what responses need.
    New(CoapMessage, ReceivedRequest),
    /// This end has lost its window and cannot tell: [`Endpoint::challenge`] makes the answer. What
    /// the request says must not be done (RFC 8613 appendix B.1.2).
    Unknown(Unverified),
}

/// A request of which nobody knows whether it is new.
#[derive(Debug)]
pub struct Unverified {
    request: ReceivedRequest,
    echo: [u8; ECHO_BYTES],
}

/// Of which nonce a response shall be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseIv {
    /// That of the request, which takes no bytes; where it is used up, an own one.
    OfRequest,
    /// One of this end, which tells the order of notifications.
    Own,
}

impl Endpoint {
    /// An end with keys, the numbers that it may use, and what it knows of those received.
    #[must_use]
    pub fn new(context: Context, sequence: SenderSequence, replay: Replay) -> Self {
        Self { context, sequence, replay, sends_id_context: false }
    }

    /// Whether requests name the ID Context from now on, for servers that need it to find their
    /// context (RFC 8613 §5.1). It does nothing where there is none.
    pub fn set_sends_id_context(&mut self, sends: bool) {
        self.sends_id_context = sends;
    }

    /// The keys and names.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The numbers of this end, to see what is to be stored and to say that it is.
    pub fn sequence_mut(&mut self) -> &mut SenderSequence {
        &mut self.sequence
    }

    /// What is known of the numbers received.
    #[must_use]
    pub fn replay(&self) -> &Replay {
        &self.replay
    }

    /// The value of Echo that the next request is asked for, where this end has lost its window: a
    /// caller that gives each peer a value of its own learns that the peer has its address, too.
    pub fn expect_echo(&mut self, echo: [u8; ECHO_BYTES]) {
        self.replay.expect_echo(echo);
    }

    /// Protects a request (RFC 8613 §8.1).
    ///
    /// # Errors
    /// `Caller` where it is no request or is protected; `Limit` where it is too long, or no number
    /// may be used (see [`SenderSequence::take`]).
    pub fn protect_request(
        &mut self,
        message: &CoapMessage,
    ) -> Result<(CoapMessage, SentRequest), Error> {
        let (plain, outer) = split(Direction::Request, message)?;
        let partial_iv = self.sequence.take()?;
        let kid = self.context.sender_id();
        let id_context = self.context.id_context().filter(|_| self.sends_id_context);
        let option =
            OscoreOption { partial_iv: Some(partial_iv), kid_context: id_context, kid: Some(kid) };
        let sealed = self.seal(plain, outer, &option, (kid, partial_iv), (kid, partial_iv))?;
        let sent = SentRequest {
            partial_iv,
            registers: registers(message),
            request_nonce_used: false,
            answered: false,
            notified: ReplayWindow::new(MAX_WINDOW)?,
        };
        Ok((sealed, sent))
    }

    /// Verifies a request (RFC 8613 §8.2). Where several contexts may be meant, the caller asks
    /// [`Context::is_named`] which.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn verify_request(&mut self, outer: &CoapMessage) -> Result<Verified, Refusal> {
        let option = oscore_option(outer)?;
        let kid = self.context.recipient_id();
        // RFC 8613 §5: each request has a Partial IV and a kid.
        let (Some(partial_iv), Some(_)) = (option.partial_iv, option.kid) else {
            return Err(Error::Truncated { what: "the OSCORE option of a request" }.into());
        };
        if !self.context.is_named(&option) {
            return Err(Refusal::ContextNotFound);
        }
        if !self.replay.may_be_new(partial_iv) {
            return Err(Refusal::Replay);
        }
        let plain = self.open(outer, (kid, partial_iv), (kid, partial_iv))?;
        // A message that cannot be read is authentic all the same: its number is used up.
        let message = merge(Direction::Request, &plain, outer);
        let echo = message.as_ref().ok().and_then(|message| message.first(ECHO));
        match self.replay.judge(partial_iv, echo) {
            Verdict::New => {
                let request = ReceivedRequest { partial_iv, request_nonce_used: false };
                Ok(Verified::New(message?, request))
            }
            Verdict::Old => Err(Refusal::Replay),
            // A response to the same request may have been sent before the restart.
            Verdict::Unknown(echo) => {
                let request = ReceivedRequest { partial_iv, request_nonce_used: true };
                message?;
                Ok(Verified::Unknown(Unverified { request, echo }))
            }
        }
    }

    /// Answers a request of which nobody knows whether it is new: 4.01 with Echo and nothing else,
    /// protected with a nonce of this end (RFC 8613 appendix B.1.2). An honest client then sends
    /// its request again with that option.
    ///
    /// # Errors
    /// See [`Endpoint::protect_response`].
    pub fn challenge(&mut self, unverified: Unverified) -> Result<CoapMessage, Error> {
        let Unverified { mut request, echo } = unverified;
        let message = CoapMessage::new(UNAUTHORIZED, [(ECHO, &echo[..])], &[]);
        self.protect_response(&mut request, &message, ResponseIv::Own)
    }

    /// Protects a response (RFC 8613 §8.3). The nonce of the request serves once, whatever `iv` is.
    ///
    /// # Errors
    /// `Caller` where it is no response or is protected; `Limit` where it is too long, or no number
    /// may be used (see [`SenderSequence::take`]).
    pub fn protect_response(
        &mut self,
        request: &mut ReceivedRequest,
        message: &CoapMessage,
        iv: ResponseIv,
    ) -> Result<CoapMessage, Error> {
        let (plain, outer) = split(Direction::Response, message)?;
        let mut option = OscoreOption::default();
        let kid = self.context.recipient_id();
        let (id, number) = if iv == ResponseIv::Own || request.request_nonce_used {
            let number = self.sequence.take()?;
            option.partial_iv = Some(number);
            (self.context.sender_id(), number)
        } else {
            request.request_nonce_used = true;
            (kid, request.partial_iv)
        };
        let binding = (kid, request.partial_iv);
        let nonce = (id, number);
        self.seal(plain, outer, &option, nonce, binding)
    }

    /// Verifies a response to a request (RFC 8613 §8.4). Observe of a notification then has the
    /// last three bytes of its Partial IV, by which notifications are put in order; it is 0 in one
    /// that has none and is the oldest (RFC 8613 §4.1.3.5.2).
    ///
    /// # Errors
    /// See [`Refusal`]. The request stays as it was: the true response may still come.
    pub fn verify_response(
        &self,
        request: &mut SentRequest,
        outer: &CoapMessage,
    ) -> Result<CoapMessage, Refusal> {
        let option = oscore_option(outer)?;
        let (kid, peer) = (self.context.sender_id(), self.context.recipient_id());
        // RFC 8613 §5: a response needs no names, and if it has some, they are the right ones.
        if !self.context.is_named(&OscoreOption { kid: option.kid.or(Some(peer)), ..option }) {
            return Err(Refusal::ContextNotFound);
        }
        let binding = (kid, request.partial_iv);
        let nonce = option.partial_iv.map_or(binding, |number| (peer, number));
        let plain = self.open(outer, nonce, binding)?;
        let mut message = merge(Direction::Response, &plain, outer)?;
        let is_notification = message.code >> 5 < 7 && message.first(OBSERVE).is_some();
        if is_notification && !request.registers {
            return Err(Refusal::NotRequested);
        }
        if request.answered || (option.partial_iv.is_none() && request.request_nonce_used) {
            return Err(Refusal::Replay);
        }
        match option.partial_iv {
            None => request.request_nonce_used = true,
            Some(number) if is_notification => {
                if !request.notified.note(number) {
                    return Err(Refusal::Replay);
                }
            }
            Some(_) => {}
        }
        if is_notification {
            order(&mut message, option.partial_iv.unwrap_or(0));
        } else {
            request.answered = true;
        }
        Ok(message)
    }

    /// Encrypts with the nonce of a name and a Partial IV, bound to the kid and Partial IV of a
    /// request, and puts option and ciphertext into the outer message.
    fn seal(
        &self,
        mut plain: Vec<u8>,
        mut outer: CoapMessage,
        option: &OscoreOption<'_>,
        (id, number): (&[u8], u64),
        (kid, partial_iv): (&[u8], u64),
    ) -> Result<CoapMessage, Error> {
        let algorithm = self.context.algorithm();
        let aad = aad(algorithm, kid, partial_iv)?;
        let nonce = self.context.nonce(id, number);
        algorithm.seal(self.context.sender_key(), &nonce, &aad, &mut plain)?;
        outer.payload = plain;
        outer.options.push((OSCORE, option.encode()?));
        outer.options.sort_by_key(|(number, _)| *number);
        Ok(outer)
    }

    /// Decrypts with the nonce of a name and a Partial IV what is bound to the kid and Partial IV
    /// of a request.
    fn open(
        &self,
        outer: &CoapMessage,
        (id, number): (&[u8], u64),
        (kid, partial_iv): (&[u8], u64),
    ) -> Result<Zeroizing<Vec<u8>>, Refusal> {
        let value = outer.payload.len() as u64;
        if outer.payload.len() > MAX_CIPHERTEXT_BYTES {
            let (what, limit) = ("a ciphertext in bytes", MAX_CIPHERTEXT_BYTES as u64);
            return Err(Error::Limit { what, value, limit }.into());
        }
        let algorithm = self.context.algorithm();
        let aad = aad(algorithm, kid, partial_iv)?;
        let nonce = self.context.nonce(id, number);
        let mut buffer = Zeroizing::new(outer.payload.clone());
        algorithm
            .open(self.context.recipient_key(), &nonce, &aad, &mut buffer)
            .ok_or(Refusal::DecryptionFailed)?;
        Ok(buffer)
    }
}

/// The one OSCORE option of a message, which then has a payload (RFC 8613 §2).
fn oscore_option(outer: &CoapMessage) -> Result<OscoreOption<'_>, Error> {
    let mut values = outer.options().filter(|(number, _)| *number == OSCORE);
    let value = match (values.next(), values.next()) {
        (Some((_, value)), None) => value,
        (None, _) => return Err(Error::Peer { what: "no OSCORE option", value: 0 }),
        _ => return Err(Error::Peer { what: "several OSCORE options", value: 2 }),
    };
    if outer.payload.is_empty() {
        return Err(Error::Truncated { what: "a message with an OSCORE option" });
    }
    OscoreOption::decode(value)
}

/// Whether a request asks for notifications: Observe of 0, with or without a byte (RFC 7641 §2).
fn registers(message: &CoapMessage) -> bool {
    message.code >> 5 == 0
        && message.first(OBSERVE).is_some_and(|value| value.iter().all(|byte| *byte == 0))
}

/// Gives the Observe of a notification the last three bytes of its Partial IV, without zeros in
/// front (RFC 7252 §3.2).
fn order(message: &mut CoapMessage, partial_iv: u64) {
    let [.., a, b, c] = partial_iv.to_be_bytes();
    let value = [a, b, c].into_iter().skip_while(|byte| *byte == 0).collect::<Vec<_>>();
    for (number, old) in &mut message.options {
        if *number == OBSERVE {
            old.clone_from(&value);
        }
    }
}
