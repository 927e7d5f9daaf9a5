//! Where a document is: what is open, and which pieces of markup it has had.

#![expect(clippy::cast_possible_truncation, reason = "numbers of pieces are below 2^14")]

use super::pieces::{Piece, PiecePosition, Pieces, join};

/// Open elements that are followed; deeper ones are coded as if they were siblings.
const DEPTH: usize = 256;
/// Symbols of structure before the pieces: a piece that was not there before.
pub(super) const NEW: usize = 0;
/// The end of the element that is open.
pub(super) const END: usize = 1;
/// Text.
pub(super) const TEXT: usize = 2;
/// The first piece by number.
pub(super) const PIECE: usize = 3;
/// The container of new pieces.
pub(super) const SPELLED: u32 = 1;

/// Why decoding stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// An element is closed that is not open.
    Unopened,
    /// A piece or a value that does not exist.
    Unknown,
    /// More bytes than the block has.
    Overlong,
    /// An item of no bytes where only some can stand.
    Empty,
    /// Bytes that nothing asked for.
    Unused,
    /// Fewer bytes than what they stand for takes.
    Short,
}

impl Broken {
    /// For people.
    pub(super) fn message(self) -> String {
        let message = match self {
            Self::Unopened => "an element ends that is not open",
            Self::Unknown => "a number of what does not exist",
            Self::Overlong => "a block with more than its length",
            Self::Empty => "nothing where something must stand",
            Self::Short => "a block whose bytes are used up early",
            Self::Unused => "values that nothing asked for",
        };
        message.to_owned()
    }
}

struct Frame {
    number: u16,
    name: u32,
}

/// What both directions of every method follow.
pub(super) struct Outline {
    /// The window as a power of two.
    pub(super) log: u32,
    pub(super) place: PiecePosition,
    stack: Vec<Frame>,
    pub(super) pieces: Pieces,
    /// Key of the attribute that a piece opened.
    pub(super) attribute: u32,
}

impl Outline {
    /// What it may take for a window of 2^`log` bytes.
    pub(super) fn table_bytes(log: u32) -> usize {
        Pieces::table_bytes(log) + DEPTH * size_of::<Frame>()
    }

    /// For a window of 2^`log` bytes, at least 2.
    pub(super) fn new(log: u32) -> Self {
        Self {
            log,
            place: PiecePosition::Content,
            stack: Vec::new(),
            pieces: Pieces::new(log),
            attribute: 0,
        }
    }

    /// The symbol for a piece.
    pub(super) fn symbol_of(&self, bytes: &[u8]) -> usize {
        if let Some(frame) = self.stack.last() {
            let name = self.pieces.name(usize::from(frame.number));
            if bytes.len() == name.len() + 3
                && bytes.starts_with(b"</")
                && &bytes[2..bytes.len() - 1] == name
                && bytes.ends_with(b">")
            {
                return END;
            }
        }
        self.pieces.find(bytes).map_or(NEW, |number| number + PIECE)
    }

    /// Closes the element that is open; its name. Errors: none is.
    pub(super) fn close(&mut self) -> Result<&[u8], Broken> {
        let frame = self.stack.pop().ok_or(Broken::Unopened)?;
        self.place = PiecePosition::Content;
        Ok(self.pieces.name(usize::from(frame.number)))
    }

    /// Adds a piece if there is room, and goes behind it; its symbol.
    pub(super) fn learn(&mut self, bytes: &[u8]) -> usize {
        let (number, piece) = match self.pieces.add(bytes) {
            Some(number) => (number, self.pieces.get(number).copied()),
            None => (usize::from(u16::MAX), None),
        };
        self.follow(number, piece.unwrap_or_else(|| Piece::of(bytes)));
        number + PIECE
    }

    /// Goes behind a piece by its symbol; its bytes. Errors: there is no such piece.
    pub(super) fn pass(&mut self, symbol: usize) -> Result<&[u8], Broken> {
        let number = symbol - PIECE;
        let piece = *self.pieces.get(number).ok_or(Broken::Unknown)?;
        self.follow(number, piece);
        Ok(self.pieces.bytes(number))
    }

    /// Opens, closes, and says where the document is behind a piece.
    fn follow(&mut self, number: usize, piece: Piece) {
        self.place = piece.after;
        if piece.opens && self.stack.len() < DEPTH {
            self.stack.push(Frame { number: number as u16, name: piece.name });
        }
        if let PiecePosition::Value(_) = piece.after {
            self.attribute = join(piece.tail, self.stack.last().map_or(0, |frame| frame.name));
        }
        if piece.closes {
            self.stack.pop();
        }
    }

    /// Key of the container of text here: the names of the element and the one around it.
    pub(super) fn path(&self) -> u32 {
        let mut names = self.stack.iter().rev().map(|frame| frame.name);
        join(names.next().unwrap_or(0), names.next().unwrap_or(0))
    }
}
