//! The string table: literals, and texts that repeat often enough to be shorter there (§5.7).

use proto::wbxml::{encode_u32, global};

use super::NAME;
use crate::xml::names::Interner;
use crate::{Error, Limits};

/// Texts are remembered up to this many bytes: what repeats shows early.
const MAX_TEXT_BYTES: usize = 1 << 20;
/// Shorter texts cost less inline than an index.
const MIN_TEXT_BYTES: usize = 2;

/// A place in the body that refers to a string.
struct Use {
    at: usize,
    id: u32,
    /// Only the index is missing there; else it is an inline string that may be replaced.
    literal: bool,
}

#[derive(Clone, Copy, Default)]
struct Count {
    uses: usize,
    literal: bool,
    /// Where it is in the table.
    index: Option<u32>,
}

/// Collects strings while a body is written.
pub(super) struct Strings {
    known: Interner,
    counts: Vec<Count>,
    uses: Vec<Use>,
    /// Whether texts may go to the table.
    texts: bool,
    table_bytes: usize,
}

fn put_u32(value: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(encode_u32(value, &mut [0; 5]));
}

impl Strings {
    pub(super) fn new(texts: bool, limits: &Limits) -> Self {
        Self {
            known: Interner::default(),
            counts: Vec::new(),
            uses: Vec::new(),
            texts,
            table_bytes: limits.table_bytes,
        }
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
        let id = self.known.intern(0, text)?;
        self.counts.resize(self.known.len(), Count::default());
        self.counts[id as usize].literal = true;
        Ok(id)
    }

    /// Appends a literal token whose index comes later.
    pub(super) fn literal(
        &mut self,
        token: u8,
        name: &str,
        body: &mut Vec<u8>,
    ) -> Result<(), Error> {
        body.push(token);
        self.note(name, body.len(), true).map(|_| ())
    }

    /// Appends an inline string, which may become an index.
    pub(super) fn text(&mut self, text: &str, body: &mut Vec<u8>) -> Result<(), Error> {
        if self.texts && text.len() >= MIN_TEXT_BYTES {
            let room = self.known.bytes() < MAX_TEXT_BYTES.min(self.table_bytes / 2);
            if room || self.known.find(0, text).is_some() {
                self.note(text, body.len(), false)?;
            }
        }
        body.push(global::STR_I);
        body.extend_from_slice(text.as_bytes());
        body.push(0);
        Ok(())
    }

    /// Chooses what goes to the table, the most used first, for small indexes are short.
    fn choose(&mut self) -> Vec<u8> {
        let mut order: Vec<u32> = (0..).take(self.counts.len()).collect();
        order.retain(|id| {
            let count = self.counts[*id as usize];
            count.literal || count.uses > 1
        });
        // Stable: equals stay in the order of first use.
        order.sort_by_key(|id| std::cmp::Reverse(self.counts[*id as usize].uses));
        let mut table = Vec::new();
        for id in order {
            let text = self.known.get(id);
            let count = &mut self.counts[id as usize];
            let Ok(index) = u32::try_from(table.len()) else { break };
            let index_len = encode_u32(index, &mut [0; 5]).len();
            let inline = count.uses * (text.len() + 2);
            let shared = count.uses * (1 + index_len) + text.len() + 1;
            if count.literal || shared < inline {
                count.index = Some(index);
                table.extend_from_slice(text.as_bytes());
                table.push(0);
            }
        }
        table
    }

    /// The document: what `header` writes with the index of `public`, the table, and the body with
    /// its indexes.
    pub(super) fn finish(
        mut self,
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
                copied += self.known.get(*id).len() + 2;
                out.push(global::STR_T);
            }
            put_u32(index, &mut out);
        }
        out.extend_from_slice(&body[copied..]);
        out
    }
}
