//! Packets that were written lately, for those who get the same publication next.

use proto::mqtt::{Marks, Publish, Version, encode_publish_head};

use crate::core::Delivery;
use crate::publication::{Grade, PayloadForm};

/// Publications that are remembered: those of a reading of many small ones, each for all sessions
/// that get it.
const SLOTS: usize = 64;
/// Longest packet that is remembered, in bytes.
const MAX_BYTES: usize = 4096;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Written {
    slots: Vec<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    of: Option<Form>,
    marks: Option<Marks>,
    bytes: Vec<u8>,
}

/// What a packet depends on besides its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    id: u64,
    coded: Option<PayloadForm>,
    version: Version,
    grade: Grade,
    retain: bool,
}

impl Form {
    /// The form of what is given to a client, if others get the same bytes but for the packet
    /// identifier: with properties of the receiver or of the time it is nobody else's.
    pub(super) fn of(delivery: &Delivery, version: Version, has_alias: bool) -> Option<Self> {
        let publication = &delivery.publication;
        let is_v5 = version == Version::V5;
        let is_own = is_v5
            && (has_alias || delivery.identifiers.is_some() || publication.deadline.is_some());
        let Delivery { grade, retain, .. } = *delivery;
        let (id, coded) = (publication.id, publication.coded);
        (!is_own).then_some(Self { id, coded, version, grade, retain })
    }
}

impl Written {
    /// Whether a packet is remembered, and is of at most so many bytes.
    pub(super) fn has(&self, form: Form, max_bytes: usize) -> bool {
        self.slots
            .get(slot_of(form))
            .is_some_and(|slot| slot.of == Some(form) && slot.bytes.len() <= max_bytes)
    }

    /// Writes a packet that is remembered at the end of `out`, for another receiver.
    pub(super) fn repeat(&self, form: Form, delivery: &Delivery, out: &mut Vec<u8>) {
        let Some(Slot { marks: Some(marks), bytes, .. }) = self.slots.get(slot_of(form)) else {
            return;
        };
        let start = out.len();
        out.extend_from_slice(bytes);
        if let (Some(out), Some(handle)) = (out.get_mut(start..), delivery.handle) {
            marks.patch(out, delivery.repeated, handle.get());
        }
    }

    /// Writes a packet to remember it, unless it is long.
    pub(super) fn keep(&mut self, form: Form, packet: &Publish) {
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, Slot::default);
        }
        let Some(slot) = self.slots.get_mut(slot_of(form)) else { return };
        slot.of = None;
        slot.bytes.clear();
        let head = encode_publish_head(packet, form.version, &mut slot.bytes);
        let Ok(marks) = head else { return };
        if slot.bytes.len() + packet.payload.len() <= MAX_BYTES {
            slot.bytes.extend_from_slice(&packet.payload);
            (slot.of, slot.marks) = (Some(form), Some(marks));
        }
    }
}

fn slot_of(form: Form) -> usize {
    usize::try_from(form.id % SLOTS as u64).unwrap_or_default()
}
