//! Names of elements.

/// A name that is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Name<'a> {
    /// The namespace; empty for none.
    pub space: &'a str,
    /// The name in it.
    pub local: &'a str,
}

/// How many parts a namespace may have in a document.
pub(super) const MAX_PARTS: usize = 3;

/// A namespace that was read, in the parts that the document has it in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Space<'a> {
    pub(super) parts: [&'a str; MAX_PARTS],
}

impl<'a> Space<'a> {
    pub(super) fn of(whole: &'a str) -> Self {
        Self { parts: [whole, "", ""] }
    }

    /// Its parts, one behind the other; those that are not there are empty.
    #[must_use]
    pub fn parts(&self) -> [&'a str; 3] {
        self.parts
    }

    /// Whether it is this one.
    #[must_use]
    pub fn is(&self, other: &str) -> bool {
        let mut rest = other;
        for part in self.parts {
            match rest.strip_prefix(part) {
                Some(behind) => rest = behind,
                None => return false,
            }
        }
        rest.is_empty()
    }

    /// Whether both are the same.
    pub(super) fn equals(&self, other: &Self) -> bool {
        (0..).try_for_each(|at| match (self.byte(at), other.byte(at)) {
            (Some(one), Some(other)) if one == other => Ok(()),
            (one, other) => Err(one.is_none() && other.is_none()),
        }) == Err(true)
    }

    fn byte(&self, at: usize) -> Option<u8> {
        let mut at = at;
        for part in self.parts {
            match at.checked_sub(part.len()) {
                Some(rest) => at = rest,
                None => return part.as_bytes().get(at).copied(),
            }
        }
        None
    }
}

/// A name that was read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found<'a> {
    /// The namespace.
    pub space: Space<'a>,
    /// The name in it.
    pub local: &'a str,
}

impl Found<'_> {
    /// Whether it is this one.
    #[must_use]
    pub fn is(&self, name: &Name<'_>) -> bool {
        self.local == name.local && self.space.is(name.space)
    }
}
