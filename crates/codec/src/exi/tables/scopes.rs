//! Tables of self-contained elements (EXI §8.5.4.4.1, SC). Names keep their numbers; what of
//! them is in the tables begins anew inside, name by name as they are touched, and comes back at
//! the end.

use super::{NONE, Names, small};

/// The self-contained elements that are open.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    open: Vec<Scope>,
    /// How many there were so far.
    count: u32,
    /// In which of them each name and namespace was touched last.
    names: Vec<u32>,
    uris: Vec<u32>,
}

/// What one has changed.
#[derive(Debug)]
struct Scope {
    number: u32,
    uri_count: u32,
    names: Vec<OldName>,
    uris: Vec<OldUri>,
}

#[derive(Debug)]
struct OldName {
    name: u32,
    touched: u32,
    id: u32,
    values: u32,
    rule: u32,
}

#[derive(Debug)]
struct OldUri {
    uri: u32,
    touched: u32,
    id: u32,
    locals: u32,
    prefixes: super::Prefixes,
}

/// Bytes that a name, and a namespace, is counted with.
const NAME_BYTES: usize = 32;
/// See [`NAME_BYTES`].
const URI_BYTES: usize = 96;

/// Where `touched` says nothing, nothing was.
fn last(touched: &mut Vec<u32>, at: u32, now: u32) -> u32 {
    let at = at as usize;
    if at >= touched.len() {
        touched.resize(at + 1, 0);
    }
    std::mem::replace(&mut touched[at], now)
}

impl Names {
    /// Begins anew.
    pub(crate) fn open_scope(&mut self) {
        self.scopes.count += 1;
        let (number, uri_count) = (self.scopes.count, self.uri_count);
        self.scopes.open.push(Scope { number, uri_count, names: Vec::new(), uris: Vec::new() });
        self.uri_count = small(self.bases.len());
    }

    /// Back to what was.
    pub(crate) fn close_scope(&mut self) {
        let Some(scope) = self.scopes.open.pop() else { return };
        self.uri_count = scope.uri_count;
        self.bytes -= scope.names.len() * NAME_BYTES + scope.uris.len() * URI_BYTES;
        for old in scope.names {
            let name = &mut self.names[old.name as usize];
            (name.id, name.values, name.rule) = (old.id, old.values, old.rule);
            self.scopes.names[old.name as usize] = old.touched;
        }
        for old in scope.uris {
            let uri = &mut self.uris[old.uri as usize];
            (uri.id, uri.locals, uri.prefixes) = (old.id, old.locals, old.prefixes);
            self.scopes.uris[old.uri as usize] = old.touched;
        }
    }

    /// Before a name is used inside: it is as it was before the first event.
    pub(crate) fn touch(&mut self, name: u32) {
        let Some(scope) = self.scopes.open.last_mut() else { return };
        let uri = self.names[name as usize].uri;
        let touched = last(&mut self.scopes.names, name, scope.number);
        if touched != scope.number {
            let base = self.bases.get(uri as usize).copied().unwrap_or_default();
            self.bytes += NAME_BYTES;
            let found = &mut self.names[name as usize];
            let (id, values, rule) = (found.id, found.values, found.rule);
            scope.names.push(OldName { name, touched, id, values, rule });
            found.id = if name < self.initial_count { name - base } else { NONE };
            (found.values, found.rule) = (0, NONE);
        }
        self.touch_uri(uri);
    }

    /// The same for a namespace.
    pub(crate) fn touch_uri(&mut self, uri: u32) {
        let Some(scope) = self.scopes.open.last_mut() else { return };
        let touched = last(&mut self.scopes.uris, uri, scope.number);
        if touched == scope.number {
            return;
        }
        self.bytes += URI_BYTES;
        let at = uri as usize;
        let found = &mut self.uris[at];
        let own = found.prefixes.first(found.own_prefixes as usize);
        let prefixes = std::mem::replace(&mut found.prefixes, own);
        scope.uris.push(OldUri { uri, touched, id: found.id, locals: found.locals, prefixes });
        (found.id, found.locals) = match self.bases.get(at) {
            Some(base) => (uri, self.bases.get(at + 1).unwrap_or(&self.initial_count) - base),
            None => (NONE, 0),
        };
    }
}
