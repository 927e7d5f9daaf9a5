//! Walks grammars from events to a stream.

mod learned;
mod paths;
mod profile;
mod self_contained;
mod types;
mod values;

use std::sync::Arc;

use super::{
    Alignment, Options,
    bits::{Fault, Writer},
    built_in::{FRAGMENT, Fixed, LEARNED, PRODUCTION_BYTES, RULE_BYTES},
    channels::Plan,
    decoder::{UNTYPED, XSI_NIL},
    grammar::{Coding, Datatype, DatatypeId, Event, Grammars, QName, RuleId, TypeId, WhiteSpace},
    index::KeyMap,
    lexical::{self, Form, Typed},
    mapping,
    tables::{NONE, Names, Values},
};
use crate::Limits;
use paths::Path;

/// What is looked for in a rule; with a name it makes a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Start,
    Attribute,
    Characters,
    End,
    CharactersUntyped,
    AttributeUntyped,
    Type,
    Nil,
    StartDocument,
    EndDocument,
    Namespace,
    Comment,
    Instruction,
    Doctype,
    Entity,
    SelfContained,
}

/// What goes on after an element.
#[derive(Clone, Copy, Debug)]
struct Frame {
    rule: RuleId,
    name: u32,
    type_id: TypeId,
}

/// A block of channels that is not written yet.
#[derive(Debug)]
struct Block {
    plan: Plan,
    text: String,
    ends: Vec<usize>,
}

/// The writing side of a stream's body.
#[derive(Debug)]
pub(crate) struct Walk {
    grammars: Arc<Grammars>,
    datatypes: Option<Vec<Datatype>>,
    options: Options,
    fixed: Fixed,
    pub(crate) names: Names,
    values: Values,
    /// How many productions each learned rule has.
    learned: Vec<u32>,
    productions: usize,
    /// By rule, kind and name: which learned production.
    found: KeyMap,
    /// The same: which path.
    known: KeyMap,
    paths: Vec<Option<Path>>,
    /// By rule: the paths of character data and of the end, + 1.
    nameless: Vec<[u32; 2]>,
    rule: RuleId,
    name: u32,
    type_id: TypeId,
    stack: Vec<Frame>,
    /// Self-contained elements that are open, and what they keep.
    scopes: Vec<self_contained::Scope>,
    outer_bytes: usize,
    /// How many elements are open in the innermost of them at least; 0 if none is.
    floor: usize,
    pub(crate) to: Writer,
    /// What is in front of the body.
    header: Writer,
    /// Whole blocks.
    done: Vec<u8>,
    block: Option<Block>,
    /// Whether the profile bounds what is learned.
    bounded: bool,
    /// The type that learns nothing, if it can be used.
    any_type: Option<QName>,
    /// Whether nothing but declarations came since the last start of an element.
    at_start: bool,
    /// Whether white space is kept where the schema would not.
    verbatim: bool,
    form: Form,
    limits: Limits,
}

/// Learned grammars whose room is kept for the next document.
const KEPT_RULES: usize = 1 << 12;

/// There is room for so many learned grammars, and open elements, from the first on.
const FIRST_RULES: usize = 32;

fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(NONE)
}

impl Walk {
    pub(crate) fn new(grammars: Arc<Grammars>, options: &Options, limits: &Limits) -> Self {
        let block = |plan| Block { plan, text: String::new(), ends: Vec::new() };
        let is_learned = grammars.types.is_empty();
        let mut learned = Vec::with_capacity(FIRST_RULES * 2);
        learned.extend([0, 0]);
        Self {
            datatypes: mapping::coded(&grammars, options),
            options: options.clone(),
            fixed: Fixed::new(options),
            names: Names::new(&grammars),
            values: Values::new(options),
            learned,
            productions: 0,
            found: KeyMap::of(if is_learned { FIRST_RULES * 2 } else { 0 }),
            known: KeyMap::default(),
            paths: Vec::new(),
            nameless: Vec::new(),
            rule: grammars.start,
            name: 0,
            type_id: NONE,
            stack: Vec::with_capacity(FIRST_RULES),
            scopes: Vec::new(),
            outer_bytes: 0,
            floor: 0,
            to: Writer::new(options.alignment != Alignment::BitPacked),
            header: Writer::default(),
            done: Vec::new(),
            block: Plan::of(options).map(block),
            bounded: profile::is_bounded(&options.profile),
            // Lexical values would need a prefix for it.
            any_type: profile::any_type(&grammars).filter(|_| !options.preserve.lexical),
            at_start: false,
            verbatim: false,
            form: match options.canonical {
                true => Form::Canonical { utc: options.utc_time },
                false => Form::Given,
            },
            limits: *limits,
            grammars,
        }
    }

    /// The body follows the header, from its last bit or from the next byte on.
    pub(crate) fn begin(&mut self, mut header: Writer, aligned: bool) {
        self.header = header.clone();
        if aligned {
            header.align();
            self.done = header.out;
            if self.block.is_none() {
                self.to.out = std::mem::take(&mut self.done);
            }
        } else {
            self.to = header;
        }
    }

    /// Makes ready for another document behind one that ended well, without elements that are
    /// self-contained. What is known of names and grammars stays, the rest begins anew.
    pub(crate) fn restart(&mut self) {
        self.names.restart();
        self.values.restart();
        self.learned.truncate(2);
        self.learned.fill(0);
        self.learned.shrink_to(KEPT_RULES);
        self.found.clear(FIRST_RULES * 2);
        self.productions = 0;
        self.rule = self.grammars.start;
        (self.name, self.type_id) = (0, NONE);
        self.stack.clear();
        (self.at_start, self.verbatim) = (false, false);
        let header = std::mem::take(&mut self.header);
        self.begin(header, self.options.alignment != Alignment::BitPacked);
    }

    /// Bytes of what a document leaves to the next one.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.names.bytes + self.known.bytes() + self.paths.len() * size_of::<Option<Path>>()
    }

    /// Whether the current rule is learned.
    pub(crate) fn is_learned(&self) -> bool {
        self.rule & LEARNED != 0
    }

    /// Whether there is a schema, so that attributes have an order.
    pub(crate) fn has_schema(&self) -> bool {
        !self.grammars.types.is_empty()
    }

    /// Memory that the document has filled.
    fn check(&self) -> Result<(), Fault> {
        let block = self.block.as_ref().map_or(0, |block| block.text.len() + block.ends.len() * 16);
        let bytes = self.names.bytes
            + self.own_bytes()
            + self.outer_bytes
            + self.known.bytes()
            + self.paths.len() * size_of::<Option<Path>>();
        if block > self.limits.message_bytes {
            return Err(Fault::Limit(&"message_bytes"));
        }
        if bytes > self.limits.table_bytes {
            return Err(Fault::Limit(&"table_bytes"));
        }
        Ok(())
    }

    /// Memory of what ends with a self-contained element.
    fn own_bytes(&self) -> usize {
        self.values.bytes()
            + self.found.bytes()
            + self.learned.len() * RULE_BYTES
            + self.productions * PRODUCTION_BYTES
    }

    pub(crate) fn start_document(&mut self) -> Result<(), Fault> {
        let path = self.path(Kind::StartDocument, 0).ok_or(NOT_ALLOWED)?;
        self.code(&path);
        self.rule = path.production.next;
        Ok(())
    }

    pub(crate) fn end_document(&mut self) -> Result<(), Fault> {
        if self.is_learned() {
            self.fixed_code(Event::EndDocument)?;
        } else {
            let path = self.path(Kind::EndDocument, 0).ok_or(NOT_ALLOWED)?;
            self.code(&path);
        }
        if self.block.is_some() {
            self.end_block()?;
        }
        Ok(())
    }

    /// Before a name is used, which may be new in a self-contained element.
    #[inline]
    fn touch(&mut self, name: u32) {
        if self.floor > 0 {
            self.names.touch(name);
        }
    }

    #[inline]
    fn prefix(&mut self, name: u32, prefix: &str) {
        if self.options.preserve.prefixes {
            self.names.write_prefix(name, prefix, &mut self.to);
        }
    }

    #[inline(always)]
    pub(crate) fn start(&mut self, name: u32, prefix: &str) -> Result<(), Fault> {
        self.touch(name);
        if self.is_learned() {
            return self.learned_start(name, prefix);
        }
        let path = self.path(Kind::Start, name);
        let path = path.ok_or(Fault::Bad(&"the schema does not allow this element here"))?;
        self.code(&path);
        let next = path.production.next;
        match path.production.event {
            Event::StartElement(id) => {
                self.prefix(name, prefix);
                let element = self.grammars.elements.get(id as usize).ok_or(NOT_ALLOWED)?;
                let (rule, type_id) = (element.first, element.type_id);
                self.push(name, rule, type_id, next)
            }
            event => self.start_of_any(name, prefix, event, next),
        }
    }

    fn start_of_any(
        &mut self,
        name: u32,
        prefix: &str,
        event: Event,
        next: RuleId,
    ) -> Result<(), Fault> {
        if let Event::StartElementIn(_) = event {
            self.names.write_local(name, &mut self.to);
        } else {
            self.names.write_name(name, &mut self.to);
        }
        self.prefix(name, prefix);
        self.enter(name, next)
    }

    /// Into an element that no production names by its declaration.
    #[inline]
    fn enter(&mut self, name: u32, next: RuleId) -> Result<(), Fault> {
        let mut rule = self.names.get(name).rule;
        if rule == NONE {
            rule = match self.names.qname(name) {
                Some(found) if self.grammars.global_elements.contains_key(&found) => {
                    self.grammars.global_elements[&found]
                }
                _ => self.make_rule()?,
            };
            self.names.set_rule(name, rule);
        }
        if rule & LEARNED != 0 {
            return self.push(name, rule, NONE, next);
        }
        let element = self.grammars.elements.get(rule as usize).ok_or(NOT_ALLOWED)?;
        let (rule, type_id) = (element.first, element.type_id);
        self.push(name, rule, type_id, next)
    }

    #[inline]
    fn push(
        &mut self,
        name: u32,
        rule: RuleId,
        type_id: TypeId,
        next: RuleId,
    ) -> Result<(), Fault> {
        if self.stack.len() >= self.limits.depth {
            return Err(Fault::Limit(&"depth"));
        }
        self.stack.push(Frame { rule: next, name: self.name, type_id: self.type_id });
        (self.rule, self.name, self.type_id) = (rule, name, type_id);
        self.at_start = true;
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        if self.is_learned() {
            return self.learned_end();
        }
        let Some(path) = self.nameless_path(Kind::End) else { return self.end_without_text() };
        self.code(&path);
        self.leave_element()
    }

    /// Simple content must be there, were it the empty string (EXI §8.5.4.1.3.1).
    #[cold]
    fn end_without_text(&mut self) -> Result<(), Fault> {
        self.characters("")?;
        let path = self.nameless_path(Kind::End);
        let path = path.ok_or(Fault::Bad(&"the schema does not let the element end here"))?;
        self.code(&path);
        self.leave_element()
    }

    #[inline]
    fn leave_element(&mut self) -> Result<(), Fault> {
        if self.stack.len() == self.floor {
            self.leave()?;
            return self.leave_scope();
        }
        self.leave()
    }

    #[inline]
    fn leave(&mut self) -> Result<(), Fault> {
        let frame = self.stack.pop().ok_or(NOT_ALLOWED)?;
        (self.rule, self.name, self.type_id) = (frame.rule, frame.name, frame.type_id);
        Ok(())
    }

    /// Whether character data is possible here.
    pub(crate) fn takes_characters(&mut self) -> bool {
        self.is_learned() || self.path(Kind::Characters, 0).is_some()
    }

    /// Whether character data of any kind is.
    pub(crate) fn takes_text(&mut self) -> bool {
        self.takes_characters() || self.path(Kind::CharactersUntyped, 0).is_some()
    }

    /// What the type of character data that is possible here does to white space.
    pub(crate) fn white_space(&mut self) -> Option<WhiteSpace> {
        if self.is_learned() {
            return None;
        }
        let path = self.path(Kind::Characters, 0)?;
        let Event::Characters(id) = path.production.event else { return None };
        let types = self.datatypes.as_ref().unwrap_or(&self.grammars.datatypes);
        types.get(id as usize).map(|datatype| datatype.white_space)
    }

    /// Whether white space is kept where the schema would not.
    pub(crate) fn set_verbatim(&mut self, verbatim: bool) {
        self.verbatim = verbatim;
    }

    pub(crate) fn characters(&mut self, text: &str) -> Result<(), Fault> {
        if self.is_learned() {
            return self.learned_characters(text);
        }
        let name = self.name;
        if let Some(path) = self.nameless_path(Kind::Characters)
            && let Event::Characters(datatype) = path.production.event
            && self.typed(&path, name, None, datatype, text)?
        {
            return Ok(());
        }
        let path = self.path(Kind::CharactersUntyped, 0);
        let path = path.ok_or(Fault::Bad(&"the schema does not allow this text"))?;
        self.code(&path);
        self.rule = path.production.next;
        self.value(name, UNTYPED, text, Typed::Text(text))
    }

    /// Writes an event with a typed value, if the value is of the type. `attribute` has the prefix.
    #[inline(always)]
    fn typed(
        &mut self,
        path: &Path,
        name: u32,
        attribute: Option<&str>,
        datatype: DatatypeId,
        text: &str,
    ) -> Result<bool, Fault> {
        let types = self.datatypes.as_ref().unwrap_or(&self.grammars.datatypes);
        if datatype == UNTYPED {
            self.before_value(path, name, attribute);
            self.value(name, datatype, text, Typed::Text(text))?;
            return Ok(true);
        }
        let Some(found) = types.get(datatype as usize) else { return Ok(false) };
        let given = self.options.preserve.lexical
            || self.verbatim
            || found.white_space == WhiteSpace::Preserve
            || lexical::takes_space(&found.coding);
        let normal = if given { None } else { lexical::normalise(text, found.white_space) };
        let text = normal.as_deref().unwrap_or(text);
        let value = match &found.coding {
            Coding::String => Some(Typed::Text(text)),
            _ => lexical::value(types, datatype, text, self.form),
        };
        let Some(value) = value else { return Ok(false) };
        self.before_value(path, name, attribute);
        self.value(name, datatype, text, value)?;
        Ok(true)
    }

    /// The event of a typed value, and the rule behind it.
    #[inline(always)]
    fn before_value(&mut self, path: &Path, name: u32, attribute: Option<&str>) {
        self.code(path);
        if let Some(prefix) = attribute {
            match path.production.event {
                Event::AttributeIn(_) => self.names.write_local(name, &mut self.to),
                Event::AttributeAny => self.names.write_name(name, &mut self.to),
                _ => {}
            }
            self.prefix(name, prefix);
        }
        self.rule = path.production.next;
    }

    /// An attribute other than `xsi:type`.
    pub(crate) fn attribute(&mut self, name: u32, prefix: &str, text: &str) -> Result<(), Fault> {
        self.touch(name);
        if self.is_learned() {
            return self.learned_attribute(name, prefix, text);
        }
        if name == self.names.initial(XSI_NIL) && self.nil(prefix, text)? {
            return Ok(());
        }
        if let Some(path) = self.path(Kind::Attribute, name) {
            let datatype = match path.production.event {
                Event::Attribute(_, datatype) => datatype,
                _ => self.global_attribute(name),
            };
            if self.typed(&path, name, Some(prefix), datatype, text)? {
                return Ok(());
            }
        }
        let Some(path) = self.path(Kind::AttributeUntyped, name) else {
            // Where the schema is, the receiver knows already.
            if self.names.is_schema_location(name) {
                return Ok(());
            }
            return Err(Fault::Bad(&"the schema does not allow this attribute or its value"));
        };
        self.code(&path);
        if path.production.event == Event::AttributeAnyUntyped {
            self.names.write_name(name, &mut self.to);
        }
        self.prefix(name, prefix);
        self.rule = path.production.next;
        self.value(name, UNTYPED, text, Typed::Text(text))
    }

    fn global_attribute(&self, name: u32) -> DatatypeId {
        let found = self.names.qname(name);
        let datatype = found.and_then(|name| self.grammars.global_attributes.get(&name));
        datatype.copied().unwrap_or(UNTYPED)
    }

    /// NS, where the grammar has it; `own` says that it is the prefix of the element itself.
    pub(crate) fn namespace(&mut self, uri: u32, prefix: &str, own: bool) -> Result<(), Fault> {
        if self.event(Kind::Namespace, Event::Namespace)? {
            if self.floor > 0 {
                self.names.touch_uri(uri);
            }
            self.names.write_declaration(uri, prefix, &mut self.to)?;
            self.to.bits(u32::from(own), 1);
        }
        Ok(())
    }

    /// CM, PI, DT and ER: strings behind an event code.
    pub(crate) fn strings(
        &mut self,
        kind: Kind,
        event: Event,
        strings: &[&str],
    ) -> Result<(), Fault> {
        if self.bounded && self.is_learned() {
            self.leave_learning(kind, 0)?;
        }
        if !self.event(kind, event)? {
            return Err(NOT_ALLOWED);
        }
        strings.iter().for_each(|text| self.to.string(text, 0));
        if self.is_learned() && self.rule != FRAGMENT {
            self.rule |= 1;
        }
        Ok(())
    }

    /// The code of an event without a name, if the rule has it.
    fn event(&mut self, kind: Kind, event: Event) -> Result<bool, Fault> {
        if self.is_learned() {
            self.fixed_code(event)?;
            return Ok(true);
        }
        let Some(path) = self.path(kind, 0) else { return Ok(false) };
        self.code(&path);
        self.rule = path.production.next;
        Ok(true)
    }

    /// Moves what is whole to `out`.
    pub(crate) fn drain(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.done);
        if self.block.is_none() {
            self.to.drain(out);
        }
    }
}

const NOT_ALLOWED: Fault = Fault::Bad(&"the grammar does not allow this here");
