//! Streams in blocks to events or XML text.

use std::sync::Arc;

use super::{
    NAME, Options,
    bits::{Fault, Reader},
    blocks::Blocks,
    built_in,
    decoder::{Core, Item},
    grammar::Grammars,
    header,
    read_tables::KEPT_BYTES,
    to_xml::ToXml,
};
use crate::{Error, Limits};

/// Says which grammars a stream with these options needs; `None` if it has no schema.
pub type Resolve<'a> = dyn FnMut(&Options) -> Result<Option<Arc<Grammars>>, Error> + Send + 'a;

/// What a stream says (EXI §4), with its names and values as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// SD
    StartDocument,
    /// ED: the last event.
    EndDocument,
    /// SE
    StartElement {
        /// Namespace, empty for none.
        uri: &'a str,
        /// Local name.
        local: &'a str,
        /// If prefixes are kept and an earlier declaration is meant.
        prefix: Option<&'a str>,
    },
    /// EE
    EndElement,
    /// AT
    Attribute {
        /// Namespace, empty for none.
        uri: &'a str,
        /// Local name.
        local: &'a str,
        /// If prefixes are kept.
        prefix: Option<&'a str>,
        /// As it is written in XML.
        value: &'a str,
    },
    /// AT(xsi:type), whose value is a name.
    Type {
        /// Namespace of the type.
        uri: &'a str,
        /// Local name of the type.
        local: &'a str,
        /// If prefixes are kept.
        prefix: Option<&'a str>,
    },
    /// NS
    Namespace {
        /// Namespace, empty for none.
        uri: &'a str,
        /// Declared prefix, empty for the default.
        prefix: &'a str,
        /// Whether it is the prefix of the element itself.
        local_element: bool,
    },
    /// CH
    Characters(&'a str),
    /// CM
    Comment(&'a str),
    /// PI
    ProcessingInstruction {
        /// For whom.
        target: &'a str,
        /// The rest.
        data: &'a str,
    },
    /// DT
    Doctype {
        /// Name of the root.
        name: &'a str,
        /// Public identifier.
        public: &'a str,
        /// System identifier.
        system: &'a str,
        /// Internal subset.
        text: &'a str,
    },
    /// ER
    EntityReference(&'a str),
    /// SC: the element that has begun can be read alone.
    SelfContained,
}

/// Reads a stream that comes in blocks, cut anywhere.
///
/// Bit- and byte-packed streams are read as they come, in memory that does not depend on their
/// length but for what they put into tables; of streams of channels, one block is held.
///
/// One decoder may be kept for many documents: [`Decoder::reset`] makes it as new but for its
/// memory and the names of the schema, which for small documents is most of the work. Tables,
/// buffers and rules beyond some MiB are given back then.
///
/// ```
/// use longwire_codec::{Limits, exi::{self, Decoder}};
/// let (options, limits) = (exi::Options::default(), Limits::default());
/// let mut decoder = Decoder::new(&options, Box::new(|_| Ok(None)), &limits);
/// let mut text = Vec::new();
/// for document in ["<a>x</a>", "<b>y</b>"] {
///     let stream = exi::encode(document.as_bytes(), &options, None, &limits)?;
///     text.clear();
///     decoder.decode(&stream, &mut text)?;
///     assert_eq!(text, document.as_bytes());
/// }
/// # Ok::<(), longwire_codec::Error>(())
/// ```
pub struct Decoder<'r> {
    /// Those that hold.
    options: Options,
    /// Those that were agreed on.
    agreed: Options,
    resolve: Box<Resolve<'r>>,
    limits: Limits,
    /// Whether the header was read, and `core` is of this document.
    ready: bool,
    core: Option<Core>,
    data: Vec<u8>,
    /// Position in `data` in bits.
    at: usize,
    /// Bytes of the stream before `data`.
    before: u64,
    /// Bytes behind `at` that are wanted before the next try.
    wanted: usize,
    last: bool,
    done: bool,
    aligned: bool,
    /// Whether all is there, and events come one by one.
    straight: bool,
    /// Of a stream of channels.
    blocks: Option<Blocks>,
    to_xml: Option<ToXml>,
    /// Whether that is of this document.
    has_text: bool,
    output_bytes: u64,
}

impl std::fmt::Debug for Decoder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("options", &self.options).finish_non_exhaustive()
    }
}

impl<'r> Decoder<'r> {
    /// A decoder before its first block. `options` are those agreed on out of band; a header's own
    /// options replace them. `resolve` is asked once, with the options that hold; of documents that
    /// follow each other, again when these differ from those before.
    #[must_use]
    pub fn new(options: &Options, resolve: Box<Resolve<'r>>, limits: &Limits) -> Self {
        Self {
            options: options.clone(),
            agreed: options.clone(),
            resolve,
            limits: *limits,
            ready: false,
            core: None,
            data: Vec::new(),
            at: 0,
            before: 0,
            wanted: 0,
            last: false,
            done: false,
            aligned: false,
            straight: false,
            blocks: None,
            to_xml: None,
            has_text: false,
            output_bytes: 0,
        }
    }

    /// Ready for another document, however far and in what state the last one was left. Nothing of
    /// it has an influence on the next.
    pub fn reset(&mut self) {
        self.data.clear();
        self.data.shrink_to(KEPT_BYTES);
        if self.options != self.agreed {
            self.options = self.agreed.clone();
        }
        (self.at, self.before, self.wanted, self.output_bytes) = (0, 0, 0, 0);
        (self.ready, self.last, self.done, self.aligned) = (false, false, false, false);
        (self.straight, self.blocks, self.has_text) = (false, None, false);
    }

    /// Decodes a whole stream after a [`Decoder::reset`], and appends its XML text to `out`. Other
    /// than [`Decoder::text`] it declares namespaces at the root where prefixes are not kept.
    ///
    /// # Errors
    /// As [`Decoder::text`].
    pub fn decode(&mut self, stream: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        self.reset();
        self.push(stream, true)?;
        self.ready()?;
        let mut to_xml = self.new_text(!self.options.fragment);
        std::mem::swap(out, &mut to_xml.out);
        let result = self.run(&mut to_xml);
        if result.is_ok() {
            to_xml.finish();
        }
        std::mem::swap(out, &mut to_xml.out);
        self.to_xml = Some(to_xml);
        result
    }

    /// A writer of text for a new document.
    fn new_text(&mut self, whole: bool) -> ToXml {
        let prefixes = self.options.preserve.prefixes;
        self.has_text = true;
        let Some(mut kept) = self.to_xml.take() else { return ToXml::new(prefixes, whole) };
        kept.reset(prefixes, whole);
        kept
    }

    /// The options that hold: those of the header once that was read.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Adds a block; `last` says that no other follows.
    ///
    /// # Errors
    /// [`Limits::message_bytes`] of what has to be held, and bytes behind the end of the document.
    pub fn push(&mut self, block: &[u8], last: bool) -> Result<(), Error> {
        if self.done && !block.is_empty() {
            return Err(self.error(BEHIND));
        }
        let whole = (self.at / 8).min(self.data.len());
        self.data.drain(..whole);
        self.before += whole as u64;
        self.at -= whole * 8;
        if block.len() > self.limits.message_bytes.saturating_sub(self.data.len()) {
            return Err(self.error(Fault::Limit(&"message_bytes")));
        }
        self.data.extend_from_slice(block);
        self.last |= last;
        Ok(())
    }

    #[cold]
    fn error(&self, fault: Fault) -> Error {
        let offset = self.before + (self.at / 8).min(self.data.len()) as u64;
        let malformed =
            |what: &str| Error::Malformed { codec: NAME, offset, what: what.to_owned() };
        match fault {
            Fault::Short => malformed("the stream ends inside an event"),
            Fault::Bad(what) => malformed(what),
            Fault::Limit(what) => {
                Error::Limit { codec: NAME, what: format!("the limit {what} is reached") }
            }
        }
    }

    /// The next event, or `None` if another block is needed or the stream is over.
    ///
    /// # Errors
    /// What is not EXI, with its offset, and limits. Behind an error only [`Decoder::reset`] helps.
    #[inline(always)]
    #[expect(clippy::should_implement_trait, reason = "the event borrows from the decoder")]
    pub fn next(&mut self) -> Result<Option<Event<'_>>, Error> {
        if !self.item(true)? {
            return Ok(None);
        }
        let Some(core) = &self.core else { return Ok(None) };
        // Written where it is handed out: to copy an event costs as much as to read one.
        Ok(Some(match *core.item() {
            Item::Start { name, prefix: id } => {
                let (uri, local) = core.names().words(name);
                Event::StartElement { uri, local, prefix: prefix(core, name, id) }
            }
            Item::End => Event::EndElement,
            Item::Attribute { name, prefix: id } => {
                let (uri, local) = core.names().words(name);
                Event::Attribute { uri, local, prefix: prefix(core, name, id), value: core.str() }
            }
            Item::Characters => Event::Characters(core.str()),
            _ => return rare(core).map(Some).map_err(|fault| self.error(fault)),
        }))
    }

    /// Appends as much XML text as the blocks so far give.
    ///
    /// # Errors
    /// As [`Decoder::next`], and [`Limits::output_bytes`].
    pub fn text(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut to_xml = match self.to_xml.take_if(|_| self.has_text) {
            Some(to_xml) => to_xml,
            None if self.ready()? => self.new_text(false),
            None => return Ok(()),
        };
        std::mem::swap(out, &mut to_xml.out);
        let result = self.run(&mut to_xml);
        std::mem::swap(out, &mut to_xml.out);
        self.to_xml = Some(to_xml);
        result
    }

    fn run(&mut self, to_xml: &mut ToXml) -> Result<(), Error> {
        let begin = to_xml.out.len();
        let left = self.limits.output_bytes.saturating_sub(self.output_bytes);
        let most = begin.saturating_add(usize::try_from(left).unwrap_or(usize::MAX));
        while self.item(false)? {
            let Some(core) = &self.core else { break };
            to_xml.item(core).map_err(|fault| self.error(fault))?;
            if to_xml.out.len() > most {
                return Err(self.error(Fault::Limit(&"output_bytes")));
            }
        }
        self.output_bytes += (to_xml.out.len() - begin) as u64;
        Ok(())
    }

    /// Whether the header was read.
    fn ready(&mut self) -> Result<bool, Error> {
        if self.ready {
            return Ok(true);
        }
        let mut from = Reader::new(&self.data, self.at, false);
        let options = match header::read_options(&mut from, &self.options, &self.limits) {
            Ok(options) => options,
            Err(Fault::Short) if !self.last => return Ok(false),
            Err(fault) => return Err(self.error(fault)),
        };
        self.aligned = header::is_aligned(&options);
        if self.aligned {
            from.align();
        }
        self.at = from.at;
        self.options = options;
        match &mut self.core {
            Some(core) if core.is_for(&self.options) => core.reset(),
            core => {
                *core = None;
                let grammars = (self.resolve)(&self.options)?;
                let grammars = grammars.unwrap_or_else(|| built_in::shared(&self.options));
                let new = Core::new(grammars, &self.options, &self.limits);
                self.core = Some(new.map_err(|fault| self.error(fault))?);
            }
        }
        let blocks = self.core.as_ref().is_some_and(|core| core.plan.is_some());
        self.blocks = blocks.then(|| Blocks::new(&self.options, &self.limits));
        self.ready = true;
        Ok(true)
    }

    /// Brings the next event to [`Core::item`], if it is there. `look`: its value is to be a
    /// string.
    #[inline(always)]
    fn item(&mut self, look: bool) -> Result<bool, Error> {
        let Some(core) = self.core.as_mut().filter(|_| self.straight) else {
            let found = self.item_of_block()?;
            if let Some(core) = self.core.as_mut().filter(|_| found && look) {
                core.look_in_table();
            }
            return Ok(found);
        };
        if !core.take() {
            let mut from = Reader::new(&self.data, self.at, self.aligned);
            let found = core.read_ahead(&mut from);
            self.at = from.at;
            if let Err(fault) = found {
                return Err(self.error(fault));
            }
            core.take();
        }
        match *core.item() {
            Item::Characters | Item::Attribute { .. } if look => core.look(),
            Item::EndDocument => self.finish()?,
            _ => {}
        }
        Ok(true)
    }

    /// The same where not all is there, or where events come in blocks.
    #[inline(never)]
    fn item_of_block(&mut self) -> Result<bool, Error> {
        if self.done || !self.ready()? {
            return Ok(false);
        }
        let Some(core) = &mut self.core else { return Ok(false) };
        if core.plan.is_some() {
            return self.queued();
        }
        self.straight = self.last && core.may_read_ahead();
        if !self.last && self.data.len() < self.at / 8 + self.wanted {
            return Ok(false);
        }
        let mut from = Reader::new(&self.data, self.at, self.aligned);
        match core.next(&mut from, self.last) {
            Ok(()) => {
                self.at = from.at;
                self.wanted = 0;
                if matches!(core.item(), Item::EndDocument) {
                    self.finish()?;
                }
                Ok(true)
            }
            Err(Fault::Short) if !self.last => {
                // Twice as much the next time: a long value is not read again for each block.
                self.wanted = (self.data.len() - self.at / 8) * 2 + 1;
                Ok(false)
            }
            Err(fault) => Err(self.error(fault)),
        }
    }

    /// Nothing may follow the document but the rest of its last byte.
    fn finish(&mut self) -> Result<(), Error> {
        self.done = true;
        self.straight = false;
        if self.at.div_ceil(8) < self.data.len() {
            return Err(self.error(BEHIND));
        }
        Ok(())
    }

    fn queued(&mut self) -> Result<bool, Error> {
        let Some((core, blocks)) = self.core.as_mut().zip(self.blocks.as_mut()) else {
            return Ok(false);
        };
        match blocks.next(core, &self.data, &mut self.at, self.last) {
            Ok(true) if matches!(core.item(), Item::EndDocument) => self.finish().map(|()| true),
            Ok(found) => Ok(found),
            Err(fault) => Err(self.error(fault)),
        }
    }
}

const BEHIND: Fault = Fault::Bad(&"bytes behind the end of the document");

fn text(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|_| Fault::Bad(&"not UTF-8"))
}

#[inline(always)]
fn prefix(core: &Core, name: u32, prefix: u32) -> Option<&str> {
    let known = prefix != super::tables::NONE;
    known.then(|| core.names().prefix(core.names().get(name).uri, prefix))
}

/// An item that is rare, in words.
#[inline(never)]
fn rare(core: &Core) -> Result<Event<'_>, Fault> {
    Ok(match *core.item() {
        Item::StartDocument => Event::StartDocument,
        Item::Type { target, target_prefix, .. } => {
            let (uri, local) = core.names().words(target);
            Event::Type { uri, local, prefix: prefix(core, target, target_prefix) }
        }
        Item::Namespace { uri, prefix, local } => Event::Namespace {
            uri: core.names().uri(uri),
            prefix: core.names().prefix(uri, prefix),
            local_element: local,
        },
        Item::Comment(span) => Event::Comment(text(core.slice(span))?),
        Item::Instruction(texts) => {
            let [target, data] = core.texts(texts);
            Event::ProcessingInstruction { target: text(target)?, data: text(data)? }
        }
        Item::Doctype(texts) => {
            let [name, public, system, subset] = core.texts(texts);
            Event::Doctype {
                name: text(name)?,
                public: text(public)?,
                system: text(system)?,
                text: text(subset)?,
            }
        }
        Item::Entity(span) => Event::EntityReference(text(core.slice(span))?),
        Item::SelfContained { .. } => Event::SelfContained,
        Item::EndDocument
        | Item::Start { .. }
        | Item::End
        | Item::Attribute { .. }
        | Item::Characters => Event::EndDocument,
    })
}

/// Decodes a whole stream to XML text; see [`Decoder::new`] for `options` and `resolve`.
///
/// # Errors
/// What is not EXI, with its offset; limits; what `resolve` says.
pub fn decode_with(
    stream: &[u8],
    options: &Options,
    resolve: &mut Resolve<'_>,
    limits: &Limits,
) -> Result<Vec<u8>, Error> {
    let mut decoder = Decoder::new(options, Box::new(|options| resolve(options)), limits);
    let mut out = Vec::with_capacity(stream.len().saturating_mul(4).min(1 << 20));
    decoder.decode(stream, &mut out)?;
    Ok(out)
}

/// Decodes a whole stream to XML text, with the grammars that its options need.
///
/// # Errors
/// As [`decode_with`].
pub fn decode(
    stream: &[u8],
    options: &Options,
    grammars: Option<&Arc<Grammars>>,
    limits: &Limits,
) -> Result<Vec<u8>, Error> {
    decode_with(stream, options, &mut |_| Ok(grammars.cloned()), limits)
}
