//! XML as far as the services need it: writing text, and strict readers for hostile input, one of
//! which allocates nothing.

mod reader;
mod scanner;
#[cfg(test)]
mod tests;

pub use reader::{Attribute, Node, Reader};
pub use scanner::{Malformed, Piece, Scanner, Tag, Written};

/// Appends `text` with the five characters that markup uses replaced (XML 1.0 §2.4). Characters
/// that XML cannot hold (§2.2) become U+FFFD.
pub fn escape(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            other if reader::is_allowed(other) => out.push(other),
            _ => out.push(char::REPLACEMENT_CHARACTER),
        }
    }
}
