//! From events to XML text.

mod self_contained;

use super::{
    bits::Fault,
    decoder::{Core, Item},
    read_tables::{KEPT_BYTES, KEPT_ITEMS},
    tables::{MAX_PREFIXES, NONE},
    text::{Text, escape},
};
use crate::xml::is_nc_name;

/// A name as it is written: in a text, `<` and the name from `begin`, and `</`, the name and `>`
/// behind that.
#[derive(Clone, Copy, Debug, Default)]
struct Tag {
    begin: u32,
    /// Bytes of the name; none has none.
    length: u32,
}

impl Tag {
    /// Appends a name to `written`.
    fn new(parts: &[&[u8]], written: &mut Text) -> Result<Self, Fault> {
        let place = |at| u32::try_from(at).map_err(|_| Fault::Limit(&"table_bytes"));
        let begin = place(written.len())?;
        let length = place(parts.iter().map(|part| part.len()).sum())?;
        written.push(b"<");
        parts.iter().for_each(|part| written.push(part));
        written.push(b"</");
        parts.iter().for_each(|part| written.push(part));
        written.push(b">");
        Ok(Self { begin, length })
    }

    #[inline]
    fn write_start(self, written: &Text, out: &mut Vec<u8>) {
        written.copy_range(self.begin as usize, self.length as usize + 1, out);
    }

    #[inline]
    fn write_end(self, written: &Text, out: &mut Vec<u8>) {
        let length = self.length as usize;
        written.copy_range(self.begin as usize + 1 + length, length + 3, out);
    }
}

/// A binding of a prefix.
#[derive(Debug)]
struct Binding {
    prefix: Box<[u8]>,
    uri: u32,
    depth: usize,
}

/// Writes XML as items come.
#[derive(Debug)]
pub(crate) struct ToXml {
    pub(crate) out: Vec<u8>,
    /// Whether names come with prefixes.
    prefixes: bool,
    /// A start tag is not closed.
    open: bool,
    /// A start tag whose prefix is not known yet, and its NS events.
    pending: Option<(u32, u32)>,
    declared: Vec<(u32, u32, bool)>,
    /// Names as they are written; with prefixes kept, a stack of them.
    written: Text,
    /// The name of each number, if it was written before; prefixes are made up.
    cache: Vec<Tag>,
    /// Names of the open elements.
    stack: Vec<Tag>,
    bindings: Vec<Binding>,
    /// Whether the made-up prefix of a namespace is in scope.
    in_scope: Vec<bool>,
    /// Where the root's declarations go at the end, if all are to be there.
    root: Option<usize>,
    hoisted: Vec<u8>,
    /// Self-contained elements that are open.
    levels: Vec<self_contained::Level>,
    /// How many elements are open in the innermost of them at least.
    floor: usize,
    /// Declarations of a pending start tag that came before SC.
    carried: Vec<self_contained::Carried>,
}

impl ToXml {
    /// `whole`: nothing is taken before the end, and made-up prefixes are declared at the root.
    pub(crate) fn new(prefixes: bool, whole: bool) -> Self {
        Self {
            root: (whole && !prefixes).then_some(0),
            hoisted: Vec::new(),
            out: Vec::new(),
            prefixes,
            open: false,
            pending: None,
            declared: Vec::new(),
            written: Text::default(),
            cache: Vec::new(),
            stack: Vec::new(),
            bindings: Vec::new(),
            in_scope: Vec::new(),
            levels: Vec::new(),
            floor: 0,
            carried: Vec::new(),
        }
    }

    /// As [`ToXml::new`]; some memory is kept.
    pub(crate) fn reset(&mut self, prefixes: bool, whole: bool) {
        let Self { mut written, mut cache, mut stack, mut in_scope, .. } =
            std::mem::replace(self, Self::new(prefixes, whole));
        written.reset(KEPT_BYTES);
        cache.clear();
        cache.shrink_to(KEPT_ITEMS);
        stack.clear();
        stack.shrink_to(KEPT_ITEMS);
        in_scope.clear();
        in_scope.shrink_to(KEPT_ITEMS);
        (self.written, self.cache, self.stack, self.in_scope) = (written, cache, stack, in_scope);
    }

    /// Writes one item.
    #[inline]
    pub(crate) fn item(&mut self, core: &Core) -> Result<(), Fault> {
        match *core.item() {
            Item::Start { name, prefix } => {
                self.settle(core)?;
                self.close();
                if self.prefixes {
                    self.pending = Some((name, prefix));
                } else {
                    self.start(name, core)?;
                }
            }
            Item::End => {
                self.settle(core)?;
                self.end()?;
            }
            Item::Characters => {
                self.settle(core)?;
                self.close();
                core.write_text(false, &mut self.out);
            }
            Item::Attribute { name, prefix } => {
                self.settle(core)?;
                self.attribute(name, prefix, core)?;
                core.write_text(true, &mut self.out);
                self.out.push(b'"');
            }
            _ => self.rare(*core.item(), core)?,
        }
        Ok(())
    }

    fn rare(&mut self, item: Item, core: &Core) -> Result<(), Fault> {
        if let Item::Namespace { uri, prefix, local } = item {
            // Bindings are looked through one by one.
            if self.declared.len() + self.bindings.len() >= MAX_PREFIXES {
                return Err(Fault::Limit(&"1024 prefixes in scope"));
            }
            self.declared.push((uri, prefix, local));
            return Ok(());
        }
        if let Item::SelfContained { name, prefix } = item {
            self.open_level(name, prefix, core);
            return Ok(());
        }
        self.settle(core)?;
        if let Item::Type { prefix, target, target_prefix } = item {
            return self.type_attribute(prefix, target, target_prefix, core);
        }
        self.close();
        match item {
            Item::Comment(text) => {
                let text = core.slice(text);
                if text.windows(2).any(|two| two == b"--") || text.ends_with(b"-") {
                    return Err(Fault::Bad(&"a comment with two hyphens in it"));
                }
                self.raw(&[b"<!--", text, b"-->"]);
            }
            Item::Instruction(texts) => {
                let [target, data] = core.texts(texts);
                check_name(target, is_nc_name)?;
                if target.eq_ignore_ascii_case(b"xml") || data.windows(2).any(|two| two == b"?>") {
                    return Err(Fault::Bad(&"not a processing instruction"));
                }
                let space: &[u8] = if data.is_empty() { b"" } else { b" " };
                self.raw(&[b"<?", target, space, data, b"?>"]);
            }
            Item::Doctype(texts) => self.doctype(core.texts(texts))?,
            Item::Entity(name) => {
                check_name(core.slice(name), is_nc_name)?;
                self.raw(&[b"&", core.slice(name), b";"]);
            }
            _ => {}
        }
        Ok(())
    }

    fn raw(&mut self, parts: &[&[u8]]) {
        parts.iter().for_each(|part| self.out.extend_from_slice(part));
    }

    fn doctype(&mut self, [name, public, system, subset]: [&[u8]; 4]) -> Result<(), Fault> {
        check_name(name, |name| name.splitn(2, ':').all(is_nc_name))?;
        let quote: &[u8] = if system.contains(&b'"') { b"'" } else { b"\"" };
        if public.contains(&b'"') || (system.contains(&b'"') && system.contains(&b'\'')) {
            return Err(Fault::Bad(&"an identifier with both quotes"));
        }
        let begin = self.out.len();
        self.raw(&[b"<!DOCTYPE ", name]);
        if !public.is_empty() {
            self.raw(&[b" PUBLIC \"", public, b"\" ", quote, system, quote]);
        } else if !system.is_empty() {
            self.raw(&[b" SYSTEM ", quote, system, quote]);
        }
        if !subset.is_empty() {
            self.raw(&[b" [", subset, b"]"]);
        }
        self.raw(&[b">"]);
        // What was read must be no more than a document type.
        let written = [self.out.get(begin..).unwrap_or_default(), b"<a/>"].concat();
        let mut reader = crate::xml::Reader::new(&written, &crate::Limits::default())
            .map_err(|_| Fault::Bad(&"not a document type"))?;
        match reader.next() {
            Ok(crate::xml::Event::Doctype(_)) if reader.offset() + 4 == written.len() => Ok(()),
            _ => Err(Fault::Bad(&"not a document type")),
        }
    }

    #[inline]
    fn close(&mut self) {
        if self.open {
            self.open = false;
            self.out.push(b'>');
        }
    }

    #[inline]
    fn end(&mut self) -> Result<(), Fault> {
        let closes = self.stack.len() == self.floor;
        let tag = self.stack.pop().ok_or(Fault::Bad(&"an end without an element"))?;
        if self.open {
            self.open = false;
            self.out.extend_from_slice(b"/>");
        } else {
            tag.write_end(&self.written, &mut self.out);
        }
        if self.prefixes {
            self.written.truncate(tag.begin as usize);
        }
        if closes {
            self.close_level();
        }
        if !self.bindings.is_empty() {
            self.unbind();
        }
        Ok(())
    }

    fn unbind(&mut self) {
        while let Some(last) = self.bindings.last().filter(|last| last.depth > self.stack.len()) {
            if let Some(place) = self.in_scope.get_mut(last.uri as usize) {
                *place = false;
            }
            self.bindings.pop();
        }
    }

    /// A start tag with a prefix of our own.
    #[inline]
    fn start(&mut self, name: u32, core: &Core) -> Result<(), Fault> {
        let tag = self.name(name, core)?;
        tag.write_start(&self.written, &mut self.out);
        if self.root == Some(0) {
            self.root = Some(self.out.len());
        }
        self.stack.push(tag);
        self.open = true;
        let uri = core.names().get(name).uri;
        if uri > 1 {
            self.bring_in_scope(uri, core);
        }
        Ok(())
    }

    /// The name with its made-up prefix.
    #[inline]
    fn name(&mut self, name: u32, core: &Core) -> Result<Tag, Fault> {
        match self.cache.get(name as usize) {
            Some(&tag) if tag.length > 0 => Ok(tag),
            _ => self.new_name(name, core),
        }
    }

    #[cold]
    fn new_name(&mut self, name: u32, core: &Core) -> Result<Tag, Fault> {
        let uri = core.names().get(name).uri;
        let mut prefix = Vec::new();
        push_prefix(self.levels.len(), uri, &mut prefix);
        if uri > 0 {
            prefix.push(b':');
        }
        let tag = Tag::new(&[&prefix, core.names().local(name).as_bytes()], &mut self.written)?;
        if name as usize >= self.cache.len() {
            self.cache.resize(name as usize + 1, Tag::default());
        }
        self.cache[name as usize] = tag;
        Ok(tag)
    }

    /// Declares the made-up prefix of a namespace unless that is in scope.
    #[inline]
    fn bring_in_scope(&mut self, uri: u32, core: &Core) {
        if self.in_scope.get(uri as usize) == Some(&true) {
            return;
        }
        if uri as usize >= self.in_scope.len() {
            self.in_scope.resize(uri as usize + 1, false);
        }
        self.in_scope[uri as usize] = true;
        let level = self.levels.len();
        let out = match self.root {
            Some(_) => &mut self.hoisted,
            None => {
                let depth = self.stack.len();
                self.bindings.push(Binding { prefix: Box::default(), uri, depth });
                &mut self.out
            }
        };
        out.extend_from_slice(b" xmlns:");
        push_prefix(level, uri, out);
        out.extend_from_slice(b"=\"");
        escape(core.names().uri(uri).as_bytes(), true, out);
        out.push(b'"');
    }

    /// The whole text is there.
    pub(crate) fn finish(&mut self) {
        if let Some(root) = self.root {
            self.out.splice(root..root, self.hoisted.drain(..));
        }
    }

    /// The name of an attribute and `="`.
    fn attribute(&mut self, name: u32, prefix: u32, core: &Core) -> Result<(), Fault> {
        let uri = core.names().get(name).uri;
        if self.prefixes {
            let prefix = self.prefix_for(uri, prefix, true, core);
            self.out.push(b' ');
            self.put_prefixed(&prefix, name, core);
        } else {
            if uri > 1 {
                self.bring_in_scope(uri, core);
            }
            let tag = self.name(name, core)?;
            let begin = self.out.len();
            tag.write_start(&self.written, &mut self.out);
            if let Some(first) = self.out.get_mut(begin) {
                *first = b' ';
            }
        }
        self.out.extend_from_slice(b"=\"");
        Ok(())
    }

    fn put_prefixed(&mut self, prefix: &[u8], name: u32, core: &Core) {
        if !prefix.is_empty() {
            self.raw(&[prefix, b":"]);
        }
        self.out.extend_from_slice(core.names().local(name).as_bytes());
    }

    fn type_attribute(
        &mut self,
        prefix: u32,
        target: u32,
        target_prefix: u32,
        core: &Core,
    ) -> Result<(), Fault> {
        let xsi_type = core.names().initial(super::decoder::XSI_TYPE);
        let uri = core.names().get(target).uri;
        let target_prefix = if self.prefixes {
            self.prefix_for(uri, target_prefix, false, core)
        } else {
            let mut text = Vec::new();
            push_prefix(self.levels.len(), uri, &mut text);
            if uri > 1 {
                self.bring_in_scope(uri, core);
            }
            text
        };
        self.attribute(xsi_type, prefix, core)?;
        if !target_prefix.is_empty() {
            self.raw(&[&target_prefix, b":"]);
        }
        escape(core.names().local(target).as_bytes(), true, &mut self.out);
        self.out.push(b'"');
        Ok(())
    }

    /// Writes the start tag whose NS events are over.
    #[inline]
    fn settle(&mut self, core: &Core) -> Result<(), Fault> {
        if self.pending.is_some() { self.settle_now(core) } else { Ok(()) }
    }

    fn settle_now(&mut self, core: &Core) -> Result<(), Fault> {
        let Some((name, prefix)) = self.pending.take() else { return Ok(()) };
        let uri = core.names().get(name).uri;
        let declared = std::mem::take(&mut self.declared);
        let local = declared.iter().find(|one| one.2 && one.0 == uri);
        let own = local.map_or(prefix, |one| one.1);
        // The declarations of this element are in scope for its own name.
        let depth = self.stack.len() + 1;
        let first = self.bindings.len();
        for &(uri, prefix, _) in &declared {
            let prefix = core.names().prefix(uri, prefix).as_bytes();
            if self.bindings[first..].iter().all(|one| &*one.prefix != prefix) {
                self.bindings.push(Binding { prefix: prefix.into(), uri, depth });
            }
        }
        let last = self.bindings.len();
        self.bind_carried(first, depth);
        self.stack.push(Tag::default());
        let at = self.out.len();
        let mut prefix = self.prefix_for(uri, own, false, core);
        // What that declared stands where the name has to be.
        let more = self.out.split_off(at);
        if !prefix.is_empty() {
            prefix.push(b':');
        }
        let tag = Tag::new(&[&prefix, core.names().local(name).as_bytes()], &mut self.written)?;
        if let Some(last) = self.stack.last_mut() {
            *last = tag;
        }
        tag.write_start(&self.written, &mut self.out);
        for at in first..last {
            let Some(Binding { prefix, uri, .. }) = self.bindings.get(at) else { break };
            let uri = core.names().uri(*uri).as_bytes();
            put_declaration(prefix, uri, &mut self.out);
        }
        self.put_carried();
        self.out.extend_from_slice(&more);
        self.open = true;
        self.declared = declared;
        self.declared.clear();
        Ok(())
    }

    fn declare(&mut self, prefix: &[u8], uri: u32, core: &Core) {
        put_declaration(prefix, core.names().uri(uri).as_bytes(), &mut self.out);
    }

    /// A prefix that means `uri` here: the one of the stream, else one that is in scope, else a new
    /// one, which is declared.
    fn prefix_for(&mut self, uri: u32, prefix: u32, attribute: bool, core: &Core) -> Vec<u8> {
        let means = |text: &[u8]| {
            let bound = self.bindings.iter().rev().find(|one| &*one.prefix == text);
            bound.map_or(if text.is_empty() { 0 } else { NONE }, |one| one.uri)
        };
        if uri == 1 {
            return b"xml".to_vec();
        }
        if uri == 0 && (attribute || means(b"") == 0) {
            return Vec::new();
        }
        let text = core.names().prefix(uri, prefix).as_bytes();
        if prefix != NONE && means(text) == uri && !(attribute && text.is_empty()) {
            return text.to_vec();
        }
        let usable = |one: &&Binding| {
            one.uri == uri && means(&one.prefix) == uri && !(attribute && one.prefix.is_empty())
        };
        if let Some(found) = self.bindings.iter().rev().find(usable) {
            return found.prefix.to_vec();
        }
        let mut new = if prefix == NONE || (attribute && text.is_empty()) {
            Vec::new()
        } else {
            text.to_vec()
        };
        let depth = self.stack.len();
        let taken = |text: &[u8]| {
            self.bindings.iter().any(|one| one.depth == depth && &*one.prefix == text)
        };
        if uri == 0 {
            new.clear();
        } else if (new.is_empty() && (attribute || prefix == NONE)) || taken(&new) {
            new.clear();
            push_prefix(self.levels.len(), uri, &mut new);
        }
        self.declare(&new, uri, core);
        self.bindings.push(Binding { prefix: new.as_slice().into(), uri, depth });
        new
    }
}

fn put_declaration(prefix: &[u8], uri: &[u8], out: &mut Vec<u8>) {
    if prefix == b"xml" {
        return;
    }
    out.extend_from_slice(b" xmlns");
    if !prefix.is_empty() {
        out.push(b':');
    }
    out.extend_from_slice(prefix);
    out.extend_from_slice(b"=\"");
    escape(uri, true, out);
    out.push(b'"');
}

fn check_name(name: &[u8], is: fn(&str) -> bool) -> Result<(), Fault> {
    let valid = std::str::from_utf8(name).is_ok_and(is);
    if valid { Ok(()) } else { Err(Fault::Bad(&"not a name")) }
}

/// The prefix that we give to a namespace by its number, in so many self-contained elements.
fn push_prefix(level: usize, uri: u32, to: &mut Vec<u8>) {
    match uri {
        0 => {}
        1 => to.extend_from_slice(b"xml"),
        2 if level == 0 => to.extend_from_slice(b"xsi"),
        _ => {
            if level > 0 {
                to.push(b's');
                super::datatype::decimal(level as u64, to);
            }
            to.extend_from_slice(b"ns");
            super::datatype::decimal(u64::from(uri), to);
        }
    }
}
