//! What a client of WS-Notification says and reads: the other side of what this adapter serves.
//!
//! Requests are envelopes of SOAP 1.1, which every peer takes; answers are read in either version.
//! Topics and filters are those of MQTT, and stand in no namespace.

use std::time::Duration;

use bytes::Bytes;
use codec::xml::{Writer, to_utf8};

use super::addressing::{Endpoint, Headers};
use super::answers::{notification, write_notify};
use super::fault::text;
use super::names::{LW, SOAP11, SOAP12, WSA, WSNT, WSNT_BW};
use super::payload::{self, Payload};
use super::requests::notifications;
use super::soap::{Envelope, SoapVersion, envelope, raw};
use super::time::Until;
use super::topics::{Dialect, Spelling, Topics};
use super::tree::{NodeId, Tree};
use crate::publication::Form;

/// The media type of requests.
pub const CONTENT_TYPE: &str = "text/xml; charset=utf-8";
/// The field SOAPAction of requests (SOAP 1.1 §6.1.1).
pub const SOAP_ACTION: &str = "\"\"";

/// Longest text of a fault that is shown.
const MAX_FAULT_CHARS: usize = 400;
/// Longest lifetime that is believed.
const MAX_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// How topics are spelt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// By the dialect Full where there are wildcards, Simple for one level, otherwise Concrete.
    #[default]
    Usual,
    /// The whole topic as one name of the dialect Simple, for peers who know no other.
    Simple,
}

impl Manner {
    fn spelling(self, filter: &str) -> Spelling {
        let dialect = match self {
            Self::Usual if filter.contains(['+', '#']) => Dialect::Full,
            Self::Usual if filter.contains('/') => Dialect::Concrete,
            Self::Usual | Self::Simple => Dialect::Simple,
        };
        Spelling { dialect, qualified: false }
    }
}

/// What is published.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The payload: an element where it is XML, as text or in base64 in one of ours otherwise.
    pub payload: &'a [u8],
    /// The media type, if somebody says it.
    pub content_type: Option<&'a str>,
    /// Names and values, for a header of ours.
    pub properties: &'a [(String, String)],
}

/// A message that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notified {
    /// The topic, if it has one.
    pub topic: Option<String>,
    /// What it says.
    pub payload: Bytes,
    /// The media type, if it is known.
    pub content_type: Option<String>,
    /// Names and values of a header of ours.
    pub properties: Vec<(String, String)>,
}

/// Where something is managed: an endpoint reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference(Endpoint);

impl Reference {
    /// Its address, of HTTP.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.0.address
    }
}

/// A subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscribed {
    /// Where it is renewed and ended.
    pub reference: Reference,
    /// How long it lasts, if the broker says it.
    pub lifetime: Option<Duration>,
}

/// How somebody subscribes.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// A filter of topics.
    pub filter: &'a str,
    /// How it is spelt.
    pub manner: Manner,
    /// How long the subscription lasts unless it is renewed.
    pub lifetime: Duration,
    /// Policies of ours: properties come in a header, and the value that topics have comes first
    /// where that is wanted. Others refuse policies that they do not know.
    pub policies: Option<Policies>,
}

/// See [`Wish::policies`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policies {
    /// The value that topics have comes first.
    pub send_current: bool,
}

/// The envelope of a request, with the parameters of where it goes.
fn request(action: &str, to: Option<&Reference>, body: impl FnOnce(&mut Writer)) -> Bytes {
    let endpoint = to.map(|to| &to.0).filter(|to| !to.parameters.is_empty());
    let headers = endpoint.map(|to| Headers {
        version: to.version,
        action,
        to: Some(&to.address),
        message_id: None,
        relates_to: None,
        parameters: &to.parameters,
    });
    envelope(SoapVersion::V11, headers.as_ref(), |_| (), body).into()
}

/// An empty element of WS-BaseNotification as a request.
fn plain(port_type: &str, name: &str, to: Option<&Reference>, more: impl Fn(&mut Writer)) -> Bytes {
    let action = format!("{WSNT_BW}/{port_type}/{name}Request");
    let element = format!("wsnt:{name}");
    request(&action, to, |writer| {
        writer.start(&element);
        writer.namespace("wsnt", WSNT);
        more(writer);
        writer.end(&element);
    })
}

fn seconds(duration: Duration) -> String {
    format!("PT{}S", duration.as_secs().max(1))
}

/// A Notify of one message.
///
/// # Errors
/// A topic that is none.
pub fn notify(said: &Said<'_>, manner: Manner) -> Result<Bytes, String> {
    crate::filter::check_name(said.topic).map_err(|what| format!("the topic: {what}"))?;
    let spelling = manner.spelling(said.topic);
    let topic = Topics::new(&[]).write_topic(said.topic, spelling);
    let form = match (said.content_type, str::from_utf8(said.payload)) {
        (None, Ok(text)) if Tree::parse(text).is_ok() => Form::Xml,
        (None, Ok(_)) => Form::Text,
        _ => Form::Bytes,
    };
    let element = payload::to_element(said.payload, form, said.content_type);
    let message = notification(&topic, spelling.dialect, &element);
    let blocks = |writer: &mut Writer| {
        if !said.properties.is_empty() {
            payload::write_properties(writer, said.properties);
        }
    };
    let body = |writer: &mut Writer| write_notify(writer, &[message]);
    Ok(envelope(SoapVersion::V11, None, blocks, body).into())
}

/// A Subscribe for a consumer at an address, or with the reference of a pull point.
///
/// # Errors
/// A filter that cannot be said.
pub fn subscribe(consumer: Result<&str, &Reference>, wish: &Wish<'_>) -> Result<Bytes, String> {
    let spelling = wish.manner.spelling(wish.filter);
    let written = Topics::new(&[]).write_filter(spelling, wish.filter);
    let written = written.map_err(|what| format!("the filter {}: {what}", wish.filter))?;
    let (address, parameters) = match consumer {
        Ok(address) => (address, &[][..]),
        Err(Reference(endpoint)) => (&*endpoint.address, &*endpoint.parameters),
    };
    let action = format!("{WSNT_BW}/NotificationProducer/SubscribeRequest");
    Ok(request(&action, None, |writer| {
        writer.start("wsnt:Subscribe");
        writer.namespace("wsnt", WSNT);
        writer.start("wsnt:ConsumerReference");
        writer.start("wsa:Address");
        writer.namespace("wsa", WSA);
        writer.text(address);
        writer.end("wsa:Address");
        if !parameters.is_empty() {
            writer.start("wsa:ReferenceParameters");
            writer.namespace("wsa", WSA);
            parameters.iter().for_each(|parameter| raw(writer, parameter));
            writer.end("wsa:ReferenceParameters");
        }
        writer.end("wsnt:ConsumerReference");
        writer.start("wsnt:Filter");
        writer.start("wsnt:TopicExpression");
        writer.attribute("Dialect", spelling.dialect.uri());
        for (prefix, uri) in &written.namespaces {
            writer.namespace(prefix, uri);
        }
        writer.text(&written.text);
        writer.end("wsnt:TopicExpression");
        writer.end("wsnt:Filter");
        text(writer, "wsnt:InitialTerminationTime", &seconds(wish.lifetime));
        if let Some(policies) = wish.policies {
            writer.start("wsnt:SubscriptionPolicy");
            writer.namespace("lw", LW);
            text(writer, "lw:Properties", "");
            if policies.send_current {
                text(writer, "lw:SendCurrent", "");
            }
            writer.end("wsnt:SubscriptionPolicy");
        }
        writer.end("wsnt:Subscribe");
    }))
}

/// A Renew.
#[must_use]
pub fn renew(of: &Reference, lifetime: Duration) -> Bytes {
    plain("SubscriptionManager", "Renew", Some(of), |writer| {
        text(writer, "wsnt:TerminationTime", &seconds(lifetime));
    })
}

/// An Unsubscribe.
#[must_use]
pub fn unsubscribe(of: &Reference) -> Bytes {
    plain("SubscriptionManager", "Unsubscribe", Some(of), |_| ())
}

/// A CreatePullPoint.
#[must_use]
pub fn create_pull_point() -> Bytes {
    plain("CreatePullPoint", "CreatePullPoint", None, |_| ())
}

/// A GetMessages of a pull point.
#[must_use]
pub fn get_messages(of: &Reference, most: usize) -> Bytes {
    plain("PullPoint", "GetMessages", Some(of), |writer| {
        text(writer, "wsnt:MaximumNumber", &most.to_string());
    })
}

/// A DestroyPullPoint.
#[must_use]
pub fn destroy_pull_point(of: &Reference) -> Bytes {
    plain("PullPoint", "DestroyPullPoint", Some(of), |_| ())
}

/// Reads an envelope, and hands on what its body holds.
fn read<T>(
    body: &[u8],
    of: impl FnOnce(&Tree<'_>, &Envelope, NodeId) -> Result<T, String>,
) -> Result<T, String> {
    let words = |error: codec::Error| error.to_string();
    let document = to_utf8(body, &codec::Limits::default()).map_err(words)?;
    let tree = Tree::parse(&document).map_err(words)?;
    let envelope = Envelope::read(&tree).map_err(|refusal| refusal.fault.reason.clone())?;
    let content = envelope.body.ok_or("an envelope with nothing in its body")?;
    match fault_of(&tree, content) {
        Some(fault) => Err(fault),
        None => of(&tree, &envelope, content),
    }
}

/// What a fault says: the name of its detail, and the words.
fn fault_of(tree: &Tree<'_>, content: NodeId) -> Option<String> {
    let is_12 = tree.is(content, SOAP12, "Fault");
    if !is_12 && !tree.is(content, SOAP11, "Fault") {
        return None;
    }
    let (detail, words) = if is_12 {
        let reason = tree.child(content, SOAP12, "Reason");
        let words = reason.and_then(|reason| tree.child(reason, SOAP12, "Text"));
        (tree.child(content, SOAP12, "Detail"), words)
    } else {
        (tree.child(content, "", "detail"), tree.child(content, "", "faultstring"))
    };
    let name = detail.and_then(|detail| tree.elements(detail).next());
    let name = name.map_or("Fault", |name| tree.name(name).local);
    let words = words.map(|words| tree.text(words).into_owned()).unwrap_or_default();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = if words.is_empty() { name.to_owned() } else { format!("{name}: {words}") };
    Some(text.chars().take(MAX_FAULT_CHARS).collect())
}

/// The fault of an answer, if it is one.
#[must_use]
pub fn read_fault(body: &[u8]) -> Option<String> {
    read(body, |_, _, _| Ok(())).err()
}

/// How long something lasts by the answer's own clock.
fn lifetime(tree: &Tree<'_>, content: NodeId) -> Option<Duration> {
    let time = |name| {
        let element = tree.child(content, WSNT, name)?;
        Some(Until::parse(&tree.text(element))?.resolve(0))
    };
    let (now, end) = (time("CurrentTime")?, time("TerminationTime")?);
    let left = u64::try_from(end.checked_sub(now)?).ok()?;
    Some(Duration::from_millis(left).min(MAX_LIFETIME))
}

fn endpoint(tree: &Tree<'_>, content: NodeId, name: &str) -> Result<Reference, String> {
    let element =
        tree.child(content, WSNT, name).ok_or_else(|| format!("an answer without {name}"))?;
    let endpoint = Endpoint::read(tree, element)?;
    if !endpoint.is_http() {
        return Err(format!("{name} is at {}, which is not of HTTP", endpoint.address));
    }
    Ok(Reference(endpoint))
}

/// The answer to a Subscribe.
///
/// # Errors
/// The fault, or what is wrong with the answer.
pub fn read_subscribed(body: &[u8]) -> Result<Subscribed, String> {
    read(body, |tree, _, content| {
        let reference = endpoint(tree, content, "SubscriptionReference")?;
        Ok(Subscribed { reference, lifetime: lifetime(tree, content) })
    })
}

/// The answer to a Renew: how long the subscription lasts now, if it says it.
///
/// # Errors
/// The fault, or what is wrong with the answer.
pub fn read_renewed(body: &[u8]) -> Result<Option<Duration>, String> {
    read(body, |tree, _, content| Ok(lifetime(tree, content)))
}

/// The answer to a CreatePullPoint.
///
/// # Errors
/// The fault, or what is wrong with the answer.
pub fn read_pull_point(body: &[u8]) -> Result<Reference, String> {
    read(body, |tree, _, content| endpoint(tree, content, "PullPoint"))
}

/// The messages of a Notify, of a message without one, or of the answer to a GetMessages.
///
/// # Errors
/// The fault, or what is wrong with it.
pub fn read_messages(body: &[u8]) -> Result<Vec<Notified>, String> {
    read(body, |tree, envelope, content| {
        let is_holder =
            ["Notify", "GetMessagesResponse"].iter().any(|name| tree.is(content, WSNT, name));
        let all = if is_holder {
            let all = notifications(tree, content, &Topics::new(&[]));
            let all = all.map_err(|fault| fault.reason)?.into_iter();
            all.map(|one| (one.topic, one.payload)).collect()
        } else {
            vec![(None, payload::of_element(tree, content)?)]
        };
        let of = |(topic, Payload { bytes, content_type, .. })| Notified {
            topic,
            payload: bytes,
            content_type,
            properties: envelope.properties.clone(),
        };
        Ok(all.into_iter().map(of).collect())
    })
}
