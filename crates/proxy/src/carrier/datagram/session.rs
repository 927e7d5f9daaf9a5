//! A session at the gateway: what is sealed for its edge, and where that is.

use proto::sealed::{
    FIRST_MESSAGE_BYTES, Granted, HeadBytes, Inside, Packet, SECOND_MESSAGE_BYTES, TAG_BYTES,
};

use super::noise::Dialled;
use super::seal::{Opened, Opener, Refused, Sealer};
use crate::carrier::udp::PeerPlace;

/// So many times what came from an address may be sent there, before it is known that who sends
/// also receives there (RFC 9000 §8.1).
const AMPLIFICATION: usize = 3;
/// What may be sent there at first. A first message is taken only of who has a peer's key and made
/// it just now, and so it need not be filled up to this, which costs a second on slow links.
const FIRST_BUDGET: usize = AMPLIFICATION * 1200;
/// See the module.
pub(super) struct Session {
    pub(super) first: [u8; FIRST_MESSAGE_BYTES],
    answer: [u8; SECOND_MESSAGE_BYTES],
    /// Opens what came before the edge had the answer, and whether any that it has come since.
    early: Option<Opener>,
    opener: Opener,
    sealer: Sealer,
    place: PeerPlace,
    /// Bytes that may be sent there; `None` once it is known that the edge receives there.
    budget: Option<usize>,
    /// Another place that datagrams come from, and what shows that the edge receives there.
    other: Option<(PeerPlace, [u8; 8])>,
}

/// What a datagram from an edge came to.
#[derive(Debug, Default)]
pub(super) struct Came {
    /// What is in it, if that is for the carrier.
    pub(super) inside: Option<Inside>,
    /// A datagram that is to be sent to where it came from.
    pub(super) answer: Option<Vec<u8>>,
}

impl Session {
    /// Answers a first message. `is_there`: who sent it receives at its address.
    pub(super) fn new(
        dialled: Dialled,
        first: [u8; FIRST_MESSAGE_BYTES],
        granted: Granted,
        place: PeerPlace,
        is_there: bool,
    ) -> Option<Self> {
        let (answer, sealer, opener, early) = dialled.answer(granted)?;
        let (early, budget) = (Some(early), (!is_there).then_some(FIRST_BUDGET));
        Some(Self { first, answer, early, opener, sealer, place, budget, other: None })
    }

    /// Opens what the edge sent before it had the answer. Errors: as of [`Opener::open`].
    pub(super) fn open_early(
        &mut self,
        place: PeerPlace,
        datagram: &[u8],
        head: usize,
        number: u32,
    ) -> Result<Came, Refused> {
        // Once it has the answer, what it sent before is late.
        let early = self.early.as_mut().ok_or(Refused::Repeated)?;
        let opened = early.open(datagram, head, number)?;
        self.came(place, datagram.len(), opened)
    }

    /// Opens what it sent since. `drawn` is at random. Errors: as of [`Opener::open`].
    pub(super) fn open(
        &mut self,
        place: PeerPlace,
        datagram: &[u8],
        (head, number): (usize, u32),
        drawn: [u8; 8],
    ) -> Result<Came, Refused> {
        let opened = self.opener.open(datagram, head, number)?;
        let is_latest = opened.is_latest;
        if self.early.take().is_some() && place == self.place {
            // It has the answer, which went there.
            self.budget = None;
        }
        let mut came = self.came(place, datagram.len(), opened)?;
        if place != self.place && is_latest {
            // No more goes there than came from there: a word for a datagram.
            let (_, word) = *self.other.insert(match self.other {
                Some((other, word)) if other == place => (other, word),
                _ => (place, drawn),
            });
            let challenge = self.seal_for(&Inside::Challenge(word).encode());
            came.answer = challenge.filter(|challenge| challenge.len() <= 3 * datagram.len());
        }
        Ok(came)
    }

    fn came(&mut self, place: PeerPlace, bytes: usize, opened: Opened) -> Result<Came, Refused> {
        if place == self.place
            && let Some(budget) = &mut self.budget
        {
            *budget += bytes * AMPLIFICATION;
        }
        let mut came = Came::default();
        match Inside::decode(opened.datagram).map_err(|_| Refused::Unreadable)? {
            Inside::Challenge(word) => {
                came.answer = self.seal_for(&Inside::Response(word).encode());
            }
            Inside::Response(word) => {
                if let Some((moved, _)) = self.other.take_if(|(_, drawn)| *drawn == word) {
                    (self.place, self.budget) = (moved, None);
                }
            }
            inside => came.inside = Some(inside),
        }
        Ok(came)
    }

    /// Where the edge is.
    pub(super) fn place(&self) -> PeerPlace {
        self.place
    }

    /// Seals a datagram for the edge: where it goes. `None` where no more may be sent there, or the
    /// key can seal no more: it is as good as lost.
    pub(super) fn seal(&mut self, datagram: &[u8]) -> Option<(PeerPlace, Vec<u8>)> {
        let bytes = self.head().len() + datagram.len() + TAG_BYTES;
        if let Some(budget) = &mut self.budget {
            *budget = budget.checked_sub(bytes)?;
        }
        Some((self.place, self.seal_for(datagram)?))
    }

    fn head(&self) -> HeadBytes {
        let (number, message, sealed) = (self.sealer.number(), &self.answer, &[][..]);
        match self.early {
            Some(_) => Packet::Answer { message, number, sealed }.head(),
            None => Packet::Reply { number, sealed }.head(),
        }
    }

    fn seal_for(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        let head = self.head();
        self.sealer.seal(head, datagram)
    }
}
