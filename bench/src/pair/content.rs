//! Bodies that are made, never stored: half of each page is text, half looks random, and every page
//! differs, so that a lost, doubled or misplaced piece shows.

use std::io::{Read, Write};

use anyhow::{Result, bail};

use crate::random::Random;

const PAGE_BYTES: usize = 4096;
const TEXT: &[u8] = b"<track><id>4711</id><position lat=\"59.9139\" lon=\"10.7522\"/></track>\n";

/// A body from its first byte on.
pub(super) struct Content {
    page: [u8; PAGE_BYTES],
    page_number: u64,
    taken: usize,
    left: u64,
}

impl Content {
    /// A body of this length; longer ones begin with shorter ones.
    pub(super) fn new(length_bytes: u64) -> Self {
        let page = [0; PAGE_BYTES];
        Self { page, page_number: 0, taken: PAGE_BYTES, left: length_bytes }
    }

    /// The next piece, at most a page; empty at the end.
    fn next_piece(&mut self, most: usize) -> &[u8] {
        if self.taken == PAGE_BYTES {
            make_page(self.page_number, &mut self.page);
            self.page_number += 1;
            self.taken = 0;
        }
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let length = most.min(left).min(PAGE_BYTES - self.taken);
        let start = self.taken;
        self.taken += length;
        self.left -= length as u64;
        &self.page[start..start + length]
    }

    /// Fills the buffer as far as the body goes; returns how far.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < buffer.len() {
            let piece = self.next_piece(buffer.len() - filled);
            if piece.is_empty() {
                break;
            }
            buffer[filled..filled + piece.len()].copy_from_slice(piece);
            filled += piece.len();
        }
        filled
    }
}

fn make_page(number: u64, page: &mut [u8; PAGE_BYTES]) {
    let (random, text) = page.split_at_mut(PAGE_BYTES / 2);
    let mut bits = Random::new(number);
    for eight in random.chunks_exact_mut(8) {
        eight.copy_from_slice(&bits.bits().to_le_bytes());
    }
    for line in text.chunks_mut(TEXT.len()) {
        line.copy_from_slice(&TEXT[..line.len()]);
    }
}

/// Writes a whole body.
pub(super) fn send(to: &mut impl Write, length_bytes: u64) -> Result<()> {
    let mut content = Content::new(length_bytes);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match content.fill(&mut buffer) {
            0 => return Ok(to.flush()?),
            length => to.write_all(&buffer[..length])?,
        }
    }
}

/// Reads to the end.
///
/// # Errors
/// When a byte is not what was sent, or there are too few or too many.
pub(super) fn verify(from: &mut impl Read, length_bytes: u64) -> Result<()> {
    let mut content = Content::new(length_bytes);
    let mut buffer = vec![0; 64 * 1024];
    let mut position = 0;
    loop {
        let length = from.read(&mut buffer)?;
        let mut rest = &buffer[..length];
        while !rest.is_empty() {
            let piece = content.next_piece(rest.len());
            if piece.is_empty() {
                bail!("the body goes on after {length_bytes} B");
            }
            if piece != &rest[..piece.len()] {
                bail!("the body differs between byte {position} and {}", position + piece.len());
            }
            position += piece.len();
            rest = &rest[piece.len()..];
        }
        if length == 0 {
            if position as u64 != length_bytes {
                bail!("the body ends after {position} of {length_bytes} B");
            }
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(length: u64) -> Vec<u8> {
        let mut body = Vec::new();
        send(&mut body, length).unwrap();
        body
    }

    #[test]
    fn what_was_sent_is_recognized_and_nothing_else_is() {
        for length in [0, 1, 4095, 4096, 100_001] {
            let sent = body(length);
            assert_eq!(sent.len() as u64, length);
            verify(&mut sent.as_slice(), length).unwrap();
            verify(&mut sent.as_slice(), length + 1).unwrap_err();
        }
        let sent = body(100_000);
        verify(&mut sent.as_slice(), 99_999).unwrap_err();
        for at in [0, 5_000, 99_999] {
            let mut flipped = sent.clone();
            flipped[at] ^= 1;
            let message = verify(&mut flipped.as_slice(), 100_000).unwrap_err().to_string();
            assert!(message.contains("differs"), "{message}");
        }
        let swapped = [&sent[4096..8192], &sent[..4096]].concat();
        verify(&mut swapped.as_slice(), 8192).unwrap_err();
    }
}
