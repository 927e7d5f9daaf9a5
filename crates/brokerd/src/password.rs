//! Files with a password.

use std::fs;
use std::path::Path;

use crate::error::Error;

/// Longest file, in bytes.
const MAX_BYTES: u64 = 4096;

/// Reads the password of a file; what is blank at its end is not of it.
///
/// # Errors
/// [`Error::Caller`] where it cannot be read or has over 4096 bytes.
pub fn read_password(file: &Path) -> Result<Vec<u8>, Error> {
    let wrong = |what: String| Error::Caller(format!("{}: {what}", file.display()));
    let bytes = fs::metadata(file).map_err(|error| wrong(error.to_string()))?.len();
    if bytes > MAX_BYTES {
        return Err(wrong(format!("{bytes} bytes, over the limit of {MAX_BYTES}")));
    }
    let password = fs::read(file).map_err(|error| wrong(error.to_string()))?;
    Ok(password.trim_ascii_end().to_vec())
}
