//! Byte layout of the frames; the table is in the module's page.

use bytes::{Bytes, BytesMut};

use crate::{Error, bhttp, varint};

/// Versions this code speaks.
pub const MIN_VERSION: u64 = 1;
/// See [`MIN_VERSION`].
pub const MAX_VERSION: u64 = 1;
/// Greatest decoded block, in bytes; an encoded one may be larger by 1 KiB.
pub const MAX_BLOCK_BYTES: usize = 64 * 1024;
/// Credit that the end of a block takes beside its bytes: about what a receiver spends on keeping
/// it. Without it a window of one-byte blocks would take a hundred times its size.
pub const BLOCK_CREDIT_BYTES: u64 = 128;
/// Greatest payload of a frame, in bytes: a head of [`bhttp::MAX_HEAD_BYTES`] with its prefix.
pub const MAX_PAYLOAD_BYTES: usize = bhttp::MAX_HEAD_BYTES + 4096;

/// Most codecs a HELLO may list.
const MAX_CODECS: usize = 64;
/// Longest reason kept of an ABORT, in bytes.
const MAX_REASON_BYTES: usize = 200;
/// Types from here on belong to later versions and are skipped.
const FIRST_UNKNOWN: u64 = 0x40;
/// Says nothing, and so every version skips it.
const PADDING: u64 = 0x40;
/// Bytes before the zeros of a PADDING: its type and its length, in two bytes each whatever it is.
pub const MIN_PADDING_BYTES: usize = 4;
/// Longest PADDING in bytes, so that its length fits in two.
pub const MAX_PADDING_BYTES: usize = MIN_PADDING_BYTES + 0x3fff;

const HELLO: u64 = 0x00;
const PING: u64 = 0x01;
const PONG: u64 = 0x02;
const GOAWAY: u64 = 0x03;
const CONTROL: u64 = 0x04;
const CREDIT: u64 = 0x08;
const ABORT: u64 = 0x09;
const INTERIM: u64 = 0x0a;
const QUERY: u64 = 0x0b;
const OUTCOME: u64 = 0x0c;
const TRAILERS: u64 = 0x0d;
const HEAD: u64 = 0x10;
const DATA: u64 = 0x20;
const END_BIT: u64 = 1;
const BLOCK_END_BIT: u64 = 2;
const UNCODED_BIT: u64 = 4;
const ANEW_BIT: u64 = 8;

const PARAM_CREDIT: u64 = 1;
const PARAM_EXCHANGES: u64 = 2;
const PARAM_CODECS: u64 = 3;
const PARAM_WINDOW_LOG: u64 = 4;
const PARAM_ANEW: u64 = 5;
const PARAM_BESIDE: u64 = 6;

/// What each side says of itself first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Least version spoken.
    pub version_min: u64,
    /// Greatest version spoken.
    pub version_max: u64,
    /// Drawn at random at every start: half of each exchange's 128-bit id, and how the other side
    /// notices a restart.
    pub instance: u64,
    /// Credit that each exchange starts with, in bytes of DATA pieces.
    pub initial_credit: u64,
    /// Most exchanges open at once.
    pub max_exchanges: u64,
    /// Codecs this side can decode, by their number in the codec table.
    pub codecs: Vec<u64>,
    /// Greatest window this side will decode with, as a power of two.
    pub max_window_log: u8,
    /// Blocks may begin a context anew ([`Data::anew`]).
    pub anew: bool,
    /// Carriers of one edge may stand beside each other.
    pub beside: bool,
}

/// The head of a request or a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Number of the exchange, unique for the edge's instance.
    pub exchange: u64,
    /// Number of the codec of the blocks that follow; 0 is identity.
    pub codec: u64,
    /// Window of the codec as a power of two; 0 for identity.
    pub window_log: u8,
    /// No body follows.
    pub end: bool,
    /// [`bhttp`] request or response.
    pub head: Bytes,
}

/// A piece of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// Number of the exchange.
    pub exchange: u64,
    /// With the last piece of a block: the block's decoded length in bytes.
    pub block_end: Option<u64>,
    /// The block was not put through the exchange's codec.
    pub uncoded: bool,
    /// The codec begins anew with the block: it knows nothing of those before. Only for peers that
    /// take such ([`Hello::anew`]).
    pub anew: bool,
    /// Last piece of the half; only with `block_end`.
    pub end: bool,
    /// The piece.
    pub bytes: Bytes,
}

impl Data {
    /// What the piece takes of its receiver's credit: its bytes, and [`BLOCK_CREDIT_BYTES`] more
    /// if it ends a block, since each whole block has to be kept apart. An empty end is free.
    #[must_use]
    pub fn credit(&self) -> u64 {
        let block = self.block_end.is_some() && !self.bytes.is_empty();
        self.bytes.len() as u64 + if block { BLOCK_CREDIT_BYTES } else { 0 }
    }

    /// Bytes of the frame.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        let mut payload = Vec::new();
        let kind = encode_data(self, &mut payload);
        let len = payload.len() + self.bytes.len();
        varint::encoded_len(kind) + varint::encoded_len(len as u64) + len
    }

    /// Splits off the greatest piece within `credit` and `most` bytes; `None` where the credit is
    /// too little. The last piece leaves no bytes behind and ends what the whole was to end.
    pub fn split_piece(&mut self, credit: u64, most: usize) -> Option<Self> {
        if self.bytes.len() <= most && self.credit() <= credit {
            let bytes = std::mem::take(&mut self.bytes);
            return Some(Self { bytes, ..*self });
        }
        // A byte stays for the piece that ends the block.
        let spare = usize::from(self.block_end.is_some());
        let credit = usize::try_from(credit).unwrap_or(usize::MAX);
        let len = self.bytes.len().saturating_sub(spare).min(most).min(credit);
        let bytes = self.bytes.split_to(len);
        (len > 0).then_some(Self { block_end: None, end: false, bytes, ..*self })
    }
}

/// An exchange ended before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abort {
    /// Number of the exchange.
    pub exchange: u64,
    /// Machine-readable cause; the relay names them.
    pub code: u64,
    /// One line for a person.
    pub reason: String,
}

/// What became of an exchange that the edge asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeState {
    /// It never came: nothing was forwarded.
    NotSeen,
    /// It was forwarded; its answer follows on this flow from the start.
    Answer,
    /// It was forwarded and answered with the status, but the answer is no longer held.
    Lost(u16),
    /// It was begun and given up before the request was whole.
    Aborted,
    /// Too long ago to tell.
    Forgotten,
    /// Its request is not whole yet, or its answer cannot be sent again: it goes on over the
    /// carrier that it came on. Only for an edge whose carriers stand [beside](Hello::beside) each
    /// other.
    Unfinished,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// First frame of each side.
    Hello(Hello),
    /// Answered by a PONG with the same number.
    Ping(u64),
    /// Answer to PING.
    Pong(u64),
    /// No new exchanges.
    GoAway,
    /// Between the relays: kind and content.
    Control(u64, Bytes),
    /// Exchange and further bytes.
    Credit(u64, u64),
    /// End before time.
    Abort(Abort),
    /// Exchange and informational status.
    Interim(u64, u16),
    /// Exchange asked about.
    Query(u64),
    /// Exchange and what became of it.
    Outcome(u64, OutcomeState),
    /// Exchange and trailer fields; ends the half.
    Trailers(u64, bhttp::Fields),
    /// Head of a half.
    Head(Head),
    /// Piece of a half's body.
    Data(Data),
    /// So many bytes in all that say nothing, within [`MIN_PADDING_BYTES`] and
    /// [`MAX_PADDING_BYTES`]. It is never received: whoever reads it skips it.
    Padding(usize),
}

impl Frame {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if let Self::Padding(bytes) = self {
            return encode_padding(*bytes, out);
        }
        let mut payload = Vec::new();
        let mut tail: &[u8] = &[];
        let kind = match self {
            Self::Hello(hello) => {
                encode_hello(hello, &mut payload);
                HELLO
            }
            Self::Ping(number) => numbers(&[*number], PING, &mut payload),
            Self::Pong(number) => numbers(&[*number], PONG, &mut payload),
            Self::GoAway => GOAWAY,
            Self::Control(kind, bytes) => {
                tail = bytes;
                numbers(&[*kind], CONTROL, &mut payload)
            }
            Self::Credit(exchange, bytes) => numbers(&[*exchange, *bytes], CREDIT, &mut payload),
            Self::Abort(abort) => {
                tail = floor_str(&abort.reason, MAX_REASON_BYTES).as_bytes();
                numbers(&[abort.exchange, abort.code], ABORT, &mut payload)
            }
            Self::Interim(exchange, status) => {
                numbers(&[*exchange, u64::from(*status)], INTERIM, &mut payload)
            }
            Self::Query(exchange) => numbers(&[*exchange], QUERY, &mut payload),
            Self::Outcome(exchange, state) => {
                let (state, status) = state.to_wire();
                numbers(&[*exchange, state, status], OUTCOME, &mut payload)
            }
            Self::Trailers(exchange, fields) => {
                varint::encode(*exchange, &mut payload);
                bhttp::encode_fields(fields, &mut payload);
                TRAILERS
            }
            Self::Head(head) => {
                tail = &head.head;
                encode_head(head, &mut payload)
            }
            Self::Data(data) => {
                tail = &data.bytes;
                encode_data(data, &mut payload)
            }
            Self::Padding(_) => return,
        };
        varint::encode(kind, out);
        varint::encode((payload.len() + tail.len()) as u64, out);
        out.extend_from_slice(&payload);
        out.extend_from_slice(tail);
    }

    /// Takes one frame off the front of `input`: `Ok(None)` while it is incomplete. Frames of
    /// unknown types from 0x40 on are skipped.
    pub fn take(input: &mut BytesMut) -> Result<Option<Self>, Error> {
        loop {
            let mut rest: &[u8] = input;
            let (Some(kind), Some(len)) = (varint::take(&mut rest), varint::take(&mut rest)) else {
                return Ok(None);
            };
            if len > MAX_PAYLOAD_BYTES as u64 {
                let limit = MAX_PAYLOAD_BYTES as u64;
                return Err(Error::Limit { what: "the length of a frame", value: len, limit });
            }
            let len = usize::try_from(len).unwrap_or(MAX_PAYLOAD_BYTES);
            if rest.len() < len {
                return Ok(None);
            }
            let prefix = input.len() - rest.len();
            let _ = input.split_to(prefix);
            let payload = input.split_to(len).freeze();
            if kind < FIRST_UNKNOWN {
                return decode(kind, payload).map(Some);
            }
        }
    }
}

impl OutcomeState {
    fn to_wire(self) -> (u64, u64) {
        match self {
            Self::NotSeen => (0, 0),
            Self::Answer => (1, 0),
            Self::Lost(status) => (2, u64::from(status)),
            Self::Aborted => (3, 0),
            Self::Forgotten => (4, 0),
            Self::Unfinished => (5, 0),
        }
    }

    fn from_wire(state: u64, status: u64) -> Result<Self, Error> {
        Ok(match state {
            0 => Self::NotSeen,
            1 => Self::Answer,
            2 => Self::Lost(checked_status(status, 200, 599)?),
            3 => Self::Aborted,
            4 => Self::Forgotten,
            5 => Self::Unfinished,
            value => return Err(Error::Peer { what: "unknown state of an OUTCOME", value }),
        })
    }
}

fn numbers(values: &[u64], kind: u64, payload: &mut Vec<u8>) -> u64 {
    values.iter().for_each(|value| varint::encode(*value, payload));
    kind
}

fn encode_hello(hello: &Hello, payload: &mut Vec<u8>) {
    varint::encode(hello.version_min, payload);
    varint::encode(hello.version_max, payload);
    payload.extend(hello.instance.to_be_bytes());
    let mut parameter = |id: u64, values: &[u64]| {
        let mut value = Vec::new();
        values.iter().for_each(|number| varint::encode(*number, &mut value));
        varint::encode(id, payload);
        varint::encode_bytes(&value, payload);
    };
    parameter(PARAM_CREDIT, &[hello.initial_credit]);
    parameter(PARAM_EXCHANGES, &[hello.max_exchanges]);
    parameter(PARAM_CODECS, &hello.codecs);
    parameter(PARAM_WINDOW_LOG, &[u64::from(hello.max_window_log)]);
    if hello.anew {
        parameter(PARAM_ANEW, &[]);
    }
    if hello.beside {
        parameter(PARAM_BESIDE, &[]);
    }
}

fn encode_head(head: &Head, payload: &mut Vec<u8>) -> u64 {
    varint::encode(head.exchange, payload);
    varint::encode(head.codec, payload);
    if head.codec != 0 {
        payload.push(head.window_log);
    }
    HEAD | if head.end { END_BIT } else { 0 }
}

/// The forms that are longer than needed, so that any length from the least on can be had.
fn encode_padding(bytes: usize, out: &mut Vec<u8>) {
    let zeros = bytes.clamp(MIN_PADDING_BYTES, MAX_PADDING_BYTES) - MIN_PADDING_BYTES;
    for number in [PADDING, zeros as u64] {
        let [.., high, low] = number.to_be_bytes();
        out.extend([high | 0x40, low]);
    }
    out.resize(out.len() + zeros, 0);
}

fn encode_data(data: &Data, payload: &mut Vec<u8>) -> u64 {
    varint::encode(data.exchange, payload);
    if let Some(decoded_len) = data.block_end {
        varint::encode(decoded_len, payload);
    }
    DATA | if data.end { END_BIT } else { 0 }
        | if data.block_end.is_some() { BLOCK_END_BIT } else { 0 }
        | if data.uncoded { UNCODED_BIT } else { 0 }
        | if data.anew { ANEW_BIT } else { 0 }
}

fn decode(kind: u64, payload: Bytes) -> Result<Frame, Error> {
    let mut rest: &[u8] = &payload;
    let number = |rest: &mut &[u8]| varint::decode(rest, "a frame");
    let frame = match kind {
        HELLO => return decode_hello(rest).map(Frame::Hello),
        PING => Frame::Ping(number(&mut rest)?),
        PONG => Frame::Pong(number(&mut rest)?),
        GOAWAY => Frame::GoAway,
        CONTROL => {
            let kind = number(&mut rest)?;
            return Ok(Frame::Control(kind, payload.slice_ref(rest)));
        }
        CREDIT => Frame::Credit(number(&mut rest)?, number(&mut rest)?),
        ABORT => {
            let (exchange, code) = (number(&mut rest)?, number(&mut rest)?);
            let reason = String::from_utf8_lossy(&rest[..rest.len().min(MAX_REASON_BYTES)]);
            let reason: String = reason.chars().filter(|c| is_of_a_line(*c)).collect();
            // What was not UTF-8 has grown.
            let reason = floor_str(&reason, MAX_REASON_BYTES).to_owned();
            return Ok(Frame::Abort(Abort { exchange, code, reason }));
        }
        INTERIM => {
            let exchange = number(&mut rest)?;
            Frame::Interim(exchange, checked_status(number(&mut rest)?, 100, 199)?)
        }
        QUERY => Frame::Query(number(&mut rest)?),
        OUTCOME => {
            let exchange = number(&mut rest)?;
            let state = OutcomeState::from_wire(number(&mut rest)?, number(&mut rest)?)?;
            Frame::Outcome(exchange, state)
        }
        TRAILERS => {
            let exchange = number(&mut rest)?;
            return Ok(Frame::Trailers(exchange, bhttp::decode_fields(rest)?));
        }
        _ if kind & !END_BIT == HEAD => return decode_head(kind, &payload),
        _ if kind & !15 == DATA => return decode_data(kind, &payload),
        value => return Err(Error::Peer { what: "unknown frame type", value }),
    };
    if rest.is_empty() {
        Ok(frame)
    } else {
        Err(Error::Peer { what: "bytes behind the end of a frame of type", value: kind })
    }
}

fn decode_hello(mut rest: &[u8]) -> Result<Hello, Error> {
    let what = "a HELLO";
    let (version_min, version_max) =
        (varint::decode(&mut rest, what)?, varint::decode(&mut rest, what)?);
    let (instance, mut rest) = rest.split_first_chunk::<8>().ok_or(Error::Truncated { what })?;
    let mut hello = Hello {
        version_min,
        version_max,
        instance: u64::from_be_bytes(*instance),
        initial_credit: 0,
        max_exchanges: 0,
        codecs: Vec::new(),
        max_window_log: 0,
        anew: false,
        beside: false,
    };
    while !rest.is_empty() {
        let id = varint::decode(&mut rest, what)?;
        let mut value = varint::decode_bytes(&mut rest, what)?;
        match id {
            PARAM_CREDIT => hello.initial_credit = varint::decode(&mut value, what)?,
            PARAM_EXCHANGES => hello.max_exchanges = varint::decode(&mut value, what)?,
            PARAM_CODECS => {
                while !value.is_empty() {
                    let codec = varint::decode(&mut value, what)?;
                    if hello.codecs.len() < MAX_CODECS {
                        hello.codecs.push(codec);
                    }
                }
            }
            PARAM_WINDOW_LOG => {
                let log = varint::decode(&mut value, what)?;
                hello.max_window_log = u8::try_from(log)
                    .map_err(|_| Error::Peer { what: "a window is 2^0 to 2^255", value: log })?;
            }
            PARAM_ANEW => hello.anew = true,
            PARAM_BESIDE => hello.beside = true,
            _ => {}
        }
    }
    Ok(hello)
}

fn decode_head(kind: u64, payload: &Bytes) -> Result<Frame, Error> {
    let (mut rest, what) = (&payload[..], "a HEAD");
    let exchange = varint::decode(&mut rest, what)?;
    let codec = varint::decode(&mut rest, what)?;
    let mut window_log = 0;
    if codec != 0 {
        (window_log, rest) =
            rest.split_first().map(|(log, rest)| (*log, rest)).ok_or(Error::Truncated { what })?;
    }
    let end = kind & END_BIT != 0;
    Ok(Frame::Head(Head { exchange, codec, window_log, end, head: payload.slice_ref(rest) }))
}

fn decode_data(kind: u64, payload: &Bytes) -> Result<Frame, Error> {
    let (mut rest, what) = (&payload[..], "a DATA");
    let exchange = varint::decode(&mut rest, what)?;
    let (end, uncoded) = (kind & END_BIT != 0, kind & UNCODED_BIT != 0);
    let anew = kind & ANEW_BIT != 0;
    if anew && uncoded {
        return Err(Error::Peer { what: "an uncoded DATA that begins a context", value: kind });
    }
    let mut block_end = None;
    if kind & BLOCK_END_BIT != 0 {
        let value = varint::decode(&mut rest, what)?;
        let limit = MAX_BLOCK_BYTES as u64;
        if value > limit {
            return Err(Error::Limit { what: "the decoded length of a block", value, limit });
        }
        block_end = Some(value);
    } else if end {
        return Err(Error::Peer { what: "a DATA that ends a half must end a block", value: kind });
    }
    let bytes = payload.slice_ref(rest);
    Ok(Frame::Data(Data { exchange, block_end, uncoded, anew, end, bytes }))
}

fn checked_status(value: u64, least: u16, most: u16) -> Result<u16, Error> {
    u16::try_from(value)
        .ok()
        .filter(|status| (least..=most).contains(status))
        .ok_or(Error::Peer { what: "status out of range", value })
}

/// Whether a character stays in its line and leaves the others where they are: no control, no
/// separator of lines, none that turns the direction of the text.
fn is_of_a_line(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !c.is_control() && !turns && c != '\u{61c}'
}

/// The longest prefix of at most `len` bytes that ends between characters.
fn floor_str(text: &str, len: usize) -> &str {
    &text[..text.floor_char_boundary(len)]
}
