//! WS-BaseNotification 1.3, WS-BrokeredNotification 1.3 and WS-Topics 1.3, over SOAP 1.1 and 1.2.
//!
//! Each subscription is a session of the core. What it gets is posted to its consumer, one POST at
//! a time, or waits for the pull point that it names. A consumer that is not reached is left alone
//! for a while, twice as long each time, and what is for it waits in the session; so do the
//! messages of a subscription that is paused.

mod addressing;
mod answers;
mod base64;
pub mod client;
mod fault;
mod keeping;
mod names;
mod payload;
mod registering;
mod requests;
mod resources;
mod sending;
mod serving;
mod settings;
mod soap;
mod subscription;
#[cfg(test)]
mod tests;
mod time;
mod topics;
mod tree;
mod wsdl;
mod xpath;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use codec::xml::to_utf8;
use proto::timers::Timers;

use crate::event::Event;
use crate::http::{Answer, Asked, Posted};
use crate::ids::{ConnectionId, Protocol, SessionId, Ticket};
use crate::outputs::Context;
use crate::publication::PayloadForm;
use addressing::{Headers, Properties};
use answers::Response;
use fault::{Fault, FaultKind};
use registering::Registration;
use resources::PullPoint;
pub use settings::Settings;
use soap::{Envelope, SoapVersion, envelope, write_fault, write_not_understood};
use subscription::Subscription;
pub use topics::Mount;
pub use tree::{NodeId, Tree};
pub use xpath::{Error as XPathError, Filter as XPathFilter};

/// A publication as an element, in the form that its payload has then.
#[derive(Debug)]
struct Rendered {
    id: u64,
    coded: Option<PayloadForm>,
    element: Arc<str>,
}

/// Connections of ours stand for subscriptions; the shell's numbers are below.
const FIRST_CONNECTION: u64 = 1 << 63;
/// Answers that wait for the store.
const MAX_HELD: usize = 65_536;

/// What may be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A subscription terminates.
    Termination(u64),
    /// A consumer is tried again.
    Retry(u64),
    /// A registration terminates.
    Registration(u64),
    /// Nobody has asked a pull point for long.
    PullPoint(u64),
    /// Publishers are told whether somebody wants what they publish.
    Demand,
}

/// For what a POST is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Messages of a subscription.
    Notify(u64),
    /// A request to a registered publisher.
    Publisher(u64),
}

/// What a request leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Served {
    /// An answer.
    Response(Response),
    /// The request was one-way and is accepted.
    Accepted,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Wsn {
    settings: Settings,
    subscriptions: BTreeMap<u64, Subscription>,
    pull_points: BTreeMap<u64, PullPoint>,
    registrations: BTreeMap<u64, Registration>,
    /// Sessions of users who publish.
    publishers: BTreeMap<Arc<str>, SessionId>,
    posts: BTreeMap<u64, Purpose>,
    timers: Timers<Due>,
    held: VecDeque<(Ticket, Answer)>,
    last_id: u64,
    last_post: u64,
    /// Whether the request that is served came over TLS.
    is_asked_securely: bool,
    /// The element of the publication that was last sent, for all who get it.
    rendered: Option<Rendered>,
}

impl Wsn {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            subscriptions: BTreeMap::new(),
            pull_points: BTreeMap::new(),
            registrations: BTreeMap::new(),
            publishers: BTreeMap::new(),
            posts: BTreeMap::new(),
            timers: Timers::default(),
            held: VecDeque::new(),
            last_id: 0,
            last_post: 0,
            is_asked_securely: false,
            rendered: None,
        }
    }

    /// A request came.
    pub(crate) fn ask(&mut self, context: &mut Context<'_>, asked: &Asked) {
        self.is_asked_securely = asked.is_secure;
        let answer =
            if asked.is_get { describe(&self.settings, asked) } else { self.post(context, asked) };
        let durable = context.core.settings().durable && answer.status < 300;
        let ticket = if durable { context.core.journal.ticket() } else { Ticket(0) };
        let is_first = self.held.is_empty();
        if ticket <= context.core.journal.done() && is_first || self.held.len() >= MAX_HELD {
            context.outputs.answer(answer);
        } else {
            self.held.push_back((ticket, answer));
        }
    }

    /// Answers that waited for the store go out.
    pub(crate) fn committed(&mut self, context: &mut Context<'_>) {
        let done = context.core.journal.done();
        while let Some((_, answer)) = self.held.pop_front_if(|(ticket, _)| *ticket <= done) {
            context.outputs.answer(answer);
        }
    }

    /// What came of a POST.
    pub(crate) fn posted(&mut self, context: &mut Context<'_>, posted: &Posted) {
        match self.posts.remove(&posted.id) {
            Some(Purpose::Notify(id)) => self.notified(context, id, posted),
            Some(Purpose::Publisher(id)) => self.publisher_answered(context, id, posted),
            None => {}
        }
    }

    /// What is due.
    pub(crate) fn wake(&mut self, context: &mut Context<'_>) {
        while let Some(due) = self.timers.pop(context.now) {
            match due {
                Due::Termination(id) => self.end_subscription(context, id),
                Due::Retry(id) => self.retry(context, id),
                Due::Registration(id) => self.end_registration(context, id),
                Due::PullPoint(id) => self.end_pull_point(context, id),
                Due::Demand => self.follow_demand(context),
            }
        }
    }

    /// When something is due.
    pub(crate) fn wake_at(&self) -> Option<Duration> {
        self.timers.next()
    }

    /// A subscription has something to send.
    pub(crate) fn deliver(&mut self, context: &mut Context<'_>, connection: ConnectionId) {
        if let Some(id) = connection.0.checked_sub(FIRST_CONNECTION) {
            self.send(context, id);
        }
    }

    fn post(&mut self, context: &mut Context<'_>, asked: &Asked) -> Answer {
        let essence = asked.content_type.as_deref().unwrap_or("text/xml");
        let essence = essence.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
        let soap = match &*essence {
            "text/xml" | "application/xml" => SoapVersion::V11,
            "application/soap+xml" => SoapVersion::V12,
            _ => return plain(asked.id, 415, "messages are SOAP 1.1 or 1.2, without attachments"),
        };
        if asked.body.len() > self.settings.max_body_bytes {
            return plain(asked.id, 413, "the request is longer than max_body_bytes");
        }
        let limits = codec::Limits::default();
        let text = match to_utf8(&asked.body, &limits) {
            Ok(text) => text,
            Err(error) => return self.unreadable(context, asked, soap, error.to_string()),
        };
        let tree = match Tree::parse(&text) {
            Ok(tree) => tree,
            Err(error) => return self.unreadable(context, asked, soap, error.to_string()),
        };
        match Envelope::read(&tree) {
            Ok(read) => {
                let served = self.serve(context, asked, &tree, &read);
                self.answer(context, asked, read.soap, &read.addressing, served)
            }
            Err(refusal) => {
                let soap::Refusal { fault, soap, addressing } = *refusal;
                self.answer(context, asked, soap, &addressing, Err(fault))
            }
        }
    }

    /// The answer to what is no XML.
    fn unreadable(
        &self,
        context: &mut Context<'_>,
        asked: &Asked,
        soap: SoapVersion,
        why: String,
    ) -> Answer {
        let fault = Fault::new(FaultKind::Sender, why);
        self.answer(context, asked, soap, &Properties::default(), Err(fault))
    }

    fn answer(
        &self,
        context: &mut Context<'_>,
        asked: &Asked,
        soap: SoapVersion,
        addressing: &Properties,
        served: Result<Served, Fault>,
    ) -> Answer {
        let now_ms = self.settings.unix_ms(context.now);
        let (status, action) = match &served {
            Ok(Served::Accepted) => (202, String::new()),
            Ok(Served::Response(response)) => (200, response.action()),
            Err(fault) => (soap::status(soap, fault), fault.kind.action().to_owned()),
        };
        if let Err(fault) = &served {
            let connection = None;
            let why = format!("request {}: {}", asked.target.escape_debug(), fault.reason);
            context.core.tell(Event::Refused { protocol: Protocol::Wsn, connection, why });
        }
        if status == 202 || addressing.no_answer {
            return Answer { id: asked.id, status: 202, content_type: None, body: Bytes::new() };
        }
        let message_id = format!("urn:longwire:wsn:{now_ms:x}-{:x}", asked.id);
        let headers = addressing.version.map(|version| Headers {
            version,
            action: &action,
            to: None,
            message_id: Some(&message_id),
            relates_to: addressing.message_id.as_deref(),
            parameters: &[],
        });
        let body = envelope(
            soap,
            headers.as_ref(),
            |writer| {
                if let Err(fault) = &served {
                    write_not_understood(writer, soap, fault);
                }
            },
            |writer| match &served {
                Ok(Served::Response(response)) => response.write(writer),
                Err(fault) => write_fault(writer, soap, fault, now_ms),
                Ok(Served::Accepted) => {}
            },
        );
        let content_type = Some(soap.content_type(None));
        Answer { id: asked.id, status, content_type, body: body.into() }
    }

    /// A number for a resource.
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

/// An answer in words.
fn plain(id: u64, status: u16, what: &str) -> Answer {
    let content_type = Some("text/plain; charset=utf-8".to_owned());
    Answer { id, status, content_type, body: Bytes::copy_from_slice(what.as_bytes()) }
}

/// The WSDL, where it is asked for.
fn describe(settings: &Settings, asked: &Asked) -> Answer {
    let (_, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
    if query.eq_ignore_ascii_case("wsdl") {
        let body = wsdl::document(settings.address_for(asked.is_secure));
        let content_type = Some("text/xml; charset=utf-8".to_owned());
        return Answer { id: asked.id, status: 200, content_type, body: body.into() };
    }
    plain(asked.id, 404, "the description of this service is at ?wsdl")
}
