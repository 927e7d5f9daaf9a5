//! What is secret in a message, and whom it names as its sender.
//!
//! Whatever becomes part of a dictionary, or a base that later messages are told by, shows through
//! the length of those that have it in common. So before a message is kept, what proves an identity
//! is cut out of it: headers of WS-Security and what they hold, assertions, passwords, tokens,
//! cookies. Names are compared without their prefix, namespace and case, and what cannot be read is
//! not kept at all: rather too much is cut than too little.

use std::ops::Range;

use crate::xml::{Event, NameId, Reader, Start};
use crate::{Error, Limits};

const NAME: &str = "secrets";
/// Elements that are cut with all that they hold: of WS-Security 1.1.1, XML Signature and
/// Encryption, WS-Trust, SAML, and names that say so themselves.
const ELEMENTS: [&str; 19] = [
    "security",
    "usernametoken",
    "binarysecuritytoken",
    "securitytokenreference",
    "securitycontexttoken",
    "requestedsecuritytoken",
    "binarysecret",
    "signature",
    "signaturevalue",
    "encrypteddata",
    "encryptedkey",
    "ciphervalue",
    "assertion",
    "encryptedassertion",
    "nonce",
    "setcookie",
    "set-cookie",
    "proxyauthorization",
    "proxy-authorization",
];
/// Parts of names, of elements, attributes and members, that say so themselves, without what words
/// are joined with. A token alone need be none: cameras call each of their profiles so.
const PARTS: [&str; 20] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "credential",
    "cookie",
    "authorization",
    "apikey",
    "privatekey",
    "accesstoken",
    "authtoken",
    "bearertoken",
    "idtoken",
    "refreshtoken",
    "securitytoken",
    "sessiontoken",
    "sessionid",
    "csrf",
    "xsrf",
];
/// Names that say so as a whole.
const WHOLE: [&str; 7] = ["pass", "pwd", "pin", "otp", "jwt", "bearer", "sid"];
/// The longest text that may be the name of what stands beside it.
const MOST_NAME_BYTES: usize = 48;
/// Text with any of these may be a message inside of the message.
const MARKS: [&str; 6] =
    ["usernametoken", "binarysecuritytoken", "authorization:", "cookie:", "password", "bearer "];
/// Elements that tell who somebody is.
const WHO: [&str; 5] =
    ["username", "binarysecuritytoken", "nameid", "nameidentifier", "subjectname"];

/// Whether content of this type can be read for its secrets.
#[must_use]
pub fn is_readable(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let kinds = ["/xml", "+xml", "/json", "+json"];
    kinds.iter().any(|kind| media.ends_with(kind))
}

/// The message without what is secret in it. The same message gives the same on both sides; what
/// comes of it need be no document.
///
/// # Errors
/// What is neither XML in UTF-8 nor JSON.
pub fn cut(message: &[u8]) -> Result<Vec<u8>, Error> {
    let secrets = find(message)?.cuts;
    let mut kept = Vec::with_capacity(message.len());
    let mut from = 0;
    for Range { start, end } in secrets {
        kept.extend_from_slice(message.get(from..start).unwrap_or_default());
        from = end;
    }
    kept.extend_from_slice(message.get(from..).unwrap_or_default());
    Ok(kept)
}

/// Whom the message names as its sender, in WS-Security or SAML, and what else in it proves that,
/// such as a password; empty where nothing does. It is a claim: nothing is verified.
///
/// # Errors
/// What is neither XML in UTF-8 nor JSON; a message that proves an identity without naming it.
pub fn claims(message: &[u8]) -> Result<Vec<u8>, Error> {
    let Found { who, guarded, .. } = find(message)?;
    if guarded && who.is_empty() {
        return Err(unreadable("it does not name whose it is"));
    }
    Ok(who)
}

/// What a message has.
#[derive(Debug, Default)]
struct Found {
    /// In order, apart from each other.
    cuts: Vec<Range<usize>>,
    who: Vec<u8>,
    guarded: bool,
}

impl Found {
    /// What is in the range is secret; whether it tells one sender from another.
    fn cut(&mut self, message: &[u8], range: Range<usize>, tells: bool) {
        if tells {
            self.who.extend_from_slice(message.get(range.clone()).unwrap_or_default());
            self.who.push(0);
        }
        self.cuts.push(range);
    }
}

fn unreadable(what: &str) -> Error {
    Error::Corrupt { codec: NAME, what: what.to_owned() }
}

fn first(message: &[u8]) -> Option<u8> {
    message.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

fn find(message: &[u8]) -> Result<Found, Error> {
    match first(message) {
        Some(b'<') => of_xml(message),
        Some(b'{' | b'[') => of_json(message),
        _ => Err(unreadable("neither XML nor JSON")),
    }
}

/// Whether a name says that what it names is secret.
#[must_use]
pub fn says_so(name: &str) -> bool {
    let name = joined(name);
    WHOLE.contains(&name.as_str()) || has_part(&name)
}

/// A name in small letters, without what its words are joined with.
fn joined(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn has_part(joined: &str) -> bool {
    has_any(joined, &PARTS, const { firsts(&PARTS) })
}

/// The letters that words begin with, one bit each.
const fn firsts(words: &[&str]) -> u32 {
    let (mut letters, mut at) = (0_u32, 0);
    while at < words.len() {
        letters |= 1_u32 << (words[at].as_bytes()[0] - b'a');
        at += 1;
    }
    letters
}

/// Whether a text has any of the words in it, which are in small letters, in whatever case; each
/// begins with one of `letters`.
fn has_any(text: &str, words: &[&str], letters: u32) -> bool {
    let text = text.as_bytes();
    text.iter().enumerate().any(|(at, byte)| {
        let letter = byte.to_ascii_lowercase().wrapping_sub(b'a');
        let begins = |word: &&str| {
            let found = text.get(at..at + word.len());
            found.is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes()))
        };
        letter < 26 && (letters >> letter) & 1 == 1 && words.iter().any(begins)
    })
}

/// What an element or an attribute says by its name.
#[derive(Clone, Copy)]
struct Says {
    /// An element that is cut, which need not tell one sender from another.
    listed: bool,
    secret: bool,
    who: bool,
}

/// What is known of names; most come again and again.
#[derive(Default)]
struct Known(Vec<Option<Says>>);

impl Known {
    fn says(&mut self, reader: &Reader<'_>, name: NameId) -> Says {
        let index = name.index();
        if index >= self.0.len() {
            self.0.resize(index + 1, None);
        }
        let of = |local: &str| {
            let small = local.to_ascii_lowercase();
            let (listed, who) = (ELEMENTS.contains(&small.as_str()), WHO.contains(&small.as_str()));
            Says { listed, secret: says_so(local), who }
        };
        match self.0.get_mut(index) {
            Some(known) => *known.get_or_insert_with(|| of(reader.names().name(name).local)),
            None => of(reader.names().name(name).local),
        }
    }

    fn has_secret(&mut self, reader: &Reader<'_>, start: &Start<'_>) -> bool {
        reader.attributes().iter().any(|attribute| {
            self.says(reader, attribute.name).secret || is_marked(attribute.raw(start))
        })
    }
}

/// Refuses a text that may be the name of what stands beside it: that may be anywhere.
fn check_text(text: &str) -> Result<(), Error> {
    let text = text.trim();
    let is_name = text.len() <= MOST_NAME_BYTES && !text.contains(char::is_whitespace);
    match is_name && has_part(&joined(text)) {
        true => Err(unreadable("a text that names a secret")),
        false => Ok(()),
    }
}

fn of_xml(message: &[u8]) -> Result<Found, Error> {
    let mut reader = Reader::new(message, &Limits::default())?;
    let (mut found, mut known) = (Found::default(), Known::default());
    // Where the secret begins that the reader is in, how many elements are open in it, and whether
    // it says by itself who somebody is.
    let mut secret: Option<(usize, usize, bool)> = None;
    let mut telling = 0_usize;
    loop {
        let begin = reader.offset();
        match reader.next()? {
            Event::Start(start) => {
                let says = known.says(&reader, start.name);
                found.guarded |= says.listed;
                if telling > 0 || says.who {
                    telling += 1;
                }
                match &mut secret {
                    Some((_, depth, _)) => *depth += 1,
                    None if says.listed || says.secret || known.has_secret(&reader, &start) => {
                        secret = Some((begin, 1, !says.listed));
                    }
                    None => {}
                }
            }
            Event::End { .. } => {
                telling = telling.saturating_sub(1);
                if let Some((begin, depth, tells)) = &mut secret {
                    *depth -= 1;
                    if *depth == 0 {
                        found.cut(message, *begin..reader.offset(), *tells);
                        secret = None;
                    }
                }
            }
            Event::Text(text) => {
                if telling > 0 {
                    found.who.extend_from_slice(text.trim().as_bytes());
                    found.who.push(0);
                }
                if secret.is_none() {
                    check_text(&text)?;
                    if is_marked(&text) {
                        found.cut(message, begin..reader.offset(), true);
                    }
                }
            }
            Event::Comment(text) | Event::Pi { data: text, .. }
                if secret.is_none() && is_marked(&text) =>
            {
                found.cut(message, begin..reader.offset(), false);
            }
            Event::Doctype(doctype) if !doctype.subset.is_empty() => {
                return Err(unreadable("a document type with declarations"));
            }
            Event::Eof => return Ok(found),
            _ => {}
        }
    }
}

fn is_marked(text: &str) -> bool {
    has_any(text, &MARKS, const { firsts(&MARKS) })
}

/// Values of members whose name says so are cut. Of the grammar no more is read than strings and
/// brackets.
fn of_json(message: &[u8]) -> Result<Found, Error> {
    let mut found = Found::default();
    let mut at = 0;
    while let Some(&byte) = message.get(at) {
        if byte != b'"' {
            at += 1;
            continue;
        }
        let end = string_end(message, at)?;
        let text = message.get(at + 1..end - 1).unwrap_or_default();
        let colon = skip_space(message, end);
        if message.get(colon) == Some(&b':') {
            at = colon + 1;
            // A name with an escape may be any.
            let name = String::from_utf8_lossy(text).to_ascii_lowercase();
            if name.contains('\\') || name == "token" || says_so(&name) {
                let value = skip_space(message, at);
                at = value_end(message, value)?;
                found.cut(message, value..at, true);
            }
        } else {
            let text = String::from_utf8_lossy(text);
            check_text(&text)?;
            if is_marked(&text) {
                found.cut(message, at..end, true);
            }
            at = end;
        }
    }
    Ok(found)
}

fn skip_space(message: &[u8], at: usize) -> usize {
    let rest = message.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Behind the string that begins at `at`.
fn string_end(message: &[u8], at: usize) -> Result<usize, Error> {
    let mut next = at + 1;
    while let Some(&byte) = message.get(next) {
        next += match byte {
            b'"' => return Ok(next + 1),
            b'\\' => 2,
            _ => 1,
        };
    }
    Err(unreadable("a string without an end"))
}

/// Behind the value that begins at `at`.
fn value_end(message: &[u8], mut at: usize) -> Result<usize, Error> {
    let mut open = 0_usize;
    while let Some(&byte) = message.get(at) {
        match byte {
            b'"' => {
                at = string_end(message, at)?;
                if open == 0 {
                    return Ok(at);
                }
                continue;
            }
            b'{' | b'[' => open += 1,
            b'}' | b']' if open <= 1 => return Ok(at + open),
            b'}' | b']' => open -= 1,
            b',' if open == 0 => return Ok(at),
            _ => {}
        }
        at += 1;
    }
    Err(unreadable("a value without an end"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SOAP_11: &str = "http://schemas.xmlsoap.org/soap/envelope/";
    const SOAP_12: &str = "http://www.w3.org/2003/05/soap-envelope";
    const WSSE: &str = "http://docs.oasis-open.org/wss/2004/01/\
                        oasis-200401-wss-wssecurity-secext-1.0.xsd";

    fn soap(envelope: &str, prefix: &str, token: &str) -> String {
        format!(
            "<?xml version='1.0'?><s:Envelope xmlns:s='{envelope}'><s:Header>\
             <{prefix}Security xmlns{colon}='{WSSE}' s:mustUnderstand='1'>{token}\
             </{prefix}Security><id>a-17</id></s:Header><s:Body><GetStatus/></s:Body>\
             </s:Envelope>",
            colon = if prefix.is_empty() {
                String::new()
            } else {
                format!(":{}", prefix.trim_end_matches(':'))
            },
        )
    }

    /// Tokens of each kind; what is secret has `HUSH` in it, and most name `alice`.
    fn tokens(prefix: &str) -> Vec<(String, bool)> {
        let username = format!(
            "<{prefix}UsernameToken><{prefix}Username>alice</{prefix}Username>\
             <{prefix}Password Type='x#PasswordText'>HUSH&amp;1</{prefix}Password>\
             <{prefix}Nonce>HUSH2</{prefix}Nonce></{prefix}UsernameToken>"
        );
        let binary =
            format!("<{prefix}BinarySecurityToken>alice HUSH</{prefix}BinarySecurityToken>");
        let signature = "<d:Signature xmlns:d='http://www.w3.org/2000/09/xmldsig#'><d:SignedInfo/>\
                         <d:SignatureValue><![CDATA[HUSH]]></d:SignatureValue></d:Signature>";
        let saml = "<a:Assertion xmlns:a='urn:oasis:names:tc:SAML:2.0:assertion' ID='HUSH'>\
                    <a:Subject><a:NameID>alice</a:NameID></a:Subject></a:Assertion>";
        vec![
            (username, true),
            (binary, true),
            (signature.to_owned(), false),
            (saml.to_owned(), true),
        ]
    }

    #[test]
    fn headers_of_ws_security_are_cut_in_soap_11_and_12_with_any_prefix() {
        for envelope in [SOAP_11, SOAP_12] {
            for prefix in ["wsse:", "o:", "Security:", ""] {
                for (token, names) in tokens(prefix) {
                    let message = soap(envelope, prefix, &token);
                    assert!(message.contains("HUSH"));
                    let kept = String::from_utf8(cut(message.as_bytes()).unwrap()).unwrap();
                    assert!(!kept.contains("HUSH") && !kept.contains("alice"), "{kept}");
                    assert!(kept.contains("<id>a-17</id>") && kept.contains("GetStatus"), "{kept}");
                    let whose = claims(message.as_bytes());
                    assert_eq!(whose.is_ok(), names, "{message}");
                    assert!(!names || String::from_utf8(whose.unwrap()).unwrap().contains("alice"));
                }
            }
        }
    }

    #[test]
    fn tokens_outside_of_a_header_are_cut_as_well() {
        for (message, kept) in [
            ("<a><Signature>HUSH</Signature><b/></a>", "<a><b/></a>"),
            ("<a><x:password xmlns:x='u'>HUSH</x:password>1</a>", "<a>1</a>"),
            ("<a><login user='u' passWord='HUSH'/>1</a>", "<a>1</a>"),
            ("<a>Authorization: Basic HUSH</a>", "<a></a>"),
            ("<a><b>&lt;UsernameToken>HUSH</b></a>", "<a><b></b></a>"),
            ("<a><![CDATA[<wsse:UsernameToken>HUSH]]></a>", "<a></a>"),
            ("<a><!-- Cookie: HUSH --><b/></a>", "<a><b/></a>"),
            ("<Assertion>HUSH</Assertion>", ""),
            (
                "{\"user\": 1, \"password\": \"HU\\\"SH\", \"b\": 2}",
                "{\"user\": 1, \"password\": , \"b\": 2}",
            ),
            ("[{\"access_token\":{\"x\":[\"HUSH}\"]}}, 3]", "[{\"access_token\":}, 3]"),
            ("{\"apiKey\": 17}", "{\"apiKey\": }"),
            ("{\"token\": null}", "{\"token\": }"),
            ("<a token='Profile_1'/>", "<a token='Profile_1'/>"),
            ("{\"p\\u0061ssword\": \"HUSH\"}", "{\"p\\u0061ssword\": }"),
            ("{\"head\": \"Bearer HUSH\", \"a\": [1]}", "{\"head\": , \"a\": [1]}"),
            ("{\"refreshToken\": \"HUSH\", \"a\": 1}", "{\"refreshToken\": , \"a\": 1}"),
            ("{\"x-csrf-token\": \"HUSH\", \"pwd\": 1}", "{\"x-csrf-token\": , \"pwd\": }"),
            ("{\"result\": \"pass\"}", "{\"result\": \"pass\"}"),
            ("<a><session_id>HUSH</session_id><Pin>HUSH</Pin>1</a>", "<a>1</a>"),
            ("<a><?p password HUSH?>1</a>", "<a>1</a>"),
        ] {
            let cut = String::from_utf8(cut(message.as_bytes()).unwrap()).unwrap();
            assert_eq!(cut, kept, "{message}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_kept() {
        let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xe9</a>";
        let utf16 = b"<\0a\0/\0>\0";
        for message in [
            &b"user=a&password=b"[..],
            b"",
            b"<a>",
            b"<a></b>",
            b"{\"a",
            b"{\"password\": ",
            latin,
            utf16,
            b"--boundary\r\n<a/>",
            // What is secret stands beside its name.
            b"<member><name>password</name><value>HUSH</value></member>",
            b"[{\"name\": \"x-api-key\", \"value\": \"HUSH\"}]",
            b"<!DOCTYPE a [<!ENTITY e 'HUSH'>]><a/>",
        ] {
            assert!(cut(message).is_err(), "{}", String::from_utf8_lossy(message));
        }
        assert!(claims(utf16).is_err());
        assert!(claims(b"user=a").is_err());
        assert_eq!(claims(b"<a/>").unwrap(), b"");
        for (media, readable) in [
            ("text/xml; charset=utf-8", true),
            ("application/soap+xml", true),
            ("Application/JSON", true),
            ("text/html", false),
            ("multipart/related", false),
            ("application/x-www-form-urlencoded", false),
            ("", false),
        ] {
            assert_eq!(is_readable(media), readable, "{media}");
        }
    }

    #[test]
    fn who_proves_another_identity_in_the_body_is_another() {
        let whose = |message: &str| claims(message.as_bytes()).unwrap();
        for form in [
            "{\"token\": \"WHO\", \"q\": 1}",
            "{\"a\": {\"apiKey\": \"WHO\"}}",
            "<a><password>WHO</password></a>",
            "<a><login secret='WHO'/></a>",
            "<a><SessionID>WHO</SessionID></a>",
        ] {
            let [alice, mallory] = ["alice", "mallory"].map(|who| whose(&form.replace("WHO", who)));
            assert!(alice != mallory && !alice.is_empty(), "{form}");
            assert_eq!(alice, whose(&form.replace("WHO", "alice")), "{form}");
        }
        // A camera's profile is nobody's.
        assert_eq!(whose("<a token='Profile_1'><ProfileToken>p</ProfileToken></a>"), b"");
    }

    proptest! {
        #[test]
        fn nothing_panics_and_nothing_is_added(junk: Vec<u8>, text in "[<>/a\"{}:,\\\\ =]{0,60}") {
            for message in [&junk[..], text.as_bytes()] {
                let _ = claims(message);
                if let Ok(kept) = cut(message) {
                    prop_assert!(kept.len() <= message.len());
                }
            }
        }
    }
}
