//! XML into CBOR, by the mapping of `docs/formats/cbor-xml.md`.

use std::collections::BTreeMap;

use proto::cbor::{FALSE, Major, NULL, TRUE, head};

use crate::xml::{Event, Names, Reader, Scanner, Start, Stream, to_utf8};
use crate::{Encoder, Error, Limits};

use super::{NAME, Settings, over, write::Writer};

/// What stands in place of a name in what is no element: −1 and down.
pub(super) const COMMENT: u64 = 0;
pub(super) const PI: u64 = 1;
pub(super) const DOCTYPE: u64 = 2;
pub(super) const DECLARATION: u64 = 3;
pub(super) const ENTITY: u64 = 4;

/// Bytes of values that are remembered; shorter ones are no longer than a reference.
pub(super) const VALUE_BYTES: std::ops::RangeInclusive<usize> = 3..=64;
/// Values that are remembered in one message.
pub(super) const MAX_VALUES: usize = 1 << 16;

/// The CBOR of an XML document, lengths definite. Errors: it is not well-formed, it is over
/// [`Limits::message_bytes`], nested over [`Limits::depth`], its names are over
/// [`Limits::table_bytes`]; or the deterministic form is asked for: this mapping has none.
pub fn from_xml(xml: &[u8], settings: &Settings, limits: &Limits) -> Result<Vec<u8>, Error> {
    if settings.deterministic {
        let what = "XML in CBOR keeps the order of attributes: no deterministic form".to_owned();
        return Err(Error::Option { what });
    }
    let most = limits.message_bytes;
    if xml.len() > most {
        let what = format!("message of {} bytes, over the {most} of message_bytes", xml.len());
        return Err(over(what));
    }
    let text = to_utf8(xml, limits)?;
    let mut reader = Reader::of(&text, limits);
    let mut mapper = Mapper::new(Writer::definite(limits, false), limits)?;
    loop {
        match reader.next()? {
            Event::Eof => break,
            event => mapper.put(event, reader.scanner())?,
        }
    }
    mapper.writer.end();
    Ok(mapper.writer.finish())
}

/// The CBOR of an XML document that comes in parts: lengths are indefinite, and memory holds a
/// token, the names and at most 65,536 short values.
#[derive(Debug)]
pub struct XmlEncoder {
    stream: Stream,
    mapper: Mapper,
    closed: bool,
}

impl XmlEncoder {
    /// Reads a document from its begin.
    pub fn new(limits: &Limits) -> Result<Self, Error> {
        let mapper = Mapper::new(Writer::indefinite(), limits)?;
        Ok(Self { stream: Stream::new(limits), mapper, closed: false })
    }
}

impl Encoder for XmlEncoder {
    /// Appends the items that are complete with `block`. Errors: as those of [`from_xml`], and a
    /// block behind the last.
    fn encode(&mut self, block: &[u8], last: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.closed {
            return Err(Error::Option { what: format!("{NAME}: a block behind the last") });
        }
        self.closed = last;
        self.stream.push(block, last)?;
        while let Some((event, scanner)) = self.stream.next()? {
            if event == Event::Eof {
                self.mapper.writer.end();
                break;
            }
            self.mapper.put(event, scanner)?;
        }
        self.mapper.writer.take(out);
        Ok(())
    }
}

/// Events into items.
#[derive(Debug)]
struct Mapper {
    writer: Writer,
    names: BTreeMap<String, u64>,
    values: BTreeMap<String, u64>,
    /// Bytes of names that may still come.
    names_left: usize,
    /// A name as written, put together.
    name: String,
}

impl Mapper {
    fn new(mut writer: Writer, limits: &Limits) -> Result<Self, Error> {
        writer.start(false)?;
        let (names, values) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { writer, names, values, names_left: limits.table_bytes, name: String::new() })
    }

    fn put(&mut self, event: Event<'_>, scanner: &Scanner) -> Result<(), Error> {
        match event {
            Event::Start(start) => self.element(&start, scanner)?,
            Event::End { .. } => self.writer.end(),
            Event::Text(text) => self.value(&text),
            Event::Comment(text) => self.other(COMMENT, &[&text])?,
            Event::Pi { target, data } => self.other(PI, &[target, &data])?,
            Event::EntityRef(name) => self.other(ENTITY, &[name])?,
            Event::Doctype(doctype) => {
                let parts = [doctype.name, doctype.public, doctype.system, doctype.subset];
                self.other(DOCTYPE, &parts)?;
            }
            Event::Declaration(declaration) => {
                self.writer.start(false)?;
                self.writer.item(&head(Major::Negative, DECLARATION));
                self.writer.text(declaration.version);
                self.writer.simple(if declaration.encoding.is_some() { TRUE } else { FALSE });
                self.writer.simple(match declaration.standalone {
                    Some(true) => TRUE,
                    Some(false) => FALSE,
                    None => NULL,
                });
                self.writer.end();
            }
            Event::Eof => {}
        }
        Ok(())
    }

    fn element(&mut self, start: &Start<'_>, scanner: &Scanner) -> Result<(), Error> {
        let names: &Names = scanner.names();
        self.writer.start(false)?;
        self.name(start.prefix, names.name(start.name).local)?;
        let (declarations, attributes) = (scanner.declarations(), scanner.attributes());
        if declarations.is_empty() && attributes.is_empty() {
            return Ok(());
        }
        self.writer.start(true)?;
        for declaration in declarations {
            match declaration.prefix(start) {
                "" => self.name("", "xmlns")?,
                prefix => self.name("xmlns", prefix)?,
            }
            self.value(names.uri(declaration.uri));
        }
        for attribute in attributes {
            self.name(attribute.prefix(start), names.name(attribute.name).local)?;
            self.value(&attribute.value(start));
        }
        self.writer.end();
        Ok(())
    }

    /// A name is written out once; its number follows from how many came before.
    fn name(&mut self, prefix: &str, local: &str) -> Result<(), Error> {
        self.name.clear();
        if !prefix.is_empty() {
            self.name.push_str(prefix);
            self.name.push(':');
        }
        self.name.push_str(local);
        if let Some(number) = self.names.get(&self.name) {
            self.writer.unsigned(*number);
            return Ok(());
        }
        let left = self.names_left.checked_sub(self.name.len() + size_of::<String>());
        self.names_left = left.ok_or_else(|| over("names over table_bytes"))?;
        self.names.insert(self.name.clone(), self.names.len() as u64);
        self.writer.text(&self.name);
        Ok(())
    }

    /// So is a short value.
    fn value(&mut self, text: &str) {
        if VALUE_BYTES.contains(&text.len()) {
            if let Some(number) = self.values.get(text) {
                self.writer.unsigned(*number);
                return;
            }
            if self.values.len() < MAX_VALUES {
                self.values.insert(text.to_owned(), self.values.len() as u64);
            }
        }
        self.writer.text(text);
    }

    fn other(&mut self, kind: u64, parts: &[&str]) -> Result<(), Error> {
        self.writer.start(false)?;
        self.writer.item(&head(Major::Negative, kind));
        parts.iter().for_each(|part| self.writer.text(part));
        self.writer.end();
        Ok(())
    }
}
