//! Places for what comes and goes, used again without being mistaken for what was there before.

/// Says which value of [`Slots`] is meant: a place, and the how-manieth in that place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// As long as the most values that were there at once: who adds them has the bound.
pub(super) struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

impl<T> Slots<T> {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    /// The ticket of the value that is put in next.
    pub(super) fn next(&self) -> Ticket {
        match self.free.last() {
            Some(slot) => {
                let generation = self.slots.get(*slot as usize).map_or(0, |slot| slot.generation);
                Ticket { slot: *slot, generation }
            }
            None => {
                let slot = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
                Ticket { slot, generation: 0 }
            }
        }
    }

    pub(super) fn insert(&mut self, value: T) -> Ticket {
        let ticket = self.next();
        if self.free.pop().is_none() {
            self.slots.push(Slot { generation: 0, value: None });
        }
        if let Some(slot) = self.slots.get_mut(ticket.slot as usize) {
            slot.value = Some(value);
        }
        ticket
    }

    pub(super) fn get_mut(&mut self, ticket: Ticket) -> Option<&mut T> {
        let slot = self.slots.get_mut(ticket.slot as usize)?;
        if slot.generation == ticket.generation { slot.value.as_mut() } else { None }
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<T> {
        let slot = self.slots.get_mut(ticket.slot as usize)?;
        if slot.generation != ticket.generation {
            return None;
        }
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(ticket.slot);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_ticket_does_not_reach_what_came_into_its_place() {
        let mut slots = Slots::new();
        let (first, second) = (slots.insert("first"), slots.insert("second"));
        assert_eq!(slots.remove(first), Some("first"));
        assert_eq!(slots.remove(first), None);
        let third = slots.insert("third");
        assert_eq!(third.slot, first.slot, "used again");
        assert_eq!(slots.get_mut(first), None);
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.get_mut(third), Some(&mut "third"));
        assert_eq!(slots.get_mut(second), Some(&mut "second"));
        assert_eq!(slots.insert("fourth").slot, 2);
    }

    #[test]
    fn the_next_ticket_is_the_one_given() {
        let mut slots = Slots::new();
        for round in 0..5 {
            let next = slots.next();
            assert_eq!(slots.insert(round), next);
            if round % 2 == 0 {
                slots.remove(next);
            }
        }
    }
}
