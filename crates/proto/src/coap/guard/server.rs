//! Requests of peers, verified, and the answers to them, protected.

use std::collections::{BTreeMap, BTreeSet};

use super::{Incoming, checked, to_content, to_message};
use crate::coap::chance::{Chance, For};
use crate::coap::machine::{Address, Input, MAX_EXCHANGES, MAX_OBSERVATIONS};
use crate::coap::{Code, Content, option};
use crate::oscore::{
    CoapMessage, ECHO_BYTES, Endpoint, OscoreOption, ReceivedRequest, Refusal, ResponseIv, Verified,
};

/// What is to be done with a request.
#[derive(Debug)]
pub(super) enum Judged {
    /// It goes on.
    Taken(Incoming),
    /// It is refused with this answer.
    Refused(Content),
    /// Who sent it shall show that he has his address, and that it is no old one.
    Challenged(Content),
}

/// A request that is to be answered.
#[derive(Debug)]
struct Received {
    context: usize,
    request: ReceivedRequest,
    /// The value that its peer would have been asked for.
    echo: [u8; ECHO_BYTES],
    /// It asked to observe, so that there may be further answers.
    observes: bool,
}

#[derive(Debug)]
pub(super) struct Server {
    is_required: bool,
    chance: Chance,
    /// By the endpoint's number; see `make_room`.
    received: BTreeMap<u64, Received>,
}

/// An answer that is not protected.
fn refused(refusal: &Refusal) -> Judged {
    Judged::Refused(to_content(refusal.answer()))
}

impl Server {
    pub(super) fn new(is_required: bool, seed: [u64; 2]) -> Self {
        Self { is_required, chance: Chance::new(seed), received: BTreeMap::new() }
    }

    pub(super) fn requested<P: Address>(
        &mut self,
        contexts: &mut [Endpoint],
        due: &mut BTreeSet<usize>,
        exchange: u64,
        (peer, is_trusted): (&P, bool),
        content: Content,
    ) -> Judged {
        let is_for_another = [option::PROXY_URI, option::PROXY_SCHEME]
            .iter()
            .any(|number| content.first(*number).is_some());
        let Some(value) = content.first(option::OSCORE) else {
            return match self.is_required {
                true => {
                    let refusal = Content::new(Code::UNAUTHORIZED).with_uint(option::MAX_AGE, 0);
                    Judged::Refused(refusal.with_payload("OSCORE is required here"))
                }
                false => Judged::Taken(Incoming::Plain(content)),
            };
        };
        // RFC 8613 §10: a proxy does not touch it.
        if is_for_another {
            return Judged::Taken(Incoming::Plain(content));
        }
        let option = match OscoreOption::decode(value) {
            Ok(option) => option,
            Err(error) => return refused(&Refusal::NotDecoded(error)),
        };
        let outer = to_message(&content);
        let mut refusal = Refusal::ContextNotFound;
        let named = contexts.iter_mut().enumerate();
        for (index, context) in named.filter(|(_, it)| it.context().is_named(&option)) {
            let echo = self.chance.of(For::OscoreEcho, &(index, peer)).to_be_bytes();
            context.expect_echo(echo);
            let verified = match context.verify_request(&outer) {
                Ok(verified) => verified,
                // Another context may have this name and the right key.
                Err(error) => {
                    refusal = error;
                    continue;
                }
            };
            let taken = take(context, (index, is_trusted), echo, verified);
            due.extend(context.sequence_mut().to_store().map(|_| index));
            return match taken {
                Ok((judged, received)) => {
                    self.received.extend(received.map(|received| (exchange, received)));
                    judged
                }
                Err(()) => Judged::Refused(Content::new(Code::SERVICE_UNAVAILABLE)),
            };
        }
        refused(&refusal)
    }

    /// What goes to the endpoint in place of `input`.
    pub(super) fn outgoing<P>(
        &mut self,
        contexts: &mut [Endpoint],
        due: &mut BTreeSet<usize>,
        input: Input<P>,
    ) -> Input<P> {
        let (exchange, content, iv) = match &input {
            Input::Respond { exchange, content } => (*exchange, content, ResponseIv::OfRequest),
            Input::Notify { exchange, content } => (*exchange, content, ResponseIv::Own),
            Input::Challenge { exchange } => {
                let Some(received) = self.received.get(exchange) else { return input };
                let content = asking(&received.echo);
                let exchange = *exchange;
                return self.outgoing(contexts, due, Input::Respond { exchange, content });
            }
            _ => return input,
        };
        let Some(received) = self.received.get_mut(&exchange) else { return input };
        let Some(context) = contexts.get_mut(received.context) else { return input };
        let protected = protect(context, received, content.clone(), iv);
        due.extend(context.sequence_mut().to_store().map(|_| received.context));
        let has_observe = iv == ResponseIv::Own || content.first(option::OBSERVE).is_some();
        if !received.observes || !has_observe || !content.code.is_success() {
            self.received.remove(&exchange);
        }
        // What cannot be said protected is not said in the open.
        let content = protected.unwrap_or(Content::new(Code::INTERNAL_SERVER_ERROR));
        match input {
            Input::Notify { .. } => Input::Notify { exchange, content },
            _ => Input::Respond { exchange, content },
        }
    }

    pub(super) fn ended(&mut self, exchange: u64) {
        self.received.remove(&exchange);
    }

    pub(super) fn make_room(&mut self, is_open: impl Fn(u64) -> bool) {
        if self.received.len() >= MAX_EXCHANGES + MAX_OBSERVATIONS {
            self.received.retain(|exchange, _| is_open(*exchange));
        }
    }
}

/// 4.01 that asks for this value and says nothing else (RFC 9175 §2.3).
fn asking(echo: &[u8]) -> Content {
    Content::new(Code::UNAUTHORIZED).with(option::ECHO, echo)
}

/// Protects a response, if there is a number for it.
fn protect(
    context: &mut Endpoint,
    received: &mut Received,
    mut content: Content,
    iv: ResponseIv,
) -> Option<Content> {
    if !content.code.is_success() {
        // RFC 7641 §4.2: it ends the observation.
        content.remove(option::OBSERVE);
    } else if iv == ResponseIv::Own && content.first(option::OBSERVE).is_none() {
        // The endpoint numbers the outer one.
        content.push_uint(option::OBSERVE, 0);
    }
    let outer = context.protect_response(&mut received.request, &to_message(&content), iv);
    outer.ok().map(to_content)
}

/// What follows a request that is authentic; the error is that no number is left for an answer.
fn take(
    context: &mut Endpoint,
    (index, is_trusted): (usize, bool),
    echo: [u8; ECHO_BYTES],
    verified: Verified,
) -> Result<(Judged, Option<Received>), ()> {
    let (message, request) = match verified {
        Verified::New(message, request) => (message, request),
        Verified::Unknown(unverified) => {
            let outer = context.challenge(unverified).map_err(drop)?;
            return Ok((Judged::Challenged(to_content(outer)), None));
        }
    };
    let mut received = Received { context: index, request, echo, observes: false };
    let mut answer =
        |content| protect(context, &mut received, content, ResponseIv::OfRequest).ok_or(());
    let is_validated = message.first(option::ECHO) == Some(&echo[..]);
    if !is_trusted && !is_validated {
        return Ok((Judged::Challenged(answer(asking(&echo))?), None));
    }
    let content = match checked(without_echo(message)) {
        Ok(content) if content.code.is_request() => content,
        Ok(_) => return Ok((Judged::Refused(answer(Content::new(Code::BAD_REQUEST))?), None)),
        Err(number) => {
            let refusal = Content::new(Code::BAD_OPTION).with_payload(format!("option {number}"));
            return Ok((Judged::Refused(answer(refusal)?), None));
        }
    };
    received.observes = content.uint(option::OBSERVE) == Some(0);
    let verified = Incoming::Verified { context: index, content, is_validated };
    Ok((Judged::Taken(verified), Some(received)))
}

fn without_echo(mut message: CoapMessage) -> CoapMessage {
    message.options.retain(|(number, _)| *number != option::ECHO);
    message
}
