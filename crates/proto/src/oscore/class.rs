//! Which options are encrypted and which proxies see (RFC 8613 §4.1).

/// Number of Uri-Host (RFC 7252 §5.10).
pub(super) const URI_HOST: u16 = 3;
/// Number of Observe (RFC 7641 §2).
pub const OBSERVE: u16 = 6;
/// Number of Uri-Port (RFC 7252 §5.10).
pub(super) const URI_PORT: u16 = 7;
/// Number of Uri-Path.
pub(super) const URI_PATH: u16 = 11;
/// Number of Max-Age.
pub(super) const MAX_AGE_NUMBER: u16 = 14;
/// Number of Uri-Query.
pub(super) const URI_QUERY: u16 = 15;
/// Number of Hop-Limit (RFC 8768 §3).
const HOP_LIMIT: u16 = 16;
/// Number of Q-Block1 (RFC 9177 §4.1).
const Q_BLOCK1: u16 = 19;
/// Number of EDHOC (RFC 9668 §3.1).
const EDHOC: u16 = 21;
/// Number of Block2 (RFC 7959 §2.1).
const BLOCK2: u16 = 23;
/// Number of Block1.
const BLOCK1: u16 = 27;
/// Number of Size2 (RFC 7959 §4).
const SIZE2: u16 = 28;
/// Number of Q-Block2.
const Q_BLOCK2: u16 = 31;
/// Number of Proxy-Uri (RFC 7252 §5.10).
pub(super) const PROXY_URI: u16 = 35;
/// Number of Proxy-Scheme.
pub(super) const PROXY_SCHEME: u16 = 39;
/// Number of Size1.
const SIZE1: u16 = 60;
/// Number of Echo (RFC 9175 §2.2).
pub const ECHO: u16 = 252;
/// Number of No-Response (RFC 7967 §2).
const NO_RESPONSE: u16 = 258;
/// Number of Request-Tag (RFC 9175 §3.2).
const REQUEST_TAG: u16 = 292;

/// Where an option stands in a protected message. There is no option of Class I yet, which would be
/// seen and authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Class E: encrypted and authenticated. An outer one is discarded by who receives it.
    Inner,
    /// Class U: proxies see it, and can change it.
    Outer,
    /// Classes E and U: the one from end to end is encrypted; another may be for proxies, and is
    /// discarded by who receives it. What is protected here makes an outer Observe and no other.
    Both,
}

/// The class of an option (RFC 8613 §4.1, figure 5, and the RFCs that have added options). Options
/// that are not known are of Class E.
#[must_use]
pub fn class(number: u16) -> Class {
    match number {
        super::OSCORE | URI_HOST | URI_PORT | PROXY_URI | PROXY_SCHEME | HOP_LIMIT | EDHOC => {
            Class::Outer
        }
        OBSERVE | MAX_AGE_NUMBER | BLOCK1 | BLOCK2 | SIZE1 | SIZE2 | Q_BLOCK1 | Q_BLOCK2 | ECHO
        | NO_RESPONSE | REQUEST_TAG => Class::Both,
        // If-Match, ETag, If-None-Match, Location-Path, Uri-Path, Content-Format, Uri-Query,
        // Accept, Location-Query; and all others.
        _ => Class::Inner,
    }
}
