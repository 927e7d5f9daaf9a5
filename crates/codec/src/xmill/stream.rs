//! The frame around the model: blocks that come out whole, and stay what they are where coding does
//! not pay.

use super::NAME;
use super::method::{Context, Method};
use crate::codec::{Decoder, Encoder, Fidelity, Flow, Needs, Options, Properties, Step};
use crate::{Codec, Error, Limits, Settings, StreamDecoder};

/// First byte of a stream; its lower half is the method.
const VERSION: u8 = 0xE0;
/// Windows as powers of two: what of the document is looked back at.
const MIN_XMILL_WINDOW_LOG: u8 = 10;
const MAX_XMILL_WINDOW_LOG: u8 = 22;
/// Most bytes of one block before coding.
const BLOCK_BYTES: usize = 1 << 20;
/// Of a block of the pair.
const PAIR_BLOCK_BYTES: usize = proto::exchange::MAX_BLOCK_BYTES;
/// A block shorter than this is stored only if it is the last: beginning anew costs as much time as
/// some ten thousand bytes.
const STORED_BYTES: usize = 64 << 10;
/// More than a byte of such a block can become: some twelve bits of chances and two half bytes.
const WORST: usize = 64;
/// A first block of at least so many bytes is coded in columns too where the method is another: in
/// less there is no room for rows long enough.
const COMPARED_BYTES: usize = 4 << 10;
/// Quickly coded columns that are longer by more than one part in so many hardly become the shorter
/// form: thoroughly coded ones are mostly shorter than those by a fiftieth.
const NEAR: usize = 10;
/// Longest number of the frame: 7 bits a byte.
const NUMBER_BYTES: usize = 4;

static PROPERTIES: Properties = Properties {
    name: NAME,
    number: 4,
    fidelity: Fidelity::Bytes,
    flow: Flow::Blocks,
    needs: Needs::Nothing,
    levels: Some((1, 5, 9)),
    media: &["text/xml", "application/xml", "*+xml"],
    form: "its own: docs/formats/xmill.md",
};

/// The codec in the table.
pub(crate) struct Xmill;

impl Codec for Xmill {
    fn properties(&self) -> &'static Properties {
        &PROPERTIES
    }

    fn encoder_bytes(&self, options: Options) -> usize {
        let window_log = options.window_log.clamp(MIN_XMILL_WINDOW_LOG, MAX_XMILL_WINDOW_LOG);
        let (method, level) = Method::of_level(options.level);
        let other = method.other().map_or(0, |(other, [_, level])| {
            // Beside it for the first block.
            other.table_bytes(window_log, Some(level))
        });
        let tables = method.table_bytes(window_log, Some(level)) + other;
        tables + (3 << window_log) + 8 * PAIR_BLOCK_BYTES
    }

    fn decoder_bytes(&self, options: Options) -> usize {
        let window_log = options.window_log.clamp(MIN_XMILL_WINDOW_LOG, MAX_XMILL_WINDOW_LOG);
        most_table_bytes(window_log) + (3 << window_log) + 8 * PAIR_BLOCK_BYTES
    }

    fn stream_encoder(&self, settings: &Settings) -> Result<Box<dyn Encoder>, Error> {
        Ok(Box::new(StreamEncoder::new(settings, MAX_XMILL_WINDOW_LOG)?))
    }

    fn stream_decoder(&self, settings: &Settings) -> Result<Box<dyn StreamDecoder>, Error> {
        Ok(Box::new(StreamedDecoder::new(settings.limits)))
    }

    fn encoder(&self, options: Options) -> Result<Box<dyn Encoder>, Error> {
        let window_log = options.window_log.clamp(MIN_XMILL_WINDOW_LOG, MAX_XMILL_WINDOW_LOG);
        Ok(Box::new(StreamEncoder::new(&options.settings(), window_log)?))
    }

    fn decoder(&self, options: Options) -> Result<Box<dyn Decoder>, Error> {
        // The window is in the stream: one that is greater than what was agreed is refused.
        let window_log = options.window_log.clamp(MIN_XMILL_WINDOW_LOG, MAX_XMILL_WINDOW_LOG);
        let limits = Limits { table_bytes: most_table_bytes(window_log), ..Limits::default() };
        Ok(Box::new(BlockDecoder { inner: StreamedDecoder::new(limits) }))
    }
}

/// Bytes of the tables of any decoder: the method is in the stream.
fn most_table_bytes(window_log: u8) -> usize {
    let bytes = Method::ALL.map(|method| method.table_bytes(window_log, None));
    bytes.into_iter().max().unwrap_or(0)
}

/// Codes a whole message; `level` as in the table of codecs, `None` for the usual one. Errors: a
/// level that does not exist, or tables above the limit.
pub fn encode(message: &[u8], level: Option<i8>, limits: &Limits) -> Result<Vec<u8>, Error> {
    Settings { level, limits: *limits, ..Settings::default() }.encode(NAME, message)
}

/// Decodes a whole message. Errors: what is no such stream, with the offset; a limit.
pub fn decode(coded: &[u8], limits: &Limits) -> Result<Vec<u8>, Error> {
    Settings { limits: *limits, ..Settings::default() }.decode(NAME, coded)
}

struct StreamEncoder {
    limits: Limits,
    method: Method,
    /// Of the general compressor.
    level: i8,
    window_log: u8,
    context: Option<Context>,
    closed: bool,
}

impl StreamEncoder {
    fn new(settings: &Settings, window_log: u8) -> Result<Self, Error> {
        let (method, level) = Method::of_level(settings.level_of(&PROPERTIES)?);
        let limits = settings.limits;
        Ok(Self { limits, method, level, window_log, context: None, closed: false })
    }

    /// Codes the first block of `bytes`, after which `last` says that nothing follows; gives the
    /// context for the others.
    fn begin(&self, bytes: &[u8], last: bool, out: &mut Vec<u8>) -> Result<Context, Error> {
        let (block, last_block) = (first_block(bytes), last && bytes.len() <= BLOCK_BYTES);
        let mut window_log = self.window_log;
        if last {
            // The whole is known: small messages take small tables.
            let bits = usize::BITS - bytes.len().leading_zeros();
            let bits = u8::try_from(bits).unwrap_or(u8::MAX);
            window_log = bits.clamp(MIN_XMILL_WINDOW_LOG, window_log);
        }
        let limit = self.limits.table_bytes;
        let own = |window_log: u8| self.method.table_bytes(window_log, Some(self.level));
        while window_log > MIN_XMILL_WINDOW_LOG && own(window_log) > limit {
            window_log -= 1;
        }
        let with = |method: Method, level: i8| {
            let mut coded = vec![VERSION | method.number(), window_log];
            let mut context = Context::new(method, window_log, Some(level), &self.limits)?;
            encode_block(&mut context, block, last_block, &mut coded)?;
            Ok::<_, Error>((coded, context))
        };
        let (mut coded, mut context) = with(self.method, self.level)?;
        // Where every value follows from the one before, columns are shorter than any guess. The
        // tables of both are there until it is known.
        if let Some((method, [quick, slow])) = self.method.other()
            && block.len() >= COMPARED_BYTES
            && own(window_log) + method.table_bytes(window_log, Some(slow)) <= limit
        {
            // A model is only beginning to learn in the first of many blocks.
            let most = if last_block { coded.len() } else { coded.len() / 8 * 7 };
            if with(method, quick)?.0.len() <= most + most / NEAR {
                let other = with(method, slow)?;
                if other.0.len() < most {
                    (coded, context) = other;
                }
            }
        }
        out.append(&mut coded);
        Ok(context)
    }
}

fn first_block(bytes: &[u8]) -> &[u8] {
    bytes.get(..BLOCK_BYTES).unwrap_or(bytes)
}

impl Encoder for StreamEncoder {
    fn encode(&mut self, block: &[u8], last: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.closed {
            let what = "a block behind the last".to_owned();
            return Err(Error::Option { what });
        }
        self.closed = last;
        if block.is_empty() && !last {
            return Ok(());
        }
        let (mut rest, mut ended) = (block, false);
        let context = match &mut self.context {
            Some(context) => context,
            None => {
                let context = self.begin(block, last, out)?;
                rest = &block[first_block(block).len()..];
                ended = rest.is_empty();
                self.context.insert(context)
            }
        };
        while !ended {
            let (now, later) = rest.split_at(rest.len().min(BLOCK_BYTES));
            rest = later;
            ended = rest.is_empty();
            encode_block(context, now, last && ended, out)?;
        }
        Ok(())
    }
}

fn encode_block(
    context: &mut Context,
    block: &[u8],
    last: bool,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    put_number(block.len() << 1 | usize::from(last), out);
    if block.is_empty() {
        return Ok(());
    }
    let may_grow = !last && block.len() < STORED_BYTES;
    let coded = context.encode(block, last)?;
    let coded = coded.filter(|coded| coded.len() < block.len() || may_grow);
    let stored = coded.is_none();
    if let Some(mut coded) = coded {
        put_number(coded.len(), out);
        out.append(&mut coded);
    } else {
        put_number(0, out);
        out.extend_from_slice(block);
    }
    if last { Ok(()) } else { context.turn(stored) }
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits")]
fn put_number(mut number: usize, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push((number & 0x7F) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7F) as u8);
}

/// A number at `at` and where it ends; `None` if there is not enough. Errors: it is too long.
fn number(input: &[u8], at: usize) -> Result<Option<(usize, usize)>, &'static str> {
    let mut number = 0;
    for i in 0..NUMBER_BYTES {
        let Some(&byte) = input.get(at + i) else { return Ok(None) };
        number |= usize::from(byte & 0x7F) << (7 * i);
        if byte < 0x80 {
            if byte == 0 && i > 0 {
                return Err("a number with a needless byte");
            }
            return Ok(Some((number, at + i + 1)));
        }
    }
    Err("a number of more than 28 bits")
}

/// A block's head.
struct Head {
    len: usize,
    last: bool,
    /// Of the coded form; 0: it is as it was.
    coded: usize,
    /// Bytes of the head.
    used: usize,
}

fn head(input: &[u8]) -> Result<Option<Head>, &'static str> {
    let Some((first, at)) = number(input, 0)? else { return Ok(None) };
    let (len, last) = (first >> 1, first & 1 == 1);
    if len > BLOCK_BYTES {
        return Err("a block of more than 1 MiB");
    }
    if len == 0 {
        return if last {
            Ok(Some(Head { len, last, coded: 0, used: at }))
        } else {
            Err("an empty block that is not the last")
        };
    }
    let Some((coded, used)) = number(input, at)? else { return Ok(None) };
    let short = !last && len < STORED_BYTES;
    if short && coded == 0 {
        return Err("a short block that is stored and not the last");
    }
    if coded >= if short { WORST * (len + 1) + 1 } else { len } {
        return Err("a block that is longer coded than not");
    }
    Ok(Some(Head { len, last, coded, used }))
}

struct StreamedDecoder {
    limits: Limits,
    context: Option<Context>,
    /// Bytes used of the stream.
    offset: u64,
    done: bool,
    /// Most bytes that may come out of what is at hand, and what of that is left.
    declared: usize,
    room: usize,
}

impl StreamedDecoder {
    fn new(limits: Limits) -> Self {
        Self {
            limits,
            context: None,
            offset: 0,
            done: false,
            declared: usize::MAX,
            room: usize::MAX,
        }
    }

    fn malformed(&self, at: usize, what: &str) -> Error {
        Error::Malformed { codec: NAME, offset: self.offset + at as u64, what: what.to_owned() }
    }

    fn block(&mut self, head: &Head, body: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let offset = self.offset;
        let Some(context) = &mut self.context else { return Ok(()) };
        let declared = self.declared;
        let room = self.room.checked_sub(head.len);
        self.room = room.ok_or(Error::Length { codec: NAME, declared })?;
        if head.coded == 0 {
            out.extend_from_slice(body);
        } else {
            let went = context.decode(body, head.len, head.last, out);
            went.map_err(|what| Error::Malformed { codec: NAME, offset, what })?;
        }
        if head.last { Ok(()) } else { context.turn(head.coded == 0) }
    }
}

impl StreamDecoder for StreamedDecoder {
    fn decode(&mut self, input: &[u8], last: bool, out: &mut Vec<u8>) -> Result<Step, Error> {
        let mut used = 0;
        if self.done {
            return match input.is_empty() {
                true => Ok(Step { used, done: true }),
                false => Err(self.malformed(0, "bytes behind the end")),
            };
        }
        if self.context.is_none() {
            let &[first, window_log, ..] = input else { return Ok(Step { used, done: false }) };
            let Some(method) = Method::numbered(first ^ VERSION) else {
                return Err(self.malformed(0, "not the first byte of such a stream"));
            };
            if !(MIN_XMILL_WINDOW_LOG..=MAX_XMILL_WINDOW_LOG).contains(&window_log) {
                return Err(self.malformed(1, "a window that is not of 2^10 to 2^22 bytes"));
            }
            self.context = Some(Context::new(method, window_log, None, &self.limits)?);
            used = 2;
        }
        let rest = &input[used..];
        let head = head(rest).map_err(|what| self.malformed(used, what))?;
        if let Some(head) = head {
            let len = if head.coded == 0 { head.len } else { head.coded };
            if let Some(body) = rest.get(head.used..head.used + len) {
                self.offset += (used + head.used) as u64;
                self.block(&head, body, out)?;
                self.offset += len as u64;
                used += head.used + len;
                self.done = head.last;
                if self.done && used < input.len() {
                    return Err(self.malformed(0, "bytes behind the end"));
                }
                return Ok(Step { used, done: self.done });
            }
        }
        if last && used == 0 {
            return Err(self.malformed(input.len(), "the stream ends early"));
        }
        self.offset += used as u64;
        Ok(Step { used, done: false })
    }
}

/// Blocks of the pair, whose lengths are told.
struct BlockDecoder {
    inner: StreamedDecoder,
}

impl BlockDecoder {
    fn decode_all(&mut self, block: &[u8], last: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut rest = block;
        while !rest.is_empty() {
            let step = self.inner.decode(rest, last, out)?;
            if step.used == 0 {
                return Err(self.inner.malformed(rest.len(), "a block that is not whole"));
            }
            rest = &rest[step.used..];
        }
        if self.inner.done == last {
            return Ok(());
        }
        let what = if last { "the end is missing" } else { "an end before the last block" };
        Err(self.inner.malformed(0, what))
    }
}

impl Decoder for BlockDecoder {
    fn decode(
        &mut self,
        block: &[u8],
        decoded_len: usize,
        last: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let before = out.len();
        (self.inner.declared, self.inner.room) = (decoded_len, decoded_len);
        let went = self.decode_all(block, last, out);
        let made = out.len() - before;
        if went.is_err() || made != decoded_len {
            out.truncate(before);
            went?;
            return Err(Error::Length { codec: NAME, declared: decoded_len });
        }
        Ok(())
    }
}
