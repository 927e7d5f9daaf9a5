//! Options: their numbers, what a number says, and the table of those that are known.

use super::{Code, Options};

/// The number of an option.
pub type Number = u16;

/// RFC 7252 §5.10.8.1.
pub const IF_MATCH: Number = 1;
/// RFC 7252 §5.10.1.
pub const URI_HOST: Number = 3;
/// RFC 7252 §5.10.6.
pub const ETAG: Number = 4;
/// RFC 7252 §5.10.8.2.
pub const IF_NONE_MATCH: Number = 5;
/// RFC 7641 §2.
pub const OBSERVE: Number = 6;
/// RFC 7252 §5.10.1.
pub const URI_PORT: Number = 7;
/// RFC 7252 §5.10.7.
pub const LOCATION_PATH: Number = 8;
/// RFC 8613 §2.
pub const OSCORE: Number = 9;
/// RFC 7252 §5.10.1.
pub const URI_PATH: Number = 11;
/// RFC 7252 §5.10.3.
pub const CONTENT_FORMAT: Number = 12;
/// RFC 7252 §5.10.5, in seconds.
pub const MAX_AGE: Number = 14;
/// RFC 7252 §5.10.1.
pub const URI_QUERY: Number = 15;
/// RFC 8768 §3.
pub const HOP_LIMIT: Number = 16;
/// RFC 7252 §5.10.4.
pub const ACCEPT: Number = 17;
/// RFC 9177 §4.1.
pub const Q_BLOCK1: Number = 19;
/// RFC 7252 §5.10.7.
pub const LOCATION_QUERY: Number = 20;
/// RFC 7959 §2.1.
pub const BLOCK2: Number = 23;
/// RFC 7959 §2.1.
pub const BLOCK1: Number = 27;
/// RFC 7959 §4, in bytes.
pub const SIZE2: Number = 28;
/// RFC 9177 §4.1.
pub const Q_BLOCK2: Number = 31;
/// RFC 7252 §5.10.2.
pub const PROXY_URI: Number = 35;
/// RFC 7252 §5.10.2.
pub const PROXY_SCHEME: Number = 39;
/// RFC 7252 §5.10.9, RFC 7959 §4, in bytes.
pub const SIZE1: Number = 60;
/// RFC 9175 §2.2.
pub const ECHO: Number = 252;
/// RFC 7967 §2.
pub const NO_RESPONSE: Number = 258;
/// RFC 9175 §3.2.
pub const REQUEST_TAG: Number = 292;

/// Max-Age of a response that does not say it (RFC 7252 §5.10.5), in seconds.
pub const DEFAULT_AGE_S: u32 = 60;
/// Hop-Limit of a request that does not say it (RFC 8768 §3).
pub const DEFAULT_HOP_LIMIT: u8 = 16;
/// No-Response: 2.xx are not wanted (RFC 7967 §2.1).
pub const NO_SUCCESS: u32 = 2;
/// No-Response: 4.xx are not wanted.
pub const NO_CLIENT_ERROR: u32 = 8;
/// No-Response: 5.xx are not wanted.
pub const NO_SERVER_ERROR: u32 = 16;

/// What a value is (RFC 7252 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// No bytes.
    Empty,
    /// Any bytes.
    Opaque,
    /// A number in network order, without leading zeros.
    Uint,
    /// Net-Unicode text (RFC 5198).
    String,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The number, which also says the class of the option.
    pub number: u16,
    /// The name as registered.
    pub name: &'static str,
    /// What the value is.
    pub format: Format,
    /// Whether it may occur more than once (RFC 7252 §5.4.5).
    pub is_repeatable: bool,
    /// Shortest value in bytes (RFC 7252 §5.4.3).
    pub min_bytes: u16,
    /// Longest value in bytes.
    pub max_bytes: u16,
}

const fn row(
    number: u16,
    name: &'static str,
    format: Format,
    is_repeatable: bool,
    bytes: (u16, u16),
) -> Definition {
    Definition { number, name, format, is_repeatable, min_bytes: bytes.0, max_bytes: bytes.1 }
}

const ONCE: bool = false;
const MANY: bool = true;

/// The known options, by number.
pub const TABLE: [Definition; 26] = [
    row(IF_MATCH, "If-Match", Format::Opaque, MANY, (0, 8)),
    row(URI_HOST, "Uri-Host", Format::String, ONCE, (1, 255)),
    row(ETAG, "ETag", Format::Opaque, MANY, (1, 8)),
    row(IF_NONE_MATCH, "If-None-Match", Format::Empty, ONCE, (0, 0)),
    row(OBSERVE, "Observe", Format::Uint, ONCE, (0, 3)),
    row(URI_PORT, "Uri-Port", Format::Uint, ONCE, (0, 2)),
    row(LOCATION_PATH, "Location-Path", Format::String, MANY, (0, 255)),
    row(OSCORE, "OSCORE", Format::Opaque, ONCE, (0, 255)),
    row(URI_PATH, "Uri-Path", Format::String, MANY, (0, 255)),
    row(CONTENT_FORMAT, "Content-Format", Format::Uint, ONCE, (0, 2)),
    row(MAX_AGE, "Max-Age", Format::Uint, ONCE, (0, 4)),
    row(URI_QUERY, "Uri-Query", Format::String, MANY, (0, 255)),
    row(HOP_LIMIT, "Hop-Limit", Format::Uint, ONCE, (1, 1)),
    row(ACCEPT, "Accept", Format::Uint, ONCE, (0, 2)),
    row(Q_BLOCK1, "Q-Block1", Format::Uint, ONCE, (0, 3)),
    row(LOCATION_QUERY, "Location-Query", Format::String, MANY, (0, 255)),
    row(BLOCK2, "Block2", Format::Uint, ONCE, (0, 3)),
    row(BLOCK1, "Block1", Format::Uint, ONCE, (0, 3)),
    row(SIZE2, "Size2", Format::Uint, ONCE, (0, 4)),
    // RFC 9177 §4.1: repeatable where it asks for blocks that are missing.
    row(Q_BLOCK2, "Q-Block2", Format::Uint, MANY, (0, 3)),
    row(PROXY_URI, "Proxy-Uri", Format::String, ONCE, (1, 1034)),
    row(PROXY_SCHEME, "Proxy-Scheme", Format::String, ONCE, (1, 255)),
    row(SIZE1, "Size1", Format::Uint, ONCE, (0, 4)),
    row(ECHO, "Echo", Format::Opaque, ONCE, (1, 40)),
    row(NO_RESPONSE, "No-Response", Format::Uint, ONCE, (0, 1)),
    row(REQUEST_TAG, "Request-Tag", Format::Opaque, MANY, (0, 8)),
];

/// What the table says of a number.
#[must_use]
pub fn definition(number: u16) -> Option<&'static Definition> {
    let at = TABLE.binary_search_by_key(&number, |row| row.number).ok()?;
    TABLE.get(at)
}

/// Whether who does not understand it must refuse the message (RFC 7252 §5.4.6).
#[must_use]
pub const fn is_critical(number: u16) -> bool {
    number & 1 != 0
}

/// Whether a proxy that does not understand it must not forward the message (RFC 7252 §5.4.6).
#[must_use]
pub const fn is_unsafe(number: u16) -> bool {
    number & 2 != 0
}

/// Whether a cache leaves it out of its key (RFC 7252 §5.4.6); of unsafe ones this says nothing.
#[must_use]
pub const fn is_no_cache_key(number: u16) -> bool {
    number & 0x1e == 0x1c
}

/// Whether the `count`th occurrence (from 0) of an option with `len` bytes is one that
/// RFC 7252 §5.4.3 and §5.4.5 allow. An option that is in no table is not.
#[must_use]
pub fn is_allowed(number: u16, len: usize, count: usize) -> bool {
    definition(number).is_some_and(|row| {
        let bytes = usize::from(row.min_bytes)..=usize::from(row.max_bytes);
        bytes.contains(&len) && (row.is_repeatable || count == 0)
    })
}

/// The first critical option that is not in `known`, has a wrong length or occurs too often
/// (RFC 7252 §5.4.1, §5.4.3, §5.4.5); `None` if the message need not be refused.
#[must_use]
pub fn find_bad_critical(options: Options<'_>, known: &[u16]) -> Option<u16> {
    let (mut before, mut count) = (None, 0);
    for (number, value) in options {
        count = if before == Some(number) { count + 1 } else { 0 };
        before = Some(number);
        let is_good = known.contains(&number) && is_allowed(number, value.len(), count);
        if is_critical(number) && !is_good {
            return Some(number);
        }
    }
    None
}

/// The Hop-Limit with which a proxy forwards a request that has this one (RFC 8768 §3). The error
/// is what it answers instead: 5.08 where there were too many hops, 4.00 where the value is none.
pub fn next_hop(limit: Option<&[u8]>) -> Result<u8, Code> {
    match limit {
        None => Ok(DEFAULT_HOP_LIMIT),
        Some([0]) => Err(Code::BAD_REQUEST),
        Some([1]) => Err(Code::HOP_LIMIT_REACHED),
        Some([limit]) => Ok(limit - 1),
        Some(_) => Err(Code::BAD_REQUEST),
    }
}

/// A number in network order (RFC 7252 §3.2); `None` beyond four bytes. Leading zeros are allowed.
#[must_use]
pub fn uint(value: &[u8]) -> Option<u32> {
    if value.len() > 4 {
        return None;
    }
    Some(value.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
}
