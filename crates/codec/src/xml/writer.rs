//! Events to text.

use super::Doctype;
use super::chars::{text_escape, value_escape};

/// Writes XML into memory and escapes what must be. It writes what it is told: names are checked
/// by whoever has them from outside.
///
/// ```
/// use longwire_codec::xml::Writer;
/// let mut writer = Writer::new();
/// writer.start("a");
/// writer.attribute("b", "1 < 2");
/// writer.text("x & y");
/// writer.start("c");
/// writer.end("c");
/// writer.end("a");
/// assert_eq!(writer.finish(), br#"<a b="1 &lt; 2">x &amp; y<c/></a>"#);
/// ```
#[derive(Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
    /// A start tag whose `>` is not written.
    open: bool,
}

impl Writer {
    /// A writer of nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A writer that appends to `out`.
    #[must_use]
    pub fn onto(out: Vec<u8>) -> Self {
        Self { out, open: false }
    }

    /// Bytes so far: callers compare them with their limit.
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// What was written.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.close();
        self.out
    }

    /// Takes what was written so far; a start tag that still may get attributes stays.
    pub fn take(&mut self) -> Vec<u8> {
        if self.open { Vec::new() } else { std::mem::take(&mut self.out) }
    }

    #[inline]
    fn close(&mut self) {
        if self.open {
            self.out.push(b'>');
            self.open = false;
        }
    }

    /// `<?xml version="1.0" encoding="UTF-8"?>`
    pub fn declaration(&mut self) {
        self.out.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    }

    /// Begins a start tag; attributes and declarations follow.
    #[inline]
    pub fn start(&mut self, name: &str) {
        self.close();
        self.out.push(b'<');
        self.out.extend_from_slice(name.as_bytes());
        self.open = true;
    }

    /// Begins a start tag with a prefix, which may be empty.
    #[inline]
    pub fn start_prefixed(&mut self, prefix: &str, local: &str) {
        self.close();
        self.out.push(b'<');
        self.name(prefix, local);
        self.open = true;
    }

    #[inline]
    fn name(&mut self, prefix: &str, local: &str) {
        if !prefix.is_empty() {
            self.out.extend_from_slice(prefix.as_bytes());
            self.out.push(b':');
        }
        self.out.extend_from_slice(local.as_bytes());
    }

    /// An attribute of the start tag just begun.
    #[inline]
    pub fn attribute(&mut self, name: &str, value: &str) {
        self.attribute_prefixed("", name, value);
    }

    /// An attribute with a prefix, which may be empty.
    #[inline]
    pub fn attribute_prefixed(&mut self, prefix: &str, local: &str, value: &str) {
        self.out.push(b' ');
        self.name(prefix, local);
        self.out.extend_from_slice(b"=\"");
        escape(value, true, &mut self.out);
        self.out.push(b'"');
    }

    /// A namespace declaration; an empty prefix is the default's.
    pub fn namespace(&mut self, prefix: &str, uri: &str) {
        if prefix.is_empty() {
            self.attribute("xmlns", uri);
        } else {
            self.attribute_prefixed("xmlns", prefix, uri);
        }
    }

    /// An end tag, or `/>` where nothing stands between.
    #[inline]
    pub fn end(&mut self, name: &str) {
        self.end_prefixed("", name);
    }

    /// As [`Writer::end`], with a prefix, which may be empty.
    #[inline]
    pub fn end_prefixed(&mut self, prefix: &str, local: &str) {
        if self.open {
            self.out.extend_from_slice(b"/>");
            self.open = false;
            return;
        }
        self.out.extend_from_slice(b"</");
        self.name(prefix, local);
        self.out.push(b'>');
    }

    /// Character data.
    #[inline]
    pub fn text(&mut self, text: &str) {
        self.close();
        escape(text, false, &mut self.out);
    }

    /// A reference to a general entity.
    pub fn entity(&mut self, name: &str) {
        self.close();
        self.raw(&["&", name, ";"]);
    }

    /// A comment.
    pub fn comment(&mut self, text: &str) {
        self.close();
        self.raw(&["<!--", text, "-->"]);
    }

    /// A processing instruction.
    pub fn pi(&mut self, target: &str, data: &str) {
        self.close();
        let space = if data.is_empty() { "" } else { " " };
        self.raw(&["<?", target, space, data, "?>"]);
    }

    /// A document type.
    pub fn doctype(&mut self, doctype: &Doctype<'_>) {
        self.raw(&["<!DOCTYPE ", doctype.name]);
        let quote = if doctype.system.contains('"') { "'" } else { "\"" };
        if !doctype.public.is_empty() {
            self.raw(&[" PUBLIC \"", doctype.public, "\" ", quote, doctype.system, quote]);
        } else if !doctype.system.is_empty() {
            self.raw(&[" SYSTEM ", quote, doctype.system, quote]);
        }
        if !doctype.subset.is_empty() {
            self.raw(&[" [", doctype.subset, "]"]);
        }
        self.raw(&[">"]);
    }

    fn raw(&mut self, parts: &[&str]) {
        for part in parts {
            self.out.extend_from_slice(part.as_bytes());
        }
    }
}

/// Appends `text` as character data, or as a value in double quotes. White space is escaped where
/// a reader would change it (XML 1.0 §2.11, §3.3.3), and `>` always: only `]]>` must be, but who
/// looks back costs more than three bytes.
pub fn escape(text: &str, value: bool, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    loop {
        let at = if value { value_escape(rest) } else { text_escape(rest) };
        out.extend_from_slice(&rest[..at]);
        let Some(byte) = rest.get(at) else { return };
        out.extend_from_slice(match byte {
            b'&' => b"&amp;",
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            b'\r' => b"&#xD;",
            b'\n' => b"&#xA;",
            b'\t' => b"&#x9;",
            _ => b"&quot;",
        });
        rest = &rest[at + 1..];
    }
}
