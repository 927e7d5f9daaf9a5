//! String tables as the decoder has them (EXI §7.3): only ever appended to, so that what an event
//! that turned out incomplete has added can be taken back.

use std::{collections::VecDeque, sync::Arc};

use super::{
    Options,
    bits::{Fault, Reader, width},
    codes::Codes,
    grammar::{self, Grammars},
    tables::{MAX_NAMESPACE_PREFIXES, NONE},
    text::{Span, Text},
};

#[derive(Clone, Debug, Default)]
struct Uri {
    text: String,
    /// Numbers of its names.
    locals: Vec<u32>,
    prefixes: Vec<String>,
}

/// A name in the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    /// Compact identifier of the namespace.
    pub(crate) uri: u32,
    /// Compact identifier in the namespace.
    pub(crate) id: u32,
    /// Whether it can be the name of an element or attribute.
    valid: bool,
    /// The rule of its global element grammar, or [`NONE`] if that was not asked for yet.
    pub(crate) rule: u32,
}

/// What was there before an event.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    bytes: usize,
    uris: usize,
    names: usize,
    /// Where the last prefix went.
    prefixes: usize,
}

/// Names (EXI §7.3.1, §7.3.2).
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// Have the names of the schema, which come first.
    codes: Arc<Codes>,
    uris: Vec<Uri>,
    names: Vec<Name>,
    /// The names behind those of the schema as text, and strings of earlier documents behind them.
    locals: Vec<String>,
    /// Bytes of all texts that are not of the schema.
    bytes: usize,
    buffer: Text,
    bases: Vec<u32>,
    /// Namespaces whose partition of prefixes grew, in order.
    grown: Vec<u32>,
    /// Names of the schema that have got a learned rule.
    ruled: Vec<u32>,
    /// What there was before the first event.
    initial: Mark,
}

impl Names {
    pub(crate) fn new(grammars: &Arc<Grammars>) -> Result<Self, Fault> {
        let mut tables = Self {
            codes: grammars.codes.get(grammars),
            uris: Vec::new(),
            names: Vec::new(),
            locals: Vec::new(),
            bytes: 0,
            buffer: Text::default(),
            bases: Vec::new(),
            grown: Vec::new(),
            ruled: Vec::new(),
            initial: Mark::default(),
        };
        let names: usize = grammars.uris.iter().map(|uri| uri.locals.len()).sum();
        tables.names.reserve(names + 16);
        for uri in &grammars.uris {
            let at = tables.add_uri(uri.uri.clone())?;
            for prefix in &uri.prefixes {
                tables.add_prefix(at, prefix.clone())?;
            }
            tables.bases.push(u32::try_from(tables.names.len()).unwrap_or(NONE));
            tables.uris[at as usize].locals.reserve(uri.locals.len());
            for _ in &uri.locals {
                tables.add_local(at, true)?;
            }
        }
        tables.initial = tables.mark();
        Ok(tables)
    }

    /// As before the first event; some memory is kept.
    pub(crate) fn reset(&mut self) {
        let added = self.names.len() - self.initial.names;
        for local in self.locals.iter_mut().take(added) {
            if local.capacity() > KEPT_FEW {
                *local = String::new();
            }
        }
        self.locals.truncate(KEPT_ITEMS);
        self.locals.shrink_to(KEPT_ITEMS);
        self.buffer.reset(KEPT_BYTES);
        self.roll_back(self.initial);
        for name in self.ruled.drain(..) {
            if let Some(name) = self.names.get_mut(name as usize) {
                name.rule = NONE;
            }
        }
        self.names.shrink_to(self.initial.names + KEPT_ITEMS);
        for uri in &mut self.uris {
            uri.locals.shrink_to(uri.locals.len() + KEPT_ITEMS);
            uri.prefixes.shrink_to(uri.prefixes.len() + KEPT_ITEMS);
        }
        self.uris.shrink_to(self.initial.uris + KEPT_ITEMS);
        self.grown.shrink_to(self.initial.prefixes + KEPT_ITEMS);
        self.ruled.shrink_to(KEPT_ITEMS);
    }

    /// The learned rule of an element.
    pub(crate) fn set_rule(&mut self, name: u32, rule: u32) {
        if (name as usize) < self.initial.names {
            self.ruled.push(name);
        }
        self.get_mut(name).rule = rule;
    }

    /// Bytes they take, by estimate.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
            + self.uris.len() * 96
            + self.names.len() * size_of::<Name>()
            + (self.names.len() - self.initial.names) * size_of::<String>()
            + self.grown.len() * 32
    }

    /// Reads so many characters to the buffer.
    fn text(&mut self, count: usize, from: &mut Reader) -> Result<&str, Fault> {
        self.buffer.truncate(0);
        from.chars(count, &mut self.buffer)?;
        self.bytes += self.buffer.len();
        Ok(std::str::from_utf8(self.buffer.since(0)).unwrap_or_default())
    }

    fn add_uri(&mut self, text: String) -> Result<u32, Fault> {
        self.uris.push(Uri { text, ..Uri::default() });
        u32::try_from(self.uris.len() - 1).map_err(|_| Fault::Limit(&"table_bytes"))
    }

    fn add_prefix(&mut self, uri: u32, text: String) -> Result<u32, Fault> {
        let prefixes = &mut self.uris[uri as usize].prefixes;
        prefixes.push(text);
        self.grown.push(uri);
        u32::try_from(prefixes.len() - 1).map_err(|_| Fault::Limit(&"table_bytes"))
    }

    fn add_local(&mut self, uri: u32, valid: bool) -> Result<u32, Fault> {
        let number = u32::try_from(self.names.len()).map_err(|_| Fault::Limit(&"table_bytes"))?;
        let locals = &mut self.uris[uri as usize].locals;
        let id = u32::try_from(locals.len()).map_err(|_| Fault::Limit(&"table_bytes"))?;
        locals.push(number);
        self.names.push(Name { uri, id, valid, rule: NONE });
        Ok(number)
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            bytes: self.bytes,
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
        self.bytes = mark.bytes;
    }

    /// The number of a name of the schema.
    #[inline]
    pub(crate) fn initial(&self, name: grammar::QName) -> u32 {
        self.bases[name.uri as usize] + name.local
    }

    #[inline]
    pub(crate) fn get(&self, name: u32) -> &Name {
        &self.names[name as usize]
    }

    fn get_mut(&mut self, name: u32) -> &mut Name {
        &mut self.names[name as usize]
    }

    pub(crate) fn count(&self) -> usize {
        self.names.len()
    }

    #[inline]
    pub(crate) fn local(&self, name: u32) -> &str {
        self.words(name).1
    }

    /// Namespace and local name.
    #[inline]
    pub(crate) fn words(&self, name: u32) -> (&str, &str) {
        self.codes.words(name).unwrap_or_else(|| self.added_words(name))
    }

    /// The same of a name that the stream has added.
    #[inline]
    fn added_words(&self, name: u32) -> (&str, &str) {
        let added = (name as usize).checked_sub(self.initial.names);
        let local = added.and_then(|added| self.locals.get(added));
        (self.uri(self.get(name).uri), local.map_or("", String::as_str))
    }

    #[inline]
    pub(crate) fn uri(&self, uri: u32) -> &str {
        &self.uris[uri as usize].text
    }

    /// A prefix by its compact identifier.
    pub(crate) fn prefix(&self, uri: u32, prefix: u32) -> &str {
        let prefixes = &self.uris[uri as usize].prefixes;
        prefixes.get(prefix as usize).map_or("", String::as_str)
    }

    /// A name of the schema (of the first `names`) by a prefix that any declaration has bound and a
    /// local name.
    pub(crate) fn by_prefix(&self, prefix: &str, local: &str, names: u32) -> Option<u32> {
        let bound = |uri: &Uri| uri.prefixes.iter().any(|text| text == prefix);
        let uri = self.uris.iter().rposition(bound)?;
        let locals = self.uris[uri].locals.iter().copied().filter(|&name| name < names);
        locals.into_iter().find(|&name| self.local(name) == local)
    }

    /// URI (EXI §7.3.1).
    pub(crate) fn read_uri(&mut self, from: &mut Reader) -> Result<u32, Fault> {
        match from.bits(width(self.uris.len() + 1)) {
            0 => {
                let length = from.length()?;
                let text = self.text(length, from)?.to_owned();
                self.add_uri(text)
            }
            id if id as usize <= self.uris.len() => Ok(id - 1),
            _ => Err(Fault::Bad(&"no namespace has this number")),
        }
    }

    /// Local name of an element or attribute (EXI §7.3.2).
    pub(crate) fn read_local(&mut self, uri: u32, from: &mut Reader) -> Result<u32, Fault> {
        let name = self.read_any_local(uri, from)?;
        if self.get(name).valid { Ok(name) } else { Err(NO_NAME) }
    }

    fn read_any_local(&mut self, uri: u32, from: &mut Reader) -> Result<u32, Fault> {
        let length = from.length()?;
        if length == 0 {
            let locals = &self.uris[uri as usize].locals;
            let id = from.bits(width(locals.len()));
            let name = locals.get(id as usize).copied();
            return name.ok_or(Fault::Bad(&"no local name has this number"));
        }
        let added = self.names.len() - self.initial.names;
        // One of an earlier document has the memory.
        let mut local = self.locals.get_mut(added).map(std::mem::take).unwrap_or_default();
        local.clear();
        local.push_str(self.text(length - 1, from)?);
        let valid = is_plain_name(local.as_bytes()) || crate::xml::is_nc_name(&local);
        match self.locals.get_mut(added) {
            Some(place) => *place = local,
            None => self.locals.push(local),
        }
        self.add_local(uri, valid)
    }

    /// Namespace and local name (EXI §7.1.7), no prefix.
    pub(crate) fn read_name(&mut self, from: &mut Reader) -> Result<u32, Fault> {
        let uri = self.read_uri(from)?;
        self.read_local(uri, from)
    }

    /// The value of `xsi:type`: in no namespace it is what the document says, name or not, since
    /// encoders write a name there whose prefix means nothing.
    pub(crate) fn read_type(&mut self, from: &mut Reader) -> Result<u32, Fault> {
        let uri = self.read_uri(from)?;
        if uri == 0 { self.read_any_local(uri, from) } else { self.read_local(uri, from) }
    }

    /// Prefix of a name: its compact identifier in the namespace.
    pub(crate) fn read_prefix(&self, uri: u32, from: &mut Reader) -> Result<u32, Fault> {
        let prefixes = self.uris[uri as usize].prefixes.len();
        let id = from.bits(width(prefixes));
        if id as usize >= prefixes.max(1) {
            return Err(Fault::Bad(&"no prefix has this number"));
        }
        Ok(if prefixes == 0 { NONE } else { id })
    }

    /// NS: namespace and prefix.
    pub(crate) fn read_declaration(&mut self, from: &mut Reader) -> Result<(u32, u32), Fault> {
        let uri = self.read_uri(from)?;
        let prefixes = self.uris[uri as usize].prefixes.len();
        let prefix = match from.bits(width(prefixes + 1)) {
            0 => {
                if prefixes >= MAX_NAMESPACE_PREFIXES {
                    return Err(Fault::Limit(&"16384 prefixes of a namespace"));
                }
                let length = from.length()?;
                let text = self.text(length, from)?.to_owned();
                let prefix = self.add_prefix(uri, text)?;
                let text = self.prefix(uri, prefix);
                if !text.is_empty() && !crate::xml::is_nc_name(text) {
                    return Err(Fault::Bad(&"a prefix that is not a name"));
                }
                prefix
            }
            id if id as usize <= prefixes => id - 1,
            _ => return Err(Fault::Bad(&"no prefix has this number")),
        };
        Ok((uri, prefix))
    }
}

/// Bytes that a buffer keeps from one document to the next: documents that are larger take long
/// enough to pay for their memory.
pub(crate) const KEPT_BYTES: usize = 4 << 20;
/// Likewise entries of a table whose entries may be larger.
pub(crate) const KEPT_ITEMS: usize = 4096;
/// Likewise entries of a table of which there are many.
pub(crate) const KEPT_FEW: usize = 64;

const NO_NAME: Fault = Fault::Bad(&"a local name that is not a name");

/// Whether it is a name for sure, as nearly all are.
fn is_plain_name(text: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    text.first().is_some_and(|first| first.is_ascii_alphabetic()) && text.iter().all(plain)
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

/// The values of one name. Most names have one, which takes no memory of its own.
#[derive(Debug)]
struct Locals {
    /// The number of the only value that is in the table, or [`NONE`].
    only: u32,
    /// Numbers of those that are in the table, if they are more.
    more: VecDeque<u32>,
    /// How many went before them: the oldest go first, and their local identifiers stay unused
    /// (EXI §7.3.3).
    gone: u32,
}

impl Default for Locals {
    fn default() -> Self {
        Self { only: NONE, more: VecDeque::new(), gone: 0 }
    }
}

impl Locals {
    #[inline]
    fn count(&self) -> usize {
        self.gone as usize + self.more.len() + usize::from(self.only != NONE)
    }

    #[inline]
    fn get(&self, id: u32) -> Option<u32> {
        let at = id.checked_sub(self.gone)?;
        if self.only == NONE {
            return self.more.get(at as usize).copied();
        }
        (at == 0).then_some(self.only)
    }

    #[inline]
    fn push_back(&mut self, value: u32) {
        if self.more.is_empty() && self.only == NONE {
            self.only = value;
        } else {
            self.spread();
            self.more.push_back(value);
        }
    }

    fn push_front(&mut self, value: u32) {
        self.spread();
        self.more.push_front(value);
    }

    #[inline]
    fn spread(&mut self) {
        if self.only != NONE {
            self.more.push_back(std::mem::replace(&mut self.only, NONE));
        }
    }

    fn pop_back(&mut self) {
        if std::mem::replace(&mut self.only, NONE) == NONE {
            self.more.pop_back();
        }
    }

    fn reset(&mut self) {
        (self.only, self.gone) = (NONE, 0);
        self.more.clear();
        if self.more.capacity() > KEPT_FEW {
            self.more = VecDeque::new();
        }
    }

    fn pop_front(&mut self) {
        if std::mem::replace(&mut self.only, NONE) == NONE {
            self.more.pop_front();
        }
    }
}

/// The value partitions (EXI §7.3.3).
#[derive(Debug)]
pub(crate) struct Values {
    /// Of all values.
    pub(crate) text: Text,
    /// What was looked at of the same, for who wants strings: a value is looked at once.
    strings: String,
    /// Where the values are in it, and whose they are: apart, since where they are is asked for in
    /// no order, and should stay in the cache.
    spans: Vec<Span>,
    owners: Vec<u32>,
    /// Values of each name by local identifier.
    locals: Vec<Locals>,
    /// How many of them this document has come to; those behind are kept for their memory.
    named: usize,
    /// Of a bounded table: what was pushed out since the mark, with its place.
    replaced: Vec<(u32, Value)>,
    local_count: usize,
    /// Bytes of text that is not of a value in the table.
    dead: usize,
    next: u32,
    capacity: u32,
    max_length: usize,
}

/// There is room for so many values, and names that have some, from the first on.
const FIRST: usize = 32;

const NO_VALUE: Fault = Fault::Bad(&"no value has this number");

impl Values {
    pub(crate) fn new(options: &Options) -> Self {
        let max = options.value_max_length.map_or(usize::MAX, |max| max as usize);
        Self {
            text: Text::default(),
            strings: String::new(),
            spans: Vec::with_capacity(FIRST),
            owners: Vec::with_capacity(FIRST),
            locals: Vec::with_capacity(FIRST),
            named: 0,
            replaced: Vec::new(),
            local_count: 0,
            dead: 0,
            next: 0,
            capacity: options.value_partition_capacity.unwrap_or(NONE),
            max_length: max,
        }
    }

    /// Bytes the table takes, by estimate.
    pub(crate) fn bytes(&self) -> usize {
        (self.text.len() - self.dead)
            + self.strings.len()
            + self.spans.len() * (size_of::<Span>() + size_of::<u32>())
            + self.local_count * 4
            + self.named * size_of::<Locals>()
    }

    /// As before the first event; some memory is kept.
    pub(crate) fn reset(&mut self) {
        self.text.reset(KEPT_BYTES);
        self.strings.clear();
        self.strings.shrink_to(KEPT_BYTES);
        self.spans.clear();
        self.spans.shrink_to(KEPT_BYTES / size_of::<Span>());
        self.owners.clear();
        self.owners.shrink_to(KEPT_BYTES / size_of::<Span>());
        self.locals.iter_mut().take(self.named).for_each(Locals::reset);
        self.locals.truncate(KEPT_ITEMS);
        self.locals.shrink_to(KEPT_ITEMS);
        self.replaced.clear();
        (self.named, self.local_count, self.dead, self.next) = (0, 0, 0, 0);
    }

    /// Makes a string of what was read since the last time.
    #[cold]
    pub(crate) fn look(&mut self) {
        let new = self.text.since(self.strings.len());
        self.strings.push_str(std::str::from_utf8(new).unwrap_or_default());
    }

    /// Whether there is a string that ends there.
    #[inline]
    pub(crate) fn was_looked_at(&self, span: Span) -> bool {
        span.range().end <= self.strings.len()
    }

    #[inline]
    pub(crate) fn str(&self, span: Span) -> &str {
        if self.was_looked_at(span) {
            return self.strings.get(span.range()).unwrap_or_default();
        }
        std::str::from_utf8(self.text.get(span)).unwrap_or_default()
    }

    /// Bytes of text that waits to be dropped.
    pub(crate) fn dead_bytes(&self) -> usize {
        self.dead
    }

    /// Nothing so far will be taken back.
    #[inline]
    pub(crate) fn forget(&mut self) {
        self.replaced.clear();
    }

    #[inline]
    pub(crate) fn mark(&mut self) -> ValueMark {
        self.forget();
        ValueMark {
            text: self.text.len(),
            values: self.spans.len(),
            next: self.next,
            dead: self.dead,
        }
    }

    /// Takes back what came after `mark`.
    pub(crate) fn roll_back(&mut self, mark: ValueMark) {
        let mut replaced = std::mem::take(&mut self.replaced);
        for (at, value) in replaced.drain(..).rev() {
            let new = self.exchange(at, value);
            self.locals[new.name as usize].pop_back();
            let locals = &mut self.locals[value.name as usize];
            locals.push_front(at);
            locals.gone -= 1;
        }
        self.replaced = replaced;
        self.spans.truncate(mark.values);
        for name in self.owners.drain(mark.values..).rev() {
            self.locals[name as usize].pop_back();
            self.local_count -= 1;
        }
        self.text.truncate(mark.text);
        if self.strings.len() > mark.text {
            self.strings.clear();
        }
        (self.next, self.dead) = (mark.next, mark.dead);
    }

    /// A string value of `name`; `chars` reads so many characters of new text, and says whether XML
    /// has them as they are.
    #[inline]
    pub(crate) fn read(
        &mut self,
        name: u32,
        from: &mut Reader,
        chars: impl FnOnce(usize, &mut Reader, &mut Text) -> Result<bool, Fault>,
    ) -> Result<Span, Fault> {
        match from.length()? {
            0 => {
                let locals = self.locals.get(name as usize).ok_or(NO_VALUE)?;
                let at = locals.get(from.bits(width(locals.count()))).ok_or(NO_VALUE)?;
                self.spans.get(at as usize).copied().ok_or(NO_VALUE)
            }
            1 => {
                let at = from.bits(width(self.spans.len()));
                self.spans.get(at as usize).copied().ok_or(NO_VALUE)
            }
            more => {
                let length = more - 2;
                let begin = self.text.len();
                let plain = match chars(length, from, &mut self.text) {
                    Ok(plain) => plain,
                    Err(fault) => {
                        self.text.truncate(begin);
                        return Err(fault);
                    }
                };
                let text = Span::new(begin, self.text.len())?.plain(plain);
                if length > 0 && length <= self.max_length && self.capacity > 0 {
                    self.enter(Value { text, name })?;
                } else {
                    self.dead += text.len();
                }
                Ok(text)
            }
        }
    }

    #[inline]
    fn enter(&mut self, value: Value) -> Result<(), Fault> {
        let full = self.spans.len() >= self.capacity as usize;
        let at = if full {
            self.next
        } else {
            u32::try_from(self.spans.len()).map_err(|_| Fault::Limit(&"table_bytes"))?
        };
        let name = value.name as usize;
        if name >= self.named {
            self.named = name + 1;
            if name >= self.locals.len() {
                self.locals.resize_with(name + 1, Locals::default);
            }
        }
        let locals = &mut self.locals[name];
        if locals.count() >= NONE as usize {
            return Err(Fault::Limit(&"table_bytes"));
        }
        locals.push_back(at);
        if full {
            self.replace(at, value);
        } else {
            self.spans.push(value.text);
            self.owners.push(value.name);
            self.local_count += 1;
        }
        Ok(())
    }

    /// Puts a value in the place of another, which is the answer.
    fn exchange(&mut self, at: u32, new: Value) -> Value {
        let (text, name) = (&mut self.spans[at as usize], &mut self.owners[at as usize]);
        Value { text: std::mem::replace(text, new.text), name: std::mem::replace(name, new.name) }
    }

    /// The oldest goes, and its local identifier stays unused (EXI §7.3.3).
    fn replace(&mut self, at: u32, value: Value) {
        let old = self.exchange(at, value);
        let locals = &mut self.locals[old.name as usize];
        locals.pop_front();
        locals.gone += 1;
        self.replaced.push((at, old));
        self.next = (at + 1) % self.capacity;
        self.dead += old.text.len();
    }

    /// Drops text that is not in the table any more. Spans handed out before are void.
    pub(crate) fn compact(&mut self) -> Result<(), Fault> {
        if self.dead < 4096 || self.dead * 2 < self.text.len() {
            return Ok(());
        }
        let mut kept = Text::default();
        kept.room(self.text.len().saturating_sub(self.dead));
        for span in &mut self.spans {
            let begin = kept.len();
            kept.push(self.text.get(*span));
            *span = Span::new(begin, kept.len())?.plain(span.is_plain());
        }
        self.text = kept;
        self.strings.clear();
        self.dead = 0;
        Ok(())
    }
}
