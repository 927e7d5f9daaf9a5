//! Packets to bytes (MQTT 5 §3; MQTT 3.1.1 §3; MQTT 3.1 §3).

use super::frame::{MAX_HEADER_BYTES, MAX_REMAINING_BYTES, varint_len};
use super::id::{Id, Ids};
use super::level::{BRIDGE, Qos, Version};
use super::packet::{
    Ack, Auth, ConnAck, Connect, Disconnect, Filter, Options, Packet, Publish, RetainHandling,
    SubAck, Subscribe, UnsubAck, Unsubscribe,
};
use super::property::Properties;
use super::reason::{Reason, Reasons};
use super::text::{MAX_TEXT_BYTES, Text};
use crate::Error;

/// Where in a buffer the parts of a PUBLISH stand that differ from receiver to receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    first_at: usize,
    id_at: Option<usize>,
}

impl Marks {
    /// Changes the DUP flag and the packet identifier of the PUBLISH in the buffer that it was
    /// written to, or a copy of that. One of QoS 0 has neither, and stays.
    pub fn patch(self, out: &mut [u8], dup: bool, packet_id: u16) {
        let Some(id_at) = self.id_at else { return };
        if let Some(first) = out.get_mut(self.first_at) {
            *first = *first & !0b1000 | u8::from(dup) << 3;
        }
        if let Some(place) = out.get_mut(id_at..).and_then(<[u8]>::first_chunk_mut) {
            *place = packet_id.to_be_bytes();
        }
    }
}

/// Writes a packet at the end of `out`, for a connection of `version`; a CONNECT says its own. What
/// the version lacks is left out: properties, reason codes, options of subscriptions.
///
/// # Errors
///
/// [`Error::Caller`] for what no packet can say: properties or reason codes that it cannot have,
/// the packet identifier 0, no filters, an AUTH before MQTT 5; [`Error::Limit`] where a part is too
/// long. `out` is then as it was.
pub fn encode(packet: &Packet, version: Version, out: &mut Vec<u8>) -> Result<(), Error> {
    let before = out.len();
    let done = match packet {
        Packet::Publish(publish) => encode_publish_head(publish, version, out).map(|_| {
            out.extend_from_slice(&publish.payload);
        }),
        _ => whole(packet, version, out),
    };
    if done.is_err() {
        out.truncate(before);
    }
    done
}

/// How many bytes [`encode()`] writes, to compare with a peer's Maximum Packet Size (MQTT 5
/// §3.1.2.11.4).
#[must_use]
pub fn encoded_len(packet: &Packet, version: Version) -> usize {
    let version = if let Packet::Connect(connect) = packet { connect.version } else { version };
    let body_len = body_len(packet, version);
    1 + varint_len(body_len) + body_len
}

/// How many bytes a PUBLISH has.
pub(super) fn publish_len(publish: &Publish, version: Version) -> usize {
    let body_len = publish_body_len(publish, version);
    1 + varint_len(body_len) + body_len
}

/// Leaves out what may be left out of an answer that is longer than the peer takes: first the
/// reason string, then the user properties (MQTT 5 §3.2.2.3.9, §3.2.2.3.10 and the like). Returns
/// whether it has at most `max_bytes` afterwards; otherwise it must not be sent (§3.1.2.11.4,
/// MQTT-3.1.2-24). Messages, wishes and CONNECT stay as they are.
pub fn shorten(packet: &mut Packet, version: Version, max_bytes: usize) -> bool {
    for drop in [Id::REASON_STRING, Id::USER_PROPERTY] {
        if encoded_len(packet, version) <= max_bytes {
            return true;
        }
        let properties = match packet {
            Packet::ConnAck(ConnAck { properties, .. })
            | Packet::PubAck(Ack { properties, .. })
            | Packet::PubRec(Ack { properties, .. })
            | Packet::PubRel(Ack { properties, .. })
            | Packet::PubComp(Ack { properties, .. })
            | Packet::SubAck(SubAck { properties, .. })
            | Packet::UnsubAck(UnsubAck { properties, .. })
            | Packet::Disconnect(Disconnect { properties, .. })
            | Packet::Auth(Auth { properties, .. }) => properties,
            _ => return false,
        };
        *properties = properties.without(Ids::new(&[drop]));
    }
    encoded_len(packet, version) <= max_bytes
}

/// Writes a PUBLISH but for its payload, which is to follow.
///
/// # Errors
///
/// As [`encode()`].
pub fn encode_publish_head(
    publish: &Publish,
    version: Version,
    out: &mut Vec<u8>,
) -> Result<Marks, Error> {
    let is_v5 = version == Version::V5;
    let is_named = !publish.topic.is_empty() || is_v5 && publish.properties.has(Id::TOPIC_ALIAS);
    if !is_named {
        return Err(Error::Caller { what: "a PUBLISH without topic" });
    }
    let packet_id = match (publish.qos, publish.packet_id) {
        (Qos::AtMostOnce, None) => None,
        (Qos::AtLeastOnce | Qos::ExactlyOnce, Some(id @ 1..)) => Some(id),
        _ => return Err(Error::Caller { what: "a packet identifier that the QoS cannot have" }),
    };
    if is_v5 {
        publish.properties.fits(Ids::PUBLISH)?;
    }
    let body_len = publish_body_len(publish, version);
    check_body_len(body_len)?;
    out.reserve(MAX_HEADER_BYTES + body_len - publish.payload.len());
    // MQTT 5 §3.3.1.1, MQTT-3.3.1-2: DUP only with a packet identifier.
    let dup = publish.dup && packet_id.is_some();
    let first_at = out.len();
    out.push(0x30 | u8::from(dup) << 3 | publish.qos.bits() << 1 | u8::from(publish.retain));
    push_varint(body_len, out);
    push_text(&publish.topic, out);
    let id_at = packet_id.map(|id| {
        out.extend_from_slice(&id.to_be_bytes());
        out.len() - 2
    });
    if is_v5 {
        push_properties(&publish.properties, out);
    }
    Ok(Marks { first_at, id_at })
}

/// Writes any packet but a PUBLISH.
fn whole(packet: &Packet, version: Version, out: &mut Vec<u8>) -> Result<(), Error> {
    let version = if let Packet::Connect(connect) = packet { connect.version } else { version };
    let first = match packet {
        Packet::Connect(_) => 0x10,
        Packet::ConnAck(_) => 0x20,
        Packet::Publish(_) => 0x30,
        Packet::PubAck(_) => 0x40,
        Packet::PubRec(_) => 0x50,
        Packet::PubRel(_) => 0x62,
        Packet::PubComp(_) => 0x70,
        Packet::Subscribe(_) => 0x82,
        Packet::SubAck(_) => 0x90,
        Packet::Unsubscribe(_) => 0xa2,
        Packet::UnsubAck(_) => 0xb0,
        Packet::PingReq => 0xc0,
        Packet::PingResp => 0xd0,
        Packet::Disconnect(_) => 0xe0,
        Packet::Auth(_) => 0xf0,
    };
    let body_len = body_len(packet, version);
    check_body_len(body_len)?;
    out.reserve(MAX_HEADER_BYTES + body_len);
    out.push(first);
    push_varint(body_len, out);
    match packet {
        Packet::Connect(connect) => push_connect(connect, out)?,
        Packet::ConnAck(connack) => push_connack(connack, version, out)?,
        Packet::PubAck(ack) | Packet::PubRec(ack) => {
            push_ack(ack, version, &Reasons::PUBACK, out)?;
        }
        Packet::PubRel(ack) | Packet::PubComp(ack) => {
            push_ack(ack, version, &Reasons::PUBREL, out)?;
        }
        Packet::Subscribe(subscribe) => push_subscribe(subscribe, version, out)?,
        Packet::SubAck(suback) => push_suback(suback, version, out)?,
        Packet::Unsubscribe(unsubscribe) => push_unsubscribe(unsubscribe, version, out)?,
        Packet::UnsubAck(unsuback) => push_unsuback(unsuback, version, out)?,
        Packet::Disconnect(disconnect) => {
            let Disconnect { reason, properties } = disconnect;
            check_reason(*reason, version, &Reasons::DISCONNECT)?;
            push_end(version, *reason, properties, Ids::DISCONNECT, out)?;
        }
        Packet::Auth(auth) => push_auth(auth, version, out)?,
        Packet::PingReq | Packet::PingResp | Packet::Publish(_) => {}
    }
    Ok(())
}

/// Bytes of properties with their length.
fn properties_len(properties: &Properties, version: Version) -> usize {
    if version == Version::V5 { properties.encoded_len() } else { 0 }
}

/// Bytes of a reason code and properties, as many as [`push_end`] writes.
fn end_len(version: Version, reason: Reason, properties: &Properties) -> usize {
    match (version, properties.is_empty()) {
        (Version::V5, true) => usize::from(reason != Reason::SUCCESS),
        (Version::V5, false) => 1 + properties.encoded_len(),
        _ => 0,
    }
}

/// The remaining length.
fn body_len(packet: &Packet, version: Version) -> usize {
    let is_v5 = version == Version::V5;
    match packet {
        Packet::Connect(connect) => connect_len(connect),
        Packet::ConnAck(connack) => 2 + properties_len(&connack.properties, version),
        Packet::Publish(publish) => publish_body_len(publish, version),
        Packet::PubAck(ack) | Packet::PubRec(ack) | Packet::PubRel(ack) | Packet::PubComp(ack) => {
            2 + end_len(version, ack.reason, &ack.properties)
        }
        Packet::Subscribe(subscribe) => {
            let filters = subscribe.filters.iter().map(|filter| 3 + filter.filter.len());
            2 + properties_len(&subscribe.properties, version) + filters.sum::<usize>()
        }
        Packet::SubAck(suback) => {
            2 + properties_len(&suback.properties, version) + suback.reasons.len()
        }
        Packet::Unsubscribe(unsubscribe) => {
            let filters = unsubscribe.filters.iter().map(|filter| 2 + filter.len());
            2 + properties_len(&unsubscribe.properties, version) + filters.sum::<usize>()
        }
        Packet::UnsubAck(unsuback) => {
            let reasons = if is_v5 { unsuback.reasons.len() } else { 0 };
            2 + properties_len(&unsuback.properties, version) + reasons
        }
        Packet::PingReq | Packet::PingResp => 0,
        Packet::Disconnect(disconnect) => {
            end_len(version, disconnect.reason, &disconnect.properties)
        }
        Packet::Auth(auth) => end_len(version, auth.reason, &auth.properties),
    }
}

fn publish_body_len(publish: &Publish, version: Version) -> usize {
    let id_len = if publish.packet_id.is_some() { 2 } else { 0 };
    let head_len = 2 + publish.topic.len() + id_len;
    head_len + properties_len(&publish.properties, version) + publish.payload.len()
}

fn connect_len(connect: &Connect) -> usize {
    let will = connect.will.as_ref().map_or(0, |will| {
        let properties = properties_len(&will.properties, connect.version);
        4 + will.topic.len() + will.payload.len() + properties
    });
    let username = connect.username.as_ref().map_or(0, |name| 2 + name.len());
    let password = connect.password.as_ref().map_or(0, |password| 2 + password.len());
    let head = 2 + connect.version.name().len() + 4;
    let properties = properties_len(&connect.properties, connect.version);
    head + properties + 2 + connect.client_id.len() + will + username + password
}

fn check_body_len(body_len: usize) -> Result<(), Error> {
    if body_len <= MAX_REMAINING_BYTES {
        return Ok(());
    }
    let (value, limit) = (body_len as u64, MAX_REMAINING_BYTES as u64);
    Err(Error::Limit { what: "a packet in bytes", value, limit })
}

/// A variable byte integer (MQTT 5 §1.5.5) of at most 28 bits.
fn push_varint(value: usize, out: &mut Vec<u8>) {
    let mut left = value;
    while left >= 0x80 {
        out.push(left.to_le_bytes()[0] | 0x80);
        left >>= 7;
    }
    out.push(left.to_le_bytes()[0]);
}

/// A string with its length, which [`Text`] bounds.
fn push_text(text: &Text, out: &mut Vec<u8>) {
    let len = u16::try_from(text.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Binary data with its length (MQTT 5 §1.5.6).
fn push_binary(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let (value, limit) = (bytes.len() as u64, MAX_TEXT_BYTES as u64);
    let len = u16::try_from(bytes.len()).map_err(|_| Error::Limit {
        what: "binary data in bytes",
        value,
        limit,
    })?;
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

fn push_id(id: u16, out: &mut Vec<u8>) -> Result<(), Error> {
    if id == 0 {
        return Err(Error::Caller { what: "the packet identifier 0" });
    }
    out.extend_from_slice(&id.to_be_bytes());
    Ok(())
}

/// Properties with their length.
fn push_properties(properties: &Properties, out: &mut Vec<u8>) {
    push_varint(properties.as_bytes().len(), out);
    out.extend_from_slice(properties.as_bytes());
}

/// Properties with their length where the version has them and the packet may have these.
fn push_checked(
    properties: &Properties,
    version: Version,
    allowed: Ids,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    if version == Version::V5 {
        properties.fits(allowed)?;
        push_properties(properties, out);
    }
    Ok(())
}

/// A reason code and properties, without those that may be left out (MQTT 5 §3.4.2.1, §3.14.2.1).
fn push_end(
    version: Version,
    reason: Reason,
    properties: &Properties,
    allowed: Ids,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    if version != Version::V5 {
        return Ok(());
    }
    if !properties.is_empty() {
        out.push(reason.0);
        return push_checked(properties, version, allowed, out);
    }
    if reason != Reason::SUCCESS {
        out.push(reason.0);
    }
    Ok(())
}

/// MQTT 5 §3.1.
fn push_connect(connect: &Connect, out: &mut Vec<u8>) -> Result<(), Error> {
    let version = connect.version;
    let name = version.name();
    if version != Version::V5 && connect.password.is_some() && connect.username.is_none() {
        return Err(Error::Caller { what: "a password without a user name before MQTT 5" });
    }
    push_binary(name.as_bytes(), out)?;
    let bridge = if connect.is_bridge && version != Version::V5 { BRIDGE } else { 0 };
    out.push(version.level() | bridge);
    let will_flags = connect
        .will
        .as_ref()
        .map_or(0, |will| 0b100 | will.qos.bits() << 3 | u8::from(will.retain) << 5);
    let password_flag = u8::from(connect.password.is_some()) << 6;
    let username_flag = u8::from(connect.username.is_some()) << 7;
    out.push(u8::from(connect.clean_start) << 1 | will_flags | password_flag | username_flag);
    out.extend_from_slice(&connect.keep_alive_s.to_be_bytes());
    push_checked(&connect.properties, version, Ids::CONNECT, out)?;
    push_text(&connect.client_id, out);
    if let Some(will) = &connect.will {
        push_checked(&will.properties, version, Ids::WILL, out)?;
        push_text(&will.topic, out);
        push_binary(&will.payload, out)?;
    }
    if let Some(username) = &connect.username {
        push_text(username, out);
    }
    if let Some(password) = &connect.password {
        push_binary(password, out)?;
    }
    Ok(())
}

/// MQTT 5 §3.2.
fn push_connack(connack: &ConnAck, version: Version, out: &mut Vec<u8>) -> Result<(), Error> {
    check_reason(connack.reason, version, &Reasons::CONNACK)?;
    // MQTT 5 §3.2.2.1.1, MQTT-3.2.2-6.
    let session_present = connack.session_present && !connack.reason.is_failure();
    out.push(u8::from(session_present && version != Version::V31));
    let is_v5 = version == Version::V5;
    out.push(if is_v5 { connack.reason.0 } else { connack.reason.return_code() });
    push_checked(&connack.properties, version, Ids::CONNACK, out)
}

/// MQTT 5 §3.8.
fn push_subscribe(subscribe: &Subscribe, version: Version, out: &mut Vec<u8>) -> Result<(), Error> {
    if subscribe.filters.is_empty() {
        return Err(Error::Caller { what: "a SUBSCRIBE without a topic filter" });
    }
    push_id(subscribe.id, out)?;
    push_checked(&subscribe.properties, version, Ids::SUBSCRIBE, out)?;
    for Filter { filter, options } in &subscribe.filters {
        push_text(filter, out);
        out.push(options_byte(*options, version));
    }
    Ok(())
}

/// MQTT 5 §3.8.3.1.
fn options_byte(options: Options, version: Version) -> u8 {
    if version != Version::V5 {
        return options.qos.bits();
    }
    let retain_handling = match options.retain_handling {
        RetainHandling::Send => 0,
        RetainHandling::SendIfNew => 1,
        RetainHandling::DoNotSend => 2,
    };
    let flags = u8::from(options.no_local) << 2 | u8::from(options.retain_as_published) << 3;
    options.qos.bits() | flags | retain_handling << 4
}

/// MQTT 5 §3.4 to §3.7.
fn push_ack(
    ack: &Ack,
    version: Version,
    allowed: &Reasons,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    check_reason(ack.reason, version, allowed)?;
    push_id(ack.id, out)?;
    push_end(version, ack.reason, &ack.properties, Ids::ACK, out)
}

/// A packet has the reason codes that the standard has for it (MQTT 5 §2.4).
fn check_reason(reason: Reason, version: Version, allowed: &Reasons) -> Result<(), Error> {
    if version == Version::V5 && !allowed.has(reason) {
        return Err(Error::Caller { what: "a reason code that this packet cannot have" });
    }
    Ok(())
}

/// There is one for each filter (MQTT 5 §3.9.3, §3.11.3).
fn check_reasons(reasons: &[Reason], allowed: &Reasons) -> Result<(), Error> {
    if reasons.is_empty() {
        return Err(Error::Caller { what: "a SUBACK or UNSUBACK without a reason code" });
    }
    reasons.iter().try_for_each(|reason| check_reason(*reason, Version::V5, allowed))
}

/// MQTT 5 §3.9.
fn push_suback(suback: &SubAck, version: Version, out: &mut Vec<u8>) -> Result<(), Error> {
    push_id(suback.id, out)?;
    push_checked(&suback.properties, version, Ids::ACK, out)?;
    check_reasons(&suback.reasons, &Reasons::SUBACK)?;
    out.extend(suback.reasons.iter().map(|reason| match version {
        Version::V5 => reason.0,
        // MQTT 3.1.1 §3.9.3.
        _ => reason.0.min(Reason::UNSPECIFIED_ERROR.0),
    }));
    Ok(())
}

/// MQTT 5 §3.10.
fn push_unsubscribe(
    unsubscribe: &Unsubscribe,
    version: Version,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    if unsubscribe.filters.is_empty() {
        return Err(Error::Caller { what: "an UNSUBSCRIBE without a topic filter" });
    }
    push_id(unsubscribe.id, out)?;
    push_checked(&unsubscribe.properties, version, Ids::UNSUBSCRIBE, out)?;
    for filter in &unsubscribe.filters {
        push_text(filter, out);
    }
    Ok(())
}

/// MQTT 5 §3.11.
fn push_unsuback(unsuback: &UnsubAck, version: Version, out: &mut Vec<u8>) -> Result<(), Error> {
    push_id(unsuback.id, out)?;
    push_checked(&unsuback.properties, version, Ids::ACK, out)?;
    if version == Version::V5 {
        check_reasons(&unsuback.reasons, &Reasons::UNSUBACK)?;
        out.extend(unsuback.reasons.iter().map(|reason| reason.0));
    }
    Ok(())
}

/// MQTT 5 §3.15.
fn push_auth(auth: &Auth, version: Version, out: &mut Vec<u8>) -> Result<(), Error> {
    if version != Version::V5 {
        return Err(Error::Caller { what: "an AUTH before MQTT 5" });
    }
    check_reason(auth.reason, version, &Reasons::AUTH)?;
    let is_bare = auth.reason == Reason::SUCCESS && auth.properties.is_empty();
    // MQTT 5 §3.15.2.2.2.
    if !is_bare && !auth.properties.has(Id::AUTHENTICATION_METHOD) {
        return Err(Error::Caller { what: "an AUTH without Authentication Method" });
    }
    push_end(version, auth.reason, &auth.properties, Ids::AUTH, out)
}
