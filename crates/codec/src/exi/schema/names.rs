//! Strings that many parts of a schema name, each kept once.

use std::collections::BTreeMap;

/// Index of a string in [`Texts`]; 0 is the empty one, which is also "no namespace".
pub(super) type Text = u32;

/// A qualified name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    /// Namespace.
    pub(super) uri: Text,
    /// Local part.
    pub(super) local: Text,
}

/// All strings.
#[derive(Clone, Debug)]
pub(super) struct Texts {
    list: Vec<Box<str>>,
    index: BTreeMap<Box<str>, Text>,
}

impl Texts {
    pub(super) fn new() -> Self {
        let mut texts = Self { list: Vec::new(), index: BTreeMap::new() };
        texts.intern("");
        texts
    }

    /// The index of a string, new or known. Schemas are bounded in bytes, and so is their number.
    pub(super) fn intern(&mut self, text: &str) -> Text {
        if let Some(&found) = self.index.get(text) {
            return found;
        }
        let new = Text::try_from(self.list.len()).unwrap_or(Text::MAX);
        self.list.push(text.into());
        self.index.insert(text.into(), new);
        new
    }

    pub(super) fn name(&mut self, uri: &str, local: &str) -> Name {
        Name { uri: self.intern(uri), local: self.intern(local) }
    }

    /// The index of a string, if it is known.
    pub(super) fn find(&self, text: &str) -> Option<Text> {
        self.index.get(text).copied()
    }

    pub(super) fn get(&self, text: Text) -> &str {
        self.list.get(text as usize).map_or("", |text| text)
    }

    /// By local name, then by namespace (EXI §8.5.4.3).
    pub(super) fn order(&self, name: Name) -> (&str, &str) {
        (self.get(name.local), self.get(name.uri))
    }

    /// `{namespace}local`, for messages.
    pub(super) fn show(&self, name: Name) -> String {
        if name.uri == 0 {
            self.get(name.local).to_owned()
        } else {
            format!("{{{}}}{}", self.get(name.uri), self.get(name.local))
        }
    }
}
