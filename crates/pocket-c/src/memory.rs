//! Pointers of C as what Rust has in their place.

use core::ffi::{CStr, c_char, c_int};

use pocket::Error;

/// No error.
pub(crate) const OK: c_int = 0;

/// A result as C has it.
pub(crate) fn code(result: Result<(), Error>) -> c_int {
    match result {
        Ok(()) => OK,
        Err(error) => error as c_int,
    }
}

/// A text of the caller's; none where it is null.
///
/// # Safety
/// `text` is null or points at a text that ends with a zero byte and stays for `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Error> {
    if text.is_null() {
        return Ok("");
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| Error::Misuse)
}

/// Bytes of the caller's; none where the pointer is null.
///
/// # Safety
/// `at` is null or points at `len` bytes that stay and are not written to for `'a`.
pub(crate) unsafe fn bytes<'a>(at: *const u8, len: usize) -> &'a [u8] {
    if at.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts(at, len) }
}

/// Room of the caller's; none where the pointer is null.
///
/// # Safety
/// `at` is null or points at `len` bytes that nobody else uses for `'a`.
pub(crate) unsafe fn room<'a>(at: *mut u8, len: usize) -> &'a mut [u8] {
    if at.is_null() {
        return &mut [];
    }
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts_mut(at, len) }
}

/// Name of an error, as a phrase.
#[unsafe(no_mangle)]
pub extern "C" fn lw_error_name(error: c_int) -> *const c_char {
    let found = Error::ALL.into_iter().position(|one| one as c_int == error);
    let name = match (error, found) {
        (OK, _) => c"no error",
        (_, Some(at)) => NAMES.get(at).copied().unwrap_or(c"unknown error"),
        (_, None) => c"unknown error",
    };
    name.as_ptr()
}

/// [`Error::name`] with a zero byte, in the order of [`Error::ALL`]; a test compares them.
static NAMES: [&CStr; 23] = [
    c"buffer too small",
    c"socket failed",
    c"no answer in time",
    c"no answer in time, only from other addresses",
    c"no answer in time, only to other requests",
    c"no whole answer in time",
    c"rejected by the server",
    c"unknown option that must be understood",
    c"blocks that do not fit",
    c"challenged again",
    c"document cut off",
    c"document malformed",
    c"document nested too deep",
    c"too many prefixes",
    c"unknown token",
    c"unknown charset, version or item",
    c"document takes too many steps",
    c"call out of order or text that cannot stand here",
    c"no SOAP envelope",
    c"fault of the service",
    c"unexpected element",
    c"no whole number of 32 bits",
    c"status of an error",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_errors() {
        for error in Error::ALL {
            // SAFETY: all names are static.
            let name = unsafe { CStr::from_ptr(lw_error_name(error as c_int)) };
            assert_eq!(name.to_str(), Ok(error.name()));
        }
        // SAFETY: as above.
        let unknown = unsafe { CStr::from_ptr(lw_error_name(200)) };
        assert_eq!(unknown, c"unknown error");
    }
}
