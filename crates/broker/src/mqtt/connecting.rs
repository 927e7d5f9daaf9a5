//! The first packet of a client, and its answer (MQTT 5 §3.1, §3.2).

use std::sync::Arc;
use std::time::Duration;

use proto::mqtt::{
    ConnAck, Connect, Id, Packet, Properties, Reason, Refused, Value, Version, encode,
};

use super::connection::{Open, Phase};
use super::{Mqtt, bridge, translate};
use crate::core::Opening;
use crate::event::Event;
use crate::ids::{ClientKey, ConnectionId, Protocol, SessionId, Ticket};
use crate::outputs::{Context, Login};
use crate::session::Will;

/// Connections that are coded at once; each takes up to 4 MB. Others are not coded.
const MAX_CODED: usize = 32;
/// A node that takes no longer packets would not learn that it is.
const MIN_CODED_PACKET_BYTES: usize = 1024;
/// The session expiry that stands for ever (MQTT 5 §3.1.2.11.2).
const NEVER: u32 = u32::MAX;

impl Mqtt {
    /// A CONNECT came: whoever it is, is to be found out.
    pub(super) fn connect(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        connect: Connect,
    ) -> Result<(), Refused> {
        let version = connect.version;
        if connect.properties.has(Id::AUTHENTICATION_METHOD) {
            let what = "no authentication method is known but user name and password";
            let reason = Reason::BAD_AUTHENTICATION_METHOD;
            return self.reject(context, id, version, reason, what);
        }
        if connect.client_id.is_empty() && !connect.clean_start && version != Version::V5 {
            // MQTT 3.1.1 §3.1.3.1, MQTT-3.1.3-8.
            let what = "a client without identifier cannot keep a session";
            let reason = Reason::CLIENT_IDENTIFIER_NOT_VALID;
            return self.reject(context, id, version, reason, what);
        }
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        if let Some(user) = connection.certified.clone() {
            connection.phase = Phase::Login(Box::new(connect));
            self.enter(context, id, Ok(Some(user)));
            return Ok(());
        }
        let user = connect.username.as_ref().map(|user| user.as_str().to_owned());
        let password = connect.password.clone();
        connection.phase = Phase::Login(Box::new(connect));
        context.outputs.login(Login { connection: id, user, password });
        Ok(())
    }

    /// Ends a connection that has not begun, with the reason.
    fn reject(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        version: Version,
        reason: Reason,
        what: &'static str,
    ) -> Result<(), Refused> {
        answer(context, id, version, reason, Some(what));
        // The connection has its answer; what is told of it is the rest.
        Err(Refused::with(reason, what))
    }

    /// The client is known, or not let in.
    pub(super) fn enter(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        user: Result<Option<Arc<str>>, ()>,
    ) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Phase::Login(connect) = std::mem::replace(&mut connection.phase, Phase::Waiting) else {
            return;
        };
        let version = connect.version;
        let result = match user {
            Err(()) => {
                // Whether there is such a user is nobody's business (MQTT 5 §3.2.2.2).
                let named = connect.username.is_some();
                let reason =
                    if named { Reason::BAD_USER_NAME_OR_PASSWORD } else { Reason::NOT_AUTHORIZED };
                Err(Refused::with(reason, "the client is not let in"))
            }
            Ok(user) => self.open(context, id, *connect, user),
        };
        if let Err(refused) = result {
            answer(context, id, version, refused.reason, Some(refused.what));
            self.refuse(context, id, refused);
        }
    }

    fn open(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        connect: Connect,
        user: Option<Arc<str>>,
    ) -> Result<(), Refused> {
        let is_v5 = connect.version == Version::V5;
        let properties = &connect.properties;
        let assigned = connect.client_id.is_empty().then(|| {
            // The shell never gives a number twice; the time tells this start from the last.
            let now_ms = context.now.as_millis();
            format!("{}{now_ms:x}-{:x}", self.settings.assigned_prefix, id.0)
        });
        let name: Arc<str> =
            assigned.as_deref().unwrap_or_else(|| connect.client_id.as_str()).into();
        let asked = expiry(&connect);
        let end = self.end_of(context.now, properties, user.as_deref())?;
        let opening = Opening {
            client: ClientKey { protocol: Protocol::Mqtt, name },
            connection: id,
            user,
            clean: connect.clean_start,
            expiry: asked,
            window: properties
                .number(Id::RECEIVE_MAXIMUM)
                .and_then(|maximum| u16::try_from(maximum).ok())
                .unwrap_or(u16::MAX),
            will: will(&connect)?,
        };
        let opened = context.core.open(context.now, opening).map_err(translate::refused)?;
        if let Some(displaced) = opened.displaced {
            self.taken_over(context, displaced);
        }
        let max_bytes = properties.number(Id::MAXIMUM_PACKET_SIZE);
        let mut open = Open {
            session: opened.session,
            version: connect.version,
            is_bridge: connect.is_bridge,
            max_bytes: max_bytes.and_then(|max| usize::try_from(max).ok()).unwrap_or(usize::MAX),
            expiry: asked,
            keep_alive: self.keep_alive(context, &connect),
            aliases: std::collections::BTreeMap::new(),
            numbered: std::collections::BTreeMap::new(),
            max_numbered: properties
                .number(Id::TOPIC_ALIAS_MAXIMUM)
                .and_then(|maximum| u16::try_from(maximum).ok())
                .unwrap_or(0),
            held: std::collections::VecDeque::new(),
            end,
        };
        let mut answer = ConnAck { session_present: opened.present, ..ConnAck::default() };
        if is_v5 {
            let shorter = (opened.expiry < asked).then_some(opened.expiry);
            let keep_alive = open
                .keep_alive
                .filter(|time| *time != Duration::from_secs(connect.keep_alive_s.into()));
            answer.properties = self.granted(assigned.as_deref(), shorter, keep_alive);
            if let Some(end) = &open.end {
                bridge::say_node(&mut answer.properties, &end.node, end.born_s);
            }
        }
        let is_coded = open.end.is_some()
            && bridge::codes(properties)
            && open.max_bytes >= MIN_CODED_PACKET_BYTES
            && self.may_code(context, id, open.session);
        if is_coded {
            bridge::say_coding(&mut answer.properties);
        }
        self.greet(context, id, &mut open, answer, opened.expiry);
        let due = open.keep_alive.map(|time| context.now.saturating_add(time + time / 2));
        self.timers.set(id, due);
        self.begin(context, id, open, is_coded);
        Ok(())
    }

    /// Sends the CONNACK: what a session that outlives its connection is granted, it has after a
    /// crash.
    fn greet(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        open: &mut Open,
        answer: ConnAck,
        expiry: Duration,
    ) {
        let ticket = match expiry.is_zero() {
            true => Ticket(0),
            false => context.core.journal.ticket(),
        };
        open.acknowledge(context, id, ticket, Packet::ConnAck(answer));
        if open.is_greeting() {
            self.holding.insert(id);
        }
    }

    /// What a connection has where it says that it is of another node; not all may.
    fn end_of(
        &mut self,
        now: Duration,
        properties: &Properties,
        user: Option<&str>,
    ) -> Result<Option<Box<bridge::End>>, Refused> {
        let Some(peer) = bridge::peer_node(properties) else { return Ok(None) };
        if !self.settings.may_bridge(user) {
            // Where its publications have been would not be known, and they could go in circles.
            let what = "a bridge of another broker whose user is not among bridge_users";
            return Err(Refused::with(Reason::NOT_AUTHORIZED, what));
        }
        let (peer, node, born_s) = (Some(peer), self.settings.node.clone(), self.born_s(now));
        let (bridge, pinged, is_believed) = (None, false, true);
        Ok(Some(Box::new(bridge::End { node, peer, bridge, pinged, is_believed, born_s })))
    }

    /// A connection has its session; what follows is coded, or not.
    pub(super) fn begin(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        mut open: Open,
        is_coded: bool,
    ) {
        if is_coded {
            // Numbers of topics are for all users of the connection: lengths would tell which
            // topics others have.
            open.max_numbered = 0;
        }
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if is_coded {
            // Behind the CONNACK, where that waits.
            if !open.is_greeting() {
                context.outputs.code(id);
            }
            connection.begin_coded();
        }
        connection.phase = Phase::Open(Box::new(open));
    }

    /// Whether there is a place for one more node whose connection is coded: one user gets no
    /// more of them than are left.
    fn may_code(&self, context: &mut Context<'_>, id: ConnectionId, session: SessionId) -> bool {
        let user = context.core.user(session);
        let (mut all, mut own) = (0, 0);
        for connection in self.connections.values().filter(|one| one.coded.is_some()) {
            let Phase::Open(open) = &connection.phase else { continue };
            if !open.is_bridge() {
                all += 1;
                own += usize::from(context.core.user(open.session) == user);
            }
        }
        let has_place = all + own < MAX_CODED;
        if !has_place {
            let why = format!(
                "a bridge is not compressed: {all} are, {own} of them its user's, of {MAX_CODED}"
            );
            let protocol = Protocol::Mqtt;
            context.core.tell(Event::Refused { protocol, connection: Some(id), why });
        }
        has_place
    }

    /// How long the client may say nothing; `None`: for ever, which the shell bounds by looking
    /// whether the connection is still there.
    fn keep_alive(&self, context: &Context<'_>, connect: &Connect) -> Option<Duration> {
        let asked = Duration::from_secs(connect.keep_alive_s.into());
        let max = context.core.settings().max_keep_alive;
        match (asked.is_zero(), connect.version) {
            (true, _) => None,
            // MQTT 5 §3.2.2.3.14: a server can ask for a shorter one, before that it could not.
            (false, Version::V5) => Some(asked.min(max)),
            (false, _) => Some(asked),
        }
    }

    /// What the client is told of its session and of this broker.
    fn granted(
        &self,
        assigned: Option<&str>,
        expiry: Option<Duration>,
        keep_alive: Option<Duration>,
    ) -> Properties {
        let number = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        let seconds = |time: Duration| u32::try_from(time.as_secs()).unwrap_or(NEVER);
        let settings = &self.settings;
        let mut values = vec![
            (Id::RECEIVE_MAXIMUM, Value::Number(settings.receive_maximum.into())),
            (Id::MAXIMUM_PACKET_SIZE, Value::Number(number(settings.max_packet_bytes))),
            (Id::TOPIC_ALIAS_MAXIMUM, Value::Number(settings.topic_alias_maximum.into())),
        ];
        values.extend(assigned.map(|name| (Id::ASSIGNED_CLIENT_IDENTIFIER, Value::Text(name))));
        values
            .extend(expiry.map(|time| (Id::SESSION_EXPIRY_INTERVAL, Value::Number(seconds(time)))));
        values.extend(keep_alive.map(|time| (Id::SERVER_KEEP_ALIVE, Value::Number(seconds(time)))));
        translate::properties(values)
    }

    /// Somebody with the same identifier has come (MQTT 5 §3.1.4, MQTT-3.1.4-3).
    fn taken_over(&mut self, context: &mut Context<'_>, displaced: ConnectionId) {
        let what = Some("another connection has this client identifier");
        self.disconnect(context, displaced, Reason::SESSION_TAKEN_OVER, what);
    }
}

/// The CONNACK of a client that is not let in.
pub(super) fn answer(
    context: &mut Context<'_>,
    id: ConnectionId,
    version: Version,
    reason: Reason,
    what: Option<&str>,
) {
    let mut answer = ConnAck { session_present: false, reason, properties: Properties::NONE };
    if version == Version::V5 {
        translate::explain(&mut answer.properties, what);
    }
    if let Some(out) = context.outputs.writer(id) {
        let _ = encode(&Packet::ConnAck(answer), version, out);
    }
}

/// How long a session is to be kept. Before MQTT 5 it is for ever or not at all, by the flag that
/// says how it begins.
fn expiry(connect: &Connect) -> Duration {
    if connect.version != Version::V5 {
        return if connect.clean_start { Duration::ZERO } else { Duration::MAX };
    }
    duration(connect.properties.number(Id::SESSION_EXPIRY_INTERVAL).unwrap_or(0))
}

/// The value of a Session Expiry Interval.
pub(super) fn duration(seconds: u32) -> Duration {
    if seconds == NEVER { Duration::MAX } else { Duration::from_secs(seconds.into()) }
}

fn will(connect: &Connect) -> Result<Option<Will>, Refused> {
    let Some(will) = &connect.will else { return Ok(None) };
    let mut properties = will.properties.clone();
    bridge::take_via(&mut properties, None);
    let parts = translate::Parts {
        topic: will.topic.as_str().into(),
        payload: &will.payload,
        qos: will.qos,
        retain: will.retain,
        properties: &properties,
    };
    let seconds = |id| will.properties.number(id).map(|number| Duration::from_secs(number.into()));
    Ok(Some(Will {
        publication: translate::publication(parts)?,
        expiry: seconds(Id::MESSAGE_EXPIRY_INTERVAL),
        delay: seconds(Id::WILL_DELAY_INTERVAL).unwrap_or_default(),
    }))
}
