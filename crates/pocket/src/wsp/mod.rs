//! Calls over connectionless WSP (WAP-230, UDP port 9200) through a WAP gateway.
//!
//! WSP has no retransmission of its own there: what is lost is noticed by the transaction id that
//! no reply has, and the same datagram leaves again, where [`Settings::repeats`] lets it.

mod machine;
mod packet;
#[cfg(test)]
mod tests;

use core::time::Duration;

use crate::chance::Chance;
use crate::exchange::{Address, Answer, Patience, Request, Socket, drive};
use crate::{Content, Error};
use machine::Call;
pub use packet::Reply;

/// How calls are made.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Times.
    pub patience: Patience,
    /// Send the request again where no answer comes: only to a gateway that carries no copy out
    /// twice, as longwire's does not, or for calls that may be carried out twice.
    pub repeats: bool,
}

impl Settings {
    /// A first copy after 3 to 3.75 s, since a phone's request over GPRS took 6 to 8 s at worst;
    /// 5 copies and a minute.
    pub const DEFAULT: Self = Self {
        patience: Patience {
            first: Duration::from_secs(3),
            copies: 5,
            limit: Duration::from_secs(60),
        },
        repeats: false,
    };
}

/// Calls to one gateway, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    gateway: Address,
    chance: Chance,
    first_tid: u8,
    calls: u32,
}

impl Client {
    /// A client whose transaction ids begin by chance; `seed` is to be another one each time that
    /// the device starts.
    #[must_use]
    pub fn new(gateway: Address, seed: u32) -> Self {
        let mut chance = Chance::new(seed);
        let first_tid = chance.next().to_le_bytes()[0];
        Self { gateway, chance, first_tid, calls: 0 }
    }

    /// Makes a call, and returns the answer in the caller's `room`, which also has to hold the
    /// request's datagram: its URI and action, some 20 bytes, and its body.
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
        settings: &Settings,
        room: &'r mut [u8],
    ) -> Result<Answer<'r>, Error> {
        let tid = self.first_tid.wrapping_add(self.calls.to_le_bytes()[0]);
        // A server knows a copy by its transaction id and its bytes, and a device that makes many
        // equal calls has used all 256 ids soon: their round goes into the request.
        let round = self.calls >> 8;
        self.calls = self.calls.wrapping_add(1);
        let mut call =
            Call::new(self.gateway, (tid, round), request, settings, now, &mut self.chance);
        let arrived = drive(socket, now, &mut call, room)?;
        Ok(arrived.lend(room))
    }
}

/// The code of a body's media type (WAP-230 table 40, application/vnd.wap.wbxml and text/xml);
/// `None` where it goes as text.
fn media_code(content: Content) -> Option<u8> {
    match content {
        Content::Xml => Some(0x28),
        Content::Wbxml => Some(0x29),
        _ => None,
    }
}

/// A media type that has no code.
fn media_text(content: Content) -> &'static [u8] {
    match content {
        Content::Cbor => b"application/cbor",
        Content::Exi => b"application/exi",
        _ => b"application/octet-stream",
    }
}
