//! Whose slot it is.

use super::config::Tdma;
use std::time::Duration;

/// The slots of each port.
pub(super) struct Schedule {
    slot_ns: u128,
    guard: Duration,
    frame_slots: u128,
    /// For each port, its slots within a frame, in order.
    owned: Vec<Vec<u128>>,
}

impl Schedule {
    pub(super) fn new(tdma: &Tdma, ports: usize) -> Self {
        let mut owned = vec![Vec::new(); ports];
        for (slot, owners) in tdma.owners.iter().enumerate() {
            for owner in owners {
                if let Some(slots) = owned.get_mut(usize::from(*owner)) {
                    slots.push(slot as u128);
                }
            }
        }
        Self {
            slot_ns: tdma.slot.as_nanos().max(1),
            guard: tdma.guard,
            frame_slots: (tdma.owners.len() as u128).max(1),
            owned,
        }
    }

    /// The beginning of the port's first slot that begins at `from` or after. A port without a
    /// slot waits for good.
    pub(super) fn next_start(&self, port: usize, from: Duration) -> Duration {
        let slot = from.as_nanos().div_ceil(self.slot_ns);
        let (frame, within) = (slot / self.frame_slots, slot % self.frame_slots);
        let owned = self.owned.get(port).map_or(&[][..], Vec::as_slice);
        let later = owned.partition_point(|own| *own < within);
        let next = match (owned.get(later), owned.first()) {
            (Some(own), _) => frame * self.frame_slots + own,
            (None, Some(own)) => (frame + 1) * self.frame_slots + own,
            (None, None) => return Duration::MAX,
        };
        nanos(next * self.slot_ns)
    }

    /// Whether a time is in one of the port's slots.
    pub(super) fn owns(&self, port: usize, at: Duration) -> bool {
        let slot = at.as_nanos() / self.slot_ns % self.frame_slots;
        self.owned.get(port).is_some_and(|own| own.binary_search(&slot).is_ok())
    }

    /// When a transmission must have ended that begins at a time, within the slot of that time.
    pub(super) fn end(&self, at: Duration) -> Duration {
        let slot = at.as_nanos() / self.slot_ns;
        nanos((slot + 1) * self.slot_ns).saturating_sub(self.guard)
    }

    /// The longest that a transmission may take.
    pub(super) fn longest(&self) -> Duration {
        nanos(self.slot_ns).saturating_sub(self.guard)
    }
}

fn nanos(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_finds_its_next_slot() {
        let ms = Duration::from_millis;
        let tdma = Tdma {
            slot: ms(10),
            guard: ms(1),
            owners: vec![vec![0], vec![1], vec![0, 2], vec![1]],
            fragments: false,
            aggregates: false,
        };
        let schedule = Schedule::new(&tdma, 4);
        for (port, from, expected) in [
            (0, 0, 0),
            (0, 1, 20),
            (0, 20, 20),
            (0, 21, 40),
            (1, 0, 10),
            (1, 31, 50),
            (2, 21, 60),
            (2, 4_000, 4_020),
        ] {
            assert_eq!(schedule.next_start(port, ms(from)), ms(expected), "{port} {from}");
        }
        assert_eq!(schedule.next_start(3, ms(0)), Duration::MAX);
        assert_eq!((schedule.end(ms(20)), schedule.end(ms(25))), (ms(29), ms(29)));
        assert_eq!(schedule.longest(), ms(9));
        assert!(schedule.owns(0, ms(9)) && !schedule.owns(0, ms(10)) && schedule.owns(2, ms(60)));
        assert!(!schedule.owns(3, ms(0)) && !schedule.owns(9, ms(0)));
    }
}
