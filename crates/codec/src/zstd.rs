//! Zstandard (RFC 8878) without the magic number, flushed at the end of each block.

use zstd_safe::{
    CCtx, CParameter, DCtx, DParameter, FrameFormat, InBuffer, OutBuffer, ResetDirective,
    get_error_name,
    zstd_sys::ZSTD_EndDirective::{self, ZSTD_e_continue, ZSTD_e_end, ZSTD_e_flush},
};

use crate::{
    Codec, Decoder, Encoder, Error, Fidelity, Flow, MIN_WINDOW_LOG, Needs, Options, Properties,
    Settings, StreamDecoder, frames, media,
};

const NAME: &str = "zstd";

static PROPERTIES: Properties = Properties {
    name: NAME,
    number: 2,
    fidelity: Fidelity::Bytes,
    flow: Flow::Blocks,
    needs: Needs::Nothing,
    levels: Some((-7, 3, 19)),
    media: media::ANY,
    form: "Zstandard frames (RFC 8878)",
};

pub(crate) struct Zstd;

impl Codec for Zstd {
    fn properties(&self) -> &'static Properties {
        &PROPERTIES
    }

    fn stream_encoder(&self, settings: &Settings) -> Result<Box<dyn Encoder>, Error> {
        frames::encoder(settings)
    }

    fn stream_decoder(&self, settings: &Settings) -> Result<Box<dyn StreamDecoder>, Error> {
        frames::decoder(settings)
    }

    /// Window, block buffers and tables as zstd sizes them; a test compares with what it takes.
    fn encoder_bytes(&self, options: Options) -> usize {
        let window = 1_usize << options.window_log.max(MIN_WINDOW_LOG);
        let block = window.min(128 << 10);
        let tables = match options.level {
            ..=3 => (768 << 10).min(12 * window),
            4..=6 => (2560 << 10).min(12 * window),
            7..=8 => (5 << 20).min(12 * window),
            9..=12 => (10 << 20).min(16 * window),
            _ => 23 * window,
        };
        window + 5 * block + tables + (160 << 10)
    }

    fn decoder_bytes(&self, options: Options) -> usize {
        let window = 1_usize << options.window_log.max(MIN_WINDOW_LOG);
        window + 2 * window.min(128 << 10) + (256 << 10)
    }

    fn encoder(&self, options: Options) -> Result<Box<dyn Encoder>, Error> {
        Ok(Box::new(ZstdEncoder::new(options)?))
    }

    fn decoder(&self, options: Options) -> Result<Box<dyn Decoder>, Error> {
        Ok(Box::new(ZstdDecoder::new(options)?))
    }
}

fn refused(code: usize) -> Error {
    Error::Limit { codec: NAME, what: get_error_name(code).to_owned() }
}

fn no_memory() -> Error {
    Error::Limit { codec: NAME, what: "no memory for a context".to_owned() }
}

/// One frame, in blocks.
pub(crate) struct ZstdEncoder {
    pub(crate) context: CCtx<'static>,
    /// What is asked for behind each block but the last.
    between: ZSTD_EndDirective,
    closed: bool,
}

impl ZstdEncoder {
    pub(crate) fn new(options: Options) -> Result<Self, Error> {
        Self::formed(options, FrameFormat::Magicless)
    }

    /// A frame of this format whose blocks each come out whole.
    pub(crate) fn formed(options: Options, format: FrameFormat) -> Result<Self, Error> {
        let parameters = [
            CParameter::Format(format),
            CParameter::CompressionLevel(i32::from(options.level)),
            CParameter::WindowLog(u32::from(options.window_log.max(MIN_WINDOW_LOG))),
            // Else tables are sized for endless input whatever the window: 20 MiB for 32 KiB.
            CParameter::SrcSizeHint(1 << options.window_log.max(MIN_WINDOW_LOG)),
            CParameter::ContentSizeFlag(false),
            CParameter::ChecksumFlag(false),
        ];
        Self::with(&parameters, ZSTD_e_flush)
    }

    pub(crate) fn with(
        parameters: &[CParameter],
        between: ZSTD_EndDirective,
    ) -> Result<Self, Error> {
        let mut context = CCtx::try_create().ok_or_else(no_memory)?;
        for &parameter in parameters {
            context.set_parameter(parameter).map_err(refused)?;
        }
        Ok(Self { context, between, closed: false })
    }
}

impl Encoder for ZstdEncoder {
    fn encode(&mut self, block: &[u8], last: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.closed {
            let what = "a block behind the last".to_owned();
            return Err(Error::Option { what });
        }
        self.closed = last;
        let directive = if last { ZSTD_e_end } else { self.between };
        let mut input = InBuffer::around(block);
        loop {
            out.reserve(zstd_safe::compress_bound(block.len() - input.pos) + 64);
            let at = out.len();
            let mut output = OutBuffer::around_pos(out, at);
            let left = self
                .context
                .compress_stream2(&mut output, &mut input, directive)
                .map_err(refused)?;
            if input.pos == block.len() && (left == 0 || directive == ZSTD_e_continue) {
                return Ok(());
            }
        }
    }

    fn renew(&mut self) -> bool {
        self.closed = false;
        self.context.reset(ResetDirective::SessionOnly).is_ok()
    }
}

pub(crate) struct ZstdDecoder {
    pub(crate) context: DCtx<'static>,
    closed: bool,
}

impl ZstdDecoder {
    pub(crate) fn new(options: Options) -> Result<Self, Error> {
        let mut context = DCtx::try_create().ok_or_else(no_memory)?;
        context.reset(ResetDirective::SessionAndParameters).map_err(refused)?;
        for parameter in [
            DParameter::Format(FrameFormat::Magicless),
            DParameter::WindowLogMax(u32::from(options.window_log.max(MIN_WINDOW_LOG))),
        ] {
            context.set_parameter(parameter).map_err(refused)?;
        }
        Ok(Self { context, closed: false })
    }
}

impl Decoder for ZstdDecoder {
    fn decode(
        &mut self,
        block: &[u8],
        decoded_len: usize,
        last: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let corrupt = |what: &str| Error::Corrupt { codec: NAME, what: what.to_owned() };
        if self.closed {
            return Err(corrupt("a block behind the end"));
        }
        // One byte more than declared shows an overlong block without holding it.
        let mut buffer = Vec::with_capacity(decoded_len + 1);
        let mut input = InBuffer::around(block);
        loop {
            let (before_in, before_out) = (input.pos, buffer.len());
            let mut output = OutBuffer::around_pos(&mut buffer, before_out);
            let hint = self
                .context
                .decompress_stream(&mut output, &mut input)
                .map_err(|code| corrupt(get_error_name(code)))?;
            if buffer.len() > decoded_len {
                return Err(Error::Length { codec: NAME, declared: decoded_len });
            }
            self.closed |= hint == 0;
            if self.closed || (input.pos, buffer.len()) == (before_in, before_out) {
                break;
            }
        }
        if buffer.len() != decoded_len {
            return Err(Error::Length { codec: NAME, declared: decoded_len });
        }
        if input.pos != block.len() {
            return Err(corrupt("bytes behind the end"));
        }
        if self.closed != last {
            return Err(corrupt("the frame ends in the wrong block"));
        }
        out.extend_from_slice(&buffer);
        Ok(())
    }

    fn renew(&mut self) -> bool {
        self.closed = false;
        self.context.reset(ResetDirective::SessionOnly).is_ok()
    }
}
