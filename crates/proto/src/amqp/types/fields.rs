//! Composite types: lists whose values are fields with names (AMQP 1.0 Part 1 §1.4). Fields at the
//! end that are null may be left out, and null stands for a field's default.

use bytes::Bytes;

use super::code;
use super::reader::Reader;
use super::value::{Array, Map, Symbol, Value};
use super::writer::{compound, encode, variable};
use crate::Error;

/// The fields of one composite value, in order. Each of the methods takes the next, and has `None`
/// for null and for what is left out.
#[derive(Debug)]
pub struct Fields<'a> {
    reader: Reader<'a>,
    left: u32,
    what: &'static str,
}

impl<'a> Fields<'a> {
    /// Those of the next value, a list, which the reader then has passed. Errors name `what`.
    pub fn open(reader: &mut Reader<'a>, what: &'static str) -> Result<Self, Error> {
        let list = reader.list()?;
        let (left, reader) = list.ok_or(Error::Peer { what, value: code::NULL.into() })?;
        Ok(Self { reader, left, what })
    }

    /// Refuses fields that the type does not have.
    pub fn finish(self) -> Result<(), Error> {
        if self.left > 0 {
            return Err(Error::Peer { what: self.what, value: self.left.into() });
        }
        self.reader.finish(self.what)
    }

    /// A value of any type.
    pub fn value(&mut self) -> Result<Option<Value>, Error> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        match self.reader.value()? {
            Value::Null => Ok(None),
            value => Ok(Some(value)),
        }
    }

    /// The reader at the next value, for who reads it without a [`Value`]; `None` where it is null
    /// or left out.
    pub fn reader(&mut self) -> Result<Option<&mut Reader<'a>>, Error> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        if self.reader.rest().first() == Some(&code::NULL) {
            self.reader.skip()?;
            return Ok(None);
        }
        Ok(Some(&mut self.reader))
    }

    fn typed<T>(&mut self, pick: impl FnOnce(Value) -> Option<T>) -> Result<Option<T>, Error> {
        let what = self.what;
        let place = self.left;
        match self.value()? {
            None => Ok(None),
            Some(value) => match pick(value) {
                Some(value) => Ok(Some(value)),
                None => Err(Error::Peer { what, value: place.into() }),
            },
        }
    }

    /// A boolean.
    pub fn boolean(&mut self) -> Result<Option<bool>, Error> {
        self.typed(|value| if let Value::Bool(value) = value { Some(value) } else { None })
    }

    /// An ubyte.
    pub fn ubyte(&mut self) -> Result<Option<u8>, Error> {
        self.typed(|value| if let Value::Ubyte(value) = value { Some(value) } else { None })
    }

    /// An ushort.
    pub fn ushort(&mut self) -> Result<Option<u16>, Error> {
        self.typed(|value| if let Value::Ushort(value) = value { Some(value) } else { None })
    }

    /// An uint.
    pub fn uint(&mut self) -> Result<Option<u32>, Error> {
        self.typed(|value| if let Value::Uint(value) = value { Some(value) } else { None })
    }

    /// An ulong.
    pub fn ulong(&mut self) -> Result<Option<u64>, Error> {
        self.typed(|value| if let Value::Ulong(value) = value { Some(value) } else { None })
    }

    /// A timestamp, in milliseconds since 1970.
    pub fn timestamp(&mut self) -> Result<Option<i64>, Error> {
        self.typed(|value| if let Value::Timestamp(value) = value { Some(value) } else { None })
    }

    /// A string.
    pub fn string(&mut self) -> Result<Option<String>, Error> {
        self.typed(|value| if let Value::String(value) = value { Some(value) } else { None })
    }

    /// A symbol.
    pub fn symbol(&mut self) -> Result<Option<Symbol>, Error> {
        self.typed(|value| if let Value::Symbol(value) = value { Some(value) } else { None })
    }

    /// Bytes.
    pub fn binary(&mut self) -> Result<Option<Bytes>, Error> {
        self.typed(|value| if let Value::Binary(value) = value { Some(value) } else { None })
    }

    /// A map; without one it has no pairs.
    pub fn map(&mut self) -> Result<Map, Error> {
        let map =
            self.typed(|value| if let Value::Map(value) = value { Some(value) } else { None });
        map.map(Option::unwrap_or_default)
    }

    /// A field of several symbols: none, one by itself, or an array (AMQP 1.0 Part 1 §1.4).
    pub fn symbols(&mut self) -> Result<Vec<Symbol>, Error> {
        let symbols = self.typed(|value| match value {
            Value::Symbol(symbol) => Some(vec![symbol]),
            Value::Array(array) => array
                .items()
                .iter()
                .map(|item| if let Value::Symbol(symbol) = item { Some(symbol) } else { None })
                .map(Option::<&Symbol>::cloned)
                .collect(),
            _ => None,
        })?;
        Ok(symbols.unwrap_or_default())
    }
}

/// A field that has to be there: `what` says which was not.
pub fn required<T>(field: Option<T>, what: &'static str) -> Result<T, Error> {
    field.ok_or(Error::Peer { what, value: code::NULL.into() })
}

/// Writes the fields of one composite value in order.
#[derive(Debug, Default)]
pub struct FieldsWriter {
    body: Vec<u8>,
    count: usize,
    /// Both as they were behind the last field that was not null.
    kept: (usize, usize),
}

impl FieldsWriter {
    /// A value, or null.
    pub fn value(&mut self, value: Option<&Value>) -> &mut Self {
        self.count += 1;
        match value {
            None | Some(Value::Null) => self.body.push(code::NULL),
            Some(value) => {
                encode(value, &mut self.body);
                self.keep();
            }
        }
        self
    }

    fn keep(&mut self) {
        self.kept = (self.body.len(), self.count);
    }

    /// What `write` appends, a value, or null.
    pub fn with<T>(&mut self, value: Option<T>, write: impl FnOnce(T, &mut Vec<u8>)) -> &mut Self {
        let Some(value) = value else { return self.value(None) };
        self.count += 1;
        write(value, &mut self.body);
        self.keep();
        self
    }

    /// A boolean, or null.
    pub fn boolean(&mut self, value: Option<bool>) -> &mut Self {
        self.value(value.map(Value::Bool).as_ref())
    }

    /// A boolean whose default is false.
    pub fn flag(&mut self, value: bool) -> &mut Self {
        self.boolean(value.then_some(true))
    }

    /// An ubyte, or null.
    pub fn ubyte(&mut self, value: Option<u8>) -> &mut Self {
        self.value(value.map(Value::Ubyte).as_ref())
    }

    /// An ushort, or null.
    pub fn ushort(&mut self, value: Option<u16>) -> &mut Self {
        self.value(value.map(Value::Ushort).as_ref())
    }

    /// An uint, or null.
    pub fn uint(&mut self, value: Option<u32>) -> &mut Self {
        self.value(value.map(Value::Uint).as_ref())
    }

    /// An ulong, or null.
    pub fn ulong(&mut self, value: Option<u64>) -> &mut Self {
        self.value(value.map(Value::Ulong).as_ref())
    }

    /// A timestamp, or null.
    pub fn timestamp(&mut self, value: Option<i64>) -> &mut Self {
        self.value(value.map(Value::Timestamp).as_ref())
    }

    /// A string, or null.
    pub fn string(&mut self, value: Option<&str>) -> &mut Self {
        self.with(value, |text, out| {
            variable([code::STRING_8, code::STRING_32], text.as_bytes(), out);
        })
    }

    /// A symbol, or null.
    pub fn symbol(&mut self, value: Option<&Symbol>) -> &mut Self {
        self.with(value, |name, out| {
            variable([code::SYMBOL_8, code::SYMBOL_32], name.as_str().as_bytes(), out);
        })
    }

    /// Bytes, or null.
    pub fn binary(&mut self, value: Option<&[u8]>) -> &mut Self {
        self.with(value, |bytes, out| variable([code::BINARY_8, code::BINARY_32], bytes, out))
    }

    /// A map, or null where it has no pairs.
    pub fn map(&mut self, value: &Map) -> &mut Self {
        let map = (!value.is_empty()).then(|| Value::Map(value.clone()));
        self.value(map.as_ref())
    }

    /// Several symbols, or null where there is none.
    pub fn symbols(&mut self, value: &[Symbol]) -> &mut Self {
        let array = (!value.is_empty()).then(|| Value::Array(Array::of_symbols(value)));
        self.value(array.as_ref())
    }

    /// Appends the composite value; fields at its end that are null are left out.
    pub fn finish(&self, descriptor: u64, out: &mut Vec<u8>) {
        out.push(code::DESCRIBED);
        encode(&Value::Ulong(descriptor), out);
        let (len, count) = self.kept;
        if count == 0 {
            return out.push(code::LIST_0);
        }
        let body = self.body.get(..len).unwrap_or(&self.body);
        compound([code::LIST_8, code::LIST_32], count, body, out);
    }
}
