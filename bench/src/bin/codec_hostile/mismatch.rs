//! Another dictionary or another schema than the one that a stream was made with.

use std::sync::Arc;

use anyhow::Result;
use codec::dictionary::Kept;
use codec::exi::Alignment;
use codec::{CODECS, CompiledSchema, Error, Limits, Needs, Settings};

use crate::hostile;
use crate::subjects::{LIMITS, schema};

/// What was exchanged, and what came of it.
pub(crate) struct Mismatch {
    pub(crate) codec: String,
    pub(crate) what: &'static str,
    /// Errors, and streams in all.
    pub(crate) refused: usize,
    pub(crate) streams: usize,
    /// The first error.
    pub(crate) error: String,
    /// Whether anything else came out than an error must be ruled out, and was not.
    pub(crate) is_fault: bool,
}

/// Messages of each length up to this, doubled each time.
const MAX_BYTES: usize = 16 << 10;

fn outcome(
    codec: &str,
    name: String,
    what: &'static str,
    (ours, theirs): (&Settings, &Settings),
    messages: &[Vec<u8>],
) -> Mismatch {
    let (mut refused, mut streams, mut error) = (0, 0, String::new());
    for coded in messages.iter().filter_map(|message| ours.encode(codec, message).ok()) {
        streams += 1;
        if let Err(found) = theirs.decode(codec, &coded) {
            refused += 1;
            if error.is_empty() {
                error = found.to_string();
            }
            if !matches!(
                found,
                Error::Malformed { .. } | Error::Limit { .. } | Error::Option { .. }
            ) {
                error = format!("no offset: {found}");
            }
        }
    }
    let is_fault = error.starts_with("no offset") || streams == 0;
    Mismatch { codec: name, what, refused, streams, error, is_fault }
}

fn lengths() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(16), |len| Some(len * 2)).take_while(|len| *len <= MAX_BYTES)
}

/// All that there are.
pub(crate) fn all() -> Result<Vec<Mismatch>> {
    let mut found = Vec::new();
    let messages: Vec<_> = lengths().map(hostile::usual_xml).collect();
    let with = |content: Vec<u8>| Settings {
        dictionary: Some(Arc::new(Kept::new(content))),
        limits: LIMITS,
        ..Settings::default()
    };
    let (ours, theirs) = (with(hostile::usual_xml(4000)), with(hostile::usual_xml(4100)));
    for codec in CODECS.iter().filter(|codec| codec.properties().needs == Needs::Dictionary) {
        let name = codec.name();
        let what = "another dictionary";
        let mut line = outcome(name, name.to_owned(), what, (&ours, &theirs), &messages);
        // Never garbage: each is refused.
        line.is_fault |= line.refused < line.streams;
        found.push(line);
    }
    let compiled = |text: &str| -> Result<_> {
        let schema = schema(text.as_bytes(), &Limits::default())?;
        Ok(Some(Arc::new(CompiledSchema::new(schema))))
    };
    let (schema, other) = (compiled(hostile::SCHEMA)?, compiled(hostile::OTHER_SCHEMA)?);
    let typed = hostile::TYPED;
    let messages: Vec<_> =
        lengths().flat_map(|len| typed.iter().map(move |trap| (trap.make)(len))).collect();
    for (word, alignment, strict) in [
        ("exi schema", Alignment::BitPacked, false),
        ("exi strict", Alignment::BitPacked, true),
        ("exi byte-packed strict", Alignment::BytePacked, true),
        ("exi compression strict", Alignment::Compression, true),
    ] {
        let with = |schema: &Option<Arc<CompiledSchema>>| {
            let mut settings =
                Settings { schema: schema.clone(), limits: LIMITS, ..Settings::default() };
            settings.exi.alignment = alignment;
            settings.exi.strict = strict;
            settings
        };
        // A stream does not say which schema it was made with unless its header names one.
        for (what, other) in [("another schema", &other), ("no schema", &None)] {
            let pair = (&with(&schema), &with(other));
            found.push(outcome("exi", word.to_owned(), what, pair, &messages));
        }
    }
    Ok(found)
}
