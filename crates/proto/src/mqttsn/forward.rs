//! The encapsulation of forwarders (MQTT-SN 1.2 §5.5): whose message a datagram carries.

use super::wire::Writer;
use crate::Error;

/// Octets of Length, MsgType and Ctrl.
const HEAD_BYTES: usize = 3;
/// The type of an encapsulated message (MQTT-SN 1.2 table 3).
pub(super) const ENCAPSULATED: u8 = 0xfe;
/// The radius in the field Ctrl; its other bits are reserved.
const RADIUS: u8 = 0x03;
/// Longest wireless node id in octets: what a length of one octet leaves.
pub const MAX_NODE_ID_BYTES: usize = 0xff - HEAD_BYTES;

/// Whether a datagram has the encapsulation's type, well-formed or not.
#[must_use]
pub fn is_forwarded(datagram: &[u8]) -> bool {
    matches!(datagram, [2..=0xff, ENCAPSULATED, ..])
}

/// A message that a forwarder passes on, from or to a node behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarded<'a> {
    /// How far the forwarder is to broadcast, 0 to 3; only towards nodes.
    pub radius: u8,
    /// The node, as the forwarder names it.
    pub node: &'a [u8],
    /// The message, as [`super::Packet`] reads it.
    pub message: &'a [u8],
}

impl<'a> Forwarded<'a> {
    /// Reads a whole datagram.
    ///
    /// # Errors
    /// [`Error::Truncated`] where it ends before the message or within its head, and
    /// [`Error::Peer`] for another type and for a length that leaves no room for the head.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, Error> {
        let what = "a forwarder's head";
        let (head, _) =
            datagram.split_first_chunk::<HEAD_BYTES>().ok_or(Error::Truncated { what })?;
        let [len, msg_type, control] = *head;
        if msg_type != ENCAPSULATED {
            return Err(Error::Peer { what: "no forwarder's message", value: msg_type.into() });
        }
        let (head, message) =
            datagram.split_at_checked(len.into()).ok_or(Error::Truncated { what })?;
        let short = Error::Peer { what: "a forwarder's head shorter than 3", value: len.into() };
        let node = head.get(HEAD_BYTES..).ok_or(short)?;
        if message.is_empty() {
            return Err(Error::Truncated { what: "a forwarded message" });
        }
        Ok(Self { radius: control & RADIUS, node, message })
    }

    /// Writes the datagram to the begin of `room` and returns how many octets it has.
    ///
    /// # Errors
    /// [`Error::Limit`] with the octets needed as its value where there is less room,
    /// [`Error::Caller`] for a node id over [`MAX_NODE_ID_BYTES`] or a radius over 3.
    pub fn encode(&self, room: &mut [u8]) -> Result<usize, Error> {
        let what = "a node id over 252 octets";
        let len = u8::try_from(HEAD_BYTES + self.node.len()).map_err(|_| Error::Caller { what })?;
        if self.radius > RADIUS {
            return Err(Error::Caller { what: "a radius over 3" });
        }
        let mut writer = Writer::new(room);
        writer.put(&[len, ENCAPSULATED, self.radius]);
        writer.put(self.node);
        writer.put(self.message);
        writer.finish()
    }

    /// Octets of the datagram.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        HEAD_BYTES + self.node.len() + self.message.len()
    }
}
