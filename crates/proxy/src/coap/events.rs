//! States of a resource of CoAP as server-sent events, and events as states: pure functions.
//!
//! An event's id is the number of its notification (RFC 7641 §4.4) and, behind a hyphen, its
//! entity tag in hexadecimal. What is no text is in base64, and the event's name says so. What a
//! server refuses is an event too, the last of its stream.

use ::http::HeaderName;
use proto::coap::{Content, format, option};
use proto::events::{Event, is_plain};

use super::tags::{of_digits, to_digits};

/// The id of the last event that a client has (WHATWG HTML §9.2.4).
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The name of one that says why there are no more.
pub(crate) const REFUSAL: &str = "coap-error";

/// The event that tells of a state.
pub(crate) fn of(content: &Content) -> Event {
    let mut id = content.uint(option::OBSERVE).map(|number| number.to_string()).unwrap_or_default();
    if let Some(etag) = content.first(option::ETAG) {
        id.push('-');
        id.push_str(to_digits(etag).trim_matches('"'));
    }
    let text = std::str::from_utf8(&content.payload).ok().filter(|text| is_plain(text));
    if !content.code.is_success() {
        let data = format!("{} {}", content.code, text.unwrap_or_default());
        return Event { id, name: REFUSAL.to_owned(), data: data.trim_end().to_owned() };
    }
    match text.filter(|_| is_text(content)) {
        Some(text) => Event { id, name: String::new(), data: text.to_owned() },
        None => Event::of_binary(id, &content.payload),
    }
}

/// Whether what has this format is text, as far as formats tell.
fn is_text(content: &Content) -> bool {
    let Some(number) = content.uint(option::CONTENT_FORMAT) else { return true };
    let known = u16::try_from(number).ok().and_then(format::media_type);
    known.is_some_and(|(media, coding)| {
        let is_named = ["json", "xml", "link-format"].iter().any(|part| media.contains(part));
        coding.is_none() && (media.starts_with("text/") || is_named)
    })
}

/// The entity tag that an event's id says.
pub(crate) fn etag_of(id: &str) -> Option<Vec<u8>> {
    let (_, digits) = id.rsplit_once('-')?;
    of_digits(&format!("\"{digits}\""))
}

#[cfg(test)]
mod tests {
    use proto::coap::Code;
    use proto::events::BINARY;

    use super::*;

    fn event(content: Content) -> (String, String, String) {
        let event = of(&content);
        (event.id, event.name, event.data)
    }

    fn shown(id: &str, name: &str, data: &str) -> (String, String, String) {
        (id.to_owned(), name.to_owned(), data.to_owned())
    }

    #[test]
    fn a_state_becomes_an_event() {
        let state = Content::new(Code::CONTENT).with_uint(option::OBSERVE, 12);
        assert_eq!(event(state.clone().with_payload("a\nb")), shown("12", "", "a\nb"));
        let tagged = state.clone().with(option::ETAG, &[0x0a, 0xff]);
        assert_eq!(event(tagged.with_payload("a")), shown("12-0aff", "", "a"));
        let json = state.clone().with_uint(option::CONTENT_FORMAT, format::JSON.into());
        assert_eq!(event(json.with_payload("{}")), shown("12", "", "{}"));
        let cbor = state.clone().with_uint(option::CONTENT_FORMAT, format::CBOR.into());
        assert_eq!(event(cbor.with_payload("a")), shown("12", BINARY, "YQ=="));
        // Neither of these would come out as it went in.
        assert_eq!(event(state.clone().with_payload("a\r\n")), shown("12", BINARY, "YQ0K"));
        assert_eq!(event(state.with_payload(vec![0xff])), shown("12", BINARY, "/w=="));
        let gone = Content::new(Code::NOT_FOUND).with_payload("no such thing");
        assert_eq!(event(gone), shown("", REFUSAL, "4.04 no such thing"));
        assert_eq!(event(Content::new(Code::NOT_FOUND)), shown("", REFUSAL, "4.04"));
    }

    #[test]
    fn an_id_says_the_tag() {
        assert_eq!(etag_of("12-0aff"), Some(vec![0x0a, 0xff]));
        for none in ["12", "", "12-", "12-x", "12-000102030405060708"] {
            assert_eq!(etag_of(none), None, "{none}");
        }
    }
}
