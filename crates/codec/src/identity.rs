//! The coding that changes nothing.

use crate::{Codec, Decoder, Encoder, Error, Options};

pub(crate) struct Identity;

impl Codec for Identity {
    fn name(&self) -> &'static str {
        "identity"
    }

    fn number(&self) -> u64 {
        0
    }

    fn levels(&self) -> Option<(i8, i8, i8)> {
        None
    }

    fn encoder_bytes(&self, _: Options) -> usize {
        0
    }

    fn decoder_bytes(&self, _: Options) -> usize {
        0
    }

    fn encoder(&self, _: Options) -> Result<Box<dyn Encoder>, Error> {
        Ok(Box::new(Self))
    }

    fn decoder(&self, _: Options) -> Result<Box<dyn Decoder>, Error> {
        Ok(Box::new(Self))
    }
}

impl Encoder for Identity {
    fn encode(&mut self, block: &[u8], _last: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        out.extend_from_slice(block);
        Ok(())
    }
}

impl Decoder for Identity {
    fn decode(
        &mut self,
        block: &[u8],
        decoded_len: usize,
        _last: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if block.len() != decoded_len {
            return Err(Error::Length { codec: "identity", declared: decoded_len });
        }
        out.extend_from_slice(block);
        Ok(())
    }
}
