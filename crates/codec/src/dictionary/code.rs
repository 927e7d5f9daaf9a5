//! Messages with a dictionary, in frames that name it.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use proto::varint;
use zstd_safe::{CCtx, CParameter, DCtx, DParameter, FrameFormat, get_error_name};

use crate::brotli::{DICTIONARY_LEVELS, Decompressor, encode_with};
use crate::{Error, Limits};

use super::{
    Dictionary, Id, NAME, corrupt,
    mix::{MAX_MESSAGE, Primed},
};

/// Upper half of the first byte: this version of the format.
const VERSION: u8 = 0xd0;
const CHECK_BYTES: usize = 4;
/// Most bytes of a message for each byte of its mixed code and eight.
const MIX_RATIO: usize = 512;
/// What deflate can look back to (RFC 1951 §2).
const DEFLATE_WINDOW: usize = 32 << 10;
/// Windows that zstd knows, as powers of two.
const MIN_ZSTD_WINDOW_LOG: u32 = 10;
const MAX_ZSTD_WINDOW_LOG: u32 = 27;

/// How a message is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Not at all: what a [`Coder`] falls back to.
    Stored,
    /// Deflate with a preset dictionary, of which the last 32 KiB count; levels 1 to 9.
    Deflate,
    /// Zstandard; levels 1 to 22.
    Zstd,
    /// Brotli; levels 10 and 11.
    Brotli,
    /// Context mixing: smallest by far and slow, some microseconds a byte; no levels. Messages over
    /// 256 KiB, and those that are very regular, go by [`Method::Zstd`].
    Mix,
}

impl Method {
    const ALL: [Self; 5] = [Self::Stored, Self::Deflate, Self::Zstd, Self::Brotli, Self::Mix];

    fn number(self) -> u8 {
        match self {
            Self::Stored => 0,
            Self::Deflate => 1,
            Self::Zstd => 2,
            Self::Brotli => 3,
            Self::Mix => 4,
        }
    }

    /// Least, usual and greatest level.
    fn levels(self) -> (i8, i8, i8) {
        match self {
            Self::Deflate => (0, 9, 9),
            Self::Zstd => (0, 19, 22),
            Self::Brotli => (DICTIONARY_LEVELS.0, DICTIONARY_LEVELS.1, DICTIONARY_LEVELS.1),
            Self::Stored | Self::Mix => (0, 0, 0),
        }
    }
}

/// Codes the messages of one service with one dictionary, each by itself.
#[derive(Debug)]
pub struct Coder {
    dictionary: Dictionary,
    method: Method,
    level: i8,
    limits: Limits,
    primed: Option<Box<Primed>>,
}

impl Coder {
    /// `level` is how hard to try, the greatest useful by default: messages are small.
    /// [`Method::Mix`] reads the dictionary here, at some microseconds a byte.
    ///
    /// Errors: a level that the method does not have; mixing, a dictionary over 256 KiB.
    pub fn new(
        dictionary: &Dictionary,
        method: Method,
        level: Option<i8>,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let (least, usual, most) = method.levels();
        let level = level.unwrap_or(usual);
        if !(least..=most).contains(&level) {
            let what =
                format!("level '{level}' with a dictionary: a number from {least} to {most}");
            return Err(Error::Option { what });
        }
        let primed = match method {
            Method::Mix => Some(Box::new(Primed::new(dictionary.content())?)),
            _ => None,
        };
        let dictionary = dictionary.clone();
        Ok(Self { dictionary, method, level, limits: *limits, primed })
    }

    /// Whether [`Coder::new`] would make the same of this.
    pub(super) fn is(&self, method: Method, level: Option<i8>, limits: &Limits) -> bool {
        let level = level.unwrap_or(method.levels().1);
        self.method == method && self.level == level && self.limits == *limits
    }

    /// Bytes of memory that stay taken between messages, apart from the dictionary.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.primed.as_ref().map_or(0, |primed| primed.memory_bytes())
    }

    /// The coded form of `message`, at most 17 bytes longer. Errors: it is longer than
    /// [`Limits::message_bytes`].
    pub fn encode(&mut self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let most = self.limits.message_bytes;
        if message.len() > most {
            let what = format!("message of {} bytes, over the {most} allowed", message.len());
            return Err(Error::Limit { codec: NAME, what });
        }
        let mut method = self.method;
        if method == Method::Mix && message.len() > MAX_MESSAGE {
            method = Method::Zstd;
        }
        let mut code = self.code(method, message)?;
        if method == Method::Mix && code.as_ref().is_some_and(|code| !mixed(code, message.len())) {
            method = Method::Zstd;
            code = self.code(method, message)?;
        }
        let (method, code) = match &code {
            Some(code) if code.len() < message.len() => (method, code.as_slice()),
            _ => (Method::Stored, message),
        };
        let mut out = Vec::with_capacity(code.len() + 24);
        out.push(VERSION | method.number());
        out.extend_from_slice(&self.dictionary.id().short());
        varint::encode(message.len() as u64, &mut out);
        out.extend_from_slice(&check(message));
        out.extend_from_slice(code);
        Ok(out)
    }

    /// The message of a coded form, by whatever method it was made but [`Method::Mix`], for whose
    /// memory and time only a coder of that method is meant; at most [`Limits::output_bytes`] and
    /// [`Limits::message_bytes`] long. Errors: it was made with another dictionary, or is damaged,
    /// or is followed by anything.
    pub fn decode(&mut self, coded: &[u8]) -> Result<Vec<u8>, Error> {
        let mut rest = coded;
        let mut take = |len: usize| {
            let (head, tail) = rest.split_at_checked(len)?;
            rest = tail;
            Some(head)
        };
        let end = coded.len() as u64;
        let corrupt = |offset: u64, what: &str| corrupt(what).at(offset);
        let first = take(1).and_then(<[u8]>::first).ok_or_else(|| corrupt(0, "nothing there"))?;
        let method = Method::ALL.into_iter().find(|method| VERSION | method.number() == *first);
        let method =
            method.ok_or_else(|| corrupt(0, &format!("unknown first byte {first:#04x}")))?;
        let short = take(8).ok_or_else(|| corrupt(end, "ends in the name of the dictionary"))?;
        if *short != self.dictionary.id().short() {
            let id = self.dictionary.id();
            return Err(corrupt(1, &format!("made with another dictionary than {id}")));
        }
        let len = varint::decode(&mut rest, "length").map_err(|e| corrupt(9, &e.to_string()))?;
        let most = self.limits.output_bytes.min(self.limits.message_bytes as u64);
        if len > most {
            let what = format!("message of {len} bytes, over the {most} allowed");
            return Err(Error::Limit { codec: NAME, what });
        }
        let len = usize::try_from(len).map_err(|_| corrupt(9, "length"))?;
        let (given, code) =
            rest.split_at_checked(CHECK_BYTES).ok_or_else(|| corrupt(end, "too short"))?;
        // The libraries do not say where in the code they failed.
        let begin = end - code.len() as u64;
        let message = self.read(method, code, len).map_err(|error| error.at(begin))?;
        if message.len() != len {
            return Err(Error::Length { codec: NAME, declared: len }.at(begin));
        }
        if check(&message) != *given {
            let what = "the message is not the one that was coded";
            return Err(corrupt(begin - CHECK_BYTES as u64, what));
        }
        Ok(message)
    }

    fn code(&mut self, method: Method, message: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let dictionary = &self.dictionary;
        let level = if method == self.method { self.level } else { method.levels().1 };
        match method {
            Method::Stored => Ok(None),
            Method::Deflate => deflate(dictionary.content(), message, level),
            Method::Zstd => zstd(dictionary, message, level).map(Some),
            Method::Brotli => encode_with(dictionary.content(), message, level).map(Some),
            Method::Mix => {
                let mut out = Vec::new();
                self.primed()?.encode(message, &mut out)?;
                Ok(Some(out))
            }
        }
    }

    fn primed(&mut self) -> Result<&mut Primed, Error> {
        let wrong = || corrupt("made by mixing, which is not expected here");
        self.primed.as_deref_mut().ok_or_else(wrong)
    }

    fn read(&mut self, method: Method, code: &[u8], len: usize) -> Result<Vec<u8>, Error> {
        let dictionary = &self.dictionary;
        match method {
            Method::Stored => Ok(code.to_vec()),
            Method::Deflate => inflate(dictionary.content(), code, len),
            Method::Zstd => unzstd(dictionary, code, len),
            Method::Brotli => {
                let window_log = crate::brotli::window_log_max(&self.limits);
                let mut out = Vec::new();
                let mut context = Decompressor::new(dictionary.content(), window_log);
                crate::Decoder::decode(&mut context, code, len, true, &mut out)?;
                Ok(out)
            }
            Method::Mix if !mixed(code, len) => {
                Err(corrupt(format!("{} bytes of code for a message of {len}", code.len())))
            }
            Method::Mix => {
                let mut out = Vec::new();
                self.primed()?.decode(code, len, &mut out)?;
                Ok(out)
            }
        }
    }
}

/// `message` with the one before it as its dictionary, by [`Method::Zstd`].
pub fn delta(previous: &[u8], limits: &Limits) -> Result<Coder, Error> {
    Coder::new(&Dictionary::raw(previous, limits)?, Method::Zstd, None, limits)
}

/// Whether a message may be mixed. Reading takes time by the length of the message, so a few
/// hostile bytes must not stand for a long one; what is that regular is small by other methods too.
fn mixed(code: &[u8], message_len: usize) -> bool {
    message_len <= MIX_RATIO * (code.len() + 8)
}

fn check(message: &[u8]) -> [u8; CHECK_BYTES] {
    let [a, b, c, d, ..] = Id::of(message).0;
    [a, b, c, d]
}

fn refused(code: usize) -> Error {
    Error::Limit { codec: NAME, what: get_error_name(code).to_owned() }
}

/// What zstd says of a dictionary from its trainer: it has one code for tables that it cannot read
/// and for memory that it does not get.
fn unreadable(code: usize) -> Error {
    let name = get_error_name(code);
    if !name.contains("memory") && !name.contains("ictionary") {
        return refused(code);
    }
    let what = format!(
        "{NAME}: damaged: it begins as those of zstd's trainer do, but the tables behind that are \
         none: give the file as it was made, or make another with 'longwire train'"
    );
    Error::Option { what }
}

fn no_memory() -> Error {
    Error::Limit { codec: NAME, what: "no memory for a context".to_owned() }
}

fn zstd(dictionary: &Dictionary, message: &[u8], level: i8) -> Result<Vec<u8>, Error> {
    let mut context = CCtx::try_create().ok_or_else(no_memory)?;
    for parameter in [
        CParameter::Format(FrameFormat::Magicless),
        CParameter::CompressionLevel(i32::from(level)),
        CParameter::ContentSizeFlag(false),
        CParameter::ChecksumFlag(false),
        CParameter::DictIdFlag(false),
    ] {
        context.set_parameter(parameter).map_err(refused)?;
    }
    if dictionary.is_trained() {
        context.load_dictionary(dictionary.content()).map_err(unreadable)?;
    } else {
        // Beyond this the prefix is out of reach, which is no error.
        let all = (dictionary.content().len() + message.len()).max(1);
        let log = all.ilog2() + 1;
        let log = log.clamp(MIN_ZSTD_WINDOW_LOG, MAX_ZSTD_WINDOW_LOG);
        context.set_parameter(CParameter::WindowLog(log)).map_err(refused)?;
        context.ref_prefix(dictionary.content()).map_err(refused)?;
    }
    let mut out = Vec::with_capacity(zstd_safe::compress_bound(message.len()));
    // The dictionary is read here, not when it is given.
    let refused = if dictionary.is_trained() { unreadable } else { refused };
    context.compress2(&mut out, message).map_err(refused)?;
    Ok(out)
}

fn unzstd(dictionary: &Dictionary, code: &[u8], len: usize) -> Result<Vec<u8>, Error> {
    let mut context = DCtx::try_create().ok_or_else(no_memory)?;
    context.set_parameter(DParameter::Format(FrameFormat::Magicless)).map_err(refused)?;
    if dictionary.is_trained() {
        context.load_dictionary(dictionary.content()).map_err(unreadable)?;
    } else {
        context.ref_prefix(dictionary.content()).map_err(refused)?;
    }
    let mut out = Vec::with_capacity(len);
    context.decompress(&mut out, code).map_err(|code| corrupt(get_error_name(code)))?;
    Ok(out)
}

/// The part of a dictionary that deflate reaches.
fn tail(dictionary: &[u8]) -> &[u8] {
    dictionary.get(dictionary.len().saturating_sub(DEFLATE_WINDOW)..).unwrap_or_default()
}

fn deflate(dictionary: &[u8], message: &[u8], level: i8) -> Result<Option<Vec<u8>>, Error> {
    let mut context = Compress::new(Compression::new(u32::from(level.unsigned_abs())), false);
    let refused =
        |error: flate2::CompressError| Error::Limit { codec: NAME, what: error.to_string() };
    if !dictionary.is_empty() {
        context.set_dictionary(tail(dictionary)).map_err(refused)?;
    }
    // What is not smaller than this is stored instead.
    let mut out = Vec::with_capacity(message.len() + 16);
    let status = context.compress_vec(message, &mut out, FlushCompress::Finish).map_err(refused)?;
    Ok((status == Status::StreamEnd).then_some(out))
}

fn inflate(dictionary: &[u8], code: &[u8], len: usize) -> Result<Vec<u8>, Error> {
    let mut context = Decompress::new(false);
    let wrong = |error: flate2::DecompressError| corrupt(error.to_string());
    if !dictionary.is_empty() {
        context.set_dictionary(tail(dictionary)).map_err(wrong)?;
    }
    let mut out = Vec::with_capacity(len + 1);
    let status = context.decompress_vec(code, &mut out, FlushDecompress::Finish).map_err(wrong)?;
    if status != Status::StreamEnd || context.total_in() != code.len() as u64 {
        return Err(corrupt("the code does not end with the message"));
    }
    Ok(out)
}
