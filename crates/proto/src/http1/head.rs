//! Lines of a head: the start line and the fields, as they were sent.

use bytes::Bytes;

use super::{Fault, Framing};
use crate::bhttp::MAX_FIELDS;

/// Largest head of a message, in bytes: as much as may cross the link in binary form.
pub const MAX_HEAD_BYTES: usize = crate::bhttp::MAX_HEAD_BYTES;
/// Most bytes of a line that an error message quotes.
const MAX_QUOTED_BYTES: usize = 60;

/// A field line, without the white space around its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name in the case it was sent in.
    pub name: Bytes,
    /// The value.
    pub value: Bytes,
}

impl Field {
    /// Whether the field has this name, given in lower case.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }
}

/// Whose head it is: what a recipient may repair differs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    Response,
}

/// Position behind the empty line that ends a head, searching from about `from` (bytes before it
/// were searched already). A line may end with LF alone (RFC 9112 §2.2).
#[must_use]
pub fn end_of_head(bytes: &[u8], from: usize) -> Option<usize> {
    let begin = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let mut at = from.saturating_sub(3).max(begin);
    while let Some(found) = bytes.get(at..)?.iter().position(|byte| *byte == b'\n') {
        let next = at + found + 1;
        match bytes.get(next..)? {
            [b'\n', ..] => return Some(next + 1),
            [b'\r', b'\n', ..] => return Some(next + 2),
            _ => at = next,
        }
    }
    None
}

/// The start line and the fields of a whole head.
pub(super) fn lines(head: &[u8], kind: Kind) -> Result<(Bytes, Vec<Field>), Fault> {
    let head = Bytes::copy_from_slice(head);
    let mut rest = head.clone();
    let mut start = Bytes::new();
    // RFC 9112 §2.2: empty lines before a request are ignored.
    while start.is_empty() {
        start = next_line(&mut rest).ok_or_else(|| Fault::bad("the message has no start line"))?;
    }
    let mut fields: Vec<Field> = Vec::new();
    while let Some(line) = next_line(&mut rest).filter(|line| !line.is_empty()) {
        if matches!(line.first(), Some(b' ' | b'\t')) {
            unfold(&mut fields, &line, kind)?;
            continue;
        }
        if fields.len() == MAX_FIELDS {
            return Err(Fault::with(431, format!("the head has more than {MAX_FIELDS} fields")));
        }
        fields.push(field(&line, kind)?);
    }
    Ok((start, fields))
}

/// Takes a line off, without its end.
fn next_line(rest: &mut Bytes) -> Option<Bytes> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let mut line = rest.split_to(end + 1);
    line.truncate(end);
    if line.last() == Some(&b'\r') {
        line.truncate(end - 1);
    }
    Some(line)
}

/// Joins a continuation to the field before it (RFC 9112 §5.2): a server refuses such requests, a
/// proxy replaces the fold of a response by a space.
fn unfold(fields: &mut [Field], line: &Bytes, kind: Kind) -> Result<(), Fault> {
    let more = trim(line.clone());
    match fields.last_mut() {
        Some(field) if kind == Kind::Response => {
            check_value(&field.name, &more)?;
            field.value = [&field.value[..], b" ", &more[..]].concat().into();
            Ok(())
        }
        _ => Err(Fault::bad(format!("'{}' continues a line: obsolete folding", quote(line)))),
    }
}

fn field(line: &Bytes, kind: Kind) -> Result<Field, Fault> {
    let colon = line.iter().position(|byte| *byte == b':');
    let colon = colon.ok_or_else(|| Fault::bad(format!("'{}' is no field", quote(line))))?;
    let mut name = line.slice(..colon);
    if kind == Kind::Response {
        // RFC 9112 §5.1: a proxy removes such white space from a response.
        let len =
            name.iter().rposition(|byte| !matches!(byte, b' ' | b'\t')).map_or(0, |at| at + 1);
        name.truncate(len);
    }
    if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) {
        return Err(Fault::bad(format!("'{}' is no name of a field", quote(&name))));
    }
    let value = trim(line.slice(colon + 1..));
    check_value(&name, &value)?;
    Ok(Field { name, value })
}

fn check_value(name: &[u8], value: &[u8]) -> Result<(), Fault> {
    let fine = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~' | 0x80..);
    if value.iter().all(fine) {
        return Ok(());
    }
    let name = quote(name);
    Err(Fault::bad(format!("the field '{name}' has a control character in its value")))
}

fn trim(mut value: Bytes) -> Bytes {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let begin = value.iter().position(|byte| !is_blank(byte)).unwrap_or(value.len());
    let mut value = value.split_off(begin);
    value.truncate(value.iter().rposition(|byte| !is_blank(byte)).map_or(0, |at| at + 1));
    value
}

/// RFC 9110 §5.6.2.
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// As much of some bytes as an error message may show.
pub(super) fn quote(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(MAX_QUOTED_BYTES)];
    let mut text: String = shown.escape_ascii().to_string();
    if bytes.len() > MAX_QUOTED_BYTES {
        text.push_str("...");
    }
    text
}

/// The minor version behind `HTTP/1.`: what is later than 1.1 is understood as 1.1 (RFC 9110 §2.5).
pub(super) fn minor(version: &[u8]) -> Result<u8, Fault> {
    match version {
        b"HTTP/1.0" => Ok(0),
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', digit] if digit.is_ascii_digit() => Ok(1),
        [b'H', b'T', b'T', b'P', b'/', major, b'.', digit]
            if major.is_ascii_digit() && digit.is_ascii_digit() =>
        {
            let version = quote(version);
            Err(Fault::with(505, format!("{version} is not spoken here: use HTTP/1.1")))
        }
        _ => Err(Fault::bad(format!("'{}' is no version of HTTP", quote(version)))),
    }
}

/// Members of all the lists that fields of this name hold.
pub(super) fn members<'a>(
    fields: &'a [Field],
    name: &'static str,
) -> impl Iterator<Item = &'a [u8]> {
    let lists = fields.iter().filter(move |field| field.is(name));
    lists.flat_map(|field| field.value.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii)
}

/// The length that Content-Length tells (RFC 9110 §8.6): one number, however often it is repeated.
pub(super) fn content_length(fields: &[Field]) -> Result<Option<u64>, Fault> {
    let mut length = None;
    for member in members(fields, "content-length") {
        let text = std::str::from_utf8(member).ok();
        let digits = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let number: Option<u64> = digits.and_then(|digits| digits.parse().ok());
        let wrong = || Fault::bad(format!("Content-Length '{}' is no length", quote(member)));
        let number = number.ok_or_else(wrong)?;
        if length.replace(number).is_some_and(|before| before != number) {
            return Err(Fault::bad("Content-Length tells of two different lengths"));
        }
    }
    Ok(length)
}

/// Leaves the one field that the framing rests on.
pub(super) fn reframe(fields: &mut Vec<Field>, framing: Framing) {
    let name = match framing {
        Framing::Length(_) => "content-length",
        Framing::Chunked => "transfer-encoding",
        Framing::None | Framing::UntilClose => "",
    };
    let value = match framing {
        Framing::Length(length) => Bytes::from(length.to_string()),
        _ => Bytes::from_static(b"chunked"),
    };
    let mut seen = false;
    fields.retain_mut(|field| {
        if field.is(name) {
            field.value = value.clone();
            return !std::mem::replace(&mut seen, true);
        }
        !field.is("content-length") && !field.is("transfer-encoding")
    });
}

/// Whether Connection lists a token.
pub(super) fn connection_has(fields: &[Field], token: &str) -> bool {
    members(fields, "connection").any(|member| member.eq_ignore_ascii_case(token.as_bytes()))
}

/// The line that ends a connection behind a message.
pub(super) const CLOSE: &[u8] = b"connection: close\r\n";
/// Most fields of a head that is written for a parser of stricter taste. Parsers hold so many
/// without memory of their own for each head (httparse in hyper: 100), and two may be added.
pub const MAX_STRICT_FIELDS: usize = 96;
/// What a parser goes by when it finds the end of a message and keeps or gives up its connection.
const FRAMING: [&str; 5] = ["host", "content-length", "transfer-encoding", "connection", "upgrade"];

/// The fields of a strict head, and those that it has no room for, each in their order. The framing
/// rests on the first.
pub(super) fn for_strict<'a>(
    fields: impl Iterator<Item = &'a Field> + Clone,
) -> (Vec<&'a Field>, Vec<&'a Field>) {
    if fields.clone().count() <= MAX_STRICT_FIELDS {
        return (fields.collect(), Vec::new());
    }
    let frames = |field: &&Field| FRAMING.iter().any(|name| field.is(name));
    let framing = fields.clone().filter(frames).count().min(MAX_STRICT_FIELDS);
    let mut room = [MAX_STRICT_FIELDS - framing, framing];
    fields.partition(|field| {
        let room = &mut room[usize::from(frames(field))];
        let fits = *room > 0;
        *room = room.saturating_sub(1);
        fits
    })
}

/// Appends fields as lines, and the empty line that ends a head.
pub(super) fn write_fields<'a>(fields: impl IntoIterator<Item = &'a Field>, out: &mut Vec<u8>) {
    for Field { name, value } in fields {
        out.extend_from_slice(name);
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}
