//! Words that came at least twice, by number.

#![expect(clippy::cast_possible_truncation, reason = "hashes are cut on purpose")]

use super::pieces::hash_bytes;

/// Numbers of words are three halves of a byte.
const WORDS: usize = 1 << 12;
/// Longest word with what follows it.
pub(super) const WORD_BYTES: usize = 32;

#[derive(Clone, Copy)]
struct Word {
    bytes: [u8; WORD_BYTES],
    len: u8,
    ends: bool,
}

/// The words of a stream.
pub(super) struct Vocabulary {
    words: Vec<Word>,
    /// By hash: the hash, and the number and 1 or 0 of one seen once.
    found: Vec<(u32, u16)>,
    shift: u32,
}

/// Length of the word at the begin of `text` with the byte that follows it.
pub(super) fn word_len(text: &[u8]) -> usize {
    let text = &text[..text.len().min(WORD_BYTES)];
    text.iter().position(|&byte| !is_letter(byte)).map_or(text.len(), |letters| letters + 1)
}

/// What words are made of.
#[inline(always)]
pub(super) fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80
}

fn key(word: &[u8], ends: bool) -> u32 {
    hash_bytes(word) ^ u32::from(ends)
}

impl Vocabulary {
    pub(super) fn new(log: u32) -> Self {
        Self { words: Vec::new(), found: vec![(0, 0); 1 << log], shift: 32 - log }
    }

    /// The number of a word, given that it has one.
    #[inline(always)]
    pub(super) fn find(&self, word: &[u8], ends: bool) -> Option<usize> {
        let key = key(word, ends);
        let (found, number) = self.found[(key >> self.shift) as usize];
        let number = usize::from(number).checked_sub(1).filter(|_| found == key)?;
        (self.get(number) == Some((word, ends))).then_some(number)
    }

    /// A word, and whether its value ends with it.
    pub(super) fn get(&self, number: usize) -> Option<(&[u8], bool)> {
        self.words.get(number).map(|word| (&word.bytes[..usize::from(word.len)], word.ends))
    }

    /// Notes a word that was spelled; the second time it gets a number.
    pub(super) fn note(&mut self, word: &[u8], ends: bool) {
        if word.len() > WORD_BYTES || word.len() + usize::from(ends) < 2 {
            return;
        }
        let key = key(word, ends);
        let entry = &mut self.found[(key >> self.shift) as usize];
        if entry.0 != key {
            // Words with a number stay.
            if entry.1 == 0 {
                *entry = (key, 0);
            }
        } else if entry.1 == 0 && self.words.len() < WORDS {
            let mut bytes = [0; WORD_BYTES];
            bytes[..word.len()].copy_from_slice(word);
            self.words.push(Word { bytes, len: word.len() as u8, ends });
            entry.1 = self.words.len() as u16;
        }
    }
}
