//! Faults: of SOAP, of WS-Addressing, and those of WS-Notification with the detail of
//! WS-BaseFaults 1.2.

use codec::xml::{Writer, is_text};

use super::names::{WSA, WSN_BR, WSNT, WSRF_BF, WSRF_R, WSRF_RP};
use super::time;

/// Longest reason that is sent: parts of it may be the peer's own text.
const MAX_REASON_CHARS: usize = 400;

/// Which fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// SOAP 1.2 Part 1 §5.4.6, `VersionMismatch`.
    VersionMismatch,
    /// SOAP 1.2 Part 1 §5.4.8, `MustUnderstand`.
    MustUnderstand,
    /// The request is wrong (`Sender`, in SOAP 1.1 `Client`).
    Sender,
    /// The broker cannot (`Receiver`, in SOAP 1.1 `Server`).
    Receiver,
    /// One of WS-Addressing (WS-Addressing 1.0 SOAP Binding §6.4).
    Addressing(&'static str),
    /// One whose detail is a base fault: namespace and element, without `Fault` at its end.
    Base(&'static str, &'static str),
}

/// The faults of WS-Notification and WS-Resource by name.
impl FaultKind {
    /// The resource that the address names is not there (WS-Resource 1.2).
    pub(crate) const RESOURCE_UNKNOWN: Self = Self::Base(WSRF_R, "ResourceUnknown");
    /// WS-ResourceProperties 1.2.
    pub(crate) const INVALID_PROPERTY_NAME: Self =
        Self::Base(WSRF_RP, "InvalidResourcePropertyQName");
    /// WS-BaseNotification 1.3; and so those below.
    pub(crate) const SUBSCRIBE_CREATION_FAILED: Self = Self::Base(WSNT, "SubscribeCreationFailed");
    /// A filter of an unknown kind.
    pub(crate) const INVALID_FILTER: Self = Self::Base(WSNT, "InvalidFilter");
    /// A dialect that is none of the three.
    pub(crate) const DIALECT_UNKNOWN: Self = Self::Base(WSNT, "TopicExpressionDialectUnknown");
    /// An expression that is none of its dialect, or says what no filter of MQTT says.
    pub(crate) const INVALID_TOPIC_EXPRESSION: Self = Self::Base(WSNT, "InvalidTopicExpression");
    /// A topic that MQTT cannot have.
    pub(crate) const TOPIC_NOT_SUPPORTED: Self = Self::Base(WSNT, "TopicNotSupported");
    /// GetCurrentMessage for several topics.
    pub(crate) const MULTIPLE_TOPICS: Self = Self::Base(WSNT, "MultipleTopicsSpecified");
    /// A filter by properties of the producer.
    pub(crate) const INVALID_PRODUCER_PROPERTIES: Self =
        Self::Base(WSNT, "InvalidProducerPropertiesExpression");
    /// A filter of content that is not supported.
    pub(crate) const INVALID_MESSAGE_CONTENT: Self =
        Self::Base(WSNT, "InvalidMessageContentExpression");
    /// A policy that is not known.
    pub(crate) const UNRECOGNIZED_POLICY: Self = Self::Base(WSNT, "UnrecognizedPolicyRequest");
    /// A time in the past or too far in the future.
    pub(crate) const UNACCEPTABLE_INITIAL_TIME: Self =
        Self::Base(WSNT, "UnacceptableInitialTerminationTime");
    /// The same of Renew.
    pub(crate) const UNACCEPTABLE_TIME: Self = Self::Base(WSNT, "UnacceptableTerminationTime");
    /// The subscription is another user's.
    pub(crate) const UNABLE_TO_DESTROY_SUBSCRIPTION: Self =
        Self::Base(WSNT, "UnableToDestroySubscription");
    /// The subscription cannot be paused by who asks.
    pub(crate) const PAUSE_FAILED: Self = Self::Base(WSNT, "PauseFailed");
    /// The subscription cannot be resumed by who asks.
    pub(crate) const RESUME_FAILED: Self = Self::Base(WSNT, "ResumeFailed");
    /// The pull point is another user's.
    pub(crate) const UNABLE_TO_DESTROY_PULL_POINT: Self =
        Self::Base(WSNT, "UnableToDestroyPullPoint");
    /// The registration is another user's.
    pub(crate) const RESOURCE_NOT_DESTROYED: Self = Self::Base(WSN_BR, "ResourceNotDestroyed");
    /// Nothing is retained.
    pub(crate) const NO_CURRENT_MESSAGE: Self = Self::Base(WSNT, "NoCurrentMessageOnTopic");
    /// The pull point has nothing to give that can be given.
    pub(crate) const UNABLE_TO_GET_MESSAGES: Self = Self::Base(WSNT, "UnableToGetMessages");
    /// The pull point cannot be made.
    pub(crate) const UNABLE_TO_CREATE_PULL_POINT: Self =
        Self::Base(WSNT, "UnableToCreatePullPoint");
    /// The publisher is not taken (WS-BrokeredNotification 1.3).
    pub(crate) const REGISTRATION_REJECTED: Self =
        Self::Base(WSN_BR, "PublisherRegistrationRejected");
    /// The publisher cannot be registered (WS-BrokeredNotification 1.3).
    pub(crate) const REGISTRATION_FAILED: Self = Self::Base(WSN_BR, "PublisherRegistrationFailed");

    /// Whether the sender is at fault.
    pub(super) fn is_sender(self) -> bool {
        match self {
            Self::Sender | Self::Addressing(_) => true,
            Self::VersionMismatch | Self::MustUnderstand | Self::Receiver => false,
            Self::Base(..) => !matches!(
                self,
                Self::SUBSCRIBE_CREATION_FAILED
                    | Self::UNABLE_TO_CREATE_PULL_POINT
                    | Self::UNABLE_TO_GET_MESSAGES
                    | Self::REGISTRATION_FAILED
            ),
        }
    }

    /// The action of the answer (WS-Addressing 1.0 SOAP Binding §6; WS-BaseNotification 1.3).
    pub(super) fn action(self) -> &'static str {
        match self {
            Self::Addressing(_) => "http://www.w3.org/2005/08/addressing/fault",
            Self::Base(WSRF_R | WSRF_RP, _) => "http://docs.oasis-open.org/wsrf/fault",
            Self::Base(..) => "http://docs.oasis-open.org/wsn/fault",
            _ => "http://www.w3.org/2005/08/addressing/soap/fault",
        }
    }

    /// The code below the one of SOAP, as namespace, prefix and name.
    pub(super) fn subcode(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Addressing(name) => Some((WSA, name)),
            _ => None,
        }
    }
}

/// A fault that is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Which.
    pub(crate) kind: FaultKind,
    /// What is wrong, for people.
    pub(crate) reason: String,
    /// QNames that the fault is about, as namespace and local part.
    pub(crate) names: Vec<(String, String)>,
    /// The earliest and the latest time that would do, in milliseconds since 1970.
    pub(crate) times: Option<(i64, i64)>,
}

impl Fault {
    /// A fault with its reason.
    #[must_use]
    pub(crate) fn new(kind: FaultKind, reason: impl Into<String>) -> Self {
        let reason: String = reason.into();
        let reason: String = reason.chars().take(MAX_REASON_CHARS).collect();
        let reason = if is_text(&reason) { reason } else { "unprintable".to_owned() };
        Self { kind, reason, names: Vec::new(), times: None }
    }

    /// The same about names.
    #[must_use]
    pub(crate) fn of_names(mut self, names: Vec<(String, String)>) -> Self {
        self.names = names;
        self
    }

    /// The same with the times that would do.
    #[must_use]
    pub(crate) fn of_times(mut self, earliest_ms: i64, latest_ms: i64) -> Self {
        self.times = Some((earliest_ms, latest_ms));
        self
    }

    /// Writes the base fault, where it is one (WS-BaseFaults 1.2, `BaseFaultType`).
    pub(super) fn write_detail(&self, writer: &mut Writer, now_ms: i64) {
        let FaultKind::Base(uri, name) = self.kind else { return };
        let element = format!("f:{name}Fault");
        writer.start(&element);
        writer.namespace("f", uri);
        writer.namespace("wsrf-bf", WSRF_BF);
        text(writer, "wsrf-bf:Timestamp", &time::format(now_ms));
        writer.start("wsrf-bf:Description");
        writer.attribute("xml:lang", "en");
        writer.text(&self.reason);
        writer.end("wsrf-bf:Description");
        let about = match self.kind {
            FaultKind::INVALID_FILTER => Some("f:UnknownFilter"),
            FaultKind::UNRECOGNIZED_POLICY => Some("f:UnrecognizedPolicy"),
            _ => None,
        };
        for (uri, local) in about.iter().flat_map(|_| &self.names) {
            let about = about.unwrap_or_default();
            writer.start(about);
            if uri.is_empty() {
                writer.text(local);
            } else {
                writer.namespace("n", uri);
                writer.text(&format!("n:{local}"));
            }
            writer.end(about);
        }
        if let Some((earliest, latest)) = self.times {
            text(writer, "f:MinimumTime", &time::format(earliest));
            text(writer, "f:MaximumTime", &time::format(latest));
        }
        writer.end(&element);
    }
}

/// An element with text.
pub(super) fn text(writer: &mut Writer, name: &str, text: &str) {
    writer.start(name);
    writer.text(text);
    writer.end(name);
}
