//! The benchmark service of the WAP study: three methods that are timed, and two that say
//! beforehand how large their answers are, so that the timed call prepares nothing.
//!
//! Messages are SOAP 1.1, document/literal wrapped, in XML and in what stands for it: WBXML, CBOR
//! and EXI.

pub mod client;
mod form;
mod service;
#[cfg(test)]
mod tests;

pub use form::Form;
pub(super) use service::{Methods, wsdl};

use pocket::document::Name;

/// Namespace of the service's elements.
pub const NAMESPACE: &str = "urn:longwire:benchmark:1";
/// Most characters of a string.
pub const MAX_STRING_CHARS: u32 = 1_000_000;
/// Most numbers of an array.
pub const MAX_ARRAY_ITEMS: u32 = 100_000;

/// A method of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Does nothing, so that only the call itself takes time.
    Nop,
    /// Answers a string.
    GetString,
    /// Answers an array of numbers.
    GetIntArray,
    /// Says how many characters the string has.
    SetString,
    /// Says how many numbers the array has.
    SetIntArray,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Nop, Self::GetString, Self::GetIntArray, Self::SetString, Self::SetIntArray];

    /// Those that are timed.
    pub const TIMED: [Self; 3] = [Self::Nop, Self::GetString, Self::GetIntArray];

    /// The element in a request's body.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nop => "nop",
            Self::GetString => "getString",
            Self::GetIntArray => "getIntArray",
            Self::SetString => "setString",
            Self::SetIntArray => "setIntArray",
        }
    }

    /// The element in an answer's body.
    #[must_use]
    pub const fn response(self) -> &'static str {
        match self {
            Self::Nop => "nopResponse",
            Self::GetString => "getStringResponse",
            Self::GetIntArray => "getIntArrayResponse",
            Self::SetString => "setStringResponse",
            Self::SetIntArray => "setIntArrayResponse",
        }
    }

    /// What `SOAPAction` says of it.
    #[must_use]
    pub fn action(self) -> String {
        format!("{NAMESPACE}#{}", self.name())
    }

    /// The method that says how large the answer of this one is, and the greatest size.
    #[must_use]
    pub const fn setter(self) -> Option<(Self, u32)> {
        match self {
            Self::GetString => Some((Self::SetString, MAX_STRING_CHARS)),
            Self::GetIntArray => Some((Self::SetIntArray, MAX_ARRAY_ITEMS)),
            _ => None,
        }
    }
}

/// An element of the service's namespace.
const fn element(local: &str) -> Name<'_> {
    Name { space: NAMESPACE, local }
}

/// The character of a string at a place, and the number of an array: what both sides know.
fn character(at: usize) -> char {
    char::from(b"abcdefghijklmnopqrstuvwxyz 0123456789"[at % 37])
}

fn number(at: usize) -> i32 {
    // Of one digit to nine, as numbers are.
    let mixed = (at as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let digits = mixed >> 60;
    let value = (mixed >> 20) % 10_u64.pow(u32::from(digits.to_le_bytes()[0] % 9) + 1);
    i32::try_from(value).unwrap_or(i32::MAX)
}
