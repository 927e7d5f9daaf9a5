//! A head by its lines, or by what it changes of its base.
//!
//! ```text
//! line      2n: the fixed line n   2n + 1, value: its name with this value   1, name, value
//! no base   lines, until the end
//! base      changes, until the end; lines of the base between them stay, and those behind them
//! change    4g: g lines stay, the next goes        4g + 1, p, text: it gets another value, which
//!           has the first p bytes of the old one   4g + 2, s: it is a date, s seconds later
//!           4g + 3, line: g lines stay, this one comes in front of the next
//! ```
//!
//! Names, values and texts have their length before them; seconds that may be less than none are
//! 2s, or 2|s| - 1.

use bytes::Bytes;

use super::fixed::{self, Found, Table};
use super::{Line, Sharing};
use crate::bhttp::{MAX_FIELDS, MAX_HEAD_BYTES};
use crate::date;
use crate::{Error, varint};

const GOES: u64 = 0;
const VALUE: u64 = 1;
const DATE: u64 = 2;
const COMES: u64 = 3;
/// Most lines of a head: its fields, and those of its control data.
const MAX_LINES: usize = MAX_FIELDS + 4;
/// And their bytes: in binary HTTP control data has no names.
const MAX_BYTES: usize = MAX_HEAD_BYTES + 32;
/// What all in a script is, where it cannot be read.
const WHAT: &str = "a packed head";

fn write_line(table: Table, line: &Line, out: &mut Vec<u8>) {
    match fixed::find(table, line) {
        Found::Whole(number) => varint::encode(2 * number, out),
        Found::Name(number) => {
            varint::encode(2 * number + 1, out);
            varint::encode_bytes(&line.1, out);
        }
        Found::Nothing => {
            varint::encode(1, out);
            varint::encode_bytes(&line.0, out);
            varint::encode_bytes(&line.1, out);
        }
    }
}

fn read_line(table: Table, rest: &mut &[u8]) -> Result<Line, Error> {
    let number = varint::decode(rest, WHAT)?;
    if number == 1 {
        let name = Bytes::copy_from_slice(varint::decode_bytes(rest, WHAT)?);
        return Ok((name, Bytes::copy_from_slice(varint::decode_bytes(rest, WHAT)?)));
    }
    let unknown = Error::Peer { what: "the number of a fixed line", value: number / 2 };
    let (name, value) = fixed::get(table, number / 2).ok_or(unknown)?;
    let value = match number % 2 {
        0 => Bytes::from_static(value.as_bytes()),
        _ => Bytes::copy_from_slice(varint::decode_bytes(rest, WHAT)?),
    };
    Ok((Bytes::from_static(name.as_bytes()), value))
}

/// Appends the script of a head with this base, if any.
pub(super) fn write<O>(
    table: Table,
    lines: &[Line],
    base: Option<&[Line]>,
    sharing: &Sharing<O>,
    out: &mut Vec<u8>,
) {
    let Some(base) = base else {
        return lines.iter().for_each(|line| write_line(table, line, out));
    };
    // Lines of the base before `next` are told of, and those before `stay` as well.
    let (mut next, mut stay) = (0, 0);
    let change = |stay: &mut usize, to: usize, kind: u64, out: &mut Vec<u8>| {
        varint::encode(4 * (to - *stay) as u64 + kind, out);
        *stay = if kind == COMES { to } else { to + 1 };
    };
    for line in lines {
        let behind = base.get(next..).unwrap_or_default();
        let Some(at) = behind.iter().position(|one| one.0 == line.0).map(|at| next + at) else {
            change(&mut stay, next, COMES, out);
            write_line(table, line, out);
            continue;
        };
        (next..at).for_each(|gone| change(&mut stay, gone, GOES, out));
        next = at + 1;
        let old = &base[at].1;
        if *old == line.1 {
            continue;
        }
        if let Some((from, to)) = date::read(old).zip(date::read(&line.1)) {
            change(&mut stay, at, DATE, out);
            let later = to - from;
            let sign = u64::from(later < 0);
            varint::encode(2 * later.unsigned_abs() - sign, out);
            continue;
        }
        change(&mut stay, at, VALUE, out);
        let is_whole = sharing.whole || (sharing.is_secret)(&line.0);
        let alike = old.iter().zip(&line.1).take_while(|(old, new)| old == new).count();
        let alike = if is_whole { 0 } else { alike };
        varint::encode(alike as u64, out);
        varint::encode_bytes(&line.1[alike..], out);
    }
    (next..base.len()).for_each(|gone| change(&mut stay, gone, GOES, out));
}

/// The lines of a head. Errors: what no writer writes, and what is longer than a head may be.
pub(super) fn read(
    table: Table,
    base: Option<&[Line]>,
    mut rest: &[u8],
) -> Result<Vec<Line>, Error> {
    let mut lines = Lines::default();
    let mut base = base.unwrap_or_default().iter();
    let has_base = base.len() > 0;
    while !rest.is_empty() {
        if !has_base {
            lines.push(read_line(table, &mut rest)?)?;
            continue;
        }
        let change = varint::decode(&mut rest, WHAT)?;
        for _ in 0..change / 4 {
            lines.push(base.next().ok_or(BEHIND)?.clone())?;
        }
        if change % 4 == COMES {
            lines.push(read_line(table, &mut rest)?)?;
            continue;
        }
        let (name, old) = base.next().ok_or(BEHIND)?;
        let value = match change % 4 {
            GOES => continue,
            VALUE => {
                let alike = varint::decode(&mut rest, WHAT)?;
                let alike = usize::try_from(alike).ok().and_then(|alike| old.get(..alike));
                let alike = alike.ok_or(BEHIND)?;
                [alike, varint::decode_bytes(&mut rest, WHAT)?].concat()
            }
            _ => later(old, varint::decode(&mut rest, WHAT)?)?.into_bytes(),
        };
        lines.push((name.clone(), value.into()))?;
    }
    base.cloned().try_for_each(|line| lines.push(line))?;
    Ok(lines.lines)
}

const BEHIND: Error = Error::Peer { what: "a change behind the end of the base", value: 0 };

/// The date so much later.
fn later(old: &[u8], by: u64) -> Result<String, Error> {
    let by = i64::try_from(by).unwrap_or(i64::MAX);
    let by = if by % 2 == 0 { by / 2 } else { -(by / 2) - 1 };
    let new = date::read(old).and_then(|old| date::written(old.checked_add(by)?));
    new.ok_or(Error::Peer { what: "a date that is none", value: 0 })
}

/// Lines, no more and no longer than those of a head, about: who reads it is more exact.
#[derive(Default)]
struct Lines {
    lines: Vec<Line>,
    bytes: usize,
}

impl Lines {
    fn push(&mut self, line: Line) -> Result<(), Error> {
        self.bytes += line.0.len() + line.1.len();
        if self.bytes > MAX_BYTES || self.lines.len() >= MAX_LINES {
            let (value, limit) = (self.bytes as u64, MAX_BYTES as u64);
            return Err(Error::Limit { what: "the size of a head in bytes", value, limit });
        }
        self.lines.push(line);
        Ok(())
    }
}
