//! Documents as maps of CBOR with small numbers as keys, so that names cost nothing.

use proto::cbor::{Decoder, Item};

use crate::messaging::fields::{Field, Kind, Layout, Record, Value};
use crate::messaging::refusal::{Reason, Refusal};

/// Levels: the document, a list or map in it, and one more to refuse.
const DEPTH: usize = 3;

/// Writes items.
struct Writer(Vec<u8>);

impl Writer {
    /// The head of an item in its shortest form (RFC 8949 §3, §4.2.1).
    fn head(&mut self, major: u8, argument: u64) {
        let bytes = argument.to_be_bytes();
        let (info, skip) = match argument {
            0..=23 => (bytes[7], 8),
            24..=0xff => (24, 7),
            0x100..=0xffff => (25, 6),
            0x1_0000..=0xffff_ffff => (26, 4),
            _ => (27, 0),
        };
        self.0.push(major << 5 | info);
        self.0.extend(bytes.iter().skip(skip));
    }

    fn text(&mut self, text: &str) {
        self.head(3, text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }
}

/// Writes a document, the same bytes for the same fields.
pub(super) fn encode(layout: &Layout, record: &Record) -> Result<Vec<u8>, Refusal> {
    let mut out = Writer(Vec::new());
    out.head(5, record.fields(layout).count() as u64);
    for (field, value) in record.fields(layout) {
        out.head(0, field.key);
        match value {
            Value::Text(text) => out.text(text),
            Value::Word(at) => out.head(0, *at as u64),
            Value::Number(number) => out.head(0, *number),
            Value::Time(time) => {
                let over = |_| field.refuse("the time is beyond what is written");
                out.head(0, u64::try_from(time.as_millis()).map_err(over)?);
            }
            Value::List(list) => {
                out.head(4, list.len() as u64);
                list.iter().for_each(|text| out.text(text));
            }
            Value::Pairs(pairs) => {
                out.head(5, pairs.len() as u64);
                for (name, value) in pairs {
                    out.text(name);
                    out.text(value);
                }
            }
            Value::Bytes(bytes) => {
                out.head(2, bytes.len() as u64);
                out.0.extend_from_slice(bytes);
            }
        }
    }
    Ok(out.0)
}

pub(super) fn decode(layout: &Layout, bytes: &[u8]) -> Result<Record, Refusal> {
    let mut reader = Items { decoder: Decoder::new(bytes) };
    let mut left = match reader.next()? {
        Item::Map(count) => count,
        _ => return Err(Refusal::malformed(format!("a {} is a map of CBOR", layout.name))),
    };
    let mut record = Record::new(layout);
    while !reader.is_over(&mut left) {
        let key = match reader.next()? {
            Item::Unsigned(key) => key,
            Item::Break => break,
            other => {
                let line = format!("a key of a {} is a number, not {other:?}", layout.name);
                return Err(Refusal::malformed(crate::messaging::refusal::shown(&line)));
            }
        };
        let at =
            layout.fields.iter().position(|field| field.key == key).ok_or_else(|| {
                Refusal::malformed(format!("key {key} is none of a {}", layout.name))
            })?;
        if let Some(field) = layout.fields.get(at) {
            record.put(layout, at, reader.value(field)?)?;
        }
    }
    match reader.decoder.rest().len() {
        0 => Ok(record),
        count => Err(Refusal::malformed(format!("{count} bytes behind the {}", layout.name))),
    }
}

struct Items<'a> {
    decoder: Decoder<'a, DEPTH>,
}

impl<'a> Items<'a> {
    fn next(&mut self) -> Result<Item<'a>, Refusal> {
        let offset = self.decoder.offset();
        match self.decoder.next() {
            Some(Ok(item)) => Ok(item),
            Some(Err(error)) => {
                Err(Refusal::malformed(format!("no CBOR at byte {offset}: {error}")))
            }
            None => Err(Refusal::malformed(format!("the CBOR ends at byte {offset}"))),
        }
    }

    /// Whether all members of a counted map or list were read; counts one.
    fn is_over(&self, left: &mut Option<u64>) -> bool {
        match left {
            Some(0) => true,
            Some(count) => {
                *count -= 1;
                false
            }
            None => false,
        }
    }

    fn value(&mut self, field: &Field) -> Result<Value, Refusal> {
        let item = self.next()?;
        Ok(match (item, field.kind) {
            (Item::Text(text), Kind::Token | Kind::Text) => Value::Text(text.to_owned()),
            (Item::Unsigned(at), Kind::Word(_)) => {
                Value::Word(usize::try_from(at).unwrap_or(usize::MAX))
            }
            (Item::Unsigned(number), Kind::Number(_)) => Value::Number(number),
            (Item::Unsigned(ms), Kind::Time) => Value::Time(std::time::Duration::from_millis(ms)),
            (Item::Bytes(bytes), Kind::Bytes(_)) => Value::Bytes(bytes.to_vec()),
            (Item::Array(left), Kind::Tokens(max)) => self.list(field, left, max)?,
            (Item::Map(left), Kind::Pairs) => self.pairs(field, left)?,
            _ => return Err(field.refuse("an item of another type")),
        })
    }

    fn list(&mut self, field: &Field, mut left: Option<u64>, max: usize) -> Result<Value, Refusal> {
        let mut list = Vec::new();
        while !self.is_over(&mut left) {
            match self.next()? {
                Item::Text(_) if list.len() >= max => {
                    let what = field.refuse(&format!("over the limit of {max} members"));
                    return Err(Refusal::new(Reason::TooLarge, what.line));
                }
                Item::Text(text) => list.push(text.to_owned()),
                Item::Break => break,
                _ => return Err(field.refuse("a member that is no text")),
            }
        }
        Ok(Value::List(list))
    }

    fn pairs(&mut self, field: &Field, mut left: Option<u64>) -> Result<Value, Refusal> {
        let mut pairs = Vec::new();
        while !self.is_over(&mut left) {
            let name = match self.next()? {
                Item::Text(name) => name.to_owned(),
                Item::Break => break,
                _ => return Err(field.refuse("a name that is no text")),
            };
            let Item::Text(value) = self.next()? else {
                return Err(field.refuse("a value that is no text"));
            };
            pairs.push((name, value.to_owned()));
        }
        Ok(Value::Pairs(pairs))
    }
}
