//! Field tables and arrays (AMQP 0.9.1 §4.2.5.5), with the types as clients and brokers send them.
//!
//! The standard's grammar and what everybody sends differ: `s` is an integer of 16 bits, `l` and
//! `L` are signed, `x` is a byte array and there are no short strings in tables.

use super::wire::{Field, Reader, Writer};
use crate::Error;

/// Deepest nesting of tables and arrays: the stack that reading takes is bounded by it.
pub const MAX_NESTING: usize = 32;

/// A table whose bytes have been checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Table<'a> {
    bytes: &'a [u8],
}

/// An array whose bytes have been checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Array<'a> {
    bytes: &'a [u8],
}

/// A value in a table or an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// `t`
    Bool(bool),
    /// `b`
    I8(i8),
    /// `B`
    U8(u8),
    /// `s`, also read from `U`
    I16(i16),
    /// `u`
    U16(u16),
    /// `I`
    I32(i32),
    /// `i`
    U32(u32),
    /// `l`, also read from `L`
    I64(i64),
    /// `f`
    F32(f32),
    /// `d`
    F64(f64),
    /// `D`: the value without its point, and how many digits stand behind that
    Decimal {
        /// Digits behind the point.
        scale: u8,
        /// The digits.
        value: i32,
    },
    /// `S`: bytes, as a rule text
    Text(&'a [u8]),
    /// `x`
    Bytes(&'a [u8]),
    /// `A`
    Array(Array<'a>),
    /// `T`: seconds since 1970
    Timestamp(u64),
    /// `F`
    Table(Table<'a>),
    /// `V`
    Void,
}

impl<'a> Table<'a> {
    /// Checks the content of a table, without its length.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        check(bytes, true, 0)?;
        Ok(Self { bytes })
    }

    /// The content, without its length.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether it has no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The entries in order.
    #[must_use]
    pub fn iter(&self) -> Entries<'a> {
        Entries { reader_rest: self.bytes }
    }

    /// The first value of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        self.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }
}

impl<'a> IntoIterator for Table<'a> {
    type Item = (&'a str, Value<'a>);
    type IntoIter = Entries<'a>;

    fn into_iter(self) -> Entries<'a> {
        self.iter()
    }
}

/// The entries of a table: a name and a value each.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    reader_rest: &'a [u8],
}

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a str, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let mut reader = Reader::new(self.reader_rest);
        let entry = (<&str>::take(&mut reader).ok()?, value(&mut reader).ok()?);
        self.reader_rest = reader.rest();
        Some(entry)
    }
}

impl<'a> Array<'a> {
    /// Checks the content of an array, without its length.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        check(bytes, false, 0)?;
        Ok(Self { bytes })
    }

    /// The values in order.
    #[must_use]
    pub fn iter(&self) -> Values<'a> {
        Values { reader_rest: self.bytes }
    }
}

impl<'a> IntoIterator for Array<'a> {
    type Item = Value<'a>;
    type IntoIter = Values<'a>;

    fn into_iter(self) -> Values<'a> {
        self.iter()
    }
}

/// The values of an array.
#[derive(Clone, Debug)]
pub struct Values<'a> {
    reader_rest: &'a [u8],
}

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let mut reader = Reader::new(self.reader_rest);
        let value = value(&mut reader).ok()?;
        self.reader_rest = reader.rest();
        Some(value)
    }
}

impl<'a> Field<'a> for Table<'a> {
    fn take(reader: &mut Reader<'a>) -> Result<Self, Error> {
        Self::decode(<&[u8]>::take(reader)?)
    }

    fn put(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        self.bytes.put(writer)
    }
}

impl Value<'_> {
    /// The number, if it is a whole one.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        Some(match *self {
            Self::I8(value) => value.into(),
            Self::U8(value) => value.into(),
            Self::I16(value) => value.into(),
            Self::U16(value) => value.into(),
            Self::I32(value) => value.into(),
            Self::U32(value) => value.into(),
            Self::I64(value) => value,
            _ => return None,
        })
    }

    /// The text, if it is some.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    fn put(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        let tag: u8 = match self {
            Self::Bool(_) => b't',
            Self::I8(_) => b'b',
            Self::U8(_) => b'B',
            Self::I16(_) => b's',
            Self::U16(_) => b'u',
            Self::I32(_) => b'I',
            Self::U32(_) => b'i',
            Self::I64(_) => b'l',
            Self::F32(_) => b'f',
            Self::F64(_) => b'd',
            Self::Decimal { .. } => b'D',
            Self::Text(_) => b'S',
            Self::Bytes(_) => b'x',
            Self::Array(_) => b'A',
            Self::Timestamp(_) => b'T',
            Self::Table(_) => b'F',
            Self::Void => b'V',
        };
        writer.put(&[tag]);
        match self {
            Self::Bool(value) => u8::from(*value).put(writer),
            Self::I8(value) => value.put(writer),
            Self::U8(value) => value.put(writer),
            Self::I16(value) => value.put(writer),
            Self::U16(value) => value.put(writer),
            Self::I32(value) => value.put(writer),
            Self::U32(value) => value.put(writer),
            Self::I64(value) => value.put(writer),
            Self::F32(value) => value.put(writer),
            Self::F64(value) => value.put(writer),
            Self::Decimal { scale, value } => scale.put(writer).and_then(|()| value.put(writer)),
            Self::Text(bytes) | Self::Bytes(bytes) => bytes.put(writer),
            Self::Array(array) => array.bytes.put(writer),
            Self::Timestamp(seconds) => seconds.put(writer),
            Self::Table(table) => table.put(writer),
            Self::Void => Ok(()),
        }
    }
}

/// Reads a value whose insides have been checked, or will be.
fn value<'a>(reader: &mut Reader<'a>) -> Result<Value<'a>, Error> {
    Ok(match u8::take(reader)? {
        b't' => Value::Bool(u8::take(reader)? != 0),
        b'b' => Value::I8(i8::take(reader)?),
        b'B' => Value::U8(u8::take(reader)?),
        b's' | b'U' => Value::I16(i16::take(reader)?),
        b'u' => Value::U16(u16::take(reader)?),
        b'I' => Value::I32(i32::take(reader)?),
        b'i' => Value::U32(u32::take(reader)?),
        b'l' | b'L' => Value::I64(i64::take(reader)?),
        b'f' => Value::F32(f32::take(reader)?),
        b'd' => Value::F64(f64::take(reader)?),
        b'D' => Value::Decimal { scale: u8::take(reader)?, value: i32::take(reader)? },
        b'S' => Value::Text(Field::take(reader)?),
        b'x' => Value::Bytes(Field::take(reader)?),
        b'A' => Value::Array(Array { bytes: Field::take(reader)? }),
        b'T' => Value::Timestamp(u64::take(reader)?),
        b'F' => Value::Table(Table { bytes: Field::take(reader)? }),
        b'V' => Value::Void,
        other => return Err(Error::Peer { what: "type of an AMQP field", value: other.into() }),
    })
}

fn check(bytes: &[u8], is_named: bool, depth: usize) -> Result<(), Error> {
    if depth > MAX_NESTING {
        let (value, limit) = (depth as u64, MAX_NESTING as u64);
        return Err(Error::Limit { what: "nesting of AMQP tables", value, limit });
    }
    let mut reader = Reader::new(bytes);
    while !reader.rest().is_empty() {
        if is_named {
            <&str>::take(&mut reader)?;
        }
        match value(&mut reader)? {
            Value::Table(table) => check(table.bytes, true, depth + 1)?,
            Value::Array(array) => check(array.bytes, false, depth + 1)?,
            _ => {}
        }
    }
    Ok(())
}

/// A table that is being made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableBuf {
    bytes: Vec<u8>,
}

impl TableBuf {
    /// Appends an entry. Names are at most 255 bytes long and have no zero.
    pub fn put(&mut self, name: &str, value: &Value<'_>) -> Result<(), Error> {
        let before = self.bytes.len();
        let mut writer = Writer::new(&mut self.bytes);
        let done = name.put(&mut writer).and_then(|()| value.put(&mut writer));
        if done.is_err() || name.contains('\0') {
            self.bytes.truncate(before);
            return Err(Error::Caller { what: "a name in a table has at most 255 bytes, no zero" });
        }
        Ok(())
    }

    /// The table so far.
    #[must_use]
    pub fn as_table(&self) -> Table<'_> {
        Table { bytes: &self.bytes }
    }
}

/// An array that is being made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArrayBuf {
    bytes: Vec<u8>,
}

impl ArrayBuf {
    /// Appends a value.
    pub fn push(&mut self, value: &Value<'_>) -> Result<(), Error> {
        let before = self.bytes.len();
        value.put(&mut Writer::new(&mut self.bytes)).inspect_err(|_| self.bytes.truncate(before))
    }

    /// The array so far.
    #[must_use]
    pub fn as_array(&self) -> Array<'_> {
        Array { bytes: &self.bytes }
    }
}
