//! Elements that can be read alone (EXI §8.5.4.4.1, SC): a fragment in the middle of a document,
//! with tables and grammars of its own.

use super::{Core, Item, Tables, Values};
use crate::exi::{
    bits::{Fault, Reader},
    built_in::{FRAGMENT_START, LEARNED},
    grammar::RuleId,
    read_tables::Names,
};

/// The self-contained elements that are open.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    /// Names as they are before the first event.
    fresh: Option<Box<Names>>,
    open: Vec<Scope>,
    /// How many elements are open in the innermost at most when it ends; 0 if none is open.
    pub(super) floor: usize,
    /// What the tables take that wait outside.
    pub(super) bytes: usize,
}

/// What waits for the end of an element.
#[derive(Debug)]
struct Scope {
    tables: Tables,
    floor: usize,
    /// The rule that goes on then.
    then: RuleId,
}

/// The rule between the end of a self-contained element and the next event; no grammar has it.
pub(super) const CLOSING: RuleId = LEARNED - 1;

impl Scopes {
    /// Names outside of the innermost.
    pub(super) fn outer(&self) -> Option<&Names> {
        self.open.last().map(|scope| &scope.tables.names)
    }
}

impl Core {
    /// Back to the document's own tables, wherever its reading was left.
    pub(super) fn leave_scopes(&mut self) {
        if let Some(outermost) = self.scopes.open.drain(..).next() {
            self.tables = outermost.tables;
        }
        (self.scopes.floor, self.scopes.bytes) = (0, 0);
    }

    /// SC and what must follow: SD and the element once more. All of it, or nothing has changed.
    pub(super) fn self_contained(&mut self, from: &mut Reader) -> Result<(), Fault> {
        if self.plan.is_some() {
            // EXI §5.4: a channel cannot be cut.
            return Err(Fault::Bad(&"a self-contained element in channels"));
        }
        from.align();
        self.sure(from)?;
        self.check()?;
        let fresh = match &self.scopes.fresh {
            Some(fresh) => Names::clone(fresh),
            None => Names::clone(self.scopes.fresh.insert(Names::new(&self.grammars)?.into())),
        };
        let inner = Tables::with(fresh, Values::new(&self.options));
        let outer = std::mem::replace(&mut self.tables, inner);
        let (before, depth) = ((self.rule, self.name, self.type_id), self.stack.len());
        match self.first_element(&outer.names, before.1, from) {
            Ok(item) => {
                self.scopes.bytes += outer.bytes();
                let floor = std::mem::replace(&mut self.scopes.floor, self.stack.len());
                self.scopes.open.push(Scope { tables: outer, floor, then: CLOSING });
                self.say(item)
            }
            Err(fault) => {
                self.tables = outer;
                (self.rule, self.name, self.type_id) = before;
                self.stack.truncate(depth);
                Err(fault)
            }
        }
    }

    /// SD and SE with the name that the element has outside.
    fn first_element(
        &mut self,
        outer: &Names,
        name: u32,
        from: &mut Reader,
    ) -> Result<Item, Fault> {
        self.rule = FRAGMENT_START;
        self.event(from)?;
        if !matches!(self.ahead.newest(), Item::StartDocument) {
            return Err(OTHER);
        }
        self.event(from)?;
        let Item::Start { name: found, prefix } = self.ahead.newest() else { return Err(OTHER) };
        let inner = &self.tables.names;
        let same = inner.local(found) == outer.local(name)
            && inner.uri(inner.get(found).uri) == outer.uri(outer.get(name).uri);
        if same { Ok(Item::SelfContained { name: found, prefix }) } else { Err(OTHER) }
    }

    /// The end of a self-contained element: EE and ED. All of it, or nothing has changed.
    #[inline(never)]
    pub(super) fn leave_scope(&mut self, from: &mut Reader) -> Result<(), Fault> {
        let frame = *self.stack.last().ok_or(OTHER)?;
        let rule = std::mem::replace(&mut self.rule, frame.rule);
        let ended = match self.event(from) {
            Ok(()) if !matches!(self.ahead.newest(), Item::EndDocument) => {
                Err(Fault::Bad(&"a self-contained element goes on behind its end"))
            }
            other => other,
        };
        if let Err(fault) = ended {
            self.rule = rule;
            return Err(fault);
        }
        from.align();
        self.stack.pop();
        let frame = self.stack.pop().ok_or(OTHER)?;
        self.scopes.open.last_mut().ok_or(OTHER)?.then = frame.rule;
        (self.rule, self.name, self.type_id) = (CLOSING, frame.name, frame.type_id);
        self.say(Item::End)
    }

    /// Back to the tables of outside, once the end was looked at.
    #[cold]
    pub(super) fn close_scope(&mut self) {
        let Some(scope) = self.scopes.open.pop() else { return };
        self.scopes.floor = scope.floor;
        self.scopes.bytes -= scope.tables.bytes();
        self.tables = scope.tables;
        self.rule = scope.then;
    }
}

const OTHER: Fault = Fault::Bad(&"a self-contained element begins with another one");
