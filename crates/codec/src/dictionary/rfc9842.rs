//! The content encodings `dcb` and `dcz` of HTTP (RFC 9842 §4 and §5): a header that names the
//! dictionary by its SHA-256, and a stream of brotli or Zstandard that has it in front.
//!
//! The dictionary is raw content, whatever it begins with.

use zstd_safe::{CCtx, CParameter, DCtx, DParameter, InBuffer, OutBuffer, get_error_name};

use crate::brotli::{DICTIONARY_LEVELS, Decompressor, encode_with};
use crate::frames::failed;
use crate::{Error, Limits};

use super::Id;

/// RFC 9842 §4: four bytes, then the hash.
const DCB_MAGIC: [u8; 4] = [0xff, b'D', b'C', b'B'];
/// RFC 9842 §5: a skippable frame of zstd of 32 bytes, then the hash.
const DCZ_MAGIC: [u8; 8] = [0x5e, 0x2a, 0x4d, 0x18, 0x20, 0, 0, 0];
const HASH_BYTES: usize = 32;
/// RFC 9842 §4: a window of at most 16 MB.
const DCB_WINDOW_LOG: u32 = 24;
/// RFC 9842 §5: a window of at most 8 MB, or 1.25 times the dictionary up to 128 MB.
const DCZ_WINDOW_BYTES: usize = 8 << 20;
const MAX_DCZ_WINDOW_BYTES: usize = 128 << 20;
/// Output grows by so much at a time.
const STEP_BYTES: usize = 64 << 10;

/// One of the two encodings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Brotli, levels 0 to 11.
    Dcb,
    /// Zstandard, levels 1 to 22.
    Dcz,
}

impl Form {
    /// The name in `Content-Encoding` (RFC 9842 §9.2).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dcb => "dcb",
            Self::Dcz => "dcz",
        }
    }

    fn magic(self) -> &'static [u8] {
        match self {
            Self::Dcb => &DCB_MAGIC,
            Self::Dcz => &DCZ_MAGIC,
        }
    }

    fn corrupt(self, what: impl Into<String>) -> Error {
        Error::Corrupt { codec: self.name(), what: what.into() }
    }

    fn over(self, what: impl Into<String>) -> Error {
        Error::Limit { codec: self.name(), what: what.into() }
    }
}

/// The stream of `message` with `dictionary`. Errors: a level that the form does not have, a
/// message or a dictionary over [`Limits::message_bytes`].
pub fn encode(
    form: Form,
    dictionary: &[u8],
    message: &[u8],
    level: Option<i8>,
    limits: &Limits,
) -> Result<Vec<u8>, Error> {
    let (least_brotli, most_brotli) = DICTIONARY_LEVELS;
    let (usual, least, most) = match form {
        Form::Dcb => (least_brotli, least_brotli, most_brotli),
        Form::Dcz => (3, 1, 22),
    };
    let level = level.unwrap_or(usual);
    if !(least..=most).contains(&level) {
        let name = form.name();
        let what = format!("level '{level}' of {name}: a number from {least} to {most}");
        return Err(Error::Option { what });
    }
    check_len(form, "message", message, limits)?;
    check_len(form, "dictionary", dictionary, limits)?;
    let mut out = [form.magic(), &Id::of(dictionary).0].concat();
    match form {
        Form::Dcb => out.append(&mut encode_with(dictionary, message, level)?),
        Form::Dcz => encode_zstd(dictionary, message, level, &mut out)?,
    }
    Ok(out)
}

fn check_len(form: Form, what: &str, bytes: &[u8], limits: &Limits) -> Result<(), Error> {
    let (len, most) = (bytes.len(), limits.message_bytes);
    if len > most {
        return Err(form.over(format!("{what} of {len} bytes, over the {most} of message_bytes")));
    }
    Ok(())
}

/// The message of a stream that was made with `dictionary`. Errors: another dictionary, damage,
/// bytes behind the end, a message over [`Limits::output_bytes`], a window over what RFC 9842 and
/// [`Limits::table_bytes`] allow.
pub fn decode(
    form: Form,
    dictionary: &[u8],
    coded: &[u8],
    limits: &Limits,
) -> Result<Vec<u8>, Error> {
    check_len(form, "dictionary", dictionary, limits)?;
    let magic = form.magic();
    let rest =
        coded.strip_prefix(magic).ok_or_else(|| form.corrupt("another first bytes").at(0))?;
    let Some((hash, stream)) = rest.split_at_checked(HASH_BYTES) else {
        let what = "ends in the name of the dictionary";
        return Err(form.corrupt(what).at(coded.len() as u64));
    };
    let id = Id::of(dictionary);
    if *hash != id.0 {
        let what = format!("made with another dictionary than {id}");
        return Err(form.corrupt(what).at(magic.len() as u64));
    }
    let mut out = Vec::new();
    let begin = (magic.len() + HASH_BYTES) as u64;
    match form {
        Form::Dcb => decode_brotli(dictionary, (stream, begin), limits, &mut out)?,
        Form::Dcz => decode_zstd(dictionary, (stream, begin), limits, &mut out)?,
    }
    Ok(out)
}

/// Bytes that may still come out, or an error.
fn room(form: Form, made: usize, limits: &Limits) -> Result<usize, Error> {
    match usize::try_from(limits.output_bytes).unwrap_or(usize::MAX).checked_sub(made) {
        // One more than allowed shows that there is more.
        Some(left) => Ok(left.saturating_add(1).min(STEP_BYTES)),
        None => {
            let most = limits.output_bytes;
            Err(form.over(format!("more than the {most} bytes of output_bytes would come out")))
        }
    }
}

/// `begin` is where the stream begins behind the head.
fn decode_brotli(
    dictionary: &[u8],
    (stream, begin): (&[u8], u64),
    limits: &Limits,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let form = Form::Dcb;
    let window_log = crate::brotli::window_log_max(limits).min(DCB_WINDOW_LOG);
    let mut context = Decompressor::new(dictionary, window_log);
    let mut at = 0;
    loop {
        let from = out.len();
        out.resize(from + room(form, from, limits)?, 0);
        let input = stream.get(at..).unwrap_or_default();
        let step = context.step(input, out.get_mut(from..).unwrap_or_default());
        let step = step.inspect_err(|_| out.truncate(from));
        let (used, made) = step.map_err(|error| error.at(begin + context.offset()))?;
        out.truncate(from + made);
        at += used;
        if context.has_ended() {
            break;
        }
        if (used, made) == (0, 0) {
            return Err(form.corrupt("the stream ends too early").at(begin + at as u64));
        }
    }
    room(form, out.len(), limits)?;
    if at < stream.len() {
        return Err(form.corrupt("bytes behind the end").at(begin + at as u64));
    }
    Ok(())
}

/// RFC 9842 §5: the greatest window for a dictionary of `len` bytes, as a power of two.
fn dcz_window_log(len: usize) -> u32 {
    let bytes = (len + len / 4).clamp(DCZ_WINDOW_BYTES, MAX_DCZ_WINDOW_BYTES);
    bytes.ilog2()
}

fn refused(code: usize) -> Error {
    Form::Dcz.over(get_error_name(code))
}

fn encode_zstd(
    dictionary: &[u8],
    message: &[u8],
    level: i8,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let mut context = CCtx::try_create().ok_or_else(|| Form::Dcz.over("no memory"))?;
    let all = dictionary.len().saturating_add(message.len()).max(1);
    let window_log = (all.ilog2() + 1).clamp(10, dcz_window_log(dictionary.len()));
    for parameter in [
        CParameter::CompressionLevel(i32::from(level)),
        CParameter::WindowLog(window_log),
        CParameter::ChecksumFlag(true),
    ] {
        context.set_parameter(parameter).map_err(refused)?;
    }
    context.ref_prefix(dictionary).map_err(refused)?;
    let mut frame = Vec::with_capacity(zstd_safe::compress_bound(message.len()));
    context.compress2(&mut frame, message).map_err(refused)?;
    out.append(&mut frame);
    Ok(())
}

fn decode_zstd(
    dictionary: &[u8],
    (stream, begin): (&[u8], u64),
    limits: &Limits,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let form = Form::Dcz;
    let mut context = DCtx::try_create().ok_or_else(|| form.over("no memory"))?;
    let window_log = dcz_window_log(dictionary.len()).max(23);
    let granted = limits.table_bytes.max(1 << 10).ilog2().min(window_log);
    context.set_parameter(DParameter::WindowLogMax(granted)).map_err(refused)?;
    context.ref_prefix(dictionary).map_err(refused)?;
    let mut input = InBuffer::around(stream);
    loop {
        let from = out.len();
        out.reserve(STEP_BYTES);
        let granted = room(form, from, limits)?;
        let mut step = Vec::with_capacity(granted);
        let before = input.pos;
        let mut output = OutBuffer::around(&mut step);
        let hint = context
            .decompress_stream(&mut output, &mut input)
            .map_err(|code| failed(form.name(), code).at(begin + before as u64))?;
        out.extend_from_slice(&step);
        if hint == 0 && input.pos == stream.len() {
            break;
        }
        if hint == 0 {
            // A prefix is for one frame (zstd manual); here it is for each.
            context.ref_prefix(dictionary).map_err(refused)?;
        } else if input.pos == before && step.is_empty() {
            return Err(form.corrupt("the stream ends too early").at(begin + before as u64));
        }
    }
    room(form, out.len(), limits).map(|_| ())
}
