//! Byte layout of a profile.

use crate::{Error, varint};

/// The version that this side writes.
pub const VERSION: u64 = 1;
/// Longest packet accepted, in bytes: what follows in later versions has room.
pub const MAX_BYTES: usize = 256;
/// Most encodings of a model.
pub const MAX_ENCODINGS: usize = 16;
/// Longest time that is believed, in seconds.
pub const MAX_SECONDS: f32 = 600.0;
/// Longest time to decode a byte that is believed, in seconds: 8 KiB a second.
pub const MAX_PER_BYTE_S: f32 = 1.0 / 8192.0;
/// Range of rates that are believed, in bit/s: up to 2^40.
const RATES_BPS: (f32, f32) = (1.0, 1_099_511_627_776.0);

const HAS_MODEL: u8 = 1;
const HAS_LINK: u8 = 2;

/// What came: a profile, or something of a later version that this side does not understand and
/// does not need to.
#[derive(Clone, Debug, PartialEq)]
pub enum Packet {
    /// Of a version that this side knows.
    Profile(Profile),
    /// Of a later one.
    Later {
        /// Which.
        version: u64,
    },
}

/// What a client tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// The model's name: see the module.
    pub hash: [u8; 8],
    /// How fast it decodes; none where the hash is to do.
    pub model: Option<Model>,
    /// Its link as it sees it.
    pub link: Option<Link>,
}

/// How fast a client decodes. Encodings are in ascending order of their numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// By codec.
    pub encodings: Vec<Decoding>,
}

/// How fast a client decodes one encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decoding {
    /// The codec's number on the carrier.
    pub codec: u64,
    /// Seconds whatever the length.
    pub fixed_s: f32,
    /// Seconds for each byte that comes out.
    pub per_byte_s: f32,
}

/// A link as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Bit/s.
    pub rate_bps: f32,
    /// Seconds of a round trip.
    pub rtt_s: f32,
    /// Share of packets lost, below 1.
    pub loss: f32,
}

impl Model {
    /// How fast a codec is, if the client told.
    #[must_use]
    pub fn of(&self, codec: u64) -> Option<&Decoding> {
        self.encodings.iter().find(|decoding| decoding.codec == codec)
    }

    /// Appends the bytes that the hash is of.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode(self.encodings.len() as u64, out);
        for Decoding { codec, fixed_s, per_byte_s } in &self.encodings {
            varint::encode(*codec, out);
            encode_small(*fixed_s, out);
            encode_small(*per_byte_s, out);
        }
    }

    fn decode(input: &mut &[u8]) -> Result<Self, Error> {
        let count = varint::decode(input, "the number of encodings")?;
        let most = MAX_ENCODINGS as u64;
        if count > most {
            return Err(Error::Limit {
                what: "the number of encodings",
                value: count,
                limit: most,
            });
        }
        let mut encodings: Vec<Decoding> = Vec::new();
        for _ in 0..count {
            let codec = varint::decode(input, "the number of a codec")?;
            if encodings.last().is_some_and(|before| before.codec >= codec) {
                return Err(Error::Peer {
                    what: "codecs must be in ascending order",
                    value: codec,
                });
            }
            let fixed_s = decode_small(input, "a time to decode", 0.0, MAX_SECONDS)?;
            let per_byte_s = decode_small(input, "a time to decode", 0.0, MAX_PER_BYTE_S)?;
            encodings.push(Decoding { codec, fixed_s, per_byte_s });
        }
        Ok(Self { encodings })
    }
}

impl Profile {
    /// Appends the packet.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode(VERSION, out);
        let model = if self.model.is_some() { HAS_MODEL } else { 0 };
        let link = if self.link.is_some() { HAS_LINK } else { 0 };
        out.push(model | link);
        out.extend(self.hash);
        if let Some(model) = &self.model {
            model.encode(out);
        }
        if let Some(Link { rate_bps, rtt_s, loss }) = self.link {
            [rate_bps, rtt_s, loss].iter().for_each(|value| encode_small(*value, out));
        }
    }
}

impl Packet {
    /// Reads a packet, whole; trailing bytes are refused, and values that nothing measures.
    pub fn decode(mut input: &[u8]) -> Result<Self, Error> {
        if input.len() > MAX_BYTES {
            let (value, limit) = (input.len() as u64, MAX_BYTES as u64);
            return Err(Error::Limit { what: "the size of a profile in bytes", value, limit });
        }
        let input = &mut input;
        match varint::decode(input, "the version")? {
            0 => return Err(Error::Peer { what: "no version has this number", value: 0 }),
            VERSION => {}
            version => return Ok(Self::Later { version }),
        }
        let [flags] = take(input, "the flags")?;
        if flags & !(HAS_MODEL | HAS_LINK) != 0 {
            return Err(Error::Peer { what: "unknown flags", value: u64::from(flags) });
        }
        let hash = take(input, "the hash")?;
        let model = (flags & HAS_MODEL != 0).then(|| Model::decode(input)).transpose()?;
        let link = (flags & HAS_LINK != 0).then(|| decode_link(input)).transpose()?;
        if !input.is_empty() {
            let value = input.len() as u64;
            return Err(Error::Peer { what: "bytes behind the end of a profile", value });
        }
        Ok(Self::Profile(Profile { hash, model, link }))
    }
}

fn decode_link(input: &mut &[u8]) -> Result<Link, Error> {
    let (least, most) = RATES_BPS;
    let rate_bps = decode_small(input, "the rate of a link", least, most)?;
    let rtt_s = decode_small(input, "the round trip of a link", 0.0, MAX_SECONDS)?;
    let loss = decode_small(input, "the loss of a link", 0.0, 1.0)?;
    if loss >= 1.0 {
        return Err(Error::Peer { what: "a link that loses everything", value: 1 });
    }
    Ok(Link { rate_bps, rtt_s, loss })
}

fn take<const N: usize>(input: &mut &[u8], what: &'static str) -> Result<[u8; N], Error> {
    let (bytes, rest) = input.split_first_chunk().ok_or(Error::Truncated { what })?;
    *input = rest;
    Ok(*bytes)
}

/// The nearest value that the upper half of a single holds.
fn encode_small(value: f32, out: &mut Vec<u8>) {
    let bits = value.to_bits();
    let [high, low, ..] = bits.saturating_add(0x8000).to_be_bytes();
    out.extend([high, low]);
}

/// NaN is in no range; nor is what has a sign, zero included, so that each value has one form.
fn decode_small(
    input: &mut &[u8],
    what: &'static str,
    least: f32,
    most: f32,
) -> Result<f32, Error> {
    let [high, low] = take(input, what)?;
    let value = f32::from_bits(u32::from_be_bytes([high, low, 0, 0]));
    if value.is_sign_positive() && (least..=most).contains(&value) {
        return Ok(value);
    }
    let value = u64::from(u16::from_be_bytes([high, low]));
    Err(Error::Peer { what, value })
}
