//! Built-in grammars (EXI §8.4): what there is without a schema, and what streams learn.

use std::sync::{Arc, OnceLock};

use super::{
    Options, Preserve,
    grammar::{Branch, Event, Grammars, Production, Rule, RuleId, Uri},
};

/// Set in the number of a rule that is learned. The lowest bit tells ElementContent from
/// StartTagContent, the rest is the number of the grammar; 0 is FragmentContent.
pub(crate) const LEARNED: RuleId = 1 << 31;
/// FragmentContent (EXI §8.4.2).
pub(crate) const FRAGMENT: RuleId = LEARNED;

/// The rule that a fragment begins with (EXI §8.4.2, §8.5.2), in the grammars of schemas too if
/// they have one: self-contained elements need it beside that of documents.
pub(crate) const FRAGMENT_START: RuleId = 2;

/// Whether `rule` is ElementContent.
#[inline]
pub(crate) fn is_content(rule: RuleId) -> bool {
    rule & 1 == 1
}

/// What a learned production matches: a kind in two bits, and a name.
pub(crate) mod key {
    /// SE(qname)
    pub(crate) const START: u32 = 0;
    /// AT(qname)
    pub(crate) const ATTRIBUTE: u32 = 1;
    /// CH
    pub(crate) const CHARACTERS: u32 = 2;
    /// EE
    pub(crate) const END: u32 = 3;
}

/// Bytes that a grammar, and a production, is counted with.
pub(crate) const RULE_BYTES: usize = 48;
/// See [`RULE_BYTES`].
pub(crate) const PRODUCTION_BYTES: usize = 24;

/// The parts of built-in grammars that are never learned, by what is preserved.
#[derive(Debug)]
pub(crate) struct Fixed {
    /// Second parts of StartTagContent, without comments and processing instructions.
    pub(crate) start: Vec<Event>,
    /// Second parts of ElementContent, likewise.
    pub(crate) content: Vec<Event>,
    /// The third parts behind them.
    pub(crate) last: Vec<Event>,
    /// See [`Fixed::more`]: of StartTagContent, ElementContent and FragmentContent.
    more: [usize; 3],
}

impl Fixed {
    pub(crate) fn new(options: &Options) -> Self {
        let preserve = options.preserve;
        let mut start = vec![Event::EndElement, Event::AttributeAny];
        let mut content = Vec::new();
        if preserve.prefixes {
            start.push(Event::Namespace);
        }
        if options.self_contained && !options.strict {
            start.push(Event::SelfContained);
        }
        for list in [&mut start, &mut content] {
            list.extend([Event::StartElementAny, Event::CharactersUntyped]);
            if preserve.dtd {
                list.push(Event::EntityReference);
            }
        }
        let last = comments(preserve);
        let second = |list: &[Event]| usize::from(!(list.is_empty() && last.is_empty()));
        let more = [second(&start), 1 + second(&content), 2 + second(&[])];
        Self { start, content, last, more }
    }

    /// First parts of codes that are not learned, with the one in front of second parts.
    #[inline]
    pub(crate) fn more(&self, rule: RuleId) -> usize {
        self.more[if rule == FRAGMENT { 2 } else { (rule & 1) as usize }]
    }

    /// Second parts of a rule.
    #[inline]
    pub(crate) fn seconds(&self, rule: RuleId) -> &[Event] {
        if rule == FRAGMENT {
            &[]
        } else if is_content(rule) {
            &self.content
        } else {
            &self.start
        }
    }

    /// How many second parts there are, the group at the end included.
    #[inline]
    pub(crate) fn second_count(&self, rule: RuleId) -> usize {
        if rule == FRAGMENT {
            return self.last.len();
        }
        self.seconds(rule).len() + usize::from(!self.last.is_empty())
    }

    /// How many first parts are not learned, the escape to second parts included.
    #[inline]
    pub(crate) fn others(&self, rule: RuleId) -> usize {
        if rule == FRAGMENT {
            return self.base(rule) + usize::from(!self.last.is_empty());
        }
        // StartTagContent and ElementContent have second parts always.
        self.base(rule) + 1
    }

    /// Codes of one part that are not learned.
    #[inline]
    pub(crate) fn base(&self, rule: RuleId) -> usize {
        if rule == FRAGMENT { 2 } else { usize::from(is_content(rule)) }
    }
}

fn comments(preserve: Preserve) -> Vec<Event> {
    let mut events = Vec::new();
    if preserve.comments {
        events.push(Event::Comment);
    }
    if preserve.pis {
        events.push(Event::ProcessingInstruction);
    }
    events
}

fn group(events: &[Event], next: RuleId) -> Option<Branch> {
    let all: Box<[_]> = events.iter().map(|&event| Production { event, next }).collect();
    (!all.is_empty()).then_some(Branch::Group(all))
}

fn leaves(events: &[Event], next: RuleId) -> Box<[Branch]> {
    events.iter().map(|&event| Branch::Leaf(Production { event, next })).collect()
}

/// Grammars without a schema: the initial string tables (EXI Appendix D) and the document or
/// fragment grammar (EXI §8.4.1, §8.4.2).
pub(crate) fn schema_less(options: &Options) -> Grammars {
    let uri = |uri: &str, prefixes: &[&str], locals: &[&str]| Uri {
        uri: uri.to_owned(),
        prefixes: prefixes.iter().map(|&text| text.to_owned()).collect(),
        locals: locals.iter().map(|&text| text.to_owned()).collect(),
    };
    let uris = vec![
        uri("", &[""], &[]),
        uri("http://www.w3.org/XML/1998/namespace", &["xml"], &["base", "id", "lang", "space"]),
        uri("http://www.w3.org/2001/XMLSchema-instance", &["xsi"], &["nil", "type"]),
    ];
    let one = |event, next| Box::from([Production { event, next }]);
    let last = comments(options.preserve);
    let mut second = Vec::new();
    if options.preserve.dtd {
        second.push(Branch::Leaf(Production { event: Event::Doctype, next: 1 }));
    }
    second.extend(group(&last, 1));
    let rules = vec![
        Rule { first: one(Event::StartDocument, 1), second: Box::default() },
        Rule { first: one(Event::StartElementAny, 3), second: second.into() },
        Rule { first: one(Event::StartDocument, FRAGMENT), second: Box::default() },
        Rule { first: one(Event::EndDocument, 3), second: leaves(&last, 3) },
    ];
    let start = if options.fragment { FRAGMENT_START } else { 0 };
    Grammars { uris, rules, start, ..Grammars::default() }
}

/// The same, made once for each choice that matters.
pub(crate) fn shared(options: &Options) -> Arc<Grammars> {
    static ALL: [OnceLock<Arc<Grammars>>; 16] = [const { OnceLock::new() }; 16];
    let Preserve { comments, pis, dtd, .. } = options.preserve;
    let choices = [comments, pis, dtd, options.fragment];
    let at = choices.iter().fold(0, |at, &choice| at << 1 | usize::from(choice));
    ALL[at].get_or_init(|| Arc::new(schema_less(options))).clone()
}
