//! CBOR into XML, by the mapping of `docs/formats/cbor-xml.md`.

use proto::cbor::{FALSE, Head, Major, NULL, TRUE};

use crate::xml::{Doctype, Event, Stream, Writer, is_nc_name};
use crate::{Error, Limits, Step, StreamDecoder};

use super::{item_error, malformed, over, xml};

/// The document of what [`from_xml`](super::from_xml) made, in UTF-8. Errors: it is not that, or
/// what comes out would not be well-formed XML, or passes a limit.
pub fn to_xml(cbor: &[u8], limits: &Limits) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(cbor.len() * 2);
    XmlDecoder::new(limits).decode(cbor, true, &mut out)?;
    Ok(out)
}

/// A head with what belongs to it.
enum Token<'a> {
    Number(u64),
    Kind(u64),
    Text(&'a str),
    Array(Option<u64>),
    Map(Option<u64>),
    Simple(u64),
    Break,
}

#[derive(Debug)]
enum Open {
    Document,
    /// An array whose first item has not come.
    Node,
    Element {
        name: usize,
        /// Whether attributes may follow.
        begun: bool,
    },
    /// Name of the attribute whose value is due.
    Attributes(Option<usize>),
    /// Comments and the like with their parts.
    Other(u64, Vec<Part>),
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Simple(u64),
}

#[derive(Debug)]
struct Frame {
    open: Open,
    /// Items to come, of a map both of a pair; `None` until a break.
    left: Option<u64>,
}

/// The document of an item that comes in parts. Memory holds a string, the names, and at most
/// 65,536 short values.
#[derive(Debug)]
pub struct XmlDecoder {
    frames: Vec<Frame>,
    names: Vec<String>,
    values: Vec<String>,
    writer: Writer,
    /// Reads what comes out, so that nothing but XML does.
    check: Stream,
    begun: bool,
    done: bool,
    offset: u64,
    made: u64,
    tables_left: usize,
    limits: Limits,
}

impl XmlDecoder {
    /// Reads an item from its begin.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            frames: Vec::new(),
            names: Vec::new(),
            values: Vec::new(),
            writer: Writer::new(),
            check: Stream::new(limits),
            begun: false,
            done: false,
            offset: 0,
            made: 0,
            tables_left: limits.table_bytes,
            limits: *limits,
        }
    }

    fn odd(&self, what: &str) -> Error {
        malformed(self.offset, what)
    }

    /// One token and its length; `None` while it is not complete.
    fn token<'a>(&self, rest: &'a [u8]) -> Result<Option<(Token<'a>, usize)>, Error> {
        let head = Head::take(rest).map_err(|error| item_error(error, self.offset))?;
        let Some(head) = head else { return Ok(None) };
        let used = usize::from(head.len);
        let count = (!head.is_indefinite()).then_some(head.argument);
        let token = match (head.major, head.info) {
            (Major::Unsigned, _) => Token::Number(head.argument),
            (Major::Negative, _) => Token::Kind(head.argument),
            (Major::Array, _) => Token::Array(count),
            (Major::Map, _) => Token::Map(count),
            (Major::Simple, 31) => Token::Break,
            (Major::Simple, ..=24) => Token::Simple(head.argument),
            (Major::Text, ..=30) => {
                let len = usize::try_from(head.argument).unwrap_or(usize::MAX);
                if len > self.limits.message_bytes {
                    return Err(over("a string over message_bytes"));
                }
                let Some(bytes) = rest.get(used..used + len) else { return Ok(None) };
                let text = str::from_utf8(bytes).map_err(|_| self.odd("not UTF-8"))?;
                return Ok(Some((Token::Text(text), used + len)));
            }
            _ => return Err(self.odd("an item that XML in CBOR does not have")),
        };
        Ok(Some((token, used)))
    }

    fn put(&mut self, token: Token<'_>) -> Result<(), Error> {
        if matches!(token, Token::Break) {
            let top = self.frames.last().filter(|top| top.left.is_none());
            if top.is_none() {
                return Err(self.odd("a break where nothing is open"));
            }
            self.close()?;
            return self.close_full();
        }
        let Some(top) = self.frames.last_mut() else {
            let Token::Array(left) = token else {
                return Err(self.odd("a document is an array"));
            };
            return self.open(Open::Document, left);
        };
        if let Some(left) = &mut top.left {
            *left -= 1;
        }
        let begun = matches!(top.open, Open::Element { begun: true, .. });
        if let Open::Element { begun, .. } = &mut top.open {
            *begun = false;
        }
        match (&mut top.open, token) {
            (Open::Document | Open::Element { .. }, Token::Array(left)) => {
                self.open(Open::Node, left)?;
            }
            (Open::Element { .. }, Token::Map(left)) if begun => {
                let left = left.map(|left| left.checked_mul(2));
                let left = left.map(|left| left.ok_or_else(|| self.odd("too many attributes")));
                self.open(Open::Attributes(None), left.transpose()?)?;
            }
            (Open::Element { .. }, token) => {
                let text = self.value(token)?;
                self.writer.text(&text);
            }
            (Open::Node, token) => self.begin(token)?,
            (Open::Attributes(name), token) => match name.take() {
                None => {
                    let name = self.name(token)?;
                    if let Some(Frame { open: Open::Attributes(due), .. }) = self.frames.last_mut()
                    {
                        *due = Some(name);
                    }
                }
                Some(name) => {
                    let value = self.value(token)?;
                    let name = self.names.get(name).map_or("", String::as_str);
                    self.writer.attribute(name, &value);
                }
            },
            (Open::Other(_, parts), Token::Text(text)) => parts.push(Part::Text(text.to_owned())),
            (Open::Other(_, parts), Token::Simple(value)) => parts.push(Part::Simple(value)),
            _ => return Err(self.odd("an item that does not belong here")),
        }
        self.close_full()
    }

    fn open(&mut self, open: Open, left: Option<u64>) -> Result<(), Error> {
        // An element and its attributes are two levels here, and the document one.
        if self.frames.len() > self.limits.depth.saturating_add(2) {
            return Err(over(format!("nesting over {} levels", self.limits.depth)));
        }
        self.frames.push(Frame { open, left });
        self.close_full()
    }

    /// Closes what has all the items that its head promised.
    fn close_full(&mut self) -> Result<(), Error> {
        while self.frames.last().is_some_and(|top| top.left == Some(0)) {
            self.close()?;
        }
        Ok(())
    }

    /// The first item of a node says what it is.
    fn begin(&mut self, token: Token<'_>) -> Result<(), Error> {
        let open = match token {
            Token::Kind(kind @ xml::COMMENT..=xml::ENTITY) => Open::Other(kind, Vec::new()),
            token => {
                let name = self.name(token)?;
                self.writer.start(self.names.get(name).map_or("", String::as_str));
                Open::Element { name, begun: true }
            }
        };
        if let Some(top) = self.frames.last_mut() {
            top.open = open;
        }
        Ok(())
    }

    fn name(&mut self, token: Token<'_>) -> Result<usize, Error> {
        match token {
            Token::Number(number) => {
                let number = usize::try_from(number).ok().filter(|at| *at < self.names.len());
                number.ok_or_else(|| self.odd("a name that has not come"))
            }
            Token::Text(text) => {
                let (prefix, local) = text.split_once(':').unwrap_or(("x", text));
                if !is_nc_name(prefix) || !is_nc_name(local) {
                    return Err(self.odd("not a name of XML"));
                }
                self.keep(text)?;
                self.names.push(text.to_owned());
                Ok(self.names.len() - 1)
            }
            _ => Err(self.odd("a name is due")),
        }
    }

    fn value(&mut self, token: Token<'_>) -> Result<String, Error> {
        match token {
            Token::Number(number) => {
                let value = usize::try_from(number).ok().and_then(|at| self.values.get(at));
                value.cloned().ok_or_else(|| self.odd("a value that has not come"))
            }
            Token::Text(text) => {
                if xml::VALUE_BYTES.contains(&text.len()) && self.values.len() < xml::MAX_VALUES {
                    self.keep(text)?;
                    self.values.push(text.to_owned());
                }
                Ok(text.to_owned())
            }
            _ => Err(self.odd("a text is due")),
        }
    }

    fn keep(&mut self, text: &str) -> Result<(), Error> {
        let left = self.tables_left.checked_sub(text.len() + size_of::<String>());
        self.tables_left = left.ok_or_else(|| over("names and values over table_bytes"))?;
        Ok(())
    }

    fn close(&mut self) -> Result<(), Error> {
        match self.frames.pop().map(|frame| frame.open) {
            Some(Open::Document) => self.done = true,
            Some(Open::Element { name, .. }) => {
                self.writer.end(self.names.get(name).map_or("", String::as_str));
            }
            Some(Open::Attributes(None)) => {}
            Some(Open::Other(kind, parts)) => self.other(kind, &parts)?,
            _ => return Err(self.odd("an array or map ends too early")),
        }
        Ok(())
    }

    fn other(&mut self, kind: u64, parts: &[Part]) -> Result<(), Error> {
        match (kind, parts) {
            (xml::COMMENT, [Part::Text(text)]) if !text.contains("--") => self.writer.comment(text),
            (xml::PI, [Part::Text(target), Part::Text(data)])
                if is_nc_name(target)
                    && !target.eq_ignore_ascii_case("xml")
                    && !data.contains("?>") =>
            {
                self.writer.pi(target, data);
            }
            (xml::ENTITY, [Part::Text(name)]) if is_nc_name(name) => self.writer.entity(name),
            (
                xml::DOCTYPE,
                [Part::Text(name), Part::Text(public), Part::Text(system), Part::Text(subset)],
            ) => self.writer.doctype(&Doctype { name, public, system, subset }),
            (
                xml::DECLARATION,
                [Part::Text(version), Part::Simple(encoding), Part::Simple(standalone)],
            ) if !self.begun && !version.contains(['"', '<', '>']) => {
                let mut text = format!("<?xml version=\"{version}\"");
                text.push_str(if *encoding == u64::from(TRUE) {
                    " encoding=\"UTF-8\""
                } else {
                    ""
                });
                text.push_str(match u8::try_from(*standalone) {
                    Ok(TRUE) => " standalone=\"yes\"",
                    Ok(FALSE) => " standalone=\"no\"",
                    Ok(NULL) => "",
                    _ => return Err(self.odd("standalone is true, false or null")),
                });
                text.push_str("?>");
                self.writer = Writer::onto(text.into_bytes());
            }
            _ => return Err(self.odd("not the parts that such a node has")),
        }
        self.begun = true;
        Ok(())
    }

    /// Hands over what was written, if it is XML.
    fn emit(&mut self, last: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        let made = self.writer.take();
        self.made += made.len() as u64;
        if self.made > self.limits.output_bytes {
            let most = self.limits.output_bytes;
            return Err(over(format!("more than the {most} bytes of output_bytes come out")));
        }
        let wrong = |offset: u64, error: Error| match error {
            Error::Malformed { what, .. } => {
                malformed(offset, format!("what comes out is no XML: {what}"))
            }
            other => other,
        };
        let offset = self.offset;
        self.check.push(&made, last).map_err(|error| wrong(offset, error))?;
        while let Some((event, _)) = self.check.next().map_err(|error| wrong(offset, error))? {
            if event == Event::Eof {
                break;
            }
        }
        out.extend_from_slice(&made);
        Ok(())
    }
}

/// What is written before it is checked and handed over, in bytes.
const EMIT_BYTES: usize = 64 << 10;

impl StreamDecoder for XmlDecoder {
    fn decode(&mut self, input: &[u8], last: bool, out: &mut Vec<u8>) -> Result<Step, Error> {
        let mut at = 0;
        while !self.done {
            let Some((token, used)) = self.token(input.get(at..).unwrap_or_default())? else {
                break;
            };
            self.put(token)?;
            at += used;
            self.offset += used as u64;
            if self.writer.len() >= EMIT_BYTES {
                self.emit(false, out)?;
            }
        }
        if self.done && at < input.len() {
            return Err(self.odd("bytes behind the document"));
        }
        if last && !self.done {
            return Err(self.odd("the document ends too early"));
        }
        self.emit(last, out)?;
        Ok(Step { used: at, done: last })
    }
}
