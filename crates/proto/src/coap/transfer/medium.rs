//! What one message carries of a body: over datagrams a block, over a reliable transport as much as
//! the peer takes (RFC 8323 §5.3, §6).

use crate::coap::{BERT, Block, Content, MAX_SZX, Writer};

/// Most bytes of the head of a message over a reliable transport, with the payload's marker.
const MAX_HEAD_BYTES: usize = 15;
/// Room for what goes with a part of a body: Block1, Block2, Size1, Size2, ETag, Request-Tag,
/// Observe, Echo.
const OPTIONS_BYTES: usize = 96;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::coap) enum Medium {
    /// A message is a datagram: what is over 1024 bytes goes in blocks.
    Datagram,
    /// A message is a part of a connection.
    Stream {
        /// The longest that the peer takes, in bytes.
        max_message_bytes: usize,
        /// Whether a message may have several blocks of 1024 bytes (RFC 8323 §6).
        is_bert: bool,
    },
}

impl Medium {
    /// Whether the size exponent 7 means something.
    pub(super) fn allows_bert(self) -> bool {
        self != Self::Datagram
    }

    /// Most bytes of payload in a message with the options of this one.
    pub(super) fn room(self, content: &Content) -> usize {
        match self {
            Self::Datagram => 16 << MAX_SZX,
            Self::Stream { max_message_bytes, .. } => {
                let mut writer = Writer::body(&mut []);
                let put = |(number, value)| writer.option(number, value);
                // What cannot be written is refused where it is sent.
                let _ = content.options().try_for_each(put);
                max_message_bytes.saturating_sub(writer.len() + MAX_HEAD_BYTES + OPTIONS_BYTES)
            }
        }
    }

    /// The size of blocks where nobody asks for one.
    pub(super) fn szx(self, content: &Content) -> u8 {
        match self {
            Self::Datagram => MAX_SZX,
            Self::Stream { is_bert, .. } => match self.room(content) {
                room if is_bert && room >= 16 << MAX_SZX => BERT,
                room => Block::szx_for(room),
            },
        }
    }

    /// The block that is sent of those that are asked for: with no more bytes than there is room.
    pub(super) fn fit(self, asked: Block, content: &Content) -> Option<Block> {
        let most = self.szx(content);
        if asked.szx <= most { Some(asked) } else { asked.resized(most) }
    }
}
