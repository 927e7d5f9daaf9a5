//! Bytes as text (RFC 4648 §4).

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text of bytes, with padding.
#[must_use]
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| group.get(at).copied().map_or(0, u32::from);
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = DIGITS.get((bits >> (18 - 6 * at) & 63) as usize).copied().unwrap_or(b'A');
            text.push(if at > group.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

fn value(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

/// The bytes of a text, which may have white space as XML allows it; `None` where it is no such
/// text.
#[must_use]
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count, mut padding) = (0_u32, 0_usize, 0_usize);
    for digit in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        if digit == b'=' {
            padding += 1;
            continue;
        }
        if padding > 0 {
            return None;
        }
        bits = bits << 6 | value(digit)?;
        count += 1;
        if count == 4 {
            bytes.extend_from_slice(bits.to_be_bytes().get(1..)?);
            (bits, count) = (0, 0);
        }
    }
    match (count, padding) {
        (0, 0) => {}
        (2, 2) if bits & 15 == 0 => bytes.push(u8::try_from(bits >> 4).ok()?),
        (3, 1) if bits & 3 == 0 => {
            bytes.extend_from_slice((bits >> 2).to_be_bytes().get(2..)?);
        }
        _ => return None,
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn examples_of_the_standard() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(decode(" Zm\n9v "), Some(b"foo".to_vec()));
        for text in ["Z", "Zg", "Zg=", "Zh==", "Zm9=", "Z===", "====", "Zg==Zg==", "Zm9v=", "é"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes: Vec<u8>) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
