//! Topics of WS-Topics 1.3 and of MQTT, which every other protocol's are translated to.
//!
//! A level is a name of XML, in which what no name may have stands as `_xHHHH_`. Every topic of
//! MQTT has a form in each dialect and comes back from it as it was; so does each filter from the
//! dialect Full. What a dialect, or MQTT, cannot say is refused and never widened.
//!
//! Topics without a namespace and those of [`LW_TOPICS`] are MQTT's topics. Others stand below a
//! first level of their own: the one that the operator has named for the namespace, else the
//! namespace in braces.

mod level;
mod path;
#[cfg(test)]
mod tests;

use std::fmt;

use codec::xml::is_nc_name;

use super::names::{LW_TOPICS, WSTOP};
use crate::filter::{check_filter, check_name};
use level::{child_of_namespace, escape, namespace_level, of_namespace_level, unescape};
use path::{Path, Test};

/// Longest expression in bytes.
pub(crate) const MAX_EXPRESSION_BYTES: usize = 128 << 10;
/// Most paths that `|` joins: each is a filter of the subscription.
pub(crate) const MAX_PATHS: usize = 64;

/// A dialect of topic expressions (WS-Topics 1.3, `SimpleTopicExpression` to
/// `FullTopicExpression`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// A root topic's name; here the whole topic as one name.
    Simple,
    /// A path of names.
    Concrete,
    /// Paths with wildcards.
    Full,
}

impl Dialect {
    /// Every one.
    pub(crate) const ALL: [Self; 3] = [Self::Simple, Self::Concrete, Self::Full];

    /// Its identifier.
    #[must_use]
    pub(crate) fn uri(self) -> &'static str {
        match self {
            Self::Simple => "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Simple",
            Self::Concrete => "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete",
            Self::Full => "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Full",
        }
    }

    /// The one with an identifier.
    #[must_use]
    pub(crate) fn of_uri(uri: &str) -> Option<Self> {
        debug_assert!(Self::Simple.uri().starts_with(WSTOP));
        Self::ALL.into_iter().find(|dialect| dialect.uri() == uri.trim())
    }
}

/// How a consumer or a publisher spells topics, as seen in its expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spelling {
    /// In which dialect it can read them.
    pub(crate) dialect: Dialect,
    /// Topics of other protocols are in [`LW_TOPICS`], else in no namespace.
    pub(crate) qualified: bool,
}

impl Default for Spelling {
    fn default() -> Self {
        Self { dialect: Dialect::Concrete, qualified: true }
    }
}

/// Where the topics of a namespace are among those of MQTT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The namespace.
    pub uri: String,
    /// The first levels, without a `/` at the end.
    pub levels: String,
}

/// Why an expression is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is none of its dialect (`InvalidTopicExpressionFault`).
    Invalid(&'static str),
    /// It says what topics of MQTT cannot (`TopicNotSupportedFault`).
    Unsupported(&'static str),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(what) | Self::Unsupported(what) => f.write_str(what),
        }
    }
}

/// An expression as it is written, with the namespaces of its prefixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// The expression.
    pub(crate) text: String,
    /// Prefixes and namespaces that are to be declared.
    pub(crate) namespaces: Vec<(String, String)>,
}

/// Namespaces of prefixes at an expression.
pub(crate) type Resolve<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Translates expressions by the operator's mounts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Topics<'a> {
    mounts: &'a [Mount],
}

impl<'a> Topics<'a> {
    /// With mounts.
    #[must_use]
    pub(crate) fn new(mounts: &'a [Mount]) -> Self {
        Self { mounts }
    }

    /// The topic that an expression names.
    ///
    /// # Errors
    /// Expressions that name several, and [`Refused`].
    pub(crate) fn read_topic(
        &self,
        dialect: Dialect,
        text: &str,
        resolve: &Resolve<'_>,
    ) -> Result<String, Refused> {
        let (filters, _) = self.read_filters(dialect, text, resolve)?;
        let [topic] = &*filters else {
            return Err(Refused::Invalid("a message has one topic"));
        };
        check_name(topic).map_err(Refused::Invalid)?;
        Ok(topic.clone())
    }

    /// The filters of MQTT that an expression comes to, and how its author spells topics.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) fn read_filters(
        &self,
        dialect: Dialect,
        text: &str,
        resolve: &Resolve<'_>,
    ) -> Result<(Vec<String>, Spelling), Refused> {
        let text = text.trim();
        if text.len() > MAX_EXPRESSION_BYTES {
            return Err(Refused::Invalid("an expression has at most 128 KiB"));
        }
        let mut filters = Vec::new();
        let mut qualified = false;
        let most = if dialect == Dialect::Full { MAX_PATHS + 1 } else { 1 };
        for text in text.splitn(most, '|') {
            if filters.len() == MAX_PATHS {
                return Err(Refused::Unsupported("an expression has at most 64 paths"));
            }
            let path = Path::parse(dialect, text)?;
            qualified |= !path.prefix.is_empty();
            filters.push(self.filter(dialect, &path, resolve)?);
        }
        let spoken = if dialect == Dialect::Simple { dialect } else { Dialect::Concrete };
        Ok((filters, Spelling { dialect: spoken, qualified }))
    }

    /// The filter of a path.
    fn filter(
        &self,
        dialect: Dialect,
        path: &Path<'_>,
        resolve: &Resolve<'_>,
    ) -> Result<String, Refused> {
        const UNDECLARED: Refused = Refused::Invalid("a prefix that is not declared");
        let uri = if path.prefix.is_empty() {
            String::new()
        } else {
            resolve(path.prefix).ok_or(UNDECLARED)?
        };
        let mut levels = self.mount_of(&uri);
        let mounted = levels.len();
        let mut tail = false;
        for (at, step) in path.steps.iter().enumerate() {
            if (tail || step.deep) && matches!(step.test, Test::Name { .. }) {
                // A name below any number of levels: no filter of MQTT says so.
                return Err(Refused::Invalid("behind // may only stand . and *, in MQTT's terms"));
            }
            match step.test {
                Test::Any => levels.push("+".to_owned()),
                Test::Itself => {}
                Test::Name { prefix, local } => {
                    let name = unescape(local).ok_or(Refused::Invalid(NOT_CANONICAL))?;
                    if name.contains(['+', '#']) {
                        return Err(Refused::Unsupported("a level of MQTT has no + and no #"));
                    }
                    if dialect != Dialect::Simple && name.contains('/') {
                        return Err(Refused::Unsupported("a level of MQTT has no /"));
                    }
                    levels.push(match prefix {
                        Some(prefix) if at > 0 => {
                            let of = resolve(prefix).ok_or(UNDECLARED)?;
                            let same = of == uri || is_ours(&of) && is_ours(&uri);
                            if same { name } else { child_of_namespace(&of, &name) }
                        }
                        _ => name,
                    });
                }
            }
            tail |= step.deep;
        }
        let root_deep = path.steps.first().is_some_and(|step| step.deep);
        if tail {
            // All topics: what is below any root, and each root.
            if mounted == 0 && root_deep && levels.len() == 1 {
                levels.clear();
            }
            levels.push("#".to_owned());
        }
        let filter = levels.join("/");
        check_filter(&filter).map_err(Refused::Invalid)?;
        if filter.starts_with("$share/") {
            return Err(Refused::Unsupported("a subscription is not shared"));
        }
        Ok(filter)
    }

    /// The levels that a namespace's topics stand below.
    fn mount_of(&self, uri: &str) -> Vec<String> {
        if is_ours(uri) {
            return Vec::new();
        }
        match self.mounts.iter().find(|mount| mount.uri == uri) {
            Some(mount) => mount.levels.split('/').map(str::to_owned).collect(),
            None => vec![namespace_level(uri)],
        }
    }

    /// The namespace that a topic or filter stands in, and the levels in it, which are at least one
    /// and more than a `#`.
    fn namespace_of<'t>(&self, levels: &'t [&'t str]) -> (String, &'t [&'t str]) {
        let mut best: Option<(&str, &[&str])> = None;
        for mount in self.mounts {
            let count = mount.levels.split('/').count();
            if let Some((first, rest)) = levels.split_at_checked(count)
                && mount.levels.split('/').eq(first.iter().copied())
                && !rest.is_empty()
                && rest != ["#"]
                && best.is_none_or(|(_, shortest)| rest.len() < shortest.len())
            {
                best = Some((&mount.uri, rest));
            }
        }
        if let Some((uri, rest)) = best {
            return (uri.to_owned(), rest);
        }
        if let Some((first, rest)) = levels.split_first()
            && !rest.is_empty()
            && rest != ["#"]
            && let Some(uri) = of_namespace_level(first)
            && !is_ours(&uri)
            && !self.mounts.iter().any(|mount| mount.uri == uri)
        {
            return (uri, rest);
        }
        (LW_TOPICS.to_owned(), levels)
    }

    /// A topic of MQTT as an expression.
    #[must_use]
    pub(crate) fn write_topic(&self, topic: &str, spelling: Spelling) -> Written {
        let levels: Vec<&str> = topic.split('/').collect();
        let (uri, rest) = self.namespace_of(&levels);
        let mut written = Written { text: String::new(), namespaces: Vec::new() };
        if spelling.qualified || uri != LW_TOPICS {
            written.prefix(&uri);
        }
        match spelling.dialect {
            Dialect::Simple => written.text.push_str(&escape(&rest.join("/"))),
            Dialect::Concrete | Dialect::Full => {
                for (at, level) in rest.iter().enumerate() {
                    if at > 0 {
                        written.text.push('/');
                    }
                    written.name(level, at > 0, &uri);
                }
            }
        }
        written
    }

    /// A filter of MQTT as an expression.
    ///
    /// # Errors
    /// Wildcards in the dialects that have none; shared subscriptions.
    pub(crate) fn write_filter(
        &self,
        spelling: Spelling,
        filter: &str,
    ) -> Result<Written, Refused> {
        if filter.starts_with("$share/") {
            return Err(Refused::Unsupported("a subscription is not shared"));
        }
        check_filter(filter).map_err(Refused::Invalid)?;
        if spelling.dialect != Dialect::Full {
            if filter.contains(['+', '#']) {
                return Err(Refused::Invalid("only the dialect Full has wildcards"));
            }
            return Ok(self.write_topic(filter, spelling));
        }
        let levels: Vec<&str> = filter.split('/').collect();
        let (uri, rest) = self.namespace_of(&levels);
        let mut written = Written { text: String::new(), namespaces: Vec::new() };
        if spelling.qualified || uri != LW_TOPICS {
            written.prefix(&uri);
        }
        for (at, level) in rest.iter().enumerate() {
            match *level {
                "#" if at == 0 => written.text.push_str("//*"),
                "#" => written.text.push_str("//."),
                level => {
                    if at > 0 {
                        written.text.push('/');
                    }
                    if level == "+" {
                        written.text.push('*');
                    } else {
                        written.name(level, at > 0, &uri);
                    }
                }
            }
        }
        Ok(written)
    }
}

const NOT_CANONICAL: &str = "a level is a name in which _xHHHH_ stands for what no name has there";

/// Whether a namespace is that of the topics of MQTT.
fn is_ours(uri: &str) -> bool {
    uri.is_empty() || uri == LW_TOPICS
}

impl Written {
    /// The namespace of the prefix of a name in it; empty for none.
    pub(super) fn namespace(&self, name: &str) -> &str {
        let prefix = name.split_once(':').map_or("", |(prefix, _)| prefix);
        let found = self.namespaces.iter().find(|(known, _)| known == prefix);
        found.map_or("", |(_, uri)| uri)
    }

    /// The same with prefixes that end in a number, so that several can stand side by side.
    pub(super) fn with_prefixes(self, number: usize) -> (String, Vec<(String, String)>) {
        let mut text = self.text;
        let mut namespaces = Vec::new();
        for (prefix, uri) in self.namespaces {
            let other = format!("{prefix}-{number}");
            // Names have no colon but behind their prefix, and each stands behind a mark or
            // nothing.
            let names = text.split_inclusive(['/', ':']).map(|part| {
                if part.strip_suffix(':') == Some(&prefix) {
                    format!("{other}:")
                } else {
                    part.to_owned()
                }
            });
            text = names.collect();
            namespaces.push((other, uri));
        }
        (text, namespaces)
    }

    /// Writes the prefix of a namespace.
    fn prefix(&mut self, uri: &str) {
        let known = self.namespaces.iter().position(|(_, known)| known == uri);
        let at = known.unwrap_or_else(|| {
            let prefix = match (uri == LW_TOPICS, self.namespaces.len()) {
                (true, _) => "l".to_owned(),
                (false, count) => format!("t{count}"),
            };
            self.namespaces.push((prefix, uri.to_owned()));
            self.namespaces.len() - 1
        });
        if let Some((prefix, _)) = self.namespaces.get(at) {
            self.text.push_str(prefix);
            self.text.push(':');
        }
    }

    /// Writes a level below a root in the namespace `root`, or the root itself.
    fn name(&mut self, level: &str, is_child: bool, root: &str) {
        if is_child
            && let Some((uri, local)) = level::of_child(level)
            && uri != root
            && !(is_ours(&uri) && is_ours(root))
        {
            self.prefix(&uri);
            self.text.push_str(&escape(local));
            return;
        }
        let name = escape(level);
        debug_assert!(is_nc_name(&name), "{name}");
        self.text.push_str(&name);
    }
}
