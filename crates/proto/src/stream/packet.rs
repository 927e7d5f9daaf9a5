//! Byte layout of the frames; the table is in the module's page.

use bytes::{Bytes, BytesMut};

use crate::carrier::{Peer, Setup};
use crate::exchange::{Abort, Data, Head, MAX_BLOCK_BYTES, OutcomeState, Part};
use crate::{Error, bhttp, varint};

/// Versions this code speaks.
pub const MIN_VERSION: u64 = 1;
/// See [`MIN_VERSION`].
pub const MAX_VERSION: u64 = 1;
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
const PARAM_PARALLEL: u64 = 6;
const PARAM_COUNTS: u64 = 7;
const PARAM_PACKS: u64 = 8;

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
    /// Blocks may begin a context anew ([`crate::exchange::Data::anew`]).
    pub anew: bool,
    /// Parallel carriers of one edge are supported.
    pub parallel: bool,
    /// Questions are numbered ([`Part::Query`]).
    pub counts: bool,
    /// Packed heads are read ([`crate::heads`]).
    pub packs: bool,
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
    /// What a relay has for the other.
    Part(Part),
    /// So many bytes in all that say nothing, within [`MIN_PADDING_BYTES`] and
    /// [`MAX_PADDING_BYTES`]. It is never received: whoever reads it skips it.
    Padding(usize),
}

impl Hello {
    /// What a side of this version says of itself.
    #[must_use]
    pub fn of(setup: &Setup) -> Self {
        Self {
            version_min: MIN_VERSION,
            version_max: MAX_VERSION,
            instance: setup.instance,
            initial_credit: setup.initial_credit,
            max_exchanges: setup.max_exchanges,
            codecs: setup.codecs.clone(),
            max_window_log: setup.max_window_log,
            anew: true,
            parallel: true,
            counts: true,
            packs: true,
        }
    }

    /// Whether both sides speak a version.
    ///
    /// # Errors
    /// They do not.
    pub fn check_versions(&self) -> Result<(), Error> {
        if self.version_max < MIN_VERSION || self.version_min > MAX_VERSION {
            let value = self.version_max;
            return Err(Error::Limit { what: "the peer's version", value, limit: MAX_VERSION });
        }
        Ok(())
    }

    /// What this says of a peer, in the greatest version that both sides speak.
    #[must_use]
    pub fn into_peer(self) -> Peer {
        Peer {
            version: self.version_max.min(MAX_VERSION),
            instance: self.instance,
            initial_credit: self.initial_credit,
            max_exchanges: self.max_exchanges,
            codecs: self.codecs,
            max_window_log: self.max_window_log,
            anew: self.anew,
            parallel: self.parallel,
            counts: self.counts,
            packs: self.packs,
        }
    }
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
            Self::Part(part) => encode_part(part, &mut payload, &mut tail),
            Self::Padding(_) => return,
        };
        let len = payload.len() + tail.len();
        out.reserve(varint::encoded_len(kind) + varint::encoded_len(len as u64) + len);
        varint::encode(kind, out);
        varint::encode(len as u64, out);
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

impl From<Part> for Frame {
    fn from(part: Part) -> Self {
        Self::Part(part)
    }
}

/// Bytes of the frame of a piece.
pub(crate) fn data_len(data: &Data) -> usize {
    let mut payload = Vec::new();
    let kind = encode_data(data, &mut payload);
    let len = payload.len() + data.bytes.len();
    varint::encoded_len(kind) + varint::encoded_len(len as u64) + len
}

fn encode_part<'a>(part: &'a Part, payload: &mut Vec<u8>, tail: &mut &'a [u8]) -> u64 {
    match part {
        Part::GoAway => GOAWAY,
        Part::Control(kind, bytes) => {
            *tail = bytes;
            numbers(&[*kind], CONTROL, payload)
        }
        Part::Credit(exchange, bytes) => numbers(&[*exchange, *bytes], CREDIT, payload),
        Part::Abort(abort) => {
            *tail = floor_str(&abort.reason, MAX_REASON_BYTES).as_bytes();
            numbers(&[abort.exchange, abort.code], ABORT, payload)
        }
        Part::Interim(exchange, status) => {
            numbers(&[*exchange, u64::from(*status)], INTERIM, payload)
        }
        Part::Query(exchange, 0) => numbers(&[*exchange], QUERY, payload),
        Part::Query(exchange, number) => numbers(&[*exchange, *number], QUERY, payload),
        Part::Outcome(exchange, state) => {
            let (state, status) = outcome_to_wire(*state);
            numbers(&[*exchange, state, status], OUTCOME, payload)
        }
        Part::Trailers(exchange, fields) => {
            varint::encode(*exchange, payload);
            bhttp::encode_fields(fields, payload);
            TRAILERS
        }
        Part::Head(head) => {
            *tail = &head.head;
            encode_head(head, payload)
        }
        Part::Data(data) => {
            *tail = &data.bytes;
            encode_data(data, payload)
        }
    }
}

fn outcome_to_wire(state: OutcomeState) -> (u64, u64) {
    match state {
        OutcomeState::NotSeen => (0, 0),
        OutcomeState::Answer => (1, 0),
        OutcomeState::Lost(status) => (2, u64::from(status)),
        OutcomeState::Aborted => (3, 0),
        OutcomeState::Forgotten => (4, 0),
        OutcomeState::Unfinished => (5, 0),
    }
}

fn outcome_from_wire(state: u64, status: u64) -> Result<OutcomeState, Error> {
    Ok(match state {
        0 => OutcomeState::NotSeen,
        1 => OutcomeState::Answer,
        2 => OutcomeState::Lost(checked_status(status, 200, 599)?),
        3 => OutcomeState::Aborted,
        4 => OutcomeState::Forgotten,
        5 => OutcomeState::Unfinished,
        value => return Err(Error::Peer { what: "unknown state of an OUTCOME", value }),
    })
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
    if hello.parallel {
        parameter(PARAM_PARALLEL, &[]);
    }
    if hello.counts {
        parameter(PARAM_COUNTS, &[]);
    }
    if hello.packs {
        parameter(PARAM_PACKS, &[]);
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
        _ => Frame::Part(decode_part(kind, &payload, &mut rest)?),
    };
    if rest.is_empty() {
        Ok(frame)
    } else {
        Err(Error::Peer { what: "bytes behind the end of a frame of type", value: kind })
    }
}

/// Reads off the front of `rest`, which is the whole of `payload`.
fn decode_part(kind: u64, payload: &Bytes, rest: &mut &[u8]) -> Result<Part, Error> {
    let number = |rest: &mut &[u8]| varint::decode(rest, "a frame");
    Ok(match kind {
        GOAWAY => Part::GoAway,
        CONTROL => {
            let kind = number(rest)?;
            Part::Control(kind, payload.slice_ref(std::mem::take(rest)))
        }
        CREDIT => Part::Credit(number(rest)?, number(rest)?),
        ABORT => {
            let (exchange, code) = (number(rest)?, number(rest)?);
            let reason = std::mem::take(rest);
            let reason = String::from_utf8_lossy(&reason[..reason.len().min(MAX_REASON_BYTES)]);
            let reason: String = reason.chars().filter(|c| is_of_a_line(*c)).collect();
            // What was not UTF-8 has grown.
            let reason = floor_str(&reason, MAX_REASON_BYTES).to_owned();
            Part::Abort(Abort { exchange, code, reason })
        }
        INTERIM => {
            let exchange = number(rest)?;
            Part::Interim(exchange, checked_status(number(rest)?, 100, 199)?)
        }
        QUERY => {
            let exchange = number(rest)?;
            Part::Query(exchange, if rest.is_empty() { 0 } else { number(rest)? })
        }
        OUTCOME => {
            let exchange = number(rest)?;
            Part::Outcome(exchange, outcome_from_wire(number(rest)?, number(rest)?)?)
        }
        TRAILERS => {
            let exchange = number(rest)?;
            Part::Trailers(exchange, bhttp::decode_fields(std::mem::take(rest))?)
        }
        _ if kind & !END_BIT == HEAD => Part::Head(decode_head(kind, payload, rest)?),
        _ if kind & !15 == DATA => Part::Data(decode_data(kind, payload, rest)?),
        value => return Err(Error::Peer { what: "unknown frame type", value }),
    })
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
        parallel: false,
        counts: false,
        packs: false,
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
            PARAM_PARALLEL => hello.parallel = true,
            PARAM_COUNTS => hello.counts = true,
            PARAM_PACKS => hello.packs = true,
            _ => {}
        }
    }
    Ok(hello)
}

fn decode_head(kind: u64, payload: &Bytes, rest: &mut &[u8]) -> Result<Head, Error> {
    let what = "a HEAD";
    let exchange = varint::decode(rest, what)?;
    let codec = varint::decode(rest, what)?;
    let mut window_log = 0;
    if codec != 0 {
        (window_log, *rest) =
            rest.split_first().map(|(log, rest)| (*log, rest)).ok_or(Error::Truncated { what })?;
    }
    let (end, head) = (kind & END_BIT != 0, payload.slice_ref(std::mem::take(rest)));
    Ok(Head { exchange, codec, window_log, end, head })
}

fn decode_data(kind: u64, payload: &Bytes, rest: &mut &[u8]) -> Result<Data, Error> {
    let what = "a DATA";
    let exchange = varint::decode(rest, what)?;
    let (end, uncoded) = (kind & END_BIT != 0, kind & UNCODED_BIT != 0);
    let anew = kind & ANEW_BIT != 0;
    if anew && uncoded {
        return Err(Error::Peer { what: "an uncoded DATA that begins a context", value: kind });
    }
    let mut block_end = None;
    if kind & BLOCK_END_BIT != 0 {
        let value = varint::decode(rest, what)?;
        let limit = MAX_BLOCK_BYTES as u64;
        if value > limit {
            return Err(Error::Limit { what: "the decoded length of a block", value, limit });
        }
        block_end = Some(value);
    } else if end {
        return Err(Error::Peer {
            what: "a DATA that ends a message must end a block",
            value: kind,
        });
    }
    let bytes = payload.slice_ref(std::mem::take(rest));
    Ok(Data { exchange, block_end, uncoded, anew, end, padding: None, bytes })
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
