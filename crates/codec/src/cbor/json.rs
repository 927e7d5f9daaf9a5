//! JSON into CBOR.

use proto::cbor::{FALSE, NULL, TRUE};

use crate::{Encoder, Error, Limits};

use super::{
    NAME, Settings, number, over,
    scan::{Scanner, Token},
    sort::{SORT_DEPTH, sorted},
    write::Writer,
};

/// The CBOR of a JSON text, lengths definite. Errors: it is not JSON (RFC 8259) in UTF-8, has half
/// a surrogate pair in a string, is over [`Limits::message_bytes`] or nested over
/// [`Limits::depth`], in deterministic form 512 levels at most.
pub fn from_json(json: &[u8], settings: &Settings, limits: &Limits) -> Result<Vec<u8>, Error> {
    let most = limits.message_bytes;
    if json.len() > most {
        let what = format!("message of {} bytes, over the {most} of message_bytes", json.len());
        return Err(over(what));
    }
    let depth = if settings.deterministic { limits.depth.min(SORT_DEPTH) } else { limits.depth };
    let mut scanner = Scanner::new(&Limits { depth, ..*limits });
    let mut writer = Writer::definite(limits, settings.deterministic);
    let mut at = 0;
    loop {
        let (token, used) = scanner.next(json.get(at..).unwrap_or_default(), true)?;
        at += used;
        match token {
            Some(token) => put(token, &mut writer)?,
            None => break,
        }
    }
    let coded = writer.finish();
    if settings.deterministic { sorted(&coded) } else { Ok(coded) }
}

fn put(token: Token<'_>, writer: &mut Writer) -> Result<(), Error> {
    match token {
        Token::StartArray => return writer.start(false),
        Token::StartObject => return writer.start(true),
        Token::EndArray | Token::EndObject => writer.end(),
        Token::Text(text) | Token::Part(text) => writer.text(&text),
        Token::Number(text) => {
            let mut item = Vec::with_capacity(16);
            number::encode(text, |bytes| item.extend_from_slice(bytes));
            writer.item(&item);
        }
        Token::False => writer.simple(FALSE),
        Token::True => writer.simple(TRUE),
        Token::Null => writer.simple(NULL),
    }
    Ok(())
}

/// The CBOR of a JSON text that comes in parts, in memory that does not grow with it but for the
/// depth: arrays and maps have indefinite lengths, long strings come in chunks.
#[derive(Debug)]
pub struct JsonEncoder {
    scanner: Scanner,
    writer: Writer,
    /// What of the text is not a whole token yet.
    pending: Vec<u8>,
    in_text: bool,
    closed: bool,
}

impl JsonEncoder {
    /// Reads a text from its begin.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            scanner: Scanner::new(limits),
            writer: Writer::indefinite(),
            pending: Vec::new(),
            in_text: false,
            closed: false,
        }
    }

    /// Bytes of the text that are held.
    #[cfg(test)]
    pub(super) fn pending_bytes(&self) -> usize {
        self.pending.len()
    }

    fn put(&mut self, token: Token<'_>) -> Result<(), Error> {
        match token {
            Token::Part(text) => {
                if !self.in_text {
                    self.writer.start_text();
                }
                self.in_text = true;
                self.writer.chunk(&text);
            }
            Token::Text(text) if self.in_text => {
                self.in_text = false;
                if !text.is_empty() {
                    self.writer.chunk(&text);
                }
                self.writer.end_text();
            }
            token => put(token, &mut self.writer)?,
        }
        Ok(())
    }
}

impl Encoder for JsonEncoder {
    /// Appends the items that are complete with `block`. Errors: as those of [`from_json`], and a
    /// block behind the last.
    fn encode(&mut self, block: &[u8], last: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.closed {
            return Err(Error::Option { what: format!("{NAME}: a block behind the last") });
        }
        self.closed = last;
        let mut input = std::mem::take(&mut self.pending);
        input.extend_from_slice(block);
        let mut at = 0;
        loop {
            let (token, used) = self.scanner.next(input.get(at..).unwrap_or_default(), last)?;
            at += used;
            match token {
                Some(token) => self.put(token)?,
                None => break,
            }
        }
        self.writer.take(out);
        input.drain(..at);
        self.pending = input;
        Ok(())
    }
}
