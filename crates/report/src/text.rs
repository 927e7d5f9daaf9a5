//! Text for the inside of elements and attributes.

/// `text` with the five characters that markup uses replaced (XML 1.0 §2.4). Characters that XML
/// cannot hold (§2.2) become U+FFFD.
pub fn escaped(text: &str) -> String {
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

/// Width of a terminal.
const COLUMNS: usize = 100;

/// Appends words in lines of at most 100 columns, the second and later ones indented; spaces
/// at the beginning stay.
pub(crate) fn wrap(note: &str, text: &mut String) {
    let indent = note.len() - note.trim_start_matches(' ').len();
    text.push_str(&note[..indent]);
    let mut column = indent;
    for word in note.split_whitespace() {
        let length = word.chars().count();
        if column > indent && column + 1 + length > COLUMNS {
            text.push_str("\n  ");
            column = 2;
        } else if column > indent {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::{escaped, wrap};

    #[test]
    fn lines_end_within_the_columns() {
        let mut text = String::new();
        wrap(&format!("  {}", "word ".repeat(60)), &mut text);
        assert!(text.starts_with("  word word") && text.lines().count() == 4, "{text}");
        assert!(text.lines().all(|line| line.starts_with("  ") && line.len() <= 100), "{text}");
    }

    #[test]
    fn markup_and_what_xml_cannot_hold_are_replaced() {
        assert_eq!(
            escaped("<a b=\"c'd\">&\0\t"),
            "&lt;a b=&quot;c&apos;d&quot;&gt;&amp;\u{fffd}\t"
        );
    }
}
