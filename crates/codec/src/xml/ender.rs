//! Where a token ends that comes in pieces, found without looking at a byte twice.

use memchr::{memchr, memchr2, memchr3, memmem};

const CDATA: &[u8] = b"<![CDATA[";

/// What the bytes at [`Ender::at`] belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// Not known yet.
    #[default]
    Unknown,
    Text,
    Cdata,
    Tag,
    TagQuote(u8),
    /// A comment or an instruction, up to these bytes.
    Until(&'static [u8]),
    /// A document type: declarations and brackets that are open.
    Doctype(u32),
    DoctypeQuote(u32, u8),
    DoctypeUntil(u32, &'static [u8]),
}

/// Follows one token; what it says of malformed ones does not matter, for the end of the input
/// brings them out too.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ender {
    at: usize,
    mode: Mode,
}

impl Ender {
    /// The end of the token that `bytes` begin with, which are those of the last call and more;
    /// `None` if it is not there.
    pub(super) fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.mode == Mode::Unknown {
            self.mode = begin(bytes)?;
        }
        loop {
            let rest = bytes.get(self.at..)?;
            self.mode = match self.mode {
                Mode::Unknown => return None,
                Mode::Text => {
                    let at = self.skip(rest, memchr(b'<', rest))?;
                    let open = &bytes[at..];
                    if !open.starts_with(CDATA) {
                        return if CDATA.starts_with(open) { None } else { Some(at) };
                    }
                    self.at += CDATA.len();
                    Mode::Cdata
                }
                Mode::Cdata => {
                    self.past(rest, b"]]>")?;
                    Mode::Text
                }
                Mode::Until(end) => {
                    self.past(rest, end)?;
                    return Some(self.at);
                }
                Mode::Tag => {
                    let at = self.skip(rest, memchr3(b'>', b'"', b'\'', rest))?;
                    self.at += 1;
                    match bytes[at] {
                        b'>' => return Some(self.at),
                        quote => Mode::TagQuote(quote),
                    }
                }
                Mode::TagQuote(quote) => {
                    self.past(rest, &[quote])?;
                    Mode::Tag
                }
                Mode::Doctype(depth) => self.doctype(bytes, depth)?,
                Mode::DoctypeQuote(depth, quote) => {
                    self.past(rest, &[quote])?;
                    Mode::Doctype(depth)
                }
                Mode::DoctypeUntil(depth, end) => {
                    self.past(rest, end)?;
                    Mode::Doctype(depth)
                }
            };
            if self.mode == Mode::Doctype(0) {
                return Some(self.at);
            }
        }
    }

    /// Goes to the place found in the rest, or behind all of it.
    fn skip(&mut self, rest: &[u8], found: Option<usize>) -> Option<usize> {
        self.at += found.unwrap_or(rest.len());
        found.map(|_| self.at)
    }

    /// Goes behind `end`, or to where it may begin.
    fn past(&mut self, rest: &[u8], end: &[u8]) -> Option<()> {
        match memmem::find(rest, end) {
            Some(at) => {
                self.at += at + end.len();
                Some(())
            }
            None => {
                self.at += (rest.len() + 1).saturating_sub(end.len());
                None
            }
        }
    }

    /// One step in a document type; the `[` and `]` of its subset count as a declaration's do.
    fn doctype(&mut self, bytes: &[u8], depth: u32) -> Option<Mode> {
        let rest = &bytes[self.at..];
        let marks =
            rest.iter().position(|byte| matches!(byte, b'<' | b'>' | b'[' | b']' | b'"' | b'\''));
        let at = self.skip(rest, marks)?;
        let rest = &bytes[at..];
        let (len, mode) = match rest[0] {
            b'<' if rest.starts_with(b"<!--") => (4, Mode::DoctypeUntil(depth, b"-->")),
            b'<' if rest.starts_with(b"<?") => (2, Mode::DoctypeUntil(depth, b"?>")),
            b'<' if rest.len() < 4 => return None,
            b'<' | b'[' => (1, Mode::Doctype(depth.saturating_add(1))),
            b'>' | b']' => (1, Mode::Doctype(depth.saturating_sub(1))),
            quote => (1, Mode::DoctypeQuote(depth, quote)),
        };
        self.at += len;
        Some(mode)
    }
}

fn begin(bytes: &[u8]) -> Option<Mode> {
    Some(match bytes {
        [b'<', b'?', ..] => Mode::Until(b"?>"),
        [b'<', b'!', b'-', ..] => Mode::Until(b"-->"),
        [b'<', b'!', b'[', ..] => Mode::Text,
        [b'<', b'!', _, ..] => Mode::Doctype(0),
        [b'<', b'!'] | [b'<'] | [] => return None,
        [b'<', ..] => Mode::Tag,
        _ => Mode::Text,
    })
}

/// Whether a quick look at `bytes` shows that a token that begins like them is a document type.
pub(super) fn doctype_end(bytes: &[u8]) -> Option<usize> {
    // The mark `<` of the type itself is the first that the machine counts.
    memchr2(b'>', b']', bytes)?;
    Ender::default().end(bytes)
}
