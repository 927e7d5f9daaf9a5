//! How a bridge's connection begins, and how it is kept.

use std::sync::Arc;
use std::time::Duration;

use proto::mqtt::{
    ConnAck, Connect, Filter, Id, Options, Packet, Properties, Reason, Refused, RetainHandling,
    SubAck, Subscribe, Text, Value, Version, encode,
};

use super::link::{DialState, Link};
use super::{Bridge, BridgeStatus, End, codes, peer_node, say_coding, say_node};
use crate::core::{Core, Opening, peer_forgot};
use crate::event::Event;
use crate::ids::{ClientKey, ConnectionId, Protocol, SessionId};
use crate::mqtt::connection::{Connection, Open, Phase};
use crate::mqtt::{MAX_CONNECT_WAIT, Mqtt, translate};
use crate::outputs::Context;
use crate::session::{self, Subscription};

/// What stands for the connection of a bridge that has none yet; no shell gives these numbers.
const FIRST_PLACEHOLDER: u64 = u64::MAX - 1;

impl Mqtt {
    /// Ends the sessions of bridges that there are no more.
    pub(crate) fn forget_bridges(&self, context: &mut Context<'_>) {
        let is_there = |name: &str| self.links.iter().any(|link| *link.bridge.name == *name);
        let sessions = context.core.sessions_of(Protocol::Bridge);
        let gone: Vec<SessionId> =
            sessions.filter(|(_, key)| !is_there(&key.name)).map(|(session, _)| session).collect();
        for session in gone {
            context.core.end(context.now, session);
        }
    }

    /// How the bridges are.
    pub(crate) fn bridges(&self, core: &Core) -> Vec<BridgeStatus> {
        let status = |link: &Link| {
            let (waiting, under_way) = link.session.map_or((0, 0), |session| core.waiting(session));
            let is_connected = matches!(link.state, DialState::Connected(_)) && link.has_answered;
            BridgeStatus { name: link.bridge.name.clone(), is_connected, waiting, under_way }
        };
        self.links.iter().map(status).collect()
    }

    /// What the numbers of publications of this process stand behind.
    pub(in crate::mqtt) fn born_s(&mut self, now: Duration) -> u64 {
        let birth = self.settings.birth;
        if birth == 0 { self.born.get_or_insert(now).as_secs() } else { birth }
    }

    /// Makes the connections that are due, and the sessions of bridges that have none.
    pub(in crate::mqtt) fn dial(&mut self, context: &mut Context<'_>) {
        for number in 0..self.links.len() {
            let Some(link) = self.links.get(number) else { return };
            if link.dial_at().is_none_or(|at| at > context.now) {
                continue;
            }
            if link.state == DialState::New
                && let Err(why) = self.prepare(context, number)
            {
                context.core.tell(Event::Refused {
                    protocol: Protocol::Bridge,
                    connection: None,
                    why,
                });
            }
            let Some(link) = self.links.get_mut(number) else { return };
            link.state = DialState::Dialling;
            context.outputs.dial(u16::try_from(number).unwrap_or(u16::MAX));
        }
    }

    /// Gives a bridge its session before it has a connection, so that nothing is missed.
    fn prepare(&mut self, context: &mut Context<'_>, number: usize) -> Result<(), String> {
        let Some(link) = self.links.get_mut(number) else { return Ok(()) };
        let placeholder = ConnectionId(FIRST_PLACEHOLDER - number as u64);
        // What of the state has left before this process began is not known.
        let session = open(context, link, placeholder, u16::MAX, true)?;
        context.core.close(context.now, session, placeholder, true, None);
        Ok(())
    }

    /// A connection to the other broker is there, or is not.
    pub(crate) fn dialled(
        &mut self,
        context: &mut Context<'_>,
        number: u16,
        result: Result<ConnectionId, String>,
    ) {
        let Some(link) = self.links.get_mut(usize::from(number)) else { return };
        let id = match result {
            Ok(id) => id,
            Err(why) => {
                let why = format!("the bridge {} is not connected: {why}", link.bridge.name);
                let protocol = Protocol::Bridge;
                context.core.tell(Event::Refused { protocol, connection: None, why });
                return link.failed(context.now);
            }
        };
        link.state = DialState::Connected(id);
        link.has_answered = false;
        let bridge = link.bridge.clone();
        let is_marked = link.is_marked;
        let born_s = self.born_s(context.now);
        let connect = connect(&bridge, &self.settings, &self.settings.node, born_s, is_marked);
        let mut connection = Connection::new(None);
        connection.phase = Phase::Greeting(number);
        connection.greeting_version = bridge.version;
        self.connections.insert(id, Box::new(connection));
        self.timers.set(id, Some(context.now.saturating_add(MAX_CONNECT_WAIT)));
        if let Some(out) = context.outputs.writer(id) {
            // Its parts were looked at when the configuration was read.
            let _ = encode(&Packet::Connect(Box::new(connect)), bridge.version, out);
        }
    }

    /// The other broker answers.
    pub(in crate::mqtt) fn greeted(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        number: u16,
        answer: &ConnAck,
    ) -> Result<(), Refused> {
        if let Some(link) = self.links.get_mut(usize::from(number)) {
            link.has_answered = true;
            link.is_marked &= answer.reason != Reason::UNSUPPORTED_PROTOCOL_VERSION;
        }
        let Some(link) = self.links.get_mut(usize::from(number)) else { return Ok(()) };
        let bridge = link.bridge.clone();
        check(&bridge, answer)?;
        let properties = &answer.properties;
        let number_of = |of| properties.number(of);
        let narrow = |of| number_of(of).and_then(|value| u16::try_from(value).ok());
        let window = narrow(Id::RECEIVE_MAXIMUM).unwrap_or(u16::MAX).min(bridge.max_inflight);
        if let Some(session) = link.session.filter(|_| !answer.session_present) {
            peer_forgot(context.core, session);
        }
        let session = match open(context, link, id, window, false) {
            Ok(session) => session,
            Err(why) => {
                let protocol = Protocol::Bridge;
                context.core.tell(Event::Refused { protocol, connection: Some(id), why });
                return Err(Refused::with(Reason::QUOTA_EXCEEDED, "the bridge has no session"));
            }
        };
        link.succeeded();
        let asks = !answer.session_present || !link.has_subscribed;
        // It has, once the other broker says so.
        link.has_subscribed &= !asks;
        if !answer.session_present {
            again(context, session, &bridge);
        }
        let keep_alive = narrow(Id::SERVER_KEEP_ALIVE)
            .map_or(bridge.keep_alive, |seconds| Duration::from_secs(seconds.into()));
        let max_bytes = number_of(Id::MAXIMUM_PACKET_SIZE);
        let open = Open {
            session,
            version: bridge.version,
            is_bridge: false,
            max_bytes: max_bytes.and_then(|max| usize::try_from(max).ok()).unwrap_or(usize::MAX),
            expiry: bridge.expiry,
            keep_alive: Some(keep_alive).filter(|time| !time.is_zero()),
            aliases: std::collections::BTreeMap::new(),
            numbered: std::collections::BTreeMap::new(),
            max_numbered: narrow(Id::TOPIC_ALIAS_MAXIMUM).unwrap_or(0),
            held: std::collections::VecDeque::new(),
            end: Some(Box::new(End {
                node: self.settings.node.clone(),
                peer: peer_node(properties),
                bridge: Some((number, bridge.clone())),
                pinged: false,
                is_believed: true,
                born_s: self.born_s(context.now),
            })),
        };
        self.begin(context, id, open, codes(properties));
        if asks
            && let Some(subscribe) = subscribe(context, session, &bridge)
            && let Some(open) = self.open_mut(id)
        {
            open.send(context, id, Packet::Subscribe(subscribe));
        }
        context.outputs.batch(id, bridge.batch);
        self.keep(context, id);
        Ok(())
    }

    /// The other broker has answered the SUBSCRIBE.
    pub(in crate::mqtt) fn subscribed(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        answer: &SubAck,
    ) {
        let Some(open) = self.open_mut(id) else { return };
        let Some(bridge) = open.end.as_ref().and_then(|end| end.bridge.clone()) else { return };
        let comes = bridge.1.routes.iter().filter(|route| route.comes);
        if let Some(link) = self.links.get_mut(usize::from(bridge.0)) {
            link.has_subscribed = true;
        }
        for (route, reason) in comes.zip(&answer.reasons).filter(|(_, one)| one.is_failure()) {
            let (name, filter) = (&bridge.1.name, route.remote_filter());
            let why = format!("the bridge {name} may not subscribe to {filter} there: {reason}");
            let protocol = Protocol::Bridge;
            context.core.tell(Event::Refused { protocol, connection: Some(id), why });
        }
    }

    /// Sends a sign of life if one is due, ends a connection without any, and sets the next look.
    pub(in crate::mqtt) fn keep(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let (heard, patience) = (connection.heard, connection.patience());
        let Phase::Open(open) = &mut connection.phase else { return };
        let Some(keep_alive) = open.keep_alive else { return self.timers.set(id, None) };
        let dead_at = heard.saturating_add(patience);
        if context.now >= dead_at {
            let what = "the other broker does not answer";
            return self.refuse(context, id, Refused::with(Reason::UNSPECIFIED_ERROR, what));
        }
        let quiet = heard.min(context.outputs.written_at(id).unwrap_or(heard));
        let ping_at = quiet.saturating_add(keep_alive / 4 * 3);
        let has_pinged = open.end.as_ref().is_some_and(|end| end.pinged);
        let mut next = if has_pinged { dead_at } else { ping_at };
        if context.now >= ping_at && !has_pinged {
            context.outputs.pinged(id);
            open.send(context, id, Packet::PingReq);
            context.outputs.urge(id);
            if let Some(end) = &mut open.end {
                end.pinged = true;
            }
            // Others may be heard meanwhile, and the next sign of life is due all the same.
            next = dead_at.min(context.now.saturating_add(keep_alive / 4 * 3));
        }
        self.timers.set(id, Some(next));
    }

    /// A bridge's connection has ended.
    pub(in crate::mqtt) fn unlinked(&mut self, now: Duration, id: ConnectionId) {
        for link in &mut self.links {
            if link.state == DialState::Connected(id) {
                // Some close the connection of a client whose version they do not know.
                link.is_marked &= link.has_answered;
                link.failed(now);
            }
        }
    }
}

/// Whether the other broker's answer is one that the bridge can live with.
fn check(bridge: &Bridge, answer: &ConnAck) -> Result<(), Refused> {
    if answer.reason.is_failure() {
        return Err(Refused::with(answer.reason, "the other broker does not let it in"));
    }
    if codes(&answer.properties) && !bridge.compress {
        return Err(Refused::protocol("the other broker compresses, and was not asked to"));
    }
    let max_qos = answer.properties.number(Id::MAXIMUM_QOS).unwrap_or(2);
    let goes = bridge.routes.iter().filter(|route| route.goes);
    if goes.map(|route| u32::from(route.max_grade.get())).any(|grade| grade > max_qos) {
        let what = "the other broker takes a lower QoS (Maximum QoS): lower max_qos of routes";
        return Err(Refused::with(Reason::QOS_NOT_SUPPORTED, what));
    }
    Ok(())
}

/// Opens a bridge's session, with the subscriptions of its routes.
fn open(
    context: &mut Context<'_>,
    link: &mut Link,
    connection: ConnectionId,
    window: u16,
    again: bool,
) -> Result<SessionId, String> {
    let name = link.bridge.name.clone();
    let opening = Opening {
        client: ClientKey { protocol: Protocol::Bridge, name: name.clone() },
        connection,
        user: None,
        clean: false,
        expiry: Duration::MAX,
        window,
        will: None,
    };
    let opened = context.core.open(context.now, opening);
    let opened = opened.map_err(|refusal| format!("the bridge {name}: {refusal}"))?;
    let session = opened.session;
    link.session = Some(session);
    let handling = match again && opened.present {
        true => session::RetainHandling::Always,
        false => session::RetainHandling::IfNew,
    };
    let wanted: Vec<Subscription> = goes(&link.bridge, handling).collect();
    let stale: Vec<Arc<str>> = context
        .core
        .filters(session)
        .filter(|filter| !wanted.iter().any(|one| *one.filter == ***filter))
        .cloned()
        .collect();
    for filter in stale {
        context.core.unsubscribe(session, &filter);
    }
    for subscription in wanted {
        let filter = subscription.filter.clone();
        let result = context.core.subscribe_unchecked(session, subscription);
        result.map_err(|refusal| format!("the bridge {name} has no {filter}: {refusal}"))?;
    }
    Ok(session)
}

/// The other broker knows nothing of before: it gets what is retained here.
fn again(context: &mut Context<'_>, session: SessionId, bridge: &Bridge) {
    for subscription in goes(bridge, session::RetainHandling::Always) {
        // It was granted before.
        let _ = context.core.subscribe_unchecked(session, subscription);
    }
}

/// Subscriptions to what goes to the other broker.
fn goes(
    bridge: &Bridge,
    handling: session::RetainHandling,
) -> impl Iterator<Item = Subscription> + '_ {
    bridge.routes.iter().filter(|route| route.goes).map(move |route| Subscription {
        no_local: true,
        as_published: true,
        handling,
        ..Subscription::new(route.local_filter(), route.max_grade)
    })
}

fn connect(
    bridge: &Bridge,
    settings: &crate::mqtt::Settings,
    node: &str,
    born_s: u64,
    is_marked: bool,
) -> Connect {
    let properties = if bridge.version == Version::V5 {
        let seconds = u32::try_from(bridge.expiry.as_secs()).unwrap_or(u32::MAX);
        let bytes = u32::try_from(settings.max_packet_bytes).unwrap_or(u32::MAX);
        let mut properties = translate::properties([
            (Id::SESSION_EXPIRY_INTERVAL, Value::Number(seconds)),
            (Id::RECEIVE_MAXIMUM, Value::Number(settings.receive_maximum.into())),
            (Id::MAXIMUM_PACKET_SIZE, Value::Number(bytes)),
            (Id::TOPIC_ALIAS_MAXIMUM, Value::Number(settings.topic_alias_maximum.into())),
        ]);
        say_node(&mut properties, node, born_s);
        if bridge.compress {
            say_coding(&mut properties);
        }
        properties
    } else {
        Properties::NONE
    };
    let text = |text: &str| text.parse::<Text>().unwrap_or(Text::EMPTY);
    Connect {
        version: bridge.version,
        is_bridge: is_marked,
        client_id: text(&bridge.client_id),
        clean_start: false,
        keep_alive_s: u16::try_from(bridge.keep_alive.as_secs()).unwrap_or(u16::MAX),
        username: bridge.user.as_deref().map(text),
        password: bridge.password.clone(),
        will: None,
        properties,
    }
}

/// The SUBSCRIBE for what comes from the other broker; `None` where nothing does.
fn subscribe(context: &Context<'_>, session: SessionId, bridge: &Bridge) -> Option<Subscribe> {
    let is_v5 = bridge.version == Version::V5;
    let filters: Vec<Filter> = bridge
        .routes
        .iter()
        .filter(|route| route.comes)
        .filter_map(|route| {
            let options = Options {
                qos: translate::qos(route.max_grade),
                no_local: is_v5,
                retain_as_published: is_v5,
                retain_handling: if is_v5 {
                    RetainHandling::SendIfNew
                } else {
                    RetainHandling::Send
                },
            };
            Some(Filter { filter: route.remote_filter().parse().ok()?, options })
        })
        .collect();
    // No message of this side has the number (MQTT 5 §2.2.1, MQTT-2.2.1-3).
    let is_free = |id: &u16| context.core.outstanding(session, *id).is_none();
    let id = (1..=u16::MAX).rev().find(is_free)?;
    (!filters.is_empty()).then(|| Subscribe { id, filters, ..Subscribe::default() })
}
