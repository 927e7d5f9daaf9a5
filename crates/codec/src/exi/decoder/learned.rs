//! Built-in element and fragment grammars as they are learned and walked (EXI §8.4.2, §8.4.3).

use super::{Core, Event, Fault, Item, NO_CODE, Production, Reader, RuleId, UNTYPED, width};
use crate::exi::{
    built_in::{FRAGMENT, LEARNED, is_content, key},
    read_tables::KEPT_FEW,
};

/// Productions that a rule has before it takes memory of its own.
const FEW: usize = 4;

/// The productions that a rule has learned, the last one with the lowest code.
#[derive(Debug, Default)]
pub(super) struct Learned {
    few: [u32; FEW],
    /// How many there are, while they are few.
    count: u8,
    /// Whether CH, EE and AT(xsi:type) are among them: those are learned once.
    characters: bool,
    end: bool,
    xsi_type: bool,
    /// All of them, if they are more.
    many: Vec<u32>,
}

impl Learned {
    pub(super) fn reset(&mut self) {
        let mut many = std::mem::take(&mut self.many);
        many.clear();
        if many.capacity() > KEPT_FEW {
            many = Vec::new();
        }
        *self = Self { many, ..Self::default() };
    }

    #[inline]
    fn found(&self) -> &[u32] {
        if self.many.is_empty() {
            self.few.get(..usize::from(self.count)).unwrap_or_default()
        } else {
            &self.many
        }
    }

    fn push(&mut self, found: u32) {
        if let Some(place) = self.few.get_mut(usize::from(self.count)) {
            *place = found;
            self.count += 1;
            return;
        }
        if self.many.is_empty() {
            self.many.extend(self.few);
        }
        self.many.push(found);
    }
}

impl Core {
    /// Reads an event of a built-in grammar (EXI §8.4.3).
    #[inline(always)]
    pub(super) fn learned_event(&mut self, from: &mut Reader) -> Result<(), Fault> {
        let rule = self.rule;
        let learned = self.tables.learned[(rule & !LEARNED) as usize].found();
        let count = learned.len();
        let code = from.bits(width(count + self.fixed.more(rule))) as usize;
        if code >= count {
            // EE of ElementContent is not learned.
            if code == count && is_content(rule) {
                return self.leave(from);
            }
            return self.fixed_event(code - count, from);
        }
        let found = learned[count - 1 - code];
        let name = found >> 2;
        match found & 3 {
            key::START => {
                let prefix = self.prefix(name, from)?;
                self.sure(from)?;
                let next = if rule == FRAGMENT { rule } else { rule | 1 };
                self.enter(name, next)?;
                self.say(Item::Start { name, prefix })
            }
            key::ATTRIBUTE => self.attribute(name, UNTYPED, rule, from),
            key::CHARACTERS => self.characters(UNTYPED, rule | 1, from),
            _ => self.leave(from),
        }
    }

    /// An event that is not learned, by its code behind those that are.
    #[inline(never)]
    fn fixed_event(&mut self, code: usize, from: &mut Reader) -> Result<(), Fault> {
        let rule = self.rule;
        let event = match code {
            0 if rule == FRAGMENT => Event::StartElementAny,
            1 if rule == FRAGMENT => Event::EndDocument,
            _ => {
                let seconds = self.fixed.seconds(rule);
                let code = from.bits(width(self.fixed.second_count(rule))) as usize;
                match seconds.get(code) {
                    Some(&event) => event,
                    None if rule == FRAGMENT => *self.fixed.last.get(code).ok_or(NO_CODE)?,
                    None if code == seconds.len() => {
                        let code = from.bits(width(self.fixed.last.len())) as usize;
                        *self.fixed.last.get(code).ok_or(NO_CODE)?
                    }
                    None => return Err(NO_CODE),
                }
            }
        };
        let next = match event {
            Event::StartElementAny | Event::CharactersUntyped | Event::EntityReference
                if rule != FRAGMENT =>
            {
                rule | 1
            }
            _ => rule,
        };
        self.apply(Production { event, next }, from)
    }

    /// Remembers what a wildcard of the current rule has matched.
    pub(super) fn learn(&mut self, rule: RuleId, found: u32) {
        if rule & LEARNED == 0 {
            return;
        }
        self.tables.learned[(rule & !LEARNED) as usize].push(found);
        self.tables.productions += 1;
    }

    pub(super) fn learn_once(&mut self, rule: RuleId, found: u32) {
        if rule & LEARNED == 0 {
            return;
        }
        let learned = &mut self.tables.learned[(rule & !LEARNED) as usize];
        let known = match found & 3 {
            key::CHARACTERS => &mut learned.characters,
            key::END => &mut learned.end,
            _ => &mut learned.xsi_type,
        };
        if !std::mem::replace(known, true) {
            self.learn(rule, found);
        }
    }
}
