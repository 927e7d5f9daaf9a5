//! What the consumer takes: entities of fixed size, so that a message can be handed on by copying.

use std::fmt;

/// Most bytes of an entity's name, and of its kind.
pub const MAX_NAME_BYTES: usize = 32;
/// Entities have numbers below this one: as many places are kept.
pub const MAX_ID: u32 = 4096;
/// Most entities of a message.
pub const MAX_ENTITIES: usize = 16;

/// A short text in place.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Short {
    bytes: [u8; MAX_NAME_BYTES],
    length: u8,
}

impl Short {
    /// A text of at most [`MAX_NAME_BYTES`] bytes; `None` for a longer one.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let mut short = Self { length: u8::try_from(text.len()).ok()?, ..Self::default() };
        short.bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(short)
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.length)).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl fmt::Debug for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// A thing that is tracked: nine elements of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Entity {
    /// Which one, below [`MAX_ID`].
    pub id: u32,
    /// What it is called.
    pub name: Short,
    /// What it is.
    pub kind: Short,
    /// Degrees north, -90 to 90.
    pub latitude_deg: f64,
    /// Degrees east, -180 to 180.
    pub longitude_deg: f64,
    /// Metres above the ellipsoid, -1,000 to 100,000.
    pub altitude_m: f64,
    /// Degrees from north, 0 to 360.
    pub course_deg: f64,
    /// Metres a second, 0 to 20,000.
    pub speed_mps: f64,
    /// When it was so, in milliseconds since 1970.
    pub time_ms: u64,
}

/// A message as the engine hands it over.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message {
    /// The producer's number of it; 0 where it says none.
    pub sequence: u64,
    /// T0: when the producer sent it, in nanoseconds of the consumer's `CLOCK_MONOTONIC`; 0 where
    /// it says nothing.
    pub sent_ns: u64,
    /// T1: when the engine handed it over, on the same clock.
    pub handed_ns: u64,
    entities: [Entity; MAX_ENTITIES],
    count: usize,
}

impl Message {
    /// The entities.
    #[must_use]
    pub fn entities(&self) -> &[Entity] {
        self.entities.get(..self.count).unwrap_or_default()
    }

    /// Adds one; false where there are [`MAX_ENTITIES`].
    pub fn push(&mut self, entity: Entity) -> bool {
        let Some(place) = self.entities.get_mut(self.count) else { return false };
        *place = entity;
        self.count += 1;
        true
    }

    /// Takes what `other` has, its entities and no more.
    pub fn copy_from(&mut self, other: &Self) {
        self.clear();
        (self.sequence, self.sent_ns, self.handed_ns) =
            (other.sequence, other.sent_ns, other.handed_ns);
        for entity in other.entities() {
            self.push(*entity);
        }
    }

    /// Empties it.
    pub fn clear(&mut self) {
        (self.sequence, self.sent_ns, self.handed_ns, self.count) = (0, 0, 0, 0);
    }
}

/// The table that entities are stored in: the last of each number.
#[derive(Debug)]
pub struct Table {
    // bound: MAX_ID.
    places: Vec<Entity>,
    stored: u64,
}

impl Default for Table {
    fn default() -> Self {
        Self { places: vec![Entity::default(); MAX_ID as usize], stored: 0 }
    }
}

impl Table {
    /// Stores one in the place of its number; the reader lets no other number through.
    pub fn store(&mut self, entity: &Entity) {
        if let Some(place) = self.places.get_mut(entity.id as usize) {
            *place = *entity;
            self.stored += 1;
        }
    }

    /// How often one was stored.
    #[must_use]
    pub fn stored(&self) -> u64 {
        self.stored
    }

    /// The last of a number; its default where none came.
    #[must_use]
    pub fn get(&self, id: u32) -> Option<&Entity> {
        self.places.get(id as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_holds_so_many_and_forgets_them() {
        let mut message = Message::default();
        for id in 0..MAX_ENTITIES {
            let id = u32::try_from(id).unwrap();
            assert!(message.push(Entity { id, ..Entity::default() }));
        }
        assert!(!message.push(Entity::default()));
        let mut other = Message { sequence: 3, ..Message::default() };
        other.push(Entity { id: 9, ..Entity::default() });
        message.copy_from(&other);
        assert_eq!(message.entities(), other.entities());
        assert_eq!(message.sequence, 3);
        message.clear();
        assert!(message.entities().is_empty());
    }

    #[test]
    fn the_table_has_the_last_of_each() {
        let mut table = Table::default();
        let one = Entity { id: MAX_ID - 1, speed_mps: 7.0, ..Entity::default() };
        table.store(&Entity { speed_mps: 1.0, ..one });
        table.store(&one);
        table.store(&Entity { id: MAX_ID, ..one });
        assert_eq!(table.get(MAX_ID - 1), Some(&one));
        assert_eq!(table.stored(), 2, "a number without a place is not stored");
    }

    #[test]
    fn a_text_that_is_too_long_is_none() {
        assert_eq!(Short::of("Träger").unwrap().as_str(), "Träger");
        assert!(Short::of(&"x".repeat(MAX_NAME_BYTES)).is_some());
        assert!(Short::of(&"x".repeat(MAX_NAME_BYTES + 1)).is_none());
    }
}
