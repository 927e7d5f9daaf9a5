//! A schema on its way to the other side: its documents, packed. Whoever unpacks compiles them
//! itself, so that nobody has to trust another's grammars.
//!
//! The parcel, integers as in RFC 9000 §16: length of the rest unpacked, and that rest as a
//! Zstandard frame without magic number. Unpacked it is the number of documents that are named, and
//! then of each document, these first, its location and its bytes, with the length before both.

use std::collections::BTreeMap;

use proto::control::Keeping;
use proto::varint;

use super::{NAME, corrupt};
use crate::exi::schema::{Document, Resolve};
use crate::exi::{Grammars, Schema};
use crate::{Error, Limits, dictionary};

/// Longest parcel.
pub const PARCEL_BYTES: usize = 128 << 10;
const _: () = assert!(PARCEL_BYTES as u64 == Keeping::SCHEMA_BYTES);
/// Longest one unpacked.
const UNPACKED_BYTES: usize = 2 << 20;
/// Most documents.
const MAX_DOCUMENTS: usize = 256;

/// Of a schema that came in a parcel.
const LIMITS: Limits = Limits {
    output_bytes: UNPACKED_BYTES as u64,
    depth: 64,
    table_bytes: 8 << 20,
    message_bytes: UNPACKED_BYTES,
};

/// Documents by location; the first so many are named, the others are referred to.
#[derive(Debug)]
struct Documents {
    named: usize,
    all: Vec<(String, Vec<u8>)>,
}

impl Documents {
    fn compile(&self, limits: &Limits) -> Result<Grammars, Error> {
        let all = self.all.iter();
        let named: Vec<_> = all
            .clone()
            .take(self.named)
            .map(|(location, bytes)| Document { location, bytes })
            .collect();
        // Those that are named may refer to each other, too.
        let all: BTreeMap<_, _> = all.map(|(at, bytes)| (at.as_str(), bytes)).collect();
        let mut resolve = |at: &str, _: Option<&str>| all.get(at).map(|bytes| bytes.to_vec());
        grammars(&Schema::parse(&named, &mut resolve, limits)?, limits)
    }

    /// Without the folder that all are in, which is nobody's business.
    fn without_folder(&self) -> Self {
        let folder = |location: &str| location.rfind('/').map_or(0, |end| end + 1);
        let mut all = self.all.iter().map(|(location, _)| location.as_str());
        let first = all.next().unwrap_or_default();
        let mut common = folder(first);
        for other in all {
            while !other.starts_with(&first[..common]) {
                common = folder(&first[..common - 1]);
            }
        }
        let own = |(at, bytes): &(String, Vec<u8>)| (at[common..].to_owned(), bytes.clone());
        Self { named: self.named, all: self.all.iter().map(own).collect() }
    }

    fn pack(&self) -> Result<Vec<u8>, Error> {
        let mut plain = Vec::new();
        varint::encode(self.named as u64, &mut plain);
        for (location, bytes) in &self.all {
            varint::encode_bytes(location.as_bytes(), &mut plain);
            varint::encode_bytes(bytes, &mut plain);
        }
        if plain.len() > UNPACKED_BYTES {
            return Err(over("the documents of a schema", UNPACKED_BYTES));
        }
        let mut parcel = Vec::new();
        varint::encode(plain.len() as u64, &mut parcel);
        parcel.extend_from_slice(&dictionary::pack(&plain)?);
        Ok(parcel)
    }

    fn unpack(parcel: &[u8]) -> Result<Self, Error> {
        let wrong = |error: proto::Error| corrupt(&error.to_string());
        let mut rest = parcel;
        let len = varint::decode(&mut rest, "a length").map_err(wrong)?;
        let len = usize::try_from(len).ok().filter(|len| *len <= UNPACKED_BYTES);
        let len = len.ok_or_else(|| over("the documents of a schema", UNPACKED_BYTES))?;
        let plain = dictionary::unpack(rest, len)
            .map_err(|_| corrupt("a schema's parcel that cannot be unpacked"))?;
        let mut rest = &plain[..];
        let named = varint::decode(&mut rest, "the number of documents").map_err(wrong)?;
        let mut all = Vec::new();
        while !rest.is_empty() {
            if all.len() == MAX_DOCUMENTS {
                return Err(over("the number of a schema's documents", MAX_DOCUMENTS));
            }
            let location = varint::decode_bytes(&mut rest, "a location").map_err(wrong)?;
            let bytes = varint::decode_bytes(&mut rest, "a document").map_err(wrong)?;
            all.push((String::from_utf8_lossy(location).into_owned(), bytes.to_vec()));
        }
        let named = usize::try_from(named).ok().filter(|named| (1..=all.len()).contains(named));
        let named = named.ok_or_else(|| corrupt("a schema of other documents than come"))?;
        Ok(Self { named, all })
    }
}

fn over(what: &str, limit: usize) -> Error {
    Error::Limit { codec: NAME, what: format!("{what}: limit {limit}") }
}

fn grammars(schema: &Schema, limits: &Limits) -> Result<Grammars, Error> {
    schema.grammars(&super::Head { channels: false, schema: None }.options(), limits)
}

/// The grammars of documents and of what they refer to, and the parcel that makes the same of a
/// reader; none where it would be too long or make others.
///
/// # Errors
/// Those of [`Schema::parse`] and [`Schema::grammars`].
pub(super) fn of_documents(
    documents: &[Document<'_>],
    resolve: &mut Resolve<'_>,
    limits: &Limits,
) -> Result<(Grammars, Option<Vec<u8>>), Error> {
    let own = |document: &Document<'_>| (document.location.to_owned(), document.bytes.to_vec());
    let mut all: Vec<_> = documents.iter().map(own).collect();
    let mut record = |at: &str, namespace: Option<&str>| {
        let bytes = resolve(at, namespace)?;
        // For another namespace it may be asked for again.
        if !all.iter().any(|(known, _)| known == at) {
            all.push((at.to_owned(), bytes.clone()));
        }
        Some(bytes)
    };
    let made = grammars(&Schema::parse(documents, &mut record, limits)?, limits)?;
    let whole = Documents { named: documents.len(), all };
    let same = |parcel: &Vec<u8>| {
        parcel.len() <= PARCEL_BYTES
            && compile(parcel).is_ok_and(|grammars| grammars.hash == made.hash)
    };
    // What one refers to by the whole of its path is found by that alone.
    let packed = |documents: &Documents| documents.pack().ok().filter(same);
    let parcel = packed(&whole.without_folder()).or_else(|| packed(&whole));
    Ok((made, parcel))
}

/// What [`of_documents`] made, out of its parcel.
///
/// # Errors
/// A parcel that is none or takes too much, and those of the documents.
pub(super) fn compile(parcel: &[u8]) -> Result<Grammars, Error> {
    Documents::unpack(parcel)?.compile(&LIMITS)
}
