//! Elements that can be read alone (EXI §8.5.4.4.1, SC): a fragment in the middle of a document,
//! with tables and grammars of its own.

use super::{Kind, NOT_ALLOWED, Values, Walk};
use crate::exi::{bits::Fault, built_in::FRAGMENT_START, grammar::Event, index::KeyMap};

/// What waits for the end of a self-contained element.
#[derive(Debug)]
pub(super) struct Scope {
    values: Values,
    learned: Vec<u32>,
    found: KeyMap,
    productions: usize,
    floor: usize,
    /// What all that takes.
    bytes: usize,
}

impl Walk {
    /// SC behind the start of an element, SD and the element once more.
    pub(crate) fn self_contained(&mut self, name: u32, prefix: &str) -> Result<(), Fault> {
        if !self.event(Kind::SelfContained, Event::SelfContained)? {
            return Err(NOT_ALLOWED);
        }
        self.to.align();
        let bytes = self.own_bytes();
        self.scopes.push(Scope {
            values: std::mem::replace(&mut self.values, Values::new(&self.options)),
            learned: std::mem::replace(&mut self.learned, vec![0, 0]),
            found: std::mem::take(&mut self.found),
            productions: std::mem::take(&mut self.productions),
            floor: std::mem::replace(&mut self.floor, self.stack.len() + 1),
            bytes,
        });
        self.outer_bytes += bytes;
        self.check()?;
        self.names.open_scope();
        self.rule = FRAGMENT_START;
        self.start_document()?;
        self.start(name, prefix)
    }

    /// ED behind its end, and back to what was outside.
    #[cold]
    pub(super) fn leave_scope(&mut self) -> Result<(), Fault> {
        self.end_document()?;
        self.to.align();
        let scope = self.scopes.pop().ok_or(NOT_ALLOWED)?;
        self.names.close_scope();
        (self.values, self.learned, self.found) = (scope.values, scope.learned, scope.found);
        (self.productions, self.floor) = (scope.productions, scope.floor);
        self.outer_bytes -= scope.bytes;
        self.leave()
    }
}
