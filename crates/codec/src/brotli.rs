//! Brotli (RFC 7932), flushed at the end of each block; with a dictionary in front (RFC 9841 §2).

use brotli::enc::encode::{
    BrotliEncoderDestroyInstance, BrotliEncoderOperation, BrotliEncoderParameter,
    BrotliEncoderStateStruct,
};
use brotli::enc::{StandardAlloc, interface::PredictionModeContextMap};
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};

use crate::{
    Codec, Decoder, Encoder, Error, Fidelity, Flow, Limits, MAX_WINDOW_LOG, MIN_WINDOW_LOG, Needs,
    Options, Properties, Settings, Step, StreamDecoder, media,
};

const NAME: &str = "brotli";
/// Least room for what one step gives, in bytes.
const STEP_BYTES: usize = 64 << 10;
/// Windows of RFC 7932 §9.1, as powers of two.
const MIN_BROTLI_WINDOW_LOG: u32 = 10;
const MAX_BROTLI_WINDOW_LOG: u32 = 24;
/// What files are usually coded with.
const FILE_WINDOW_LOG: u32 = 22;
/// The least window of the two fastest levels.
const FAST_WINDOW_LOG: u8 = 18;
/// As the usual level of the command line of others is for files; 5 is about as fast as deflate.
const USUAL_LEVEL: i8 = 5;

static PROPERTIES: Properties = Properties {
    name: NAME,
    number: 3,
    fidelity: Fidelity::Bytes,
    flow: Flow::Blocks,
    needs: Needs::Nothing,
    levels: Some((0, USUAL_LEVEL, 11)),
    media: media::ANY,
    form: "brotli stream (RFC 7932)",
};

pub(crate) struct Brotli;

impl Codec for Brotli {
    fn properties(&self) -> &'static Properties {
        &PROPERTIES
    }

    fn stream_encoder(&self, settings: &Settings) -> Result<Box<dyn Encoder>, Error> {
        let level = settings.level.unwrap_or(USUAL_LEVEL);
        let context = Compressor::new(level, FILE_WINDOW_LOG, &[])?;
        Ok(Box::new(BrotliEncoder { context, flush: false }))
    }

    fn stream_decoder(&self, settings: &Settings) -> Result<Box<dyn StreamDecoder>, Error> {
        Ok(Box::new(Decompressor::new(&[], window_log_max(&settings.limits))))
    }

    /// As the library sizes its tables; a test compares with what it takes.
    fn encoder_bytes(&self, options: Options) -> usize {
        let window_log = options.window_log.max(MIN_WINDOW_LOG);
        let window = 1_usize << window_log;
        match options.level {
            ..=4 => 2 * window + (2 << 20),
            // Chains of another kind for small windows, whatever the level.
            5..=9 if window_log <= 16 => 34 << 20,
            // 2^15 buckets of 2^(level − 1) places.
            5..=9 => 3 * window + (1 << 20) + ((1_usize << 17) << (options.level - 1).clamp(4, 8)),
            _ => 10 * window + (7 << 20),
        }
    }

    /// Ring buffer, twice while it grows, and at most 256 prefix codes of each kind.
    fn decoder_bytes(&self, options: Options) -> usize {
        let window = 1_usize << options.window_log.max(MIN_WINDOW_LOG);
        2 * window + (4 << 20)
    }

    fn encoder(&self, options: Options) -> Result<Box<dyn Encoder>, Error> {
        let window_log = options.window_log.clamp(MIN_WINDOW_LOG, MAX_WINDOW_LOG);
        // Levels 0 and 1 have no smaller window, whatever is asked for.
        let least = if window_log < FAST_WINDOW_LOG { 2 } else { 0 };
        let context = Compressor::new(options.level.max(least), u32::from(window_log), &[])?;
        Ok(Box::new(BrotliEncoder { context, flush: true }))
    }

    fn decoder(&self, options: Options) -> Result<Box<dyn Decoder>, Error> {
        let window_log = options.window_log.clamp(MIN_WINDOW_LOG, MAX_WINDOW_LOG);
        Ok(Box::new(Decompressor::new(&[], u32::from(window_log))))
    }
}

/// The window that a decoder grants within `limits`, as a power of two.
pub(crate) fn window_log_max(limits: &Limits) -> u32 {
    limits.table_bytes.max(1).ilog2().clamp(MIN_BROTLI_WINDOW_LOG, MAX_BROTLI_WINDOW_LOG)
}

/// The least window that holds `bytes`, as a power of two (RFC 7932 §9.1: all but 16 bytes of it).
pub(crate) fn window_log_for(bytes: usize) -> u32 {
    let log = bytes.saturating_add(17).checked_next_power_of_two().map_or(31, usize::ilog2);
    log.clamp(MIN_BROTLI_WINDOW_LOG, MAX_BROTLI_WINDOW_LOG)
}

/// Levels that go with a dictionary: below, the library (9.1) ends matches at the border of
/// dictionary and message even behind their first byte, and has no code for a match of one byte.
pub(crate) const DICTIONARY_LEVELS: (i8, i8) = (10, 11);
/// Seeks no matches in a dictionary.
const FAST_LEVEL: i8 = 1;

/// The stream of `message` for whoever has `dictionary`, at one of [`DICTIONARY_LEVELS`]; read back
/// before it is given, for the library's use of dictionaries is young.
pub(crate) fn encode_with(dictionary: &[u8], message: &[u8], level: i8) -> Result<Vec<u8>, Error> {
    let window_log = window_log_for(dictionary.len() + message.len());
    for level in [level, FAST_LEVEL] {
        let mut coded = Vec::new();
        Compressor::new(level, window_log, dictionary)?.encode(message, false, true, &mut coded)?;
        let mut back = Vec::new();
        let mut reader = Decompressor::new(dictionary, window_log);
        let read = Decoder::decode(&mut reader, &coded, message.len(), true, &mut back);
        if read.is_ok() && back == message {
            return Ok(coded);
        }
    }
    let what = "what the library makes of this message does not read back".to_owned();
    Err(Error::Limit { codec: NAME, what })
}

/// An encoder of the library, freed as it wants to be.
pub(crate) struct Compressor {
    state: BrotliEncoderStateStruct<StandardAlloc>,
    closed: bool,
}

impl Drop for Compressor {
    fn drop(&mut self) {
        BrotliEncoderDestroyInstance(&mut self.state);
    }
}

impl Compressor {
    /// With `dictionary` before the first byte, of which the window holds what fits.
    pub(crate) fn new(level: i8, window_log: u32, dictionary: &[u8]) -> Result<Self, Error> {
        let mut state = BrotliEncoderStateStruct::new(StandardAlloc::default());
        let level = u32::from(level.unsigned_abs());
        for (parameter, value) in [
            (BrotliEncoderParameter::BROTLI_PARAM_QUALITY, level),
            (BrotliEncoderParameter::BROTLI_PARAM_LGWIN, window_log),
        ] {
            if !state.set_parameter(parameter, value) {
                return Err(Error::Option { what: format!("brotli does not take {value}") });
            }
        }
        if !dictionary.is_empty() {
            state.set_custom_dictionary(dictionary.len(), dictionary);
        }
        Ok(Self { state, closed: false })
    }

    /// Appends what comes out for `block`: with `flush` all of it, with `last` the end too.
    pub(crate) fn encode(
        &mut self,
        block: &[u8],
        flush: bool,
        last: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if self.closed {
            let what = "a block behind the last".to_owned();
            return Err(Error::Option { what });
        }
        self.closed = last;
        let operation = match (last, flush) {
            (true, _) => BrotliEncoderOperation::BROTLI_OPERATION_FINISH,
            (false, true) => BrotliEncoderOperation::BROTLI_OPERATION_FLUSH,
            (false, false) => BrotliEncoderOperation::BROTLI_OPERATION_PROCESS,
        };
        let (mut left, mut at) = (block.len(), 0);
        loop {
            let from = out.len();
            out.resize(from + STEP_BYTES.min(4096 + left), 0);
            let room = out.get_mut(from..).unwrap_or_default();
            let (mut room_left, mut made) = (room.len(), 0);
            let fine = self.state.compress_stream(
                operation,
                &mut left,
                block,
                &mut at,
                &mut room_left,
                room,
                &mut made,
                &mut None,
                &mut |_: &mut PredictionModeContextMap<brotli::InputReferenceMut<'_>>,
                      _: &mut [brotli::enc::StaticCommand],
                      _: brotli::InputPair<'_>,
                      _: &mut StandardAlloc| {},
            );
            out.truncate(from + made);
            if !fine {
                let what = "the library refused a block".to_owned();
                return Err(Error::Limit { codec: NAME, what });
            }
            if left == 0 && !self.state.has_more_output() && (!last || self.state.is_finished()) {
                return Ok(());
            }
        }
    }
}

struct BrotliEncoder {
    context: Compressor,
    flush: bool,
}

impl Encoder for BrotliEncoder {
    fn encode(&mut self, block: &[u8], last: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        self.context.encode(block, self.flush, last, out)
    }
}

/// A decoder of the library with a bound on its window.
pub(crate) struct Decompressor {
    state: BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    window_log_max: u32,
    begun: bool,
    ended: bool,
    /// Bytes used of the stream.
    offset: u64,
}

impl Decompressor {
    /// With `dictionary` before the first byte.
    pub(crate) fn new(dictionary: &[u8], window_log_max: u32) -> Self {
        let alloc = StandardAlloc::default;
        let mut state = BrotliState::new_strict(alloc(), alloc(), alloc());
        if !dictionary.is_empty() {
            state = BrotliState::new_with_custom_dictionary(
                alloc(),
                alloc(),
                alloc(),
                dictionary.to_vec().into(),
            );
            state.large_window = false;
        }
        Self { state, window_log_max, begun: false, ended: false, offset: 0 }
    }

    /// Whether the stream has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Bytes that it has used, up to an error if there was one.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Decodes some of `input` into `room`: bytes used and made.
    pub(crate) fn step(&mut self, input: &[u8], room: &mut [u8]) -> Result<(usize, usize), Error> {
        if self.ended {
            return Ok((0, 0));
        }
        if let (false, Some(first)) = (self.begun, input.first()) {
            self.begun = true;
            self.check_window(*first)?;
        }
        let (mut left, mut used) = (input.len(), 0);
        let (mut room_left, mut made) = (room.len(), 0);
        let result = BrotliDecompressStream(
            &mut left,
            &mut used,
            input,
            &mut room_left,
            &mut made,
            room,
            &mut 0,
            &mut self.state,
        );
        self.offset += used as u64;
        match result {
            BrotliResult::ResultFailure => Err(corrupt("not a brotli stream")),
            BrotliResult::ResultSuccess => {
                self.ended = true;
                Ok((used, made))
            }
            _ => Ok((used, made)),
        }
    }

    /// RFC 7932 §9.1: WBITS.
    fn check_window(&self, first: u8) -> Result<(), Error> {
        let (n, m) = (u32::from(first >> 1 & 7), u32::from(first >> 4 & 7));
        let window_log = match (first & 1, n, m) {
            (0, ..) => 16,
            (_, 1.., _) => 17 + n,
            (_, _, 0) => 17,
            (_, _, 1) => return Err(corrupt("not a window of brotli's")),
            _ => 8 + m,
        };
        if window_log > self.window_log_max {
            let most = self.window_log_max;
            let what = format!("window 2^{window_log} is over the limit 2^{most}");
            return Err(Error::Limit { codec: NAME, what });
        }
        Ok(())
    }
}

fn corrupt(what: &str) -> Error {
    Error::Corrupt { codec: NAME, what: what.to_owned() }
}

impl Decoder for Decompressor {
    fn decode(
        &mut self,
        block: &[u8],
        decoded_len: usize,
        last: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if self.ended {
            return Err(corrupt("a block behind the end"));
        }
        // One byte more than declared shows an overlong block without holding it.
        let mut buffer = vec![0; decoded_len + 1];
        let (mut used, mut made) = (0, 0);
        loop {
            let (rest, room) = (&block[used..], &mut buffer[made..]);
            let (now_used, now_made) = self.step(rest, room)?;
            (used, made) = (used + now_used, made + now_made);
            if made > decoded_len {
                return Err(Error::Length { codec: NAME, declared: decoded_len });
            }
            if self.ended || (now_used, now_made) == (0, 0) {
                break;
            }
        }
        if made != decoded_len {
            return Err(Error::Length { codec: NAME, declared: decoded_len });
        }
        if used != block.len() {
            return Err(corrupt("bytes behind the end"));
        }
        if self.ended != last {
            return Err(corrupt("the stream ends in the wrong block"));
        }
        out.extend_from_slice(&buffer[..made]);
        Ok(())
    }
}

impl StreamDecoder for Decompressor {
    fn decode(&mut self, input: &[u8], last: bool, out: &mut Vec<u8>) -> Result<Step, Error> {
        let from = out.len();
        out.resize(from + STEP_BYTES, 0);
        let step = self.step(input, out.get_mut(from..).unwrap_or_default());
        out.truncate(from + step.as_ref().map_or(0, |step| step.1));
        let (used, made) = step.map_err(|error| error.at(self.offset))?;
        if self.ended && used < input.len() {
            return Err(corrupt("bytes behind the end").at(self.offset));
        }
        if last && !self.ended && (used, made) == (0, 0) {
            return Err(corrupt("the stream ends too early").at(self.offset));
        }
        Ok(Step { used, done: self.ended && last })
    }
}
