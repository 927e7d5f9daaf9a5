//! Requests are carried out.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::answers::{Property, Response, notification};
use super::fault::{Fault, FaultKind};
use super::names::{LW, WSN_BR, WSNT, WSRF_RL, WSTOP};
use super::requests::{Notification, Request, Subscribe};
use super::resources::{PullPoint, Resource};
use super::sending::{PROTOCOL, notification_of};
use super::soap::Envelope;
use super::subscription::{Consumer, Style, Subscription};
use super::time::{self, Until};
use super::topics::{Dialect, Spelling};
use super::tree::Tree;
use super::{Due, FIRST_CONNECTION, Served, Wsn};
use crate::core::{Opening, convert, tell_sent};
use crate::explain::Sent;
use crate::forms::For;
use crate::http::Asked;
use crate::ids::{ClientKey, ConnectionId, Protocol, SessionId};
use crate::outputs::Context;
use crate::publication::{Form, Grade, Publication};
use crate::refusal::Refusal;
use crate::session::{RetainHandling, Subscription as Filter};

/// Messages that one answer to GetMessages has at most, and its bytes.
const MAX_MESSAGES: usize = 1000;
const MAX_MESSAGES_BYTES: usize = 4 << 20;
/// Topics that a topic set tells of.
const MAX_LISTED: usize = 1000;

/// The fault for what the core refuses.
fn refused(refusal: &Refusal, quota: FaultKind) -> Fault {
    let kind = match refusal {
        Refusal::TopicName { .. } => FaultKind::TOPIC_NOT_SUPPORTED,
        Refusal::TopicFilter { .. } => FaultKind::INVALID_TOPIC_EXPRESSION,
        Refusal::Quota { .. } => quota,
        Refusal::NotAuthorized | Refusal::TooLarge { .. } | Refusal::Federation(_) => {
            FaultKind::Sender
        }
        Refusal::Closing => FaultKind::Receiver,
    };
    Fault::new(kind, refusal.to_string())
}

fn unknown(what: &str) -> Fault {
    Fault::new(FaultKind::RESOURCE_UNKNOWN, format!("there is no {what} at this address"))
}

impl Wsn {
    pub(super) fn serve(
        &mut self,
        context: &mut Context<'_>,
        asked: &Asked,
        tree: &Tree<'_>,
        read: &Envelope,
    ) -> Result<Served, Fault> {
        let Some(body) = read.body else {
            return Err(Fault::new(FaultKind::Sender, "an empty body"));
        };
        let path = asked.target.split('?').next().unwrap_or("");
        let at = self.settings.resource_at(path);
        let request = Request::read(tree, body, &self.settings.topics())?;
        let user = asked.user.as_ref();
        let response = match request {
            Request::Subscribe(subscribe) => {
                let source = tree.standalone(body).into();
                self.subscribe(context, user, read, *subscribe, source)?
            }
            Request::Notify(messages) => {
                if let Some(Resource::PullPoint(id)) = at {
                    return self.notify_pull_point(id, &messages).map(|()| Served::Accepted);
                }
                return self.publish(context, user, read, messages).map(|()| Served::Accepted);
            }
            Request::Raw(payload) => {
                let element = String::new();
                let message = Notification { topic: None, payload, element };
                return self.publish(context, user, read, vec![message]).map(|()| Served::Accepted);
            }
            Request::GetCurrentMessage(topic) => self.current(context, user, &topic)?,
            Request::CreatePullPoint => self.create_pull_point(context, user)?,
            Request::GetMessages(most) => self.get_messages(context, user, at, most)?,
            Request::DestroyPullPoint => {
                let Some(Resource::PullPoint(id)) = at else { return Err(unknown("pull point")) };
                let owner = self.pull_points.get(&id).map(|it| it.user.clone());
                owned(owner, user, "pull point", FaultKind::UNABLE_TO_DESTROY_PULL_POINT)?;
                self.end_pull_point(context, id);
                Response::PullPointDestroyed
            }
            Request::Renew(until) => self.renew(context, user, at, until)?,
            Request::Unsubscribe => {
                let kind = FaultKind::UNABLE_TO_DESTROY_SUBSCRIPTION;
                let id = self.subscription_at(context, user, at, kind)?;
                self.end_subscription(context, id);
                Response::Unsubscribe
            }
            Request::Pause | Request::Resume => self.pause(context, user, at, &request)?,
            Request::Register(register) => self.register(context, user, read, *register)?,
            Request::DestroyRegistration => self.destroy_registration(context, user, at)?,
            Request::GetProperties(names, several) => {
                let properties = self.properties(context, user, at, &names)?;
                Response::Properties(properties, several)
            }
        };
        Ok(Served::Response(response))
    }

    fn subscribe(
        &mut self,
        context: &mut Context<'_>,
        user: Option<&Arc<str>>,
        read: &Envelope,
        subscribe: Subscribe,
        source: Arc<str>,
    ) -> Result<Response, Fault> {
        let failed = |what: String| Fault::new(FaultKind::SUBSCRIBE_CREATION_FAILED, what);
        let Subscribe { consumer, filters, spelling, contents, until, policy } = subscribe;
        let kind = FaultKind::UNACCEPTABLE_INITIAL_TIME;
        let terminates_ms = self.settings.termination(context.now, until, kind)?;
        if self.subscriptions.len() >= self.settings.max_subscriptions {
            let limit = self.settings.max_subscriptions;
            return Err(failed(format!("max_subscriptions is at its limit of {limit}")));
        }
        let consumer_of = match self
            .settings
            .own_path(&consumer.address)
            .map(|path| self.settings.resource_at(path))
        {
            Some(Some(Resource::PullPoint(id))) if self.pull_points.contains_key(&id) => {
                Consumer::Pull(id)
            }
            Some(_) => return Err(failed("the consumer is this broker itself".to_owned())),
            None if consumer.is_http() => Consumer::Push(consumer),
            None => {
                return Err(failed("a consumer's address begins with http or https".to_owned()));
            }
        };
        let style =
            Style { soap: read.soap, addressing: read.addressing.version, spelling, policy };
        let id = self.next_id();
        let session = self.open(context, Resource::Subscription(id), user)?;
        for filter in filters {
            let mut wanted = Filter::new(filter, Grade::AtLeastOnce);
            if !policy.send_current {
                wanted.handling = RetainHandling::Never;
            }
            if let Err(refusal) = context.core.subscribe(context.now, session, wanted) {
                context.core.end(context.now, session);
                return Err(refused(&refusal, FaultKind::SUBSCRIBE_CREATION_FAILED));
            }
        }
        let created_ms = self.settings.unix_ms(context.now);
        let subscription = Subscription {
            session,
            consumer: consumer_of,
            style,
            contents,
            source,
            created_ms,
            terminates_ms,
            paused: false,
            posting: None,
            failures: 0,
            refusals: 0,
            backs_off: false,
        };
        context.core.set_asleep(session, subscription.is_asleep());
        self.subscriptions.insert(id, subscription);
        self.keep(context, id);
        let due = self.settings.when(context.now, terminates_ms);
        self.timers.set(Due::Termination(id), Some(due));
        let reference =
            self.settings.address_of(Resource::Subscription(id), self.is_asked_securely);
        Ok(Response::Subscribe { reference, times_ms: (created_ms, terminates_ms) })
    }

    /// A session of the core for a resource.
    fn open(
        &mut self,
        context: &mut Context<'_>,
        of: Resource,
        user: Option<&Arc<str>>,
    ) -> Result<SessionId, Fault> {
        let (_, id) = of.parts();
        let opening = Opening {
            client: ClientKey { protocol: Protocol::Wsn, name: self.settings.path_of(of).into() },
            connection: ConnectionId(FIRST_CONNECTION + id),
            user: user.cloned(),
            clean: true,
            expiry: self.settings.max_lifetime,
            window: u16::try_from(self.settings.max_batch).unwrap_or(u16::MAX),
            will: None,
        };
        match context.core.open(context.now, opening) {
            Ok(opened) => Ok(opened.session),
            Err(refusal) => Err(refused(&refusal, FaultKind::SUBSCRIBE_CREATION_FAILED)),
        }
    }

    /// The subscription at an address, if it belongs to who asks.
    fn subscription_at(
        &self,
        context: &Context<'_>,
        user: Option<&Arc<str>>,
        at: Option<Resource>,
        kind: FaultKind,
    ) -> Result<u64, Fault> {
        let Some(Resource::Subscription(id)) = at else { return Err(unknown("subscription")) };
        let found = self.subscriptions.get(&id);
        let owner = found.map(|it| context.core.user(it.session).cloned());
        owned(owner, user, "subscription", kind).map(|()| id)
    }

    pub(super) fn end_subscription(&mut self, context: &mut Context<'_>, id: u64) {
        if let Some(subscription) = self.subscriptions.remove(&id) {
            context.core.end(context.now, subscription.session);
        }
        self.timers.set(Due::Termination(id), None);
        self.timers.set(Due::Retry(id), None);
    }

    fn renew(
        &mut self,
        context: &mut Context<'_>,
        user: Option<&Arc<str>>,
        at: Option<Resource>,
        until: Option<Until>,
    ) -> Result<Response, Fault> {
        let id = self.subscription_at(context, user, at, FaultKind::Sender)?;
        let end_ms = self.settings.termination(context.now, until, FaultKind::UNACCEPTABLE_TIME)?;
        let now_ms = self.settings.unix_ms(context.now);
        if let Some(subscription) = self.subscriptions.get_mut(&id) {
            subscription.terminates_ms = end_ms;
        }
        self.keep(context, id);
        let due = self.settings.when(context.now, end_ms);
        self.timers.set(Due::Termination(id), Some(due));
        Ok(Response::Renew { times_ms: (now_ms, end_ms) })
    }

    fn pause(
        &mut self,
        context: &mut Context<'_>,
        user: Option<&Arc<str>>,
        at: Option<Resource>,
        request: &Request,
    ) -> Result<Response, Fault> {
        let paused = matches!(request, Request::Pause);
        let kind = if paused { FaultKind::PAUSE_FAILED } else { FaultKind::RESUME_FAILED };
        let id = self.subscription_at(context, user, at, kind)?;
        if let Some(subscription) = self.subscriptions.get_mut(&id) {
            subscription.paused = paused;
            context.core.set_asleep(subscription.session, subscription.is_asleep());
        }
        self.keep(context, id);
        Ok(if paused { Response::Pause } else { Response::Resume })
    }

    /// Publishes messages: all of them are looked at before the first goes on.
    fn publish(
        &mut self,
        context: &mut Context<'_>,
        user: Option<&Arc<str>>,
        read: &Envelope,
        messages: Vec<Notification>,
    ) -> Result<(), Fault> {
        let publisher = self.publisher(context, user)?;
        let is_single = messages.len() == 1;
        let mut publications = Vec::with_capacity(messages.len());
        for Notification { topic, payload, element } in messages {
            let topic = topic.or_else(|| self.settings.default_topic.clone()).ok_or_else(|| {
                let what = "a message without Topic, and no default topic is set";
                Fault::new(FaultKind::TOPIC_NOT_SUPPORTED, what)
            })?;
            let is_wrapped = payload.form != Form::Xml && !element.contains(LW);
            let mut publication = Publication::new(Protocol::Wsn, topic, payload.bytes);
            publication.form = payload.form;
            publication.grade = Grade::AtLeastOnce;
            publication.publisher = publisher;
            let details = publication.details_mut();
            details.content_type = payload.content_type;
            details.properties.clone_from(&read.properties);
            if is_single {
                details.message_id.clone_from(&read.addressing.message_id);
            }
            if is_wrapped && !element.is_empty() {
                details.original = Some(Bytes::from(element));
            }
            publications.push(publication);
        }
        for publication in publications {
            context
                .core
                .publish(context.now, publication)
                .map_err(|refusal| refused(&refusal, FaultKind::Receiver))?;
        }
        Ok(())
    }

    /// The session that a user publishes by, so that the rules for it hold.
    fn publisher(
        &mut self,
        context: &mut Context<'_>,
        user: Option<&Arc<str>>,
    ) -> Result<Option<SessionId>, Fault> {
        let Some(user) = user else { return Ok(None) };
        if let Some(session) = self.publishers.get(user) {
            return Ok(Some(*session));
        }
        let id = self.next_id();
        let opening = Opening {
            client: ClientKey { protocol: Protocol::Wsn, name: format!("publisher/{user}").into() },
            connection: ConnectionId(FIRST_CONNECTION + id),
            user: Some(user.clone()),
            clean: true,
            expiry: Duration::ZERO,
            window: 1,
            will: None,
        };
        let opened = context.core.open(context.now, opening);
        let opened = opened.map_err(|refusal| refused(&refusal, FaultKind::Receiver))?;
        self.publishers.insert(user.clone(), opened.session);
        Ok(Some(opened.session))
    }

    fn current(
        &mut self,
        context: &mut Context<'_>,
        user: Option<&Arc<str>>,
        topic: &str,
    ) -> Result<Response, Fault> {
        let access = &context.core.settings().access;
        if !access.may_receive(user.map(|user| &**user), "", topic) {
            return Err(refused(&Refusal::NotAuthorized, FaultKind::Receiver));
        }
        let Some(publication) = context.core.retained_at(context.now, topic).cloned() else {
            let what = "the topic has no current message";
            return Err(Fault::new(FaultKind::NO_CURRENT_MESSAGE, what));
        };
        let user = user.map(|user| &**user);
        let receiver = For { protocol: Protocol::Wsn, name: "", user };
        let publication = convert(context.core, receiver, &publication);
        Ok(Response::CurrentMessage(self.element(&publication).to_string()))
    }

    fn create_pull_point(
        &mut self,
        context: &mut Context<'_>,
        user: Option<&Arc<str>>,
    ) -> Result<Response, Fault> {
        if self.pull_points.len() >= self.settings.max_pull_points {
            let limit = self.settings.max_pull_points;
            let what = format!("max_pull_points is at its limit of {limit}");
            return Err(Fault::new(FaultKind::UNABLE_TO_CREATE_PULL_POINT, what));
        }
        let id = self.next_id();
        self.pull_points.insert(id, PullPoint { user: user.cloned(), ..PullPoint::default() });
        self.touch_pull_point(context.now, id);
        Ok(Response::PullPoint(
            self.settings.address_of(Resource::PullPoint(id), self.is_asked_securely),
        ))
    }

    /// A pull point that nobody asks for so long as a subscription may live is gone.
    pub(super) fn touch_pull_point(&mut self, now: Duration, id: u64) {
        let due = now.saturating_add(self.settings.max_lifetime);
        self.timers.set(Due::PullPoint(id), Some(due));
    }

    /// It is gone, and its subscriptions with it.
    pub(super) fn end_pull_point(&mut self, context: &mut Context<'_>, id: u64) {
        self.pull_points.remove(&id);
        self.timers.set(Due::PullPoint(id), None);
        for subscription in self.subscriptions_of(id) {
            self.end_subscription(context, subscription);
        }
    }

    fn subscriptions_of(&self, pull_point: u64) -> Vec<u64> {
        let of = Consumer::Pull(pull_point);
        let found = self.subscriptions.iter().filter(|(_, it)| it.consumer == of);
        found.map(|(id, _)| *id).collect()
    }

    fn notify_pull_point(&mut self, id: u64, messages: &[Notification]) -> Result<(), Fault> {
        let topics: Vec<String> = messages
            .iter()
            .map(|message| match &message.topic {
                Some(topic) => {
                    let spelling = Spelling::default();
                    let topic = self.settings.topics().write_topic(topic, spelling);
                    notification(&topic, Dialect::Concrete, &message.element)
                }
                None => format!(
                    "<wsnt:NotificationMessage><wsnt:Message>{}</wsnt:Message>\
                     </wsnt:NotificationMessage>",
                    message.element
                ),
            })
            .collect();
        let point = self.pull_points.get_mut(&id).ok_or_else(|| unknown("pull point"))?;
        topics.into_iter().for_each(|message| point.push(message));
        Ok(())
    }

    fn get_messages(
        &mut self,
        context: &mut Context<'_>,
        user: Option<&Arc<str>>,
        at: Option<Resource>,
        most: Option<usize>,
    ) -> Result<Response, Fault> {
        let Some(Resource::PullPoint(id)) = at else { return Err(unknown("pull point")) };
        let owner = self.pull_points.get(&id).map(|it| it.user.clone());
        owned(owner, user, "pull point", FaultKind::UNABLE_TO_GET_MESSAGES)?;
        self.touch_pull_point(context.now, id);
        let most = most.unwrap_or(MAX_MESSAGES).min(MAX_MESSAGES);
        let (mut messages, mut bytes) = (Vec::new(), 0);
        if let Some(point) = self.pull_points.get_mut(&id) {
            while messages.len() < most
                && let Some(message) = point.pop()
            {
                bytes += message.len();
                messages.push(message);
            }
        }
        // Who was asked last is asked last again.
        let last = self.pull_points.get(&id).map_or(0, |point| point.last);
        let mut subscriptions = self.subscriptions_of(id);
        let first = subscriptions.iter().position(|of| *of > last).unwrap_or(0);
        subscriptions.rotate_left(first);
        for subscription in subscriptions {
            if messages.len() >= most || bytes >= MAX_MESSAGES_BYTES {
                break;
            }
            if let Some(point) = self.pull_points.get_mut(&id) {
                point.last = subscription;
            }
            while messages.len() < most && bytes < MAX_MESSAGES_BYTES {
                let Some(message) = self.pull(context, subscription) else { break };
                bytes += message.len();
                messages.push(message);
            }
        }
        Ok(Response::Messages(messages))
    }

    /// The next message of a subscription of a pull point, which has it with that.
    fn pull(&mut self, context: &mut Context<'_>, id: u64) -> Option<String> {
        if self.subscriptions.get(&id)?.paused {
            return None;
        }
        let (flying, element) = self.take(context, id)?;
        let subscription = self.subscriptions.get(&id)?;
        let session = subscription.session;
        let style = &subscription.style;
        let message =
            notification_of(&self.settings.topics(), style, &flying.publication, &element);
        let (protocol, message_bytes) = (PROTOCOL, Some(message.len()));
        let sent = Sent { protocol, message_bytes, ..Sent::default() };
        tell_sent(context.core, &flying.publication, session, sent);
        if let Some(handle) = flying.handle {
            context.core.finish(session, handle.get(), false);
        }
        Some(message)
    }

    /// The properties of a resource that are asked for by name (WS-ResourceProperties 1.2).
    fn properties(
        &self,
        context: &Context<'_>,
        user: Option<&Arc<str>>,
        at: Option<Resource>,
        names: &[(String, String)],
    ) -> Result<Vec<Property>, Fault> {
        let mut properties = Vec::new();
        for (uri, local) in names {
            let found = match at {
                Some(Resource::Subscription(id)) => {
                    self.subscription_at(context, user, at, FaultKind::Sender)?;
                    self.property_of_subscription(context, id, uri, local)
                }
                Some(Resource::Registration(id)) => {
                    self.property_of_registration(id, uri, local)?
                }
                Some(Resource::PullPoint(_)) => None,
                None => self.property_of_broker(context, user, uri, local),
            };
            properties.extend(found.ok_or_else(|| {
                let what = format!("no property '{local}' in the namespace '{uri}' here");
                Fault::new(FaultKind::INVALID_PROPERTY_NAME, what)
            })?);
        }
        Ok(properties)
    }

    fn property_of_broker(
        &self,
        context: &Context<'_>,
        user: Option<&Arc<str>>,
        uri: &str,
        local: &str,
    ) -> Option<Vec<Property>> {
        Some(match (uri, local) {
            (WSNT, "FixedTopicSet") => {
                vec![Property::Text(WSNT, "FixedTopicSet", "false".to_owned())]
            }
            (WSNT, "TopicExpressionDialect") => {
                let dialects = Dialect::ALL.into_iter();
                let text = |dialect: Dialect| dialect.uri().to_owned();
                let name = "TopicExpressionDialect";
                dialects.map(|dialect| Property::Text(WSNT, name, text(dialect))).collect()
            }
            (WSN_BR, "RequiresRegistration") => {
                vec![Property::Text(WSN_BR, "RequiresRegistration", "false".to_owned())]
            }
            (WSTOP, "TopicSet") => {
                let access = &context.core.settings().access;
                let user = user.map(|user| &**user);
                let mut topics: Vec<&Arc<str>> = context
                    .core
                    .retained_topics()
                    .filter(|topic| access.may_receive(user, "", topic))
                    .take(MAX_LISTED)
                    .collect();
                topics.sort_by(|one, other| one.split('/').cmp(other.split('/')));
                let write = |topic: &Arc<str>| {
                    self.settings.topics().write_topic(topic, Spelling::default())
                };
                vec![Property::Topics(topics.into_iter().map(write).collect())]
            }
            _ => return None,
        })
    }

    fn property_of_subscription(
        &self,
        context: &Context<'_>,
        id: u64,
        uri: &str,
        local: &str,
    ) -> Option<Vec<Property>> {
        let subscription = self.subscriptions.get(&id)?;
        let date = |uri, local, ms| Some(vec![Property::Text(uri, local, time::format(ms))]);
        match (uri, local) {
            (WSNT, "ConsumerReference") => {
                let address = match &subscription.consumer {
                    Consumer::Push(endpoint) => endpoint.address.clone(),
                    Consumer::Pull(id) => {
                        self.settings.address_of(Resource::PullPoint(*id), self.is_asked_securely)
                    }
                };
                Some(vec![Property::Reference("ConsumerReference", address)])
            }
            (WSNT, "CreationTime") => date(WSNT, "CreationTime", subscription.created_ms),
            (WSRF_RL, "TerminationTime") => {
                date(WSRF_RL, "TerminationTime", subscription.terminates_ms)
            }
            (WSRF_RL, "CurrentTime") => {
                date(WSRF_RL, "CurrentTime", self.settings.unix_ms(context.now))
            }
            _ => None,
        }
    }
}

/// Refuses what belongs to another user; what is not there belongs to nobody.
pub(super) fn owned(
    owner: Option<Option<Arc<str>>>,
    user: Option<&Arc<str>>,
    what: &str,
    kind: FaultKind,
) -> Result<(), Fault> {
    match owner {
        None => Err(unknown(what)),
        Some(Some(owner)) if Some(&owner) != user => {
            Err(Fault::new(kind, format!("the {what} is another user's")))
        }
        Some(_) => Ok(()),
    }
}
