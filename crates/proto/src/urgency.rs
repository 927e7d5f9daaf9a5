//! How urgent an exchange is: the urgency of RFC 9218, and the names that military precedence has
//! for it (ACP 127).

use std::fmt;

use crate::structured;

/// Key of the urgency in the field `Priority` (RFC 9218 §4.1).
const KEY: &[u8] = b"u";
/// Precedence by name.
const NAMES: [(&str, Urgency); 4] = [
    ("flash", Urgency(0)),
    ("immediate", Urgency(1)),
    ("priority", Urgency(2)),
    ("routine", Urgency::DEFAULT),
];

/// Urgency of an exchange, from 0, the most urgent, to 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Urgency(u8);

impl Urgency {
    /// Of what goes before all else.
    pub const FIRST: Self = Self(0);
    /// Of what says nothing of it (RFC 9218 §4.1).
    pub const DEFAULT: Self = Self(3);
    /// How many there are.
    pub const COUNT: usize = 8;

    /// One of 0 to 7; `None` for others.
    #[must_use]
    pub fn new(value: u64) -> Option<Self> {
        u8::try_from(value).ok().filter(|value| usize::from(*value) < Self::COUNT).map(Self)
    }

    /// The number, 0 to 7.
    #[must_use]
    pub fn get(self) -> u8 {
        self.0
    }

    /// What the value of the field `Priority` says; `None` where it says none, or what is no
    /// urgency, which a reader ignores (RFC 9218 §4).
    #[must_use]
    pub fn of_field(value: &[u8]) -> Option<Self> {
        let members = structured::dictionary(value).ok()?;
        let said = members.get(KEY)?;
        let said = said.split(|byte| *byte == b';').next()?;
        Self::new(str::from_utf8(said.trim_ascii()).ok()?.parse().ok()?)
    }

    /// As an operator writes it: a number from 0 to 7, or a precedence.
    ///
    /// # Errors
    /// What can be written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let named = NAMES.iter().find(|(name, _)| *name == text).map(|(_, urgency)| *urgency);
        let numbered = || text.parse().ok().and_then(Self::new);
        named.or_else(numbered).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            format!("urgency '{text}': one of {}, or a number from 0 to 7", names.join(", "))
        })
    }
}

impl Default for Urgency {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for Urgency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_say_it_as_rfc_9218_has_it() {
        let of = |value: &str| Urgency::of_field(value.as_bytes()).map(Urgency::get);
        for (value, urgency) in [
            ("u=5, i", Some(5)),
            ("i, u=0", Some(0)),
            ("u=1;x=2", Some(1)),
            ("u=1, u=7", Some(7)),
            ("", None),
            ("i", None),
            ("u", None),
            ("u=8", None),
            ("u=-1", None),
            ("u=1.0", None),
            ("u=\"1\"", None),
            ("U=1", None),
        ] {
            assert_eq!(of(value), urgency, "{value}");
        }
    }

    #[test]
    fn operators_write_numbers_or_precedences() {
        let of = |text| Urgency::parse(text).map(Urgency::get);
        assert_eq!(of("flash"), Ok(0));
        assert_eq!(of("routine"), Ok(3));
        assert_eq!(of("7"), Ok(7));
        for wrong in ["8", "-1", "Flash", "", "urgent"] {
            assert!(of(wrong).unwrap_err().contains("from 0 to 7"), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn whatever_a_field_has_there_is_an_urgency_or_none(value: Vec<u8>) {
            let said = Urgency::of_field(&value);
            prop_assert!(said.is_none_or(|urgency| urgency.get() < 8));
        }
    }
}
