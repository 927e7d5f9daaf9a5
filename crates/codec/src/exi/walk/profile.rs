//! Bounds of what a receiver has to learn (EXI Profile §3): behind them elements are given a type
//! of the schema, which learns nothing, or productions are made that are never used.

use super::{Kind, Walk};
use crate::exi::{
    Profile,
    bits::Fault,
    built_in::{FRAGMENT, LEARNED, is_content},
    decoder::XSI_TYPE,
    grammar::{Event, Grammars, QName, RuleId},
};

/// In place of a name: a production that is there and never used.
const GHOST: u32 = (1 << 28) - 1;

/// The name of xs:anyType, if there is a schema.
pub(super) fn any_type(grammars: &Grammars) -> Option<QName> {
    let locals = &grammars.uris.get(3)?.locals;
    let local = locals.iter().position(|local| local == "anyType")?;
    let name = QName { uri: 3, local: u32::try_from(local).ok()? };
    grammars.named_types.contains_key(&name).then_some(name)
}

/// Whether an encoder has to look at bounds.
pub(super) fn is_bounded(profile: &Profile) -> bool {
    profile.built_in_grammars_max.is_some() || profile.built_in_productions_max.is_some()
}

impl Walk {
    /// Whether the grammar of a rule is beyond the bound for grammars.
    fn is_beyond(&self, rule: RuleId) -> bool {
        let number = (rule & !LEARNED) >> 1;
        self.options.profile.built_in_grammars_max.is_some_and(|max| number > max)
    }

    /// Whether productions that the rule gets now must not be used.
    fn is_ghost(&self, rule: RuleId) -> bool {
        let max = self.options.profile.built_in_productions_max;
        let full = max.is_some_and(|max| self.productions >= max as usize);
        self.bounded && rule != FRAGMENT && (full || self.is_beyond(rule))
    }

    /// Before an event of a learned rule: gives the element the type xs:anyType if it would learn
    /// what it must not, and says so; the rule is one of the schema then.
    pub(super) fn leave_learning(&mut self, kind: Kind, name: u32) -> Result<bool, Fault> {
        let rule = self.rule;
        let first = std::mem::replace(&mut self.at_start, false);
        if !self.bounded || !first || rule == FRAGMENT || is_content(rule) {
            return Ok(false);
        }
        let knows = !self.is_beyond(rule) && self.found.get(self.key(kind, name)).is_some();
        let Some(any) = self.any_type.filter(|_| !knows && self.is_ghost(rule)) else {
            return Ok(false);
        };
        let target = self.names.initial(any);
        self.type_attribute("", target, "", "")?;
        Ok(true)
    }

    /// AT(xsi:type) of a learned rule.
    pub(super) fn learned_type(&mut self) -> Result<(), Fault> {
        let (rule, name) = (self.rule, self.names.initial(XSI_TYPE));
        // EXI Profile §3.1: what leaves the grammar is always AT(*).
        let known = self.found.get(self.key(Kind::Attribute, name)).is_some();
        if known && !self.is_ghost(rule) {
            self.learned_code(Kind::Attribute, name);
            return Ok(());
        }
        self.fixed_code(Event::AttributeAny)?;
        self.names.write_name(name, &mut self.to);
        if known { Ok(()) } else { self.learn_once(rule, Kind::Attribute, name) }
    }

    /// A production that is made but once, whether it is used or not (EXI §8.4.3): CH, EE and
    /// AT(xsi:type).
    pub(super) fn learn_once(&mut self, rule: RuleId, kind: Kind, name: u32) -> Result<(), Fault> {
        let ghost = u64::from(rule) << 32 | u64::from(GHOST) << 4 | kind as u64;
        if self.bounded && self.is_ghost(rule) {
            if self.found.get(ghost).is_some() {
                return Ok(());
            }
            self.found.insert(ghost, 0);
        }
        self.learn(rule, kind, name)
    }

    /// Counts a production that is never used; says whether it is one.
    pub(super) fn counts_only(&mut self, rule: RuleId) -> bool {
        let ghost = self.is_ghost(rule);
        if ghost {
            self.learned[(rule & !LEARNED) as usize] += 1;
        }
        ghost
    }
}
