//! What requests ask for: the elements of WS-BaseNotification 1.3, WS-BrokeredNotification 1.3 and
//! WS-ResourceProperties 1.2.

use super::addressing::Endpoint;
use super::fault::{Fault, FaultKind};
use super::names::{LW, WSN_BR, WSNT, WSRF_RP, XPATH, XSI};
use super::payload::{self, Payload};
use super::time::Until;
use super::topics::{Dialect, Refused, Spelling, Topics};
use super::tree::{NodeId, Tree};
use super::xpath;

/// Most messages of one Notify.
pub(crate) const MAX_NOTIFICATIONS: usize = 1000;
/// Most filters by content of one subscription: each is evaluated for each message.
pub(crate) const MAX_CONTENT_FILTERS: usize = 8;
/// Most topics of one registration.
pub(crate) const MAX_REGISTERED_TOPICS: usize = 64;
/// Names that a fault tells of.
const MAX_NAMED: usize = 16;

/// A message of a Notify.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notification {
    /// Its topic in MQTT's form, if it has one.
    pub(crate) topic: Option<String>,
    /// What it says.
    pub(crate) payload: Payload,
    /// The message as an element of its own, as it came.
    pub(crate) element: String,
}

/// What a subscriber wants besides (`SubscriptionPolicyType`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Messages are sent without Notify around them.
    pub(crate) use_raw: bool,
    /// What is retained is sent at the begin (`lw:SendCurrent`).
    pub(crate) send_current: bool,
    /// Properties come in a header (`lw:Properties`).
    pub(crate) properties: bool,
}

/// `wsnt:Subscribe`.
#[derive(Clone, Debug)]
pub(crate) struct Subscribe {
    /// To whom.
    pub(crate) consumer: Endpoint,
    /// Of which topics: filters of MQTT.
    pub(crate) filters: Vec<String>,
    /// How the subscriber spells topics.
    pub(crate) spelling: Spelling,
    /// Which contents; all of them must pass.
    pub(crate) contents: Vec<xpath::Filter>,
    /// Until when; `None`: as long as the broker likes.
    pub(crate) until: Option<Until>,
    /// How.
    pub(crate) policy: Policy,
}

/// `wsn-br:RegisterPublisher`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RegisterPublisher {
    /// Who publishes.
    pub(crate) publisher: Option<Endpoint>,
    /// What: filters of MQTT.
    pub(crate) filters: Vec<String>,
    /// How it spells them.
    pub(crate) spelling: Spelling,
    /// It publishes only what somebody has subscribed to.
    pub(crate) demand: bool,
    /// Until when; `None`: as long as the broker likes.
    pub(crate) until: Option<Until>,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    /// To subscribe.
    Subscribe(Box<Subscribe>),
    /// To publish.
    Notify(Vec<Notification>),
    /// What a topic's present value is.
    GetCurrentMessage(String),
    /// A queue that is asked for what is in it.
    CreatePullPoint,
    /// What is in it, at most so many.
    GetMessages(Option<usize>),
    /// It is of no use any more.
    DestroyPullPoint,
    /// Another termination; `None`: as long as the broker likes.
    Renew(Option<Until>),
    /// To end a subscription.
    Unsubscribe,
    /// To send nothing for a while.
    Pause,
    /// To send again.
    Resume,
    /// To register a publisher.
    Register(Box<RegisterPublisher>),
    /// It publishes no more.
    DestroyRegistration,
    /// Properties of a resource by name, and whether they were asked for as several.
    GetProperties(Vec<(String, String)>, bool),
    /// A message that was sent without Notify around it.
    Raw(Payload),
}

fn sender(what: &'static str) -> Fault {
    Fault::new(FaultKind::Sender, what)
}

impl Request {
    /// Reads the element of a body.
    ///
    /// # Errors
    /// The fault to answer with.
    pub(crate) fn read(tree: &Tree<'_>, body: NodeId, topics: &Topics<'_>) -> Result<Self, Fault> {
        let reader = Reader { tree, topics };
        let name = tree.name(body);
        Ok(match (name.uri, name.local) {
            (WSNT, "Subscribe") => Self::Subscribe(Box::new(reader.subscribe(body)?)),
            (WSNT, "Notify") => Self::Notify(reader.notify(body)?),
            (WSNT, "GetCurrentMessage") => {
                let Some(topic) = tree.child(body, WSNT, "Topic") else {
                    return Err(sender("GetCurrentMessage without Topic"));
                };
                let (filters, _) = reader.filters(topic)?;
                match &*filters {
                    [topic] if !topic.contains(['+', '#']) => {
                        Self::GetCurrentMessage(topic.clone())
                    }
                    _ => {
                        let what = "a current message is that of one topic";
                        return Err(Fault::new(FaultKind::MULTIPLE_TOPICS, what));
                    }
                }
            }
            (WSNT, "CreatePullPoint") => Self::CreatePullPoint,
            (WSNT, "GetMessages") => Self::GetMessages(reader.maximum(body)?),
            (WSNT, "DestroyPullPoint") => Self::DestroyPullPoint,
            (WSNT, "Renew") => {
                let Some(time) = tree.child(body, WSNT, "TerminationTime") else {
                    return Err(sender("Renew without TerminationTime"));
                };
                Self::Renew(reader.until(time)?)
            }
            (WSNT, "Unsubscribe") => Self::Unsubscribe,
            (WSNT, "PauseSubscription") => Self::Pause,
            (WSNT, "ResumeSubscription") => Self::Resume,
            (WSN_BR, "RegisterPublisher") => Self::Register(Box::new(reader.register(body)?)),
            (WSN_BR, "DestroyRegistration") => Self::DestroyRegistration,
            (WSRF_RP, "GetResourceProperty") => {
                Self::GetProperties(vec![reader.property(body)?], false)
            }
            (WSRF_RP, "GetMultipleResourceProperties") => {
                let names = tree.elements(body).map(|name| reader.property(name));
                let names: Result<Vec<_>, _> = names.take(MAX_NAMED).collect();
                Self::GetProperties(names?, true)
            }
            (WSNT | WSN_BR | WSRF_RP, _) => {
                return Err(Fault::new(
                    FaultKind::Addressing("ActionNotSupported"),
                    format!("the operation '{}' is not supported", name.local),
                ));
            }
            _ => Self::Raw(payload::of_element(tree, body).map_err(sender)?),
        })
    }
}

/// The messages that an element holds, in a Notify or in the answer to `GetMessages`.
///
/// # Errors
/// The fault to answer with.
pub(super) fn notifications(
    tree: &Tree<'_>,
    element: NodeId,
    topics: &Topics<'_>,
) -> Result<Vec<Notification>, Fault> {
    Reader { tree, topics }.notifications(element)
}

struct Reader<'t, 'a> {
    tree: &'t Tree<'a>,
    topics: &'t Topics<'t>,
}

/// The fault of an expression that is refused.
fn refused(refused: Refused) -> Fault {
    let kind = match refused {
        Refused::Invalid(_) => FaultKind::INVALID_TOPIC_EXPRESSION,
        Refused::Unsupported(_) => FaultKind::TOPIC_NOT_SUPPORTED,
    };
    Fault::new(kind, refused.to_string())
}

impl Reader<'_, '_> {
    /// The dialect and text of an expression.
    fn expression(&self, element: NodeId) -> Result<(Dialect, String), Fault> {
        // The schema demands it, but CXF leaves it out, and means the first.
        let uri = self.tree.attribute(element, "", "Dialect");
        let Some(dialect) = Dialect::of_uri(uri.unwrap_or(Dialect::Simple.uri())) else {
            let what = "the dialects are Simple, Concrete and Full of WS-Topics 1.3";
            return Err(Fault::new(FaultKind::DIALECT_UNKNOWN, what));
        };
        if self.tree.elements(element).next().is_some() {
            let what = "an expression is text";
            return Err(Fault::new(FaultKind::INVALID_TOPIC_EXPRESSION, what));
        }
        Ok((dialect, self.tree.text(element).into_owned()))
    }

    fn filters(&self, element: NodeId) -> Result<(Vec<String>, Spelling), Fault> {
        let (dialect, text) = self.expression(element)?;
        let resolve = |prefix: &str| self.tree.namespace(element, prefix).map(str::to_owned);
        self.topics.read_filters(dialect, &text, &resolve).map_err(refused)
    }

    fn topic(&self, element: NodeId) -> Result<String, Fault> {
        let (dialect, text) = self.expression(element)?;
        let resolve = |prefix: &str| self.tree.namespace(element, prefix).map(str::to_owned);
        self.topics.read_topic(dialect, &text, &resolve).map_err(refused)
    }

    fn maximum(&self, body: NodeId) -> Result<Option<usize>, Fault> {
        let Some(maximum) = self.tree.child(body, WSNT, "MaximumNumber") else { return Ok(None) };
        let text = self.tree.text(maximum);
        let text = text.trim().trim_start_matches('+');
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(sender("MaximumNumber is a number"));
        }
        Ok(Some(text.parse().unwrap_or(usize::MAX)))
    }

    fn is_nil(&self, element: NodeId) -> bool {
        matches!(self.tree.attribute(element, XSI, "nil").map(str::trim), Some("1" | "true"))
    }

    fn until(&self, element: NodeId) -> Result<Option<Until>, Fault> {
        if self.is_nil(element) {
            return Ok(None);
        }
        let text = self.tree.text(element);
        // What is no time is not an unacceptable one: it breaks the schema.
        Until::parse(&text)
            .map(Some)
            .ok_or_else(|| sender("a termination is a dateTime or a duration"))
    }

    fn endpoint(&self, element: NodeId) -> Result<Endpoint, Fault> {
        Endpoint::read(self.tree, element).map_err(sender)
    }

    fn names(&self, nodes: &[NodeId]) -> Vec<(String, String)> {
        let names = nodes.iter().take(MAX_NAMED).map(|node| self.tree.name(*node));
        names.map(|name| (name.uri.to_owned(), name.local.to_owned())).collect()
    }

    fn subscribe(&self, body: NodeId) -> Result<Subscribe, Fault> {
        let Some(consumer) = self.tree.child(body, WSNT, "ConsumerReference") else {
            return Err(sender("Subscribe without ConsumerReference"));
        };
        let mut subscribe = Subscribe {
            consumer: self.endpoint(consumer)?,
            filters: Vec::new(),
            spelling: Spelling::default(),
            contents: Vec::new(),
            until: None,
            policy: Policy::default(),
        };
        if let Some(filter) = self.tree.child(body, WSNT, "Filter") {
            self.filter(filter, &mut subscribe)?;
        }
        if subscribe.filters.is_empty() {
            subscribe.filters.push("#".to_owned());
        }
        if let Some(time) = self.tree.child(body, WSNT, "InitialTerminationTime") {
            subscribe.until = self.until(time)?;
        }
        if let Some(policy) = self.tree.child(body, WSNT, "SubscriptionPolicy") {
            subscribe.policy = self.policy(policy)?;
        }
        Ok(subscribe)
    }

    fn filter(&self, filter: NodeId, subscribe: &mut Subscribe) -> Result<(), Fault> {
        let mut unknown = Vec::new();
        for part in self.tree.elements(filter) {
            let name = self.tree.name(part);
            match (name.uri, name.local) {
                // Both of two would have to fit, which no filter of MQTT says.
                (WSNT, "TopicExpression") if subscribe.filters.is_empty() => {
                    (subscribe.filters, subscribe.spelling) = self.filters(part)?;
                }
                (WSNT, "MessageContent") => subscribe.contents.push(self.content(part)?),
                (WSNT, "ProducerProperties") => {
                    let what = "publications have no properties of their producer";
                    return Err(Fault::new(FaultKind::INVALID_PRODUCER_PROPERTIES, what));
                }
                _ => unknown.push(part),
            }
            if subscribe.contents.len() > MAX_CONTENT_FILTERS {
                let what = "over 8 filters by content";
                return Err(Fault::new(FaultKind::INVALID_MESSAGE_CONTENT, what));
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        let what = "filters are one TopicExpression and MessageContent";
        Err(Fault::new(FaultKind::INVALID_FILTER, what).of_names(self.names(&unknown)))
    }

    fn content(&self, element: NodeId) -> Result<xpath::Filter, Fault> {
        let fault = |what: String| Fault::new(FaultKind::INVALID_MESSAGE_CONTENT, what);
        let dialect = self.tree.attribute(element, "", "Dialect").unwrap_or("").trim();
        if dialect != XPATH {
            return Err(fault("the dialect of MessageContent is XPath 1.0".to_owned()));
        }
        let resolve = |prefix: &str| self.tree.namespace(element, prefix).map(str::to_owned);
        xpath::Filter::compile(&self.tree.text(element), &resolve)
            .map_err(|error| fault(error.to_string()))
    }

    fn policy(&self, element: NodeId) -> Result<Policy, Fault> {
        let mut policy = Policy::default();
        let mut unknown = Vec::new();
        for wish in self.tree.elements(element) {
            let name = self.tree.name(wish);
            match (name.uri, name.local) {
                (WSNT, "UseRaw") => policy.use_raw = true,
                (LW, "SendCurrent") => policy.send_current = true,
                (LW, "Properties") => policy.properties = true,
                _ => unknown.push(wish),
            }
        }
        if unknown.is_empty() {
            return Ok(policy);
        }
        let what = "policies are UseRaw, lw:SendCurrent and lw:Properties";
        Err(Fault::new(FaultKind::UNRECOGNIZED_POLICY, what).of_names(self.names(&unknown)))
    }

    fn notify(&self, body: NodeId) -> Result<Vec<Notification>, Fault> {
        let notifications = self.notifications(body)?;
        if notifications.is_empty() {
            return Err(sender("a Notify without NotificationMessage"));
        }
        Ok(notifications)
    }

    fn notifications(&self, body: NodeId) -> Result<Vec<Notification>, Fault> {
        let mut notifications = Vec::new();
        for holder in self.tree.elements(body) {
            if !self.tree.is(holder, WSNT, "NotificationMessage") {
                continue;
            }
            if notifications.len() == MAX_NOTIFICATIONS {
                return Err(sender("a Notify has at most 1,000 messages"));
            }
            let topic = self.tree.child(holder, WSNT, "Topic");
            let topic = topic.map(|topic| self.topic(topic)).transpose()?;
            let Some(message) = self.tree.child(holder, WSNT, "Message") else {
                return Err(sender("a NotificationMessage without Message"));
            };
            let mut content = self.tree.elements(message);
            let (Some(element), None) = (content.next(), content.next()) else {
                return Err(sender("a Message holds one element"));
            };
            let payload = payload::of_element(self.tree, element).map_err(sender)?;
            let element = self.tree.standalone(element);
            notifications.push(Notification { topic, payload, element });
        }
        Ok(notifications)
    }

    fn register(&self, body: NodeId) -> Result<RegisterPublisher, Fault> {
        let publisher = self.tree.child(body, WSN_BR, "PublisherReference");
        let (mut filters, mut spelling) = (Vec::new(), None::<Spelling>);
        for topic in self.tree.elements(body).filter(|it| self.tree.is(*it, WSN_BR, "Topic")) {
            let (more, own) = self.filters(topic)?;
            filters.extend(more);
            spelling = Some(match spelling {
                None => own,
                Some(known) if known.dialect == own.dialect => {
                    Spelling { qualified: known.qualified || own.qualified, ..own }
                }
                Some(_) => Spelling::default(),
            });
            if filters.len() > MAX_REGISTERED_TOPICS {
                let what = "a registration has at most 64 topics";
                return Err(Fault::new(FaultKind::REGISTRATION_REJECTED, what));
            }
        }
        let demand = self.tree.child(body, WSN_BR, "Demand");
        let demand = match demand.map(|demand| self.tree.text(demand)) {
            None => false,
            Some(text) => match text.trim() {
                "true" | "1" => true,
                "false" | "0" => false,
                _ => return Err(sender("Demand is a boolean")),
            },
        };
        let until = match self.tree.child(body, WSN_BR, "InitialTerminationTime") {
            Some(time) => self.until(time)?,
            None => None,
        };
        let publisher = publisher.map(|publisher| self.endpoint(publisher)).transpose()?;
        let spelling = spelling.unwrap_or_default();
        Ok(RegisterPublisher { publisher, filters, spelling, demand, until })
    }

    fn property(&self, element: NodeId) -> Result<(String, String), Fault> {
        let text = self.tree.text(element);
        let found = self.tree.qname(element, &text);
        let (uri, local) = found.ok_or_else(|| {
            Fault::new(FaultKind::INVALID_PROPERTY_NAME, "the name of a property is a QName")
        })?;
        Ok((uri.to_owned(), local.to_owned()))
    }
}
