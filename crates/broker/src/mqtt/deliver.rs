//! What a client gets.

use bytes::Bytes;
use proto::mqtt::{Ack, Packet, Publish, Reason, Text, Version, encode_publish_head, encoded_len};

use super::connection::Open;
use super::translate;
use crate::core::{Delivery, Next};
use crate::event::Drop;
use crate::ids::ConnectionId;
use crate::outputs::Context;

/// Gives a client what waits, while it has room.
pub(super) fn deliver(context: &mut Context<'_>, id: ConnectionId, open: &Open) {
    while context.outputs.room(id) {
        match context.core.take(context.now, open.session) {
            Some(Next::Publish(delivery)) => publish(context, id, open, &delivery),
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

fn publish(context: &mut Context<'_>, id: ConnectionId, open: &Open, delivery: &Delivery) {
    let publication = &delivery.publication;
    let properties = if open.version == Version::V5 {
        translate::delivered(context.now, publication, delivery.identifiers.as_deref())
    } else {
        proto::mqtt::Properties::NONE
    };
    let topic = Bytes::copy_from_slice(publication.topic.as_bytes());
    let packet = Text::new(topic).map(|topic| Publish {
        dup: delivery.repeated,
        qos: translate::qos(delivery.grade),
        retain: delivery.retain,
        topic,
        packet_id: delivery.handle.map(std::num::NonZeroU16::get),
        properties,
        payload: publication.payload.clone(),
    });
    let why = match packet {
        Ok(packet) => write(context, id, open, packet),
        Err(_) => Some(Drop::Unmappable),
    };
    if let Some(why) = why {
        context.core.tell_dropped(publication, Some(open.session), why);
        if let Some(handle) = delivery.handle {
            context.core.finish(open.session, handle.get(), false);
        }
    }
}

/// Writes a PUBLISH; why not, where it cannot be.
fn write(
    context: &mut Context<'_>,
    id: ConnectionId,
    open: &Open,
    packet: Publish,
) -> Option<Drop> {
    if open.max_bytes < usize::MAX {
        let packet = Packet::Publish(packet.clone());
        if encoded_len(&packet, open.version) > open.max_bytes {
            // MQTT 5 §3.1.2.11.4: as if it had been sent.
            return Some(Drop::TooLarge);
        }
    }
    let out = context.outputs.writer(id)?;
    if encode_publish_head(&packet, open.version, out).is_err() {
        return Some(Drop::Unmappable);
    }
    context.outputs.append(id, &packet.payload);
    None
}
