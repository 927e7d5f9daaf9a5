//! What a client gets.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use proto::mqtt::{
    Ack, Id, Packet, Publish, Reason, Text, Value, Version, encode_publish_head, encoded_len,
};
use proto::urgency::Urgency;

use super::connection::Open;
use super::written::{Form, Written};
use super::{bridge, translate};
use crate::core::{self, Delivery, Next, tell_dropped_for};
use crate::event::Drop;
use crate::explain::Sent;
use crate::ids::{ConnectionId, Principal};
use crate::outputs::Context;
use crate::publication::{MAX_HOPS, Publication};

/// Gives a client what waits, while it has room.
pub(super) fn deliver(
    context: &mut Context<'_>,
    id: ConnectionId,
    open: &mut Open,
    max_numbered: u16,
    written: &mut Written,
) {
    if open.is_greeting() {
        // It comes again behind the CONNACK.
        return;
    }
    open.max_numbered = open.max_numbered.min(max_numbered);
    take(context, id, open, written);
    if open.bridge().is_some() && context.outputs.asks(id) {
        open.send(context, id, Packet::PingReq);
    }
}

/// Takes what waits, while there is room.
fn take(context: &mut Context<'_>, id: ConnectionId, open: &mut Open, written: &mut Written) {
    while context.outputs.room(id) {
        match context.core.take(context.now, open.session) {
            Some(Next::Publish(delivery)) => {
                context.outputs.mark(id, delivery.publication.principal);
                publish(context, id, open, &delivery, written);
                context.outputs.mark(id, Principal::UNKNOWN);
            }
            Some(Next::Release(handle)) => {
                open.send(context, id, Packet::PubRel(Ack::new(handle.get(), Reason::SUCCESS)));
            }
            None => {
                if context.core.has_more(open.session) {
                    context.core.poke(open.session);
                }
                return;
            }
        }
    }
}

fn publish(
    context: &mut Context<'_>,
    id: ConnectionId,
    open: &mut Open,
    delivery: &Delivery,
    written: &mut Written,
) {
    let publication = &delivery.publication;
    // Over a bridge it has another topic, and the nodes that it has passed.
    let form =
        Form::of(delivery, open.version, open.max_numbered > 0).filter(|_| open.end.is_none());
    if let Some(form) = form
        && written.has(form, open.max_bytes)
    {
        if let Some(out) = context.outputs.writer(id) {
            let before = out.len();
            written.repeat(form, delivery, out);
            let bytes = out.len() - before;
            tell_sent(context, open, publication, None, bytes);
        }
        return;
    }
    let mut properties = if open.version == Version::V5 {
        translate::delivered(context.now, publication, delivery.identifiers.as_deref())
    } else {
        proto::mqtt::Properties::NONE
    };
    let topic = match open.bridge() {
        Some(bridge) => bridge::to_remote(&bridge.routes, &publication.topic),
        None => Some(publication.topic.clone()),
    };
    let Some(topic) = topic else {
        return ends(context, open, delivery, Drop::Unmappable, format_args!("no route has it"));
    };
    let is_elsewhere = publication.is_followed && topic != publication.topic;
    let there = is_elsewhere.then(|| topic.clone());
    if let Some(end) = open.end.as_ref().filter(|_| open.version == Version::V5)
        && !bridge::add_via(publication, end, &mut properties)
    {
        let detail = format_args!("the other broker has had it, or it has passed {MAX_HOPS}");
        return ends(context, open, delivery, Drop::Loop, detail);
    }
    if publication.urgency < Urgency::DEFAULT {
        context.outputs.urge(id);
    }
    let number = number(open, &publication.topic);
    let topic = match number {
        Some((_, true)) => Bytes::new(),
        _ => Bytes::copy_from_slice(topic.as_bytes()),
    };
    if let Some((number, _)) = number {
        // It was there to be given, and properties of a PUBLISH may have it.
        let _ = properties.push(Id::TOPIC_ALIAS, Value::Number(number.into()));
    }
    let packet = Text::new(topic).map(|topic| Publish {
        dup: delivery.repeated,
        qos: translate::qos(delivery.grade),
        retain: delivery.retain,
        topic,
        packet_id: delivery.handle.map(std::num::NonZeroU16::get),
        properties,
        payload: publication.payload.clone(),
    });
    if let (Ok(packet), Some(form)) = (&packet, form)
        // Whoever waits for it shares it.
        && Arc::strong_count(publication) > 1
    {
        written.keep(form, packet);
    }
    let written = match packet {
        Ok(packet) => write(context, id, open, &packet),
        Err(_) => Err(NotWritten::Unmappable),
    };
    if let (Ok(_), Some((number, false))) = (&written, number) {
        open.numbered.insert(publication.topic.clone(), number);
    }
    tell_written(context, open, delivery, there.as_deref(), &written);
}

/// Tells what came of a PUBLISH.
fn tell_written(
    context: &mut Context<'_>,
    open: &Open,
    delivery: &Delivery,
    there: Option<&str>,
    written: &Result<usize, NotWritten>,
) {
    match written {
        Ok(bytes) => tell_sent(context, open, &delivery.publication, there, *bytes),
        Err(NotWritten::TooLarge { bytes }) => {
            let detail = format_args!("{bytes} bytes, the client takes {}", open.max_bytes);
            ends(context, open, delivery, Drop::TooLarge, detail);
        }
        Err(NotWritten::Unmappable) => {
            let detail = format_args!("no PUBLISH has room for it");
            ends(context, open, delivery, Drop::Unmappable, detail);
        }
        Err(NotWritten::Gone) => {}
    }
}

/// Why a PUBLISH is not written.
enum NotWritten {
    /// It is longer than the client takes.
    TooLarge { bytes: usize },
    /// It cannot say the topic or a property.
    Unmappable,
    /// There is no connection.
    Gone,
}

/// Tells in which form a publication that is followed was sent.
fn tell_sent(
    context: &mut Context<'_>,
    open: &Open,
    publication: &Publication,
    there: Option<&str>,
    bytes: usize,
) {
    if !publication.is_followed {
        return;
    }
    let protocol = match open.version {
        Version::V31 => "MQTT 3.1",
        Version::V311 => "MQTT 3.1.1",
        Version::V5 => "MQTT 5",
    };
    let mut hops = Vec::new();
    if let Some(end) = open.end.as_ref().filter(|_| open.version == Version::V5) {
        hops.extend(publication.details.iter().flat_map(|details| details.via.clone()));
        hops.push(end.node.to_string());
    }
    let (to, message_bytes) = (there.map(str::to_owned), Some(bytes));
    let sent = Sent { protocol, to, message_bytes, hops };
    core::tell_sent(context.core, publication, open.session, sent);
}

/// A publication does not go to the client.
fn ends(
    context: &mut Context<'_>,
    open: &Open,
    delivery: &Delivery,
    why: Drop,
    detail: fmt::Arguments<'_>,
) {
    let session = Some(open.session);
    tell_dropped_for(context.core, &delivery.publication, session, why, detail);
    if let Some(handle) = delivery.handle {
        context.core.finish(open.session, handle.get(), false);
    }
}

/// The number that a topic is sent as, and whether the client knows it (MQTT 5 §3.3.2.3.4); `None`
/// where all that the client takes are given to others.
fn number(open: &Open, topic: &Arc<str>) -> Option<(u16, bool)> {
    if open.max_numbered == 0 {
        return None;
    }
    if let Some(number) = open.numbered.get(topic) {
        return Some((*number, true));
    }
    let next = u16::try_from(open.numbered.len() + 1).ok()?;
    (next <= open.max_numbered).then_some((next, false))
}

/// Writes a PUBLISH; how many bytes it has.
fn write(
    context: &mut Context<'_>,
    id: ConnectionId,
    open: &Open,
    packet: &Publish,
) -> Result<usize, NotWritten> {
    if open.max_bytes < usize::MAX {
        let packet = Packet::Publish(packet.clone());
        let bytes = encoded_len(&packet, open.version);
        if bytes > open.max_bytes {
            // MQTT 5 §3.1.2.11.4: as if it had been sent.
            return Err(NotWritten::TooLarge { bytes });
        }
    }
    let out = context.outputs.writer(id).ok_or(NotWritten::Gone)?;
    let before = out.len();
    if encode_publish_head(packet, open.version, out).is_err() {
        return Err(NotWritten::Unmappable);
    }
    let head_bytes = out.len() - before;
    context.outputs.append(id, &packet.payload);
    Ok(head_bytes + packet.payload.len())
}
