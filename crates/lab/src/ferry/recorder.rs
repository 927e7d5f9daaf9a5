//! A link's record of packets, written by the ferry's thread.

use std::time::Duration;

use link::{Direction, DropReason};
use record::packets::{PacketEvent, TcpHeader, Toward};

use super::tcp;

/// Entries of a chunk: memory comes in pieces of 24 kB, and nothing is ever moved as it grows.
const CHUNK_ENTRIES: usize = 256;

/// Where a packet stands in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordPosition {
    entry: u32,
    is_copy: bool,
}

impl RecordPosition {
    /// Not recorded.
    pub(super) const NONE: Self = Self { entry: u32::MAX, is_copy: false };

    /// That of a packet made from the one in this place.
    pub(super) fn copy(self) -> Self {
        Self { is_copy: true, ..self }
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Not known yet.
    Underway,
    /// Written to the receiver then.
    Delivered(Duration),
    /// By the link.
    Dropped(DropReason),
    /// By the receiver's interface.
    Refused,
}

/// One packet, as small as the thread can write it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    direction: Direction,
    offered: Duration,
    due: Option<Duration>,
    fate: Fate,
    is_copy: bool,
    bytes: u32,
    tcp: Option<TcpHeader>,
}

impl Entry {
    /// As everybody else knows it.
    pub(super) fn event(&self) -> PacketEvent {
        let (delivered, dropped) = match self.fate {
            Fate::Underway => (None, None),
            Fate::Delivered(at) => (Some(at), None),
            Fate::Dropped(reason) => (None, Some(reason.name())),
            Fate::Refused => (None, Some("refused")),
        };
        PacketEvent {
            toward: match self.direction {
                Direction::Ab => Toward::Service,
                Direction::Ba => Toward::Client,
            },
            offered: self.offered,
            delivered,
            due: self.due,
            dropped: dropped.map(str::to_string),
            duplicate: self.is_copy,
            bytes: self.bytes,
            tcp: self.tcp,
        }
    }
}

/// The packets of a link up to a bound, and the number of those beyond.
pub(super) struct Recorder {
    chunks: Vec<Vec<Entry>>,
    entries: usize,
    entries_max: usize,
    unrecorded: u64,
}

/// An empty piece of a record, to be filled by [`Recorder::read`].
pub(super) fn piece() -> Vec<Entry> {
    Vec::with_capacity(CHUNK_ENTRIES)
}

impl Recorder {
    /// Of at most `entries_max` packets.
    pub(super) fn new(entries_max: usize) -> Self {
        let chunks = Vec::with_capacity(entries_max.div_ceil(CHUNK_ENTRIES));
        Self { chunks, entries: 0, entries_max, unrecorded: 0 }
    }

    /// Notes a packet that comes to the link.
    pub(super) fn offer(
        &mut self,
        direction: Direction,
        offered: Duration,
        packet: &[u8],
    ) -> RecordPosition {
        if self.entries_max == 0 {
            return RecordPosition::NONE;
        }
        self.push(Entry {
            direction,
            offered,
            due: None,
            fate: Fate::Underway,
            is_copy: false,
            bytes: u32::try_from(packet.len()).unwrap_or(u32::MAX),
            tcp: tcp::decode(packet),
        })
    }

    /// Notes what became of it.
    pub(super) fn end(&mut self, place: RecordPosition, due: Option<Duration>, fate: Fate) {
        let Some(entry) = self.entry(place) else { return };
        if place.is_copy {
            let copy = Entry { due, fate, is_copy: true, ..*entry };
            self.push(copy);
        } else {
            (entry.due, entry.fate) = (due, fate);
        }
    }

    /// Replaces what is in `piece` with the entries from `from` on, as many as it has room for and
    /// lie in one chunk; none at the end.
    pub(super) fn read(&self, from: usize, piece: &mut Vec<Entry>) {
        piece.clear();
        let chunk = self.chunks.get(from / CHUNK_ENTRIES).map_or(&[][..], Vec::as_slice);
        let rest = chunk.get(from % CHUNK_ENTRIES..).unwrap_or_default();
        let room = piece.capacity().min(rest.len());
        piece.extend_from_slice(&rest[..room]);
    }

    /// Packets that had no room.
    pub(super) fn unrecorded(&self) -> u64 {
        self.unrecorded
    }

    fn entry(&mut self, place: RecordPosition) -> Option<&mut Entry> {
        let at = place.entry as usize;
        self.chunks.get_mut(at / CHUNK_ENTRIES)?.get_mut(at % CHUNK_ENTRIES)
    }

    fn push(&mut self, entry: Entry) -> RecordPosition {
        if self.entries >= self.entries_max {
            self.unrecorded += 1;
            return RecordPosition::NONE;
        }
        if self.entries.is_multiple_of(CHUNK_ENTRIES) {
            self.chunks.push(piece());
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(entry);
        }
        let place = RecordPosition {
            entry: u32::try_from(self.entries).unwrap_or(u32::MAX),
            is_copy: false,
        };
        self.entries += 1;
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    fn all(recorder: &Recorder) -> Vec<PacketEvent> {
        let (mut events, mut piece) = (Vec::new(), piece());
        loop {
            recorder.read(events.len(), &mut piece);
            events.extend(piece.iter().map(Entry::event));
            if piece.is_empty() {
                return events;
            }
        }
    }

    #[test]
    fn every_fate_is_reported() {
        let mut recorder = Recorder::new(10);
        let mut offer = |at| recorder.offer(Direction::Ba, ms(at), &[0; 100]);
        let [first, second, third, _] = [1, 2, 3, 4].map(&mut offer);
        recorder.end(second, None, Fate::Dropped(DropReason::Queue));
        recorder.end(first, Some(ms(7)), Fate::Delivered(ms(8)));
        recorder.end(first.copy(), Some(ms(9)), Fate::Delivered(ms(10)));
        recorder.end(third, Some(ms(9)), Fate::Refused);
        let events = all(&recorder);
        assert_eq!(events.len(), 5);
        assert_eq!((events[0].due, events[0].delivered), (Some(ms(7)), Some(ms(8))));
        assert_eq!(events[1].dropped.as_deref(), Some("queue"));
        assert_eq!(events[2].dropped.as_deref(), Some("refused"));
        assert_eq!((events[3].delivered, &events[3].dropped), (None, &None), "underway");
        assert!(events[4].duplicate);
        assert_eq!((events[4].offered, events[4].delivered), (ms(1), Some(ms(10))));
        assert!(events.iter().all(|event| event.toward == Toward::Client && event.bytes == 100));
    }

    #[test]
    fn what_is_beyond_the_bound_is_counted() {
        let bound = 2 * CHUNK_ENTRIES + 3;
        let mut recorder = Recorder::new(bound);
        for at in 0..bound as u64 + 5 {
            let place = recorder.offer(Direction::Ab, ms(at), &[]);
            recorder.end(place, Some(ms(at)), Fate::Delivered(ms(at)));
        }
        let events = all(&recorder);
        assert_eq!((events.len(), recorder.unrecorded()), (bound, 5));
        assert!((0..).zip(&events).all(|(at, event)| event.delivered == Some(ms(at))));
    }

    #[test]
    fn without_room_nothing_is_counted_either() {
        let mut recorder = Recorder::new(0);
        let place = recorder.offer(Direction::Ab, ms(1), &[]);
        recorder.end(place, None, Fate::Refused);
        recorder.end(place.copy(), None, Fate::Refused);
        assert_eq!((all(&recorder).len(), recorder.unrecorded()), (0, 0));
    }
}
