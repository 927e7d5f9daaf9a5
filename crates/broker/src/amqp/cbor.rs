//! Values of AMQP as deterministic CBOR (RFC 8949 §4.2.1), for consumers of protocols that know
//! only bytes.

use proto::Error;
use proto::amqp::types::Value;
use proto::cbor::Encoder;

/// Tag of a UUID (the registry of CBOR's tags).
const TAG_UUID: u64 = 37;
/// Tag of seconds since 1970 (RFC 8949 §3.4.2).
const TAG_EPOCH: u64 = 1;

/// A value; descriptors are left out.
pub(super) fn encode(value: &Value) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    put(value, &mut out)?;
    Ok(out)
}

/// Several values as an array.
pub(super) fn encode_all(values: &[Value]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    list(values, &mut out)?;
    Ok(out)
}

fn list(items: &[Value], out: &mut Vec<u8>) -> Result<(), Error> {
    Encoder::new(&mut *out).array(items.len() as u64)?;
    items.iter().try_for_each(|item| put(item, out))
}

fn put(value: &Value, out: &mut Vec<u8>) -> Result<(), Error> {
    let mut to = Encoder::new(&mut *out);
    match value {
        Value::Null => to.null(),
        Value::Bool(value) => to.boolean(*value),
        Value::Ubyte(value) => to.unsigned((*value).into()),
        Value::Ushort(value) => to.unsigned((*value).into()),
        Value::Uint(value) => to.unsigned((*value).into()),
        Value::Ulong(value) => to.unsigned(*value),
        Value::Byte(value) => to.integer((*value).into()),
        Value::Short(value) => to.integer((*value).into()),
        Value::Int(value) => to.integer((*value).into()),
        Value::Long(value) => to.integer(*value),
        Value::Float(value) => to.float((*value).into()),
        Value::Double(value) => to.float(*value),
        Value::Decimal32(bytes) => to.bytes(bytes),
        Value::Decimal64(bytes) => to.bytes(bytes),
        Value::Decimal128(bytes) => to.bytes(bytes),
        Value::Char(value) => to.text(value.encode_utf8(&mut [0; 4])),
        Value::Timestamp(ms) => {
            to.tag(TAG_EPOCH)?;
            if ms % 1000 == 0 { to.integer(ms / 1000) } else { to.float(*ms as f64 / 1000.0) }
        }
        Value::Uuid(bytes) => {
            to.tag(TAG_UUID)?;
            to.bytes(bytes)
        }
        Value::Binary(bytes) => to.bytes(bytes),
        Value::String(text) => to.text(text),
        Value::Symbol(name) => to.text(name.as_str()),
        Value::List(items) => list(items, out),
        Value::Array(array) => list(array.items(), out),
        Value::Described(described) => put(&described.value, out),
        Value::Map(pairs) => {
            let mut encoded = Vec::with_capacity(pairs.len());
            for (key, value) in pairs {
                encoded.push((encode(key)?, encode(value)?));
            }
            // RFC 8949 §4.2.1: keys in the order of their bytes, each once.
            encoded.sort();
            encoded.dedup_by(|later, earlier| later.0 == earlier.0);
            to.map(encoded.len() as u64)?;
            encoded.iter().for_each(|(key, value)| {
                out.extend_from_slice(key);
                out.extend_from_slice(value);
            });
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_sorted_and_types_are_those_of_cbor() {
        let map = Value::Map(vec![
            (Value::string("b"), Value::Ulong(300)),
            (Value::symbol("a"), Value::List(vec![Value::Int(-1), Value::Bool(true)])),
        ]);
        let expected = [0xa2, 0x61, b'a', 0x82, 0x20, 0xf5, 0x61, b'b', 0x19, 0x01, 0x2c];
        assert_eq!(encode(&map), Ok(expected.to_vec()));
        assert_eq!(encode(&Value::Timestamp(2000)), Ok(vec![0xc1, 0x02]));
        assert_eq!(encode_all(&[Value::Null]), Ok(vec![0x81, 0xf6]));
    }
}
