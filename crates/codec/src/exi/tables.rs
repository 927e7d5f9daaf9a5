//! String tables as the encoder has them (EXI §7.3): names with their compact identifiers, and
//! values by hash.

mod scopes;

use std::collections::BTreeMap;

use super::{
    Options,
    bits::{Fault, Writer, width},
    built_in::LEARNED,
    grammar::Grammars,
    index::{Index, hash, hash_and_ascii},
};

/// No number.
pub(crate) const NONE: u32 = u32::MAX;

/// Most prefixes in scope where a document is read: they are looked through one by one.
pub(crate) const MAX_PREFIXES: usize = 1024;
/// Most prefixes that a document declares for one namespace: there are programs that take a new one
/// for each element.
pub(crate) const MAX_NAMESPACE_PREFIXES: usize = 1 << 14;
/// Prefixes of a namespace that are looked through one by one; of more there is a table.
const FEW_PREFIXES: usize = 8;

/// The prefixes of a namespace, in the order of their numbers.
#[derive(Clone, Debug, Default)]
struct Prefixes {
    list: Vec<Box<str>>,
    /// Numbers of those behind the first few.
    further: BTreeMap<Box<str>, u32>,
}

impl Prefixes {
    fn len(&self) -> usize {
        self.list.len()
    }

    fn find(&self, prefix: &str) -> Option<usize> {
        let few = self.list.iter().take(FEW_PREFIXES).position(|known| &**known == prefix);
        few.or_else(|| self.further.get(prefix).map(|at| *at as usize))
    }

    fn push(&mut self, prefix: &str) {
        if self.len() >= FEW_PREFIXES {
            self.further.insert(prefix.into(), small(self.len()));
        }
        self.list.push(prefix.into());
    }

    /// Drops those behind the first `count`, and says how many bytes they were counted with.
    fn truncate(&mut self, count: usize) -> usize {
        let dropped = self.list.get(count..).unwrap_or_default();
        let bytes = dropped.iter().map(|prefix| prefix_bytes(prefix)).sum();
        if bytes > 0 {
            *self = self.first(count);
        }
        bytes
    }

    /// The first `count` of them alone.
    fn first(&self, count: usize) -> Self {
        let mut some = Self::default();
        self.list.iter().take(count).for_each(|prefix| some.push(prefix));
        some
    }
}

/// Bytes that a declared prefix is counted with.
fn prefix_bytes(prefix: &str) -> usize {
    2 * (24 + prefix.len())
}

/// There is room for so many names and values of the document from the first on.
const FIRST_NAMES: usize = 64;

/// A namespace, in the URI partition or not yet.
#[derive(Debug)]
struct Uri {
    text: Box<str>,
    /// Compact identifier.
    id: u32,
    /// Local names in its partition.
    locals: u32,
    prefixes: Prefixes,
    /// How many prefixes it has from the start.
    own_prefixes: u32,
}

/// An expanded name that the document or the schema has.
#[derive(Debug)]
pub(crate) struct Name {
    /// Index of its namespace.
    uri: u32,
    /// Where its local name is in [`Names::text`].
    begin: u32,
    end: u32,
    /// Compact identifier, if it is in the partition of its namespace.
    id: u32,
    /// Values in its partition.
    values: u32,
    /// The rule of its global element grammar, or [`NONE`] if that was not asked for yet.
    pub(crate) rule: u32,
}

/// Names: those of the schema first, at [`Names::initial`].
#[derive(Debug, Default)]
pub(crate) struct Names {
    uris: Vec<Uri>,
    names: Vec<Name>,
    /// Local names.
    text: String,
    by_text: Index,
    by_uri: Index,
    /// First name of each initial namespace.
    bases: Vec<u32>,
    initial_count: u32,
    /// Entries of the URI partition.
    uri_count: u32,
    /// Names of which the document has changed something: see [`Names::restart`].
    changed: Vec<u32>,
    /// Bytes, by estimate.
    pub(crate) bytes: usize,
    scopes: scopes::Scopes,
}

fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(NONE)
}

impl Names {
    pub(crate) fn new(grammars: &Grammars) -> Self {
        let count: usize = grammars.uris.iter().map(|uri| uri.locals.len()).sum();
        let mut tables = Self {
            uris: Vec::with_capacity(grammars.uris.len() + 4),
            names: Vec::with_capacity(count + FIRST_NAMES),
            text: String::with_capacity((count + FIRST_NAMES) * 16),
            by_text: Index::of(count + FIRST_NAMES),
            bases: Vec::with_capacity(grammars.uris.len()),
            ..Self::default()
        };
        for uri in &grammars.uris {
            let at = tables.add_uri(&uri.uri);
            tables.enter_uri(at);
            let entry = &mut tables.uris[at as usize];
            uri.prefixes.iter().for_each(|prefix| entry.prefixes.push(prefix));
            entry.own_prefixes = small(entry.prefixes.len());
            tables.bases.push(small(tables.names.len()));
            for local in &uri.locals {
                let name = tables.add_name(at, local);
                tables.enter(name);
            }
        }
        tables.bytes = 0;
        tables.initial_count = small(tables.names.len());
        tables
    }

    fn add_uri(&mut self, text: &str) -> u32 {
        self.bytes += 96 + text.len();
        let number = small(self.uris.len());
        self.uris.push(Uri {
            text: text.into(),
            id: NONE,
            locals: 0,
            prefixes: Prefixes::default(),
            own_prefixes: 0,
        });
        self.by_uri.insert(hash(text.as_bytes()), number);
        number
    }

    fn enter_uri(&mut self, uri: u32) {
        self.uris[uri as usize].id = self.uri_count;
        self.uri_count += 1;
    }

    fn name_hash(uri: u32, local: &str) -> u32 {
        hash(local.as_bytes()) ^ uri.wrapping_mul(0x9e37_79b1)
    }

    fn add_name(&mut self, uri: u32, local: &str) -> u32 {
        self.bytes += 128 + local.len();
        let number = small(self.names.len());
        // Limits of tables are well below 4 GiB, and schemas are not that long.
        let begin = small(self.text.len());
        self.text.push_str(local);
        let end = small(self.text.len());
        self.names.push(Name { uri, begin, end, id: NONE, values: 0, rule: NONE });
        self.by_text.insert(Self::name_hash(uri, local), number);
        number
    }

    fn enter(&mut self, name: u32) {
        let uri = &mut self.uris[self.names[name as usize].uri as usize];
        self.names[name as usize].id = uri.locals;
        uri.locals += 1;
    }

    fn enter_local(&mut self, name: u32) {
        self.enter(name);
        self.changed.push(name);
    }

    /// Another document: partitions are what they were at the begin. Names keep their numbers, and
    /// count as tables still.
    pub(crate) fn restart(&mut self) {
        for &name in &self.changed {
            let found = &mut self.names[name as usize];
            found.values = 0;
            if name >= self.initial_count {
                found.id = NONE;
            }
            if found.rule & LEARNED != 0 {
                found.rule = NONE;
            }
        }
        self.changed.clear();
        for (at, uri) in self.uris.iter_mut().enumerate() {
            self.bytes -= uri.prefixes.truncate(uri.own_prefixes as usize);
            (uri.id, uri.locals) = match self.bases.get(at) {
                Some(base) => {
                    (small(at), self.bases.get(at + 1).unwrap_or(&self.initial_count) - base)
                }
                None => (NONE, 0),
            };
        }
        self.uri_count = small(self.bases.len());
    }

    /// How many namespaces there are.
    pub(crate) fn uri_len(&self) -> usize {
        self.uris.len()
    }

    /// Sets the rule of a name's element, which was not asked for yet.
    pub(crate) fn set_rule(&mut self, name: u32, rule: u32) {
        self.names[name as usize].rule = rule;
        self.changed.push(name);
    }

    /// The number of a namespace.
    pub(crate) fn uri(&mut self, text: &str) -> u32 {
        let uris = &self.uris;
        let same = |at: u32| &*uris[at as usize].text == text;
        let known = self.by_uri.find(hash(text.as_bytes()), same);
        known.unwrap_or_else(|| self.add_uri(text))
    }

    /// The number of a name.
    pub(crate) fn name(&mut self, uri: u32, local: &str) -> u32 {
        let same = |at: u32| self.get(at).uri == uri && self.local(at) == local;
        let found = self.by_text.find(Self::name_hash(uri, local), same);
        found.unwrap_or_else(|| self.add_name(uri, local))
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

    /// The next identifier of a value in the name's partition.
    #[inline]
    fn next_value(&mut self, name: u32) -> u32 {
        let values = &mut self.names[name as usize].values;
        let next = *values;
        *values += 1;
        if next == 0 {
            self.changed.push(name);
        }
        next
    }

    /// The local part of a name.
    fn local(&self, name: u32) -> &str {
        let Name { begin, end, .. } = *self.get(name);
        self.text.get(begin as usize..end as usize).unwrap_or("")
    }

    /// The number of a name's namespace.
    pub(crate) fn uri_of(&self, name: u32) -> u32 {
        self.get(name).uri
    }

    /// A name of the schema.
    pub(crate) fn qname(&self, name: u32) -> Option<super::grammar::QName> {
        let uri = self.get(name).uri;
        let initial = name < self.initial_count;
        initial.then(|| super::grammar::QName { uri, local: name - self.bases[uri as usize] })
    }

    /// Whether it is `xsi:schemaLocation` or `xsi:noNamespaceSchemaLocation`.
    pub(crate) fn is_schema_location(&self, name: u32) -> bool {
        let local = self.local(name);
        self.uri_of(name) == 2 && matches!(local, "schemaLocation" | "noNamespaceSchemaLocation")
    }

    /// The name as (local, uri), the order of attributes.
    pub(crate) fn sort_key(&self, name: u32) -> (&str, &str) {
        (self.local(name), &self.uris[self.uri_of(name) as usize].text)
    }

    /// URI (EXI §7.3.1): identifier + 1, or 0 and the text.
    pub(crate) fn write_uri(&mut self, uri: u32, to: &mut Writer) {
        let bits = width(self.uri_count as usize + 1);
        let entry = &self.uris[uri as usize];
        if entry.id != NONE {
            return to.bits(entry.id + 1, bits);
        }
        to.bits(0, bits);
        to.string(&entry.text, 0);
        self.enter_uri(uri);
    }

    /// Local name (EXI §7.3.2).
    pub(crate) fn write_local(&mut self, name: u32, to: &mut Writer) {
        let entry = &self.names[name as usize];
        if entry.id != NONE {
            to.unsigned(0);
            return to.bits(entry.id, width(self.uris[entry.uri as usize].locals as usize));
        }
        to.string(self.local(name), 1);
        self.enter_local(name);
    }

    /// Namespace and local name (EXI §7.1.7), no prefix.
    pub(crate) fn write_name(&mut self, name: u32, to: &mut Writer) {
        self.write_uri(self.get(name).uri, to);
        self.write_local(name, to);
    }

    /// Prefix of a name (EXI §7.1.7): nothing if there is no choice; 0 if an NS event will tell.
    pub(crate) fn write_prefix(&self, name: u32, prefix: &str, to: &mut Writer) {
        let prefixes = &self.uris[self.get(name).uri as usize].prefixes;
        let at = prefixes.find(prefix).unwrap_or(0);
        to.bits(small(at), width(prefixes.len()));
    }

    /// NS: namespace and prefix (EXI §7.3.1), which enters the partition of the namespace.
    pub(crate) fn write_declaration(
        &mut self,
        uri: u32,
        prefix: &str,
        to: &mut Writer,
    ) -> Result<(), Fault> {
        self.write_uri(uri, to);
        let prefixes = &mut self.uris[uri as usize].prefixes;
        let bits = width(prefixes.len() + 1);
        if let Some(at) = prefixes.find(prefix) {
            to.bits(small(at) + 1, bits);
            return Ok(());
        }
        if prefixes.len() >= MAX_NAMESPACE_PREFIXES {
            return Err(Fault::Limit(&"16384 prefixes of a namespace"));
        }
        to.bits(0, bits);
        to.string(prefix, 0);
        prefixes.push(prefix);
        self.bytes += prefix_bytes(prefix);
        Ok(())
    }
}

/// Values whose room is kept for the next document.
const KEPT_VALUES: usize = 1 << 16;
/// The same in bytes of their text.
const KEPT_BYTES: usize = 1 << 20;

/// A value in the string table.
#[derive(Clone, Copy, Debug)]
struct Value {
    begin: u32,
    length: u32,
    hash: u32,
    name: u32,
    /// Compact identifier among those of its name.
    local: u32,
}

/// The value partitions (EXI §7.3.3).
#[derive(Debug)]
pub(crate) struct Values {
    index: Index,
    values: Vec<Value>,
    text: Vec<u8>,
    /// What one round through a bounded table has pushed out, in bytes of `text`.
    dead: usize,
    /// Where the next value goes once the table is full.
    next: u32,
    /// Most values.
    capacity: u32,
    /// Longest value in characters.
    max_length: usize,
    locals: bool,
}

impl Values {
    pub(crate) fn new(options: &Options) -> Self {
        let max = options.value_max_length.map_or(usize::MAX, |max| max as usize);
        Self {
            index: Index::of(FIRST_NAMES),
            values: Vec::with_capacity(FIRST_NAMES),
            text: Vec::with_capacity(FIRST_NAMES * 16),
            dead: 0,
            next: 0,
            capacity: options.value_partition_capacity.unwrap_or(NONE - 1),
            max_length: max,
            locals: options.profile.local_value_partitions,
        }
    }

    /// Empties the table.
    pub(crate) fn restart(&mut self) {
        self.index.clear(FIRST_NAMES);
        self.values.clear();
        self.values.shrink_to(KEPT_VALUES);
        self.text.clear();
        self.text.shrink_to(KEPT_BYTES);
        (self.dead, self.next) = (0, 0);
    }

    /// Bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.values.len() * size_of::<Value>() + self.index.bytes()
    }

    fn text(&self, value: &Value) -> &[u8] {
        let begin = value.begin as usize;
        &self.text[begin..begin + value.length as usize]
    }

    /// A string value of `name`: a hit in the partition of the name or in the global one, or the
    /// length + 2, and the text by `chars`, which hears whether it is ASCII. Says whether the table
    /// grew.
    #[inline(always)]
    pub(crate) fn write(
        &mut self,
        name: u32,
        text: &str,
        names: &mut Names,
        to: &mut Writer,
        chars: impl FnOnce(&str, bool, &mut Writer),
    ) -> Result<bool, Fault> {
        let (hash, ascii) = hash_and_ascii(text.as_bytes());
        let same = |at: u32| self.text(&self.values[at as usize]) == text.as_bytes();
        if let Some(at) = self.index.find(hash, same) {
            let value = &self.values[at as usize];
            if value.name == name {
                to.byte(0);
                to.bits(value.local, width(names.get(name).values as usize));
            } else {
                to.byte(1);
                to.bits(at, width(self.values.len()));
            }
            return Ok(false);
        }
        let length = if ascii { text.len() } else { text.chars().count() };
        to.unsigned(length as u64 + 2);
        chars(text, ascii, to);
        if length > 0 && length <= self.max_length && self.capacity > 0 {
            self.enter(name, text, hash, names)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn enter(&mut self, name: u32, text: &str, hash: u32, names: &mut Names) -> Result<(), Fault> {
        let too_long = |_| Fault::Limit(&"table_bytes");
        let begin = u32::try_from(self.text.len()).map_err(too_long)?;
        let length = u32::try_from(text.len()).map_err(too_long)?;
        let mut value = Value { begin, length, hash, name: NONE, local: 0 };
        if self.locals {
            (value.name, value.local) = (name, names.next_value(name));
        }
        self.text.extend_from_slice(text.as_bytes());
        if self.values.len() < self.capacity as usize {
            let at = u32::try_from(self.values.len()).map_err(too_long)?;
            self.index.insert(hash, at);
            self.values.push(value);
            return Ok(());
        }
        // The oldest goes, and its local identifier stays unused (EXI §7.3.3).
        let old = std::mem::replace(&mut self.values[self.next as usize], value);
        self.index.remove(old.hash, self.next);
        self.index.insert(hash, self.next);
        self.next = (self.next + 1) % self.capacity;
        self.dead += old.length as usize;
        if self.dead > 4096 && self.dead * 2 > self.text.len() {
            self.compact();
        }
        Ok(())
    }

    /// Drops the text of values that are gone.
    fn compact(&mut self) {
        let mut kept = Vec::with_capacity(self.text.len() - self.dead);
        for at in 0..self.values.len() {
            let begin = small(kept.len());
            kept.extend_from_slice(self.text(&self.values[at]));
            self.values[at].begin = begin;
        }
        self.text = kept;
        self.dead = 0;
    }
}
