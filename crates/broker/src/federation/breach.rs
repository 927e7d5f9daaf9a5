//! What a profile refuses, in words that name the partner.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Federation, Flow};

/// Longest text of others that is repeated, in bytes.
const MAX_SHOWN_BYTES: usize = 100;
/// Partners that are named one by one.
const MAX_NAMED: usize = 8;

/// Why something is not allowed by a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The profile does not hold yet, or no more.
    NotValid,
    /// No flow goes that way.
    Direction,
    /// A message is longer than its flow has them.
    Size,
    /// A message is of another media type.
    MediaType,
    /// There are more messages, or bytes, than the flow has a second.
    Rate,
}

impl Kind {
    /// Its name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NotValid => "not-valid",
            Self::Direction => "direction",
            Self::Size => "size",
            Self::MediaType => "media-type",
            Self::Rate => "rate",
        }
    }
}

/// Something that a profile does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The partner that has done it.
    pub partner: Arc<str>,
    /// The flow that it is about, if it is about one.
    pub flow: Option<Arc<str>>,
    /// Why.
    pub kind: Kind,
    text: String,
}

impl Breach {
    pub(super) fn new(
        federation: &Federation,
        partner: &Arc<str>,
        flow: Option<&Flow>,
        kind: Kind,
        what: &str,
    ) -> Self {
        let of = flow.map_or_else(String::new, |flow| format!(", flow {}", flow.name));
        let Federation { profile, version, .. } = federation;
        Self {
            partner: partner.clone(),
            flow: flow.map(|flow| flow.name.clone()),
            kind,
            text: format!("profile {profile} version {version}{of}: {partner} {what}"),
        }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why a profile does not hold at a time.
pub(super) fn not_valid(federation: &Federation, now: Duration) -> String {
    if now < federation.valid_from {
        let wait_s = federation.valid_from.saturating_sub(now).as_secs();
        return format!("may exchange nothing yet: it begins to hold in {wait_s} s");
    }
    let past_s = now.saturating_sub(federation.valid_until).as_secs();
    format!("may exchange nothing any more: it ended {past_s} s ago")
}

/// Names, the first few.
pub(super) fn list(names: &BTreeSet<Arc<str>>) -> String {
    let named: Vec<&str> = names.iter().take(MAX_NAMED).map(|name| &**name).collect();
    match names.len().saturating_sub(MAX_NAMED) {
        0 => named.join(", "),
        rest => format!("{} and {rest} more", named.join(", ")),
    }
}

/// A text of others, cut where it is long.
pub(super) fn short(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_SHOWN_BYTES)).unwrap_or_default()
}
