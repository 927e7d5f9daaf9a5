//! OSCORE against the vectors of its RFC, and against any bytes.

mod exchange;
mod state;
mod vectors;

/// Bytes of hexadecimal digits.
fn hex(digits: &str) -> Vec<u8> {
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}
