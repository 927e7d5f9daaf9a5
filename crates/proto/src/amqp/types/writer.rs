//! Bytes of values, each in its shortest encoding.

use super::code;
use super::value::{Array, Value};

/// Appends a value.
pub fn encode(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(code::NULL),
        Value::Bool(true) => out.push(code::TRUE),
        Value::Bool(false) => out.push(code::FALSE),
        Value::Uint(0) => out.push(code::UINT_0),
        Value::Ulong(0) => out.push(code::ULONG_0),
        Value::Uint(value) => match u8::try_from(*value) {
            Ok(value) => out.extend([code::UINT_SMALL, value]),
            Err(_) => wide(code::UINT, &value.to_be_bytes(), out),
        },
        Value::Ulong(value) => match u8::try_from(*value) {
            Ok(value) => out.extend([code::ULONG_SMALL, value]),
            Err(_) => wide(code::ULONG, &value.to_be_bytes(), out),
        },
        Value::Int(value) => match i8::try_from(*value) {
            Ok(value) => out.extend([code::INT_SMALL, value.cast_unsigned()]),
            Err(_) => wide(code::INT, &value.to_be_bytes(), out),
        },
        Value::Long(value) => match i8::try_from(*value) {
            Ok(value) => out.extend([code::LONG_SMALL, value.cast_unsigned()]),
            Err(_) => wide(code::LONG, &value.to_be_bytes(), out),
        },
        Value::Binary(bytes) => variable([code::BINARY_8, code::BINARY_32], bytes, out),
        Value::String(text) => variable([code::STRING_8, code::STRING_32], text.as_bytes(), out),
        Value::Symbol(name) => {
            variable([code::SYMBOL_8, code::SYMBOL_32], name.as_str().as_bytes(), out);
        }
        Value::List(items) if items.is_empty() => out.push(code::LIST_0),
        Value::List(items) => {
            let mut body = Vec::new();
            items.iter().for_each(|item| encode(item, &mut body));
            compound([code::LIST_8, code::LIST_32], items.len(), &body, out);
        }
        Value::Map(pairs) => {
            let mut body = Vec::new();
            for (key, value) in pairs {
                encode(key, &mut body);
                encode(value, &mut body);
            }
            compound([code::MAP_8, code::MAP_32], pairs.len() * 2, &body, out);
        }
        Value::Array(array) => {
            let body = elements(array);
            compound([code::ARRAY_8, code::ARRAY_32], array.items().len(), &body, out);
        }
        Value::Described(described) => {
            out.push(code::DESCRIBED);
            encode(&described.descriptor, out);
            encode(&described.value, out);
        }
        value => {
            let (code, bytes) = fixed(value);
            out.push(code);
            out.extend_from_slice(bytes.as_slice());
        }
    }
}

/// The constructor of an array's elements, and these in their widest encoding.
fn elements(array: &Array) -> Vec<u8> {
    let mut body = Vec::new();
    for descriptor in array.descriptors() {
        body.push(code::DESCRIBED);
        encode(descriptor, &mut body);
    }
    body.push(array.code());
    for item in array.items() {
        let mut inner = Vec::new();
        let count = match item {
            Value::Null => continue,
            Value::Binary(bytes) => {
                inner.extend_from_slice(bytes);
                None
            }
            Value::String(text) => {
                inner.extend_from_slice(text.as_bytes());
                None
            }
            Value::Symbol(name) => {
                inner.extend_from_slice(name.as_str().as_bytes());
                None
            }
            Value::List(items) => {
                items.iter().for_each(|item| encode(item, &mut inner));
                Some(items.len())
            }
            Value::Map(pairs) => {
                for (key, value) in pairs {
                    encode(key, &mut inner);
                    encode(value, &mut inner);
                }
                Some(pairs.len() * 2)
            }
            Value::Array(array) => {
                inner = elements(array);
                Some(array.items().len())
            }
            item => {
                body.extend_from_slice(fixed(item).1.as_slice());
                continue;
            }
        };
        let extra = if count.is_some() { 4 } else { 0 };
        body.extend_from_slice(&len32(inner.len() + extra));
        if let Some(count) = count {
            body.extend_from_slice(&len32(count));
        }
        body.append(&mut inner);
    }
    body
}

/// Up to sixteen bytes.
struct Fixed([u8; 16], usize);

impl Fixed {
    fn as_slice(&self) -> &[u8] {
        self.0.get(..self.1).unwrap_or_default()
    }
}

/// The widest encoding of a value of a type that has one width at most: its code and its bytes. For
/// other types it is null.
fn fixed(value: &Value) -> (u8, Fixed) {
    fn of<const N: usize>(code: u8, bytes: [u8; N]) -> (u8, Fixed) {
        let mut all = [0; 16];
        all.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
        (code, Fixed(all, N))
    }
    match value {
        Value::Bool(value) => of(code::BOOLEAN, [u8::from(*value)]),
        Value::Ubyte(value) => of(code::UBYTE, [*value]),
        Value::Byte(value) => of(code::BYTE, value.to_be_bytes()),
        Value::Ushort(value) => of(code::USHORT, value.to_be_bytes()),
        Value::Short(value) => of(code::SHORT, value.to_be_bytes()),
        Value::Uint(value) => of(code::UINT, value.to_be_bytes()),
        Value::Int(value) => of(code::INT, value.to_be_bytes()),
        Value::Ulong(value) => of(code::ULONG, value.to_be_bytes()),
        Value::Long(value) => of(code::LONG, value.to_be_bytes()),
        Value::Float(value) => of(code::FLOAT, value.to_be_bytes()),
        Value::Double(value) => of(code::DOUBLE, value.to_be_bytes()),
        Value::Char(value) => of(code::CHAR, u32::from(*value).to_be_bytes()),
        Value::Timestamp(value) => of(code::TIMESTAMP, value.to_be_bytes()),
        Value::Decimal32(bytes) => of(code::DECIMAL_32, *bytes),
        Value::Decimal64(bytes) => of(code::DECIMAL_64, *bytes),
        Value::Decimal128(bytes) => of(code::DECIMAL_128, *bytes),
        Value::Uuid(bytes) => of(code::UUID, *bytes),
        _ => of(code::NULL, []),
    }
}

fn wide(code: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(code);
    out.extend_from_slice(bytes);
}

/// Bytes behind their length, in the shorter of both encodings where they fit.
pub(super) fn variable([short, long]: [u8; 2], bytes: &[u8], out: &mut Vec<u8>) {
    match u8::try_from(bytes.len()) {
        Ok(len) => out.extend([short, len]),
        Err(_) => wide(long, &len32(bytes.len()), out),
    }
    out.extend_from_slice(bytes);
}

/// Values behind the length of their bytes and how many they are.
pub(super) fn compound([short, long]: [u8; 2], count: usize, body: &[u8], out: &mut Vec<u8>) {
    match (u8::try_from(body.len() + 1), u8::try_from(count)) {
        (Ok(len), Ok(count)) => out.extend([short, len, count]),
        _ => {
            wide(long, &len32(body.len() + 4), out);
            out.extend_from_slice(&len32(count));
        }
    }
    out.extend_from_slice(body);
}

/// What is written is made here, and never has 4 GiB.
fn len32(len: usize) -> [u8; 4] {
    u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes()
}
