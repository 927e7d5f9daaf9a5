//! WBXML 1.0 to 1.3 (WAP-192-WBXML-20010725-a): tokens on the caller's slices, without allocation.
//!
//! What tokens mean is said by tables outside: see `codec::wbxml`.
//!
//! ```
//! use longwire_proto::wbxml::{Token, read};
//! // <a>hi</a> with `a` in the string table.
//! let document = [3, 1, 106, 2, b'a', 0, 0x44, 0, 3, b'h', b'i', 0, 1];
//! let (header, mut tokens) = read(&document)?;
//! assert_eq!(header.string(0)?, b"a");
//! let literal = Token::LiteralTag { index: 0, attributes: false, content: true };
//! assert_eq!(tokens.next(), Some(Ok(literal)));
//! assert_eq!(tokens.next(), Some(Ok(Token::String(b"hi"))));
//! assert_eq!(tokens.next(), Some(Ok(Token::End)));
//! assert_eq!(tokens.next(), None);
//! # Ok::<(), longwire_proto::Error>(())
//! ```

mod packet;
#[cfg(test)]
mod tests;

pub use packet::{Header, PublicId, Token, Tokens, charset, encode_u32, global, read};
