//! Which blocks of a body are missing: `application/missing-blocks+cbor-seq` (RFC 9177 §5).

use crate::cbor::{Decoder, Encoder, Item};
use crate::coap::{Code, Content, MAX_NUM, format, option};

/// Most numbers that are read of one message: more than fit one datagram that is taken.
pub const MAX_MISSING: usize = 1152;

/// The numbers as a sequence of CBOR items, without anything around them.
#[must_use]
pub fn encode(numbers: &[u32]) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new());
    for number in numbers {
        // A vector takes what is put.
        let _ = encoder.unsigned((*number).into());
    }
    encoder.into_sink()
}

/// The response that names them.
pub(super) fn response(numbers: &[u32]) -> Content {
    let content = Content::new(Code::REQUEST_ENTITY_INCOMPLETE);
    let content = content.with_uint(option::CONTENT_FORMAT, format::MISSING_BLOCKS.into());
    content.with_payload(encode(numbers))
}

/// The numbers, each once. `None` where there is none, where one is no number of a block, where
/// they are not in ascending order (which a client is to drop), or where there are more than
/// [`MAX_MISSING`].
#[must_use]
pub fn decode(payload: &[u8]) -> Option<Vec<u32>> {
    let (mut numbers, mut rest) = (Vec::new(), payload);
    while !rest.is_empty() {
        let mut decoder = Decoder::<1>::new(rest);
        let Some(Ok(Item::Unsigned(number))) = decoder.next() else { return None };
        rest = decoder.rest();
        let number = u32::try_from(number).ok().filter(|number| *number <= MAX_NUM)?;
        match numbers.last() {
            Some(last) if number < *last => return None,
            // RFC 9177 §5: what is there twice counts once.
            Some(last) if number == *last => continue,
            _ if numbers.len() >= MAX_MISSING => return None,
            _ => numbers.push(number),
        }
    }
    (!numbers.is_empty()).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_stand_in_a_sequence() {
        assert_eq!(encode(&[1, 9]), [0x01, 0x09]);
        assert_eq!(encode(&[23, 24, 500]), [0x17, 0x18, 24, 0x19, 1, 0xf4]);
        assert_eq!(decode(&[0x01, 0x09]), Some(vec![1, 9]));
        assert_eq!(decode(&[0x01, 0x01, 0x18, 0x02]), Some(vec![1, 2]));
        for bad in [&[][..], &[0x09, 0x01], &[0x21], &[0x81, 0x01], &[0x18], &[0x1a, 0, 0x10, 0, 0]]
        {
            assert_eq!(decode(bad), None, "{bad:?}");
        }
        let many: Vec<u32> = (0..).take(MAX_MISSING).collect();
        assert_eq!(decode(&encode(&many)).map(|all| all.len()), Some(MAX_MISSING));
        let more: Vec<u32> = (0..).take(MAX_MISSING + 1).collect();
        assert_eq!(decode(&encode(&more)), None);
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_the_same(
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            if let Some(numbers) = decode(&bytes) {
                prop_assert_eq!(decode(&encode(&numbers)), Some(numbers));
            }
        }
    }
}
