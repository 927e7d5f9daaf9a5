//! What is expected of encodings before anything was seen: their names to a [`Prior`].
//!
//! Sizes were fitted to 119 messages of 200 bytes to 800 kB (SOAP and its descriptions, catalogues,
//! JSON, configuration; none of those that the decision is judged by), leaving a deviation of the
//! logarithm of 0.21 to 0.27. Speeds are of one processor of 2020 or so; they are replaced by those
//! that the process measures at its start.

use crate::arm::{BASED, Prior, SYMMETRIC, Speed};

/// Codec, level, [`Prior::family`], [`Prior::size`], [`Prior::overhead_bytes`], microseconds
/// whatever the length and megabytes a second of encoding, the same of decoding.
type Row = (&'static str, i8, &'static str, [f64; 4], f64, [f64; 2], [f64; 2]);

#[rustfmt::skip]
const ROWS: [Row; 18] = [
    ("deflate", 6, "deflate", [-0.04, 1.09, -0.25, -0.72], 48.0, [ 12.0,  230.0], [  4.0, 1600.0]),
    ("deflate", 9, "deflate", [ 0.08, 1.14, -0.28, -0.78], 32.0, [ 11.0,  130.0], [  3.0, 1300.0]),
    ("zstd",    1, "zstd", [ 0.10, 1.05, -0.20, -0.71], 32.0, [ 14.0, 1400.0], [ 12.0, 2900.0]),
    ("zstd",    3, "zstd", [ 0.10, 1.07, -0.23, -0.76], 32.0, [ 14.0,  850.0], [ 11.0, 2300.0]),
    ("zstd",    9, "zstd", [ 0.00, 1.08, -0.21, -0.73], 48.0, [ 15.0,  130.0], [ 11.0, 1700.0]),
    ("zstd",   19, "zstd19", [ 0.10, 1.14, -0.22, -0.78], 32.0, [ 50.0,    5.0], [ 13.0,  870.0]),
    ("brotli",  4, "brotli", [-0.09, 0.99, -0.19, -0.69], 32.0, [ 23.0,  150.0], [  7.0,  900.0]),
    ("brotli",  5, "brotli", [-0.13, 1.00, -0.19, -0.70], 32.0, [ 60.0,  100.0], [  8.0,  700.0]),
    ("brotli",  9, "brotli9", [-0.17, 1.01, -0.20, -0.71], 32.0, [420.0,    7.0], [ 13.0,  420.0]),
    ("xmill",   1, "xmill", [ 0.01, 1.08, -0.23, -0.80], 48.0, [ 47.0,  116.0], [  4.0,  600.0]),
    ("xmill",   5, "xmill", [ 0.06, 1.10, -0.21, -0.79], 48.0, [ 49.0,   96.0], [ 11.0,  650.0]),
    ("xmill",   9, SYMMETRIC, [ 0.13, 1.15, -0.23, -0.89], 32.0, [ 66.0,  5.0], [ 66.0,    5.0]),
    ("zstd-dictionary", 19, BASED, [-1.60, 0.30, 0.00, 0.20], 32.0, [150.0, 6.0], [ 20.0, 800.0]),
    ("delta",   0, BASED, [-2.40, 0.10,  0.00, -0.30], 32.0, [120.0,    6.0], [ 20.0,  800.0]),
    // Sizes and speeds of those below by docs/codec-comparison.tsv; encoding decodes and compares.
    ("exi",     0, "exi", [-0.23, 1.00, -0.20, -0.70], 32.0, [ 30.0,   27.0], [  5.0,  120.0]),
    ("exi-schema", 0, "exi", [-0.50, 1.00, -0.20, -0.70], 32.0, [ 30.0, 27.0], [  5.0,  120.0]),
    ("wbxml",   0, "wbxml", [ 0.00, 0.70,  0.00,  0.00], 32.0, [  5.0,   40.0], [  3.0,  175.0]),
    ("cbor",    0, "cbor", [-0.45, 0.20,  0.00,  0.00], 32.0, [  4.0,   60.0], [  2.0,  300.0]),
];

/// What to expect of an encoding that is called `NAME` or `NAME:LEVEL`: that of the nearest level
/// known; `None` for a codec that is not.
#[must_use]
pub fn of(label: &str) -> Option<Prior> {
    let (name, level) = label.split_once(':').unwrap_or((label, ""));
    if name == "identity" {
        return Some(Prior::IDENTITY);
    }
    let rows = ROWS.iter().filter(|row| row.0 == name);
    let level: Option<i8> = level.parse().ok();
    let far = |row: &&Row| level.map_or(0, |level| level.abs_diff(row.1));
    let &(_, _, family, size, overhead_bytes, encode, decode) = rows.min_by_key(far)?;
    let speed = |[fixed_us, megabytes_per_s]: [f64; 2]| Speed {
        fixed_s: fixed_us * 1e-6,
        per_byte_s: 1e-6 / megabytes_per_s,
    };
    let (encode, decode) = (speed(encode), speed(decode));
    Some(Prior { size, overhead_bytes, encode, decode, family })
}
