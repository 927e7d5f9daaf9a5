//! Calls over CoAP (RFC 7252, UDP port 5683): a confirmable POST, of a server or through a proxy.
//!
//! Answers come with the acknowledgement or on their own; requests and answers longer than a
//! datagram go in blocks (RFC 7959). A server that wants to see that the client receives at its
//! address is shown what it asked for (Echo, RFC 9175 §2.3).

mod machine;
mod packet;
#[cfg(test)]
mod tests;

use core::time::Duration;

use crate::chance::Chance;
use crate::exchange::{Address, Answer, Patience, Request, Socket, drive};
use crate::{Content, Error};
use machine::Call;
pub use packet::{Kind, Message, Options};

/// Of RFC 7252 §4.8: the least that is waited for an answer behind the last copy.
const ACK_TIMEOUT: Duration = Duration::from_secs(2);
/// ACK_TIMEOUT and MAX_RETRANSMIT + 1 of RFC 7252 §4.8, and for an answer that comes on its own as
/// long as all copies may take: MAX_TRANSMIT_WAIT.
pub const DEFAULT_PATIENCE: Patience =
    Patience { first: ACK_TIMEOUT, copies: 5, limit: Duration::from_secs(93) };

/// Calls to one server or proxy, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    server: Address,
    chance: Chance,
    mid: u16,
}

impl Client {
    /// A client whose message ids begin by chance; `seed` is to be another one each time that the
    /// device starts.
    #[must_use]
    pub fn new(server: Address, seed: u32) -> Self {
        let mut chance = Chance::new(seed);
        let [low, high, ..] = chance.next().to_le_bytes();
        Self { server, chance, mid: u16::from_le_bytes([low, high]) }
    }

    /// Makes a call, and returns the answer in the caller's `room`, where it gathers before the
    /// datagrams: 1,100 bytes beyond the answer are enough, and with fewer its blocks are smaller.
    ///
    /// `now` is the caller's clock, that of [`crate::Received`].
    ///
    /// # Errors
    /// Those of the room, the socket and the answer; a status is not one.
    pub fn call<'r>(
        &mut self,
        socket: &mut dyn Socket,
        now: Duration,
        request: &Request<'_>,
        patience: &Patience,
        room: &'r mut [u8],
    ) -> Result<Answer<'r>, Error> {
        let token = self.chance.next();
        let mut call = Call::new(self.server, request, patience, now, (token, self.mid));
        let arrived = drive(socket, now, &mut call, room);
        self.mid = call.next_mid();
        Ok(arrived?.lend(room))
    }
}

/// Numbers of content formats (RFC 7252 §12.3 and its registry). WBXML has none: its number is
/// from the range for experiments.
fn format_of(content: Content) -> u32 {
    match content {
        Content::Xml => 41,
        Content::Wbxml => WBXML,
        Content::Cbor => 60,
        Content::Exi => 47,
        Content::Other => 42,
    }
}

/// Of WBXML, which only peers understand that have agreed on it.
const WBXML: u32 = 65_192;

fn content_of(format: u32) -> Content {
    match format {
        41 => Content::Xml,
        WBXML => Content::Wbxml,
        60 => Content::Cbor,
        47 => Content::Exi,
        _ => Content::Other,
    }
}
