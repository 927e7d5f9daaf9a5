//! Codes that authenticate documents: HMAC-SHA-256 (RFC 2104), cut to 128 bits, under the key of
//! who wrote the document, over its CBOR without the code and without what changes on the way.

use std::collections::BTreeMap;
use std::fmt;

use ring::hmac;

use super::fields::{Layout, Record};
use super::forms::Form;
use super::message::{CODE_BYTES, MESSAGE, Message};
use super::receipt::{RECEIPT, Receipt};
use super::refusal::{Reason, Refusal, shown};

/// Shortest key, in bytes.
pub(crate) const MIN_KEY_BYTES: usize = 16;

/// What a message that is kept no more is known by: SHA-256 of its CBOR with its code, cut to 128
/// bits.
pub(crate) type Digest = [u8; 16];

/// The digest of a message.
pub(crate) fn digest(message: &Message) -> Digest {
    let bytes = Form::Cbor.encode(&MESSAGE, &message.record(&[], &[]));
    let whole = ring::digest::digest(&ring::digest::SHA256, &bytes.unwrap_or_default());
    whole.as_ref().first_chunk().copied().unwrap_or_default()
}

/// The keys of nodes by their names. Without any, nothing is authenticated.
#[derive(Clone, Default)]
pub struct Keys(BTreeMap<String, hmac::Key>);

impl Keys {
    /// Keys of nodes, each of 16 bytes or more.
    ///
    /// # Errors
    /// A line that names the node whose key is too short.
    pub fn new(keys: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<Self, String> {
        let key = |(node, bytes): (String, Vec<u8>)| {
            if bytes.len() < MIN_KEY_BYTES {
                let have = bytes.len();
                return Err(format!(
                    "the key of node '{node}' has {have} bytes; it needs {MIN_KEY_BYTES} at least"
                ));
            }
            Ok((node, hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
        };
        keys.into_iter().map(key).collect::<Result<_, _>>().map(Self)
    }

    /// Whether documents need a code.
    pub(crate) fn is_needed(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether a node has a key.
    pub(crate) fn has(&self, node: &str) -> bool {
        self.0.contains_key(node)
    }

    /// The code of a message of ours; none without a key.
    pub(crate) fn sign_message(&self, message: &Message) -> Option<Vec<u8>> {
        self.sign(&message.originator, &covered_of_message(message))
    }

    /// The code of a receipt of ours; none without a key.
    pub(crate) fn sign_receipt(&self, receipt: &Receipt) -> Option<Vec<u8>> {
        self.sign(&receipt.reporter, &covered_of_receipt(receipt))
    }

    /// Refuses a message whose originator did not write it.
    pub(crate) fn check_message(&self, message: &Message) -> Result<(), Refusal> {
        let code = message.code.as_deref();
        self.check("message", &message.originator, code, || covered_of_message(message))
    }

    /// Refuses a receipt whose reporter did not write it.
    pub(crate) fn check_receipt(&self, receipt: &Receipt) -> Result<(), Refusal> {
        let code = receipt.code.as_deref();
        self.check("receipt", &receipt.reporter, code, || covered_of_receipt(receipt))
    }

    fn sign(&self, node: &str, covered: &[u8]) -> Option<Vec<u8>> {
        let tag = hmac::sign(self.0.get(node)?, covered);
        tag.as_ref().get(..CODE_BYTES).map(<[u8]>::to_vec)
    }

    fn check(
        &self,
        what: &str,
        node: &str,
        code: Option<&[u8]>,
        covered: impl FnOnce() -> Vec<u8>,
    ) -> Result<(), Refusal> {
        if !self.is_needed() {
            return Ok(());
        }
        let forged = |why: String| Err(Refusal::new(Reason::Forged, why));
        let node_shown = shown(node);
        if !self.has(node) {
            return forged(format!(
                "this {what} is of '{node_shown}', whose key is not known here; add it to [keys]"
            ));
        }
        let Some(code) = code else {
            let line = format!("this {what} of '{node_shown}' has no code; sign it with its key");
            return forged(line);
        };
        let own = self.sign(node, &covered()).unwrap_or_default();
        let differs = own.iter().zip(code).fold(own.len() ^ code.len(), |differs, (one, other)| {
            differs | usize::from(one ^ other)
        });
        match differs {
            0 => Ok(()),
            _ => forged(format!("the code of this {what} is not by the key of '{node_shown}'")),
        }
    }
}

impl fmt::Debug for Keys {
    /// The names alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

fn covered_of_message(message: &Message) -> Vec<u8> {
    let bare = Message { code: None, ..message.clone() };
    covered(&MESSAGE, &bare.record(&[], &[]))
}

fn covered_of_receipt(receipt: &Receipt) -> Vec<u8> {
    let bare = Receipt { code: None, ..receipt.clone() };
    covered(&RECEIPT, &bare.record(&[]))
}

/// The name of the kind of document, so that none passes for one of another kind, and its fields.
fn covered(layout: &Layout, record: &Record) -> Vec<u8> {
    let mut bytes = layout.name.as_bytes().to_vec();
    bytes.push(0);
    bytes.extend(Form::Cbor.encode(layout, record).unwrap_or_default());
    bytes
}
