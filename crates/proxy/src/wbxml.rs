//! XML for origins where clients have WBXML (WAP-192), and WBXML for clients that take no XML.
//!
//! Nothing is translated that forbids changes (`no-transform`), is coded, or has a digest or a
//! signature beside it.

use codec::wbxml::{Settings, TokenTable, decode, encode, number_of};
use codec::{Error, Limits};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::envelope::Soap;
use crate::fields;

/// Longest document in XML.
pub(crate) const MAX_XML_BYTES: usize = 256 << 10;
/// The media type of WBXML of any sort.
const WBXML: &str = "application/vnd.wap.wbxml";
/// The public identifier of documents whose type has none (WAP-192 §7.2).
const NO_TABLE: u32 = 1;
/// What origins are asked for in place of WBXML.
const XML_ACCEPTED: &str = "text/xml, application/soap+xml, application/xml";
/// Fields that hold for the bytes of a body as it is (RFC 9530, RFC 9421).
const BOUND_TO_CONTENT: [&str; 5] =
    ["content-digest", "repr-digest", "digest", "content-md5", "signature"];
const LIMITS: Limits = Limits {
    output_bytes: MAX_XML_BYTES as u64,
    depth: 256,
    table_bytes: 2 << 20,
    message_bytes: 1 << 20,
};

/// What a request says of WBXML.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Its body is WBXML, to be sent on as XML.
    pub(crate) body: bool,
    /// An answer in XML is to go in WBXML.
    pub(crate) answer: bool,
}

impl Wanted {
    /// By the fields of a request.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        if !may_change(headers) {
            return Self::default();
        }
        let has_wbxml = media(headers).is_some_and(|media| media == WBXML);
        let (mut wbxml, mut xml, mut any) = (false, false, false);
        for range in fields::tokens(headers, &header::ACCEPT) {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            if parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000")) {
                continue;
            }
            wbxml |= name == WBXML;
            xml |= is_xml(name);
            any |= matches!(name, "*/*" | "text/*" | "application/*");
        }
        // Who sends WBXML reads it; who takes anything takes XML.
        let answer = !xml && (has_wbxml || (wbxml && !any));
        Self { body: has_wbxml, answer }
    }

    /// Says in a request's fields what the origin gets and what it is asked for.
    pub(crate) fn put(self, headers: &mut HeaderMap, document: Option<&[u8]>) {
        if let Some(document) = document {
            headers.insert(header::CONTENT_TYPE, media_of(document));
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(document.len()));
        }
        if self.answer {
            let mut accepted = XML_ACCEPTED.to_owned();
            for range in fields::tokens(headers, &header::ACCEPT) {
                accepted.push_str(", ");
                accepted.push_str(&range);
            }
            if let Ok(accepted) = HeaderValue::try_from(accepted) {
                headers.insert(header::ACCEPT, accepted);
            }
        }
    }

    /// Whether an answer with these fields is to be translated.
    pub(crate) fn means(self, answer: &HeaderMap) -> bool {
        self.answer && may_change(answer) && media(answer).is_some_and(|media| is_xml(&media))
    }
}

/// Says in an answer's fields that it was translated.
pub(crate) fn mark(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(WBXML));
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::ACCEPT_RANGES);
    headers.append(header::VARY, HeaderValue::from_static("accept"));
    // RFC 9110 §8.8.1: the tag of other bytes that say the same is a weak one.
    if let Some(tag) = headers.get(header::ETAG)
        && !tag.as_bytes().starts_with(b"W/")
        && let Ok(weak) = HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat())
    {
        headers.insert(header::ETAG, weak);
    }
}

/// A body in WBXML as XML, with tables that only this side and its clients have besides.
pub(crate) fn to_xml(body: &[u8], own: &[TokenTable]) -> Result<Vec<u8>, Error> {
    let number = number_of(body);
    let table = own.iter().find(|table| Some(table.number) == number);
    decode(body, &Settings { table, ..Settings::default() }, &LIMITS)
}

/// A body in XML as WBXML.
pub(crate) fn from_xml(body: &[u8]) -> Result<Vec<u8>, Error> {
    encode(body, &Settings::default(), &LIMITS)
}

/// An answer in XML as WBXML for a client whose request had this number: who knows a table has it
/// in that, and who named none has literals, which any reader knows. Without a number the document
/// says which table.
pub(crate) fn answer_from_xml(
    body: &[u8],
    asked: Option<u32>,
    own: &[TokenTable],
) -> Result<Vec<u8>, Error> {
    let literals = TokenTable::literals();
    let table = match asked {
        Some(NO_TABLE) => Some(&literals),
        asked => own.iter().find(|table| Some(table.number) == asked),
    };
    encode(body, &Settings { table, ..Settings::default() }, &LIMITS)
}

/// Whether a body with these fields is XML that may go as WBXML.
pub(crate) fn is_changeable_xml(headers: &HeaderMap) -> bool {
    may_change(headers) && media(headers).is_some_and(|media| is_xml(&media))
}

/// Whether a body with these fields is WBXML of any sort, and may be translated.
pub(crate) fn is_wbxml(headers: &HeaderMap) -> bool {
    may_change(headers) && media(headers).is_some_and(|media| media == WBXML)
}

/// Says in a request's fields that its body is WBXML, if it is, and that the answer may be: a
/// gateway that translates asks its origin for XML then ([`Wanted`]). Types of XML that it would
/// not ask for again stay as they are, and so does what takes anything, unless the body is WBXML.
pub(crate) fn ask_for(headers: &mut HeaderMap, is_wbxml: bool) {
    if is_wbxml {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(WBXML));
        headers.remove(header::CONTENT_LENGTH);
    }
    // Who names nothing takes anything, and who sends WBXML reads it.
    if !headers.contains_key(header::ACCEPT) {
        return;
    }
    let asked_again: Vec<_> = XML_ACCEPTED.split(", ").collect();
    let (mut others, mut had_xml, mut has_any) = (vec![WBXML.to_owned()], false, false);
    for range in fields::tokens(headers, &header::ACCEPT) {
        let name = range.split(';').next().unwrap_or_default().trim();
        has_any |= matches!(name, "*/*" | "text/*" | "application/*");
        match (is_xml(name), asked_again.contains(&name)) {
            (true, true) => had_xml = true,
            (true, false) => return,
            (false, _) => others.push(range),
        }
    }
    if !is_wbxml && (!had_xml || has_any) {
        return;
    }
    if let Ok(accepted) = HeaderValue::try_from(others.join(", ")) {
        headers.insert(header::ACCEPT, accepted);
    }
}

/// Says in an answer's fields that its body, which was WBXML, is this document.
pub(crate) fn mark_xml(headers: &mut HeaderMap, document: &[u8]) {
    headers.insert(header::CONTENT_TYPE, media_of(document));
}

/// The media type of a document.
fn media_of(document: &[u8]) -> HeaderValue {
    match Soap::of(document) {
        Some(Soap::V1_2) => HeaderValue::from_static("application/soap+xml; charset=utf-8"),
        _ => HeaderValue::from_static("text/xml; charset=utf-8"),
    }
}

fn may_change(headers: &HeaderMap) -> bool {
    let forbids = fields::tokens(headers, &header::CACHE_CONTROL).any(|one| one == "no-transform");
    let bound = BOUND_TO_CONTENT.map(HeaderName::from_static);
    !forbids
        && !headers.contains_key(header::CONTENT_ENCODING)
        && !headers.contains_key(header::CONTENT_RANGE)
        && !bound.iter().any(|name| headers.contains_key(name))
}

/// A media type without its parameters, in lower case.
fn media(headers: &HeaderMap) -> Option<String> {
    let media = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

fn is_xml(media: &str) -> bool {
    matches!(media, "text/xml" | "application/xml") || media.ends_with("+xml")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn who_reads_only_wbxml_gets_it() {
        let wbxml = ("content-type", "Application/vnd.wap.wbxml");
        for (lines, body, answer) in [
            (&[][..], false, false),
            (&[("accept", WBXML)], false, true),
            (&[("accept", "text/plain, application/vnd.wap.wbxml;q=0.5")], false, true),
            (&[("accept", "application/vnd.wap.wbxml, text/xml")], false, false),
            (&[("accept", "application/vnd.wap.wbxml, text/xml;q=0")], false, true),
            (&[("accept", "application/vnd.wap.wbxml, */*")], false, false),
            (&[("accept", "application/vnd.wap.wbxml;q=0")], false, false),
            (&[wbxml], true, true),
            (&[wbxml, ("accept", "*/*")], true, true),
            (&[wbxml, ("accept", "text/xml")], true, false),
            (&[wbxml, ("cache-control", "no-transform")], false, false),
            (&[wbxml, ("content-encoding", "deflate")], false, false),
            (&[wbxml, ("content-md5", "AAAA")], false, false),
            (&[("content-type", "application/vnd.syncml+wbxml")], false, false),
        ] {
            assert_eq!(Wanted::of(&headers(lines)), Wanted { body, answer }, "{lines:?}");
        }
    }

    #[test]
    fn an_edge_asks_so_that_a_gateway_translates() {
        let text = ("content-type", "text/xml");
        for (lines, is_wbxml, answer, accept) in [
            (&[text, ("accept", "*/*")][..], true, true, "application/vnd.wap.wbxml, */*"),
            (&[("accept", "text/xml")], false, true, WBXML),
            (&[("accept", "text/xml, */*")], false, false, "text/xml, */*"),
            (&[("accept", "application/rss+xml")], true, false, "application/rss+xml"),
            (&[("accept", "text/plain")], false, false, "text/plain"),
        ] {
            let mut asked = headers(lines);
            ask_for(&mut asked, is_wbxml);
            assert_eq!(asked[header::ACCEPT], accept, "{lines:?}");
            assert_eq!(Wanted::of(&asked), Wanted { body: is_wbxml, answer }, "{lines:?}");
        }
        assert!(is_changeable_xml(&headers(&[text])));
        assert!(!is_changeable_xml(&headers(&[text, ("content-encoding", "gzip")])));
        let mut answer = headers(&[("content-type", WBXML)]);
        assert!(is_wbxml(&answer));
        mark_xml(&mut answer, b"<a/>");
        assert_eq!(answer[header::CONTENT_TYPE], "text/xml; charset=utf-8");
    }

    #[test]
    fn an_answer_has_the_table_of_its_request() {
        let document = b"<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'>\
                         <e:Body><a>text</a></e:Body></e:Envelope>";
        let text = "name a\nnumber 0x100001\ntags 0 http://schemas.xmlsoap.org/soap/envelope/\n\
                    05 Envelope\n06 Body\ntags 1 -\n05 a\n";
        let own = [TokenTable::parse(text).unwrap()];
        let soap = number_of(&from_xml(document).unwrap());
        let mut lens = Vec::new();
        for (asked, number) in
            [(Some(1), 1), (soap, 0x4c57), (Some(0x100001), 0x100001), (None, 0x4c57)]
        {
            let wbxml = answer_from_xml(document, asked, &own).unwrap();
            assert_eq!(number_of(&wbxml), Some(number));
            let xml = String::from_utf8(to_xml(&wbxml, &own).unwrap()).unwrap();
            assert!(xml.contains("text</a>"), "{xml}");
            lens.push(wbxml.len());
        }
        // The service's own lines have no token for the declaration of SOAP's namespace.
        assert!(lens[0] > lens[2] && lens[2] > lens[1] && lens[1] == lens[3], "{lens:?}");
        // Who has not the table, cannot read it.
        let wbxml = answer_from_xml(document, Some(0x100001), &own).unwrap();
        assert!(to_xml(&wbxml, &[]).is_err());
    }

    #[test]
    fn a_document_goes_there_and_back_and_its_head_says_so() {
        let document = b"<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'>\
                         <e:Body><a>text</a></e:Body></e:Envelope>";
        let wbxml = from_xml(document).unwrap();
        assert!(wbxml.len() < document.len());
        let xml = to_xml(&wbxml, &[]).unwrap();
        assert!(String::from_utf8(xml.clone()).unwrap().contains("text</a>"));
        assert!(to_xml(b"no WBXML", &[]).is_err() && from_xml(b"<a>").is_err());
        let mut asked = headers(&[("content-type", WBXML), ("accept", WBXML)]);
        let wanted = Wanted::of(&asked);
        wanted.put(&mut asked, Some(&xml));
        assert_eq!(asked[header::CONTENT_TYPE], "text/xml; charset=utf-8");
        assert_eq!(asked[header::ACCEPT], format!("{XML_ACCEPTED}, {WBXML}"));
        wanted.put(
            &mut asked,
            Some(
                &[b"<e xmlns='".as_slice(), b"http://www.w3.org/2003/05/soap-envelope", b"'/>"]
                    .concat(),
            ),
        );
        assert_eq!(asked[header::CONTENT_TYPE], "application/soap+xml; charset=utf-8");
        let mut answer = headers(&[("content-type", "application/soap+xml"), ("etag", "\"a\"")]);
        assert!(wanted.means(&answer));
        mark(&mut answer);
        assert_eq!(
            (&answer[header::CONTENT_TYPE], &answer[header::ETAG]),
            (&HeaderValue::from_static(WBXML), &HeaderValue::from_static("W/\"a\""))
        );
        assert!(!wanted.means(&answer));
    }
}
