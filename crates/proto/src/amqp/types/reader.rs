//! Values from bytes.

use bytes::Bytes;

use super::code;
use super::value::{Array, Map, Symbol, Value};
use crate::Error;

/// Values within values: deeper ones are refused, as each costs stack.
pub const MAX_DEPTH: u8 = 32;
/// Values that one reader makes: each takes some forty bytes here and may take one, or in an array
/// none, on the wire.
pub const MAX_VALUES: u32 = 1 << 16;

/// Reads values from a slice, one after the other.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    depth: u8,
    values: u32,
}

impl<'a> Reader<'a> {
    /// From the beginning of the bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, depth: 0, values: MAX_VALUES }
    }

    /// What was not read yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Refuses bytes that are left.
    pub fn finish(&self, what: &'static str) -> Result<(), Error> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(Error::Peer { what, value: left as u64 }),
        }
    }

    /// The next value with all that is in it.
    pub fn value(&mut self) -> Result<Value, Error> {
        match self.byte()? {
            code::DESCRIBED => {
                let deeper = &mut self.deeper()?;
                let descriptor = deeper.value()?;
                let value = deeper.value()?;
                self.leave(deeper);
                Ok(Value::described(descriptor, value))
            }
            code => self.value_of(code),
        }
    }

    /// Passes over the next value and returns its bytes. What is in a compound is not looked at.
    pub fn skip(&mut self) -> Result<&'a [u8], Error> {
        let before = self.rest;
        // A descriptor may be described itself: as many as there may be values in values.
        let mut wanted = 1_u32;
        while wanted > 0 {
            wanted -= 1;
            self.count_one()?;
            match self.byte()? {
                code::DESCRIBED if wanted < MAX_DEPTH.into() => wanted += 2,
                code::DESCRIBED => return Err(too_deep(wanted)),
                code => self.skip_of(code)?,
            }
        }
        let len = before.len() - self.rest.len();
        before.get(..len).ok_or(ENDED)
    }

    /// The descriptor of the next value, which follows: an ulong, or a symbol. `None` where the
    /// next value has none, which then is still to be read.
    pub fn descriptor(&mut self) -> Result<Option<Value>, Error> {
        if self.rest.first() != Some(&code::DESCRIBED) {
            return Ok(None);
        }
        self.byte()?;
        match self.byte()? {
            // AMQP 1.0 Part 1 §1.5: no other descriptor has a meaning.
            code @ (code::ULONG
            | code::ULONG_SMALL
            | code::ULONG_0
            | code::SYMBOL_8
            | code::SYMBOL_32) => self.value_of(code).map(Some),
            code => Err(Error::Peer { what: "type of a descriptor", value: code.into() }),
        }
    }

    /// A list's length in values, and a reader of what is in it; `None` for null. The list is
    /// passed.
    pub(super) fn list(&mut self) -> Result<Option<(u32, Self)>, Error> {
        match self.byte()? {
            code::NULL => Ok(None),
            code::LIST_0 => Ok(Some((0, Self { rest: &[], ..self.clone() }))),
            code @ (code::LIST_8 | code::LIST_32) => {
                let mut deeper = self.deeper()?;
                let (count, items) = self.compound(code == code::LIST_8)?;
                deeper.rest = items;
                Ok(Some((count, deeper)))
            }
            code => Err(Error::Peer { what: "type where a list has to be", value: code.into() }),
        }
    }

    /// The content of the next value, a binary; it is not copied.
    pub fn binary(&mut self) -> Result<&'a [u8], Error> {
        match self.byte()? {
            code::BINARY_8 => self.variable(true),
            code::BINARY_32 => self.variable(false),
            code => Err(Error::Peer { what: "type where a binary has to be", value: code.into() }),
        }
    }

    /// One more value, of the encoding `code`.
    fn value_of(&mut self, code: u8) -> Result<Value, Error> {
        self.count_one()?;
        Ok(match code {
            code::NULL => Value::Null,
            code::TRUE => Value::Bool(true),
            code::FALSE => Value::Bool(false),
            code::UINT_0 => Value::Uint(0),
            code::ULONG_0 => Value::Ulong(0),
            code::LIST_0 => Value::List(Vec::new()),
            code::BINARY_8 | code::BINARY_32 => {
                Value::Binary(Bytes::copy_from_slice(self.variable(code == code::BINARY_8)?))
            }
            code::STRING_8 | code::STRING_32 => {
                let text = std::str::from_utf8(self.variable(code == code::STRING_8)?);
                let at = |error: std::str::Utf8Error| error.valid_up_to() as u64;
                Value::String(
                    text.map_err(|error| Error::Peer {
                        what: "a string that is no UTF-8 from some byte on",
                        value: at(error),
                    })?
                    .to_owned(),
                )
            }
            code::SYMBOL_8 | code::SYMBOL_32 => {
                let bytes = self.variable(code == code::SYMBOL_8)?;
                let text = std::str::from_utf8(bytes).ok();
                let symbol = text.and_then(|text| Symbol::of(text).ok());
                let what = "a symbol that is not ASCII, of so many bytes";
                Value::Symbol(symbol.ok_or(Error::Peer { what, value: bytes.len() as u64 })?)
            }
            code::LIST_8 | code::LIST_32 => {
                let (count, items) = self.compound(code == code::LIST_8)?;
                Value::List(self.within(items, |reader| {
                    (0..count).map(|_| reader.value()).collect::<Result<Vec<_>, _>>()
                })?)
            }
            code::MAP_8 | code::MAP_32 => {
                let (count, items) = self.compound(code == code::MAP_8)?;
                Value::Map(self.within(items, |reader| pairs(reader, count))?)
            }
            code::ARRAY_8 | code::ARRAY_32 => {
                let (count, items) = self.compound(code == code::ARRAY_8)?;
                Value::Array(self.within(items, |reader| array(reader, count))?)
            }
            _ => self.fixed(code)?,
        })
    }

    /// A value of a width that its encoding says.
    fn fixed(&mut self, code: u8) -> Result<Value, Error> {
        Ok(match code {
            code::UBYTE => Value::Ubyte(self.byte()?),
            code::BYTE => Value::Byte(self.byte()?.cast_signed()),
            code::UINT_SMALL => Value::Uint(self.byte()?.into()),
            code::ULONG_SMALL => Value::Ulong(self.byte()?.into()),
            code::INT_SMALL => Value::Int(self.byte()?.cast_signed().into()),
            code::LONG_SMALL => Value::Long(self.byte()?.cast_signed().into()),
            code::BOOLEAN => match self.byte()? {
                0 => Value::Bool(false),
                1 => Value::Bool(true),
                byte => return Err(Error::Peer { what: "a boolean", value: byte.into() }),
            },
            code::USHORT => Value::Ushort(u16::from_be_bytes(self.array()?)),
            code::SHORT => Value::Short(i16::from_be_bytes(self.array()?)),
            code::UINT => Value::Uint(u32::from_be_bytes(self.array()?)),
            code::INT => Value::Int(i32::from_be_bytes(self.array()?)),
            code::FLOAT => Value::Float(f32::from_be_bytes(self.array()?)),
            code::CHAR => {
                let value = u32::from_be_bytes(self.array()?);
                let what = "a character that Unicode has not";
                Value::Char(char::from_u32(value).ok_or(Error::Peer { what, value: value.into() })?)
            }
            code::DECIMAL_32 => Value::Decimal32(self.array()?),
            code::ULONG => Value::Ulong(u64::from_be_bytes(self.array()?)),
            code::LONG => Value::Long(i64::from_be_bytes(self.array()?)),
            code::DOUBLE => Value::Double(f64::from_be_bytes(self.array()?)),
            code::TIMESTAMP => Value::Timestamp(i64::from_be_bytes(self.array()?)),
            code::DECIMAL_64 => Value::Decimal64(self.array()?),
            code::DECIMAL_128 => Value::Decimal128(self.array()?),
            code::UUID => Value::Uuid(self.array()?),
            code => return Err(Error::Peer { what: "constructor of a value", value: code.into() }),
        })
    }

    /// Passes over a value of the encoding `code`, whose first four bits say its width
    /// (AMQP 1.0 Part 1 §1.3).
    fn skip_of(&mut self, code: u8) -> Result<(), Error> {
        let width = match code >> 4 {
            4 => 0,
            5 => 1,
            6 => 2,
            7 => 4,
            8 => 8,
            9 => 16,
            0xa | 0xc | 0xe => return self.variable(true).map(|_| ()),
            0xb | 0xd | 0xf => return self.variable(false).map(|_| ()),
            _ => return Err(Error::Peer { what: "constructor of a value", value: code.into() }),
        };
        self.take(width).map(|_| ())
    }

    /// What is in a compound or an array: how many values it says, and their bytes.
    fn compound(&mut self, is_short: bool) -> Result<(u32, &'a [u8]), Error> {
        let mut inner = Self { rest: self.variable(is_short)?, ..self.clone() };
        let count = inner.len(is_short)?;
        Ok((count, inner.rest))
    }

    /// Reads with `read` what is in a compound, all of it.
    fn within<T>(
        &mut self,
        items: &'a [u8],
        read: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut deeper = self.deeper()?;
        deeper.rest = items;
        let read = read(&mut deeper)?;
        deeper.finish("bytes behind the last value of a compound")?;
        self.values = deeper.values;
        Ok(read)
    }

    fn deeper(&self) -> Result<Self, Error> {
        if self.depth >= MAX_DEPTH {
            return Err(too_deep(self.depth.into()));
        }
        Ok(Self { depth: self.depth + 1, ..self.clone() })
    }

    fn leave(&mut self, deeper: &Self) {
        self.rest = deeper.rest;
        self.values = deeper.values;
    }

    fn count_one(&mut self) -> Result<(), Error> {
        let what = "values in one value";
        let limit = MAX_VALUES.into();
        self.values =
            self.values.checked_sub(1).ok_or(Error::Limit { what, value: limit + 1, limit })?;
        Ok(())
    }

    fn variable(&mut self, is_short: bool) -> Result<&'a [u8], Error> {
        let len = self.len(is_short)?;
        self.take(usize::try_from(len).map_err(|_| ENDED)?)
    }

    fn len(&mut self, is_short: bool) -> Result<u32, Error> {
        if is_short { self.byte().map(Into::into) } else { self.array().map(u32::from_be_bytes) }
    }

    fn byte(&mut self) -> Result<u8, Error> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(ENDED)?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(ENDED)?;
        self.rest = rest;
        Ok(bytes)
    }
}

const ENDED: Error = Error::Truncated { what: "a value" };

fn too_deep(value: u32) -> Error {
    Error::Limit { what: "values within values", value: value.into(), limit: MAX_DEPTH.into() }
}

fn pairs(reader: &mut Reader<'_>, count: u32) -> Result<Map, Error> {
    if !count.is_multiple_of(2) {
        return Err(Error::Peer { what: "keys and values of a map", value: count.into() });
    }
    (0..count / 2).map(|_| Ok((reader.value()?, reader.value()?))).collect()
}

fn array(reader: &mut Reader<'_>, count: u32) -> Result<Array, Error> {
    let mut descriptors = Vec::new();
    let code = loop {
        match reader.byte()? {
            code::DESCRIBED if descriptors.len() < usize::from(MAX_DEPTH) => {
                descriptors.push(reader.value()?);
            }
            code => break code,
        }
    };
    let widest = match code {
        code::TRUE | code::FALSE => code::BOOLEAN,
        code::UINT_0 | code::UINT_SMALL => code::UINT,
        code::ULONG_0 | code::ULONG_SMALL => code::ULONG,
        code::INT_SMALL => code::INT,
        code::LONG_SMALL => code::LONG,
        code::BINARY_8 => code::BINARY_32,
        code::STRING_8 => code::STRING_32,
        code::SYMBOL_8 => code::SYMBOL_32,
        code::LIST_0 | code::LIST_8 => code::LIST_32,
        code::MAP_8 => code::MAP_32,
        code::ARRAY_8 => code::ARRAY_32,
        code => code,
    };
    if !is_known(widest) {
        return Err(Error::Peer { what: "constructor of an array's values", value: code.into() });
    }
    let items = (0..count).map(|_| reader.value_of(code)).collect::<Result<Vec<_>, _>>()?;
    Ok(Array::read(descriptors, widest, items))
}

/// Whether a type has this as its widest encoding.
fn is_known(code: u8) -> bool {
    matches!(
        code,
        code::NULL
            | code::BOOLEAN
            | code::UBYTE
            | code::BYTE
            | code::USHORT
            | code::SHORT
            | code::UINT
            | code::INT
            | code::FLOAT
            | code::CHAR
            | code::DECIMAL_32
            | code::ULONG
            | code::LONG
            | code::DOUBLE
            | code::TIMESTAMP
            | code::DECIMAL_64
            | code::DECIMAL_128
            | code::UUID
            | code::BINARY_32
            | code::STRING_32
            | code::SYMBOL_32
            | code::LIST_32
            | code::MAP_32
            | code::ARRAY_32
    )
}
