//! A file of dictionaries.
//!
//! | bytes | |
//! | --- | --- |
//! | 4 | `lwds` |
//! | 1 | version, 1 |
//! | n | number of entries |
//!
//! and of each entry, lengths as variable-length integers (RFC 9000 §16):
//!
//! | bytes | |
//! | --- | --- |
//! | n, … | label in UTF-8, with its length before it |
//! | 1 | 1 if the dictionary has the tables of zstd's trainer, else 0 |
//! | 32 | SHA-256 of the dictionary |
//! | n | its length |
//! | n, … | its bytes as a zstd frame without magic number, with the length of that before it |

use proto::varint;
use zstd_safe::{CCtx, CParameter, DCtx, DParameter, FrameFormat, get_error_name};

use crate::{Error, Limits};

use super::{Dictionary, NAME, corrupt};

const MAGIC: [u8; 4] = *b"lwds";
const VERSION: u8 = 1;
/// Entries of a file: one for each service, and room.
const MAX_ENTRIES: u64 = 4096;
const MAX_LABEL_BYTES: usize = 256;
const PACK_LEVEL: i32 = 19;

/// A dictionary and what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which service or kind of message, at most 256 bytes.
    pub label: String,
    /// The dictionary.
    pub dictionary: Dictionary,
}

/// Dictionaries that are kept together, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Store {
    /// At most 4096.
    pub entries: Vec<Entry>,
}

impl Store {
    /// The dictionary with this short name.
    #[must_use]
    pub fn find(&self, short: [u8; 8]) -> Option<&Dictionary> {
        let mut all = self.entries.iter().map(|entry| &entry.dictionary);
        all.find(|dictionary| dictionary.id().short() == short)
    }

    /// As bytes of a file. Errors: a label or the number of entries is over its limit.
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let count = self.entries.len() as u64;
        if count > MAX_ENTRIES {
            return Err(over(format!("{count} entries, limit {MAX_ENTRIES}")));
        }
        let mut out = [&MAGIC[..], &[VERSION]].concat();
        varint::encode(count, &mut out);
        for Entry { label, dictionary } in &self.entries {
            if label.len() > MAX_LABEL_BYTES {
                let len = label.len();
                return Err(over(format!("label of {len} bytes, limit {MAX_LABEL_BYTES}")));
            }
            varint::encode_bytes(label.as_bytes(), &mut out);
            out.push(u8::from(dictionary.is_trained()));
            out.extend_from_slice(&dictionary.id().0);
            varint::encode(dictionary.content().len() as u64, &mut out);
            varint::encode_bytes(&pack(dictionary.content())?, &mut out);
        }
        Ok(out)
    }

    /// Out of the bytes of a file; all its dictionaries together are at most
    /// [`Limits::table_bytes`] long. Errors: another version, damage, bytes behind the end.
    pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Self, Error> {
        let head = [&MAGIC[..], &[VERSION]].concat();
        let mut rest = bytes
            .strip_prefix(&head[..])
            .ok_or_else(|| corrupt(format!("not a file of dictionaries of version {VERSION}")))
            .map_err(|error| error.at(0))?;
        let place = |rest: &[u8]| (bytes.len() - rest.len()) as u64;
        let wrong = |error: proto::Error| corrupt(error.to_string()).at(head.len() as u64);
        let count = varint::decode(&mut rest, "number of entries").map_err(wrong)?;
        if count > MAX_ENTRIES {
            return Err(over(format!("{count} entries, limit {MAX_ENTRIES}")));
        }
        let mut entries = Vec::new();
        let mut left = limits.table_bytes;
        for _ in 0..count {
            let offset = place(rest);
            let entry = decode_entry(&mut rest, left, limits).map_err(|error| error.at(offset))?;
            left -= entry.dictionary.content().len();
            entries.push(entry);
        }
        if !rest.is_empty() {
            let what = format!("{} bytes behind the end", rest.len());
            return Err(corrupt(what).at(place(rest)));
        }
        Ok(Self { entries })
    }
}

fn decode_entry(rest: &mut &[u8], left: usize, limits: &Limits) -> Result<Entry, Error> {
    let wrong = |error: proto::Error| corrupt(error.to_string());
    let label = varint::decode_bytes(rest, "a label").map_err(wrong)?;
    if label.len() > MAX_LABEL_BYTES {
        return Err(over(format!("label of {} bytes, limit {MAX_LABEL_BYTES}", label.len())));
    }
    let label = str::from_utf8(label).map_err(|_| corrupt("a label is not UTF-8"))?;
    let (fixed, tail) = rest.split_at_checked(33).ok_or_else(|| corrupt("ends in an entry"))?;
    *rest = tail;
    let len = varint::decode(rest, "a length").map_err(wrong)?;
    let len = usize::try_from(len).ok().filter(|len| *len <= left).ok_or_else(|| {
        over(format!("dictionaries over the {} bytes of table_bytes", limits.table_bytes))
    })?;
    let packed = varint::decode_bytes(rest, "a dictionary").map_err(wrong)?;
    let content = unpack(packed, len)?;
    let (trained, id) = fixed.split_at(1);
    let dictionary = match trained {
        [0] => Dictionary::raw(content, limits)?,
        [1] => Dictionary::new(content, limits)?,
        _ => return Err(corrupt("an unknown kind of dictionary")),
    };
    if dictionary.id().0 != *id || dictionary.is_trained() != (trained == [1]) {
        return Err(corrupt(format!("the dictionary '{label}' is damaged")));
    }
    Ok(Entry { label: label.to_owned(), dictionary })
}

fn over(what: String) -> Error {
    Error::Limit { codec: NAME, what }
}

/// What a dictionary takes in a file or on the link.
pub(crate) fn pack(content: &[u8]) -> Result<Vec<u8>, Error> {
    let refused = |code: usize| over(get_error_name(code).to_owned());
    let mut context = CCtx::try_create().ok_or_else(|| over("no memory".to_owned()))?;
    for parameter in [
        CParameter::Format(FrameFormat::Magicless),
        CParameter::CompressionLevel(PACK_LEVEL),
        CParameter::ContentSizeFlag(false),
    ] {
        context.set_parameter(parameter).map_err(refused)?;
    }
    let mut out = Vec::with_capacity(zstd_safe::compress_bound(content.len()));
    context.compress2(&mut out, content).map_err(refused)?;
    Ok(out)
}

pub(crate) fn unpack(packed: &[u8], len: usize) -> Result<Vec<u8>, Error> {
    let wrong = |code: usize| corrupt(get_error_name(code));
    let mut context = DCtx::try_create().ok_or_else(|| over("no memory".to_owned()))?;
    context.set_parameter(DParameter::Format(FrameFormat::Magicless)).map_err(wrong)?;
    let mut out = Vec::with_capacity(len);
    context.decompress(&mut out, packed).map_err(wrong)?;
    if out.len() != len {
        return Err(Error::Length { codec: NAME, declared: len });
    }
    Ok(out)
}
