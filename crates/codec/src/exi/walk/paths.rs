//! Ways through the grammars of a schema: which production fits an event, and its code.

use super::{Kind, Walk, small};
use crate::exi::{
    Alignment,
    bits::width,
    grammar::{Branch, Event, Production, Rule},
};

/// Values and widths of the parts of an event code.
type Parts = [(u32, u32); 3];

/// A production with its event code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) production: Production,
    /// The first part and its width, or all parts as one where nothing is between them.
    code: (u32, u32),
    has_more: bool,
    more: [(u32, u32); 2],
}

impl Path {
    fn new(production: Production, parts: Parts, aligned: bool) -> Self {
        let [first, second, third] = parts;
        if aligned || parts.iter().map(|part| part.1).sum::<u32>() >= u32::BITS {
            let has_more = second.1 + third.1 > 0;
            return Self { production, code: first, has_more, more: [second, third] };
        }
        let join = |to: (u32, u32), part: (u32, u32)| (to.0 << part.1 | part.0, to.1 + part.1);
        let code = join(join(first, second), third);
        Self { production, code, has_more: false, more: [(0, 0); 2] }
    }
}

impl Walk {
    pub(super) fn key(&self, kind: Kind, name: u32) -> u64 {
        u64::from(self.rule) << 32 | u64::from(name) << 4 | kind as u64
    }

    /// The production of the current rule, which is not learned, that fits best.
    #[inline(always)]
    pub(super) fn path(&mut self, kind: Kind, name: u32) -> Option<Path> {
        match self.known.get(self.key(kind, name)) {
            Some(at) => self.paths.get(at as usize).copied().flatten(),
            None => self.new_path(kind, name),
        }
    }

    /// The same for character data and the end of an element.
    #[inline(always)]
    pub(super) fn nameless_path(&mut self, kind: Kind) -> Option<Path> {
        let which = usize::from(kind == Kind::End);
        match self.nameless.get(self.rule as usize).map(|known| known[which]) {
            Some(at @ 1..) => self.paths.get(at as usize - 1).copied().flatten(),
            _ => self.new_nameless(kind, which),
        }
    }

    #[cold]
    fn new_nameless(&mut self, kind: Kind, which: usize) -> Option<Path> {
        let path = self.path(kind, 0);
        if self.nameless.is_empty() {
            self.nameless = vec![[0; 2]; self.grammars.rules.len()];
        }
        let known = self.known.get(self.key(kind, 0));
        if let (Some(at), Some(place)) = (known, self.nameless.get_mut(self.rule as usize)) {
            place[which] = at + 1;
        }
        path
    }

    #[cold]
    fn new_path(&mut self, kind: Kind, name: u32) -> Option<Path> {
        let path = self.search(kind, name);
        self.known.insert(self.key(kind, name), small(self.paths.len()));
        self.paths.push(path);
        path
    }

    fn search(&self, kind: Kind, name: u32) -> Option<Path> {
        let rule = self.grammars.rules.get(self.rule as usize)?;
        let mut best: Option<(u32, Production, Parts)> = None;
        let mut offer = |rank: Option<u32>, production, parts| {
            if let Some(rank) = rank.filter(|&r| best.is_none_or(|(least, ..)| r < least)) {
                best = Some((rank, production, parts));
            }
        };
        let Rule { first, second } = rule;
        let bits = width(first.len() + usize::from(!second.is_empty()));
        for (at, &production) in first.iter().enumerate() {
            let parts = [(small(at), bits), (0, 0), (0, 0)];
            offer(self.rank(production.event, kind, name), production, parts);
        }
        for (at, branch) in second.iter().enumerate() {
            let escape = [(small(first.len()), bits), (small(at), width(second.len())), (0, 0)];
            let group = match branch {
                Branch::Leaf(production) => std::slice::from_ref(production),
                Branch::Group(all) => all,
            };
            for (third, &production) in group.iter().enumerate() {
                let mut parts = escape;
                parts[2] = (small(third), width(group.len()));
                let rank = self.rank(production.event, kind, name).map(|rank| rank + 8);
                offer(rank, production, parts);
            }
        }
        let aligned = self.options.alignment != Alignment::BitPacked;
        best.map(|(_, production, parts)| Path::new(production, parts, aligned))
    }

    /// How well an event fits: 0 is best.
    fn rank(&self, event: Event, kind: Kind, name: u32) -> Option<u32> {
        let uri = || self.names.uri_of(name);
        let is = |found| self.names.initial(found) == name;
        match (kind, event) {
            (Kind::Start, Event::StartElement(id)) => {
                is(self.grammars.elements.get(id as usize)?.name).then_some(0)
            }
            (Kind::Attribute, Event::Attribute(found, _))
            | (Kind::AttributeUntyped, Event::AttributeUntyped(found)) => is(found).then_some(0),
            (Kind::Start, Event::StartElementIn(found))
            | (Kind::Attribute, Event::AttributeIn(found)) => (uri() == found).then_some(1),
            (Kind::Start, Event::StartElementAny)
            | (Kind::Attribute, Event::AttributeAny)
            | (Kind::AttributeUntyped, Event::AttributeAnyUntyped) => Some(2),
            (Kind::Characters, Event::Characters(_))
            | (Kind::CharactersUntyped, Event::CharactersUntyped)
            | (Kind::End, Event::EndElement)
            | (Kind::Type, Event::AttributeType)
            | (Kind::Nil, Event::AttributeNil)
            | (Kind::StartDocument, Event::StartDocument)
            | (Kind::EndDocument, Event::EndDocument)
            | (Kind::Namespace, Event::Namespace)
            | (Kind::Comment, Event::Comment)
            | (Kind::Instruction, Event::ProcessingInstruction)
            | (Kind::Doctype, Event::Doctype)
            | (Kind::Entity, Event::EntityReference)
            | (Kind::SelfContained, Event::SelfContained) => Some(0),
            _ => None,
        }
    }

    #[inline(always)]
    pub(super) fn code(&mut self, path: &Path) {
        self.to.bits(path.code.0, path.code.1);
        if path.has_more {
            self.more_code(path.more);
        }
    }

    #[cold]
    fn more_code(&mut self, parts: [(u32, u32); 2]) {
        parts.into_iter().for_each(|(value, bits)| self.to.bits(value, bits));
    }
}
