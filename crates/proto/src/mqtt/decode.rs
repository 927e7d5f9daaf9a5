//! Bytes to packets (MQTT 5 §3; MQTT 3.1.1 §3; MQTT 3.1 §3).

use bytes::{Buf, Bytes, BytesMut};

use super::frame::frame;
use super::id::{Id, Ids};
use super::level::{BRIDGE, Qos, Version};
use super::packet::{
    Ack, Auth, ConnAck, Connect, Disconnect, Filter, MAX_V31_CLIENT_ID_CHARS, Options, Packet,
    Publish, RetainHandling, SubAck, Subscribe, UnsubAck, Unsubscribe, Will,
};
use super::property::Properties;
use super::reader::{CUT, Reader, varint};
use super::reason::{Reason, Reasons};
use super::refused::Refused;
use super::text::Text;
use super::topic;

/// Takes the packet at the start of `input`, once all of it is there; `None` until then.
///
/// # Errors
///
/// As [`frame()`] and [`decode`]; and Malformed Packet for a remaining length of more bytes than it
/// needs in MQTT 5 (§1.5.5).
pub fn take(
    version: Version,
    input: &mut BytesMut,
    max_bytes: usize,
) -> Result<Option<Packet>, Refused> {
    let Some(header) = frame(input, max_bytes)? else { return Ok(None) };
    if version == Version::V5 && !header.is_minimal() {
        return Err(Refused::malformed("a remaining length of more bytes than it needs"));
    }
    if input.len() < header.packet_len() {
        return Ok(None);
    }
    let mut packet = input.split_to(header.packet_len()).freeze();
    packet.advance(header.header_len);
    decode(version, header.first, packet).map(Some)
}

/// Reads a packet from the first byte of its header and all that follows the header. `version` is
/// that of the connection; a CONNECT says its own. Texts and payloads share the memory of `body`.
///
/// Whether the packet may be sent by this peer, now, with these bounds is not checked; nor is the
/// payload by its Payload Format Indicator.
///
/// # Errors
///
/// [`Refused`] with the reason code that MQTT 5 has for it, where the standard of the version does
/// not allow the packet.
pub fn decode(version: Version, first: u8, body: Bytes) -> Result<Packet, Refused> {
    if first >> 4 == 3 {
        return publish(version, first, body).map(Packet::Publish);
    }
    if first >> 4 == 1 {
        return connect(first, body).map(|connect| Packet::Connect(Box::new(connect)));
    }
    check_flags(version, first)?;
    let mut reader = Reader::new(body);
    let packet = match first >> 4 {
        2 => Packet::ConnAck(connack(version, &mut reader)?),
        4 => Packet::PubAck(ack(version, &Reasons::PUBACK, &mut reader)?),
        5 => Packet::PubRec(ack(version, &Reasons::PUBACK, &mut reader)?),
        6 => Packet::PubRel(ack(version, &Reasons::PUBREL, &mut reader)?),
        7 => Packet::PubComp(ack(version, &Reasons::PUBREL, &mut reader)?),
        8 => Packet::Subscribe(subscribe(version, &mut reader)?),
        9 => Packet::SubAck(suback(version, &mut reader)?),
        10 => Packet::Unsubscribe(unsubscribe(version, &mut reader)?),
        11 => Packet::UnsubAck(unsuback(version, &mut reader)?),
        12 => Packet::PingReq,
        13 => Packet::PingResp,
        14 => Packet::Disconnect(disconnect(version, &mut reader)?),
        15 if version == Version::V5 => Packet::Auth(auth(&mut reader)?),
        _ => return Err(Refused::malformed("a packet of a reserved type")),
    };
    reader.finish()?;
    Ok(packet)
}

/// The protocol level that the body of a CONNECT names, though the packet may be refused: in which
/// form that is to be said. `None` where it has no level, or its name is not one of MQTT.
#[must_use]
pub fn level_of(body: &[u8]) -> Option<u8> {
    [b"\x00\x04MQTT".as_slice(), b"\x00\x06MQIsdp"]
        .into_iter()
        .find_map(|name| body.strip_prefix(name))
        .and_then(|rest| rest.first().copied())
}

/// Flags of packets that have none (MQTT 5 §2.1.3, MQTT-2.1.3-1; MQTT 3.1.1 §2.2.2,
/// MQTT-2.2.2-2). MQTT 3.1 calls them unused, and may set DUP in three packets (§2.1).
fn check_flags(version: Version, first: u8) -> Result<(), Refused> {
    let wanted = if matches!(first >> 4, 6 | 8 | 10) { 0b0010 } else { 0 };
    let is_right = match (version, wanted) {
        (Version::V31, 0) => true,
        (Version::V31, _) => first & 0b0110 == wanted,
        _ => first & 0x0f == wanted,
    };
    if is_right {
        return Ok(());
    }
    Err(Refused::malformed("reserved flags in the first byte of a packet"))
}

/// The properties of a packet, with their length; none before MQTT 5.
fn properties(version: Version, allowed: Ids, reader: &mut Reader) -> Result<Properties, Refused> {
    if version != Version::V5 {
        return Ok(Properties::NONE);
    }
    let len = reader.varint()?;
    let block = reader.take(len)?;
    Properties::decode(block, allowed)
}

/// MQTT 5 §3.3. It reads the body at offsets, since this is the packet that there are most of.
fn publish(version: Version, first: u8, mut body: Bytes) -> Result<Publish, Refused> {
    let (mut dup, retain) = (first & 0b1000 != 0, first & 1 != 0);
    // MQTT 5 §3.3.1.2, MQTT-3.3.1-4.
    let qos = Qos::from_bits(first >> 1 & 3).ok_or(Refused::malformed("a PUBLISH of QoS 3"))?;
    // MQTT 5 §3.3.1.1, MQTT-3.3.1-2.
    if dup && qos == Qos::AtMostOnce {
        if version != Version::V31 {
            return Err(Refused::malformed("a PUBLISH of QoS 0 with DUP"));
        }
        // MQTT 3.1 §2.1: there it says nothing.
        dup = false;
    }
    let len = body.first_chunk::<2>().ok_or(CUT)?;
    let topic_end = 2 + usize::from(u16::from_be_bytes(*len));
    let name = body.get(2..topic_end).ok_or(CUT)?;
    if !name.is_empty() || version != Version::V5 {
        topic::check_name(name)?;
    }
    let mut at = topic_end;
    let mut packet_id = None;
    if qos != Qos::AtMostOnce {
        let id = body.get(at..).and_then(<[u8]>::first_chunk::<2>).ok_or(CUT)?;
        // MQTT 5 §2.2.1, MQTT-2.2.1-3.
        if id == &[0, 0] {
            return Err(Refused::protocol("the packet identifier 0"));
        }
        packet_id = Some(u16::from_be_bytes(*id));
        at += 2;
    }
    let mut properties = Properties::NONE;
    if version == Version::V5 {
        let (len, len_bytes) = varint(body.get(at..).ok_or(CUT)?)?;
        at += len_bytes;
        if len > body.len().saturating_sub(at) {
            return Err(CUT);
        }
        if len > 0 {
            properties = Properties::decode(body.slice(at..at + len), Ids::PUBLISH)?;
        }
        at += len;
        // MQTT 5 §3.3.2.1.
        if topic_end == 2 && !properties.has(Id::TOPIC_ALIAS) {
            return Err(Refused::protocol("a PUBLISH with neither topic nor topic alias"));
        }
    }
    let topic = Text::checked(body.slice(2..topic_end));
    body.advance(at);
    Ok(Publish { dup, qos, retain, topic, packet_id, properties, payload: body })
}

/// MQTT 5 §3.1.
fn connect(first: u8, body: Bytes) -> Result<Connect, Refused> {
    let mut reader = Reader::new(body);
    let (version, is_bridge) = version(&mut reader)?;
    check_flags(version, first)?;
    let flags = reader.byte()?;
    check_connect_flags(version, flags)?;
    let keep_alive_s = reader.two()?;
    let properties = properties(version, Ids::CONNECT, &mut reader)?;
    // MQTT 5 §3.1.2.11.10.
    if properties.has(Id::AUTHENTICATION_DATA) && !properties.has(Id::AUTHENTICATION_METHOD) {
        return Err(Refused::protocol("Authentication Data without Authentication Method"));
    }
    let client_id = reader.text()?;
    let clean_start = flags & 0b10 != 0;
    check_client_id(version, clean_start, client_id.as_str())?;
    let will = if flags & 0b100 != 0 { Some(will(version, flags, &mut reader)?) } else { None };
    // MQTT 3.1 §3.1: a client of MQTT 3 may leave out what its flags announce.
    let is_there = |flag, reader: &Reader| {
        flags & flag != 0 && (version != Version::V31 || !reader.is_empty())
    };
    let username = if is_there(0x80, &reader) { Some(reader.text()?) } else { None };
    let password = if is_there(0x40, &reader) { Some(reader.binary()?) } else { None };
    reader.finish()?;
    Ok(Connect {
        version,
        is_bridge,
        client_id,
        clean_start,
        keep_alive_s,
        username,
        password,
        will,
        properties,
    })
}

/// The protocol name and level (MQTT 5 §3.1.2.1, §3.1.2.2), and whether it is a bridge's.
fn version(reader: &mut Reader) -> Result<(Version, bool), Refused> {
    let name = reader.binary()?;
    let level = reader.byte()?;
    match (&name[..], level) {
        (b"MQIsdp", 3 | 0x83) => Ok((Version::V31, level & BRIDGE != 0)),
        (b"MQTT", 4 | 0x84) => Ok((Version::V311, level & BRIDGE != 0)),
        (b"MQTT", 5) => Ok((Version::V5, false)),
        _ => {
            let what = "a protocol that is none of MQTT 3.1, 3.1.1 and 5";
            Err(Refused::with(Reason::UNSUPPORTED_PROTOCOL_VERSION, what))
        }
    }
}

/// The flags of a CONNECT (MQTT 5 §3.1.2.3).
fn check_connect_flags(version: Version, flags: u8) -> Result<(), Refused> {
    let (will, will_bits) = (flags & 0b100 != 0, flags & 0b11_1000);
    let (username, password) = (flags & 0x80 != 0, flags & 0x40 != 0);
    // MQTT 5 §3.1.2.6, MQTT-3.1.2-12.
    if will && flags & 0b1_1000 == 0b1_1000 {
        return Err(Refused::malformed("a will of QoS 3"));
    }
    // MQTT 3.1.1 §3.1.2.9, MQTT-3.1.2-22; MQTT 3.1 §3.1. MQTT 5 allows it.
    if version != Version::V5 && password && !username {
        return Err(Refused::malformed("a password without a user name"));
    }
    if version == Version::V31 {
        return Ok(());
    }
    // MQTT 5 §3.1.2.3, MQTT-3.1.2-3.
    if flags & 1 != 0 {
        return Err(Refused::malformed("the reserved flag of CONNECT"));
    }
    // MQTT 5 §3.1.2.6, §3.1.2.7: MQTT-3.1.2-11, MQTT-3.1.2-13.
    if !will && will_bits != 0 {
        return Err(Refused::malformed("a QoS or retain flag of a will that is not there"));
    }
    Ok(())
}

/// Client identifiers that a version does not have.
fn check_client_id(version: Version, clean_start: bool, id: &str) -> Result<(), Refused> {
    let is_right = match version {
        // MQTT 3.1 §3.1: 1 to 23 characters.
        Version::V31 => !id.is_empty() && id.chars().count() <= MAX_V31_CLIENT_ID_CHARS,
        // MQTT 3.1.1 §3.1.3.1, MQTT-3.1.3-8.
        Version::V311 => clean_start || !id.is_empty(),
        Version::V5 => true,
    };
    if is_right {
        return Ok(());
    }
    let what = "a client identifier that this version does not allow";
    Err(Refused::with(Reason::CLIENT_IDENTIFIER_NOT_VALID, what))
}

/// MQTT 5 §3.1.3.2 to §3.1.3.4.
fn will(version: Version, flags: u8, reader: &mut Reader) -> Result<Will, Refused> {
    let qos = Qos::from_bits(flags >> 3 & 3).ok_or(Refused::malformed("a will of QoS 3"))?;
    let retain = flags & 0b10_0000 != 0;
    let properties = properties(version, Ids::WILL, reader)?;
    let name = reader.binary()?;
    topic::check_name(&name)?;
    let topic = Text::checked(name);
    let payload = reader.binary()?;
    Ok(Will { topic, payload, qos, retain, properties })
}

/// MQTT 5 §3.2.
fn connack(version: Version, reader: &mut Reader) -> Result<ConnAck, Refused> {
    let (flags, code) = (reader.byte()?, reader.byte()?);
    // MQTT 5 §3.2.2.1, MQTT-3.2.2-1; MQTT 3.1 §3.2 does not use this byte.
    if version != Version::V31 && flags & !1 != 0 {
        return Err(Refused::malformed("reserved flags of CONNACK"));
    }
    let session_present = version != Version::V31 && flags & 1 != 0;
    let reason = if version == Version::V5 {
        reason_of(code, &Reasons::CONNACK)?
    } else {
        Reason::from_return_code(code).ok_or(Refused::protocol("a reserved return code"))?
    };
    // MQTT 5 §3.2.2.1.1, MQTT-3.2.2-6; MQTT 3.1.1 §3.2.2.2, MQTT-3.2.2-4.
    if session_present && reason.is_failure() {
        return Err(Refused::protocol("a CONNACK that refuses and has a session"));
    }
    let properties = properties(version, Ids::CONNACK, reader)?;
    Ok(ConnAck { session_present, reason, properties })
}

/// A reason code that the packet may have (MQTT 5 §2.4).
fn reason_of(code: u8, reasons: &Reasons) -> Result<Reason, Refused> {
    let reason = Reason(code);
    if reasons.has(reason) {
        return Ok(reason);
    }
    Err(Refused::protocol("a reason code that this packet cannot have"))
}

/// A reason code and properties that may both be left out (MQTT 5 §3.4.2.1, §3.14.2.1).
fn end(
    reasons: &Reasons,
    allowed: Ids,
    reader: &mut Reader,
) -> Result<(Reason, Properties), Refused> {
    if reader.is_empty() {
        return Ok((Reason::SUCCESS, Properties::NONE));
    }
    let reason = reason_of(reader.byte()?, reasons)?;
    if reader.is_empty() {
        return Ok((reason, Properties::NONE));
    }
    Ok((reason, properties(Version::V5, allowed, reader)?))
}

/// MQTT 5 §3.4 to §3.7.
fn ack(version: Version, reasons: &Reasons, reader: &mut Reader) -> Result<Ack, Refused> {
    let id = reader.packet_id()?;
    if version != Version::V5 {
        return Ok(Ack::new(id, Reason::SUCCESS));
    }
    let (reason, properties) = end(reasons, Ids::ACK, reader)?;
    Ok(Ack { id, reason, properties })
}

/// MQTT 5 §3.8.
fn subscribe(version: Version, reader: &mut Reader) -> Result<Subscribe, Refused> {
    let id = reader.packet_id()?;
    let properties = properties(version, Ids::SUBSCRIBE, reader)?;
    let mut filters = Vec::with_capacity(1);
    while !reader.is_empty() {
        let filter = reader.binary()?;
        let is_shared = check_filter(version, &filter)?;
        let options = options(version, reader.byte()?)?;
        // MQTT 5 §3.8.3.1, MQTT-3.8.3-4.
        if is_shared && options.no_local {
            return Err(Refused::protocol("No Local of a shared subscription"));
        }
        filters.push(Filter { filter: Text::checked(filter), options });
    }
    // MQTT 5 §3.8.3, MQTT-3.8.3-2.
    if filters.is_empty() {
        return Err(Refused::protocol("a SUBSCRIBE without a topic filter"));
    }
    Ok(Subscribe { id, filters, properties })
}

/// Checks a filter; whether it is one of a shared subscription, of which MQTT 3 knows nothing.
fn check_filter(version: Version, filter: &[u8]) -> Result<bool, Refused> {
    if version == Version::V5 {
        return Ok(topic::parts(filter)?.group.is_some());
    }
    topic::check_filter(filter)?;
    Ok(false)
}

/// MQTT 5 §3.8.3.1; MQTT 3.1.1 §3.8.3 has the quality alone.
fn options(version: Version, byte: u8) -> Result<Options, Refused> {
    let qos = Qos::from_bits(byte & 3).ok_or(Refused::malformed("a subscription of QoS 3"))?;
    let reserved = match version {
        // MQTT 3.1 §3.8 does not use the other bits.
        Version::V31 => 0,
        // MQTT 3.1.1 §3.8.3, MQTT-3.8.3-4.
        Version::V311 => 0b1111_1100,
        // MQTT 5 §3.8.3.1, MQTT-3.8.3-5.
        Version::V5 => 0b1100_0000,
    };
    if byte & reserved != 0 {
        return Err(Refused::malformed("reserved bits in the options of a subscription"));
    }
    if version != Version::V5 {
        return Ok(Options::new(qos));
    }
    let retain_handling = match byte >> 4 & 3 {
        0 => RetainHandling::Send,
        1 => RetainHandling::SendIfNew,
        2 => RetainHandling::DoNotSend,
        _ => return Err(Refused::protocol("the Retain Handling 3")),
    };
    let (no_local, retain_as_published) = (byte & 0b100 != 0, byte & 0b1000 != 0);
    Ok(Options { qos, no_local, retain_as_published, retain_handling })
}

/// What is left as reason codes, at least one.
fn reasons(allowed: &Reasons, reader: &mut Reader) -> Result<Vec<Reason>, Refused> {
    let mut reasons = Vec::with_capacity(reader.len());
    while !reader.is_empty() {
        reasons.push(reason_of(reader.byte()?, allowed)?);
    }
    if reasons.is_empty() {
        return Err(Refused::protocol("a SUBACK or UNSUBACK without a reason code"));
    }
    Ok(reasons)
}

/// MQTT 5 §3.9; MQTT 3.1.1 §3.9.3.
fn suback(version: Version, reader: &mut Reader) -> Result<SubAck, Refused> {
    let id = reader.packet_id()?;
    let properties = properties(version, Ids::ACK, reader)?;
    let is_v5 = version == Version::V5;
    let allowed = if is_v5 { &Reasons::SUBACK } else { &Reasons::SUBACK_V311 };
    Ok(SubAck { id, reasons: reasons(allowed, reader)?, properties })
}

/// MQTT 5 §3.10.
fn unsubscribe(version: Version, reader: &mut Reader) -> Result<Unsubscribe, Refused> {
    let id = reader.packet_id()?;
    let properties = properties(version, Ids::UNSUBSCRIBE, reader)?;
    let mut filters = Vec::with_capacity(1);
    while !reader.is_empty() {
        let filter = reader.binary()?;
        check_filter(version, &filter)?;
        filters.push(Text::checked(filter));
    }
    // MQTT 5 §3.10.3, MQTT-3.10.3-2.
    if filters.is_empty() {
        return Err(Refused::protocol("an UNSUBSCRIBE without a topic filter"));
    }
    Ok(Unsubscribe { id, filters, properties })
}

/// MQTT 5 §3.11; MQTT 3.1.1 §3.11.3 has no payload.
fn unsuback(version: Version, reader: &mut Reader) -> Result<UnsubAck, Refused> {
    let id = reader.packet_id()?;
    let properties = properties(version, Ids::ACK, reader)?;
    let is_v5 = version == Version::V5;
    let reasons = if is_v5 { reasons(&Reasons::UNSUBACK, reader)? } else { Vec::new() };
    Ok(UnsubAck { id, reasons, properties })
}

/// MQTT 5 §3.14.
fn disconnect(version: Version, reader: &mut Reader) -> Result<Disconnect, Refused> {
    if version != Version::V5 {
        return Ok(Disconnect::default());
    }
    let (reason, properties) = end(&Reasons::DISCONNECT, Ids::DISCONNECT, reader)?;
    Ok(Disconnect { reason, properties })
}

/// MQTT 5 §3.15.
fn auth(reader: &mut Reader) -> Result<Auth, Refused> {
    // MQTT 5 §3.15.2.1: Success without properties has no content at all.
    let is_bare = reader.is_empty();
    let (reason, properties) = end(&Reasons::AUTH, Ids::AUTH, reader)?;
    // MQTT 5 §3.15.2.2.2.
    if !is_bare && !properties.has(Id::AUTHENTICATION_METHOD) {
        return Err(Refused::protocol("an AUTH without Authentication Method"));
    }
    Ok(Auth { reason, properties })
}
