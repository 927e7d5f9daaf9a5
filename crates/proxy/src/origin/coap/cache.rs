//! Answers of servers of CoAP that are kept while they are fresh, and asked about by their tags
//! when they are not (RFC 7252 §5.6): only where an operator gives room for it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use http::header::{self, HeaderMap};
use proto::coap::{Code, Content, key_of, option};

use crate::fields;

/// One answer takes no more than this part of the room.
const MAX_PART: usize = 4;
/// What an answer takes beside its payload and its key, about.
const ENTRY_BYTES: usize = 512;

/// What an answer is to: a resource, in one of the formats that it can be asked for in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    resource: Vec<u8>,
    format: Option<u32>,
}

impl Key {
    /// Of a request for a URI with scheme, host and port.
    pub(super) fn of(uri: &str, request: &Content) -> Self {
        let mut bare = request.clone();
        bare.code = Code::GET;
        for number in [option::ACCEPT, option::ETAG, option::IF_MATCH, option::IF_NONE_MATCH] {
            bare.remove(number);
        }
        bare.remove(option::CONTENT_FORMAT);
        let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
        let authority = rest.split(['/', '?']).next().unwrap_or_default().to_ascii_lowercase();
        let mut resource = authority.into_bytes();
        resource.push(0);
        resource.extend(key_of(&bare));
        Self { resource, format: request.uint(option::ACCEPT) }
    }

    fn len(&self) -> usize {
        self.resource.len()
    }
}

/// What a request lets be done with answers that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Nothing.
    Never,
    /// The server is asked in any case (RFC 9111 §5.2.1.4).
    Asking,
    /// Those that are fresh are answers.
    Kept,
}

impl Use {
    /// By the request and its fields.
    pub(super) fn of(request: &Content, headers: &HeaderMap) -> Self {
        if request.code != Code::GET {
            return Self::Never;
        }
        let directives: Vec<_> = fields::tokens(headers, &header::CACHE_CONTROL).collect();
        let has = |wanted: &str| directives.iter().any(|directive| directive == wanted);
        let pragma = fields::tokens(headers, &header::PRAGMA).any(|one| one == "no-cache");
        match (has("no-store"), has("no-cache") || has("max-age=0") || pragma) {
            (true, _) => Self::Never,
            (false, true) => Self::Asking,
            (false, false) => Self::Kept,
        }
    }
}

/// What is kept for a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    /// It may be another by now; this is its tag.
    Stale(Vec<u8>),
    /// The answer, with what is left of its age.
    Fresh(Content),
}

#[derive(Debug)]
struct Entry {
    content: Content,
    until: Instant,
    bytes: usize,
    /// Number of its last use.
    used: u64,
}

impl Entry {
    fn fresh(&self, now: Instant) -> Content {
        let left = self.until.saturating_duration_since(now).as_secs();
        let mut content = self.content.clone();
        content.remove(option::MAX_AGE);
        content.push_uint(option::MAX_AGE, u32::try_from(left).unwrap_or(u32::MAX));
        content
    }
}

/// When something was asked for, and what had been forgotten by then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    at: Instant,
    forgotten: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Cache {
    /// How often something was forgotten because it may have changed.
    forgotten: u64,
    most_bytes: usize,
    bytes: usize,
    entries: BTreeMap<Key, Entry>,
    uses: u64,
}

impl Cache {
    /// With room for so many bytes; with none nothing is kept.
    pub(super) fn new(most_bytes: usize) -> Self {
        Self { forgotten: 0, most_bytes, bytes: 0, entries: BTreeMap::new(), uses: 0 }
    }

    /// Something is asked for now.
    pub(super) fn mark(&self, at: Instant) -> Mark {
        Mark { at, forgotten: self.forgotten }
    }

    pub(super) fn find(&mut self, now: Instant, key: &Key, usage: Use) -> Found {
        if usage == Use::Never {
            return Found::Nothing;
        }
        self.uses += 1;
        let Some(entry) = self.entries.get_mut(key) else { return Found::Nothing };
        entry.used = self.uses;
        if usage == Use::Kept && entry.until > now {
            return Found::Fresh(entry.fresh(now));
        }
        let etag = entry.content.first(option::ETAG).map(<[u8]>::to_vec);
        etag.map_or(Found::Nothing, Found::Stale)
    }

    /// An answer came to what was asked for at that time. Returned is what is kept of it, where
    /// that is its answer as well. What something may have changed meanwhile is not kept.
    pub(super) fn update(
        &mut self,
        asked: Mark,
        key: Key,
        usage: Use,
        answer: &Content,
    ) -> Option<Content> {
        let Mark { at: now, forgotten } = asked;
        if usage == Use::Never || forgotten != self.forgotten {
            return None;
        }
        let age_s = answer.uint(option::MAX_AGE).unwrap_or(option::DEFAULT_AGE_S);
        let until = now + Duration::from_secs(age_s.into());
        match answer.code {
            Code::CONTENT => {
                self.put(key, until, answer);
                None
            }
            // RFC 7252 §5.9.1.3: it is the same still, and for so long.
            Code::VALID => {
                let entry = self.entries.get_mut(&key)?;
                let is_it = |content: &Content| {
                    let tag = answer.first(option::ETAG);
                    tag.is_none() || content.first(option::ETAG) == tag
                };
                if !is_it(&entry.content) {
                    return None;
                }
                entry.until = until;
                Some(entry.fresh(now))
            }
            _ => {
                self.remove(&key);
                None
            }
        }
    }

    /// What one answer may take, with its key: nothing where nothing is kept.
    pub(super) fn most_of_one(&self) -> usize {
        self.most_bytes / MAX_PART
    }

    /// An answer of which all is not here yet takes the place of what is kept.
    pub(super) fn outdate(&mut self, key: &Key) {
        self.remove(key);
    }

    /// A resource may be another by now.
    pub(super) fn forget(&mut self, key: &Key) {
        self.forgotten += 1;
        let first = Key { format: None, ..key.clone() };
        let of_resource = self.entries.range(first..);
        let of_resource = of_resource.take_while(|(other, _)| other.resource == key.resource);
        for key in of_resource.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.remove(&key);
        }
    }

    fn put(&mut self, key: Key, until: Instant, content: &Content) {
        self.remove(&key);
        let bytes = content.payload.len() + key.len() + ENTRY_BYTES;
        if bytes > self.most_of_one() {
            return;
        }
        while self.bytes + bytes > self.most_bytes {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { return };
            self.remove(&oldest);
        }
        self.bytes += bytes;
        self.uses += 1;
        let (content, used) = (content.clone(), self.uses);
        self.entries.insert(key, Entry { content, until, bytes, used });
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }
}

/// What is kept, as the answer to who has representations with these tags.
pub(super) fn for_client(kept: Content, has: &[Vec<u8>]) -> Content {
    let is_had = kept.first(option::ETAG).is_some_and(|tag| has.iter().any(|one| one == tag));
    if !is_had {
        return kept;
    }
    let mut valid = Content::new(Code::VALID);
    for number in [option::ETAG, option::MAX_AGE] {
        kept.first(number).into_iter().for_each(|value| valid.push(number, value));
    }
    valid
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 64 * 1024;

    fn key(path: &str, format: Option<u32>) -> Key {
        let mut request = Content::new(Code::GET).with(option::URI_PATH, path.as_bytes());
        if let Some(format) = format {
            request.push_uint(option::ACCEPT, format);
        }
        Key::of("coap://A:1/x", &request)
    }

    fn content(tag: u8) -> Content {
        let content = Content::new(Code::CONTENT).with(option::ETAG, &[tag]);
        content.with_uint(option::MAX_AGE, 10).with_payload(vec![tag; 10])
    }

    /// An answer that came as soon as it was asked for.
    fn update(
        cache: &mut Cache,
        at: Instant,
        key: Key,
        usage: Use,
        answer: &Content,
    ) -> Option<Content> {
        let asked = cache.mark(at);
        cache.update(asked, key, usage, answer)
    }

    fn after(now: Instant, seconds: u64) -> Instant {
        now + Duration::from_secs(seconds)
    }

    #[test]
    fn what_is_fresh_answers_and_what_is_not_is_asked_about() {
        let (mut cache, now) = (Cache::new(ROOM), Instant::now());
        let key = key("a", None);
        assert_eq!(cache.find(now, &key, Use::Kept), Found::Nothing);
        assert_eq!(update(&mut cache, now, key.clone(), Use::Kept, &content(1)), None);
        let left = |seconds| {
            let mut left = content(1);
            left.remove(option::MAX_AGE);
            left.with_uint(option::MAX_AGE, seconds)
        };
        assert_eq!(cache.find(after(now, 4), &key, Use::Kept), Found::Fresh(left(6)));
        assert_eq!(cache.find(after(now, 4), &key, Use::Never), Found::Nothing);
        assert_eq!(cache.find(after(now, 4), &key, Use::Asking), Found::Stale(vec![1]));
        let later = after(now, 10);
        assert_eq!(cache.find(later, &key, Use::Kept), Found::Stale(vec![1]));
        let valid = Content::new(Code::VALID).with(option::ETAG, &[1]);
        let valid = valid.with_uint(option::MAX_AGE, 20);
        assert_eq!(update(&mut cache, later, key.clone(), Use::Kept, &valid), Some(left(20)));
        assert_eq!(cache.find(after(later, 5), &key, Use::Kept), Found::Fresh(left(15)));
        let other = Content::new(Code::VALID).with(option::ETAG, &[9]);
        assert_eq!(update(&mut cache, later, key.clone(), Use::Kept, &other), None);
        assert_eq!(for_client(left(15), &[vec![7], vec![1]]).code, Code::VALID);
        assert_eq!(for_client(left(15), &[vec![7]]), left(15));
        let gone = Content::new(Code::NOT_FOUND);
        assert_eq!(update(&mut cache, later, key.clone(), Use::Kept, &gone), None);
        assert_eq!(cache.find(later, &key, Use::Kept), Found::Nothing);
        assert_eq!(cache.bytes, 0);
    }

    /// RFC 7252 §5.9.1: what was asked for before a change may be older than that, however late it
    /// is whole.
    #[test]
    fn what_was_asked_for_before_a_change_is_not_kept() {
        let (mut cache, now) = (Cache::new(ROOM), Instant::now());
        let (key, asked) = (key("a", None), cache.mark(now));
        cache.forget(&key);
        assert_eq!(cache.update(asked, key.clone(), Use::Kept, &content(1)), None);
        assert_eq!(cache.find(now, &key, Use::Kept), Found::Nothing);
        // And what is kept is as old as the question.
        let asked = cache.mark(now);
        cache.update(asked, key.clone(), Use::Kept, &content(1));
        assert!(matches!(cache.find(after(now, 9), &key, Use::Kept), Found::Fresh(_)));
        assert_eq!(cache.find(after(now, 10), &key, Use::Kept), Found::Stale(vec![1]));
    }

    #[test]
    fn what_changes_a_resource_forgets_it_in_all_formats() {
        let (mut cache, now) = (Cache::new(ROOM), Instant::now());
        for format in [None, Some(0), Some(50)] {
            update(&mut cache, now, key("a", format), Use::Kept, &content(1));
            update(&mut cache, now, key("b", format), Use::Kept, &content(2));
        }
        cache.forget(&Key::of("coap://a:1/", &{
            let put = Content::new(Code::PUT).with(option::URI_PATH, b"a");
            put.with_uint(option::CONTENT_FORMAT, 50).with(option::IF_MATCH, b"")
        }));
        for format in [None, Some(0), Some(50)] {
            assert_eq!(cache.find(now, &key("a", format), Use::Kept), Found::Nothing);
            assert!(matches!(cache.find(now, &key("b", format), Use::Kept), Found::Fresh(_)));
        }
        let elsewhere =
            Key::of("coap://b:1/", &Content::new(Code::GET).with(option::URI_PATH, b"b"));
        assert_eq!(cache.find(now, &elsewhere, Use::Kept), Found::Nothing);
    }

    #[test]
    fn there_is_no_more_than_there_is_room_for() {
        let (mut cache, now) = (Cache::new(ROOM), Instant::now());
        for number in 0..1000 {
            update(&mut cache, now, key(&number.to_string(), None), Use::Kept, &content(1));
            assert!(cache.bytes <= ROOM);
        }
        assert!(cache.entries.len() > 50);
        assert!(matches!(cache.find(now, &key("999", None), Use::Kept), Found::Fresh(_)));
        let large = content(1).with_payload(vec![0; ROOM / 2]);
        update(&mut cache, now, key("999", None), Use::Kept, &large);
        assert_eq!(cache.find(now, &key("999", None), Use::Kept), Found::Nothing);
        let mut none = Cache::new(0);
        update(&mut none, now, key("a", None), Use::Kept, &content(1));
        assert!(none.entries.is_empty());
    }

    #[test]
    fn a_request_says_what_may_be_kept() {
        let of = |code, fields: &[(header::HeaderName, &'static str)]| {
            let field = |(name, value): &(header::HeaderName, &'static str)| {
                (name.clone(), header::HeaderValue::from_static(value))
            };
            Use::of(&Content::new(code), &fields.iter().map(field).collect())
        };
        assert_eq!(of(Code::GET, &[]), Use::Kept);
        assert_eq!(of(Code::FETCH, &[]), Use::Never);
        assert_eq!(of(Code::GET, &[(header::CACHE_CONTROL, "no-cache")]), Use::Asking);
        assert_eq!(of(Code::GET, &[(header::CACHE_CONTROL, "Max-Age=0")]), Use::Asking);
        assert_eq!(of(Code::GET, &[(header::PRAGMA, "no-cache")]), Use::Asking);
        assert_eq!(of(Code::GET, &[(header::CACHE_CONTROL, "no-cache, no-store")]), Use::Never);
    }
}
