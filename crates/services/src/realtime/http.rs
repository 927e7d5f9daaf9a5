//! Requests of HTTP/1.1 in a buffer of fixed size (RFC 9112), read without allocation.

use crate::tracks::soap::Version;

/// Largest head of a request, in bytes.
pub const MAX_HEAD_BYTES: usize = 8192;
/// Largest content of a request, its chunks' sizes counted, in bytes.
pub const MAX_BODY_BYTES: usize = 64 * 1024;
/// Most fields of a head.
const MAX_FIELDS: usize = 64;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET or HEAD.
    Get {
        /// HEAD: the answer has no content.
        is_head: bool,
    },
    /// POST.
    Post,
    /// Any other.
    Other,
}

/// How much content follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// So many bytes, 0 where the head says nothing.
    Known(usize),
    /// Chunks (RFC 9112 §7.1).
    Chunked,
}

/// A head as far as it matters here, in slices of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// What is asked for.
    pub method: Method,
    /// Of what: path and query.
    pub target: &'a str,
    /// How much content follows.
    pub length: Length,
    /// The media type and its parameters.
    pub content_type: &'a str,
    /// The value of `Host`.
    pub host: &'a str,
    /// The value of `SOAPAction`, without quotes.
    pub action: &'a str,
    /// The value of `Priority` (RFC 9218).
    pub priority: &'a str,
    /// The connection ends behind the answer.
    pub is_last: bool,
    /// The client waits for 100 (RFC 9110 §10.1.1).
    pub expects_continue: bool,
    /// The content is coded.
    pub is_coded: bool,
}

/// Why a head is refused: a status, and a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadHead {
    /// The status of the answer.
    pub status: u16,
    /// One line.
    pub reason: &'static str,
}

fn bad(reason: &'static str) -> BadHead {
    BadHead { status: 400, reason }
}

/// Length of the head at the beginning of `bytes`, its empty line counted; `None` where it is not
/// whole. A line may end with LF alone (RFC 9112 §2.2).
#[must_use]
pub fn head_bytes(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = bytes.get(at..)?.iter().position(|byte| *byte == b'\n') {
        at += found + 1;
        match bytes.get(at..)? {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
    None
}

/// Reads a whole head.
///
/// # Errors
/// [`BadHead`] for what no server may guess at: no host or two, two lengths, a length and chunks,
/// codings but chunked, folded lines, other versions than 1.0 and 1.1.
pub fn read_head(head: &[u8]) -> Result<Head<'_>, BadHead> {
    let text = std::str::from_utf8(head).map_err(|_| bad("the head is not ASCII"))?;
    let is_plain = |byte: u8| byte == b'\t' || (b' '..0x7f).contains(&byte);
    let mut lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let first = lines.next().unwrap_or_default();
    let mut words = first.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(bad("the request line is none"));
    };
    if !first.bytes().all(is_plain) || method.is_empty() || target.is_empty() {
        return Err(bad("the request line is none"));
    }
    let minor = match version {
        "HTTP/1.1" => 1,
        "HTTP/1.0" => 0,
        _ => return Err(BadHead { status: 505, reason: "the version is not HTTP/1.1" }),
    };
    let mut fields = Fields { is_last: minor == 0, ..Fields::default() };
    for (count, line) in lines.take_while(|line| !line.is_empty()).enumerate() {
        if count == MAX_FIELDS {
            return Err(BadHead { status: 431, reason: "more than 64 fields" });
        }
        if !line.bytes().all(is_plain) || line.starts_with([' ', '\t']) {
            return Err(bad("a field with control characters or folded"));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| bad("a field without a colon"))?;
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(bad("a field whose name is none"));
        }
        fields.take(name, value.trim_matches([' ', '\t']))?;
    }
    if fields.host.is_none() && minor == 1 {
        return Err(bad("no field Host"));
    }
    let length = match (fields.is_chunked, fields.length) {
        (true, Some(_)) => return Err(bad("Content-Length beside Transfer-Encoding")),
        (true, None) if minor == 0 => return Err(bad("chunks in HTTP/1.0")),
        (true, None) => Length::Chunked,
        (false, length) => Length::Known(length.unwrap_or(0)),
    };
    Ok(Head {
        method: match method {
            "GET" => Method::Get { is_head: false },
            "HEAD" => Method::Get { is_head: true },
            "POST" => Method::Post,
            _ => Method::Other,
        },
        target: target.strip_prefix("http://").map_or(target, |rest| {
            // The absolute form, as of a client that takes us for a proxy (RFC 9112 §3.2.2).
            rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/")
        }),
        length,
        content_type: fields.content_type,
        host: fields.host.unwrap_or_default(),
        action: fields.action,
        priority: fields.priority,
        is_last: fields.is_last,
        expects_continue: fields.expects_continue && minor == 1,
        is_coded: fields.is_coded,
    })
}

#[derive(Default)]
struct Fields<'a> {
    length: Option<usize>,
    is_chunked: bool,
    host: Option<&'a str>,
    content_type: &'a str,
    action: &'a str,
    priority: &'a str,
    is_last: bool,
    expects_continue: bool,
    is_coded: bool,
}

impl<'a> Fields<'a> {
    fn take(&mut self, name: &str, value: &'a str) -> Result<(), BadHead> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        let members = || value.split(',').map(|member| member.trim_matches([' ', '\t']));
        let has = |wanted: &str| members().any(|member| member.eq_ignore_ascii_case(wanted));
        if is("content-length") {
            let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            if !is_number || self.length.is_some() {
                return Err(bad("Content-Length is no number, or there twice"));
            }
            // One too long for a number is too long for us.
            self.length = Some(value.parse().unwrap_or(usize::MAX));
        } else if is("transfer-encoding") {
            if !value.eq_ignore_ascii_case("chunked") || self.is_chunked {
                return Err(BadHead { status: 501, reason: "a transfer coding but chunked" });
            }
            self.is_chunked = true;
        } else if is("host") {
            if self.host.replace(value).is_some() {
                return Err(bad("two fields Host"));
            }
        } else if is("content-type") {
            self.content_type = value;
        } else if is("soapaction") {
            self.action = value.trim_matches('"');
        } else if is("priority") {
            self.priority = value;
        } else if is("connection") {
            self.is_last = (self.is_last && !has("keep-alive")) || has("close");
        } else if is("expect") {
            if !value.eq_ignore_ascii_case("100-continue") {
                return Err(BadHead { status: 417, reason: "an expectation but 100-continue" });
            }
            self.expects_continue = true;
        } else if is("content-encoding") {
            self.is_coded = !value.eq_ignore_ascii_case("identity");
        }
        Ok(())
    }
}

/// RFC 9110 §5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The SOAP of a media type, and whether its characters are read here.
///
/// # Errors
/// A line for another media type or another charset.
pub fn media(content_type: &str) -> Result<(Version, &str), &'static str> {
    let mut parts = content_type.split(';').map(str::trim_ascii);
    let essence = parts.next().unwrap_or_default();
    let versions = [Version::Soap11, Version::Soap12];
    let is_it = |version: &Version| essence.eq_ignore_ascii_case(version.media_type());
    let version = versions.into_iter().find(is_it);
    let version =
        version.ok_or("send text/xml for SOAP 1.1 or application/soap+xml for SOAP 1.2")?;
    let mut action = "";
    for part in parts {
        let Some((name, value)) = part.split_once('=') else { continue };
        let value = value.trim_matches('"');
        if name.eq_ignore_ascii_case("charset") {
            let known = ["utf-8", "us-ascii"];
            if !known.iter().any(|known| value.eq_ignore_ascii_case(known)) {
                return Err("send charset=utf-8");
            }
        } else if name.eq_ignore_ascii_case("action") {
            action = value;
        }
    }
    Ok((version, action))
}

/// What has come of chunked content at the beginning of `bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunks {
    /// It is not whole.
    Partial,
    /// It is: so many bytes with its chunks' sizes.
    Whole(usize),
}

/// Takes sizes and trailers out of chunked content when it is whole (RFC 9112 §7.1), and moves its
/// bytes together at the beginning. Returns what came and how much content it is.
///
/// # Errors
/// What is no chunked coding.
pub fn join_chunks(bytes: &mut [u8]) -> Result<(Chunks, usize), BadHead> {
    let wrong = || bad("chunks that are none");
    // Twice: only what is whole is moved.
    let mut content = 0;
    for is_moving in [false, true] {
        let (mut at, mut to) = (0, 0);
        loop {
            let Some((line, behind)) = line_at(bytes, at) else { return Ok((Chunks::Partial, 0)) };
            let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            let rest = line.get(digits..).unwrap_or_default();
            let is_end = matches!(rest.first(), None | Some(b';' | b' ' | b'\t'));
            if !(1..=8).contains(&digits) || !is_end {
                return Err(wrong());
            }
            let hex = line.get(..digits).and_then(|digits| std::str::from_utf8(digits).ok());
            let size = hex.and_then(|hex| usize::from_str_radix(hex, 16).ok()).ok_or_else(wrong)?;
            if size == 0 {
                at = behind;
                break;
            }
            if size > MAX_BODY_BYTES {
                return Err(BadHead {
                    status: 413,
                    reason: "a chunk over the limit of 65536 bytes",
                });
            }
            let end = behind + size;
            let Some((empty, next)) = line_at(bytes, end) else {
                // Whatever stands behind a chunk must be an empty line.
                let is_wrong = bytes.get(end).is_some_and(|byte| !matches!(byte, b'\r' | b'\n'));
                return if is_wrong { Err(wrong()) } else { Ok((Chunks::Partial, 0)) };
            };
            if !empty.is_empty() {
                return Err(wrong());
            }
            if is_moving {
                bytes.copy_within(behind..end, to);
            }
            (to, at) = (to + size, next);
        }
        // Trailers say nothing here.
        loop {
            let Some((line, behind)) = line_at(bytes, at) else { return Ok((Chunks::Partial, 0)) };
            at = behind;
            if line.is_empty() {
                break;
            }
        }
        content = to;
        if is_moving {
            return Ok((Chunks::Whole(at), content));
        }
    }
    Ok((Chunks::Partial, content))
}

/// The line at `at`, without its end, and what is behind it.
fn line_at(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = bytes.get(at..)?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let line = rest.get(..end)?;
    Some((line.strip_suffix(b"\r").unwrap_or(line), at + end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read() {
        let head = b"POST /consumer/1?x HTTP/1.1\r\nHost: a:1\r\ncontent-length: 12\r\n\
            SOAPAction: \"urn:x\"\r\nPriority: u=1\r\nConnection: close\r\n\
            Content-Type: text/xml\r\nExpect: 100-continue\r\n\r\nrest";
        let length = head_bytes(head).unwrap();
        assert_eq!(&head[length..], b"rest");
        let read = read_head(&head[..length]).unwrap();
        assert_eq!(read.method, Method::Post);
        assert_eq!((read.target, read.host), ("/consumer/1?x", "a:1"));
        assert_eq!(read.length, Length::Known(12));
        assert_eq!((read.action, read.priority, read.content_type), ("urn:x", "u=1", "text/xml"));
        assert!(read.is_last && read.expects_continue && !read.is_coded);
        let short =
            read_head(b"GET http://b/consumer HTTP/1.0\nConnection: keep-alive\n\n").unwrap();
        assert_eq!((short.target, short.is_last), ("/consumer", false));
        assert_eq!(head_bytes(b"GET / HTTP/1.1\r\nHost: a\r\n"), None);
    }

    #[test]
    fn what_no_server_may_guess_at_is_refused() {
        let long = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "a: b\r\n".repeat(MAX_FIELDS));
        for (head, status) in [
            ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n", 400),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\
                 Transfer-Encoding: chunked\r\n\r\n",
                400,
            ),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
            ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\n b: c\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nb: \x01\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n", 417),
            (long.as_str(), 431),
        ] {
            assert_eq!(read_head(head.as_bytes()).unwrap_err().status, status, "{head}");
        }
    }

    #[test]
    fn a_length_beyond_any_number_is_too_long_and_no_error() {
        let head = format!("POST / HTTP/1.1\nHost: a\nContent-Length: {}\n\n", "9".repeat(30));
        assert_eq!(read_head(head.as_bytes()).unwrap().length, Length::Known(usize::MAX));
    }

    #[test]
    fn chunks_are_joined_when_they_are_whole() {
        let whole = b"3;x=y\r\nabc\r\n0A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nNEXT";
        for end in 0..whole.len() - 4 {
            let mut part = whole[..end].to_vec();
            assert_eq!(join_chunks(&mut part), Ok((Chunks::Partial, 0)), "{end} bytes");
            assert_eq!(part, whole[..end], "what is not whole stays");
        }
        let mut bytes = whole.to_vec();
        let (Chunks::Whole(taken), content) = join_chunks(&mut bytes).unwrap() else { panic!() };
        assert_eq!((&bytes[..content], &whole[taken..]), (&b"abc0123456789"[..], &b"NEXT"[..]));
        for wrong in ["x\r\n", "\r\n", "3\r\nabcd\r\n", "-1\r\n", "123456789\r\n", "3x\r\n"] {
            assert!(join_chunks(&mut wrong.as_bytes().to_vec()).is_err(), "{wrong:?}");
        }
        assert_eq!(join_chunks(&mut b"fffff\r\n".to_vec()).unwrap_err().status, 413);
    }

    #[test]
    fn the_media_type_says_which_soap() {
        assert_eq!(media("text/xml; charset=\"UTF-8\""), Ok((Version::Soap11, "")));
        let twelve = media("application/soap+xml;charset=utf-8;action=\"urn:a\"");
        assert_eq!(twelve, Ok((Version::Soap12, "urn:a")));
        assert!(media("application/xml").is_err());
        assert!(media("text/xml; charset=utf-16").is_err());
    }
}
