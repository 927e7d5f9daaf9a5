//! From XML text to a stream.

mod canonical;

use std::{collections::BTreeSet, sync::Arc};

use memchr::memchr;

use super::{
    NAME, Options,
    bits::{Fault, Writer},
    built_in,
    decoder::{XSI_NIL, XSI_TYPE},
    grammar::{self, Grammars, QName},
    header,
    tables::{MAX_PREFIXES, NONE},
    walk::{Kind, Walk},
};
use crate::{
    Error, Limits,
    xml::{self, Scanner, Start},
};

const DEFAULTS: &str = "default values of attributes in DOCTYPE, which nobody could supply without \
                        it: preserve dtd, or write the attributes out";
const XML_SPACE: QName = QName { uri: 1, local: 3 };

/// Turns the events of the XML reader into those of EXI.
#[derive(Debug)]
struct Driver {
    walk: Walk,
    options: Options,
    /// Numbers of the walk by those of the reader; [`NONE`] for those not met yet.
    names: Vec<u32>,
    uris: Vec<u32>,
    /// Text since the last tag that could not be written yet.
    held: String,
    /// Whether the last event was a start tag.
    after_start: bool,
    /// Whether a reference to an entity stands beside the next text.
    beside_entity: bool,
    depth: usize,
    /// Where `xml:space` was said, and whether to preserve.
    spaces: Vec<(usize, bool)>,
    /// Names of elements that can be read alone, in order.
    alone: Vec<u32>,
    /// Attributes of a start tag in their order: name, and number in the tag.
    order: Vec<(u32, usize)>,
    started: bool,
    /// Whether tags count without prefixes, declarations and elements that are read alone.
    is_bare: bool,
    /// Elements at the begin that are not of the document: the one around a fragment.
    around: usize,
    /// Whether the last byte is filled.
    fills: bool,
}

impl Driver {
    fn new(mut walk: Walk, options: &Options) -> Self {
        let alone = alone(&mut walk, options);
        Self {
            walk,
            is_bare: alone.is_empty() && !options.preserve.prefixes,
            alone,
            options: options.clone(),
            names: Vec::new(),
            uris: Vec::new(),
            held: String::new(),
            after_start: false,
            beside_entity: false,
            depth: 0,
            spaces: Vec::new(),
            order: Vec::new(),
            started: false,
            around: usize::from(options.fragment),
            fills: true,
        }
    }

    /// Takes the token just found at the begin of `input`, and says whether that was the last one.
    /// Most are no event before: to move one costs more than to read it.
    #[inline(always)]
    fn token(&mut self, kind: xml::Kind, input: &str, scanner: &Scanner) -> Result<bool, Error> {
        let result = match kind {
            xml::Kind::Start => self.start(input, scanner),
            xml::Kind::End => self.end(),
            xml::Kind::Plain => self.text(scanner.plain_text(input), scanner),
            xml::Kind::Eof => self.eof(),
            _ => self.rare(kind, input, scanner),
        };
        match result {
            Ok(()) => Ok(kind == xml::Kind::Eof),
            Err(fault) => Err(error(fault, scanner.offset())),
        }
    }

    /// Makes ready for another document behind one that ended well. The numbers of names are those
    /// of the scanner and the walk still.
    fn restart(&mut self) {
        self.walk.restart();
        self.held.clear();
        self.spaces.clear();
        (self.after_start, self.beside_entity, self.started) = (false, false, false);
        self.depth = 0;
    }

    fn eof(&mut self) -> Result<(), Fault> {
        self.begin()?;
        self.walk.end_document()?;
        if self.fills {
            self.walk.to.align();
        }
        Ok(())
    }

    #[inline(never)]
    fn rare(&mut self, kind: xml::Kind, input: &str, scanner: &Scanner) -> Result<(), Fault> {
        let preserve = self.options.preserve;
        match scanner.event(kind, input) {
            xml::Event::Text(text) => self.text(&text, scanner)?,
            xml::Event::Comment(text) if preserve.comments => {
                self.begin()?;
                self.flush(self.options.canonical)?;
                self.walk.strings(Kind::Comment, grammar::Event::Comment, &[&text])?;
            }
            xml::Event::Pi { target, data } if preserve.pis => {
                self.begin()?;
                self.flush(self.options.canonical)?;
                let event = grammar::Event::ProcessingInstruction;
                self.walk.strings(Kind::Instruction, event, &[target, &data])?;
            }
            xml::Event::Doctype(doctype) if preserve.dtd => {
                self.begin()?;
                let parts = [doctype.name, doctype.public, doctype.system, doctype.subset];
                self.walk.strings(Kind::Doctype, grammar::Event::Doctype, &parts)?;
            }
            xml::Event::Doctype(doctype) if xml::has_defaults(doctype.subset) => {
                return Err(Fault::Bad(&DEFAULTS));
            }
            xml::Event::EntityRef(name) => {
                if !preserve.dtd {
                    return Err(Fault::Bad(&"a reference to an entity: preserve dtd to keep it"));
                }
                // White space beside it is part of a text.
                self.beside_entity = true;
                self.flush(false)?;
                self.beside_entity = true;
                self.walk.strings(Kind::Entity, grammar::Event::EntityReference, &[name])?;
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Fault> {
        if std::mem::replace(&mut self.started, true) { Ok(()) } else { self.walk.start_document() }
    }

    /// The walk's number of a name.
    #[inline]
    fn name(&mut self, id: xml::NameId, scanner: &Scanner) -> u32 {
        match self.names.get(id.index()) {
            Some(&name) if name != NONE => name,
            _ => self.new_name(id, scanner),
        }
    }

    #[cold]
    fn new_name(&mut self, id: xml::NameId, scanner: &Scanner) -> u32 {
        let found = scanner.names().name(id);
        let uri = self.uri(found.uri_id, scanner);
        let name = self.walk.names.name(uri, found.local);
        if id.index() >= self.names.len() {
            self.names.resize(id.index() + 1, NONE);
        }
        self.names[id.index()] = name;
        name
    }

    fn uri(&mut self, id: xml::UriId, scanner: &Scanner) -> u32 {
        if let Some(&uri) = self.uris.get(id.index()).filter(|&&uri| uri != NONE) {
            return uri;
        }
        let uri = self.walk.names.uri(scanner.names().uri(id));
        if id.index() >= self.uris.len() {
            self.uris.resize(id.index() + 1, NONE);
        }
        self.uris[id.index()] = uri;
        uri
    }

    fn start(&mut self, input: &str, scanner: &Scanner) -> Result<(), Fault> {
        self.flush(false)?;
        self.depth += 1;
        self.begin()?;
        if self.depth <= self.around {
            return Ok(());
        }
        let name = self.name(scanner.start_name(), scanner);
        if self.is_bare && scanner.attributes().is_empty() {
            self.after_start = true;
            return self.walk.start(name, "");
        }
        self.whole_start(name, &scanner.start_tag(input), scanner)
    }

    /// A start tag of which more counts than its name.
    fn whole_start(
        &mut self,
        name: u32,
        start: &Start<'_>,
        scanner: &Scanner,
    ) -> Result<(), Fault> {
        self.walk.start(name, start.prefix)?;
        let alone = !self.alone.is_empty() && self.alone.binary_search(&name).is_ok();
        if alone {
            self.self_contained(name, start, scanner)?;
        }
        let prefixes = self.options.preserve.prefixes && !self.options.strict;
        let canonical = self.options.canonical;
        if canonical && prefixes {
            self.sorted_namespaces(start, scanner, alone)?;
        }
        if prefixes && !canonical {
            for declared in scanner.declarations() {
                let (prefix, uri) = (declared.prefix(start), self.uri(declared.uri, scanner));
                self.walk.namespace(uri, prefix, prefix == start.prefix)?;
            }
        }
        if !scanner.attributes().is_empty() {
            self.attributes(start, scanner)?;
        }
        self.after_start = true;
        Ok(())
    }

    /// SC, and the prefixes in scope that the element does not declare itself: who reads it alone
    /// does not see them elsewhere.
    fn self_contained(
        &mut self,
        name: u32,
        start: &Start<'_>,
        scanner: &Scanner,
    ) -> Result<(), Fault> {
        if scanner.scope().len() > MAX_PREFIXES {
            return Err(Fault::Limit(&"1024 prefixes in scope"));
        }
        self.walk.self_contained(name, start.prefix)?;
        if !self.options.preserve.prefixes || self.options.canonical {
            return Ok(());
        }
        let mut hidden: BTreeSet<&str> =
            scanner.declarations().iter().map(|declared| declared.prefix(start)).collect();
        for (prefix, uri) in scanner.scope() {
            // No default namespace is what there is without a declaration.
            let is_none = prefix.is_empty() && uri == xml::UriId::NONE;
            if hidden.insert(prefix) && !is_none {
                let uri = self.uri(uri, scanner);
                self.walk.namespace(uri, prefix, prefix == start.prefix)?;
            }
        }
        Ok(())
    }

    fn attributes(&mut self, start: &Start<'_>, scanner: &Scanner) -> Result<(), Fault> {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        let all = scanner.attributes();
        for (at, attribute) in all.iter().enumerate() {
            order.push((self.name(attribute.name, scanner), at));
        }
        let names = &self.walk.names;
        let first = [names.initial(XSI_TYPE), names.initial(XSI_NIL), names.initial(XML_SPACE)];
        let rank = |name: u32| first[..2].iter().position(|&one| one == name).unwrap_or(2);
        if order.len() > 1 {
            if self.walk.has_schema() || self.options.canonical {
                // EXI §8.5.4.1.3.2: by local name, then by namespace.
                order.sort_by(|a, b| {
                    let key = |name| (rank(name), names.sort_key(name));
                    key(a.0).cmp(&key(b.0))
                });
            } else if order.iter().any(|&(name, _)| rank(name) < 2) {
                order.sort_by_key(|&(name, _)| rank(name));
            }
        }
        for &(name, at) in &order {
            let value = all[at].value(start);
            let prefix = all[at].prefix(start);
            if name == first[0] {
                self.type_attribute(prefix, &value, scanner)?;
                continue;
            }
            if name == first[2] {
                self.spaces.push((self.depth, &*value == "preserve"));
            }
            self.walk.attribute(name, prefix, &value)?;
        }
        self.order = order;
        Ok(())
    }

    /// `xsi:type`: its value is a name in the namespaces in scope (EXI §8.5.4.4).
    fn type_attribute(
        &mut self,
        prefix: &str,
        value: &str,
        scanner: &Scanner,
    ) -> Result<(), Fault> {
        let text = value.trim();
        let colon = memchr(b':', text.as_bytes());
        let (before, local) = colon.map_or(("", text), |at| (&text[..at], &text[at + 1..]));
        let (uri, local, before) = match scanner.namespace(before) {
            Some(uri) => (self.uri(uri, scanner), local, before),
            None => (0, text, ""),
        };
        let target = self.walk.names.name(uri, local);
        self.walk.type_attribute(prefix, target, before, value)
    }

    fn end(&mut self) -> Result<(), Fault> {
        self.flush(true)?;
        self.depth -= 1;
        if self.depth < self.around {
            return Ok(());
        }
        while self.spaces.last().is_some_and(|space| space.0 > self.depth) {
            self.spaces.pop();
        }
        self.walk.end()
    }

    /// Text that a tag follows is written at once; other text waits for what may belong to it.
    #[inline]
    fn text(&mut self, text: &str, scanner: &Scanner) -> Result<(), Fault> {
        match scanner.text_ends_element() {
            Some(ends) if self.held.is_empty() => self.characters(text, ends),
            _ => {
                self.held.push_str(text);
                Ok(())
            }
        }
    }

    /// Writes the text that was held, before a tag or something else.
    #[inline(always)]
    fn flush(&mut self, ends: bool) -> Result<(), Fault> {
        let written = if self.held.is_empty() { Ok(()) } else { self.flush_held(ends) };
        self.after_start = false;
        written
    }

    #[cold]
    fn flush_held(&mut self, ends: bool) -> Result<(), Fault> {
        let mut held = std::mem::take(&mut self.held);
        self.characters(&held, ends)?;
        held.clear();
        self.held = held;
        Ok(())
    }

    /// Writes text, before an end tag if it `ends` the element. White space between tags is left
    /// out unless the document or the options preserve it; that between a start and its end tag is
    /// a value.
    #[inline(always)]
    fn characters(&mut self, text: &str, ends: bool) -> Result<(), Fault> {
        let simple = std::mem::replace(&mut self.after_start, false) && ends;
        if self.options.canonical {
            return self.canonical_text(text, simple);
        }
        let beside = std::mem::replace(&mut self.beside_entity, false);
        let blank = !beside && super::lexical::is_blank(text.as_bytes());
        if !blank || self.keeps_blank(simple) { self.walk.characters(text) } else { Ok(()) }
    }

    fn keeps_blank(&mut self, simple: bool) -> bool {
        if self.depth <= self.around && self.around > 0 {
            return false;
        }
        let preserve = self.spaces.last().is_some_and(|space| space.1);
        let kept = preserve || self.options.preserve.lexical;
        // Strict grammars have a place for it only where they have one for values.
        let anywhere = kept && !self.options.strict;
        (simple || kept) && (anywhere || self.walk.takes_characters())
    }
}

/// Numbers of the names that are self-contained.
fn alone(walk: &mut Walk, options: &Options) -> Vec<u32> {
    let names = options.self_contained_elements.iter().filter(|_| options.self_contained);
    let mut numbers: Vec<u32> = names
        .map(|[uri, local]| {
            let uri = walk.names.uri(uri);
            walk.names.name(uri, local)
        })
        .collect();
    numbers.sort_unstable();
    numbers
}

/// Writes a stream from XML that comes in blocks, cut anywhere.
///
/// Bit- and byte-packed streams come out as they are made; those of channels block by block
/// ([`Options::block_size`]).
#[derive(Debug)]
pub struct Encoder {
    xml: xml::Stream,
    driver: Driver,
    done: bool,
}

impl Encoder {
    /// An encoder before its first block. `grammars` must be those of the options.
    ///
    /// # Errors
    /// Options that do not go together.
    pub fn new(
        options: &Options,
        grammars: Option<Arc<Grammars>>,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let mut xml = xml::Stream::new(limits);
        let driver = driver(options, grammars, limits)?;
        if options.fragment {
            xml.push(b"<r>", false)?;
        }
        Ok(Self { xml, driver, done: false })
    }

    /// Adds a block of UTF-8; `last` says that no other follows. What is whole goes to `out`.
    ///
    /// # Errors
    /// XML that is not well-formed, or that a strict schema refuses, with its offset; limits.
    pub fn push(&mut self, block: &[u8], last: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        let around = self.driver.around > 0 && last;
        self.xml.push(block, last && !around)?;
        if around {
            self.xml.push(b"</r>", true)?;
        }
        while !self.done {
            let Some((kind, input, scanner)) = self.xml.pull()? else { break };
            self.done = self.driver.token(kind, input, scanner)?;
        }
        self.driver.walk.drain(out);
        Ok(())
    }
}

fn driver(
    options: &Options,
    grammars: Option<Arc<Grammars>>,
    limits: &Limits,
) -> Result<Driver, Error> {
    options.check()?;
    let options = &options.effective();
    let grammars = grammars.unwrap_or_else(|| built_in::shared(options));
    let mut walk = Walk::new(grammars, options, limits);
    header::begin(options, &mut walk, limits).map_err(|fault| error(fault, 0))?;
    Ok(Driver::new(walk, options))
}

/// Writes a small document behind what `to` has, without filling the last byte.
pub(crate) fn write_document(
    document: &str,
    options: &Options,
    grammars: Arc<Grammars>,
    to: Writer,
    limits: &Limits,
) -> Result<Writer, Fault> {
    let mut walk = Walk::new(grammars, options, limits);
    walk.begin(to, false);
    let mut driver = Driver { fills: false, ..Driver::new(walk, options) };
    let mut reader = xml::Reader::of(document, limits);
    loop {
        let done =
            reader.pull().and_then(|(kind, input)| driver.token(kind, input, reader.scanner()));
        if done.map_err(|_| Fault::Bad(&"options that XML cannot say"))? {
            return Ok(driver.walk.to);
        }
    }
}

#[cold]
fn error(fault: Fault, offset: u64) -> Error {
    match fault {
        Fault::Short => {
            Error::Malformed { codec: NAME, offset, what: "the document ends too early".to_owned() }
        }
        Fault::Bad(what) => Error::Malformed { codec: NAME, offset, what: (*what).to_owned() },
        Fault::Limit(what) => {
            Error::Limit { codec: NAME, what: format!("the limit {what} is reached") }
        }
    }
}

/// Encodes a whole document (or fragment), with the grammars of the options. For many documents
/// [`DocumentEncoder`] is faster.
///
/// # Errors
/// As [`Encoder::push`].
pub fn encode(
    document: &[u8],
    options: &Options,
    grammars: Option<&Arc<Grammars>>,
    limits: &Limits,
) -> Result<Vec<u8>, Error> {
    if options.fragment {
        return fragment(document, options, grammars, limits);
    }
    let text = xml::to_utf8(document, limits)?;
    Parts::new(options, grammars, limits)?.encode(&text)
}

fn fragment(
    fragment: &[u8],
    options: &Options,
    grammars: Option<&Arc<Grammars>>,
    limits: &Limits,
) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    let text = xml::to_utf8(fragment, limits)?;
    Encoder::new(options, grammars.cloned(), limits)?.push(text.as_bytes(), true, &mut out)?;
    Ok(out)
}

/// What codes a document, and knows it afterwards.
#[derive(Debug)]
struct Parts {
    scanner: Scanner,
    driver: Driver,
}

impl Parts {
    fn new(
        options: &Options,
        grammars: Option<&Arc<Grammars>>,
        limits: &Limits,
    ) -> Result<Self, Error> {
        Ok(Self {
            scanner: Scanner::new(limits),
            driver: driver(options, grammars.cloned(), limits)?,
        })
    }

    /// Bytes of what a document leaves to the next one.
    fn kept_bytes(&self) -> usize {
        self.scanner.table_bytes() + self.driver.walk.kept_bytes()
    }

    fn encode(&mut self, document: &str) -> Result<Vec<u8>, Error> {
        let Self { scanner, driver } = self;
        // Hardly a stream is longer than its document; room that is not used is never touched.
        driver.walk.to.out.reserve(document.len());
        let mut at = 0;
        loop {
            let rest = &document[at..];
            let kind = scanner.pull_whole(rest).map_err(|error| *error)?;
            at += scanner.used();
            if driver.token(kind, rest, scanner)? {
                break;
            }
        }
        let mut out = Vec::new();
        driver.walk.drain(&mut out);
        Ok(out)
    }
}

/// What is kept from one document to the next at most, in bytes: more than the names of any
/// schema context take.
pub(super) const KEPT_BYTES: usize = 1 << 20;
/// Namespaces that are kept: each takes a moment between documents.
const KEPT_URIS: usize = 1 << 8;

/// Encodes whole documents one after the other and keeps what it knows of their names, of the ways
/// through the grammars, and room: most of the time that a small document takes goes into what the
/// one before had too. Each stream stands for itself, and is the one that [`encode`] makes.
///
/// ```
/// use longwire_codec::{Limits, exi};
/// let (options, limits) = (exi::Options::default(), Limits::default());
/// let mut encoder = exi::DocumentEncoder::new(&options, None, &limits);
/// for document in [b"<a><b>1</b></a>", b"<a><b>2</b></a>"] {
///     let stream = encoder.encode(document)?;
///     assert_eq!(stream, exi::encode(document, &options, None, &limits)?);
/// }
/// # Ok::<(), longwire_codec::Error>(())
/// ```
#[derive(Debug)]
pub struct DocumentEncoder {
    options: Options,
    grammars: Option<Arc<Grammars>>,
    limits: Limits,
    kept: Option<Box<Parts>>,
}

impl DocumentEncoder {
    /// An encoder before its first document. `grammars` must be those of the options.
    #[must_use]
    pub fn new(options: &Options, grammars: Option<Arc<Grammars>>, limits: &Limits) -> Self {
        Self { options: options.clone(), grammars, limits: *limits, kept: None }
    }

    /// Encodes a whole document (or fragment).
    ///
    /// # Errors
    /// As [`Encoder::push`]; behind one the encoder is as new. Options that do not go together.
    pub fn encode(&mut self, document: &[u8]) -> Result<Vec<u8>, Error> {
        if self.options.fragment {
            return fragment(document, &self.options, self.grammars.as_ref(), &self.limits);
        }
        let text = xml::to_utf8(document, &self.limits)?;
        if let Some(mut parts) = self.kept.take() {
            match parts.encode(&text) {
                // Names of other documents do not count.
                Err(Error::Limit { .. }) => {}
                result => {
                    self.keep(parts, result.is_ok());
                    return result;
                }
            }
        }
        let parts = Parts::new(&self.options, self.grammars.as_ref(), &self.limits)?;
        let mut parts = Box::new(parts);
        let result = parts.encode(&text);
        self.keep(parts, result.is_ok());
        result
    }

    /// Bytes of names and ways that are kept.
    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |parts| parts.kept_bytes())
    }

    /// Keeps what the next document can use.
    fn keep(&mut self, mut parts: Box<Parts>, ended_well: bool) {
        let bytes = parts.kept_bytes();
        let Parts { scanner, driver } = &mut *parts;
        // Tables of elements that are read alone hang together otherwise.
        let whole = ended_well && driver.alone.is_empty();
        if whole && bytes <= KEPT_BYTES && driver.walk.names.uri_len() <= KEPT_URIS {
            scanner.clear();
            driver.restart();
            self.kept = Some(parts);
        }
    }
}
