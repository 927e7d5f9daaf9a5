//! Columns of text as words: those that come often by number.

use super::bytes::{Input, put_number};
use crate::xmill::nibbles::Nibbles;
use crate::xmill::outline::Broken;
use crate::xmill::pieces::{PROBES, hash_bytes, join};
use crate::xmill::range::{Coder, RangeDecoder, RangeEncoder};

/// Longest word with what follows it.
const WORD_BYTES: usize = 32;
/// Codes before the words: the end of a value, and what is no word of the vocabulary.
const END: u8 = 0;
const OTHER: u8 = 1;
const CODES: usize = 2;
/// Codes from here on have a second byte.
const LONG: usize = 240;
const WORDS: usize = LONG - CODES + (256 - LONG) * 256;
/// Times that a word comes, at least.
const TIMES: u32 = 3;
/// Fewer bytes are not worth a vocabulary.
const MIN_BYTES: usize = 4096;
/// Columns of words of a block: each has such contexts.
pub(super) const COLUMNS: usize = 4;

/// Contexts of half a code that are kept for 2^`log` bytes, as a power of two.
fn slots_log(log: u32) -> u32 {
    log.saturating_sub(3).clamp(10, 14)
}

/// What all columns of words take, at 32 bytes a context.
pub(in crate::xmill) fn column_bytes(log: u32) -> usize {
    COLUMNS * ((32 << slots_log(log)) + (1 << 12) + WORDS * size_of::<&[u8]>())
}

/// Texts by number, in the order in which they first came, and how often.
pub(super) struct Distinct<'a> {
    pub(super) all: Vec<(&'a [u8], u32)>,
    /// Open addressing by hash; 0 is free, else the number and 1.
    found: Vec<u32>,
}

impl<'a> Distinct<'a> {
    pub(super) fn new() -> Self {
        Self { all: Vec::new(), found: vec![0; 64] }
    }

    /// Where the number of a text is or would be, unless too many have the same hash.
    fn place(&self, text: &[u8]) -> Option<usize> {
        let (mask, first) = (self.found.len() - 1, hash_bytes(text) as usize);
        let is_it = |number: u32| number == 0 || self.all[number as usize - 1].0 == text;
        (first..first + PROBES).map(|at| at & mask).find(|&at| is_it(self.found[at]))
    }

    pub(super) fn number(&mut self, text: &'a [u8]) -> usize {
        let place = self.place(text);
        let found = place.map_or(0, |at| self.found[at]) as usize;
        if found > 0 {
            self.all[found - 1].1 += 1;
            return found - 1;
        }
        let number = self.all.len();
        self.all.push((text, 1));
        self.enter(place, number);
        if self.all.len() * 2 > self.found.len() {
            self.found = vec![0; self.found.len() * 4];
            for number in 0..self.all.len() {
                self.enter(self.place(self.all[number].0), number);
            }
        }
        number
    }

    fn enter(&mut self, place: Option<usize>, number: usize) {
        if let (Some(at), Ok(number)) = (place, u32::try_from(number + 1)) {
            self.found[at] = number;
        }
    }
}

/// A word at the begin of a text, with all up to the next.
fn word_len(text: &[u8]) -> usize {
    let text = &text[..text.len().min(WORD_BYTES)];
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80;
    let letters = text.iter().position(|byte| !is_letter(byte)).unwrap_or(text.len());
    let between = text[letters..].iter().position(is_letter);
    between.map_or(text.len(), |between| letters + between)
}

/// Writes values by words; whether that may pay.
pub(super) fn put_words(values: &[&[u8]], log: u32, out: &mut Vec<u8>) -> bool {
    let bytes: usize = values.iter().map(|value| value.len()).sum();
    if bytes < MIN_BYTES {
        return false;
    }
    let (mut distinct, mut tokens) = (Distinct::new(), Vec::new());
    for value in values {
        let mut rest = *value;
        while !rest.is_empty() {
            let (word, later) = rest.split_at(word_len(rest));
            tokens.push(distinct.number(word));
            rest = later;
        }
        tokens.push(usize::MAX);
    }
    let mut known: Vec<_> =
        (0..distinct.all.len()).filter(|&word| distinct.all[word].1 >= TIMES).collect();
    known.sort_by_key(|&word| (std::cmp::Reverse(distinct.all[word].1), word));
    known.truncate(WORDS);
    let covered: usize =
        known.iter().map(|&word| distinct.all[word].0.len() * distinct.all[word].1 as usize).sum();
    let kept: usize = known.iter().map(|&word| distinct.all[word].0.len()).sum();
    if covered * 10 < bytes * 9 || kept * 8 > bytes {
        return false;
    }
    put_number(known.len(), out);
    let mut ranks = vec![usize::MAX; distinct.all.len()];
    for (rank, &word) in known.iter().enumerate() {
        ranks[word] = rank;
        put_number(distinct.all[word].0.len(), out);
        out.extend_from_slice(distinct.all[word].0);
    }
    let (codes, others) = coded(&tokens, &distinct, &ranks);
    put_number(others.len(), out);
    out.extend(others);
    put_number(codes.len(), out);
    let (mut coder, mut model) = (RangeEncoder::new(out), Phrases::new(log));
    for code in codes {
        model.code(&mut coder, code);
    }
    coder.finish();
    true
}

/// The words by rank, and those that have none.
fn coded(tokens: &[usize], distinct: &Distinct<'_>, ranks: &[usize]) -> (Vec<u8>, Vec<u8>) {
    let (mut codes, mut others) = (Vec::with_capacity(tokens.len()), Vec::new());
    for &word in tokens {
        let Some(&rank) = ranks.get(word) else {
            codes.push(END);
            continue;
        };
        let code = rank.saturating_add(CODES);
        if rank == usize::MAX {
            codes.push(OTHER);
            let text = distinct.all[word].0;
            put_number(text.len(), &mut others);
            others.extend_from_slice(text);
        } else if let Some(code) = u8::try_from(code).ok().filter(|_| code < LONG) {
            codes.push(code);
        } else {
            let [high, low] = u16::try_from(code - LONG).unwrap_or(0).to_be_bytes();
            codes.extend([240 + high, low]);
        }
    }
    (codes, others)
}

/// Guesses words from the two before.
struct Phrases {
    nibbles: Nibbles,
    /// The last codes, and the first byte of one that has two.
    last: [u32; 2],
    first: u32,
}

impl Phrases {
    fn new(log: u32) -> Self {
        Self { nibbles: Nibbles::new(slots_log(log)), last: [0; 2], first: 0 }
    }

    fn code<C: Coder>(&mut self, coder: &mut C, byte: u8) -> u8 {
        let [last, before] = self.last;
        let low = self.first + 0x100;
        let middle = join(low, last);
        let contexts = [join(low, 1), middle, join(middle, before)];
        let byte = self.nibbles.byte(coder, byte, contexts, 0);
        let code = self.first << 8 | u32::from(byte);
        if self.first == 0 && usize::from(byte) >= LONG {
            self.first = code;
        } else {
            (self.last, self.first) = ([code, last], 0);
        }
        byte
    }
}

/// Gives the values of such a column one by one.
pub(super) struct Words<'a> {
    known: Vec<&'a [u8]>,
    others: Input<'a>,
    left: usize,
    coder: RangeDecoder<'a>,
    model: Phrases,
}

impl<'a> Words<'a> {
    pub(super) fn of(input: &mut Input<'a>, log: u32) -> Result<Self, Broken> {
        let count = input.number()?;
        if count > WORDS {
            return Err(Broken::Unknown);
        }
        let known = (0..count).map(|_| input.text()).collect::<Result<_, _>>()?;
        let others = Input::of(input.text()?);
        let left = input.number()?;
        let coder = RangeDecoder::new(input.rest());
        Ok(Self { known, others, left, coder, model: Phrases::new(log) })
    }

    fn code(&mut self) -> Result<u8, Broken> {
        self.left = self.left.checked_sub(1).ok_or(Broken::Unknown)?;
        Ok(self.model.code(&mut self.coder, 0))
    }

    pub(super) fn next(&mut self, out: &mut Vec<u8>, most: usize) -> Result<(), Broken> {
        loop {
            let word = match self.code()? {
                END => return Ok(()),
                OTHER => self.others.text()?,
                code => {
                    let mut code = usize::from(code);
                    if code >= LONG {
                        code += (code - LONG) * 255 + usize::from(self.code()?);
                    }
                    *self.known.get(code - CODES).ok_or(Broken::Unknown)?
                }
            };
            if word.is_empty() {
                return Err(Broken::Empty);
            }
            if word.len() > most.saturating_sub(out.len()) {
                return Err(Broken::Overlong);
            }
            out.extend_from_slice(word);
        }
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.left == 0 && self.others.rest().is_empty() && self.coder.is_used_up()
    }
}
