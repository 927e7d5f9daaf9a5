//! Text of the decoder: one arena for each kind, and pieces of it by number.

use super::bits::Fault;

/// A piece of text in one word, since it is moved about a lot: where it begins, how long it is, and
/// two flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span(u64);

/// XML has the text as it is: nothing to refer to, no white space but blanks.
const PLAIN: u64 = 1 << 31;
/// The text is one of the event, not of a table.
const OWN: u64 = 1 << 30;
const LENGTH: u64 = OWN - 1;

impl Span {
    /// A value that is in a channel still.
    pub(crate) const DEFERRED: Self = Self(u64::MAX);

    /// From `begin` to `end`; neither may be beyond what fits, 4 GiB and 1 GiB long.
    #[inline]
    pub(crate) fn new(begin: usize, end: usize) -> Result<Self, Fault> {
        let length = end.wrapping_sub(begin) as u64;
        match u32::try_from(begin) {
            Ok(begin) if length <= LENGTH => Ok(Self(u64::from(begin) << 32 | length)),
            _ => Err(Fault::Limit(&"table_bytes")),
        }
    }

    #[inline]
    pub(crate) fn plain(self, plain: bool) -> Self {
        Self(self.0 | if plain { PLAIN } else { 0 })
    }

    #[inline]
    pub(crate) fn own(self) -> Self {
        Self(self.0 | OWN)
    }

    #[inline]
    pub(crate) fn is_plain(self) -> bool {
        self.0 & PLAIN != 0
    }

    #[inline]
    pub(crate) fn is_own(self) -> bool {
        self.0 & OWN != 0
    }

    #[inline]
    pub(crate) fn begin(self) -> usize {
        (self.0 >> 32) as usize
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        (self.0 & LENGTH) as usize
    }

    #[inline]
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.begin()..self.begin() + self.len()
    }
}

/// Bytes behind the end of a text that may be copied along: a copy of fixed length is several times
/// as fast as one whose length has to be looked at, and most texts are shorter.
pub(crate) const ROOM: usize = 32;

/// Text that grows at its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text {
    /// With at least [`ROOM`] bytes behind the end once anything is there.
    bytes: Vec<u8>,
    end: usize,
}

impl Text {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.end
    }

    #[inline]
    pub(crate) fn get(&self, span: Span) -> &[u8] {
        self.bytes.get(span.range()).unwrap_or_default()
    }

    /// What is there from `begin` on.
    pub(crate) fn since(&self, begin: usize) -> &[u8] {
        self.bytes.get(begin..self.end).unwrap_or_default()
    }

    /// Makes room for so many bytes more.
    #[inline]
    pub(crate) fn room(&mut self, more: usize) {
        let wanted = self.end.saturating_add(more).saturating_add(ROOM);
        if self.bytes.len() < wanted {
            self.grow(wanted);
        }
    }

    #[cold]
    fn grow(&mut self, wanted: usize) {
        let size = wanted.max(self.bytes.len().saturating_mul(2)).max(1024);
        // Zeros of the system cost less than zeros that are written.
        let mut bytes = vec![0; size];
        if let Some((to, from)) = bytes.get_mut(..self.end).zip(self.bytes.get(..self.end)) {
            to.copy_from_slice(from);
        }
        self.bytes = bytes;
    }

    pub(crate) fn push(&mut self, more: &[u8]) {
        self.room(more.len());
        if let Some(to) = self.bytes.get_mut(self.end..self.end + more.len()) {
            to.copy_from_slice(more);
            self.end += more.len();
        }
    }

    /// Appends the first `count` of eight bytes where [`Text::room`] was made for them.
    #[inline]
    pub(crate) fn put(&mut self, eight: [u8; 8], count: usize) {
        if let Some(to) = self.bytes.get_mut(self.end..).and_then(|rest| rest.first_chunk_mut()) {
            *to = eight;
            self.end += count.min(8);
        }
    }

    /// Forgets everything, and the memory too if that is more than `most` bytes.
    pub(crate) fn reset(&mut self, most: usize) {
        self.end = 0;
        if self.bytes.len() > most {
            self.bytes = Vec::new();
        }
    }

    pub(crate) fn truncate(&mut self, end: usize) {
        self.end = self.end.min(end);
    }

    /// Appends a piece to `out`.
    #[inline]
    pub(crate) fn copy(&self, span: Span, out: &mut Vec<u8>) {
        self.copy_range(span.begin(), span.len(), out);
    }

    /// Appends `count` bytes from `begin` to `out`.
    #[inline]
    pub(crate) fn copy_range(&self, begin: usize, count: usize, out: &mut Vec<u8>) {
        let rest = self.bytes.get(begin..).unwrap_or_default();
        match rest.first_chunk::<ROOM>() {
            Some(chunk) if count <= ROOM => {
                let end = out.len() + count;
                out.extend_from_slice(chunk);
                out.truncate(end);
            }
            _ => out.extend_from_slice(rest.get(..count).unwrap_or_default()),
        }
    }
}

/// Bytes that XML text has to refer to, or does not have (XML 1.0 §2.2, §2.4).
const SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'&' as usize] = true;
    table[b'<' as usize] = true;
    table[b'>' as usize] = true;
    table[b'"' as usize] = true;
    table
};

/// The high bit of some byte is set if one of eight characters below 0x80 is special.
#[inline]
pub(crate) fn special(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let low = word.wrapping_sub(ONES * 0x20) & !word;
    // Two at a time, since they differ in one bit: `"` and `&`, `<` and `>`.
    let quote = zero((word | (ONES * 0x04)) ^ (ONES * 0x26));
    let angle = zero((word | (ONES * 0x02)) ^ (ONES * 0x3e));
    (low | quote | angle) & (ONES << 7)
}

/// Whether XML has a short text as it is.
pub(crate) fn is_plain(text: &[u8]) -> bool {
    let (eights, rest) = text.as_chunks::<8>();
    let mut last = [b' '; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    eights.iter().chain([&last]).all(|eight| special(u64::from_be_bytes(*eight)) == 0)
}

/// Appends text, or the value of an attribute, with references where XML wants them.
pub(crate) fn escape(text: &[u8], attribute: bool, out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| SPECIAL[usize::from(byte)]) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'\r' => out.extend_from_slice(b"&#xD;"),
            b'"' if attribute => out.extend_from_slice(b"&quot;"),
            b'\n' if attribute => out.extend_from_slice(b"&#xA;"),
            b'\t' if attribute => out.extend_from_slice(b"&#x9;"),
            other => out.push(other),
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_its_bounds_and_flags() {
        let span = Span::new(7, 19).unwrap();
        assert_eq!(
            (span.range(), span.len(), span.is_plain(), span.is_own()),
            (7..19, 12, false, false)
        );
        let span = span.plain(true).own();
        assert_eq!((span.range(), span.is_plain(), span.is_own()), (7..19, true, true));
        assert!(Span::new(0, 1 << 30).is_err());
        assert!(Span::new(1 << 32, 1 << 32).is_err());
    }

    #[test]
    fn pieces_are_copied_whatever_their_length() {
        let mut text = Text::default();
        let all: Vec<u8> = (0..200).collect();
        text.push(&all);
        for count in [0, 1, 31, 32, 33, 200] {
            for begin in [0, 200 - count] {
                let mut out = b"x".to_vec();
                text.copy(Span::new(begin, begin + count).unwrap(), &mut out);
                assert_eq!(out[1..], all[begin..begin + count]);
            }
        }
    }

    #[test]
    fn every_special_byte_is_seen_alone_in_a_word() {
        for byte in 0..0x80_u8 {
            for at in 0..8 {
                let mut word = [b'a'; 8];
                word[at] = byte;
                let seen = special(u64::from_be_bytes(word)) != 0;
                assert_eq!(seen, SPECIAL[usize::from(byte)], "{byte}");
            }
        }
    }

    #[test]
    fn short_texts_are_plain_or_not() {
        for text in ["", "a", "eight by", "more than eight", "é and Ø, é and Ø"] {
            assert!(is_plain(text.as_bytes()), "{text}");
        }
        for text in ["<", "a&", "eight b\n", "more than \t", "é\"", "é<é<é<é<é"] {
            assert!(!is_plain(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn references_stand_where_xml_wants_them() {
        let mut out = Vec::new();
        escape("a<b>&\"\t\n\r\u{e9}".as_bytes(), false, &mut out);
        escape(b"|\t\n\"", true, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "a&lt;b&gt;&amp;\"\t\n&#xD;\u{e9}|&#x9;&#xA;&quot;"
        );
    }
}
