//! One connection: who it is, its links, and what goes back and forth between the machine of the
//! protocol and the core.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::amqp::machine::{self, Input, LinkId, Output};
use proto::amqp::performative::{ErrorInfo, condition};
use proto::amqp::sasl::{Code, Credentials, Mechanism};
use proto::amqp::types::{Symbol, Value};

use super::deliver::Subscriber;
use super::{Settings, Shared, translate};
use crate::core::Opening;
use crate::event::Event;
use crate::ids::{ClientKey, ConnectionId, Protocol, SessionId, Ticket};
use crate::outputs::{Context, Login};

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It is not known whose it is.
    Beginning,
    /// That is being found out, as SASL asks.
    Authenticating,
    /// That is being found out, as it has opened without SASL.
    Opening,
    /// It is known.
    Known,
    /// It is over.
    Over,
}

/// What a link is to the broker.
#[derive(Debug)]
pub(super) enum Link {
    /// It publishes, to this topic or to what each message says.
    Publisher(Option<Arc<str>>),
    /// It has subscribed.
    Subscriber(Box<Subscriber>),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: ConnectionId,
    pub(super) machine: machine::Connection,
    /// For the machine, when it has said what it has to.
    pub(super) inputs: VecDeque<Input>,
    /// Links whose subscribers may have something to get.
    pub(super) wanting: VecDeque<LinkId>,
    phase: Phase,
    /// Who its certificate says it is.
    certified: Option<Arc<str>>,
    pub(super) user: Option<Arc<str>>,
    /// The name of its container.
    pub(super) container: Arc<str>,
    /// The session that it publishes in.
    pub(super) publisher: Option<SessionId>,
    pub(super) links: BTreeMap<LinkId, Link>,
    pub(super) sessions: BTreeMap<SessionId, LinkId>,
    /// What waits for the store, in order.
    held: VecDeque<(Ticket, Input)>,
    /// The last number of a node that was made.
    pub(super) last_node: u64,
    /// The last number of a delivery that the core has none for.
    pub(super) last_key: u64,
}

impl Connection {
    pub(super) fn new(
        now: Duration,
        id: ConnectionId,
        settings: &Settings,
        certified: Option<Arc<str>>,
    ) -> Self {
        let mut mechanisms = vec![Mechanism::Plain, Mechanism::Anonymous];
        if certified.is_some() {
            mechanisms.insert(0, Mechanism::External);
        }
        let settings = machine::Settings {
            container_id: settings.container_id.clone(),
            mechanisms,
            allows_no_sasl: settings.allows_no_sasl,
            idle_timeout: settings.idle_timeout,
            max_message_bytes: settings.max_message_bytes,
            offered_capabilities: vec![Symbol::new("ANONYMOUS-RELAY"), Symbol::new("SHARED-SUBS")],
            properties: vec![(Value::symbol("product"), Value::string("longwire"))],
        };
        Self {
            id,
            machine: machine::Connection::new(settings, now),
            inputs: VecDeque::new(),
            wanting: VecDeque::new(),
            phase: Phase::Beginning,
            certified,
            user: None,
            container: "".into(),
            publisher: None,
            links: BTreeMap::new(),
            sessions: BTreeMap::new(),
            held: VecDeque::new(),
            last_node: 0,
            last_key: u64::from(u32::MAX),
        }
    }

    /// Whether nothing more comes of it.
    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Something happened; all that follows from it is done.
    pub(super) fn feed(&mut self, context: &mut Context<'_>, shared: &mut Shared, input: Input) {
        self.inputs.push_back(input);
        self.run(context, shared);
    }

    /// Does what follows, of each link that wants something one delivery in turn.
    pub(super) fn run(&mut self, context: &mut Context<'_>, shared: &mut Shared) {
        loop {
            while let Some(input) = self.inputs.pop_front() {
                self.machine.handle_input(context.now, input);
                while let Some(output) = self.machine.poll_output() {
                    self.output(context, shared, output);
                }
            }
            let Some(link) = self.wanting.pop_front() else { return };
            if self.deliver(context, link) {
                self.wanting.push_back(link);
            }
        }
    }

    fn output(&mut self, context: &mut Context<'_>, shared: &mut Shared, output: Output) {
        match output {
            Output::Transmit(bytes) => context.outputs.append(self.id, &bytes),
            Output::WakeAt(at) => shared.timers.set(self.id, Some(at)),
            Output::Authenticate { credentials, .. } => self.authenticate(context, credentials),
            Output::Opened(open) => {
                self.container = open.container_id.as_str().into();
                self.opened(context, shared);
            }
            Output::Attached { link, attach } => self.attached(context, shared, link, &attach),
            Output::Delivery(delivery) => self.delivery(context, shared, delivery),
            Output::Settled { .. } => {}
            Output::Disposition { link, delivery, state, settled } => {
                self.disposition(context, shared, (link, delivery), state, settled);
            }
            Output::Flow { link, credit, drain } => {
                if let Some(Link::Subscriber(subscriber)) = self.links.get_mut(&link) {
                    subscriber.credit = credit;
                    subscriber.drain = drain;
                    self.wanting.push_back(link);
                }
            }
            Output::Detached { link, by, .. } => self.detached(context, link, by.is_some()),
            Output::Closed { error, by_peer } => self.closed(context, error.as_ref(), by_peer),
            Output::HangUp => self.phase = Phase::Over,
        }
    }

    /// Somebody says who it is.
    fn authenticate(&mut self, context: &mut Context<'_>, credentials: Credentials) {
        let may_act = |as_whom: &str, user: &str| as_whom.is_empty() || as_whom == user;
        let login = match credentials {
            Credentials::External { authorize_as } => {
                let certified = self.certified.clone();
                let user = certified.filter(|user| may_act(&authorize_as, user));
                let code = if user.is_some() { Code::Ok } else { Code::Auth };
                self.phase = if user.is_some() { Phase::Known } else { Phase::Beginning };
                self.user = user;
                return self.inputs.push_back(Input::Authenticated(code));
            }
            Credentials::Plain { authorize_as, user, .. } if !may_act(&authorize_as, &user) => {
                return self.inputs.push_back(Input::Authenticated(Code::Auth));
            }
            Credentials::Plain { user, password, .. } => {
                let password = Some(Bytes::from(password));
                Login { connection: self.id, user: Some(user), password }
            }
            Credentials::Anonymous { .. } => {
                Login { connection: self.id, user: None, password: None }
            }
        };
        self.phase = Phase::Authenticating;
        context.outputs.login(login);
    }

    /// The peer has opened.
    fn opened(&mut self, context: &mut Context<'_>, shared: &mut Shared) {
        if self.phase == Phase::Known {
            return self.enter(context, shared);
        }
        if let Some(user) = self.certified.clone() {
            self.user = Some(user);
            return self.enter(context, shared);
        }
        self.phase = Phase::Opening;
        context.outputs.login(Login { connection: self.id, user: None, password: None });
    }

    /// Whoever it is, is known, or not.
    pub(super) fn known(
        &mut self,
        context: &mut Context<'_>,
        shared: &mut Shared,
        user: Result<Option<Arc<str>>, ()>,
    ) {
        match (self.phase, user) {
            (Phase::Authenticating, Ok(user)) => {
                (self.phase, self.user) = (Phase::Known, user);
                self.inputs.push_back(Input::Authenticated(Code::Ok));
            }
            (Phase::Authenticating, Err(())) => {
                self.inputs.push_back(Input::Authenticated(Code::Auth));
            }
            (Phase::Opening, Ok(user)) => {
                self.user = user;
                self.enter(context, shared);
            }
            (Phase::Opening, Err(())) => {
                let what = "whoever gives no name is not let in";
                let error = Some(ErrorInfo::new(condition::UNAUTHORIZED_ACCESS, what));
                self.inputs.push_back(Input::Close { error });
            }
            _ => {}
        }
        self.run(context, shared);
    }

    /// The container gets the session that it publishes in.
    fn enter(&mut self, context: &mut Context<'_>, shared: &mut Shared) {
        self.phase = Phase::Known;
        // Two connections of one container are allowed, and are two publishers.
        let mut name = self.container.clone();
        if name.is_empty() || shared.names.contains_key(&name) {
            name = format!("{name}#{}", self.id.0).into();
        }
        shared.names.insert(name.clone(), self.id);
        let opening = Opening {
            client: ClientKey { protocol: Protocol::Amqp, name },
            connection: self.id,
            user: self.user.clone(),
            clean: true,
            expiry: Duration::ZERO,
            window: 1,
            will: None,
        };
        match context.core.open(context.now, opening) {
            Ok(opened) => {
                self.publisher = Some(opened.session);
                self.inputs.push_back(Input::Open);
            }
            Err(refusal) => {
                self.refused(context, &format!("a connection: {refusal}"));
                let error = Some(translate::refused(&refusal));
                self.inputs.push_back(Input::Close { error });
            }
        }
    }

    /// Tells the operator.
    pub(super) fn refused(&self, context: &mut Context<'_>, what: &str) {
        context.core.tell(Event::Refused {
            protocol: Protocol::Amqp,
            connection: Some(self.id),
            why: format!("{}: {what}", self.container),
        });
    }

    /// Something for the machine, now or when the store has what it is for.
    pub(super) fn hold(
        &mut self,
        context: &Context<'_>,
        shared: &mut Shared,
        ticket: Ticket,
        input: Input,
    ) {
        if self.held.is_empty() && ticket <= context.core.journal.done() {
            self.inputs.push_back(input);
        } else {
            self.held.push_back((ticket, input));
            shared.holding.insert(self.id);
        }
    }

    /// The store has more.
    pub(super) fn committed(&mut self, context: &mut Context<'_>, shared: &mut Shared) {
        let done = context.core.journal.done();
        while self.held.front().is_some_and(|(ticket, _)| *ticket <= done) {
            self.inputs.extend(self.held.pop_front().map(|(_, input)| input));
        }
        if !self.held.is_empty() {
            shared.holding.insert(self.id);
        }
        self.run(context, shared);
    }

    /// A link is gone; `stays` says that what it kept may be kept.
    fn detached(&mut self, context: &mut Context<'_>, link: LinkId, stays: bool) {
        let Some(Link::Subscriber(subscriber)) = self.links.remove(&link) else { return };
        let session = subscriber.session;
        self.sessions.remove(&session);
        let expiry = if stays { subscriber.expiry } else { Duration::ZERO };
        context.core.close(context.now, session, self.id, true, Some(expiry));
    }

    /// Another connection has taken a subscription (AMQP 1.0 Part 2 §2.8.18).
    pub(super) fn lose(
        &mut self,
        context: &mut Context<'_>,
        shared: &mut Shared,
        session: SessionId,
    ) {
        let Some(link) = self.sessions.remove(&session) else { return };
        self.links.remove(&link);
        let what = "another connection has attached this link";
        let error = Some(ErrorInfo::new(condition::STOLEN, what));
        self.feed(context, shared, Input::Detach { link, closed: false, error });
    }

    /// The connection is over.
    fn closed(&mut self, context: &mut Context<'_>, error: Option<&ErrorInfo>, by_peer: bool) {
        if let Some(error) = error {
            self.refused(context, &error.to_string());
        }
        let links: Vec<LinkId> = self.links.keys().copied().collect();
        links.into_iter().for_each(|link| self.detached(context, link, true));
        if let Some(session) = self.publisher.take() {
            let orderly = by_peer && error.is_none();
            context.core.close(context.now, session, self.id, orderly, None);
        }
        self.held.clear();
    }
}
