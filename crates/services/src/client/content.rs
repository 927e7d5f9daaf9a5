//! The content of an answer while it arrives: decoded, counted, kept or not.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

/// Largest content that is kept, in bytes after decoding.
const MAX_KEPT_BYTES: u64 = 16 * 1024 * 1024;
/// Largest content that is counted, in bytes after decoding.
const MAX_COUNTED_BYTES: u64 = 16 * 1024 * 1024 * 1024;

/// Takes an answer's content piece by piece.
pub(super) enum Content {
    Plain(Tally),
    Gzip(Box<MultiGzDecoder<Tally>>),
}

/// Decoded content.
pub(super) struct Tally {
    /// What was kept.
    pub(super) kept: Vec<u8>,
    /// Bytes in all.
    pub(super) bytes: u64,
    keep: bool,
}

impl Content {
    /// For an answer with these fields. Gzip is taken though it was not offered: some servers have
    /// it forced. Refuses other codings, in one line.
    pub(super) fn new(headers: &HeaderMap, keep: bool) -> Result<Self, String> {
        let tally = Tally { kept: Vec::new(), bytes: 0, keep };
        let Some(coding) = headers.get(CONTENT_ENCODING) else { return Ok(Self::Plain(tally)) };
        let coding = String::from_utf8_lossy(coding.as_bytes()).trim().to_ascii_lowercase();
        match coding.as_str() {
            "" | "identity" => Ok(Self::Plain(tally)),
            "gzip" | "x-gzip" => Ok(Self::Gzip(Box::new(MultiGzDecoder::new(tally)))),
            _ => Err(format!("the answer has content coding '{coding}', which was not offered")),
        }
    }

    /// The next piece.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<(), String> {
        let written = match self {
            Self::Plain(tally) => tally.write_all(piece),
            Self::Gzip(decoder) => decoder.write_all(piece),
        };
        written.map_err(|error| format!("the answer's content: {error}"))
    }

    /// The end.
    pub(super) fn finish(self) -> Result<Tally, String> {
        match self {
            Self::Plain(tally) => Ok(tally),
            Self::Gzip(decoder) => {
                decoder.finish().map_err(|error| format!("the answer's gzip: {error}"))
            }
        }
    }
}

impl Write for Tally {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.bytes += piece.len() as u64;
        let limit = if self.keep { MAX_KEPT_BYTES } else { MAX_COUNTED_BYTES };
        if self.bytes > limit {
            return Err(io::Error::other(format!("over {limit} bytes, which is the limit")));
        }
        if self.keep {
            self.kept.extend_from_slice(piece);
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
