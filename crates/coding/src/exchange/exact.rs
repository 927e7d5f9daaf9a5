//! Why every byte of a message has to come back, where it has to.

use codec::infoset::Marks;
use proto::exchange::MAX_BLOCK_BYTES;

const LONG: &str = "longer than a block, or not whole yet";
const SIGNED: &str = "it may be signed or encrypted";

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exact {
    /// By what is said of the message.
    pub(crate) said: Option<&'static str>,
    body: Option<&'static str>,
    /// It has comments, which WBXML has not.
    pub(crate) comments: bool,
}

impl Exact {
    /// Notes what is at hand of the body, which may be all of it.
    pub(crate) fn note_body(&mut self, body: &[u8], whole: bool) {
        if !whole || body.len() > MAX_BLOCK_BYTES {
            self.body = Some(LONG);
            return;
        }
        let Marks { signed, doctype, comment } = Marks::of(body);
        self.comments = comment;
        let doctype = doctype.then_some("it has a document type");
        self.body = signed.then_some(SIGNED).or(doctype);
    }

    /// The reason, if there is one.
    pub(crate) fn reason(&self) -> Option<&'static str> {
        self.said.or(self.body)
    }
}
