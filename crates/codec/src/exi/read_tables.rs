//! String tables as the decoder has them (EXI §7.3): only ever appended to, so that what an event
//! that turned out incomplete has added can be taken back.

use super::{
    Options,
    bits::{Fault, Reader, width},
    grammar::Grammars,
    tables::{MAX_PREFIXES, NONE},
};

/// Begin and end in a text, in one word, since it is moved about a lot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span(u64);

impl Span {
    #[inline]
    pub(crate) fn new(begin: u32, end: u32) -> Self {
        Self(u64::from(begin) << 32 | u64::from(end))
    }

    #[inline]
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        (self.0 >> 32) as usize..(self.0 & 0xffff_ffff) as usize
    }
}

/// Text of one kind of table, checked once and looked at often.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text {
    text: String,
    buffer: Vec<u8>,
}

impl Text {
    #[inline]
    pub(crate) fn get(&self, span: Span) -> &[u8] {
        self.text.as_bytes().get(span.range()).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn str(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or_default()
    }

    fn len(&self) -> usize {
        self.text.len()
    }

    /// Appends what `read` reads.
    #[inline]
    fn push(
        &mut self,
        read: impl FnOnce(&mut Vec<u8>) -> Result<(), Fault>,
    ) -> Result<Span, Fault> {
        self.buffer.clear();
        read(&mut self.buffer)?;
        let begin = self.text.len();
        self.text.push_str(std::str::from_utf8(&self.buffer).unwrap_or_default());
        match (u32::try_from(begin), u32::try_from(self.text.len())) {
            (Ok(begin), Ok(end)) => Ok(Span::new(begin, end)),
            _ => Err(Fault::Limit("table_bytes")),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Uri {
    text: Span,
    /// Numbers of its names.
    locals: Vec<u32>,
    prefixes: Vec<Span>,
}

/// A name in the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    /// Compact identifier of the namespace.
    pub(crate) uri: u32,
    /// Compact identifier in the namespace.
    pub(crate) id: u32,
    /// Local name.
    pub(crate) local: Span,
    /// The rule of its global element grammar, or [`NONE`] if that was not asked for yet.
    pub(crate) rule: u32,
}

/// What was there before an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    text: usize,
    uris: usize,
    names: usize,
    /// Where the last prefix went.
    prefixes: usize,
}

/// Names (EXI §7.3.1, §7.3.2).
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    text: Text,
    uris: Vec<Uri>,
    names: Vec<Name>,
    bases: Vec<u32>,
    /// Namespaces whose partition of prefixes grew, in order.
    grown: Vec<u32>,
}

impl Names {
    pub(crate) fn new(grammars: &Grammars) -> Result<Self, Fault> {
        let mut tables = Self::default();
        for uri in &grammars.uris {
            let at = tables.add_uri(|to| {
                to.extend_from_slice(uri.uri.as_bytes());
                Ok(())
            })?;
            for prefix in &uri.prefixes {
                tables.add_prefix(at, |to| {
                    to.extend_from_slice(prefix.as_bytes());
                    Ok(())
                })?;
            }
            tables.bases.push(u32::try_from(tables.names.len()).unwrap_or(NONE));
            for local in &uri.locals {
                tables.add_local(at, |to| {
                    to.extend_from_slice(local.as_bytes());
                    Ok(())
                })?;
            }
        }
        Ok(tables)
    }

    /// Bytes they take, by estimate.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.uris.len() * 96 + self.names.len() * 28 + self.grown.len() * 12
    }

    fn add_uri(
        &mut self,
        read: impl FnOnce(&mut Vec<u8>) -> Result<(), Fault>,
    ) -> Result<u32, Fault> {
        let text = self.text.push(read)?;
        self.uris.push(Uri { text, ..Uri::default() });
        u32::try_from(self.uris.len() - 1).map_err(|_| Fault::Limit("table_bytes"))
    }

    fn add_prefix(
        &mut self,
        uri: u32,
        read: impl FnOnce(&mut Vec<u8>) -> Result<(), Fault>,
    ) -> Result<u32, Fault> {
        let text = self.text.push(read)?;
        let prefixes = &mut self.uris[uri as usize].prefixes;
        prefixes.push(text);
        self.grown.push(uri);
        u32::try_from(prefixes.len() - 1).map_err(|_| Fault::Limit("table_bytes"))
    }

    fn add_local(
        &mut self,
        uri: u32,
        read: impl FnOnce(&mut Vec<u8>) -> Result<(), Fault>,
    ) -> Result<u32, Fault> {
        let local = self.text.push(read)?;
        let number = u32::try_from(self.names.len()).map_err(|_| Fault::Limit("table_bytes"))?;
        let locals = &mut self.uris[uri as usize].locals;
        let id = u32::try_from(locals.len()).map_err(|_| Fault::Limit("table_bytes"))?;
        locals.push(number);
        self.names.push(Name { uri, id, local, rule: NONE });
        Ok(number)
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            text: self.text.len(),
            uris: self.uris.len(),
            names: self.names.len(),
            prefixes: self.grown.len(),
        }
    }

    /// Takes back what came after `mark`.
    pub(crate) fn roll_back(&mut self, mark: Mark) {
        for uri in self.grown.drain(mark.prefixes..).rev() {
            self.uris[uri as usize].prefixes.pop();
        }
        for name in self.names.drain(mark.names..).rev() {
            self.uris[name.uri as usize].locals.pop();
        }
        self.uris.truncate(mark.uris);
        self.text.text.truncate(mark.text);
    }

    /// The number of a name of the schema.
    #[inline]
    pub(crate) fn initial(&self, name: super::grammar::QName) -> u32 {
        self.bases[name.uri as usize] + name.local
    }

    #[inline]
    pub(crate) fn get(&self, name: u32) -> &Name {
        &self.names[name as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, name: u32) -> &mut Name {
        &mut self.names[name as usize]
    }

    pub(crate) fn count(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn local(&self, name: u32) -> &str {
        self.text.str(self.get(name).local)
    }

    pub(crate) fn uri(&self, uri: u32) -> &str {
        self.text.str(self.uris[uri as usize].text)
    }

    /// A prefix by its compact identifier.
    pub(crate) fn prefix(&self, uri: u32, prefix: u32) -> &str {
        let prefixes = &self.uris[uri as usize].prefixes;
        prefixes.get(prefix as usize).map_or("", |&span| self.text.str(span))
    }

    /// A name of the schema (of the first `names`) by a prefix that any declaration has bound and a
    /// local name.
    pub(crate) fn by_prefix(&self, prefix: &str, local: &str, names: u32) -> Option<u32> {
        let bound = |uri: &Uri| uri.prefixes.iter().any(|&span| self.text.str(span) == prefix);
        let uri = self.uris.iter().rposition(bound)?;
        let locals = self.uris[uri].locals.iter().copied().filter(|&name| name < names);
        locals.into_iter().find(|&name| self.local(name) == local)
    }

    /// URI (EXI §7.3.1).
    pub(crate) fn read_uri(&mut self, from: &mut Reader) -> Result<u32, Fault> {
        match from.bits(width(self.uris.len() + 1)) {
            0 => self.add_uri(|to| from.string(to)),
            id if id as usize <= self.uris.len() => Ok(id - 1),
            _ => Err(Fault::Bad("no namespace has this number")),
        }
    }

    /// Local name (EXI §7.3.2).
    pub(crate) fn read_local(&mut self, uri: u32, from: &mut Reader) -> Result<u32, Fault> {
        let length = from.length()?;
        if length == 0 {
            let locals = &self.uris[uri as usize].locals;
            let id = from.bits(width(locals.len()));
            let name = locals.get(id as usize).copied();
            return name.ok_or(Fault::Bad("no local name has this number"));
        }
        let name = self.add_local(uri, |to| from.chars(length - 1, to))?;
        if crate::xml::is_nc_name(self.local(name)) {
            Ok(name)
        } else {
            Err(Fault::Bad("a local name that is not a name"))
        }
    }

    /// Namespace and local name (EXI §7.1.7), no prefix.
    pub(crate) fn read_name(&mut self, from: &mut Reader) -> Result<u32, Fault> {
        let uri = self.read_uri(from)?;
        self.read_local(uri, from)
    }

    /// Prefix of a name: its compact identifier in the namespace.
    pub(crate) fn read_prefix(&self, uri: u32, from: &mut Reader) -> Result<u32, Fault> {
        let prefixes = self.uris[uri as usize].prefixes.len();
        let id = from.bits(width(prefixes));
        if id as usize >= prefixes.max(1) {
            return Err(Fault::Bad("no prefix has this number"));
        }
        Ok(if prefixes == 0 { NONE } else { id })
    }

    /// NS: namespace and prefix.
    pub(crate) fn read_declaration(&mut self, from: &mut Reader) -> Result<(u32, u32), Fault> {
        let uri = self.read_uri(from)?;
        let prefixes = self.uris[uri as usize].prefixes.len();
        let prefix = match from.bits(width(prefixes + 1)) {
            0 => {
                if prefixes >= MAX_PREFIXES {
                    return Err(Fault::Limit("1024 prefixes of a namespace"));
                }
                let prefix = self.add_prefix(uri, |to| from.string(to))?;
                let text = self.prefix(uri, prefix);
                if !text.is_empty() && !crate::xml::is_nc_name(text) {
                    return Err(Fault::Bad("a prefix that is not a name"));
                }
                prefix
            }
            id if id as usize <= prefixes => id - 1,
            _ => return Err(Fault::Bad("no prefix has this number")),
        };
        Ok((uri, prefix))
    }
}

/// A value in the table.
#[derive(Clone, Copy, Debug)]
struct Value {
    text: Span,
    name: u32,
}

/// What was there before an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueMark {
    text: usize,
    values: usize,
    next: u32,
    dead: usize,
}

/// The value partitions (EXI §7.3.3).
#[derive(Debug)]
pub(crate) struct Values {
    /// Of all values.
    pub(crate) text: Text,
    values: Vec<Value>,
    /// Values of each name by local identifier; [`NONE`] for those pushed out.
    locals: Vec<Vec<u32>>,
    /// Of a bounded table: what was pushed out since the mark, with its place.
    replaced: Vec<(u32, Value, u32)>,
    /// Local identifiers of values, kept only for a bounded table.
    local_ids: Vec<u32>,
    local_count: usize,
    dead: usize,
    next: u32,
    capacity: u32,
    max_length: usize,
}

impl Values {
    pub(crate) fn new(options: &Options) -> Self {
        let max = options.value_max_length.map_or(usize::MAX, |max| max as usize);
        Self {
            text: Text::default(),
            values: Vec::new(),
            locals: Vec::new(),
            replaced: Vec::new(),
            local_ids: Vec::new(),
            local_count: 0,
            dead: 0,
            next: 0,
            capacity: options.value_partition_capacity.unwrap_or(NONE),
            max_length: max,
        }
    }

    /// Bytes they take, by estimate.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
            + self.values.len() * size_of::<Value>()
            + self.local_count * 4
            + self.locals.len() * size_of::<Vec<u32>>()
    }

    /// Nothing so far will be taken back.
    #[inline]
    pub(crate) fn forget(&mut self) {
        self.replaced.clear();
    }

    pub(crate) fn mark(&mut self) -> ValueMark {
        self.forget();
        ValueMark {
            text: self.text.len(),
            values: self.values.len(),
            next: self.next,
            dead: self.dead,
        }
    }

    /// Takes back what came after `mark`.
    pub(crate) fn roll_back(&mut self, mark: ValueMark) {
        for (at, value, local) in self.replaced.drain(..).rev() {
            let new = std::mem::replace(&mut self.values[at as usize], value);
            if let Some(locals) = self.locals.get_mut(new.name as usize) {
                locals.pop();
                self.local_count -= 1;
            }
            self.local_ids[at as usize] = local;
            if let Some(place) =
                self.locals.get_mut(value.name as usize).and_then(|l| l.get_mut(local as usize))
            {
                *place = at;
            }
        }
        for value in self.values.drain(mark.values..).rev() {
            if let Some(locals) = self.locals.get_mut(value.name as usize) {
                locals.pop();
                self.local_count -= 1;
            }
        }
        self.local_ids.truncate(self.values.len());
        self.text.text.truncate(mark.text);
        (self.next, self.dead) = (mark.next, mark.dead);
    }

    /// A string value of `name`; `chars` reads so many characters of new text.
    #[inline]
    pub(crate) fn read(
        &mut self,
        name: u32,
        from: &mut Reader,
        chars: impl FnOnce(usize, &mut Reader, &mut Vec<u8>) -> Result<(), Fault>,
    ) -> Result<Span, Fault> {
        match from.length()? {
            0 => {
                let locals = self.locals.get(name as usize).map_or(&[][..], |locals| locals);
                let id = from.bits(width(locals.len()));
                let at = locals.get(id as usize).copied().unwrap_or(NONE);
                let value = self.values.get(at as usize);
                value.map(|value| value.text).ok_or(Fault::Bad("no local value has this number"))
            }
            1 => {
                let at = from.bits(width(self.values.len()));
                let value = self.values.get(at as usize);
                value.map(|value| value.text).ok_or(Fault::Bad("no value has this number"))
            }
            more => {
                let length = more - 2;
                let span = self.text.push(|to| chars(length, from, to))?;
                if length > 0 && length <= self.max_length && self.capacity > 0 {
                    self.enter(Value { text: span, name })?;
                } else {
                    self.dead += span.range().len();
                }
                Ok(span)
            }
        }
    }

    fn enter(&mut self, value: Value) -> Result<(), Fault> {
        let full = self.values.len() >= self.capacity as usize;
        let at = if full {
            self.next
        } else {
            u32::try_from(self.values.len()).map_err(|_| Fault::Limit("table_bytes"))?
        };
        let name = value.name as usize;
        if name >= self.locals.len() {
            self.locals.resize_with(name + 1, Vec::new);
        }
        let locals = &mut self.locals[name];
        let local = u32::try_from(locals.len()).map_err(|_| Fault::Limit("table_bytes"))?;
        locals.push(at);
        self.local_count += 1;
        if !full {
            self.values.push(value);
            if self.capacity != NONE {
                self.local_ids.push(local);
            }
            return Ok(());
        }
        // The oldest goes, and its local identifier stays unused (EXI §7.3.3).
        let old = std::mem::replace(&mut self.values[at as usize], value);
        let old_local = std::mem::replace(&mut self.local_ids[at as usize], local);
        let locals = self.locals.get_mut(old.name as usize);
        if let Some(place) = locals.and_then(|locals| locals.get_mut(old_local as usize)) {
            *place = NONE;
        }
        self.replaced.push((at, old, old_local));
        self.next = (at + 1) % self.capacity;
        self.dead += old.text.range().len();
        Ok(())
    }

    /// Drops text that is not in the table any more. Spans handed out before are void.
    pub(crate) fn compact(&mut self) {
        if self.dead < 4096 || self.dead * 2 < self.text.len() {
            return;
        }
        let mut kept = String::with_capacity(self.text.len().saturating_sub(self.dead));
        for value in &mut self.values {
            let begin = u32::try_from(kept.len()).unwrap_or(NONE);
            kept.push_str(self.text.str(value.text));
            value.text = Span::new(begin, u32::try_from(kept.len()).unwrap_or(NONE));
        }
        self.text.text = kept;
        self.dead = 0;
    }
}
