//! One request and its answer, whatever protocol carries them: what the caller gives, what comes
//! back, and the loop between a machine and the caller's socket.

use core::time::Duration;

use crate::Error;

/// Address and port of a peer, in any layout that the caller's socket always uses: they are only
/// compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Address(pub [u8; 18]);

/// What the caller gives to reach the network: datagrams to one server, and back.
pub trait Socket {
    /// Sends a datagram to the server.
    ///
    /// # Errors
    /// [`Error::Socket`] ends the call.
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error>;

    /// Waits for a datagram until `limit` has passed, and puts as much of it as fits into `room`.
    ///
    /// # Errors
    /// [`Error::Socket`] ends the call.
    fn receive(&mut self, room: &mut [u8], limit: Duration) -> Result<Received, Error>;
}

/// How a wait for a datagram ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The caller's clock, from any beginning.
    pub now: Duration,
    /// From where a datagram came, and how many bytes it has, also those that did not fit; `None`
    /// where none came.
    pub datagram: Option<(Address, usize)>,
}

/// What the bytes of a body are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Content {
    /// Something that is not known here.
    Other = 0,
    /// XML as text: SOAP 1.1 where it is a request over WSP.
    Xml = 1,
    /// Binary XML of WAP.
    Wbxml = 2,
    /// XML in CBOR, as longwire has it.
    Cbor = 3,
    /// Efficient XML Interchange.
    Exi = 4,
}

/// A call to be made.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The service: an absolute URI, which a proxy is asked for; over CoAP also a path, `/a/b`,
    /// of the server itself.
    pub uri: &'a str,
    /// What `SOAPAction` says, without its quotes; over CoAP it has no place.
    pub action: &'a str,
    /// What the body is.
    pub content: Content,
    /// The body.
    pub body: &'a [u8],
}

/// How long a call may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until the first copy of what nobody answered; longer by chance, and twice as long each
    /// time.
    pub first: Duration,
    /// Copies of a datagram, the first one counted; with 1 nothing is sent twice.
    pub copies: u8,
    /// Everything.
    pub limit: Duration,
}

impl Patience {
    /// The first timeout with a share of `1 / divisor` more, by chance. In milliseconds of 32 bits:
    /// a processor of 32 bits divides no longer ones.
    pub(crate) fn spread(&self, chance: u32, divisor: u32) -> Duration {
        let first_s = u32::try_from(self.first.as_secs()).unwrap_or(u32::MAX);
        let first_ms = first_s.saturating_mul(1000).saturating_add(self.first.subsec_millis());
        let (share_ms, chance) = (first_ms / divisor, chance & 0xff);
        // `share_ms * chance / 256`, which fits no 32 bits in between.
        let more_ms =
            (share_ms / 256).saturating_mul(chance).saturating_add(share_ms % 256 * chance / 256);
        let (more_s, rest_ms) = (more_ms / 1000, more_ms % 1000);
        self.first.saturating_add(Duration::new(more_s.into(), rest_ms * 1_000_000))
    }
}

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// Three digits: those of HTTP over WSP, class and detail over CoAP (204 is 2.04).
    pub status: u16,
    /// What the body is.
    pub content: Content,
    /// The body, in the caller's room.
    pub body: &'a [u8],
    /// Datagrams of the request that were sent, copies and later blocks with them.
    pub sent: u16,
}

/// An answer whose body is in the caller's room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub(crate) status: u16,
    pub(crate) content: Content,
    pub(crate) at: usize,
    pub(crate) len: usize,
    pub(crate) sent: u16,
}

impl Arrived {
    /// Lends the body out.
    pub(crate) fn lend(self, room: &[u8]) -> Answer<'_> {
        let end = self.at.saturating_add(self.len);
        let body = room.get(self.at..end).unwrap_or_default();
        let Self { status, content, sent, .. } = self;
        Answer { status, content, body, sent }
    }
}

/// What happens to a machine.
pub(crate) enum Input<'a> {
    /// A datagram came and stands in the caller's room.
    Datagram {
        from: Address,
        room: &'a mut [u8],
        /// Where in the room it begins.
        at: usize,
        /// How many bytes it has, also those that did not fit.
        len: usize,
    },
    /// Time passed.
    Wake,
}

/// What a machine wants.
pub(crate) enum Output {
    /// These bytes of the room are to leave.
    Transmit { len: usize, at: usize },
    /// A message of four bytes is to leave.
    Control([u8; 4]),
    /// A datagram is waited for, up to then; it is to be put behind this place of the room.
    WaitUntil(Duration, usize),
    /// The call has ended.
    Done(Result<Arrived, Error>),
}

/// A protocol's side of one call, without socket and clock.
pub(crate) trait Machine {
    fn take(&mut self, now: Duration, input: Input<'_>);
    fn give(&mut self, room: &mut [u8]) -> Output;
}

/// How often a wait may end before its time without the clock having moved: one that stands still
/// must not make a call last for ever, whether nothing comes or datagrams without end. Of those
/// many may come within one tick.
const MAX_STOOD_STILL: u32 = 65_536;
/// A wait in which nothing came, as so many in which something did.
const NOTHING_CAME: u32 = 4096;

/// Runs a call from `now` to its end.
pub(crate) fn drive(
    socket: &mut dyn Socket,
    mut now: Duration,
    machine: &mut dyn Machine,
    room: &mut [u8],
) -> Result<Arrived, Error> {
    machine.take(now, Input::Wake);
    let mut stood_still: u32 = 0;
    loop {
        match machine.give(room) {
            Output::Transmit { at, len } => {
                let end = at.saturating_add(len);
                socket.send(room.get(at..end).ok_or(Error::NoRoom)?)?;
            }
            Output::Control(message) => socket.send(&message)?,
            Output::WaitUntil(until, at) => {
                let free = room.get_mut(at..).ok_or(Error::NoRoom)?;
                let received = socket.receive(free, until.saturating_sub(now))?;
                let step = if received.datagram.is_some() { 1 } else { NOTHING_CAME };
                stood_still = if received.now > now { 0 } else { stood_still.saturating_add(step) };
                now = now.max(received.now);
                if stood_still > MAX_STOOD_STILL {
                    now = now.max(until);
                }
                let input = match received.datagram {
                    Some((from, len)) => Input::Datagram { from, room, at, len },
                    None => Input::Wake,
                };
                machine.take(now, input);
            }
            Output::Done(result) => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{PEER, STRANGER};
    use crate::wsp;

    #[test]
    fn chance_reaches_its_whole_share() {
        let patience = |first_ms| Patience {
            first: Duration::from_millis(first_ms),
            copies: 1,
            limit: Duration::ZERO,
        };
        let ms = |first_ms, chance, divisor| patience(first_ms).spread(chance, divisor).as_millis();
        assert!((1240..1250).contains(&ms(1000, 255, 4)), "{}", ms(1000, 255, 4));
        assert!((1490..1500).contains(&ms(1000, 255, 2)), "{}", ms(1000, 255, 2));
        assert_eq!((ms(1000, 0, 2), ms(3000, 0x100, 4)), (1000, 3000));
        // Up to the longest that milliseconds of 32 bits say.
        assert!(ms(u64::MAX / 1_000_000, 255, 2) > u128::from(u32::MAX));
    }

    /// A clock that stands still, and somebody who never stops sending.
    struct Stuck {
        received: u32,
    }

    impl Socket for Stuck {
        fn send(&mut self, _: &[u8]) -> Result<(), Error> {
            Ok(())
        }

        fn receive(&mut self, room: &mut [u8], _: Duration) -> Result<Received, Error> {
            self.received += 1;
            assert!(self.received < 1_000_000, "the call lasts for ever");
            room[..2].fill(0);
            Ok(Received { now: Duration::ZERO, datagram: Some((STRANGER, 2)) })
        }
    }

    #[test]
    fn a_call_ends_though_the_clock_stands_still_and_datagrams_come() {
        let request = Request { uri: "u", action: "", content: Content::Xml, body: b"x" };
        let mut socket = Stuck { received: 0 };
        let mut room = [0; 64];
        let mut client = wsp::Client::new(PEER, 1);
        let ended =
            client.call(&mut socket, Duration::ZERO, &request, &wsp::Settings::DEFAULT, &mut room);
        assert_eq!(ended, Err(Error::OtherAddress));
        // Many may come within one tick of a clock.
        assert!(socket.received > 10_000, "{}", socket.received);
    }
}
