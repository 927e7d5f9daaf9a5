//! Exchanges and their bindings: to which queues a message goes (AMQP 0.9.1 §3.1.3).

mod headers;
#[cfg(test)]
mod tests;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::amqp091::{Table, TableBuf};

pub(super) use words::Pattern;
use words::Words;
#[cfg(test)]
pub(super) use words::is_match;

/// Exchanges at once.
pub(super) const MAX_EXCHANGES: usize = 10_000;
/// Bindings of one exchange.
pub(super) const MAX_BINDINGS: usize = 1_000_000;

/// How an exchange chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// By the routing key.
    Direct,
    /// All.
    Fanout,
    /// By a pattern of words of the routing key.
    Topic,
    /// By the headers.
    Headers,
}

impl Kind {
    pub(super) const NAMES: [(Self, &'static str); 4] = [
        (Self::Direct, "direct"),
        (Self::Fanout, "fanout"),
        (Self::Topic, "topic"),
        (Self::Headers, "headers"),
    ];

    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }
}

/// Where a binding leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// To a queue.
    Queue(Arc<str>),
    /// To another exchange.
    Exchange(Arc<str>),
}

/// A binding; its source is where it is kept. Those of one target stand together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Binding {
    pub(super) target: Target,
    pub(super) key: Arc<str>,
    /// The content of a table, in the order of its names.
    pub(super) arguments: Box<[u8]>,
}

impl Binding {
    /// The same arguments in another order make the same binding.
    pub(super) fn new(target: Target, key: &str, arguments: Table<'_>) -> Self {
        Self { target, key: key.into(), arguments: sorted(arguments) }
    }
}

/// A table in the order of its names.
pub(super) fn sorted(table: Table<'_>) -> Box<[u8]> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| *name);
    let mut sorted = TableBuf::default();
    for (name, value) in entries {
        // Its names have been read, so that they fit.
        let _ = sorted.put(name, &value);
    }
    sorted.as_table().as_bytes().into()
}

/// Targets of one key, and how many bindings lead to each.
pub(super) type Targets = BTreeMap<Target, usize>;

/// An exchange.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) kind: Kind,
    pub(super) durable: bool,
    /// It goes with its last binding.
    pub(super) auto_delete: bool,
    /// Clients do not publish to it.
    pub(super) internal: bool,
    /// Where goes what no binding fits.
    pub(super) alternate: Option<Arc<str>>,
    bindings: BTreeSet<Binding>,
    by_key: BTreeMap<Arc<str>, Targets>,
    words: Words,
}

impl Exchange {
    pub(super) fn new(kind: Kind, durable: bool, auto_delete: bool, internal: bool) -> Self {
        Self {
            kind,
            durable,
            auto_delete,
            internal,
            alternate: None,
            bindings: BTreeSet::new(),
            by_key: BTreeMap::new(),
            words: Words::default(),
        }
    }

    pub(super) fn bindings(&self) -> &BTreeSet<Binding> {
        &self.bindings
    }

    /// Adds a binding; whether it is a new one.
    pub(super) fn bind(&mut self, binding: Binding) -> bool {
        if self.bindings.contains(&binding) {
            return false;
        }
        let targets = match self.kind {
            Kind::Direct => Some(self.by_key.entry(binding.key.clone()).or_default()),
            Kind::Topic => self.words.make(&binding.key),
            Kind::Fanout | Kind::Headers => None,
        };
        if let Some(targets) = targets {
            *targets.entry(binding.target.clone()).or_default() += 1;
        }
        self.bindings.insert(binding)
    }

    /// Takes a binding out; whether there was one.
    pub(super) fn unbind(&mut self, binding: &Binding) -> bool {
        if !self.bindings.remove(binding) {
            return false;
        }
        let less = |targets: &mut Targets| {
            if let Some(count) = targets.get_mut(&binding.target) {
                *count -= 1;
                if *count == 0 {
                    targets.remove(&binding.target);
                }
            }
        };
        match self.kind {
            Kind::Direct => {
                if let Some(targets) = self.by_key.get_mut(&binding.key) {
                    less(targets);
                    if targets.is_empty() {
                        self.by_key.remove(&binding.key);
                    }
                }
            }
            Kind::Topic => self.words.change(&binding.key, less),
            Kind::Fanout | Kind::Headers => {}
        }
        true
    }

    /// Takes out all bindings that lead to one target, which come back.
    pub(super) fn unbind_all(&mut self, target: &Target) -> Vec<Binding> {
        let first = Binding { target: target.clone(), key: "".into(), arguments: [].into() };
        let of = self.bindings.range(first..).take_while(|binding| binding.target == *target);
        let gone: Vec<Binding> = of.cloned().collect();
        for binding in &gone {
            self.unbind(binding);
        }
        gone
    }

    fn find(&self, key: &str, headers: Option<Table<'_>>, mut found: impl FnMut(&Target)) {
        match self.kind {
            Kind::Direct => {
                self.by_key.get(key).into_iter().flatten().for_each(|(target, _)| found(target));
            }
            Kind::Topic => self.words.find(key, |targets| targets.keys().for_each(&mut found)),
            Kind::Fanout => self.bindings.iter().for_each(|binding| found(&binding.target)),
            Kind::Headers => {
                for binding in &self.bindings {
                    let arguments = Table::decode(&binding.arguments).unwrap_or_default();
                    if headers::is_match(arguments, headers) {
                        found(&binding.target);
                    }
                }
            }
        }
    }
}

/// Where a message goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Routed {
    pub(super) queues: BTreeSet<Arc<str>>,
    /// It came by the exchange that is the bridge.
    pub(super) is_bridged: bool,
}

/// All exchanges but the default one.
#[derive(Debug)]
pub(super) struct Exchanges {
    by_name: BTreeMap<Arc<str>, Exchange>,
}

/// The exchange that is the bridge to other protocols.
pub(super) const BRIDGE: &str = "amq.topic";

impl Default for Exchanges {
    /// Those that are always there (AMQP 0.9.1 §3.1.3).
    fn default() -> Self {
        let standard = [
            ("amq.direct", Kind::Direct),
            ("amq.fanout", Kind::Fanout),
            (BRIDGE, Kind::Topic),
            ("amq.headers", Kind::Headers),
            ("amq.match", Kind::Headers),
        ];
        let make = |(name, kind)| (Arc::from(name), Exchange::new(kind, true, false, false));
        Self { by_name: standard.into_iter().map(make).collect() }
    }
}

impl Exchanges {
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Exchange> {
        self.by_name.get(name)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Exchange> {
        self.by_name.get_mut(name)
    }

    pub(super) fn insert(&mut self, name: Arc<str>, exchange: Exchange) {
        self.by_name.insert(name, exchange);
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Exchange> {
        self.by_name.remove(name)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&Arc<str>, &mut Exchange)> {
        self.by_name.iter_mut()
    }

    /// The queues that a message goes to, each once, however many ways lead there.
    pub(super) fn route(&self, exchange: &str, key: &str, headers: Option<Table<'_>>) -> Routed {
        let mut queues = BTreeSet::new();
        // Exchanges may be bound in a ring: each is asked once.
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut open = vec![exchange];
        while let Some(name) = open.pop() {
            if !seen.insert(name) {
                continue;
            }
            let Some((_, exchange)) = self.by_name.get_key_value(name) else { continue };
            let mut is_found = false;
            let mut next = Vec::new();
            exchange.find(key, headers, |target| {
                is_found = true;
                match target {
                    Target::Queue(queue) => {
                        queues.insert(queue.clone());
                    }
                    Target::Exchange(name) => next.push(name.clone()),
                }
            });
            if !is_found && let Some(alternate) = &exchange.alternate {
                next.push(alternate.clone());
            }
            let known = |name: Arc<str>| self.by_name.get_key_value(&name).map(|(name, _)| &**name);
            open.extend(next.into_iter().filter_map(known));
        }
        Routed { queues, is_bridged: seen.contains(BRIDGE) }
    }
}
