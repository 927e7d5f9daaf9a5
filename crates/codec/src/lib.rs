//! Bytes to fewer bytes and back: one [`Codec`] trait, one table of them, and a [`Table`] for who
//! has others too.
//!
//! A body is coded in blocks that share a context: each block comes out whole (flushed), so that
//! the other side can decode it before the next one exists.
//!
//! ```
//! use longwire_codec::Options;
//! let options = Options::of("zstd:3")?;
//! let (mut encoder, mut decoder) = (options.encoder()?, options.decoder()?);
//! let text = b"to be, or not to be, to be, or not to be".repeat(9);
//! let mut encoded = Vec::new();
//! encoder.encode(&text, true, &mut encoded)?;
//! let mut decoded = Vec::new();
//! decoder.decode(&encoded, text.len(), true, &mut decoded)?;
//! assert!(encoded.len() < 60 && decoded == text);
//! # Ok::<(), longwire_codec::Error>(())
//! ```

mod brotli;
pub mod cbor;
mod codec;
pub mod content;
mod deflate;
pub mod dictionary;
mod error;
pub mod exi;
mod frames;
mod gzip;
mod identity;
pub mod infoset;
mod limits;
pub mod media;
pub mod notation;
pub mod secrets;
mod settings;
mod table;
#[cfg(test)]
mod tests;
pub mod wbxml;
pub mod xmill;
pub mod xml;
mod zstd;

pub use codec::{
    CODECS, Codec, Decoder, Encoder, Fidelity, Flow, MAX_CODECS, MAX_WINDOW_LOG, MIN_WINDOW_LOG,
    Needs, Options, Properties, Step, StreamDecoder, Table, block_codecs, find,
};
pub use error::Error;
pub use limits::Limits;
pub use settings::Settings;
pub use table::CompiledSchema;
