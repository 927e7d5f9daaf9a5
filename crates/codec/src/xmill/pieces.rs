//! A document as pieces of markup and values between them, whatever its bytes are.
//!
//! Markup is cut behind each `>` and each quote that opens a value; values reach to the next `<` or
//! to their quote. Since pieces and values are simply the document cut up, any bytes come back; on
//! well-formed XML (XML 1.0 §2.1) the pieces repeat and the values fall into columns.

#![expect(clippy::cast_possible_truncation, reason = "hashes are cut on purpose")]

use memchr::{memchr, memchr3, memmem};

/// Markup longer than this without a place to cut is cut here; it is hardly XML.
const PIECE_BYTES: usize = 256;
/// White space between tags is a piece up to this length, else a value.
const SPACE_BYTES: usize = 64;
/// Distinct pieces of a stream, and their bytes, as powers of two; of a smaller window less.
const PIECES_LOG: u32 = 14;
const BYTES_LOG: u32 = 20;

/// Places of a table that are looked at for one hash: whoever makes hashes meet gains nothing.
pub(super) const PROBES: usize = 32;

/// Where in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PiecePosition {
    /// Between tags.
    Content,
    /// Within a tag, behind a value or where a piece was cut.
    Tag,
    /// In a value that ends at this byte: a quote, or `-` of a comment, `]` of a CDATA section.
    Value(u8),
}

/// What an encoder takes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Piece(usize),
    Value(usize),
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// The next item of `rest`, which is not empty unless in a value.
pub(super) fn next_item(rest: &[u8], place: PiecePosition) -> Item {
    match place {
        PiecePosition::Tag => Item::Piece(markup_len(rest)),
        PiecePosition::Content if rest.first() == Some(&b'<') => Item::Piece(markup_len(rest)),
        PiecePosition::Content => text_item(rest),
        PiecePosition::Value(quote @ (b'"' | b'\'')) => {
            Item::Value(memchr(quote, rest).unwrap_or(rest.len()))
        }
        PiecePosition::Value(mark) => {
            let end: &[u8] = if mark == b'-' { b"-->" } else { b"]]>" };
            Item::Value(memmem::find(rest, end).unwrap_or(rest.len()))
        }
    }
}

fn markup_len(rest: &[u8]) -> usize {
    for special in [&b"<!--"[..], b"<![CDATA["] {
        if rest.starts_with(special) {
            return special.len();
        }
    }
    // The first byte may be the quote that ends the value before.
    let near = rest.get(1..rest.len().min(PIECE_BYTES + 1)).unwrap_or_default();
    let end = memchr3(b'>', b'"', b'\'', near);
    end.map_or(rest.len().min(PIECE_BYTES), |end| end + 2)
}

fn text_item(rest: &[u8]) -> Item {
    let end = memchr(b'<', rest).unwrap_or(rest.len());
    let text = &rest[..end];
    let lead = text.iter().position(|&byte| !is_space(byte)).unwrap_or(end);
    if lead > 0 && lead <= SPACE_BYTES && (lead == end || text[..lead].contains(&b'\n')) {
        return Item::Piece(lead);
    }
    let tail = text.iter().rev().take_while(|&&byte| is_space(byte)).count();
    let trims = tail <= SPACE_BYTES && tail < end && text[end - tail..].contains(&b'\n');
    Item::Value(if trims { end - tail } else { end })
}

/// What a piece does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    start: u32,
    len: u32,
    /// Length of the name behind `<` if it opens an element.
    name_len: u32,
    /// Hash of that name.
    pub(super) name: u32,
    /// Hash of what stands behind its last white space: the attribute's name.
    pub(super) tail: u32,
    pub(super) opens: bool,
    pub(super) closes: bool,
    pub(super) after: PiecePosition,
}

/// A quick hash of a short string.
pub(super) fn hash_bytes(bytes: &[u8]) -> u32 {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut hash = (bytes.len() as u64).wrapping_mul(K);
    let mut eights = bytes.chunks_exact(8);
    for eight in &mut eights {
        if let Some(eight) = eight.first_chunk::<8>() {
            hash = (hash ^ u64::from_le_bytes(*eight)).wrapping_mul(K);
            hash ^= hash >> 32;
        }
    }
    let mut rest = 0;
    for &byte in eights.remainder() {
        rest = rest << 8 | u64::from(byte);
    }
    hash = (hash ^ rest).wrapping_mul(K);
    (hash >> 32) as u32
}

/// Joins two hashes.
#[inline(always)]
pub(super) fn join(a: u32, b: u32) -> u32 {
    let product = (u64::from(a) ^ 0x5851_F42D).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ^ u64::from(b).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    ((product ^ product >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32) as u32
}

impl Piece {
    /// Reads what the bytes say alone, so that both sides agree.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let last = bytes.last().copied().unwrap_or(0);
        let after = match bytes {
            b"<!--" => PiecePosition::Value(b'-'),
            b"<![CDATA[" => PiecePosition::Value(b']'),
            _ if last == b'>' => PiecePosition::Content,
            _ if matches!(last, b'"' | b'\'') => PiecePosition::Value(last),
            _ if bytes.iter().copied().all(is_space) => PiecePosition::Content,
            _ => PiecePosition::Tag,
        };
        let opens = bytes.len() > 1 && bytes[0] == b'<' && !matches!(bytes[1], b'/' | b'!' | b'?');
        let name = if opens { &bytes[1..] } else { &[] };
        let ends = |&byte: &u8| is_space(byte) || matches!(byte, b'/' | b'>');
        let name = &name[..name.iter().position(ends).unwrap_or(name.len())];
        let tail = bytes.iter().rposition(|&byte| is_space(byte)).unwrap_or(0);
        Self {
            start: 0,
            len: bytes.len() as u32,
            name_len: name.len() as u32,
            name: hash_bytes(name),
            tail: hash_bytes(&bytes[tail..]),
            opens,
            closes: bytes.ends_with(b"/>") || bytes.starts_with(b"</"),
            after,
        }
    }
}

/// The distinct pieces so far, by number.
pub(super) struct Pieces {
    all: Vec<Piece>,
    bytes: Vec<u8>,
    /// Open addressing by hash; 0 is free, else the number and 1.
    found: Vec<u16>,
    most: usize,
    most_bytes: usize,
}

impl Pieces {
    /// What the pieces of a window of 2^`log` bytes may take.
    pub(super) fn table_bytes(log: u32) -> usize {
        let this = Self::new(log);
        this.most_bytes + this.most * (size_of::<Piece>() + 8) + (1 << 9)
    }

    pub(super) fn new(log: u32) -> Self {
        let (most, most_bytes) = (1 << (log - 1).min(PIECES_LOG), 1 << log.min(BYTES_LOG));
        Self { all: Vec::new(), bytes: Vec::new(), found: vec![0; 1 << 8], most, most_bytes }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, number: usize) -> Option<&Piece> {
        self.all.get(number)
    }

    pub(super) fn bytes(&self, number: usize) -> &[u8] {
        self.all.get(number).map_or(&[], |piece| self.slice(piece))
    }

    fn slice(&self, piece: &Piece) -> &[u8] {
        &self.bytes[piece.start as usize..][..piece.len as usize]
    }

    /// The name that the piece opens.
    pub(super) fn name(&self, number: usize) -> &[u8] {
        self.all.get(number).map_or(&[], |piece| {
            if piece.opens { &self.slice(piece)[1..][..piece.name_len as usize] } else { &[] }
        })
    }

    /// The number of a piece that was added.
    pub(super) fn find(&self, bytes: &[u8]) -> Option<usize> {
        let mask = self.found.len() - 1;
        let first = hash_bytes(bytes) as usize;
        (first..first + PROBES)
            .map_while(|at| usize::from(self.found[at & mask]).checked_sub(1))
            .find(|&number| self.bytes(number) == bytes)
    }

    /// Adds a piece, unless there are enough.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.all.len() == self.most || self.bytes.len() + bytes.len() > self.most_bytes {
            return None;
        }
        if (self.all.len() + 1) * 2 > self.found.len() {
            self.found = vec![0; self.found.len() * 4];
            for number in 0..self.all.len() {
                self.enter(hash_bytes(self.bytes(number)), number);
            }
        }
        let number = self.all.len();
        self.all.push(Piece { start: self.bytes.len() as u32, ..Piece::of(bytes) });
        self.bytes.extend_from_slice(bytes);
        self.enter(hash_bytes(bytes), number);
        Some(number)
    }

    /// Makes a piece to be found, if there is a place.
    fn enter(&mut self, hash: u32, number: usize) {
        let (mask, first) = (self.found.len() - 1, hash as usize);
        let mut places = (first..first + PROBES).map(|at| at & mask);
        if let Some(at) = places.find(|&at| self.found[at] == 0) {
            self.found[at] = number as u16 + 1;
        }
    }
}
