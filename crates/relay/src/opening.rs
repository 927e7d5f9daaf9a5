//! What opens an exchange and what answers it, as the relay treats them: whatever kind they are of.
//! HTTP says it with methods and fields ([`crate::http`]), other messages say it as it is.

use std::time::Duration;

use bytes::Bytes;
use codec::Table;
use codec::dictionary::Id;
use coding::api::{About, Message};
use proto::exchange::Head as HeadPart;
use proto::urgency::Urgency;
use proto::{Error, bhttp, message};

use crate::api::{Cause, CauseKind, Head};
use crate::http;
use crate::http::Traits;
use crate::http::privacy::{Client, Guard};
use crate::kind::Kind;

/// Why every byte of a message has to come back that says so itself.
const EXACT: &str = "its sender wants every byte";
/// Status of what was answered, where the answer has none of its own: OK.
const ANSWERED: u16 = 200;

/// What opens an exchange.
#[derive(Debug)]
pub(crate) struct Opened {
    /// As it crosses.
    pub(crate) head: Bytes,
    /// The method, or what stands for it in events.
    pub(crate) method: String,
    pub(crate) traits: Traits,
    /// How urgent it says that it is.
    pub(crate) priority: Option<Urgency>,
    /// How long its client says that it waits.
    pub(crate) patience: Option<Duration>,
    /// What is asked, and for whom, where that is known.
    pub(crate) subject: Option<Id>,
    pub(crate) guard: Guard,
    pub(crate) about: About,
    pub(crate) message: Message,
}

/// What answers.
#[derive(Debug)]
pub(crate) struct Answer {
    /// As it crosses.
    pub(crate) head: Bytes,
    pub(crate) kind: Kind,
    pub(crate) status: u16,
    /// It has no end but that its client has enough.
    pub(crate) endless: bool,
    /// Nobody may keep any of it.
    pub(crate) private: bool,
    pub(crate) message: Message,
}

impl Opened {
    /// A request of HTTP, of this client.
    pub(crate) fn of_request(request: &bhttp::Request, client: Option<&Client>) -> Self {
        let mut head = Vec::new();
        request.encode(&mut head);
        let traits = Traits::of(request);
        let urgent = traits.tunnel || traits.expects_continue;
        let message = Message { urgent, ..http::message(&request.fields, head.len()) };
        let (method, guard) = (http::text(&request.method), Guard::of(request));
        let about = http::about(request, client);
        let (priority, patience) = (http::priority(request), http::patience(request));
        let operation = about.operation.as_bytes();
        let asked = [&request.method[..], &request.authority, &request.path, operation];
        // A page of others must not end what a person asks.
        let requester = about.requester.filter(|_| !about.cross_site);
        let subject = requester.map(|requester| subject(requester, &asked));
        let head = head.into();
        Self { head, method, traits, priority, patience, subject, guard, about, message }
    }

    /// A message of another kind, of this client.
    pub(crate) fn of_message(opening: &message::Opening, client: Option<&Client>) -> Self {
        let mut head = Vec::new();
        opening.encode(&mut head);
        let message::Delivery { repeatable, outcome_only } = opening.delivery;
        let kind = Kind::Other { kind: opening.message.kind, outcome_only };
        let traits = Traits { idempotent: repeatable, kind, ..Traits::default() };
        let guard = Guard { marked: opening.message.private, ..Guard::default() };
        let about = About {
            target: opening.target.clone(),
            operation: opening.operation.clone(),
            requester: client.map(|client| Id::of(client.name.as_bytes())),
            private: opening.message.private,
            ..About::default()
        };
        let method = format!("message {}", opening.message.kind);
        let message = described(&opening.message, head.len());
        let operation = &about.operation;
        let asked: [&[u8]; 3] = [method.as_bytes(), about.target.as_bytes(), operation.as_bytes()];
        let subject = about.requester.map(|requester| subject(requester, &asked));
        let (priority, patience, head) = (None, None, head.into());
        Self { head, method, traits, priority, patience, subject, guard, about, message }
    }

    /// Reads what came, and what it is to the local side.
    ///
    /// # Errors
    /// A head of neither sort.
    pub(crate) fn read(head: &[u8]) -> Result<(Self, Head), Error> {
        if message::Opening::is_one(head) {
            let opening = message::Opening::decode(head)?;
            return Ok((Self::of_message(&opening, None), Head::Opening(opening)));
        }
        let request = bhttp::Request::decode(head)?;
        Ok((Self::of_request(&request, None), Head::Request(request)))
    }
}

/// What a requester asks, of these parts.
fn subject(requester: Id, asked: &[impl AsRef<[u8]>]) -> Id {
    let mut whole = requester.0.to_vec();
    for part in asked {
        let part = part.as_ref();
        whole.extend_from_slice(&(part.len() as u64).to_be_bytes());
        whole.extend_from_slice(part);
    }
    Id::of(&whole)
}

impl Answer {
    /// A response of HTTP.
    pub(crate) fn of_response(response: &bhttp::Response) -> Self {
        let mut head = Vec::new();
        response.encode(&mut head);
        Self {
            kind: Kind::Http,
            status: response.status,
            endless: http::has_no_end(response),
            private: http::privacy::forbids_keeping(&response.fields),
            message: http::message(&response.fields, head.len()),
            head: head.into(),
        }
    }

    /// A message of another kind.
    pub(crate) fn of_message(message: &message::Message) -> Self {
        let mut head = Vec::new();
        message.encode(&mut head);
        Self {
            kind: Kind::Other { kind: message.kind, outcome_only: false },
            status: ANSWERED,
            endless: false,
            private: message.private,
            message: described(message, head.len()),
            head: head.into(),
        }
    }

    /// Reads what came to an exchange of this kind, and what it is to the local side.
    ///
    /// # Errors
    /// A head of another sort.
    pub(crate) fn read(kind: Kind, head: &[u8]) -> Result<(Self, Head), Error> {
        if kind == Kind::Http {
            let response = bhttp::Response::decode(head)?;
            return Ok((Self::of_response(&response), Head::Response(response)));
        }
        let message = message::Message::decode(head)?;
        Ok((Self::of_message(&message), Head::Message(message)))
    }
}

/// The codec of the body that a head announces; one that is not ours is the peer's fault.
pub(crate) fn codec_of(codecs: &Table, head: &HeadPart) -> Result<codec::Options, Cause> {
    let corrupt =
        |error: codec::Error| Cause { kind: CauseKind::Corrupt, reason: error.to_string() };
    codecs.options(head.codec, head.window_log).map_err(corrupt)
}

fn described(message: &message::Message, head_bytes: usize) -> Message {
    Message {
        media: (!message.media.is_empty()).then(|| message.media.clone()),
        coded: message.coded,
        exact: message.exact.then_some(EXACT),
        head_bytes,
        ..Message::default()
    }
}
