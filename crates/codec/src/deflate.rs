//! Raw deflate (RFC 1951) with a sync flush behind each block.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::{
    Codec, Decoder, Encoder, Error, Fidelity, Flow, Needs, Options, Properties, Settings,
    StreamDecoder, gzip, media,
};

const NAME: &str = "deflate";
/// Output grows by at least this much at a time, in bytes.
const GROWTH_BYTES: usize = 4096;

static PROPERTIES: Properties = Properties {
    name: NAME,
    number: 1,
    fidelity: Fidelity::Bytes,
    flow: Flow::Blocks,
    needs: Needs::Nothing,
    levels: Some((1, 6, 9)),
    media: media::ANY,
    form: "gzip (RFC 1952); zlib (RFC 1950) is read too",
};

pub(crate) struct Deflate;

impl Codec for Deflate {
    fn properties(&self) -> &'static Properties {
        &PROPERTIES
    }

    fn stream_encoder(&self, settings: &Settings) -> Result<Box<dyn Encoder>, Error> {
        gzip::encoder(settings)
    }

    fn stream_decoder(&self, settings: &Settings) -> Result<Box<dyn StreamDecoder>, Error> {
        gzip::decoder(settings)
    }

    fn encoder_bytes(&self, _: Options) -> usize {
        400 << 10
    }

    fn decoder_bytes(&self, _: Options) -> usize {
        128 << 10
    }

    fn encoder(&self, options: Options) -> Result<Box<dyn Encoder>, Error> {
        let level = Compression::new(u32::from(options.level.unsigned_abs()));
        Ok(Box::new(DeflateEncoder { context: Compress::new(level, false), closed: false }))
    }

    fn decoder(&self, _: Options) -> Result<Box<dyn Decoder>, Error> {
        Ok(Box::new(DeflateDecoder(Decompress::new(false))))
    }
}

struct DeflateEncoder {
    context: Compress,
    closed: bool,
}

impl Encoder for DeflateEncoder {
    fn encode(&mut self, block: &[u8], last: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        // The stream takes nothing any more: it would be offered the block for ever.
        if self.closed {
            let what = "a block behind the last".to_owned();
            return Err(Error::Option { what });
        }
        self.closed = last;
        let flush = if last { FlushCompress::Finish } else { FlushCompress::Sync };
        let mut rest = block;
        loop {
            out.reserve(GROWTH_BYTES.max(rest.len() / 4));
            let before = self.context.total_in();
            let status = self
                .context
                .compress_vec(rest, out, flush)
                .map_err(|error| Error::Limit { codec: NAME, what: error.to_string() })?;
            rest = &rest[consumed(before, self.context.total_in())..];
            // With room left over and nothing to read, the flush is complete (zlib manual).
            if status == Status::StreamEnd
                || (rest.is_empty() && out.len() < out.capacity() && !last)
            {
                return Ok(());
            }
        }
    }

    fn renew(&mut self) -> bool {
        self.context.reset();
        self.closed = false;
        true
    }
}

struct DeflateDecoder(Decompress);

impl Decoder for DeflateDecoder {
    fn decode(
        &mut self,
        block: &[u8],
        decoded_len: usize,
        last: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let corrupt = |what: &str| Error::Corrupt { codec: NAME, what: what.to_owned() };
        // One byte more than declared shows an overlong block without holding it.
        let mut buffer = vec![0; decoded_len + 1];
        let (before_in, before_out) = (self.0.total_in(), self.0.total_out());
        let (mut used, mut made) = (0, 0);
        let mut ended = false;
        loop {
            let status = self
                .0
                .decompress(&block[used..], &mut buffer[made..], FlushDecompress::Sync)
                .map_err(|error| corrupt(&error.to_string()))?;
            let (now_used, now_made) =
                (consumed(before_in, self.0.total_in()), consumed(before_out, self.0.total_out()));
            let stuck = (now_used, now_made) == (used, made);
            (used, made) = (now_used, now_made);
            if made > decoded_len {
                return Err(Error::Length { codec: NAME, declared: decoded_len });
            }
            ended |= status == Status::StreamEnd;
            if ended || stuck {
                break;
            }
        }
        if made != decoded_len {
            return Err(Error::Length { codec: NAME, declared: decoded_len });
        }
        if used != block.len() {
            return Err(corrupt("bytes behind the end"));
        }
        if ended != last {
            return Err(corrupt("the stream ends in the wrong block"));
        }
        out.extend_from_slice(&buffer[..made]);
        Ok(())
    }

    fn renew(&mut self) -> bool {
        self.0.reset(false);
        true
    }
}

/// Progress of one of zlib's counters since `before`; a block's fits `usize`.
fn consumed(before: u64, after: u64) -> usize {
    usize::try_from(after - before).unwrap_or(usize::MAX)
}
