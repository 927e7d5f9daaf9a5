//! Which messages an exchange consists of.

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request and a response of HTTP.
    #[default]
    Http,
    /// Two of this kind.
    Other {
        /// As both ends have agreed.
        kind: u64,
        /// The answer has no body.
        outcome_only: bool,
    },
}

impl Kind {
    /// Why what answers is no answer to this: it is of another kind, or goes on behind its head
    /// though only the outcome is awaited.
    pub(crate) fn refuses(self, answer: Self, end: bool) -> Option<&'static str> {
        match (self, answer) {
            (Self::Http, Self::Http) => None,
            (Self::Other { kind, outcome_only }, Self::Other { kind: of, .. }) if kind == of => {
                (outcome_only && !end).then_some("an answer with a body where none is awaited")
            }
            _ => Some("an answer of another kind than what it is to"),
        }
    }
}
