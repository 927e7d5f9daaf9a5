//! From a stream to events.

mod ahead;
mod learned;
mod self_contained;
mod values;

use std::sync::Arc;

use learned::Learned;

use super::{
    Options,
    bits::{Fault, Reader, width},
    built_in::{FRAGMENT, Fixed, LEARNED, PRODUCTION_BYTES, RULE_BYTES, is_content, key},
    channels::Plan,
    codes::{Codes, Kind},
    datatype,
    grammar::{Branch, Datatype, DatatypeId, Event, Grammars, Production, QName, RuleId, TypeId},
    read_tables::{KEPT_BYTES, KEPT_ITEMS, Names, Values},
    tables::NONE,
    text::{self, Span, Text},
};
use crate::Limits;

/// Datatype of values that no schema says anything about.
pub(crate) const UNTYPED: DatatypeId = NONE;

/// An event by numbers; [`Core`] has the texts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item {
    StartDocument,
    EndDocument,
    Start {
        name: u32,
        prefix: u32,
    },
    End,
    /// Its value is [`Core::value`].
    Attribute {
        name: u32,
        prefix: u32,
    },
    /// `xsi:type` as a name.
    Type {
        prefix: u32,
        target: u32,
        target_prefix: u32,
    },
    Namespace {
        uri: u32,
        prefix: u32,
        local: bool,
    },
    /// [`Core::value`]
    Characters,
    Comment(Span),
    /// Target and data, as [`Core::texts`].
    Instruction(Span),
    /// Name, public and system identifier and text, as [`Core::texts`].
    Doctype(Span),
    Entity(Span),
    /// SC; with the element as its own tables have it.
    SelfContained {
        name: u32,
        prefix: u32,
    },
}

/// What goes on after an element.
#[derive(Clone, Copy, Debug)]
struct Frame {
    rule: RuleId,
    name: u32,
    type_id: TypeId,
}

/// The rule behind the end of a document; no grammar has it.
const ENDED: RuleId = self_contained::CLOSING - 1;

/// There is room for so many learned grammars, and open elements, from the first on.
const FIRST: usize = 16;

/// What a stream fills.
#[derive(Debug)]
struct Tables {
    names: Names,
    values: Values,
    learned: Vec<Learned>,
    /// How many of them there are; those behind are kept for their memory.
    rules: usize,
    productions: usize,
}

impl Tables {
    fn new(grammars: &Arc<Grammars>, options: &Options) -> Result<Self, Fault> {
        Ok(Self::with(Names::new(grammars)?, Values::new(options)))
    }

    fn with(names: Names, values: Values) -> Self {
        let mut learned = Vec::with_capacity(FIRST * 2);
        learned.extend([Learned::default(), Learned::default()]);
        Self { names, values, learned, rules: 2, productions: 0 }
    }

    /// As before the first event; some memory is kept.
    fn reset(&mut self) {
        self.names.reset();
        self.values.reset();
        self.learned.truncate(KEPT_ITEMS);
        self.learned.shrink_to(KEPT_ITEMS);
        self.learned.iter_mut().take(self.rules).for_each(Learned::reset);
        (self.rules, self.productions) = (2, 0);
    }

    fn bytes(&self) -> usize {
        self.names.bytes()
            + self.values.bytes()
            + self.rules * RULE_BYTES
            + self.productions * PRODUCTION_BYTES
    }
}

/// Walks grammars over a stream.
#[derive(Debug)]
pub(crate) struct Core {
    grammars: Arc<Grammars>,
    codes: Arc<Codes>,
    /// Datatypes as the options have them coded, where that differs from the schema's.
    datatypes: Option<Vec<Datatype>>,
    options: Options,
    fixed: Fixed,
    tables: Tables,
    ahead: ahead::Ahead,
    /// The value that was read last, in [`Core::scratch`] or in the string table.
    value: Span,
    /// Texts that are not in the table: of the last event, or of all values of the block.
    scratch: Vec<u8>,
    buffer: Text,
    pub(crate) plan: Option<Plan>,
    rule: RuleId,
    name: u32,
    type_id: TypeId,
    stack: Vec<Frame>,
    scopes: self_contained::Scopes,
    /// Names of the schema.
    first: u32,
    xsi_type: u32,
    events: u32,
    limits: Limits,
}

impl Core {
    pub(crate) fn new(
        grammars: Arc<Grammars>,
        options: &Options,
        limits: &Limits,
    ) -> Result<Self, Fault> {
        let tables = Tables::new(&grammars, options)?;
        let first =
            u32::try_from(tables.names.count()).map_err(|_| Fault::Limit(&"table_bytes"))?;
        let xsi_type = tables.names.initial(XSI_TYPE);
        Ok(Self {
            codes: grammars.codes.get(&grammars),
            datatypes: super::mapping::coded(&grammars, options),
            options: options.clone(),
            fixed: Fixed::new(options),
            tables,
            ahead: ahead::Ahead::new(),
            value: Span::default(),
            scratch: Vec::new(),
            buffer: Text::default(),
            plan: Plan::of(options),
            rule: grammars.start,
            name: 0,
            type_id: NONE,
            stack: Vec::with_capacity(FIRST),
            scopes: self_contained::Scopes::default(),
            first,
            xsi_type,
            events: 0,
            limits: *limits,
            grammars,
        })
    }

    /// Whether documents with these options are read by this.
    pub(crate) fn is_for(&self, options: &Options) -> bool {
        self.options == *options
    }

    /// As before the first event, whatever was read and however that ended; some memory is kept.
    pub(crate) fn reset(&mut self) {
        self.leave_scopes();
        self.tables.reset();
        if let Some(plan) = &mut self.plan {
            plan.reset();
        }
        self.ahead.reset();
        self.scratch.clear();
        self.scratch.shrink_to(KEPT_BYTES);
        self.buffer.reset(KEPT_BYTES);
        self.stack.clear();
        self.stack.shrink_to(KEPT_ITEMS);
        self.value = Span::default();
        (self.rule, self.name, self.type_id) = (self.grammars.start, 0, NONE);
        self.events = 0;
    }

    pub(crate) fn names(&self) -> &Names {
        &self.tables.names
    }

    /// The names outside of the innermost self-contained element.
    pub(crate) fn outer_names(&self) -> Option<&Names> {
        self.scopes.outer()
    }

    /// The last event.
    #[inline(always)]
    pub(crate) fn item(&self) -> &Item {
        &self.ahead.last().0
    }

    /// Its value.
    #[inline(always)]
    pub(crate) fn value(&self) -> Span {
        self.ahead.last().1
    }

    /// The last event is this.
    #[inline]
    pub(crate) fn put(&mut self, item: Item, value: Span) {
        self.ahead.clear();
        self.ahead.push(item, value);
        self.ahead.skip();
    }

    /// The text of a value.
    #[inline]
    pub(crate) fn text(&self, value: Span) -> &[u8] {
        if value.is_own() { self.slice(value) } else { self.tables.values.text.get(value) }
    }

    /// The text of the last event's value as a string.
    #[inline]
    pub(crate) fn str(&self) -> &str {
        let value = self.value();
        if !value.is_own() {
            return self.tables.values.str(value);
        }
        match self.ahead.str(value) {
            Some(text) => text,
            None => std::str::from_utf8(self.slice(value)).unwrap_or_default(),
        }
    }

    /// Has the value of the last event, which was read ahead, looked at, if it was not yet, so that
    /// it is a string.
    #[inline(always)]
    pub(crate) fn look(&mut self) {
        let value = self.value();
        if value.is_own() {
            self.ahead.look(value, &self.scratch);
        } else if !self.tables.values.was_looked_at(value) {
            self.tables.values.look();
        }
    }

    /// The same of an event that was not read ahead: its own text is looked at where it is, since
    /// beside it may be those of all the block.
    #[inline]
    pub(crate) fn look_in_table(&mut self) {
        let value = self.value();
        if !value.is_own() && !self.tables.values.was_looked_at(value) {
            self.tables.values.look();
        }
    }

    /// Appends the last event's value as XML text.
    #[inline]
    pub(crate) fn write_text(&self, attribute: bool, out: &mut Vec<u8>) {
        let span = self.value();
        if !span.is_plain() {
            text::escape(self.text(span), attribute, out);
        } else if span.is_own() {
            out.extend_from_slice(self.slice(span));
        } else {
            self.tables.values.text.copy(span, out);
        }
    }

    #[inline]
    pub(crate) fn slice(&self, span: Span) -> &[u8] {
        self.scratch.get(span.range()).unwrap_or_default()
    }

    /// The next event is this. Events stay where they are made: to move one through several
    /// functions would cost more than to read it.
    #[inline(always)]
    fn say(&mut self, item: Item) -> Result<(), Fault> {
        self.ahead.push(item, self.value);
        Ok(())
    }

    /// The next event, or [`Fault::Short`] and nothing changed.
    /// `whole`: all of the stream is there, and nothing has to be taken back.
    pub(crate) fn next(&mut self, from: &mut Reader, whole: bool) -> Result<(), Fault> {
        if self.rule == self_contained::CLOSING {
            self.close_scope();
        }
        self.events = self.events.wrapping_add(1);
        if self.events.is_multiple_of(64) {
            self.check()?;
        }
        if self.plan.is_none() {
            self.scratch.clear();
        }
        self.ahead.clear();
        let scratch = self.scratch.len();
        let (names, values) = (self.tables.names.mark(), self.tables.values.mark());
        let result = self.event(from);
        self.ahead.skip();
        match result {
            Err(fault) if from.over() || fault == Fault::Short => {
                if !whole {
                    self.tables.names.roll_back(names);
                    self.tables.values.roll_back(values);
                    self.scratch.truncate(scratch);
                }
                Err(Fault::Short)
            }
            other => other,
        }
    }

    /// Memory that the stream has filled, and what is not needed any more.
    fn check(&mut self) -> Result<(), Fault> {
        if self.plan.is_none() {
            self.tables.values.compact()?;
        }
        if self.tables.bytes() + self.scopes.bytes > self.limits.table_bytes {
            return Err(Fault::Limit(&"table_bytes"));
        }
        Ok(())
    }

    #[inline(always)]
    fn event(&mut self, from: &mut Reader) -> Result<(), Fault> {
        if self.rule & LEARNED != 0 {
            return self.learned_event(from);
        }
        let Some(&head) = self.codes.head(self.rule) else { return Err(NO_CODE) };
        let code = from.bits(head.bits);
        if code >= head.count {
            return self.second_event(from);
        }
        let Some(&row) = self.codes.row(head, code) else { return Err(NO_CODE) };
        match row.kind {
            Kind::Start => {
                let prefix = self.prefix(row.name, from)?;
                self.sure(from)?;
                self.push(row.name, row.what, row.type_id, row.next)?;
                self.say(Item::Start { name: row.name, prefix })
            }
            Kind::End => self.leave(from),
            Kind::Characters => self.characters(row.what, row.next, from),
            Kind::Attribute => self.attribute(row.name, row.what, row.next, from),
            Kind::Other => self.other_event(code, from),
        }
    }

    /// An event that is not frequent, by the first part of its code.
    #[inline(never)]
    fn other_event(&mut self, code: u32, from: &mut Reader) -> Result<(), Fault> {
        let rule = self.grammars.rules.get(self.rule as usize).ok_or(NO_CODE)?;
        let production = *rule.first.get(code as usize).ok_or(NO_CODE)?;
        self.apply(production, from)
    }

    /// The second and third part of an event code (EXI §6.2).
    #[inline(never)]
    fn second_event(&mut self, from: &mut Reader) -> Result<(), Fault> {
        let rule = self.grammars.rules.get(self.rule as usize).ok_or(NO_CODE)?;
        let code = from.bits(width(rule.second.len())) as usize;
        let production = match rule.second.get(code).ok_or(NO_CODE)? {
            Branch::Leaf(production) => *production,
            Branch::Group(all) => *all.get(from.bits(width(all.len())) as usize).ok_or(NO_CODE)?,
        };
        self.apply(production, from)
    }

    /// Before anything changes that cannot be taken back.
    #[inline]
    fn sure(&self, from: &Reader) -> Result<(), Fault> {
        if from.over() { Err(Fault::Short) } else { Ok(()) }
    }

    #[inline(always)]
    fn prefix(&self, name: u32, from: &mut Reader) -> Result<u32, Fault> {
        if !self.options.preserve.prefixes {
            return Ok(NONE);
        }
        self.tables.names.read_prefix(self.tables.names.get(name).uri, from)
    }

    /// Into an element that no production names by its declaration.
    #[inline]
    fn enter(&mut self, name: u32, next: RuleId) -> Result<(), Fault> {
        let rule = self.tables.names.get(name).rule;
        if rule & LEARNED != 0 && rule != NONE {
            return self.push(name, rule, NONE, next);
        }
        self.enter_slowly(name, next)
    }

    #[inline(never)]
    fn enter_slowly(&mut self, name: u32, next: RuleId) -> Result<(), Fault> {
        let mut rule = self.tables.names.get(name).rule;
        if rule == NONE {
            rule = match self.global(name) {
                Some(element) => element,
                None => self.make_rule()?,
            };
            self.tables.names.set_rule(name, rule);
        }
        let (rule, type_id) = match self.grammars.elements.get(rule as usize) {
            Some(element) if rule & LEARNED == 0 => (element.first, element.type_id),
            _ => (rule, NONE),
        };
        self.push(name, rule, type_id, next)
    }

    /// A new built-in element grammar.
    fn make_rule(&mut self) -> Result<RuleId, Fault> {
        let tables = &mut self.tables;
        let at = u32::try_from(tables.rules).ok().filter(|&at| at < LEARNED);
        let at = at.ok_or(Fault::Limit(&"table_bytes"))?;
        tables.rules += 2;
        if tables.learned.len() < tables.rules {
            tables.learned.extend([Learned::default(), Learned::default()]);
        }
        Ok(at | LEARNED)
    }

    fn initial(&self, name: u32) -> Option<QName> {
        let entry = self.tables.names.get(name);
        (name < self.first).then_some(QName { uri: entry.uri, local: entry.id })
    }

    fn global(&self, name: u32) -> Option<u32> {
        self.grammars.global_elements.get(&self.initial(name)?).copied()
    }

    #[inline(always)]
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
        Ok(())
    }

    #[inline(always)]
    fn leave(&mut self, from: &mut Reader) -> Result<(), Fault> {
        self.sure(from)?;
        if self.stack.len() == self.scopes.floor {
            return self.leave_scope(from);
        }
        let frame = self.stack.pop().ok_or(Fault::Bad(&"an end without an element"))?;
        (self.rule, self.name, self.type_id) = (frame.rule, frame.name, frame.type_id);
        self.say(Item::End)
    }

    /// What a production means, where that is not asked for often.
    #[inline(never)]
    fn apply(&mut self, production: Production, from: &mut Reader) -> Result<(), Fault> {
        let Production { event, next } = production;
        match event {
            Event::StartDocument => {
                self.rule = next;
                self.say(Item::StartDocument)
            }
            Event::EndDocument => {
                self.sure(from)?;
                self.rule = ENDED;
                self.say(Item::EndDocument)
            }
            Event::StartElement(id) => {
                let element = self.grammars.elements.get(id as usize).ok_or(NO_CODE)?;
                let name = self.tables.names.initial(element.name);
                let (rule, type_id) = (element.first, element.type_id);
                let prefix = self.prefix(name, from)?;
                self.sure(from)?;
                self.push(name, rule, type_id, next)?;
                self.say(Item::Start { name, prefix })
            }
            Event::StartElementIn(_) | Event::StartElementAny => {
                let name = match event {
                    Event::StartElementIn(uri) => self.tables.names.read_local(uri, from)?,
                    _ => self.tables.names.read_name(from)?,
                };
                let prefix = self.prefix(name, from)?;
                self.sure(from)?;
                self.learn(self.rule, name << 2 | key::START);
                self.enter(name, next)?;
                self.say(Item::Start { name, prefix })
            }
            Event::EndElement => {
                self.sure(from)?;
                // What a self-contained element has learned ends with it.
                if self.stack.len() != self.scopes.floor {
                    self.learn_end();
                }
                self.leave(from)
            }
            Event::Characters(datatype) => self.characters(datatype, next, from),
            Event::CharactersUntyped => {
                let rule = self.rule;
                self.characters(UNTYPED, next, from)?;
                self.learn_once(rule, key::CHARACTERS);
                Ok(())
            }
            Event::Attribute(name, datatype) => {
                self.attribute(self.tables.names.initial(name), datatype, next, from)
            }
            Event::AttributeUntyped(name) => {
                self.attribute(self.tables.names.initial(name), UNTYPED, next, from)
            }
            Event::AttributeIn(_) | Event::AttributeAny | Event::AttributeAnyUntyped => {
                self.any_attribute(event, next, from)
            }
            Event::AttributeType => self.type_attribute(next, from),
            Event::AttributeNil => self.nil_attribute(next, from),
            other => self.other(other, next, from),
        }
    }

    /// The first end of an empty element of a built-in grammar.
    fn learn_end(&mut self) {
        if self.rule & LEARNED != 0 && !is_content(self.rule) {
            self.learn_once(self.rule, key::END);
        }
    }

    fn any_attribute(
        &mut self,
        event: Event,
        next: RuleId,
        from: &mut Reader,
    ) -> Result<(), Fault> {
        let name = match event {
            Event::AttributeIn(uri) => self.tables.names.read_local(uri, from)?,
            _ => self.tables.names.read_name(from)?,
        };
        let rule = self.rule;
        let typed = rule & LEARNED == 0 && event != Event::AttributeAnyUntyped;
        let global = self.initial(name).filter(|_| typed);
        let datatype = global.and_then(|name| self.grammars.global_attributes.get(&name));
        let datatype = datatype.copied().unwrap_or(UNTYPED);
        self.attribute(name, datatype, next, from)?;
        if name == self.xsi_type {
            self.learn_once(rule, name << 2 | key::ATTRIBUTE);
        } else {
            self.learn(rule, name << 2 | key::ATTRIBUTE);
        }
        Ok(())
    }

    #[inline]
    fn attribute(
        &mut self,
        name: u32,
        datatype: DatatypeId,
        next: RuleId,
        from: &mut Reader,
    ) -> Result<(), Fault> {
        if name == self.xsi_type {
            return self.type_attribute(next, from);
        }
        let prefix = self.prefix(name, from)?;
        self.read_value(name, datatype, from)?;
        self.sure(from)?;
        self.defer(name, datatype);
        self.rule = next;
        self.say(Item::Attribute { name, prefix })
    }

    #[inline(always)]
    fn characters(
        &mut self,
        datatype: DatatypeId,
        next: RuleId,
        from: &mut Reader,
    ) -> Result<(), Fault> {
        self.read_value(self.name, datatype, from)?;
        self.sure(from)?;
        self.defer(self.name, datatype);
        self.rule = next;
        self.say(Item::Characters)
    }

    /// `xsi:type` (EXI §8.5.4.4): a name, in the structure.
    fn type_attribute(&mut self, next: RuleId, from: &mut Reader) -> Result<(), Fault> {
        let prefix = self.prefix(self.tables.names.initial(XSI_TYPE), from)?;
        if self.options.preserve.lexical {
            return self.lexical_type(prefix, next, from);
        }
        let target = self.tables.names.read_type(from)?;
        let target_prefix = self.prefix(target, from)?;
        self.sure(from)?;
        self.rule = next;
        self.switch(target);
        self.say(Item::Type { prefix, target, target_prefix })
    }

    /// Goes on with the grammar of a type, if there is one.
    fn switch(&mut self, target: u32) {
        let named = self.initial(target).and_then(|name| self.grammars.named_types.get(&name));
        if let Some((&type_id, found)) =
            named.and_then(|id| Some((id, self.grammars.types.get(*id as usize)?)))
        {
            (self.rule, self.type_id) = (found.first, type_id);
        }
    }

    /// `xsi:type` as it was written; its prefix is looked up among the declarations.
    fn lexical_type(&mut self, prefix: u32, next: RuleId, from: &mut Reader) -> Result<(), Fault> {
        let name = self.tables.names.initial(XSI_TYPE);
        let span = self.tables.values.read(name, from, |count, from, to| from.chars(count, to))?;
        self.sure(from)?;
        self.rule = next;
        let text = String::from_utf8_lossy(self.tables.values.text.get(span)).trim().to_owned();
        let (before, local) = text.split_once(':').unwrap_or(("", &text));
        // Without prefixes nobody can tell which type is meant.
        if self.options.preserve.prefixes
            && let Some(target) = self.tables.names.by_prefix(before, local, self.first)
        {
            self.switch(target);
        }
        self.value = span;
        self.say(Item::Attribute { name, prefix })
    }

    /// `xsi:nil`, in the structure.
    fn nil_attribute(&mut self, next: RuleId, from: &mut Reader) -> Result<(), Fault> {
        let name = self.tables.names.initial(XSI_NIL);
        let prefix = self.prefix(name, from)?;
        self.value = if self.options.preserve.lexical {
            self.tables.values.read(name, from, |count, from, to| {
                datatype::read_restricted(&super::mapping::BOOLEAN, count, from, to)
            })?
        } else {
            let text: &[u8] = if from.bits(1) == 1 { b"true" } else { b"false" };
            let begin = self.scratch.len();
            self.scratch.extend_from_slice(text);
            self.span(begin)?.plain(true)
        };
        self.sure(from)?;
        self.rule = next;
        let nil = matches!(self.text(self.value).trim_ascii(), b"true" | b"1");
        if let Some(found) = self.grammars.types.get(self.type_id as usize).filter(|_| nil) {
            self.rule = found.empty;
        }
        self.say(Item::Attribute { name, prefix })
    }

    /// The part of the scratch text from `begin`.
    #[inline]
    fn span(&self, begin: usize) -> Result<Span, Fault> {
        Span::new(begin, self.scratch.len()).map(Span::own)
    }

    /// So many strings, with a byte of zero between them, which XML does not have.
    fn strings(&mut self, count: usize, from: &mut Reader) -> Result<Span, Fault> {
        self.ahead.stop();
        let begin = self.scratch.len();
        for at in 0..count {
            if at > 0 {
                self.scratch.push(0);
            }
            self.buffer.truncate(0);
            from.string(&mut self.buffer)?;
            self.buffer.copy(Span::new(0, self.buffer.len())?, &mut self.scratch);
        }
        self.span(begin)
    }

    /// The texts of an event that has several.
    pub(crate) fn texts<const N: usize>(&self, span: Span) -> [&[u8]; N] {
        let mut parts = self.slice(span).split(|&byte| byte == 0);
        [(); N].map(|()| parts.next().unwrap_or_default())
    }

    /// Events that only some preserve.
    fn other(&mut self, event: Event, next: RuleId, from: &mut Reader) -> Result<(), Fault> {
        let item = match event {
            Event::Namespace => {
                let (uri, prefix) = self.tables.names.read_declaration(from)?;
                Item::Namespace { uri, prefix, local: from.bits(1) == 1 }
            }
            Event::Comment => Item::Comment(self.strings(1, from)?),
            Event::ProcessingInstruction => Item::Instruction(self.strings(2, from)?),
            Event::Doctype => Item::Doctype(self.strings(4, from)?),
            Event::EntityReference => Item::Entity(self.strings(1, from)?),
            _ => return self.self_contained(from),
        };
        self.sure(from)?;
        if self.rule & LEARNED != 0 && self.rule != FRAGMENT && !matches!(event, Event::Namespace) {
            self.rule |= 1;
        } else {
            self.rule = next;
        }
        self.say(item)
    }
}

const NO_CODE: Fault = Fault::Bad(&"no production has this event code");
pub(crate) const XSI_NIL: QName = QName { uri: 2, local: 0 };
pub(crate) const XSI_TYPE: QName = QName { uri: 2, local: 1 };
