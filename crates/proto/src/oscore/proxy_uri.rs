//! Proxy-Uri in two parts: what a proxy must know, and what it must not (RFC 8613 §4.1.3.3).

use crate::Error;

/// The longest segment of a path and argument of a query, in bytes (RFC 7252 §5.10).
const MAX_SEGMENT_BYTES: usize = 255;
/// The longest Proxy-Uri, in bytes (RFC 7252 §5.10).
const MAX_URI_BYTES: usize = 1034;

/// A Proxy-Uri, split.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProxyUri<'a> {
    /// Scheme and authority: the outer Proxy-Uri.
    pub(super) outer: &'a str,
    /// Values of Uri-Path.
    pub(super) path: Vec<Vec<u8>>,
    /// Values of Uri-Query.
    pub(super) query: Vec<Vec<u8>>,
}

/// Splits an absolute URI (RFC 7252 §6.4).
///
/// # Errors
/// `Caller` where it is no absolute URI with an authority, has a fragment or user information, or
/// is not well percent-encoded; `Limit` where it, or a part of it, is too long.
pub(super) fn split(uri: &[u8]) -> Result<ProxyUri<'_>, Error> {
    if uri.len() > MAX_URI_BYTES {
        let (value, limit) = (uri.len() as u64, MAX_URI_BYTES as u64);
        return Err(Error::Limit { what: "a Proxy-Uri in bytes", value, limit });
    }
    let wrong = Error::Caller { what: "a Proxy-Uri that is no absolute URI with a host" };
    let uri = str::from_utf8(uri).map_err(|_| wrong.clone())?;
    // RFC 7252 §6.4, step 4: a fragment is refused.
    if uri.contains('#') {
        return Err(Error::Caller { what: "a Proxy-Uri with a fragment" });
    }
    let (scheme, behind) = uri.split_once("://").ok_or(wrong.clone())?;
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let begins = scheme.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
    let len = behind.find(['/', '?']).unwrap_or(behind.len());
    let (authority, behind) = behind.split_at(len);
    if !begins || !scheme.bytes().all(is_scheme) || authority.is_empty() {
        return Err(wrong);
    }
    // RFC 8613 §4.1.3.3: a URI with user information cannot be replaced by Uri options.
    if authority.contains('@') {
        return Err(Error::Caller { what: "a Proxy-Uri with user information" });
    }
    let (path, query) = match behind.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (behind, None),
    };
    let outer = uri.get(..uri.len() - behind.len()).ok_or(wrong)?;
    // RFC 7252 §6.4, step 8: an empty path and a single slash are the same.
    let path = match path.strip_prefix('/') {
        None | Some("") => Vec::new(),
        Some(path) => path.split('/').map(decoded).collect::<Result<_, _>>()?,
    };
    let query = match query {
        None => Vec::new(),
        Some(query) => query.split('&').map(decoded).collect::<Result<_, _>>()?,
    };
    Ok(ProxyUri { outer, path, query })
}

/// The bytes behind percent-encodings (RFC 3986 §2.1).
fn decoded(text: &str) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let wrong = Error::Caller { what: "a Proxy-Uri that is not well percent-encoded" };
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let value = digit().and_then(|high| Some(high << 4 | digit()?));
                value.and_then(|value| u8::try_from(value).ok()).ok_or(wrong)?
            }
            byte => byte,
        };
        out.push(byte);
    }
    if out.len() > MAX_SEGMENT_BYTES {
        let (value, limit) = (out.len() as u64, MAX_SEGMENT_BYTES as u64);
        return Err(Error::Limit { what: "a part of a Proxy-Uri in bytes", value, limit });
    }
    Ok(out)
}
