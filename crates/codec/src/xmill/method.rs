//! The methods that a stream can be coded with, behind one face for the frame.

use super::NAME;
use super::back::Back;
use super::model::Model;
use super::outline::{Broken, Outline};
use super::range::{RangeDecoder, RangeEncoder};
use super::split;
use crate::codec::{Decoder, Encoder, Options};
use crate::{Error, Limits};

/// Positions are counted up to this; then everything begins anew.
const TOTAL_BYTES: usize = 3 << 30;
/// Window of a general compressor at most: a block's parts are hardly longer.
const BACK_WINDOW_LOG: u8 = 20;
/// A first block of at most so many bytes is tried in one part too.
const WHOLE_BYTES: usize = 16 << 10;

/// How a block is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// Values in columns, for a general compressor.
    Split(Back),
    /// Many contexts, bit by bit.
    Strong,
}

impl Method {
    pub(super) const ALL: [Self; 3] =
        [Self::Split(Back::Deflate), Self::Split(Back::Zstd), Self::Strong];

    /// What a level stands for, and the level of its general compressor.
    pub(super) fn of_level(level: i8) -> (Self, i8) {
        match level {
            ..=1 => (Self::Split(Back::Deflate), 6),
            2 => (Self::Split(Back::Zstd), 1),
            3 => (Self::Split(Back::Zstd), 3),
            4 => (Self::Split(Back::Zstd), 6),
            5 => (Self::Split(Back::Zstd), 9),
            6 => (Self::Split(Back::Zstd), 13),
            7 => (Self::Split(Back::Zstd), 16),
            8 => (Self::Split(Back::Zstd), 19),
            _ => (Self::Strong, 0),
        }
    }

    /// What a first block is coded with too, to see which is shorter: levels 4, for a guess, and 8.
    pub(super) fn other(self) -> Option<(Self, [i8; 2])> {
        (self == Self::Strong).then_some((Self::Split(Back::Zstd), [6, 19]))
    }

    /// Its number in the first byte of a stream.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Split(Back::Deflate) => 1,
            Self::Split(Back::Zstd) => 2,
            Self::Strong => 3,
        }
    }

    pub(super) fn numbered(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.number() == number)
    }

    /// Bytes of the tables for 2^`window_log` bytes: of an encoder with a level of the general
    /// compressor, or of a decoder.
    pub(super) fn table_bytes(self, window_log: u8, level: Option<i8>) -> usize {
        let log = u32::from(window_log);
        let Self::Split(back) = self else { return Model::table_bytes(log) };
        let options = options(window_log, level.unwrap_or(0));
        let bytes = match level {
            Some(_) => split::trial_bytes(log) + back.encoder_bytes(options),
            None => back.decoder_bytes(options),
        };
        Outline::table_bytes(log) + split::column_bytes(log) + bytes
    }
}

fn options(window_log: u8, level: i8) -> Options {
    Options { level, window_log: window_log.min(BACK_WINDOW_LOG), ..Options::IDENTITY }
}

enum CoderState {
    Model(Box<Model>),
    Encoder(Outline, Box<dyn Encoder>),
    Decoder(Outline, Box<dyn Decoder>),
}

/// What makes a state.
#[derive(Clone, Copy)]
struct Plan {
    window_log: u8,
    method: Method,
    /// Of the general compressor, to encode; `None` to decode.
    level: Option<i8>,
}

/// What one direction keeps between blocks.
pub(super) struct Context {
    plan: Plan,
    state: CoderState,
    /// Nothing was coded since all began.
    fresh: bool,
}

fn put_parts(
    parts: &[u8],
    cuts: &[usize],
    last: bool,
    back: &mut dyn Encoder,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    split::put_number(parts.len(), out);
    let mut from = 0;
    for &cut in cuts {
        back.encode(&parts[from..cut], last && cut == parts.len(), out)?;
        from = cut;
    }
    Ok(())
}

impl Context {
    /// For the level of a general compressor to encode, `None` to decode. Errors: tables above the
    /// limit, or no memory.
    pub(super) fn new(
        method: Method,
        window_log: u8,
        level: Option<i8>,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let tables = method.table_bytes(window_log, level);
        if tables > limits.table_bytes {
            let what = format!("table_bytes is {}, {tables} are needed", limits.table_bytes);
            return Err(Error::Limit { codec: NAME, what });
        }
        let plan = Plan { window_log, method, level };
        Ok(Self { plan, state: CoderState::new(&plan)?, fresh: true })
    }

    /// Codes a block; `None` if it cannot be coded so.
    pub(super) fn encode(&mut self, block: &[u8], last: bool) -> Result<Option<Vec<u8>>, Error> {
        let mut coded = Vec::with_capacity(block.len() / 8 + 64);
        match &mut self.state {
            CoderState::Model(model) => {
                model.text.extend_from_slice(block);
                let mut coder = RangeEncoder::new(&mut coded);
                let end = model.text.len();
                let went = model.code(&mut coder, end).is_ok();
                coder.finish();
                Ok(went.then_some(coded))
            }
            CoderState::Encoder(outline, back) => {
                let fresh = std::mem::take(&mut self.fresh);
                let (parts, cuts) = split::part(outline, block);
                if parts.len() > split::most_bytes(block.len()) {
                    return Ok(None);
                }
                put_parts(&parts, &cuts, last, &mut **back, &mut coded)?;
                if fresh && block.len() <= WHOLE_BYTES {
                    // So little repeats in it that it may be better off in one part.
                    let parts = [&[0], block].concat();
                    let (mut other, mut whole) = (CoderState::new(&self.plan)?, Vec::new());
                    if let CoderState::Encoder(_, back) = &mut other {
                        put_parts(&parts, &[parts.len()], last, &mut **back, &mut whole)?;
                        if whole.len() < coded.len() {
                            (self.state, coded) = (other, whole);
                        }
                    }
                }
                Ok(Some(coded))
            }
            CoderState::Decoder(..) => Ok(None),
        }
    }

    /// Decodes a block of `len` bytes. Errors: what is wrong with it.
    pub(super) fn decode(
        &mut self,
        coded: &[u8],
        len: usize,
        last: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        match &mut self.state {
            CoderState::Model(model) => {
                let start = model.text.len();
                model.text.reserve(len);
                let mut coder = RangeDecoder::new(coded);
                model.code(&mut coder, start + len).map_err(Broken::message)?;
                if !coder.is_used_up() {
                    return Err("a block of another length than told".to_owned());
                }
                out.extend_from_slice(model.text.get(start..).unwrap_or_default());
                Ok(())
            }
            CoderState::Decoder(outline, back) => {
                let (parts_len, coded) = split::take_number(coded).map_err(Broken::message)?;
                if parts_len > split::most_bytes(len) {
                    return Err("parts of more than four times the block".to_owned());
                }
                let mut parts = Vec::new();
                let went = back.decode(coded, parts_len, last, &mut parts);
                went.map_err(|error| error.to_string())?;
                split::join_parts(outline, &parts, len, out).map_err(Broken::message)
            }
            CoderState::Encoder(..) => Err(Broken::Unknown.message()),
        }
    }

    /// Between blocks: forgets what is behind the window, or all.
    pub(super) fn turn(&mut self, stored: bool) -> Result<(), Error> {
        if let CoderState::Model(model) = &mut self.state {
            if !stored && model.total() <= TOTAL_BYTES {
                if model.position() >= 2 << self.plan.window_log {
                    model.slide(1 << self.plan.window_log);
                }
                return Ok(());
            }
        } else if !stored {
            return Ok(());
        }
        (self.state, self.fresh) = (CoderState::new(&self.plan)?, true);
        Ok(())
    }
}

impl CoderState {
    fn new(plan: &Plan) -> Result<Self, Error> {
        let options = options(plan.window_log, plan.level.unwrap_or(0));
        let log = u32::from(plan.window_log);
        Ok(match (plan.method, plan.level) {
            (Method::Strong, _) => Self::Model(Box::new(Model::new(log))),
            (Method::Split(back), None) => Self::Decoder(Outline::new(log), back.decoder(options)?),
            (Method::Split(back), _) => Self::Encoder(Outline::new(log), back.encoder(options)?),
        })
    }
}
