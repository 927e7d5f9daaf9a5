//! What a receiver reports of a message that it has received and decoded: CONTROL of kind 1.
//!
//! The content is a version (one byte, here 1 or 3: bit 1 is a flag), then five integers as in
//! RFC 9000 §16: exchange, bytes behind the first piece, and in microseconds their spread, the
//! processor time of decoding, and the time from the last piece to the end of decoding. Other
//! versions are for later and are to be ignored. No point in time is in it, so that clocks need not
//! agree.

use std::time::Duration;

use bytes::Bytes;

use crate::exchange::Part;
use crate::{Error, varint};

/// The first byte without its flag.
const VERSION: u8 = 1;
/// The receiver kept the sender waiting.
const HELD_UP: u8 = 2;
/// Times and lengths are reported up to this: an integer of four bytes.
const MOST: u64 = (1 << 30) - 1;

/// What a receiver reports of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Number of the exchange; the message is the one that the receipt's receiver sent.
    pub exchange: u64,
    /// Bytes that the carrier brought behind the message's first piece, up to its last.
    pub bytes: u64,
    /// Time between those two.
    pub spread: Duration,
    /// Processor time of decoding.
    pub decode: Duration,
    /// From the last piece to the end of decoding, and until the receipt left.
    pub tail: Duration,
    /// The receiver kept the sender waiting, so that the times say nothing of the network.
    pub held_up: bool,
}

impl Receipt {
    /// Kind of the control part.
    pub const KIND: u64 = 1;
    /// Most bytes of content.
    pub const MAX_BYTES: usize = 25;

    /// As it is sent.
    #[must_use]
    pub fn part(&self) -> Part {
        let mut content = Vec::with_capacity(Self::MAX_BYTES);
        content.push(VERSION | if self.held_up { HELD_UP } else { 0 });
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        varint::encode(self.exchange, &mut content);
        for value in [self.bytes, micros(self.spread), micros(self.decode), micros(self.tail)] {
            varint::encode(value.min(MOST), &mut content);
        }
        Part::Control(Self::KIND, Bytes::from(content))
    }

    /// Reads the content of a control part of this kind. Errors: another version, a number that is
    /// out of bounds, bytes missing or left over.
    pub fn decode(content: &[u8]) -> Result<Self, Error> {
        const WHAT: &str = "a receipt";
        let (&first, mut rest) = content.split_first().ok_or(Error::Truncated { what: WHAT })?;
        if first & !HELD_UP != VERSION {
            let value = u64::from(first);
            return Err(Error::Peer { what: "a receipt of version", value });
        }
        let exchange = varint::decode(&mut rest, WHAT)?;
        let mut numbers = [0; 4];
        for number in &mut numbers {
            *number = varint::decode(&mut rest, WHAT)?;
            if *number > MOST {
                let value = *number;
                return Err(Error::Limit { what: "a number of a receipt", value, limit: MOST });
            }
        }
        if !rest.is_empty() {
            let value = rest.len() as u64;
            return Err(Error::Peer { what: "bytes behind the end of a receipt:", value });
        }
        let [bytes, spread, decode, tail] = numbers;
        let (spread, decode) = (Duration::from_micros(spread), Duration::from_micros(decode));
        let (tail, held_up) = (Duration::from_micros(tail), first & HELD_UP != 0);
        Ok(Self { exchange, bytes, spread, decode, tail, held_up })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn content(receipt: &Receipt) -> Bytes {
        let Part::Control(Receipt::KIND, content) = receipt.part() else {
            panic!("another frame");
        };
        content
    }

    #[test]
    fn what_does_not_fit_is_reported_as_the_most() {
        let receipt =
            Receipt { bytes: 1 << 40, tail: Duration::from_secs(1 << 20), ..Receipt::default() };
        let reported = Receipt::decode(&content(&receipt)).unwrap();
        assert_eq!((reported.bytes, reported.tail), (MOST, Duration::from_micros(MOST)));
    }

    #[test]
    fn other_versions_and_lengths_are_refused() {
        let whole = content(&Receipt { exchange: 9, bytes: 70_000, ..Receipt::default() });
        for len in 0..whole.len() {
            assert!(Receipt::decode(&whole[..len]).is_err(), "{len}");
        }
        let mut longer = whole.to_vec();
        longer.push(0);
        assert!(Receipt::decode(&longer).is_err());
        for first in (0..=u8::MAX).filter(|first| ![1, 3].contains(first)) {
            longer[0] = first;
            assert!(Receipt::decode(&longer[..whole.len()]).is_err(), "{first}");
        }
    }

    proptest! {
        #[test]
        fn receipts_come_back(
            exchange in 0..1_u64 << 62, numbers: [u32; 4], held_up: bool, junk: Vec<u8>,
        ) {
            let [bytes, spread, decode, tail] = numbers.map(|number| u64::from(number >> 2));
            let micros = Duration::from_micros;
            let (spread, decode, tail) = (micros(spread), micros(decode), micros(tail));
            let receipt = Receipt { exchange, bytes, spread, decode, tail, held_up };
            let content = content(&receipt);
            prop_assert!(content.len() <= Receipt::MAX_BYTES);
            prop_assert_eq!(Receipt::decode(&content).unwrap(), receipt);
            let _ = Receipt::decode(&junk);
        }
    }
}
