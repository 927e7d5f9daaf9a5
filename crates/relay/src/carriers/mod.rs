//! The carriers that are connected: what is sent over them, and whether their peers still answer.
//! What that means for exchanges is for others: what has to be done about a carrier is returned.

pub(crate) mod carrier;
mod heads;
mod measure;
pub(crate) mod pulse;
pub(crate) mod schedule;

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Iter, Keys, Values};
use std::time::Duration;

use bytes::Bytes;
use proto::carrier::Piece;
use proto::exchange::Part;
use proto::urgency::Urgency;

use crate::api::Output;
use crate::core::Core;
use crate::ids::CarrierId;
use crate::timers::Key;
use carrier::Carrier;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Carriers {
    table: BTreeMap<CarrierId, Carrier>,
    /// Those with something to do since they were last looked at.
    pub(crate) dirty: BTreeSet<CarrierId>,
    /// Those that have carried something since that was reported to the coding.
    pub(crate) stale: BTreeSet<CarrierId>,
    /// The gateway of an edge has answered a PING, over whichever carrier.
    answers: bool,
}

impl Carriers {
    pub(crate) fn get(&self, id: &CarrierId) -> Option<&Carrier> {
        self.table.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &CarrierId) -> Option<&mut Carrier> {
        self.table.get_mut(id)
    }

    pub(crate) fn contains_key(&self, id: &CarrierId) -> bool {
        self.table.contains_key(id)
    }

    pub(crate) fn iter(&self) -> Iter<'_, CarrierId, Carrier> {
        self.table.iter()
    }

    pub(crate) fn keys(&self) -> Keys<'_, CarrierId, Carrier> {
        self.table.keys()
    }

    pub(crate) fn values(&self) -> Values<'_, CarrierId, Carrier> {
        self.table.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// A carrier is connected; its peer has to say HELLO in time.
    pub(crate) fn insert(&mut self, core: &mut Core, now: Duration, id: CarrierId, new: Carrier) {
        self.table.insert(id, new);
        core.timers.set(Key::Carrier(id), Some(now + core.config.hello_timeout));
        self.dirty.insert(id);
    }

    /// A carrier has ended, if it ever began.
    pub(crate) fn remove(&mut self, core: &mut Core, id: CarrierId) -> Option<Carrier> {
        core.timers.set(Key::Carrier(id), None);
        core.timers.set(Key::Pulse(id), None);
        core.timers.set(Key::Machine(id), None);
        self.dirty.remove(&id);
        self.stale.remove(&id);
        self.table.remove(&id)
    }

    /// Something moved, or may move, on a carrier.
    pub(crate) fn touch(&mut self, id: CarrierId) {
        self.dirty.insert(id);
        self.stale.insert(id);
    }

    /// Whether the peer has said HELLO on a carrier.
    pub(crate) fn is_greeted(&self, id: CarrierId) -> bool {
        self.get(&id).is_some_and(|carrier| carrier.machine.peer().is_some())
    }

    /// Whether nothing has come over a carrier though it should have.
    pub(crate) fn is_stalled(&self, id: CarrierId) -> bool {
        self.get(&id).is_some_and(|carrier| carrier.pulse.stalled.is_some())
    }

    /// The instance of a carrier's peer, once it has said HELLO.
    pub(crate) fn peer_instance(&self, id: CarrierId) -> Option<u64> {
        self.get(&id)?.peer_instance()
    }

    /// Other carriers with the same instance at the other end.
    pub(crate) fn others_of(
        &self,
        id: CarrierId,
        instance: u64,
    ) -> impl Iterator<Item = CarrierId> {
        let all = self.iter().filter(move |(other, _)| **other != id);
        all.filter(move |(_, state)| state.peer_instance() == Some(instance)).map(|(id, _)| *id)
    }

    /// Gives a part to a carrier's machine; it leaves when the machine is drained next.
    pub(crate) fn send(
        &mut self,
        core: &mut Core,
        now: Duration,
        id: CarrierId,
        part: Part,
        urgency: Urgency,
    ) {
        let Some(carrier) = self.table.get_mut(&id) else { return };
        let crosses = part.exchange().is_some() || carrier.has_control(core.config.role);
        if !crosses || !carrier.machine.may_send(&part) {
            return;
        }
        // Whether the peer hears anything shows first with its HELLO.
        let may_be_answered = carrier.machine.peer().is_some()
            && matches!(part, Part::Head(_) | Part::Data(_) | Part::Trailers(..) | Part::Query(..));
        carrier.send(now, part, urgency);
        if may_be_answered {
            carrier.spoke(core, now, id);
        }
        self.touch(id);
    }

    /// Bytes leave.
    pub(crate) fn transmit(&mut self, core: &mut Core, now: Duration, id: CarrierId, bytes: Bytes) {
        let Some(carrier) = self.table.get_mut(&id) else { return };
        carrier.left(bytes.len());
        self.stale.insert(id);
        carrier.look_after(core, now, id);
        core.outputs.push_back(Output::Transmit { carrier: id, bytes });
    }

    /// Bytes leave for a stream of the transport.
    pub(crate) fn transmit_piece(
        &mut self,
        core: &mut Core,
        now: Duration,
        id: CarrierId,
        piece: Piece,
    ) {
        let Some(carrier) = self.table.get_mut(&id) else { return };
        carrier.piece_left(piece.urgency, piece.bytes.len());
        self.stale.insert(id);
        carrier.look_after(core, now, id);
        core.outputs.push_back(Output::Stream { carrier: id, piece });
    }

    /// A datagram leaves.
    pub(crate) fn transmit_datagram(
        &mut self,
        core: &mut Core,
        now: Duration,
        id: CarrierId,
        bytes: Bytes,
    ) {
        let Some(carrier) = self.table.get_mut(&id) else { return };
        carrier.datagram_left(now, bytes.len());
        self.stale.insert(id);
        carrier.look_after(core, now, id);
        core.outputs.push_back(Output::Datagram { carrier: id, bytes });
    }

    /// What came over a carrier is given to its machine.
    pub(crate) fn receive(&mut self, now: Duration, id: CarrierId, bytes: Bytes) {
        if let Some(carrier) = self.table.get_mut(&id) {
            carrier.receive(now, bytes);
            self.touch(id);
        }
    }

    /// The same of a datagram. Whether it was taken.
    pub(crate) fn receive_datagram(&mut self, now: Duration, id: CarrierId, bytes: Bytes) -> bool {
        let carrier = self.table.get_mut(&id);
        let is_taken = carrier.is_some_and(|carrier| carrier.receive_datagram(now, bytes));
        if is_taken {
            self.touch(id);
        }
        is_taken
    }

    /// Bytes came on a stream of the transport.
    pub(crate) fn receive_piece(
        &mut self,
        now: Duration,
        id: CarrierId,
        (stream, bytes, fin): (u64, Bytes, bool),
    ) {
        if let Some(carrier) = self.table.get_mut(&id) {
            carrier.receive_piece(now, stream, bytes, fin);
            self.touch(id);
        }
    }

    /// The transport took so many bytes for a stream.
    pub(crate) fn piece_sent(
        &mut self,
        now: Duration,
        id: CarrierId,
        urgency: Urgency,
        bytes: usize,
    ) {
        if let Some(carrier) = self.table.get_mut(&id) {
            carrier.piece_sent(now, urgency, bytes);
            self.touch(id);
        }
    }

    /// The kernel took so many bytes.
    pub(crate) fn sent(&mut self, now: Duration, id: CarrierId, bytes: usize) {
        if let Some(carrier) = self.table.get_mut(&id) {
            carrier.sent(now, bytes);
            self.touch(id);
        }
    }

    /// The time has come for which a carrier's machine asked.
    pub(crate) fn wake(&mut self, now: Duration, id: CarrierId) {
        if let Some(carrier) = self.table.get_mut(&id) {
            carrier.wake(now);
            self.touch(id);
        }
    }
}

#[cfg(test)]
impl std::ops::Index<&CarrierId> for Carriers {
    type Output = Carrier;

    fn index(&self, id: &CarrierId) -> &Carrier {
        &self.table[id]
    }
}
