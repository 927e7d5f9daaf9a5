//! What can go wrong.

use std::fmt;

/// What did not work, in one line.
#[derive(Debug)]
pub struct Fault(pub String);

/// Result with that.
pub type Result<T> = std::result::Result<T, Fault>;

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}
