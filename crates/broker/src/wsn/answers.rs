//! What is answered and sent: the elements of WS-BaseNotification 1.3, WS-BrokeredNotification 1.3
//! and WS-ResourceProperties 1.2.

use codec::xml::Writer;

use super::addressing::write_reference;
use super::fault::text;
use super::names::{WSN_BR, WSN_BRW, WSNT, WSNT_BW, WSRF_RP, WSRF_RPW, WSTOP};
use super::soap::raw;
use super::time;
use super::topics::{Dialect, Written};

/// What a request is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Response {
    /// To Subscribe.
    Subscribe {
        /// Where the subscription is managed.
        reference: String,
        /// Now, and when it ends, in milliseconds since 1970.
        times_ms: (i64, i64),
    },
    /// To GetCurrentMessage: the message.
    CurrentMessage(String),
    /// To CreatePullPoint: where it is.
    PullPoint(String),
    /// To GetMessages.
    Messages(Vec<String>),
    /// To DestroyPullPoint.
    PullPointDestroyed,
    /// To Renew: now, and when the subscription ends, in milliseconds since 1970.
    Renew {
        /// See above.
        times_ms: (i64, i64),
    },
    /// To Unsubscribe.
    Unsubscribe,
    /// To PauseSubscription.
    Pause,
    /// To ResumeSubscription.
    Resume,
    /// To RegisterPublisher.
    Register {
        /// Where the registration is managed.
        reference: String,
        /// Where the publisher sends its messages.
        consumer: String,
    },
    /// To DestroyRegistration.
    RegistrationDestroyed,
    /// To GetResourceProperty, and to that for several: the properties.
    Properties(Vec<Property>, bool),
}

/// A property of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Property {
    /// With text, by namespace and name.
    Text(&'static str, &'static str, String),
    /// An endpoint reference in the namespace of WS-BaseNotification.
    Reference(&'static str, String),
    /// Which topics there are: expressions in the dialect Concrete.
    Topics(Vec<Written>),
}

impl Response {
    /// The element's prefix and name.
    fn name(&self) -> &'static str {
        match self {
            Self::Subscribe { .. } => "wsnt:SubscribeResponse",
            Self::CurrentMessage(_) => "wsnt:GetCurrentMessageResponse",
            Self::PullPoint(_) => "wsnt:CreatePullPointResponse",
            Self::Messages(_) => "wsnt:GetMessagesResponse",
            Self::PullPointDestroyed => "wsnt:DestroyPullPointResponse",
            Self::Renew { .. } => "wsnt:RenewResponse",
            Self::Unsubscribe => "wsnt:UnsubscribeResponse",
            Self::Pause => "wsnt:PauseSubscriptionResponse",
            Self::Resume => "wsnt:ResumeSubscriptionResponse",
            Self::Register { .. } => "wsn-br:RegisterPublisherResponse",
            Self::RegistrationDestroyed => "wsn-br:DestroyRegistrationResponse",
            Self::Properties(_, false) => "wsrf-rp:GetResourcePropertyResponse",
            Self::Properties(_, true) => "wsrf-rp:GetMultipleResourcePropertiesResponse",
        }
    }

    /// The port type that the operation belongs to.
    fn port_type(&self) -> &'static str {
        match self {
            Self::Subscribe { .. } | Self::CurrentMessage(_) => "NotificationProducer",
            Self::PullPoint(_) => "CreatePullPoint",
            Self::Messages(_) | Self::PullPointDestroyed => "PullPoint",
            Self::Renew { .. } | Self::Unsubscribe => "SubscriptionManager",
            Self::Pause | Self::Resume => "PausableSubscriptionManager",
            Self::Register { .. } => "RegisterPublisher",
            Self::RegistrationDestroyed => "PublisherRegistrationManager",
            Self::Properties(_, false) => "GetResourceProperty",
            Self::Properties(_, true) => "GetMultipleResourceProperties",
        }
    }

    /// The action (WS-Addressing 1.0 WSDL Binding §4.4.4, from the WSDL of the standards).
    #[must_use]
    pub(crate) fn action(&self) -> String {
        let (prefix, name) = self.name().split_once(':').unwrap_or_default();
        let uri = match prefix {
            "wsnt" => WSNT_BW,
            "wsn-br" => WSN_BRW,
            _ => WSRF_RPW,
        };
        format!("{uri}/{}/{name}", self.port_type())
    }

    /// Writes the content of the body.
    pub(super) fn write(&self, writer: &mut Writer) {
        let name = self.name();
        writer.start(name);
        let (prefix, _) = name.split_once(':').unwrap_or_default();
        writer.namespace(
            prefix,
            match prefix {
                "wsnt" => WSNT,
                "wsn-br" => WSN_BR,
                _ => WSRF_RP,
            },
        );
        match self {
            Self::Subscribe { reference, times_ms: (now, end) } => {
                write_reference(writer, "wsnt:SubscriptionReference", reference);
                text(writer, "wsnt:CurrentTime", &time::format(*now));
                text(writer, "wsnt:TerminationTime", &time::format(*end));
            }
            Self::CurrentMessage(element) => raw(writer, element),
            Self::PullPoint(address) => write_reference(writer, "wsnt:PullPoint", address),
            Self::Messages(messages) => messages.iter().for_each(|message| raw(writer, message)),
            Self::Renew { times_ms: (now, end) } => {
                text(writer, "wsnt:TerminationTime", &time::format(*end));
                text(writer, "wsnt:CurrentTime", &time::format(*now));
            }
            Self::Register { reference, consumer } => {
                write_reference(writer, "wsn-br:PublisherRegistrationReference", reference);
                write_reference(writer, "wsn-br:ConsumerReference", consumer);
            }
            Self::Properties(properties, _) => {
                properties.iter().for_each(|property| property.write(writer));
            }
            Self::PullPointDestroyed
            | Self::Unsubscribe
            | Self::Pause
            | Self::Resume
            | Self::RegistrationDestroyed => {}
        }
        writer.end(name);
    }
}

impl Property {
    fn write(&self, writer: &mut Writer) {
        match self {
            Self::Text(uri, local, value) => {
                let name = format!("p:{local}");
                writer.start(&name);
                writer.namespace("p", uri);
                writer.text(value);
                writer.end(&name);
            }
            Self::Reference(local, address) => {
                let name = format!("wsnt:{local}");
                writer.start(&name);
                writer.namespace("wsnt", WSNT);
                writer.start("wsa:Address");
                writer.namespace("wsa", super::names::WSA);
                writer.text(address);
                writer.end("wsa:Address");
                writer.end(&name);
            }
            Self::Topics(topics) => write_topic_set(writer, topics),
        }
    }
}

/// An element that is open: the namespace of its prefix, and its name as written.
type Level<'a> = (&'a str, &'a str);

/// Writes `wstop:TopicSet`: an element for each level, marked where it is a topic. Topics come in
/// the order of their paths, so that those of one parent follow each other.
fn write_topic_set(writer: &mut Writer, topics: &[Written]) {
    writer.start("wstop:TopicSet");
    writer.namespace("wstop", WSTOP);
    let mut open: Vec<Level<'_>> = Vec::new();
    for topic in topics {
        let path: Vec<Level<'_>> =
            topic.text.split('/').map(|name| (topic.namespace(name), name)).collect();
        let same = open.iter().zip(&path).take_while(|(open, level)| open == level).count();
        // The last level is one of its own, or it would not be marked.
        let common = same.min(path.len().saturating_sub(1));
        close(writer, &mut open, common);
        for (at, level) in path.iter().enumerate().skip(common) {
            writer.start(level.1);
            if at == common {
                for (prefix, uri) in &topic.namespaces {
                    let is_of = |(_, name): &Level<'_>| {
                        name.split_once(':').is_some_and(|(of, _)| of == prefix)
                    };
                    if path.iter().skip(common).any(is_of) {
                        writer.namespace(prefix, uri);
                    }
                }
            }
            if at + 1 == path.len() {
                writer.attribute("wstop:topic", "true");
            }
            open.push(*level);
        }
    }
    close(writer, &mut open, 0);
    writer.end("wstop:TopicSet");
}

fn close(writer: &mut Writer, open: &mut Vec<Level<'_>>, left: usize) {
    while open.len() > left {
        let Some((_, name)) = open.pop() else { return };
        writer.end(name);
    }
}

/// A message as `NotificationMessage`, whose prefix `wsnt` is declared around it.
#[must_use]
pub(super) fn notification(topic: &Written, dialect: Dialect, element: &str) -> String {
    let mut writer = Writer::new();
    writer.start("wsnt:NotificationMessage");
    writer.start("wsnt:Topic");
    writer.attribute("Dialect", dialect.uri());
    for (prefix, uri) in &topic.namespaces {
        writer.namespace(prefix, uri);
    }
    writer.text(&topic.text);
    writer.end("wsnt:Topic");
    writer.start("wsnt:Message");
    raw(&mut writer, element);
    writer.end("wsnt:Message");
    writer.end("wsnt:NotificationMessage");
    String::from_utf8(writer.finish()).unwrap_or_default()
}

/// Writes a Notify of messages that were made by [`notification`].
pub(super) fn write_notify(writer: &mut Writer, notifications: &[String]) {
    writer.start("wsnt:Notify");
    writer.namespace("wsnt", WSNT);
    notifications.iter().for_each(|notification| raw(writer, notification));
    writer.end("wsnt:Notify");
}
