//! A compressor for XML of the class of XMill: structure apart from content, each value in the
//! light of its path, and every byte back as it was.
//!
//! H. Liefke and D. Suciu, "XMill: an efficient compressor for XML data" (SIGMOD 2000), had the
//! idea to group values by path. Levels 1 to 8 do so: the structure in a row, the values of each
//! path in a column in the form that suits them (numbers, dates, differences, choices, words), all
//! of it through deflate (level 1) or zstd (from level 2 on). Level 9 is one model that walks over
//! the document and learns what follows what, a bit at a time. Input need not be XML; what is not
//! comes back as well, and a message of at most a mebibyte never grows by more than
//! [`GROWTH_BYTES`].
//!
//! The format is in `docs/formats/xmill.md`.
//!
//! ```
//! use longwire_codec::Settings;
//! let row = |i: u32| format!("<row><key>{i}</key><name>Customer#{i:09}</name></row>\n");
//! let table: String = (700..900).map(row).collect();
//! let coded = Settings::default().encode("xmill", table.as_bytes())?;
//! assert!(coded.len() < table.len() / 20);
//! assert_eq!(Settings::default().decode("xmill", &coded)?, table.as_bytes());
//! # Ok::<(), longwire_codec::Error>(())
//! ```

mod back;
mod guesses;
mod method;
mod model;
mod nibbles;
mod outline;
mod pieces;
mod range;
mod split;
mod stream;
mod strong;
#[cfg(test)]
mod tests;

pub(crate) use stream::Xmill;
pub use stream::{decode, encode};

const NAME: &str = "xmill";

/// Most bytes by which a message of one block can grow.
pub const GROWTH_BYTES: usize = 16;
