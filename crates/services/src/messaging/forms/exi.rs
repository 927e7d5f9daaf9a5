//! Documents as EXI streams of their XML, by the service's own schema.

use std::sync::{Arc, OnceLock};

use codec::Limits;
use codec::exi::schema::Document;
use codec::exi::{self, DocumentEncoder, Grammars, Options, Schema};

use super::{MAX_DOCUMENT_BYTES, xml};
use crate::messaging::fields::{Layout, Record};
use crate::messaging::refusal::{Refusal, shown};

/// The schema of both documents.
pub(crate) const SCHEMA: &str = include_str!("../schemas/messaging.xsd");

/// Bounds of what a stream may make.
const LIMITS: Limits = Limits {
    output_bytes: MAX_DOCUMENT_BYTES as u64,
    depth: 8,
    table_bytes: 4 << 20,
    message_bytes: MAX_DOCUMENT_BYTES,
};

/// Strict, bit-packed, and nothing of it in the stream's header: both sides know (EXI §5.4).
fn options() -> Options {
    Options { strict: true, ..Options::default() }
}

/// The grammars, made once.
fn grammars() -> Result<Arc<Grammars>, Refusal> {
    static GRAMMARS: OnceLock<Result<Arc<Grammars>, codec::Error>> = OnceLock::new();
    let made = GRAMMARS.get_or_init(|| {
        let document = Document { location: "messaging.xsd", bytes: SCHEMA.as_bytes() };
        let limits = Limits::default();
        let schema = Schema::parse(&[document], &mut |_, _| None, &limits)?;
        schema.grammars(&options(), &limits).map(Arc::new)
    });
    made.clone().map_err(|error| Refusal::malformed(format!("the service's schema: {error}")))
}

pub(super) fn encode(layout: &Layout, record: &Record) -> Result<Vec<u8>, Refusal> {
    let mut encoder = DocumentEncoder::new(&options(), Some(grammars()?), &LIMITS);
    let document = xml::encode(layout, record);
    let broken = |error: codec::Error| Refusal::malformed(format!("no EXI of this: {error}"));
    encoder.encode(document.as_bytes()).map_err(broken)
}

pub(super) fn decode(layout: &Layout, bytes: &[u8]) -> Result<Record, Refusal> {
    let grammars = grammars()?;
    let document = exi::decode(bytes, &options(), Some(&grammars), &LIMITS).map_err(|error| {
        Refusal::malformed(format!("no EXI by the service's schema: {}", shown(&error.to_string())))
    })?;
    xml::decode(layout, &document)
}
