//! The coding that changes nothing.

use crate::{
    Codec, Decoder, Encoder, Error, Fidelity, Flow, Needs, Options, Properties, Settings, Step,
    StreamDecoder, media,
};

const NAME: &str = "identity";
/// Bytes that one step of decoding passes on.
const STEP_BYTES: usize = 64 << 10;

static PROPERTIES: Properties = Properties {
    name: NAME,
    number: 0,
    fidelity: Fidelity::Bytes,
    flow: Flow::Blocks,
    needs: Needs::Nothing,
    levels: None,
    media: media::ANY,
    form: "the bytes themselves",
};

pub(crate) struct Identity;

impl Codec for Identity {
    fn properties(&self) -> &'static Properties {
        &PROPERTIES
    }

    fn stream_encoder(&self, _: &Settings) -> Result<Box<dyn Encoder>, Error> {
        Ok(Box::new(Self))
    }

    fn stream_decoder(&self, _: &Settings) -> Result<Box<dyn StreamDecoder>, Error> {
        Ok(Box::new(Self))
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
            return Err(Error::Length { codec: NAME, declared: decoded_len });
        }
        out.extend_from_slice(block);
        Ok(())
    }
}

impl StreamDecoder for Identity {
    fn decode(&mut self, input: &[u8], last: bool, out: &mut Vec<u8>) -> Result<Step, Error> {
        let used = input.len().min(STEP_BYTES);
        out.extend_from_slice(&input[..used]);
        Ok(Step { used, done: last && used == input.len() })
    }
}
