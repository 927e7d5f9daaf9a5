//! XMill as its authors built it: the structure in one row, the values of each path in a column of
//! their own, and what comes of it through a general compressor.

mod bytes;
mod columns;
mod forms;
mod numbers;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;

use super::outline::{Broken, END, NEW, Outline, SPELLED, TEXT};
use super::pieces::{Item, PiecePosition, next_item};
use bytes::Input;
pub(super) use bytes::put_number;
use columns::{Reader, Writer};
pub(super) use words::column_bytes;

/// Columns of a block; values of further paths go into the last.
const COLUMNS: usize = 1024;
/// Bytes that a block may have in parts, beside four times its length.
const PARTS_BYTES: usize = 64;

/// A column of so many bytes gets statistics of its own.
const ALONE_BYTES: usize = 2048;

/// What a trial of a form may take beside the form, for a window of 2^`log` bytes.
pub(super) fn trial_bytes(log: u32) -> usize {
    (1 << 20).min((128 << 10) + (16 << log))
}

/// What a block in parts may take: an encoder stores it if it is more, a decoder refuses it.
pub(super) fn most_bytes(len: usize) -> usize {
    4 * len + PARTS_BYTES
}

/// A number at the begin of a row, and the rest.
pub(super) fn take_number(bytes: &[u8]) -> Result<(usize, &[u8]), Broken> {
    let mut input = Input::of(bytes);
    Ok((input.number()?, input.rest()))
}

/// Numbers of the columns by key, in the order of their first values.
struct Keys(BTreeMap<u32, usize>);

impl Keys {
    /// The first column has the new pieces.
    fn new() -> Self {
        Self(BTreeMap::from([(SPELLED, 0)]))
    }

    fn number(&mut self, key: u32) -> usize {
        let next = self.0.len();
        if next < COLUMNS - 1 {
            return *self.0.entry(key).or_insert(next);
        }
        self.0.get(&key).copied().unwrap_or(next)
    }
}

/// Takes a block apart, and says where it is best cut for a general compressor, the end included.
/// What was learned of the document goes on to the next block.
pub(super) fn part(outline: &mut Outline, block: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let mut keys = Keys::new();
    let mut columns: Vec<Vec<&[u8]>> = vec![Vec::new()];
    let mut add = |key, value| {
        let number = keys.number(key);
        if number == columns.len() {
            columns.push(Vec::new());
        }
        columns[number].push(value);
    };
    let (mut structure, mut at) = (Vec::new(), 0);
    while at < block.len() {
        let kind = next_item(&block[at..], outline.place);
        let (Item::Value(len) | Item::Piece(len)) = kind;
        let item = &block[at..at + len];
        at += len;
        if let PiecePosition::Value(_) = outline.place {
            add(outline.attribute, item);
            if at < block.len() {
                outline.place = PiecePosition::Tag;
            }
            continue;
        }
        let symbol = if let Item::Value(_) = kind { TEXT } else { outline.symbol_of(item) };
        put_number(symbol, &mut structure);
        match symbol {
            TEXT => add(outline.path(), item),
            NEW => {
                add(SPELLED, item);
                outline.learn(item);
            }
            END => drop(outline.close()),
            _ => drop(outline.pass(symbol)),
        }
    }
    let mut writer = Writer::new(outline.log);
    let part = |values: &Vec<&[u8]>| {
        let mut part = Vec::new();
        writer.put(values, &mut part);
        part
    };
    let parts: Vec<_> = columns.iter().map(part).collect();
    let mut out = Vec::with_capacity(block.len() / 2);
    put_number(parts.len(), &mut out);
    for part in parts.iter().chain([&structure]) {
        put_number(part.len(), &mut out);
    }
    let mut cuts = Vec::new();
    for part in parts.iter().chain([&structure]) {
        if part.len() >= ALONE_BYTES {
            cuts.push(out.len());
            cuts.push(out.len() + part.len());
        }
        out.extend_from_slice(part);
    }
    cuts.push(out.len());
    cuts.dedup();
    (out, cuts)
}

/// Puts a block of `len` bytes together. Errors: the parts do not make one.
pub(super) fn join_parts(
    outline: &mut Outline,
    parts: &[u8],
    len: usize,
    out: &mut Vec<u8>,
) -> Result<(), Broken> {
    let mut input = Input::of(parts);
    let count = input.number()?;
    if count == 0 && input.rest().len() == len {
        out.extend_from_slice(input.rest());
        return Ok(());
    }
    if count == 0 || count > COLUMNS {
        return Err(Broken::Unknown);
    }
    let lengths = (0..=count).map(|_| input.number()).collect::<Result<Vec<_>, _>>()?;
    let mut columns: Vec<Option<Reader<'_>>> = Vec::with_capacity(count);
    for &len in &lengths[..count] {
        let column = input.take(len)?;
        let reader = match column {
            [] => None,
            _ => Some(Reader::of(Input::of(column), outline.log, &columns)?),
        };
        columns.push(reader);
    }
    let mut structure = Input::of(input.take(lengths[count])?);
    let mut keys = Keys::new();
    let end = out.len() + len;
    let mut value = |key, out: &mut Vec<u8>| {
        let column = columns.get_mut(keys.number(key)).ok_or(Broken::Unknown)?;
        column.as_mut().ok_or(Broken::Unknown)?.next(out, end)
    };
    while out.len() < end {
        let start = out.len();
        if let PiecePosition::Value(_) = outline.place {
            value(outline.attribute, out)?;
            if out.len() < end {
                outline.place = PiecePosition::Tag;
            }
            continue;
        }
        match structure.number()? {
            TEXT => value(outline.path(), out)?,
            NEW => {
                value(SPELLED, out)?;
                outline.learn(&out[start..]);
            }
            END => {
                out.extend_from_slice(b"</");
                out.extend_from_slice(outline.close()?);
                out.push(b'>');
            }
            symbol => out.extend_from_slice(outline.pass(symbol)?),
        }
        if out.len() == start {
            return Err(Broken::Empty);
        }
    }
    let used = columns.iter().flatten().all(Reader::is_used_up);
    match (out.len() == end, used && structure.rest().is_empty() && input.rest().is_empty()) {
        (true, true) => Ok(()),
        (true, false) => Err(Broken::Unused),
        (false, _) => Err(Broken::Overlong),
    }
}
