//! Namespace declarations in scope.

use super::name::Space;
use super::{Found, MAX_PREFIXES};
use crate::Error;
use crate::input::split_at;

/// The prefix that no declaration binds (Namespaces in XML 1.0 §3).
const XML_SPACE: &str = "http://www.w3.org/XML/1998/namespace";

#[derive(Clone, Copy, Debug)]
struct Bound<'a> {
    /// Empty for the default namespace.
    prefix: &'a str,
    space: Space<'a>,
    /// How deep the element is that declares it.
    depth: usize,
}

/// Those of the elements that are open.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scopes<'a> {
    /// Those up to `count`.
    bound: [Option<Bound<'a>>; MAX_PREFIXES],
    count: usize,
}

impl<'a> Scopes<'a> {
    fn all(&self) -> impl DoubleEndedIterator<Item = &Bound<'a>> {
        self.bound.iter().take(self.count).flatten()
    }

    /// Takes a declaration of the element at `depth`.
    pub(super) fn bind(
        &mut self,
        prefix: &'a str,
        space: Space<'a>,
        depth: usize,
    ) -> Result<(), Error> {
        let free = self.bound.get_mut(self.count).ok_or(Error::TooManyPrefixes)?;
        *free = Some(Bound { prefix, space, depth });
        self.count += 1;
        Ok(())
    }

    /// Forgets those of elements deeper than `depth`.
    pub(super) fn leave(&mut self, depth: usize) {
        while let Some(last) = self.count.checked_sub(1)
            && let Some(Some(bound)) = self.bound.get(last)
            && bound.depth > depth
        {
            self.count = last;
        }
    }

    fn of(&self, prefix: &str) -> Option<Space<'a>> {
        let found = self.all().rev().find(|bound| bound.prefix == prefix);
        found.map(|bound| bound.space)
    }

    /// The default namespace.
    pub(super) fn default_space(&self) -> Space<'a> {
        self.of("").unwrap_or_default()
    }

    /// Whether a prefix in scope means the namespace.
    pub(super) fn has_prefix(&self, space: &Space<'a>) -> bool {
        let means = |bound: &&Bound<'a>| !bound.prefix.is_empty() && bound.space.equals(space);
        let seen = |bound: &Bound<'a>| self.of(bound.prefix).is_some_and(|of| of.equals(space));
        self.all().filter(means).any(seen)
    }

    /// The name of an element as written, `local` or `prefix:local`.
    pub(super) fn resolve(&self, written: &'a str) -> Result<Found<'a>, Error> {
        match split_at(written, b':') {
            None => Ok(Found { space: self.default_space(), local: written }),
            Some(("xml", local)) => Ok(Found { space: Space::of(XML_SPACE), local }),
            Some((prefix, local)) => {
                let space = self.of(prefix).ok_or(Error::Malformed)?;
                Ok(Found { space, local })
            }
        }
    }
}

/// The prefix that an attribute of this name declares; empty for the default namespace.
pub(super) fn declared(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("xmlns")?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix(':') }
}
