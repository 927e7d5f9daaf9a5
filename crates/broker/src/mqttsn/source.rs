//! From where a message came, and how to answer there.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use proto::Error;
use proto::mqttsn::{Forwarded, Packet, is_forwarded};

use crate::outputs::Outputs;

/// An address, or a node behind the forwarder at one (MQTT-SN 1.2 §5.5).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Source {
    pub(super) listener: u16,
    pub(super) address: SocketAddr,
    node: Option<Arc<[u8]>>,
}

impl Source {
    /// Who sent a datagram, and the message in it.
    pub(super) fn read(
        listener: u16,
        address: SocketAddr,
        datagram: &Bytes,
    ) -> Result<(Self, Bytes), Error> {
        if !is_forwarded(datagram) {
            return Ok((Self { listener, address, node: None }, datagram.clone()));
        }
        let Forwarded { node, message, .. } = Forwarded::decode(datagram)?;
        let message = datagram.slice_ref(message);
        Ok((Self { listener, address, node: Some(node.into()) }, message))
    }

    /// Octets that the way back adds to a message.
    pub(super) fn head_bytes(&self) -> usize {
        let forwarded = |node| Forwarded { radius: 0, node, message: &[] };
        self.node.as_deref().map_or(0, |node| forwarded(node).encoded_len())
    }

    /// Sends a message there.
    pub(super) fn send(&self, outputs: &mut Outputs, packet: &Packet<'_>) {
        if let Some(message) = encode(packet) {
            self.transmit(outputs, &message);
        }
    }

    /// Sends a message that has been encoded.
    pub(super) fn transmit(&self, outputs: &mut Outputs, message: &Bytes) {
        let Some(node) = self.node.as_deref() else {
            return outputs.datagram(self.listener, self.address, message.clone());
        };
        let forwarded = Forwarded { radius: 0, node, message };
        let mut datagram = vec![0; forwarded.encoded_len()];
        // The id came in such a head and fits into one.
        if forwarded.encode(&mut datagram).is_ok() {
            outputs.datagram(self.listener, self.address, datagram);
        }
    }
}

/// A message in octets; `None` where it is longer than any may be.
pub(super) fn encode(packet: &Packet<'_>) -> Option<Bytes> {
    let mut message = vec![0; packet.encoded_len()];
    packet.encode(&mut message).ok()?;
    Some(message.into())
}
