//! Built-in element grammars, which learn from what they meet (EXI §8.4.3).

use super::{Kind, UNTYPED, Walk, small};
use crate::exi::{
    bits::{Fault, width},
    built_in::{FRAGMENT, LEARNED, is_content},
    grammar::{Event, RuleId},
    lexical::Typed,
};

impl Walk {
    /// The event code of a learned production of the current rule, if it has it.
    #[inline(always)]
    pub(super) fn learned_code(&mut self, kind: Kind, name: u32) -> bool {
        let Some(at) = self.found.get(self.key(kind, name)) else {
            return false;
        };
        let (count, width) = self.first_part();
        self.to.bits(count - 1 - at, width);
        true
    }

    /// How many productions the current learned rule has, and the bits of its codes' first part.
    #[inline]
    fn first_part(&self) -> (u32, u32) {
        let rule = self.rule;
        let count = self.learned[(rule & !LEARNED) as usize];
        (count, width(count as usize + self.fixed.others(rule)))
    }

    /// The event code of a production that a learned rule has from the start.
    pub(super) fn fixed_code(&mut self, event: Event) -> Result<(), Fault> {
        let (count, bits) = self.first_part();
        let rule = self.rule;
        let base = small(self.fixed.base(rule));
        let direct = match event {
            Event::StartElementAny if rule == FRAGMENT => Some(0),
            Event::EndDocument if rule == FRAGMENT => Some(1),
            Event::EndElement if is_content(rule) => Some(0),
            _ => None,
        };
        if let Some(at) = direct {
            self.to.bits(count + at, bits);
            return Ok(());
        }
        let seconds = self.fixed.seconds(rule);
        let last = &self.fixed.last;
        let bits_of_second = width(self.fixed.second_count(rule));
        if let Some(at) = seconds.iter().position(|&one| one == event) {
            self.to.bits(count + base, bits);
            self.to.bits(small(at), bits_of_second);
            return Ok(());
        }
        let third = last.iter().position(|&one| one == event);
        let (at, third) = match third {
            Some(third) if rule == FRAGMENT => (third, None),
            Some(third) => (seconds.len(), Some((third, width(last.len())))),
            None => return Err(Fault::Bad(&"an event that the options do not preserve")),
        };
        self.to.bits(count + base, bits);
        self.to.bits(small(at), bits_of_second);
        if let Some((third, bits)) = third {
            self.to.bits(small(third), bits);
        }
        Ok(())
    }

    pub(super) fn learn(&mut self, rule: RuleId, kind: Kind, name: u32) -> Result<(), Fault> {
        if self.bounded && self.counts_only(rule) {
            return self.check();
        }
        let count = &mut self.learned[(rule & !LEARNED) as usize];
        let key = u64::from(rule) << 32 | u64::from(name) << 4 | kind as u64;
        self.found.insert(key, *count);
        *count += 1;
        self.productions += 1;
        self.check()
    }

    pub(super) fn make_rule(&mut self) -> Result<RuleId, Fault> {
        let at = u32::try_from(self.learned.len()).ok().filter(|&at| at < LEARNED);
        self.learned.extend([0, 0]);
        self.check()?;
        Ok(at.ok_or(Fault::Limit(&"table_bytes"))? | LEARNED)
    }

    /// As [`Walk::start`].
    pub(super) fn learned_start(&mut self, name: u32, prefix: &str) -> Result<(), Fault> {
        if self.bounded && self.leave_learning(Kind::Start, name)? {
            return self.start(name, prefix);
        }
        let rule = self.rule;
        if !self.learned_code(Kind::Start, name) {
            self.fixed_code(Event::StartElementAny)?;
            self.names.write_name(name, &mut self.to);
            self.learn(rule, Kind::Start, name)?;
        }
        self.prefix(name, prefix);
        self.enter(name, if rule == FRAGMENT { rule } else { rule | 1 })
    }

    /// Behind [`Walk::end`].
    pub(super) fn learned_end(&mut self) -> Result<(), Fault> {
        if self.bounded && self.leave_learning(Kind::End, 0)? {
            return self.end();
        }
        let rule = self.rule;
        if is_content(rule) {
            let (count, bits) = self.first_part();
            self.to.bits(count, bits);
        } else if !self.learned_code(Kind::End, 0) {
            self.fixed_code(Event::EndElement)?;
            self.learn_once(rule, Kind::End, 0)?;
        }
        self.leave_element()
    }

    /// As [`Walk::characters`].
    pub(super) fn learned_characters(&mut self, text: &str) -> Result<(), Fault> {
        if self.bounded && self.leave_learning(Kind::Characters, 0)? {
            return self.characters(text);
        }
        let rule = self.rule;
        if !self.learned_code(Kind::Characters, 0) {
            self.fixed_code(Event::CharactersUntyped)?;
            self.learn_once(rule, Kind::Characters, 0)?;
        }
        self.rule |= 1;
        self.value(self.name, UNTYPED, text, Typed::Text(text))
    }

    /// As [`Walk::attribute`].
    pub(super) fn learned_attribute(
        &mut self,
        name: u32,
        prefix: &str,
        text: &str,
    ) -> Result<(), Fault> {
        if self.bounded && self.leave_learning(Kind::Attribute, name)? {
            return self.attribute(name, prefix, text);
        }
        let rule = self.rule;
        if !self.learned_code(Kind::Attribute, name) {
            self.fixed_code(Event::AttributeAny)?;
            self.names.write_name(name, &mut self.to);
            self.learn(rule, Kind::Attribute, name)?;
        }
        self.prefix(name, prefix);
        self.value(name, UNTYPED, text, Typed::Text(text))
    }
}
