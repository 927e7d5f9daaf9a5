//! Publishers register; those that publish on demand are subscribed to, and paused while nobody
//! wants what they publish (WS-BrokeredNotification 1.3, `RegisterPublisher` with `Demand`).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use codec::xml::Writer;

use super::addressing::{Endpoint, Headers, write_reference};
use super::answers::{Property, Response};
use super::fault::{Fault, FaultKind};
use super::names::{WSN_BR, WSNT, WSNT_BW};
use super::requests::RegisterPublisher;
use super::resources::Resource;
use super::serving::owned;
use super::soap::{Envelope, SoapVersion, envelope};
use super::time;
use super::topics::{Dialect, Spelling};
use super::tree::Tree;
use super::{Due, Purpose, Wsn};
use crate::http::{Post, Posted};
use crate::outputs::Context;

/// How often it is looked whether somebody wants what publishers publish on demand.
const DEMAND_INTERVAL: Duration = Duration::from_secs(1);
/// How long a publisher that did not answer is left alone.
const RETRY_WAIT: Duration = Duration::from_secs(10);

/// What is asked of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Subscribe,
    Pause,
    Resume,
}

/// Our subscription at a publisher that publishes on demand.
#[derive(Debug, Default)]
struct Remote {
    /// Where it is managed, once it is there.
    manager: Option<Endpoint>,
    paused: bool,
    pending: Option<(u64, Step)>,
    /// Not before then.
    next: Duration,
}

/// A registration.
#[derive(Debug)]
pub(super) struct Registration {
    user: Option<Arc<str>>,
    publisher: Option<Endpoint>,
    filters: Vec<String>,
    spelling: Spelling,
    soap: SoapVersion,
    created_ms: i64,
    remote: Option<Remote>,
}

impl Wsn {
    pub(super) fn register(
        &mut self,
        context: &mut Context<'_>,
        user: Option<&Arc<str>>,
        read: &Envelope,
        register: RegisterPublisher,
    ) -> Result<Response, Fault> {
        let RegisterPublisher { publisher, filters, spelling, demand, until } = register;
        let rejected = |what: &str| Fault::new(FaultKind::REGISTRATION_REJECTED, what);
        if self.registrations.len() >= self.settings.max_registrations {
            let what = "max_registrations is at its limit";
            return Err(Fault::new(FaultKind::REGISTRATION_FAILED, what));
        }
        if demand {
            let reachable = publisher.as_ref().is_some_and(Endpoint::is_http);
            if !reachable || filters.is_empty() {
                return Err(rejected("on demand publishes who has an address of http and topics"));
            }
            let sayable = |filter: &String| {
                let spelling = Spelling { dialect: Dialect::Full, ..spelling };
                self.settings.topics().write_filter(spelling, filter).is_ok()
            };
            if !filters.iter().all(sayable) {
                return Err(rejected("a topic that cannot be subscribed to"));
            }
        }
        let kind = FaultKind::UNACCEPTABLE_INITIAL_TIME;
        let end_ms = self.settings.termination(context.now, until, kind)?;
        let id = self.next_id();
        let registration = Registration {
            user: user.cloned(),
            publisher,
            filters,
            spelling,
            soap: read.soap,
            created_ms: self.settings.unix_ms(context.now),
            remote: demand.then(Remote::default),
        };
        self.registrations.insert(id, registration);
        let due = self.settings.when(context.now, end_ms);
        self.timers.set(Due::Registration(id), Some(due));
        if demand {
            self.timers.set_by(Due::Demand, context.now);
        }
        let reference =
            self.settings.address_of(Resource::Registration(id), self.is_asked_securely);
        let consumer = self.settings.address_for(self.is_asked_securely).to_owned();
        Ok(Response::Register { reference, consumer })
    }

    pub(super) fn destroy_registration(
        &mut self,
        context: &mut Context<'_>,
        user: Option<&Arc<str>>,
        at: Option<Resource>,
    ) -> Result<Response, Fault> {
        let id = match at {
            Some(Resource::Registration(id)) => Some(id),
            _ => None,
        };
        let owner = id.and_then(|id| self.registrations.get(&id)).map(|it| it.user.clone());
        owned(owner, user, "registration", FaultKind::RESOURCE_NOT_DESTROYED)?;
        self.end_registration(context, id.unwrap_or_default());
        Ok(Response::RegistrationDestroyed)
    }

    /// It is over; a subscription at the publisher is ended, once and without waiting for it.
    pub(super) fn end_registration(&mut self, context: &mut Context<'_>, id: u64) {
        self.timers.set(Due::Registration(id), None);
        let Some(registration) = self.registrations.remove(&id) else { return };
        if let Some(manager) = registration.remote.and_then(|remote| remote.manager) {
            let action = format!("{WSNT_BW}/SubscriptionManager/UnsubscribeRequest");
            let body = |writer: &mut Writer| empty(writer, "wsnt:Unsubscribe");
            self.request(context, registration.soap, &manager, &action, body);
        }
    }

    /// Looks for each publisher on demand whether somebody wants what it publishes.
    pub(super) fn follow_demand(&mut self, context: &mut Context<'_>) {
        let mut due = Vec::new();
        let mut has_any = false;
        for (id, registration) in &self.registrations {
            let Some(remote) = &registration.remote else { continue };
            has_any = true;
            if remote.pending.is_some() || remote.next > context.now {
                continue;
            }
            let wanted = registration.filters.iter().any(|filter| context.core.wants(filter));
            match (&remote.manager, remote.paused) {
                (None, _) => due.push((*id, Step::Subscribe)),
                (Some(_), false) if !wanted => due.push((*id, Step::Pause)),
                (Some(_), true) if wanted => due.push((*id, Step::Resume)),
                _ => {}
            }
        }
        for (id, step) in due {
            self.ask_publisher(context, id, step);
        }
        if has_any {
            let next = context.now.saturating_add(DEMAND_INTERVAL);
            self.timers.set(Due::Demand, Some(next));
        }
    }

    fn ask_publisher(&mut self, context: &mut Context<'_>, id: u64, step: Step) {
        let Some(registration) = self.registrations.get(&id) else { return };
        let (soap, spelling) = (registration.soap, registration.spelling);
        let filters = registration.filters.clone();
        let manager = registration.remote.as_ref().and_then(|remote| remote.manager.clone());
        let target = match step {
            Step::Subscribe => registration.publisher.clone(),
            Step::Pause | Step::Resume => manager,
        };
        let Some(target) = target else { return };
        let post = match step {
            Step::Subscribe => {
                let action = format!("{WSNT_BW}/NotificationProducer/SubscribeRequest");
                let consumer = self.settings.address.clone();
                let body = |writer: &mut Writer| {
                    self.write_subscribe(writer, &consumer, spelling, &filters);
                };
                let (bytes, soap_action) = message(soap, &target, &action, body);
                self.enqueue(context, soap, &target, &action, bytes, soap_action)
            }
            Step::Pause => {
                let action =
                    format!("{WSNT_BW}/PausableSubscriptionManager/PauseSubscriptionRequest");
                let body = |writer: &mut Writer| empty(writer, "wsnt:PauseSubscription");
                self.request(context, soap, &target, &action, body)
            }
            Step::Resume => {
                let action =
                    format!("{WSNT_BW}/PausableSubscriptionManager/ResumeSubscriptionRequest");
                let body = |writer: &mut Writer| empty(writer, "wsnt:ResumeSubscription");
                self.request(context, soap, &target, &action, body)
            }
        };
        self.posts.insert(post, Purpose::Publisher(id));
        let registration = self.registrations.get_mut(&id);
        if let Some(remote) = registration.and_then(|it| it.remote.as_mut()) {
            remote.pending = Some((post, step));
        }
    }

    /// Our Subscribe at a publisher, in the least dialect that does, and with topics spelled as it
    /// spells them: some compare them letter by letter.
    fn write_subscribe(
        &self,
        writer: &mut Writer,
        consumer: &str,
        spelling: Spelling,
        filters: &[String],
    ) {
        let dialect = match filters {
            [topic] if topic.contains(['+', '#']) => Dialect::Full,
            // Some know Simple only, so a root topic is named in that.
            [topic] if !topic.contains('/') => Dialect::Simple,
            [_] => spelling.dialect,
            _ => Dialect::Full,
        };
        let spelling = Spelling { dialect, ..spelling };
        writer.start("wsnt:Subscribe");
        writer.namespace("wsnt", WSNT);
        write_reference(writer, "wsnt:ConsumerReference", consumer);
        writer.start("wsnt:Filter");
        writer.start("wsnt:TopicExpression");
        writer.attribute("Dialect", dialect.uri());
        let (mut texts, mut declared) = (Vec::new(), Vec::new());
        for (at, filter) in filters.iter().enumerate() {
            let Ok(written) = self.settings.topics().write_filter(spelling, filter) else {
                continue;
            };
            let (text, namespaces) = written.with_prefixes(at);
            texts.push(text);
            declared.extend(namespaces);
        }
        for (prefix, uri) in &declared {
            writer.namespace(prefix, uri);
        }
        writer.text(&texts.join("|"));
        writer.end("wsnt:TopicExpression");
        writer.end("wsnt:Filter");
        writer.end("wsnt:Subscribe");
    }

    fn request(
        &mut self,
        context: &mut Context<'_>,
        soap: SoapVersion,
        to: &Endpoint,
        action: &str,
        body: impl FnOnce(&mut Writer),
    ) -> u64 {
        let (bytes, soap_action) = message(soap, to, action, body);
        self.enqueue(context, soap, to, action, bytes, soap_action)
    }

    fn enqueue(
        &mut self,
        context: &mut Context<'_>,
        soap: SoapVersion,
        to: &Endpoint,
        action: &str,
        body: Bytes,
        soap_action: Option<String>,
    ) -> u64 {
        self.last_post += 1;
        let id = self.last_post;
        let content_type = soap.content_type(Some(action));
        let url = to.address.clone();
        context.outputs.post(Post { id, url, content_type, soap_action, body });
        id
    }

    /// What came of a request to a publisher.
    pub(super) fn publisher_answered(
        &mut self,
        context: &mut Context<'_>,
        id: u64,
        posted: &Posted,
    ) {
        let registration = self.registrations.get_mut(&id);
        let Some(remote) = registration.and_then(|it| it.remote.as_mut()) else { return };
        let Some((_, step)) = remote.pending.take_if(|(post, _)| *post == posted.id) else {
            return;
        };
        let taken = posted.status.is_some_and(|status| (200..300).contains(&status));
        match step {
            Step::Subscribe => {
                remote.manager = taken.then(|| subscription_of(&posted.body)).flatten();
                remote.paused = false;
            }
            Step::Pause | Step::Resume if taken => remote.paused = step == Step::Pause,
            // It knows of no such subscription any more.
            Step::Pause | Step::Resume if posted.status.is_some() => remote.manager = None,
            Step::Pause | Step::Resume => {}
        }
        if !taken || remote.manager.is_none() {
            remote.next = context.now.saturating_add(RETRY_WAIT);
        }
    }

    /// A property of a registration (WS-BrokeredNotification 1.3, `PublisherRegistrationRP`).
    pub(super) fn property_of_registration(
        &self,
        id: u64,
        uri: &str,
        local: &str,
    ) -> Result<Option<Vec<Property>>, Fault> {
        let Some(registration) = self.registrations.get(&id) else {
            return Err(Fault::new(FaultKind::RESOURCE_UNKNOWN, "there is no such registration"));
        };
        let text = |local, value| Some(vec![Property::Text(WSN_BR, local, value)]);
        Ok(match (uri, local) {
            (WSN_BR, "Demand") => text("Demand", registration.remote.is_some().to_string()),
            (WSN_BR, "CreationTime") => text("CreationTime", time::format(registration.created_ms)),
            _ => None,
        })
    }
}

fn empty(writer: &mut Writer, name: &str) {
    writer.start(name);
    writer.namespace("wsnt", WSNT);
    writer.end(name);
}

/// A request of ours to an endpoint, and its SOAPAction.
fn message(
    soap: SoapVersion,
    to: &Endpoint,
    action: &str,
    body: impl FnOnce(&mut Writer),
) -> (Bytes, Option<String>) {
    let headers = Headers {
        version: to.version,
        action,
        to: Some(&to.address),
        message_id: None,
        relates_to: None,
        parameters: &to.parameters,
    };
    let bytes = envelope(soap, Some(&headers), |_| (), body).into();
    let soap_action = soap.soap_action();
    (bytes, soap_action)
}

/// The reference in an answer to Subscribe, if it can be posted to.
fn subscription_of(body: &Bytes) -> Option<Endpoint> {
    let text = std::str::from_utf8(body).ok()?;
    let tree = Tree::parse(text).ok()?;
    let answer = Envelope::read(&tree).ok()?.body?;
    let reference = tree.child(answer, WSNT, "SubscriptionReference")?;
    Endpoint::read(&tree, reference).ok().filter(Endpoint::is_http)
}
