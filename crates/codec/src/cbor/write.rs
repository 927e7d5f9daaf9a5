//! Items whose numbers are not known before their end.

use proto::cbor::{Major, head};

use crate::{Error, Limits};

use super::over;

#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Where in the body the head belongs.
    at: usize,
    map: bool,
    /// Items, keys and values apart.
    count: u64,
}

/// Writes items; arrays and maps get definite lengths at the end, or indefinite ones at once.
#[derive(Debug)]
pub(super) struct Writer {
    body: Vec<u8>,
    marks: Vec<Mark>,
    /// The mark of each array and map that is open, if it has one.
    open: Vec<Option<usize>>,
    /// Most marks; what goes beyond gets indefinite lengths.
    marks_most: usize,
    strict: bool,
}

impl Writer {
    /// Lengths are definite, as far as [`Limits::table_bytes`] holds the places of heads; beyond,
    /// they are indefinite, or with `strict` an error.
    pub(super) fn definite(limits: &Limits, strict: bool) -> Self {
        let marks_most = limits.table_bytes / size_of::<Mark>();
        Self { body: Vec::new(), marks: Vec::new(), open: Vec::new(), marks_most, strict }
    }

    /// All lengths are indefinite, so what was written may go out at any time.
    pub(super) fn indefinite() -> Self {
        let (marks, open) = (Vec::new(), Vec::new());
        Self { body: Vec::new(), marks, open, marks_most: 0, strict: false }
    }

    /// An item begins.
    fn count(&mut self) {
        if let Some(Some(top)) = self.open.last()
            && let Some(mark) = self.marks.get_mut(*top)
        {
            mark.count += 1;
        }
    }

    pub(super) fn start(&mut self, map: bool) -> Result<(), Error> {
        self.count();
        if self.marks.len() < self.marks_most {
            self.open.push(Some(self.marks.len()));
            self.marks.push(Mark { at: self.body.len(), map, count: 0 });
            return Ok(());
        }
        if self.strict {
            return Err(over("more arrays and maps than table_bytes holds"));
        }
        self.open.push(None);
        self.body.push(if map { 0xbf } else { 0x9f });
        Ok(())
    }

    pub(super) fn end(&mut self) {
        if let Some(None) = self.open.pop() {
            self.body.push(0xff);
        }
    }

    /// An item that is encoded already.
    pub(super) fn item(&mut self, encoded: &[u8]) {
        self.count();
        self.body.extend_from_slice(encoded);
    }

    pub(super) fn unsigned(&mut self, value: u64) {
        self.item(&head(Major::Unsigned, value));
    }

    pub(super) fn simple(&mut self, value: u8) {
        self.item(&[0xe0 | value]);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.count();
        self.body.extend_from_slice(&head(Major::Text, text.len() as u64));
        self.body.extend_from_slice(text.as_bytes());
    }

    /// Chunks of one text follow, then [`Writer::end_text`].
    pub(super) fn start_text(&mut self) {
        self.item(&[0x7f]);
    }

    pub(super) fn chunk(&mut self, text: &str) {
        self.body.extend_from_slice(&head(Major::Text, text.len() as u64));
        self.body.extend_from_slice(text.as_bytes());
    }

    pub(super) fn end_text(&mut self) {
        self.body.push(0xff);
    }

    /// Moves out what was written so far; only for indefinite lengths.
    pub(super) fn take(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.body);
    }

    /// All of it, heads in their places.
    pub(super) fn finish(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.body.len() + self.marks.len() * 2);
        let mut from = 0;
        for mark in &self.marks {
            out.extend_from_slice(self.body.get(from..mark.at).unwrap_or_default());
            from = mark.at;
            let (major, len) =
                if mark.map { (Major::Map, mark.count / 2) } else { (Major::Array, mark.count) };
            out.extend_from_slice(&head(major, len));
        }
        out.extend_from_slice(self.body.get(from..).unwrap_or_default());
        out
    }
}
