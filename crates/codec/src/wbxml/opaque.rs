//! Opaque data of known kinds, as text and back.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// What opaque data of an element or attribute is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text if it is text, else base64.
    Any,
    /// A number, the highest byte first (OMA-IMPS-WV-CSP_WBXML, "Integer").
    Integer,
    /// Digits of year to second, two a byte, zeros at the end left out (WAP-167 §8.2.2).
    Date,
    /// Date and time in 48 bits (OMA-IMPS-WV-CSP_WBXML, "DateTime").
    WvDate,
    /// Bytes, written as base64; in documents the same text may stand for itself.
    Base64,
    /// Bytes, in documents always base64.
    Binary,
    /// A message of mail where it is no text, written as base64; all else is text.
    Message,
    /// Another WBXML document, or text.
    Document,
}

impl Kind {
    pub(super) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "text" => Self::Any,
            "integer" => Self::Integer,
            "date" => Self::Date,
            "wv-date" => Self::WvDate,
            "base64" => Self::Base64,
            "binary" => Self::Binary,
            "message" => Self::Message,
            "document" => Self::Document,
            _ => return None,
        })
    }

    /// The text that the data stands for.
    pub(super) fn decode(self, data: &[u8]) -> Result<String, &'static str> {
        match self {
            Self::Integer => integer(data).ok_or("opaque data that is no number of 32 bits"),
            Self::Date => date(data).ok_or("opaque data that is no date"),
            Self::WvDate => wv_date(data).ok_or("opaque data that is no date and time"),
            Self::Base64 | Self::Binary => Ok(STANDARD.encode(data)),
            Self::Any | Self::Message | Self::Document => Ok(match std::str::from_utf8(data) {
                Ok(text) if crate::xml::is_text(text) => text.to_owned(),
                _ => STANDARD.encode(data),
            }),
        }
    }

    /// The data for a text, if decoding it gives exactly this text back.
    pub(super) fn encode(self, text: &str) -> Option<Vec<u8>> {
        let data = match self {
            Self::Integer => {
                let bytes = text.parse::<u32>().ok()?.to_be_bytes();
                let zeros = bytes.iter().take_while(|byte| **byte == 0).count().min(3);
                bytes[zeros..].to_vec()
            }
            Self::Date => packed_date(text)?,
            Self::WvDate => packed_wv_date(text)?,
            Self::Binary => STANDARD.decode(text).ok().filter(|data| !data.is_empty())?,
            Self::Message => STANDARD.decode(text).ok().filter(|data| begins_message(data))?,
            Self::Any | Self::Base64 | Self::Document => return None,
        };
        (self.decode(&data).as_deref() == Ok(text)).then_some(data)
    }
}

/// Whether a field of a head stands first (RFC 5322 §2.2). A text of one word may well be base64 of
/// something, but not of this.
fn begins_message(data: &[u8]) -> bool {
    let name = data.iter().take_while(|byte| byte.is_ascii_graphic() && **byte != b':').count();
    name > 0 && data.get(name) == Some(&b':')
}

fn integer(data: &[u8]) -> Option<String> {
    if data.is_empty() || data.len() > 4 {
        return None;
    }
    let value = data.iter().fold(0_u32, |value, byte| value << 8 | u32::from(*byte));
    Some(value.to_string())
}

fn date(data: &[u8]) -> Option<String> {
    if !(4..=7).contains(&data.len()) {
        return None;
    }
    let mut digits = String::new();
    for at in 0..7 {
        let byte = data.get(at).copied().unwrap_or(0);
        if byte >> 4 > 9 || byte & 15 > 9 {
            return None;
        }
        digits.push(char::from(b'0' + (byte >> 4)));
        digits.push(char::from(b'0' + (byte & 15)));
    }
    let part = |from: usize, to: usize| &digits[from..to];
    Some(format!(
        "{}-{}-{}T{}:{}:{}Z",
        part(0, 4),
        part(4, 6),
        part(6, 8),
        part(8, 10),
        part(10, 12),
        part(12, 14)
    ))
}

fn packed_date(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).map(|byte| byte - b'0').collect();
    if digits.len() != 14 || text.len() != 20 {
        return None;
    }
    let mut data: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    while data.len() > 4 && data.last() == Some(&0) {
        data.pop();
    }
    Some(data)
}

fn wv_date(data: &[u8]) -> Option<String> {
    let bytes: &[u8; 6] = data.try_into().ok()?;
    let bits = bytes.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    let part = |shift: u32, len: u32| bits >> shift & ((1 << len) - 1);
    let zone = match part(0, 8) {
        0 => String::new(),
        zone => String::from(char::from(u8::try_from(zone).ok().filter(u8::is_ascii_uppercase)?)),
    };
    let seconds = match part(8, 6) {
        // What was left out cannot be told from zero; others read it so too.
        0 => String::new(),
        seconds => format!("{seconds:02}"),
    };
    Some(format!(
        "{:04}{:02}{:02}T{:02}{:02}{seconds}{zone}",
        part(34, 12),
        part(30, 4),
        part(25, 5),
        part(20, 5),
        part(14, 6),
    ))
}

fn packed_wv_date(text: &str) -> Option<Vec<u8>> {
    let (day, time) = text.split_once('T')?;
    let digits = time.bytes().take_while(u8::is_ascii_digit).count();
    let (time, zone) = time.split_at_checked(digits)?;
    let number = |text: Option<&str>| text?.parse::<u64>().ok();
    let zone = match zone.as_bytes() {
        [] => 0,
        [zone] => u64::from(*zone),
        _ => return None,
    };
    let parts = [
        (number(day.get(0..4))?, 34, 12),
        (number(day.get(4..6))?, 30, 4),
        (number(day.get(6..8))?, 25, 5),
        (number(time.get(0..2))?, 20, 5),
        (number(time.get(2..4))?, 14, 6),
        (if digits == 4 { 0 } else { number(time.get(4..6))? }, 8, 6),
        (zone, 0, 8),
    ];
    let mut bits = 0;
    for (value, shift, len) in parts {
        if value >> len != 0 {
            return None;
        }
        bits |= value << shift;
    }
    Some(bits.to_be_bytes()[2..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_and_written() {
        let cases: [(Kind, &[u8], &str); 5] = [
            (Kind::Integer, &[0xc8], "200"),
            (Kind::Integer, &[1, 0, 0], "65536"),
            (Kind::Integer, &[0], "0"),
            (Kind::Date, &[0x19, 0x99, 0x04, 0x30, 0x06, 0x40], "1999-04-30T06:40:00Z"),
            (Kind::Date, &[0x20, 0x05, 0x10, 0x10], "2005-10-10T00:00:00Z"),
        ];
        for (kind, data, text) in &cases {
            assert_eq!(kind.decode(data).as_deref(), Ok(*text));
            assert_eq!(kind.encode(text).as_deref(), Some(*data), "{text}");
        }
        let packed = Kind::WvDate.encode("20010925T134052Z").unwrap();
        assert_eq!(Kind::WvDate.decode(&packed).unwrap(), "20010925T134052Z");
        for text in ["", "01", "+1", "4294967296", "x"] {
            assert_eq!(Kind::Integer.encode(text), None);
        }
        assert_eq!(Kind::Date.encode("1999-04-30T06:40:00+"), None);
        assert_eq!(Kind::Binary.decode(b"foob").as_deref(), Ok("Zm9vYg=="));
        assert_eq!(Kind::Binary.encode("Zm9vYg==").as_deref(), Some(&b"foob"[..]));
        assert_eq!(Kind::Binary.encode("Zm9vYmE=").as_deref(), Some(&b"fooba"[..]));
        for text in ["", "Zm9vYg=", "Zm9vYh==", "Zm9v Yg=="] {
            assert_eq!(Kind::Binary.encode(text), None, "{text}");
        }
        assert_eq!(Kind::Binary.decode(b"fooba").as_deref(), Ok("Zm9vYmE="));
        for text in ["Test", "", "AAAA", "QTog5A=", "Subject: x\r\n\r\ny"] {
            assert_eq!(Kind::Message.encode(text), None, "{text}");
        }
        let mail = b"A: \xe4";
        assert_eq!(Kind::Message.decode(mail).as_deref(), Ok("QTog5A=="));
        assert_eq!(Kind::Message.encode("QTog5A==").as_deref(), Some(&mail[..]));
        // What is text stands as text, so this is no message that came as bytes.
        assert_eq!(Kind::Message.encode("QTogYg=="), None);
        assert_eq!(Kind::Message.decode(b"A: b").as_deref(), Ok("A: b"));
    }
}
