//! Following a body to its end without keeping it (RFC 9112 §7).

use super::{Fault, Framing};

/// Most bytes of a line between chunks, with its extensions.
const MAX_CHUNK_LINE_BYTES: usize = 4096;
/// Most bytes of a trailer section.
const MAX_TRAILER_BYTES: usize = super::MAX_HEAD_BYTES;

/// What of some bytes belongs to a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// So many do; the others follow the message.
    pub used: usize,
    /// The body is whole.
    pub ended: bool,
}

/// A body on its way; see the module.
#[derive(Clone, Debug)]
pub struct Body {
    state: BodyState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyState {
    Counted(u64),
    UntilClose,
    /// In the line before a chunk: digits so far, the size, and the line's length.
    Size {
        digits: u8,
        size: u64,
    },
    /// Behind the digits.
    Extension {
        size: u64,
        bytes: usize,
    },
    /// LF is due behind CR.
    SizeEnd {
        size: u64,
    },
    Data(u64),
    DataCr,
    DataLf,
    /// In a line of the trailer section: its length, and that of all.
    Trailer {
        line: usize,
        all: usize,
    },
    TrailerLf {
        line: usize,
        all: usize,
    },
    Ended,
}

impl Body {
    /// A body of this framing, of which nothing has come.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        let state = match framing {
            Framing::None | Framing::Length(0) => BodyState::Ended,
            Framing::Length(length) => BodyState::Counted(length),
            Framing::Chunked => BodyState::Size { digits: 0, size: 0 },
            Framing::UntilClose => BodyState::UntilClose,
        };
        Self { state }
    }

    /// Whether all of it has come; one that lasts until the connection ends never says so.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state == BodyState::Ended
    }

    /// Whether the end of the connection is the end of the body.
    #[must_use]
    pub fn lasts_until_close(&self) -> bool {
        self.state == BodyState::UntilClose
    }

    /// Takes what has come next.
    ///
    /// # Errors
    /// A chunked coding that is none (RFC 9112 §7.1), or extensions or trailers over their bounds.
    pub fn scan(&mut self, bytes: &[u8]) -> Result<Scan, Fault> {
        let mut used = 0;
        while used < bytes.len() && self.state != BodyState::Ended {
            let left = bytes.len() - used;
            let skip = |count: u64| usize::try_from(count).unwrap_or(usize::MAX).min(left);
            match self.state {
                BodyState::UntilClose => used = bytes.len(),
                BodyState::Counted(count) => {
                    let taken = skip(count);
                    used += taken;
                    let rest = count - taken as u64;
                    self.state =
                        if rest == 0 { BodyState::Ended } else { BodyState::Counted(rest) };
                }
                BodyState::Data(count) => {
                    let taken = skip(count);
                    used += taken;
                    let rest = count - taken as u64;
                    self.state = if rest == 0 { BodyState::DataCr } else { BodyState::Data(rest) };
                }
                _ => {
                    let byte = bytes.get(used).copied().unwrap_or_default();
                    self.state = self.state.step(byte)?;
                    used += 1;
                }
            }
        }
        Ok(Scan { used, ended: self.state == BodyState::Ended })
    }
}

impl BodyState {
    /// One byte between chunks, or of the trailer section.
    fn step(self, byte: u8) -> Result<Self, Fault> {
        match (self, byte) {
            (Self::Size { digits, size }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
                let wider = size.checked_mul(16).ok_or_else(too_large)?;
                // Leading zeros are fine, a line of nothing else is not.
                let digits = digits.checked_add(1).ok_or_else(too_large)?;
                Ok(Self::Size { digits, size: wider + digit })
            }
            (Self::Size { digits: 1.., size }, b'\r') => Ok(Self::SizeEnd { size }),
            (Self::Size { digits: 1.., size }, b';' | b' ' | b'\t') => {
                Ok(Self::Extension { size, bytes: 1 })
            }
            (Self::Extension { size, .. }, b'\r') => Ok(Self::SizeEnd { size }),
            (Self::Extension { size, bytes }, b'\t' | b' '..=b'~' | 0x80..) => {
                if bytes >= MAX_CHUNK_LINE_BYTES {
                    let most = MAX_CHUNK_LINE_BYTES;
                    return Err(Fault::bad(format!("a chunk's extensions are over {most} bytes")));
                }
                Ok(Self::Extension { size, bytes: bytes + 1 })
            }
            (Self::SizeEnd { size: 0 }, b'\n') => Ok(Self::Trailer { line: 0, all: 0 }),
            (Self::SizeEnd { size }, b'\n') => Ok(Self::Data(size)),
            (Self::DataCr, b'\r') => Ok(Self::DataLf),
            (Self::DataLf, b'\n') => Ok(Self::Size { digits: 0, size: 0 }),
            (Self::Trailer { line, all }, b'\r') => Ok(Self::TrailerLf { line, all }),
            (Self::TrailerLf { line: 0, .. }, b'\n') => Ok(Self::Ended),
            (Self::TrailerLf { all, .. }, b'\n') => Ok(Self::Trailer { line: 0, all }),
            (Self::Trailer { line, all }, b'\t' | b' '..=b'~' | 0x80..) => {
                if all >= MAX_TRAILER_BYTES {
                    let most = MAX_TRAILER_BYTES;
                    return Err(Fault::with(431, format!("the trailers are over {most} bytes")));
                }
                Ok(Self::Trailer { line: line + 1, all: all + 1 })
            }
            _ => Err(Fault::bad("the chunked coding of the body is broken")),
        }
    }
}

fn too_large() -> Fault {
    Fault::bad("a chunk's size is over 64 bits")
}
