//! The string table: literals, and texts that repeat often enough to be shorter there (§5.7).

use proto::wbxml::{encode_u32, global};

use super::{Charset, NAME, Settings};
use crate::xml::names::Interner;
use crate::{Error, Limits};

/// Texts are remembered up to this many bytes: what repeats shows early.
const MAX_TEXT_BYTES: usize = 1 << 20;
/// Shorter texts cost less inline than an index.
const MIN_TEXT_BYTES: usize = 2;

/// Room that is there at the begin: small documents need no more.
const FIRST_ITEMS: usize = 32;

/// A place in the body that refers to a string.
#[derive(Debug)]
struct Use {
    at: usize,
    id: u32,
    /// Only the index is missing there; else it is an inline string that may be replaced.
    literal: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    uses: usize,
    literal: bool,
    /// Where it is in the table.
    index: Option<u32>,
}

/// Collects strings while a body is written.
#[derive(Debug)]
pub(super) struct Strings {
    known: Interner,
    counts: Vec<Count>,
    uses: Vec<Use>,
    /// Whether texts may go to the table.
    texts: bool,
    charset: Charset,
    table_bytes: usize,
}

fn put_u32(value: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(encode_u32(value, &mut [0; 5]));
}

impl Strings {
    pub(super) fn new(settings: &Settings<'_>, limits: &Limits) -> Self {
        Self {
            known: Interner::default(),
            counts: Vec::with_capacity(FIRST_ITEMS),
            uses: Vec::with_capacity(FIRST_ITEMS),
            texts: settings.string_table,
            charset: settings.charset,
            table_bytes: limits.table_bytes,
        }
    }

    pub(super) fn charset(&self) -> Charset {
        self.charset
    }

    /// Forgets all strings.
    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.counts.clear();
        self.uses.clear();
    }

    fn note(&mut self, text: &str, at: usize, literal: bool) -> Result<u32, Error> {
        let id = self.known.intern(0, text)?;
        self.counts.resize(self.known.len(), Count::default());
        let count = &mut self.counts[id as usize];
        count.uses += 1;
        count.literal |= literal;
        self.uses.push(Use { at, id, literal });
        if self.known.bytes() > self.table_bytes {
            let what = format!("names over table_bytes {}", self.table_bytes);
            return Err(Error::Limit { codec: NAME, what });
        }
        Ok(id)
    }

    /// A string that must be in the table, for the header.
    pub(super) fn header(&mut self, text: &str) -> Result<u32, Error> {
        self.check(text)?;
        let id = self.known.intern(0, text)?;
        self.counts.resize(self.known.len(), Count::default());
        self.counts[id as usize].literal = true;
        Ok(id)
    }

    /// A name or identifier has no entities.
    fn check(&self, name: &str) -> Result<(), Error> {
        if self.charset.is_whole() || name.chars().all(|char| self.charset.has(char)) {
            return Ok(());
        }
        let what = format!("the name '{name}', which {:?} does not have", self.charset);
        Err(Error::Option { what })
    }

    /// Appends a literal token whose index comes later.
    pub(super) fn literal(
        &mut self,
        token: u8,
        name: &str,
        body: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.check(name)?;
        body.push(token);
        self.note(name, body.len(), true).map(|_| ())
    }

    /// Appends text: an inline string, which may become an index, and entities for characters that
    /// the set does not have.
    pub(super) fn text(&mut self, text: &str, body: &mut Vec<u8>) -> Result<(), Error> {
        let mut rest = text;
        while !self.charset.is_whole()
            && let Some((at, char)) = rest.char_indices().find(|(_, char)| !self.charset.has(*char))
        {
            if at > 0 {
                self.string(&rest[..at], body)?;
            }
            body.push(global::ENTITY);
            put_u32(u32::from(char), body);
            rest = &rest[at + char.len_utf8()..];
        }
        if rest.is_empty() { Ok(()) } else { self.string(rest, body) }
    }

    /// Appends an inline string, which may become an index.
    fn string(&mut self, text: &str, body: &mut Vec<u8>) -> Result<(), Error> {
        if self.texts && text.len() >= MIN_TEXT_BYTES {
            let room = self.known.bytes() < MAX_TEXT_BYTES.min(self.table_bytes / 2);
            if room || self.known.find(0, text).is_some() {
                self.note(text, body.len(), false)?;
            }
        }
        body.push(global::STR_I);
        self.charset.terminated(text, body);
        Ok(())
    }

    /// Chooses what goes to the table, the most used first, for small indexes are short.
    fn choose(&mut self) -> Vec<u8> {
        let wanted = |(_, count): &(u32, &Count)| count.literal || count.uses > 1;
        let mut order: Vec<u32> =
            (0..).zip(&self.counts).filter(wanted).map(|(id, _)| id).collect();
        // Stable: equals stay in the order of first use.
        order.sort_by_key(|id| std::cmp::Reverse(self.counts[*id as usize].uses));
        let mut table = Vec::new();
        for id in order {
            let text = self.known.get(id);
            let count = &mut self.counts[id as usize];
            let Ok(index) = u32::try_from(table.len()) else { break };
            let index_len = encode_u32(index, &mut [0; 5]).len();
            let len = self.charset.terminated_len(text);
            let inline = count.uses * (len + 1);
            let shared = count.uses * (1 + index_len) + len;
            if count.literal || shared < inline {
                count.index = Some(index);
                self.charset.terminated(text, &mut table);
            }
        }
        table
    }

    /// The document: what `header` writes with the index of `public`, the table, and the body with
    /// its indexes.
    pub(super) fn finish(
        &mut self,
        body: &[u8],
        public: Option<u32>,
        mut header: impl FnMut(Option<u32>, &mut Vec<u8>),
    ) -> Vec<u8> {
        let table = self.choose();
        let index = |id: u32| self.counts.get(id as usize).and_then(|count| count.index);
        let mut out = Vec::with_capacity(body.len() + table.len() + 16);
        header(public.and_then(index), &mut out);
        put_u32(u32::try_from(table.len()).unwrap_or(u32::MAX), &mut out);
        out.extend_from_slice(&table);
        let mut copied = 0;
        for Use { at, id, literal } in &self.uses {
            let Some(index) = index(*id) else { continue };
            out.extend_from_slice(&body[copied..*at]);
            copied = *at;
            if !literal {
                copied += 1 + self.charset.terminated_len(self.known.get(*id));
                out.push(global::STR_T);
            }
            put_u32(index, &mut out);
        }
        out.extend_from_slice(&body[copied..]);
        out
    }
}
