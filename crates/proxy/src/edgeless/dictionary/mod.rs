//! Dictionaries of edgeless clients (RFC 9842): an answer that such a client keeps may serve as one
//! for later answers to it.
//!
//! A dictionary is a whole answer as it was given, so none is made of what has a secret in it, and
//! each is good only for who got it: the same origin, client and credentials. Patterns are plain
//! paths with `*` for numbers.

mod held;
mod requester;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use codec::dictionary::{Id, Kept};
use codec::secrets;
use http::header::{self, HeaderMap, HeaderValue};
use http::{StatusCode, response};
use proto::bhttp;
use proto::dictionary::{
    AVAILABLE_FIELD, ID_FIELD, OFFER_FIELD, decode_available, decode_id, decode_offer, encode_offer,
};
use relay::Client;

use self::held::HeldState;
use self::requester::{context, is_secure};
use super::reader::Reader;
use crate::fields;

/// A shorter answer saves no more than its offer costs; a longer one is not held whole.
const MIN_CONTENT_BYTES: usize = 512;
/// See [`MIN_CONTENT_BYTES`]; as a block of a body.
const MAX_CONTENT_BYTES: usize = super::body::MAX_WHOLE_BYTES;
/// Longest pattern.
const MAX_PATTERN_BYTES: usize = 256;
/// Most `*` in a pattern, so that a client matches it in little time; the last stands for all that
/// follows.
const MAX_STARS: usize = 4;
/// After so many offers that nobody took up, only one in [`SELDOM`] is made: each costs its bytes.
const MAX_UNTAKEN: u64 = 64;
/// See [`MAX_UNTAKEN`].
const SELDOM: u64 = 16;
/// What ours are called, before the beginning of their hash.
const PREFIX: &str = "longwire-";
/// Longest that an origin counts as one with dictionaries of its own after it has offered one: as
/// long as clients take that for fresh, within this.
const MAX_OWN: Duration = Duration::from_secs(6 * 3600);
/// The same where the answer does not say for how long it is fresh.
const UNTOLD_OWN: Duration = Duration::from_secs(3600);

/// What a request has to do with dictionaries.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// Origin and who asks.
    context: Id,
    origin: Id,
    /// URLs like the one that was asked for, if its answer may be a dictionary.
    pattern: Option<String>,
    /// The dictionary that the client has, if it is held here.
    pub(crate) held: Option<Arc<Kept>>,
    /// The client has one that is not ours.
    has_other: bool,
    reader: Reader,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Dictionaries {
    state: Mutex<HeldState>,
}

impl Dictionaries {
    fn lock(&self) -> MutexGuard<'_, HeldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a request with these fields, from a client at this address; none where
    /// there may be no dictionaries. And why what it says of them is not used.
    pub(crate) fn look_up(
        &self,
        (headers, request): (&HeaderMap, &bhttp::Request),
        (address, client): (&str, &Client),
        reader: &Reader,
    ) -> (Option<Known>, Option<&'static str>) {
        if !is_secure(headers, address) || relay::forbids_keeping(&request.fields) {
            return (None, None);
        }
        let (origin, context) = context(request, client);
        let mut has_other = false;
        let (held, ignored) = match dictionary_of(headers) {
            Ok(None) => (None, None),
            Ok(Some((hash, ours))) => {
                let held = self.lock().find(context, hash);
                let lost = ours && held.is_none();
                has_other = !ours && held.is_none();
                (held, lost.then_some("it is not held here, or not for who asks"))
            }
            Err(why) => (None, Some(why)),
        };
        let path = str::from_utf8(&request.path).ok().and_then(|path| path.split('?').next());
        let pattern = path.filter(|_| request.method == "GET").and_then(pattern);
        let reader = reader.clone();
        (Some(Known { context, origin, pattern, held, has_other, reader }), ignored)
    }

    /// Notes what an origin's answer says: where it offers dictionaries of its own, those are made
    /// for what it has, and ours would take their place with a client that keeps one for a URL.
    pub(crate) fn hear(&self, now: Instant, known: &Known, parts: &response::Parts) {
        if let Some(lasts) = own_offer(parts) {
            self.lock().note_own(known.origin, now, lasts);
        }
    }

    /// Whether an answer is to be offered, if there is no secret in its content.
    pub(crate) fn wants(
        &self,
        now: Instant,
        known: &Known,
        parts: &response::Parts,
        content: &[u8],
    ) -> bool {
        let media = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let fits = known.held.is_none()
            && !known.has_other
            && known.pattern.is_some()
            && parts.status == StatusCode::OK
            && (MIN_CONTENT_BYTES..=MAX_CONTENT_BYTES).contains(&content.len())
            && media.is_some_and(secrets::is_readable)
            && stays_fresh(&parts.headers)
            && known.permits(&parts.headers);
        if !fits {
            return false;
        }
        let mut state = self.lock();
        if state.has_own(known.origin, now) {
            return false;
        }
        state.passed += 1;
        state.unused < MAX_UNTAKEN || state.passed >= SELDOM
    }

    /// Holds an answer's content, in which there is nothing secret; gives the value of the field
    /// that offers it.
    pub(crate) fn offer(&self, known: &Known, kept: Arc<Kept>) -> Option<HeaderValue> {
        let pattern = known.pattern.clone()?;
        let offer = HeaderValue::try_from(encode_offer(&pattern, &name(kept.id()))?).ok()?;
        let mut state = self.lock();
        state.hold(known.context, pattern, kept);
        (state.unused, state.passed) = (state.unused + 1, 0);
        Some(offer)
    }
}

impl Known {
    /// Whether who asks may read an answer with these fields.
    pub(crate) fn permits(&self, headers: &HeaderMap) -> bool {
        self.reader.permits(headers)
    }
}

/// The dictionary that a client says it has, and whether it says that it is one of ours. Errors:
/// why what it says cannot be meant.
fn dictionary_of(headers: &HeaderMap) -> Result<Option<(Id, bool)>, &'static str> {
    let one = |name: &str| {
        let mut values = headers.get_all(name).iter();
        (values.next().map(HeaderValue::as_bytes), values.next().is_some())
    };
    let ((hash, more), (id, others)) = (one(AVAILABLE_FIELD), one(ID_FIELD));
    let Some(hash) = hash else { return Ok(None) };
    if more || others {
        return Err("a field is there more than once");
    }
    let hash = decode_available(hash).map_err(|_| "its hash is none")?;
    let id = id.map(decode_id).transpose().map_err(|_| "its name is none")?;
    Ok(Some((Id(hash), id.is_some_and(|id| id.starts_with(PREFIX)))))
}

/// RFC 9842 §2.2.1: a client offers what is fresh, so only what says for how long is of use (RFC
/// 9111 §4.2), and is nobody's own. The origin's own offer stands.
fn stays_fresh(headers: &HeaderMap) -> bool {
    !is_directed(headers, &["no-store", "no-cache", "private"])
        && fresh_s(headers).is_some_and(|seconds| seconds > 0)
        && !headers.contains_key(header::SET_COOKIE)
        && !headers.contains_key(OFFER_FIELD)
        && !fields::tokens(headers, &header::VARY).any(|name| name == "*")
}

/// How long an answer by which the origin itself offers a dictionary has clients keep it; none
/// where none takes the offer up.
fn own_offer(parts: &response::Parts) -> Option<Duration> {
    let headers = &parts.headers;
    let lines: Vec<_> = headers.get_all(OFFER_FIELD).iter().map(HeaderValue::as_bytes).collect();
    let keeps = parts.status == StatusCode::OK && !is_directed(headers, &["no-store", "no-cache"]);
    if !keeps || lines.is_empty() || decode_offer(&lines.join(&b", "[..])).is_err() {
        return None;
    }
    let lasts = fresh_s(headers).map_or(UNTOLD_OWN, Duration::from_secs).min(MAX_OWN);
    (!lasts.is_zero()).then_some(lasts)
}

/// Whether Cache-Control has one of these directives, with a value or without.
fn is_directed(headers: &HeaderMap, names: &[&str]) -> bool {
    fields::tokens(headers, &header::CACHE_CONTROL)
        .any(|directive| directive.split('=').next().is_some_and(|name| names.contains(&name)))
}

/// Seconds for which an answer is fresh yet, where it says (RFC 9111 §4.2).
fn fresh_s(headers: &HeaderMap) -> Option<u64> {
    let seconds = |text: &str| text.trim_matches('"').parse::<u64>().ok();
    let ages = fields::tokens(headers, &header::CACHE_CONTROL);
    let ages = ages.filter_map(|directive| directive.strip_prefix("max-age=").map(seconds));
    let lasts = ages.map(|age| age.unwrap_or(0)).min()?;
    let age = headers.get(header::AGE).map_or(Some(0), |age| seconds(age.to_str().ok()?));
    Some(age.map_or(0, |age| lasts.saturating_sub(age)))
}

/// The path with `*` for its numbers.
fn pattern(path: &str) -> Option<String> {
    let mut pattern = String::new();
    let mut stars = 0;
    for character in path.chars() {
        match character {
            '0'..='9' if pattern.ends_with('*') => {}
            '0'..='9' => {
                pattern.push('*');
                stars += 1;
            }
            '*' => return None,
            other => pattern.push(other),
        }
        if stars == MAX_STARS {
            break;
        }
    }
    (pattern.len() <= MAX_PATTERN_BYTES).then_some(pattern)
}

fn name(id: Id) -> String {
    id.short().iter().fold(PREFIX.to_owned(), |name, byte| format!("{name}{byte:02x}"))
}

#[cfg(test)]
mod tests;
