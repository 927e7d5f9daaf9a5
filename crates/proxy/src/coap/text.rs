//! What people write and read of CoAP: formats by name, options by name, links one by one.

use std::fmt::Write as _;

use proto::coap::{Content, format, option};

/// Prefixes that a name may leave out.
const KINDS: [&str; 4] = ["", "application/", "text/", "image/"];

/// The content format with this number, media type or name, such as `50`, `application/json`,
/// `json` or `text`.
#[must_use]
pub fn format_of(name: &str) -> Option<u16> {
    if let Ok(number) = name.parse() {
        return Some(number);
    }
    if name.eq_ignore_ascii_case("text") {
        return Some(0);
    }
    KINDS.iter().find_map(|kind| format::of(&format!("{kind}{name}"), None))
}

/// The bytes that hexadecimal digits say.
#[must_use]
pub fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let all: Option<Vec<u8>> = digits
        .as_bytes()
        .chunks(2)
        .map(|pair| {
            let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
            u8::try_from(digit(0)? << 4 | digit(1)?).ok()
        })
        .collect();
    all
}

/// The options of a message: the name of each, or its number, and its value.
pub(super) fn options(content: &Content) -> Vec<(String, String)> {
    content.options().map(|(number, value)| shown(number, value)).collect()
}

fn shown(number: u16, value: &[u8]) -> (String, String) {
    let Some(row) = option::definition(number) else {
        return (format!("Option {number}"), hex(value));
    };
    let uint = || option::uint(value).unwrap_or(u32::MAX);
    let text = match row.format {
        option::Format::Empty => String::new(),
        option::Format::Opaque => hex(value),
        option::Format::String => printable(&String::from_utf8_lossy(value)),
        option::Format::Uint if matches!(number, option::CONTENT_FORMAT | option::ACCEPT) => {
            let known = u16::try_from(uint()).ok().and_then(format::media_type);
            known.map_or_else(|| uint().to_string(), |(media, _)| media.to_owned())
        }
        option::Format::Uint => uint().to_string(),
    };
    (row.name.to_owned(), text)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The same without what would do something to a terminal.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The links of a document in link format, one by one (RFC 6690 §2).
#[must_use]
pub fn links(document: &str) -> Vec<&str> {
    let (mut is_quoted, mut is_escaped, mut is_target) = (false, false, false);
    let is_between = move |c: char| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match c {
            '\\' if is_quoted && !was_escaped => is_escaped = true,
            '"' if !is_target && !was_escaped => is_quoted = !is_quoted,
            '<' if !is_quoted => is_target = true,
            '>' if !is_quoted => is_target = false,
            _ => {}
        }
        c == ',' && !is_quoted && !is_target
    };
    document.split(is_between).map(str::trim).filter(|link| !link.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use proto::coap::Code;

    use super::*;

    #[test]
    fn a_format_has_names() {
        for (name, format) in [
            ("50", Some(50)),
            ("json", Some(50)),
            ("application/json", Some(50)),
            ("text", Some(0)),
            ("plain", Some(0)),
            ("png", Some(23)),
            ("link-format", Some(40)),
            ("65536", None),
            ("nothing", None),
        ] {
            assert_eq!(format_of(name), format, "{name}");
        }
        assert_eq!(bytes_of("0aFF").unwrap(), [0x0a, 0xff]);
        assert_eq!((bytes_of("0"), bytes_of("0g"), bytes_of("").unwrap().len()), (None, None, 0));
    }

    #[test]
    fn options_are_shown_as_what_they_are() {
        let content = Content::new(Code::CONTENT)
            .with(option::ETAG, &[1, 0xab])
            .with(option::URI_PATH, b"a\x1bb")
            .with_uint(option::CONTENT_FORMAT, 50)
            .with_uint(option::MAX_AGE, 0)
            .with(65_000, b"x");
        let shown: Vec<_> =
            options(&content).into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let wanted = [
            "ETag: 01ab",
            "Uri-Path: a?b",
            "Content-Format: application/json",
            "Max-Age: 0",
            "Option 65000: 78",
        ];
        assert_eq!(shown, wanted);
    }

    #[test]
    fn links_are_kept_apart() {
        let document = "</a>;rt=\"x,y\",</b,c>;title=\"a \\\" ,b\" , </d>,";
        let wanted = ["</a>;rt=\"x,y\"", "</b,c>;title=\"a \\\" ,b\"", "</d>"];
        assert_eq!(links(document), wanted);
    }
}
