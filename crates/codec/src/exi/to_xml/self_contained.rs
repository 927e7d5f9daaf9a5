//! Self-contained elements in XML text. Inside, namespaces have other numbers than outside: made-up
//! prefixes tell the levels apart, and what was bound outside is bound to nothing that is known.

use super::{Binding, Core, Tag, ToXml, put_declaration};

/// The namespace of a binding from outside; no namespace has this number.
const FOREIGN: u32 = u32::MAX - 1;

/// What waits for the end of a self-contained element.
#[derive(Debug)]
pub(super) struct Level {
    cache: Vec<Tag>,
    in_scope: Vec<bool>,
    root: Option<usize>,
    /// Length of what was written of names.
    written: usize,
    /// Namespaces of the bindings.
    bound: Vec<u32>,
    floor: usize,
}

/// A declaration as text.
#[derive(Debug)]
pub(super) struct Carried {
    prefix: Box<[u8]>,
    uri: Box<[u8]>,
}

impl ToXml {
    /// The start tag goes on with the numbers that are valid inside.
    pub(super) fn open_level(&mut self, name: u32, prefix: u32, core: &Core) {
        // The tag of a name with its own prefix is not written before its NS events are over.
        let floor = self.stack.len() + usize::from(self.prefixes);
        self.levels.push(Level {
            cache: std::mem::take(&mut self.cache),
            in_scope: std::mem::take(&mut self.in_scope),
            root: self.root.take(),
            written: self.written.len(),
            bound: self.bindings.iter().map(|binding| binding.uri).collect(),
            floor: std::mem::replace(&mut self.floor, floor),
        });
        self.bindings.iter_mut().for_each(|binding| binding.uri = FOREIGN);
        if self.prefixes {
            self.pending = Some((name, prefix));
            self.carry(core);
        }
    }

    /// Keeps the declarations that came before SC, as text.
    fn carry(&mut self, core: &Core) {
        let Some(names) = core.outer_names() else { return };
        for (uri, prefix, _) in std::mem::take(&mut self.declared) {
            let (prefix, uri) = (names.prefix(uri, prefix).as_bytes(), names.uri(uri).as_bytes());
            if self.carried.iter().all(|known| *known.prefix != *prefix) {
                self.carried.push(Carried { prefix: prefix.into(), uri: uri.into() });
            }
        }
    }

    /// Binds them, as far as the element, whose declarations are the bindings from `first` on, does
    /// not declare the same prefixes again.
    pub(super) fn bind_carried(&mut self, first: usize, depth: usize) {
        if self.carried.is_empty() {
            return;
        }
        let declared = self.bindings.get(first..).unwrap_or_default();
        self.carried.retain(|known| declared.iter().all(|one| one.prefix != known.prefix));
        let bound = |known: &Carried| Binding { prefix: known.prefix.clone(), uri: FOREIGN, depth };
        self.bindings.extend(self.carried.iter().map(bound));
    }

    /// Writes them.
    pub(super) fn put_carried(&mut self) {
        for Carried { prefix, uri } in self.carried.drain(..) {
            put_declaration(&prefix, &uri, &mut self.out);
        }
    }

    /// Back to the numbers of outside.
    #[cold]
    pub(super) fn close_level(&mut self) {
        let Some(level) = self.levels.pop() else { return };
        self.bindings.truncate(level.bound.len());
        for (binding, uri) in self.bindings.iter_mut().zip(level.bound) {
            binding.uri = uri;
        }
        (self.cache, self.in_scope, self.root) = (level.cache, level.in_scope, level.root);
        self.floor = level.floor;
        if !self.prefixes {
            self.written.truncate(level.written);
        }
    }
}
