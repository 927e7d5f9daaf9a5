//! Texts that have a secret in them, whatever stands beside them. Each is read once, without a
//! copy: this is done to every message that is kept.

use super::words::{MAX_NAME_BYTES, Words, has_part, is_secret};

/// Text with any of these may be a message inside of the message, or a field's value; `SCHEMES` are
/// among them.
pub(super) static MARKS: Words = Words::new(&[
    "apikey ",
    "authorization:",
    "basic ",
    "bearer ",
    "binarysecuritytoken",
    "cnonce=",
    "cookie:",
    "digest ",
    "digest username",
    "negotiate ",
    "ntlm ",
    "password",
    "private key block",
    "private key-----",
    "token ",
    "usernametoken",
]);
/// Schemes of authentication, with how long what follows is at least: prose has these words too.
const SCHEMES: [(&str, usize); 6] = [
    ("apikey ", 16),
    ("basic ", 8),
    ("digest ", 16),
    ("negotiate ", 16),
    ("ntlm ", 16),
    ("token ", 16),
];
/// Parameters that are secret where a long random word is their value.
const OFTEN: [&str; 5] = ["key", "accountkey", "code", "ticket", "session"];
/// The shortest such word.
const MIN_RANDOM_BYTES: usize = 20;
/// The shortest head of a JWT (RFC 7519 §3.1), and the shortest user in a URL that is a token.
const MIN_HEAD_BYTES: usize = 16;
/// How far a URL's authority is read: longer ones are no host's.
const MAX_AUTHORITY_BYTES: usize = 512;

/// Whether something in a text is secret.
pub(super) fn holds_secret(text: &[u8]) -> bool {
    text.iter().enumerate().any(|(at, byte)| match byte {
        b'a'..=b'z' | b'A'..=b'Z' => is_marked(text, at),
        b'.' => is_jwt(text, at),
        b'=' => is_member(text, at, 1),
        b'>' => is_named(text, at, None),
        b':' if rest(text, at).starts_with(b"://") => has_user(rest(text, at + 3)),
        b':' => is_member(text, at, 1),
        b'%' if begins(rest(text, at), "%3d") => is_member(text, at, 3),
        b'%' => begins(rest(text, at), "%3a%2f%2f") && has_coded_user(rest(text, at + 9)),
        _ => false,
    })
}

fn rest(text: &[u8], at: usize) -> &[u8] {
    text.get(at..).unwrap_or_default()
}

fn begins(text: &[u8], word: &str) -> bool {
    text.get(..word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether one of the marks begins at `at`.
#[inline]
fn is_marked(text: &[u8], at: usize) -> bool {
    let found = rest(text, at);
    MARKS.beginning(found).iter().any(|mark| {
        begins(found, mark)
            && match SCHEMES.iter().find(|(scheme, _)| scheme == mark) {
                Some((_, least)) => {
                    let before = at.checked_sub(1).and_then(|before| text.get(before));
                    !before.is_some_and(u8::is_ascii_alphanumeric)
                        && is_random(rest(found, mark.len()).trim_ascii_start(), *least)
                }
                None => true,
            }
    })
}

/// Of base64 (RFC 4648 §4 and §5), as in tokens.
fn is_of_base64(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=')
}

/// Whether a text begins with a word of at least `least` bytes that is none of a language.
fn is_random(text: &[u8], least: usize) -> bool {
    let end = text.iter().position(|byte| !is_of_base64(byte)).unwrap_or(text.len());
    let word = text.get(..end).unwrap_or_default();
    let humps = word.windows(2).filter(|pair| {
        pair.first().is_some_and(u8::is_ascii_lowercase)
            && pair.last().is_some_and(u8::is_ascii_uppercase)
    });
    let letters = word.iter().any(u8::is_ascii_alphabetic);
    word.len() >= least
        && (word.contains(&b'=')
            || (letters && word.iter().any(u8::is_ascii_digit))
            // JavaScript has one too.
            || humps.count() > usize::from(!word.len().is_multiple_of(4)))
}

/// Whether the dot at `at` ends a head of a JWT: an object in base64, `{"` is `eyJ`.
fn is_jwt(text: &[u8], at: usize) -> bool {
    let of_jwt = |byte: &u8| is_of_base64(byte) || *byte == b'.';
    let before = text.get(..at).unwrap_or_default();
    let begin = before.iter().rposition(|byte| !is_of_base64(byte)).map_or(0, |at| at + 1);
    let head = rest(before, begin);
    let last = head.len().saturating_sub(MIN_HEAD_BYTES - 3);
    rest(text, at + 1).first().is_some_and(of_jwt)
        && head.get(..last).unwrap_or_default().windows(3).any(|found| found == b"eyJ")
}

/// Whether a secret's name stands before the sign at `at`, and a value behind its `sign` bytes.
fn is_member(text: &[u8], at: usize, sign: usize) -> bool {
    let value = rest(text, at + sign).trim_ascii_start();
    // What ends base64 names nothing.
    !value.is_empty() && !value.starts_with(b"=") && is_named(text, at, Some(value))
}

/// Whether a secret's name ends at `at`: that of a parameter, a member or a field with its value,
/// or of an element, in a message inside of the message.
fn is_named(text: &[u8], at: usize, value: Option<&[u8]>) -> bool {
    let near = text.get(at.saturating_sub(2 * MAX_NAME_BYTES)..at).unwrap_or_default();
    let closes = |byte: &u8| matches!(byte, b' ' | b'"' | b'\'' | b'\\' | b']');
    let end = near.iter().rposition(|byte| !closes(byte)).map_or(0, |at| at + 1);
    let near = near.get(..end).unwrap_or_default();
    let joins = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let begin = near.iter().rposition(|byte| !joins(byte)).map_or(0, |at| at + 1);
    let (mut name, before) = (rest(near, begin), begin.checked_sub(1).and_then(|at| near.get(at)));
    if before == Some(&b'%') {
        name = rest(name, 2);
    }
    let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
    // A short name is one only where nothing but a name can stand.
    let bounded = match before {
        None => name.len() <= MAX_NAME_BYTES,
        Some(b':') => value.is_none(),
        Some(before) => b"?&;#\"'</,{[%".contains(before),
    };
    let in_parameter = |value| {
        let often = OFTEN.iter().any(|word| is(word)) && is_random(value, MIN_RANDOM_BYTES);
        is("token") || often
    };
    has_part(name) || (bounded && (is_secret(name) || value.is_some_and(in_parameter)))
}

/// Whether an authority (RFC 3986 §3.2), which `text` begins with, has more in it before the host
/// than a user's name.
fn has_user(text: &[u8]) -> bool {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"\"'<>`".contains(byte);
    let text = text.get(..MAX_AUTHORITY_BYTES).unwrap_or(text);
    let word = text.split(ends).next().unwrap_or_default();
    let authority = word.split(|byte| b"/?#".contains(byte)).next().unwrap_or_default();
    if let Some(at) = authority.iter().rposition(|byte| *byte == b'@') {
        let user = authority.get(..at).unwrap_or_default();
        return user.contains(&b':') || user.len() >= MIN_HEAD_BYTES;
    }
    // Where what should be a port is none, a password had a slash in it.
    let Some(colon) = authority.iter().rposition(|byte| *byte == b':') else { return false };
    let port = rest(authority, colon + 1);
    let is_port = port.ends_with(b"]") || port.iter().all(u8::is_ascii_digit);
    !is_port && rest(word, authority.len()).contains(&b'@')
}

/// [`has_user`], where the URL is a parameter of another.
fn has_coded_user(text: &[u8]) -> bool {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"\"'<>&/".contains(byte);
    let text = text.get(..MAX_AUTHORITY_BYTES).unwrap_or(text);
    let word = text.split(ends).next().unwrap_or_default();
    let find = |sign| word.windows(3).position(|found| begins(found, sign));
    let host = find("%2f").unwrap_or(word.len());
    find("%40").is_some_and(|at| {
        at < host && (at >= MIN_HEAD_BYTES || find("%3a").is_some_and(|colon| colon < at))
    })
}
