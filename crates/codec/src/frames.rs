//! Zstandard as other programs keep it: frames with magic number and checksum (RFC 8878 §3).

use zstd_safe::{
    CParameter, DCtx, DParameter, InBuffer, OutBuffer, get_error_name,
    zstd_sys::ZSTD_EndDirective::ZSTD_e_continue,
};

use crate::zstd::ZstdEncoder;
use crate::{Encoder, Error, Limits, Settings, Step, StreamDecoder};

const NAME: &str = "zstd";
/// Least room for what one step gives, in bytes.
const STEP_BYTES: usize = 64 << 10;
/// Windows that zstd knows, as powers of two (RFC 8878 §3.1.1.1.2 and the library's own bound).
const MIN_FRAME_WINDOW_LOG: u32 = 10;
const MAX_FRAME_WINDOW_LOG: u32 = 27;

fn refused(code: usize) -> Error {
    Error::Limit { codec: NAME, what: get_error_name(code).to_owned() }
}

/// What a decoder's `code` says: a window over the one that was granted is a limit, else damage.
pub(crate) fn failed(codec: &'static str, code: usize) -> Error {
    /// `ZSTD_error_frameParameter_windowTooLarge` of zstd_errors.h; codes are returned negative.
    const WINDOW_TOO_LARGE: usize = 16;
    let what = get_error_name(code).to_owned();
    match code.wrapping_neg() {
        WINDOW_TOO_LARGE => Error::Limit { codec, what: what + ": table_bytes is less" },
        _ => Error::Corrupt { codec, what },
    }
}

fn no_memory() -> Error {
    Error::Limit { codec: NAME, what: "no memory for a context".to_owned() }
}

pub(crate) fn encoder(settings: &Settings) -> Result<Box<dyn Encoder>, Error> {
    let level = i32::from(settings.level.unwrap_or(3));
    let parameters = [CParameter::CompressionLevel(level), CParameter::ChecksumFlag(true)];
    Ok(Box::new(ZstdEncoder::with(&parameters, ZSTD_e_continue)?))
}

/// Its window is bounded by [`Limits::table_bytes`].
pub(crate) fn decoder(settings: &Settings) -> Result<Box<dyn StreamDecoder>, Error> {
    let mut context = DCtx::try_create().ok_or_else(no_memory)?;
    let window_log = window_log_max(settings.limits);
    context.set_parameter(DParameter::WindowLogMax(window_log)).map_err(refused)?;
    Ok(Box::new(FrameDecoder { context, between: false }))
}

fn window_log_max(limits: Limits) -> u32 {
    limits.table_bytes.max(1).ilog2().clamp(MIN_FRAME_WINDOW_LOG, MAX_FRAME_WINDOW_LOG)
}

struct FrameDecoder {
    context: DCtx<'static>,
    /// A frame has ended and no other has begun.
    between: bool,
}

impl StreamDecoder for FrameDecoder {
    fn decode(&mut self, input: &[u8], last: bool, out: &mut Vec<u8>) -> Result<Step, Error> {
        // Between frames an empty call would begin another.
        if input.is_empty() && self.between {
            return Ok(Step { used: 0, done: last });
        }
        out.reserve(STEP_BYTES);
        let at = out.len();
        let mut source = InBuffer::around(input);
        let mut output = OutBuffer::around_pos(out, at);
        let hint = self
            .context
            .decompress_stream(&mut output, &mut source)
            .map_err(|code| failed(NAME, code))?;
        self.between = hint == 0;
        Ok(Step { used: source.pos, done: self.between && last && source.pos == input.len() })
    }
}
