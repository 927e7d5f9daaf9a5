//! SOAP calls for devices without an operating system: over connectionless WSP and over CoAP, with
//! bodies in XML, WBXML or CBOR.
//!
//! Only `core` is used and nothing is allocated: a call has a buffer of the caller's, and a socket
//! of the caller's that is two functions ([`Socket`]). Time and chance are arguments. `longwire.h`
//! has the same for callers in C.
//!
//! - [`wsp`], [`coap`]: a call and its answer, whatever gets lost.
//! - [`document`]: elements and texts to bytes and back, in each of the forms.
//! - [`soap`]: the envelope around them.
//!
//! ```
//! use longwire_pocket::document::{Name, Writer, XML};
//! use longwire_pocket::{soap, Tokens};
//! let mut room = [0; 256];
//! let mut writer = Writer::new(&mut room, &XML, Tokens::NONE);
//! soap::begin(&mut writer)?;
//! writer.begin(Name { space: "urn:a", local: "nop" })?;
//! writer.end()?;
//! let len = soap::end(writer)?;
//! assert!(room[..len].starts_with(b"<Envelope xmlns="));
//! # Ok::<(), longwire_pocket::Error>(())
//! ```

#![no_std]

#[cfg(test)]
extern crate std;

mod chance;
pub mod coap;
pub mod document;
mod error;
mod exchange;
mod input;
mod out;
pub mod soap;
#[cfg(test)]
mod tests;
pub mod wsp;

pub use document::Tokens;
pub use error::Error;
pub use exchange::{Address, Answer, Content, Patience, Received, Request, Socket};
