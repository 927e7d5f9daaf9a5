//! OSCORE (RFC 8613) between an endpoint for whole bodies and its messages: each message is
//! protected by itself, so that blocks are inner ones (RFC 8613 §4.1.3.4.1), and what a proxy cuts
//! into outer blocks is not taken.
//!
//! A client protects all its requests with one context and takes no answer that does not verify. A
//! server has any number of contexts up to [`MAX_CONTEXTS`], answers what was protected protected,
//! and asks who has not shown that it has its address, or that its request is no old one, for an
//! Echo inside the protected message (RFC 8613 appendix B.1.2, RFC 9175 §2.4): a request that
//! verifies may still be one that somebody has recorded and sends from elsewhere.

mod client;
mod server;

use std::collections::BTreeSet;

use super::machine::{Address, Input, Output, UNDERSTOOD};
use super::{Code, Content, Datagram, Kind, Token, option};
use crate::Error;
use crate::oscore::{CoapMessage, Endpoint};
use client::Client;
use server::{Judged, Server};

/// Most contexts of a server.
pub const MAX_CONTEXTS: usize = 256;

/// What protects and verifies the messages of an endpoint.
#[derive(Debug)]
pub struct Guard<P> {
    contexts: Vec<Endpoint>,
    /// Contexts whose numbers a store is to have.
    due: BTreeSet<usize>,
    role: Role<P>,
    /// Requests of peers that were refused, and that were asked for an Echo.
    refused: u64,
    challenged: u64,
}

/// What a request of a peer is.
#[derive(Debug)]
pub(super) enum Incoming {
    /// It is not protected, or not for this endpoint, and goes on as it is.
    Plain(Content),
    /// It is new and authentic: of which context, what it says, and whether its peer has shown
    /// with it that it has its address.
    Verified { context: usize, content: Content, is_validated: bool },
    /// It is answered with this, which no one above sees.
    Answered(Content),
}

#[derive(Debug)]
enum Role<P> {
    /// Nothing is protected.
    None,
    Client(Client<P>),
    Server(Server),
}

impl<P: Address> Guard<P> {
    /// One that leaves all messages as they are.
    #[must_use]
    pub fn none() -> Self {
        Self::new(Vec::new(), Role::None)
    }

    /// One for requests of this side, all with this context.
    #[must_use]
    pub fn client(context: Endpoint) -> Self {
        Self::new(vec![context], Role::Client(Client::new()))
    }

    /// One for requests of peers. `is_required`: a request that is not protected is refused with
    /// 4.01, unless it is for a proxy. `seed` is unforeseeable and new at each start.
    ///
    /// # Errors
    /// `Limit` for more contexts than [`MAX_CONTEXTS`].
    pub fn server(
        contexts: Vec<Endpoint>,
        is_required: bool,
        seed: [u64; 2],
    ) -> Result<Self, Error> {
        if contexts.len() > MAX_CONTEXTS {
            let (value, limit) = (contexts.len() as u64, MAX_CONTEXTS as u64);
            return Err(Error::Limit { what: "security contexts of a server", value, limit });
        }
        Ok(Self::new(contexts, Role::Server(Server::new(is_required, seed))))
    }

    fn new(contexts: Vec<Endpoint>, role: Role<P>) -> Self {
        let due = (0..contexts.len()).collect();
        Self { contexts, due, role, refused: 0, challenged: 0 }
    }

    /// How many requests of peers were refused, and how many asked for an Echo.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.refused, self.challenged)
    }

    /// Whether requests of peers are verified here.
    pub(super) fn is_server(&self) -> bool {
        matches!(self.role, Role::Server(_))
    }

    /// A context, by its place among those given, and the watermark that is to be stored for it
    /// before more numbers than half a step are used (RFC 8613 appendix B.1.1).
    pub fn to_store(&mut self) -> Option<(usize, u64)> {
        while let Some(index) = self.due.first().copied() {
            let context = self.contexts.get_mut(index);
            if let Some(watermark) = context.and_then(|it| it.sequence_mut().to_store()) {
                return Some((index, watermark));
            }
            self.due.remove(&index);
        }
        None
    }

    /// The store has this watermark of a context for good.
    pub fn note_stored(&mut self, index: usize, watermark: u64) {
        if let Some(context) = self.contexts.get_mut(index) {
            context.sequence_mut().note_stored(watermark);
        }
    }

    /// What goes to the endpoint in place of `input`; nothing where it cannot be protected, and
    /// then what comes out instead.
    pub(super) fn outgoing(&mut self, input: Input<P>) -> Result<Input<P>, Output<P>> {
        let Self { contexts, due, role, .. } = self;
        match role {
            Role::None => Ok(input),
            Role::Client(client) => {
                let Some(context) = contexts.first_mut() else { return Ok(input) };
                let input = client.outgoing(context, input);
                due.extend(context.sequence_mut().to_store().map(|_| 0));
                input
            }
            Role::Server(server) => Ok(server.outgoing(contexts, due, input)),
        }
    }

    /// What an answer to a request of this side, or what became of that, is. Inputs are what the
    /// endpoint is given next.
    pub(super) fn answered(&mut self, output: Output<P>) -> (Option<Output<P>>, Vec<Input<P>>) {
        let Role::Client(client) = &mut self.role else { return (Some(output), Vec::new()) };
        let Some(context) = self.contexts.first_mut() else { return (Some(output), Vec::new()) };
        let taken = client.answered(context, output);
        self.due.extend(context.sequence_mut().to_store().map(|_| 0));
        taken
    }

    /// What a request of a peer is.
    pub(super) fn requested(
        &mut self,
        exchange: u64,
        (peer, is_trusted): (P, bool),
        content: Content,
    ) -> Incoming {
        let Self { contexts, due, role, refused, challenged } = self;
        let Role::Server(server) = role else { return Incoming::Plain(content) };
        let judged = server.requested(contexts, due, exchange, (&peer, is_trusted), content);
        match judged {
            Judged::Taken(incoming) => incoming,
            Judged::Refused(answer) => {
                *refused += 1;
                Incoming::Answered(answer)
            }
            Judged::Challenged(answer) => {
                *challenged += 1;
                Incoming::Answered(answer)
            }
        }
    }

    /// An observation is over.
    pub(super) fn ended(&mut self, exchange: u64) {
        if let Role::Server(server) = &mut self.role {
            server.ended(exchange);
        }
    }

    /// Forgets requests that the endpoint has given up.
    pub(super) fn make_room(&mut self, is_open: impl Fn(u64) -> bool) {
        if let Role::Server(server) = &mut self.role {
            server.make_room(is_open);
        }
    }
}

/// The message that OSCORE protects.
fn to_message(content: &Content) -> CoapMessage {
    CoapMessage::new(content.code.0, content.options(), &content.payload)
}

/// What was verified, as far as it may go on as it is.
fn to_content(message: CoapMessage) -> Content {
    let CoapMessage { code, options, payload } = message;
    let mut content = Content::new(Code(code)).with_payload(payload);
    options.iter().for_each(|(number, value)| content.push(*number, value));
    content
}

/// What was verified, with the rules for options of any message that comes (RFC 7252 §5.4). The
/// error is the critical option that is unknown or broken, or 0.
fn checked(message: CoapMessage) -> Result<Content, option::Number> {
    let content = to_content(message);
    let bytes = content.encode(Kind::NonConfirmable, 0, Token::EMPTY).map_err(|_| 0_u16)?;
    let datagram = Datagram::decode(&bytes).map_err(|_| 0_u16)?;
    match option::find_bad_critical(datagram.message.options, &UNDERSTOOD) {
        Some(number) => Err(number),
        None => Content::try_from(&datagram).map_err(|_| 0),
    }
}
