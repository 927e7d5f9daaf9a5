//! The header and the tokens behind it.

use crate::Error;

/// Global tokens (§7.1, table 4).
pub mod global {
    /// Change the code page for the current token state; a page follows.
    pub const SWITCH_PAGE: u8 = 0x00;
    /// The end of an attribute list or of an element's content.
    pub const END: u8 = 0x01;
    /// A character entity; its code follows.
    pub const ENTITY: u8 = 0x02;
    /// An inline string with its terminator.
    pub const STR_I: u8 = 0x03;
    /// An unknown tag or attribute name; an index follows.
    pub const LITERAL: u8 = 0x04;
    /// The first of three inline extensions.
    pub const EXT_I_0: u8 = 0x40;
    /// A processing instruction.
    pub const PI: u8 = 0x43;
    /// An unknown tag with content.
    pub const LITERAL_C: u8 = 0x44;
    /// The first of three extensions with an integer.
    pub const EXT_T_0: u8 = 0x80;
    /// A string of the table; an index follows.
    pub const STR_T: u8 = 0x83;
    /// An unknown tag with attributes.
    pub const LITERAL_A: u8 = 0x84;
    /// The first of three single-byte extensions.
    pub const EXT_0: u8 = 0xc0;
    /// Data of the document's type; a length follows.
    pub const OPAQUE: u8 = 0xc3;
    /// An unknown tag with attributes and content.
    pub const LITERAL_AC: u8 = 0xc4;
    /// In a tag: attributes follow (§5.8.2).
    pub const HAS_ATTRIBUTES: u8 = 0x80;
    /// In a tag: content follows.
    pub const HAS_CONTENT: u8 = 0x40;
}

/// Character sets by their MIBenum (IANA) that change how strings end.
pub mod charset {
    /// Not said, or a document of version 1.0.
    pub const UNKNOWN: u32 = 0;
    /// US-ASCII.
    pub const US_ASCII: u32 = 3;
    /// ISO-8859-1.
    pub const ISO_8859_1: u32 = 4;
    /// UTF-8.
    pub const UTF_8: u32 = 106;
    /// ISO-10646-UCS-2.
    pub const UCS_2: u32 = 1000;
    /// UTF-16BE.
    pub const UTF_16BE: u32 = 1013;
    /// UTF-16LE.
    pub const UTF_16LE: u32 = 1014;
    /// UTF-16.
    pub const UTF_16: u32 = 1015;

    /// Whether characters are units of two bytes, and so the terminator.
    #[must_use]
    pub const fn is_wide(charset: u32) -> bool {
        matches!(charset, UCS_2 | UTF_16BE | UTF_16LE | UTF_16)
    }
}

/// The document's type (§5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublicId {
    /// A registered number; 1 is unknown or missing.
    Known(u32),
    /// Where in the string table its text stands.
    Text(u32),
}

/// What stands before the body (§5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Major version minus one in the upper four bits, minor version below (§5.4).
    pub version: u8,
    /// The document's type.
    pub public_id: PublicId,
    /// A MIBenum; 0 in version 1.0, which has no such field.
    pub charset: u32,
    /// The string table (§5.7).
    pub strings: &'a [u8],
}

impl<'a> Header<'a> {
    /// A string of the table, without its terminator.
    ///
    /// # Errors
    /// An index behind the table, or a string that the table's end cuts off.
    pub fn string(&self, index: u32) -> Result<&'a [u8], Error> {
        let outside =
            Error::Peer { what: "an index behind the string table", value: u64::from(index) };
        let rest = usize::try_from(index).ok().and_then(|index| self.strings.get(index..));
        let rest = rest.filter(|rest| !rest.is_empty()).ok_or(outside)?;
        let end = terminator(rest, charset::is_wide(self.charset));
        end.map(|end| &rest[..end]).ok_or(Error::Truncated { what: "a string of the table" })
    }
}

/// Where the terminator of a string begins.
fn terminator(bytes: &[u8], wide: bool) -> Option<usize> {
    if wide {
        bytes.chunks_exact(2).position(|unit| unit == [0, 0]).map(|at| 2 * at)
    } else {
        bytes.iter().position(|byte| *byte == 0)
    }
}

/// One token with what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// A tag of the table.
    Tag {
        /// The tag code page.
        page: u8,
        /// The code, 5 to 63.
        code: u8,
        /// Attributes follow, up to [`Token::EndAttributes`].
        attributes: bool,
        /// Content follows, up to [`Token::End`]; else the element is over.
        content: bool,
    },
    /// A tag whose name is in the string table.
    LiteralTag {
        /// Where.
        index: u32,
        /// As in [`Token::Tag`].
        attributes: bool,
        /// As in [`Token::Tag`].
        content: bool,
    },
    /// The begin of an attribute, of an instruction's too.
    AttributeStart {
        /// The attribute code page.
        page: u8,
        /// The code, 5 to 127.
        code: u8,
    },
    /// The begin of an attribute whose name is in the string table.
    LiteralAttribute {
        /// Where.
        index: u32,
    },
    /// A part of an attribute's value.
    AttributeValue {
        /// The attribute code page.
        page: u8,
        /// The code, 128 to 255.
        code: u8,
    },
    /// The end of an attribute list.
    EndAttributes,
    /// The end of an element's content.
    End,
    /// An inline string, in the document's character set.
    String(&'a [u8]),
    /// A string of the table.
    TableString {
        /// Where.
        index: u32,
    },
    /// A character.
    Entity(u32),
    /// Data of the document's type.
    Opaque(&'a [u8]),
    /// An extension with a string.
    ExtensionString {
        /// 0 to 2.
        number: u8,
        /// In the document's character set.
        text: &'a [u8],
    },
    /// An extension with an integer, often an index of the string table.
    ExtensionIndex {
        /// 0 to 2.
        number: u8,
        /// What the document's type makes of it.
        value: u32,
    },
    /// An extension of a single byte.
    Extension {
        /// 0 to 2.
        number: u8,
    },
    /// The begin of an instruction: an attribute follows, then [`Token::EndPi`].
    Pi,
    /// The end of an instruction.
    EndPi,
}

/// What the next token is read as (§5.8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenState {
    /// Outside of the root element, or in content.
    Tags,
    /// In the attributes of a tag; whether content follows.
    Attributes(bool),
    /// In an instruction.
    Pi,
    /// Behind an error, or behind the end.
    Over,
}

/// The tokens of a body, as an iterator. It ends behind the root element and the instructions
/// that follow it; a body that ends before, or goes on behind, is an error.
#[derive(Clone, Debug)]
pub struct Tokens<'a> {
    document: &'a [u8],
    at: usize,
    version: u8,
    wide: bool,
    state: TokenState,
    /// An attribute was begun in this list.
    attribute: bool,
    root: bool,
    depth: usize,
    tag_page: u8,
    attribute_page: u8,
}

/// Reads the header, and makes ready to read the body.
///
/// # Errors
/// Versions over 1.15, a header that is cut off, a string table beyond the document.
pub fn read(document: &[u8]) -> Result<(Header<'_>, Tokens<'_>), Error> {
    let mut at = 0;
    let version = byte(document, &mut at, "the version")?;
    if version > 0x0f {
        return Err(Error::Peer { what: "a WBXML version over 1", value: u64::from(version) });
    }
    let public_id = match decode_u32(document, &mut at, "the public identifier")? {
        0 => PublicId::Text(decode_u32(document, &mut at, "the public identifier's index")?),
        number => PublicId::Known(number),
    };
    // Version 1.0 has no character set.
    let charset = match version {
        0 => charset::UNKNOWN,
        _ => decode_u32(document, &mut at, "the character set")?,
    };
    let strings = counted(document, &mut at, "the string table")?;
    let header = Header { version, public_id, charset, strings };
    let tokens = Tokens {
        document,
        at,
        version,
        wide: charset::is_wide(charset),
        state: TokenState::Tags,
        attribute: false,
        root: false,
        depth: 0,
        tag_page: 0,
        attribute_page: 0,
    };
    Ok((header, tokens))
}

fn byte(bytes: &[u8], at: &mut usize, what: &'static str) -> Result<u8, Error> {
    let byte = *bytes.get(*at).ok_or(Error::Truncated { what })?;
    *at += 1;
    Ok(byte)
}

/// `mb_u_int32` (§5.1): seven bits a byte, the highest bit on all but the last; at most 32 bits.
fn decode_u32(bytes: &[u8], at: &mut usize, what: &'static str) -> Result<u32, Error> {
    let mut value = 0_u32;
    for _ in 0..5 {
        let next = byte(bytes, at, what)?;
        if value >> 25 != 0 {
            break;
        }
        value = value << 7 | u32::from(next & 0x7f);
        if next < 0x80 {
            return Ok(value);
        }
    }
    Err(Error::Peer { what: "an integer over 32 bits", value: u64::from(value) })
}

/// Writes `value` as `mb_u_int32` into `buffer` and returns what was written.
pub fn encode_u32(value: u32, buffer: &mut [u8; 5]) -> &[u8] {
    let mut at = 4;
    let mut rest = value;
    let low = |rest: u32| rest.to_le_bytes()[0] & 0x7f;
    buffer[at] = low(rest);
    rest >>= 7;
    while rest > 0 {
        at -= 1;
        buffer[at] = low(rest) | 0x80;
        rest >>= 7;
    }
    &buffer[at..]
}

fn counted<'a>(bytes: &'a [u8], at: &mut usize, what: &'static str) -> Result<&'a [u8], Error> {
    let len = decode_u32(bytes, at, what)? as usize;
    let end = at.checked_add(len).ok_or(Error::Truncated { what })?;
    let counted = bytes.get(*at..end).ok_or(Error::Truncated { what })?;
    *at = end;
    Ok(counted)
}

impl<'a> Tokens<'a> {
    /// Bytes of the document read so far.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// How many elements are open.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    fn byte(&mut self, what: &'static str) -> Result<u8, Error> {
        byte(self.document, &mut self.at, what)
    }

    fn integer(&mut self, what: &'static str) -> Result<u32, Error> {
        decode_u32(self.document, &mut self.at, what)
    }

    fn text(&mut self) -> Result<&'a [u8], Error> {
        let rest = self.document.get(self.at..).unwrap_or(&[]);
        let what = "an inline string";
        let len = terminator(rest, self.wide).ok_or(Error::Truncated { what })?;
        self.at += len + 1 + usize::from(self.wide);
        Ok(&rest[..len])
    }

    /// Takes page switches, which version 1.2 brought, and the token behind them.
    fn switched(&mut self) -> Result<u8, Error> {
        let mut code = self.byte("a token")?;
        while code == global::SWITCH_PAGE {
            if self.version < 2 {
                let value = u64::from(self.version);
                return Err(Error::Peer { what: "a page switch before version 1.2", value });
            }
            let page = self.byte("a code page")?;
            match self.state {
                TokenState::Tags => self.tag_page = page,
                _ => self.attribute_page = page,
            }
            code = self.byte("a token behind a page switch")?;
        }
        Ok(code)
    }

    fn token(&mut self) -> Result<Option<Token<'a>>, Error> {
        if self.state == TokenState::Tags && self.depth == 0 {
            if self.root && self.at == self.document.len() {
                return Ok(None);
            }
            return self.outside().map(Some);
        }
        let code = self.switched()?;
        let token = match code {
            global::END => return self.end().map(Some),
            global::ENTITY => Token::Entity(self.integer("an entity")?),
            global::STR_I => Token::String(self.text()?),
            global::STR_T => Token::TableString { index: self.integer("an index")? },
            global::OPAQUE => {
                let in_attributes = self.state != TokenState::Tags;
                if self.version < 1 + u8::from(in_attributes) {
                    let value = u64::from(self.version);
                    return Err(Error::Peer { what: "opaque data before its version", value });
                }
                Token::Opaque(counted(self.document, &mut self.at, "opaque data")?)
            }
            0x40..=0x42 => Token::ExtensionString { number: code & 3, text: self.text()? },
            0x80..=0x82 => {
                Token::ExtensionIndex { number: code & 3, value: self.integer("an extension")? }
            }
            0xc0..=0xc2 => Token::Extension { number: code & 3 },
            _ if self.state == TokenState::Tags => return self.tag(code).map(Some),
            _ => return self.attribute(code).map(Some),
        };
        if self.state != TokenState::Tags && !self.attribute {
            return Err(Error::Peer { what: "a value before any attribute", value: code.into() });
        }
        Ok(Some(token))
    }

    /// A token where only the root element and instructions may stand.
    fn outside(&mut self) -> Result<Token<'a>, Error> {
        let code = self.switched()?;
        if code != global::PI && (self.root || code & 0x3f < 4) {
            return Err(Error::Peer {
                what: "a token outside the root element",
                value: code.into(),
            });
        }
        self.tag(code)
    }

    fn tag(&mut self, code: u8) -> Result<Token<'a>, Error> {
        if code == global::PI {
            self.state = TokenState::Pi;
            self.attribute = false;
            return Ok(Token::Pi);
        }
        let attributes = code & global::HAS_ATTRIBUTES != 0;
        let content = code & global::HAS_CONTENT != 0;
        let page = self.tag_page;
        let token = match code & 0x3f {
            4 => Token::LiteralTag { index: self.integer("a name's index")?, attributes, content },
            code @ 5.. => Token::Tag { page, code, attributes, content },
            _ => return Err(Error::Peer { what: "a token that is no tag", value: code.into() }),
        };
        self.root = true;
        if attributes {
            self.state = TokenState::Attributes(content);
            self.attribute = false;
        } else if content {
            self.depth += 1;
        }
        Ok(token)
    }

    fn attribute(&mut self, code: u8) -> Result<Token<'a>, Error> {
        let page = self.attribute_page;
        let second = self.attribute && self.state == TokenState::Pi;
        match code {
            0x85.. if self.attribute => Ok(Token::AttributeValue { page, code }),
            _ if second => Err(Error::Peer {
                what: "a second attribute of an instruction",
                value: code.into(),
            }),
            global::LITERAL => {
                self.attribute = true;
                Ok(Token::LiteralAttribute { index: self.integer("a name's index")? })
            }
            0x05..=0x3f | 0x45..=0x7f => {
                self.attribute = true;
                Ok(Token::AttributeStart { page, code })
            }
            _ => Err(Error::Peer { what: "a token that is no attribute", value: code.into() }),
        }
    }

    fn end(&mut self) -> Result<Token<'a>, Error> {
        let empty = Error::Peer { what: "an attribute list without an attribute", value: 1 };
        match self.state {
            TokenState::Attributes(_) | TokenState::Pi if !self.attribute => Err(empty),
            TokenState::Attributes(content) => {
                self.state = TokenState::Tags;
                self.depth += usize::from(content);
                Ok(Token::EndAttributes)
            }
            TokenState::Pi => {
                self.state = TokenState::Tags;
                Ok(Token::EndPi)
            }
            _ => {
                self.depth -= 1;
                Ok(Token::End)
            }
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Result<Token<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == TokenState::Over {
            return None;
        }
        let token = self.token().transpose();
        if !matches!(token, Some(Ok(_))) {
            self.state = TokenState::Over;
        }
        token
    }
}
