//! Text in room that is there already: lines and answers without an allocator.

use std::fmt::{self, Write};

/// At most `N` bytes of text; what goes beyond is left out.
#[derive(Clone, Copy)]
pub struct Line<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Default for Line<N> {
    fn default() -> Self {
        Self { bytes: [0; N], length: 0 }
    }
}

impl<const N: usize> Line<N> {
    /// A line of formatted text.
    #[must_use]
    pub fn of(text: fmt::Arguments<'_>) -> Self {
        let mut line = Self::default();
        // It never fails: what is too long is cut.
        let _ = line.write_fmt(text);
        line
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// The text's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Forgets the text.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// Appends a text of others in which each character that XML or a terminal could mistake is
    /// replaced.
    pub fn push_escaped(&mut self, text: &str) {
        for one in text.chars() {
            let _ = match one {
                '&' => self.write_str("&amp;"),
                '<' => self.write_str("&lt;"),
                '>' => self.write_str("&gt;"),
                '"' => self.write_str("&quot;"),
                other if other.is_control() => self.write_char(' '),
                '\u{fffe}' | '\u{ffff}' => self.write_char(' '),
                other => self.write_char(other),
            };
        }
    }
}

impl<const N: usize> Write for Line<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut fits = text.len().min(N - self.length);
        while !text.is_char_boundary(fits) {
            fits -= 1;
        }
        let from = text.as_bytes().get(..fits);
        let to = self.bytes.get_mut(self.length..self.length + fits);
        if let (Some(from), Some(to)) = (from, to) {
            to.copy_from_slice(from);
            self.length += fits;
        }
        Ok(())
    }
}

impl<const N: usize> fmt::Debug for Line<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// The first characters of a text of others, for a line that quotes it.
#[must_use]
pub fn quote(text: &str) -> Line<40> {
    let mut line = Line::default();
    let mut shown = text.chars();
    for one in shown.by_ref().take(20) {
        let _ = line.write_char(if one.is_control() { ' ' } else { one });
    }
    if shown.next().is_some() {
        let _ = line.write_char('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_between_characters() {
        let line = Line::<4>::of(format_args!("aé€"));
        assert_eq!(line.as_str(), "aé");
        assert_eq!(Line::<8>::of(format_args!("{}", 12)).as_str(), "12");
    }

    #[test]
    fn what_markup_uses_is_replaced() {
        let mut line = Line::<64>::default();
        line.push_escaped("<a&\u{1b}\">");
        assert_eq!(line.as_str(), "&lt;a&amp; &quot;&gt;");
        assert_eq!(quote(&"x".repeat(30)).as_str(), format!("{}…", "x".repeat(20)));
    }
}
