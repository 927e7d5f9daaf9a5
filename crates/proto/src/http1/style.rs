//! What binary HTTP does not carry of a head (RFC 9292 §3.6): the case of field names, and the
//! reason phrase. It crosses the link as the value of a field of its own, beside the fields in
//! their order:
//!
//! ```text
//! style  = [ case *( "," case ) ] [ ";" reason ]
//! case   = "l" / "t" / "u" / 1*HEXDIG-of-mask preceded by "x"
//! ```
//!
//! `l` is a name in lower case, `t` one with a capital at the begin of each word, `u` one in upper
//! case; `x` gives a mask of the letters that are capitals, the first in the lowest bit. The last
//! case stands for all the names that follow.

use bytes::Bytes;

use super::Field;

/// Name of the field, never seen by clients or origins.
pub const STYLE_FIELD: &str = "longwire-style";
/// Name of the field that names the client's connection to a gateway, as a number in hexadecimal
/// digits, where the request is part of an authentication of the connection; as little seen.
pub const CONNECTION_FIELD: &str = "longwire-connection";
/// Longest name whose case can be told, in bytes; others are written as `t`.
const MAX_NAME_BYTES: usize = 64;
/// Longest reason phrase that is carried, in bytes.
const MAX_REASON_BYTES: usize = 512;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Names of fields in the order and the case that they are to have.
    pub names: Vec<Bytes>,
    /// The reason phrase, where it is not that of the status.
    pub reason: Option<Bytes>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Lower,
    Title,
    Upper,
    Mask(u64),
}

impl Case {
    fn of(name: &[u8]) -> Self {
        if name.len() > MAX_NAME_BYTES {
            return Self::Title;
        }
        let simple = [Self::Title, Self::Lower, Self::Upper];
        let fits = |case: &Self| case.apply(name) == name;
        simple.into_iter().find(fits).unwrap_or_else(|| {
            let capitals = name.iter().enumerate().filter(|(_, byte)| byte.is_ascii_uppercase());
            Self::Mask(capitals.fold(0, |mask, (at, _)| mask | 1 << at))
        })
    }

    fn apply(self, name: &[u8]) -> Vec<u8> {
        let mut begins = true;
        let mut out = Vec::with_capacity(name.len());
        for (at, byte) in name.iter().enumerate() {
            let is_capital = match self {
                Self::Lower => false,
                Self::Upper => true,
                Self::Title => begins,
                Self::Mask(mask) => at < MAX_NAME_BYTES && mask >> at & 1 == 1,
            };
            begins = *byte == b'-';
            out.push(if is_capital {
                byte.to_ascii_uppercase()
            } else {
                byte.to_ascii_lowercase()
            });
        }
        out
    }

    fn write(self, out: &mut String) {
        match self {
            Self::Lower => out.push('l'),
            Self::Title => out.push('t'),
            Self::Upper => out.push('u'),
            Self::Mask(mask) => out.push_str(&format!("x{mask:x}")),
        }
    }

    fn read(text: &str) -> Option<Self> {
        match text {
            "l" => Some(Self::Lower),
            "t" => Some(Self::Title),
            "u" => Some(Self::Upper),
            _ => u64::from_str_radix(text.strip_prefix('x')?, 16).ok().map(Self::Mask),
        }
    }
}

impl Style {
    /// The field's value; what it says of names is for those of `names` in order.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut cases: Vec<Case> = self.names.iter().map(|name| Case::of(name)).collect();
        while let [.., before, last] = cases[..]
            && before == last
        {
            cases.pop();
        }
        let mut text = String::new();
        for (at, case) in cases.into_iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            case.write(&mut text);
        }
        let mut value = text.into_bytes();
        if let Some(reason) = self.reason.as_ref().filter(|one| one.len() <= MAX_REASON_BYTES) {
            value.push(b';');
            value.extend_from_slice(reason);
        }
        value.into()
    }

    /// Reads the field's value, for names in lower case in the order of the message. What cannot
    /// be read leaves names as they are: nothing rests on it.
    pub fn decode<'a>(value: &Bytes, names: impl Iterator<Item = &'a [u8]>) -> Self {
        let end = value.iter().position(|byte| *byte == b';');
        let cases = std::str::from_utf8(&value[..end.unwrap_or(value.len())]).unwrap_or_default();
        let mut cases = cases.split(',');
        let mut case = Case::Lower;
        let names = names.map(|name| {
            case = cases.next().and_then(Case::read).unwrap_or(case);
            Bytes::from(case.apply(name))
        });
        let names = names.collect();
        let reason = end.map(|end| value.slice(end + 1..)).filter(|one| {
            one.len() <= MAX_REASON_BYTES
                && one.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~' | 0x80..))
        });
        Self { names, reason }
    }

    /// The style as a list of the names themselves, for use within a process.
    #[must_use]
    pub fn to_list(&self) -> Bytes {
        let mut list = self.names.join(&b',');
        if let Some(reason) = &self.reason {
            list.push(b';');
            list.extend_from_slice(reason);
        }
        list.into()
    }

    /// Reads what [`Style::to_list`] made.
    #[must_use]
    pub fn from_list(list: &Bytes) -> Self {
        let end = list.iter().position(|byte| *byte == b';');
        let names = list.slice(..end.unwrap_or(list.len()));
        let names = names.split(|byte| *byte == b',').filter(|name| !name.is_empty());
        let names = names.map(Bytes::copy_from_slice).collect();
        Self { names, reason: end.map(|end| list.slice(end + 1..)) }
    }

    /// A head as HTTP/1 has it, with its fields in this order and case and with this reason; the
    /// fields that the style does not name follow, in title case. The framing stays as it is.
    ///
    /// `target` takes the place of a request's target.
    #[must_use]
    pub fn apply(&self, head: &[u8], target: Option<&[u8]>) -> Vec<u8> {
        let mut lines =
            head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let mut out = Vec::with_capacity(head.len() + 16);
        self.write_start(lines.next().unwrap_or_default(), target, &mut out);
        let field = |line: &[u8]| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            Some(Field { name: Bytes::copy_from_slice(name), value: Bytes::copy_from_slice(value) })
        };
        let mut fields: Vec<Option<Field>> = lines.map(field).filter(Option::is_some).collect();
        let mut ordered = Vec::with_capacity(fields.len());
        for name in &self.names {
            let named = |field: &&mut Option<Field>| {
                field.as_ref().is_some_and(|field| field.name.eq_ignore_ascii_case(name))
            };
            if let Some(field) = fields.iter_mut().find(named).and_then(Option::take) {
                ordered.push(Field { name: name.clone(), value: field.value });
            }
        }
        let others = fields.into_iter().flatten().map(|field| {
            let name = Case::Title.apply(&field.name).into();
            Field { name, value: field.value }
        });
        ordered.extend(others);
        super::head::write_fields(&ordered, &mut out);
        out
    }

    fn write_start(&self, line: &[u8], target: Option<&[u8]>, out: &mut Vec<u8>) {
        let parts: Vec<&[u8]> = line.splitn(3, |byte| *byte == b' ').collect();
        let [first, second, third] = parts[..] else {
            out.extend_from_slice(line);
            out.extend_from_slice(b"\r\n");
            return;
        };
        let is_response = first.starts_with(b"HTTP/");
        let second = target.filter(|_| !is_response).unwrap_or(second);
        let third = self.reason.as_deref().filter(|_| is_response).unwrap_or(third);
        out.extend_from_slice(&[first, second, third].join(&b' '));
        out.extend_from_slice(b"\r\n");
    }
}
