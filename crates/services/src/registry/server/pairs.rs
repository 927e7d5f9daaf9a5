//! Queries of URLs as pairs.

use super::super::refusal::Refusal;

/// The pairs of a query, percent-decoded.
pub(super) fn of_query(query: &str) -> Result<Vec<(String, String)>, Refusal> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| of_pair(pair, true)).collect()
}

/// One pair of a query of CoAP, which has no escapes (RFC 7252 §6.4).
pub(super) fn of_option(value: &[u8]) -> Result<(String, String), Refusal> {
    let text =
        std::str::from_utf8(value).map_err(|_| Refusal::malformed("a Uri-Query is no UTF-8"))?;
    of_pair(text, false)
}

fn of_pair(pair: &str, is_encoded: bool) -> Result<(String, String), Refusal> {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let read = |text: &str| if is_encoded { decoded(text) } else { Ok(text.to_owned()) };
    Ok((read(name)?, read(value)?))
}

/// A part of a URL without its escapes (RFC 3986 §2.1).
pub(super) fn decoded(text: &str) -> Result<String, Refusal> {
    let refuse = || Refusal::malformed("a percent sign in the URL without two digits of UTF-8");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let (high, low) = (digit().ok_or_else(refuse)?, digit().ok_or_else(refuse)?);
        bytes.push(u8::try_from(high << 4 | low).unwrap_or_default());
    }
    String::from_utf8(bytes).map_err(|_| refuse())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read() {
        let pairs = of_query("ep=a%20b&&x&d=%C3%A9=1").unwrap();
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(pairs, [("ep", "a b"), ("x", ""), ("d", "é=1")]);
        assert_eq!(of_option(b"ep=a%20").unwrap().1, "a%20");
        for query in ["a=%", "a=%1", "a=%zz", "a=%ff"] {
            assert!(of_query(query).is_err(), "{query}");
        }
        assert!(of_option(&[0xff]).is_err());
    }
}
