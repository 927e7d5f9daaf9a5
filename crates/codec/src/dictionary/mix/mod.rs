//! A context-mixing coder that has read the dictionary before the message comes.
//!
//! Small messages are mostly what was seen before; here even what is new costs little, since the
//! models know which names, values and ends go together. It is slow, so it is for messages that
//! are small beside what a thin link takes for them.

mod logistic;
mod mixer;
mod model;
mod syntax;

use model::{Learned, Model};

use crate::Error;

const NAME: &str = "mix";

/// Longest message and dictionary in bytes: what a slow link may wait for, a second or two.
pub(super) const MAX_MESSAGE: usize = 256 << 10;

/// A model that has read a dictionary.
#[derive(Debug)]
pub(super) struct Primed {
    model: Model,
    /// What the model knew behind the dictionary, but for what it can undo.
    learned: Learned,
    dictionary_len: usize,
}

impl Primed {
    /// Reads `dictionary`, at some microseconds a byte.
    pub(super) fn new(dictionary: &[u8]) -> Result<Self, Error> {
        if dictionary.len() > MAX_MESSAGE {
            let what = format!("dictionary of {} bytes, limit {MAX_MESSAGE}", dictionary.len());
            return Err(Error::Limit { codec: NAME, what });
        }
        let mut model = Model::new(dictionary.len());
        for byte in dictionary {
            for shift in (0..8).rev() {
                model.p();
                model.update(u32::from(byte >> shift & 1));
            }
        }
        let learned = model.finish_priming();
        Ok(Self { model, learned, dictionary_len: dictionary.len() })
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.model.memory_bytes()
    }

    /// Appends the coded form of `message`; its length is not part of it.
    pub(super) fn encode(&mut self, message: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        if message.len() > MAX_MESSAGE {
            let what = format!("message of {} bytes, limit {MAX_MESSAGE}", message.len());
            return Err(Error::Limit { codec: NAME, what });
        }
        self.model.reset(&self.learned, self.dictionary_len);
        let mut range = Range::NEW;
        for byte in message {
            for shift in (0..8).rev() {
                let bit = u32::from(byte >> shift & 1);
                range.narrow(self.model.p(), bit);
                self.model.update(bit);
                while let Some(byte) = range.shift() {
                    out.push(byte);
                }
            }
        }
        let (bytes, len) = range.end();
        out.extend_from_slice(&bytes[..len]);
        Ok(())
    }

    /// Appends the message of `len` bytes that `coded` is the whole of.
    pub(super) fn decode(
        &mut self,
        coded: &[u8],
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if len > MAX_MESSAGE {
            let what = format!("message of {len} bytes, limit {MAX_MESSAGE}");
            return Err(Error::Limit { codec: NAME, what });
        }
        self.model.reset(&self.learned, self.dictionary_len);
        let mut range = Range::NEW;
        let byte = |at: usize| u32::from(coded.get(at).copied().unwrap_or(0));
        let mut code = (0..4).fold(0, |code, at| code << 8 | byte(at));
        let mut used = 0;
        for _ in 0..len {
            // Zeros behind the end are part of the code, but a message ends within four of them.
            if used > coded.len() {
                break;
            }
            let mut value = 0;
            for _ in 0..8 {
                let p = self.model.p();
                let bit = u32::from(code <= range.middle(p));
                range.narrow(p, bit);
                self.model.update(bit);
                while range.shift().is_some() {
                    code = code << 8 | byte(used + 4);
                    used += 1;
                }
                value = value << 1 | bit;
            }
            out.push(u8::try_from(value).unwrap_or(0));
        }
        let (bytes, end) = range.end();
        if coded.get(used..) != Some(&bytes[..end]) {
            let what = "the code does not end with the message".to_owned();
            return Err(Error::Corrupt { codec: NAME, what });
        }
        Ok(())
    }
}

/// The interval of a binary arithmetic coder.
struct Range {
    low: u32,
    high: u32,
}

impl Range {
    const NEW: Self = Self { low: 0, high: u32::MAX };

    /// Last code of a one.
    fn middle(&self, p: u32) -> u32 {
        let size = self.high - self.low;
        self.low + (size >> 16) * p + (((size & 0xffff) * p) >> 16)
    }

    fn narrow(&mut self, p: u32, bit: u32) {
        let middle = self.middle(p);
        if bit == 1 {
            self.high = middle;
        } else {
            self.low = middle + 1;
        }
    }

    /// The leading byte, once it is sure.
    fn shift(&mut self) -> Option<u8> {
        if (self.low ^ self.high) >> 24 != 0 {
            return None;
        }
        let [byte, ..] = self.high.to_be_bytes();
        self.low <<= 8;
        self.high = self.high << 8 | 0xff;
        Some(byte)
    }

    /// The fewest bytes that, with zeros behind them, are within the interval.
    fn end(&self) -> ([u8; 4], usize) {
        for len in 0..4 {
            let unit = 1_u64 << (32 - 8 * len);
            let rounded = u64::from(self.low).div_ceil(unit) * unit;
            if let Ok(code) = u32::try_from(rounded)
                && code <= self.high
            {
                return (code.to_be_bytes(), len);
            }
        }
        (self.low.to_be_bytes(), 4)
    }
}

#[cfg(test)]
mod tests;
