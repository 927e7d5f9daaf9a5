//! Text for the inside of elements and attributes.

/// `text` with the five characters that markup uses replaced (XML 1.0 §2.4). Characters that XML
/// cannot hold (§2.2) become U+FFFD.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\t' | '\n' | '\r' => out.push(character),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn markup_and_what_xml_cannot_hold_are_replaced() {
        assert_eq!(
            escaped("<a b=\"c'd\">&\0\t"),
            "&lt;a b=&quot;c&apos;d&quot;&gt;&amp;\u{fffd}\t"
        );
    }
}
