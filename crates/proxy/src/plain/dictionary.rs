//! Dictionaries of foreign clients (RFC 9842): an answer that such a client keeps may serve as one
//! for later answers to it.
//!
//! A dictionary is a whole answer as it was given, so none is made of what has a secret in it, and
//! each is good only for who got it: the same origin, client and credentials. Patterns are plain
//! paths with `*` for numbers.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codec::dictionary::{Id, Kept};
use codec::secrets;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, StatusCode, response};
use proto::bhttp;
use proto::dictionary::{
    AVAILABLE_FIELD, ID_FIELD, OFFER_FIELD, decode_available, decode_id, encode_offer,
};

use crate::fields;

/// Dictionaries held; beyond it the one longest unused goes.
const MAX_DICTIONARIES: usize = 256;
/// Bytes of all of them.
const MAX_BYTES: usize = 8 << 20;
/// Held for one client and pattern: a client that keeps none must not drive others' out.
const MAX_ALIKE: usize = 8;
/// A shorter answer saves no more than its offer costs; a longer one is not held whole.
const LEAST_BYTES: usize = 512;
/// See [`LEAST_BYTES`]; as a block of a body.
const MOST_BYTES: usize = super::body::BLOCK_BYTES;
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
/// Origins remembered that offer dictionaries of their own; beyond it the one longest unheard goes.
const MAX_ORIGINS: usize = 256;
/// Fields whose name has any of these come from a proxy in front of this one.
const PROXY_NAMES: [&str; 12] = [
    "forwarded",
    "real-ip",
    "client-ip",
    "clientip",
    "connecting-ip",
    "original-host",
    "original-for",
    "external-address",
    "cdn-loop",
    "front-end-https",
    "x-scheme",
    "url-scheme",
];
/// Fields whose name has any of these tell origins apart, or clients that come by a proxy, besides
/// those of [`PROXY_NAMES`] and those that prove who asks.
const FROM_NAMES: [&str; 15] = [
    "host",
    "user",
    "client",
    "cert",
    "ssl",
    "remote",
    "tenant",
    "account",
    "subject",
    "identity",
    "principal",
    "socketip",
    "peer",
    "email",
    "group",
];

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

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
    readable: Readable,
}

/// Whether who asks may read the answer, so that its length tells nothing new (RFC 9842 §9.3.3).
#[derive(Clone, Debug)]
enum Readable {
    Yes,
    No,
    /// If the answer allows this origin.
    By(HeaderValue),
}

struct Held {
    kept: Arc<Kept>,
    pattern: String,
    used: u64,
}

#[derive(Default)]
struct State {
    /// By context and hash.
    held: BTreeMap<(Id, Id), Held>,
    bytes: usize,
    clock: u64,
    /// Offers made since one was taken up.
    unused: u64,
    /// Answers that could have been offered since one was.
    passed: u64,
    /// Origins with dictionaries of their own, and when they were heard of.
    with_own: BTreeMap<Id, u64>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Dictionaries {
    state: Mutex<State>,
}

impl Dictionaries {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a request for `target`, from a client at this address; none where there may
    /// be no dictionaries. And why what it says of them is not used.
    pub(crate) fn look_up(
        &self,
        head: &Parts,
        target: &str,
        client: &str,
    ) -> (Option<Known>, Option<&'static str>) {
        if !is_secure(&head.headers, client) {
            return (None, None);
        }
        let (origin, context) = context(head, target, client);
        let mut has_other = false;
        let (held, ignored) = match told(&head.headers) {
            Ok(None) => (None, None),
            Ok(Some((hash, ours))) => {
                let held = self.find(context, hash);
                let lost = ours && held.is_none();
                has_other = !ours && held.is_none();
                (held, lost.then_some("it is not held here, or not for who asks"))
            }
            Err(why) => (None, Some(why)),
        };
        let pattern = (head.method == Method::GET).then(|| pattern(head.uri.path())).flatten();
        let readable = Readable::of(&head.headers);
        (Some(Known { context, origin, pattern, held, has_other, readable }), ignored)
    }

    fn find(&self, context: Id, hash: Id) -> Option<Arc<Kept>> {
        let mut state = self.lock();
        state.clock += 1;
        let used = state.clock;
        let held = state.held.get_mut(&(context, hash))?;
        held.used = used;
        let kept = Arc::clone(&held.kept);
        state.unused = 0;
        Some(kept)
    }

    /// Notes what an origin's answer says: where it offers dictionaries of its own, those are made
    /// for what it has, and ours would take their place with a client that keeps one for a URL.
    pub(crate) fn hear(&self, known: &Known, headers: &HeaderMap) {
        if headers.contains_key(OFFER_FIELD) {
            self.lock().note_own(known.origin);
        }
    }

    /// Whether an answer is to be offered, if there is no secret in its content.
    pub(crate) fn wants(&self, known: &Known, parts: &response::Parts, content: &[u8]) -> bool {
        let media = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let fits = known.held.is_none()
            && !known.has_other
            && known.pattern.is_some()
            && parts.status == StatusCode::OK
            && (LEAST_BYTES..=MOST_BYTES).contains(&content.len())
            && media.is_some_and(secrets::is_readable)
            && stays_fresh(&parts.headers)
            && known.permits(&parts.headers);
        if !fits {
            return false;
        }
        let mut state = self.lock();
        if state.with_own.contains_key(&known.origin) {
            return false;
        }
        state.passed += 1;
        state.unused < MAX_UNTAKEN || state.passed >= SELDOM
    }

    /// Holds an answer's content; gives the value of the field that offers it. None where there is
    /// something secret in it, or it cannot be read for that.
    pub(crate) fn offer(&self, known: &Known, content: &[u8]) -> Option<HeaderValue> {
        let whole = secrets::cut(content).is_ok_and(|kept| kept.len() == content.len());
        let pattern = known.pattern.clone().filter(|_| whole)?;
        let kept = Arc::new(Kept::new(content));
        let offer = HeaderValue::try_from(encode_offer(&pattern, &name(kept.id()))?).ok()?;
        let mut state = self.lock();
        state.hold(known.context, pattern, kept);
        (state.unused, state.passed) = (state.unused + 1, 0);
        Some(offer)
    }
}

impl State {
    fn note_own(&mut self, origin: Id) {
        self.clock += 1;
        self.with_own.insert(origin, self.clock);
        if self.with_own.len() > MAX_ORIGINS {
            let oldest = self.with_own.iter().min_by_key(|(_, heard)| **heard);
            if let Some(oldest) = oldest.map(|(origin, _)| *origin) {
                self.with_own.remove(&oldest);
            }
        }
    }

    fn hold(&mut self, context: Id, pattern: String, kept: Arc<Kept>) {
        self.clock += 1;
        let (key, used) = ((context, kept.id()), self.clock);
        if let Some(held) = self.held.get_mut(&key) {
            held.used = used;
            return;
        }
        let of = |(of, _): &(Id, Id), held: &Held| *of == context && held.pattern == pattern;
        if self.held.iter().filter(|(key, held)| of(key, held)).count() >= MAX_ALIKE {
            self.forget_one(of);
        }
        self.bytes += kept.content().len();
        self.held.insert(key, Held { kept, pattern, used });
        while self.held.len() > MAX_DICTIONARIES || self.bytes > MAX_BYTES {
            self.forget_one(|_, _| true);
        }
    }

    /// Of these, the one longest unused.
    fn forget_one(&mut self, of: impl Fn(&(Id, Id), &Held) -> bool) {
        let these = self.held.iter().filter(|(key, held)| of(key, held));
        let oldest = these.min_by_key(|(_, held)| held.used).map(|(&key, _)| key);
        if let Some(gone) = oldest.and_then(|key| self.held.remove(&key)) {
            self.bytes -= gone.kept.content().len();
        }
    }
}

impl Known {
    /// Whether who asks may read an answer with these fields.
    pub(crate) fn permits(&self, headers: &HeaderMap) -> bool {
        let allowed = headers.get(header::ACCESS_CONTROL_ALLOW_ORIGIN);
        match &self.readable {
            Readable::Yes => true,
            Readable::No => false,
            Readable::By(origin) => allowed.is_some_and(|of| of == "*" || of == origin),
        }
    }
}

impl Readable {
    fn of(headers: &HeaderMap) -> Self {
        let is = |name: &HeaderName, values: &[&str]| {
            let value = headers.get(name);
            value.is_none_or(|value| values.iter().any(|one| value == one))
        };
        if is(&SEC_FETCH_SITE, &["same-origin"])
            || is(&SEC_FETCH_MODE, &["navigate", "same-origin"])
        {
            return Self::Yes;
        }
        let origin = headers.get(header::ORIGIN).filter(|_| is(&SEC_FETCH_MODE, &["cors"]));
        origin.cloned().map_or(Self::No, Self::By)
    }
}

/// RFC 9842 §8: a context that is secure. This listener knows no TLS, so that is one that does not
/// leave the machine: a client here, or a proxy here that ends TLS, if it says that there was some.
fn is_secure(headers: &HeaderMap, client: &str) -> bool {
    let near = client.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback());
    let told: Vec<_> = fields::tokens(headers, &FORWARDED_PROTO).collect();
    // RFC 7239 §5.4: each proxy says of the one before it, or of the client.
    let protocol = |hop: String| {
        let mut pairs = hop.split(';').filter_map(|pair| pair.trim().strip_prefix("proto="));
        pairs.next().map(|protocol| protocol.trim_matches('"') == "https")
    };
    let hops: Vec<_> = fields::tokens(headers, &header::FORWARDED).map(protocol).collect();
    let is_denied = told.iter().any(|one| one != "https") || hops.contains(&Some(false));
    let is_told = !told.is_empty() || !hops.is_empty() && !hops.contains(&None);
    near && !is_denied && (is_told || !headers.keys().any(is_of_proxy))
}

/// A field that proxies add to what a client says.
fn is_of_proxy(name: &HeaderName) -> bool {
    name == header::VIA || PROXY_NAMES.iter().any(|part| name.as_str().contains(part))
}

/// The origin; and it and who asks, by all that may tell it.
fn context(head: &Parts, target: &str, client: &str) -> (Id, Id) {
    let mut who = client.to_owned();
    for (name, value) in &head.headers {
        let tells = || FROM_NAMES.iter().any(|part| name.as_str().contains(part));
        if is_of_proxy(name) || tells() {
            who.push_str(&format!("\n{name}: {:?}", value.as_bytes()));
        }
    }
    let request = bhttp::Request {
        method: head.method.as_str().to_owned().into(),
        scheme: String::new().into(),
        authority: target.to_owned().into(),
        path: head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned().into(),
        fields: fields::to_fields(&head.headers),
    };
    let origin = Id::of(target.as_bytes());
    (origin, Id::of(&[&origin.0[..], &relay::asker(&who, &request).0].concat()))
}

/// The dictionary that a client says it has, and whether it says that it is one of ours. Errors:
/// why what it says cannot be meant.
fn told(headers: &HeaderMap) -> Result<Option<(Id, bool)>, &'static str> {
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
    let directives: Vec<_> = fields::tokens(headers, &header::CACHE_CONTROL).collect();
    let named = |directive: &String, name: &str| directive.split('=').next() == Some(name);
    let forbids = |directive: &String| {
        ["no-store", "no-cache", "private"].iter().any(|name| named(directive, name))
    };
    let seconds = |text: &str| text.trim_matches('"').parse::<u64>().ok();
    let ages = directives.iter().filter_map(|directive| directive.strip_prefix("max-age="));
    let lasts = ages.map(|text| seconds(text).unwrap_or(0)).min().unwrap_or(0);
    let age = headers.get(header::AGE).map_or(Some(0), |age| seconds(age.to_str().ok()?));
    !directives.iter().any(forbids)
        && age.is_some_and(|age| age < lasts)
        && !headers.contains_key(header::SET_COOKIE)
        && !headers.contains_key(OFFER_FIELD)
        && !fields::tokens(headers, &header::VARY).any(|name| name == "*")
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
mod tests {
    use http::{Request, Response};

    use super::*;

    fn head(uri: &str, lines: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri(uri).header("host", "a.example");
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn answer(lines: &[(&str, &str)]) -> response::Parts {
        let mut response = Response::builder();
        for (name, value) in lines {
            response = response.header(*name, *value);
        }
        response.body(()).unwrap().into_parts().0
    }

    fn known(dictionaries: &Dictionaries, lines: &[(&str, &str)]) -> Known {
        let (known, _) = dictionaries.look_up(&head("/a/1", lines), "http://o", "127.0.0.1");
        known.unwrap()
    }

    fn content(number: usize) -> Vec<u8> {
        format!("<a>{number}</a>{}", " ".repeat(LEAST_BYTES)).into_bytes()
    }

    const FRESH: [(&str, &str); 2] =
        [("content-type", "text/xml"), ("cache-control", "public, max-age=60")];

    #[test]
    fn patterns_are_paths_with_stars_for_numbers() {
        for (path, expected) in [
            ("/", "/"),
            ("/tracks/12/a3", "/tracks/*/a*"),
            ("/v1.2/x", "/v*.*/x"),
            ("/1/2/3/4/5/x", "/*/*/*/*"),
        ] {
            assert_eq!(pattern(path).as_deref(), Some(expected));
        }
        assert_eq!(pattern("/a*b"), None);
        assert_eq!(pattern(&format!("/{}", "a".repeat(MAX_PATTERN_BYTES))), None);
    }

    #[test]
    fn only_what_a_client_may_keep_and_that_is_fresh_is_offered() {
        let dictionaries = Dictionaries::default();
        let known = known(&dictionaries, &[]);
        let wants =
            |lines: &[(&str, &str)]| dictionaries.wants(&known, &answer(lines), &content(1));
        assert!(wants(&FRESH));
        assert!(wants(&[FRESH[0], ("cache-control", "max-age=\"60\""), ("age", "59")]));
        for control in [
            "",
            "public",
            "max-age=0",
            "max-age=x",
            "max-age=60, no-store",
            "max-age=60, No-Cache",
            "private, max-age=60",
            "private=\"a\", max-age=60",
            "max-age=60, max-age=0",
        ] {
            assert!(!wants(&[FRESH[0], ("cache-control", control)]), "{control}");
        }
        for other in [
            ("age", "60"),
            ("age", "x"),
            ("set-cookie", "a=b"),
            ("vary", "accept, *"),
            ("use-as-dictionary", "match=\"/b\""),
        ] {
            assert!(!wants(&[FRESH[0], FRESH[1], other]), "{other:?}");
        }
        assert!(!wants(&[("content-type", "text/html"), FRESH[1]]));
        assert!(!wants(&FRESH[1..]));
        let parts = answer(&FRESH);
        assert!(!dictionaries.wants(&known, &parts, &content(1)[..LEAST_BYTES - 1]));
        assert!(!dictionaries.wants(&known, &parts, &vec![b' '; MOST_BYTES + 1]));
    }

    #[test]
    fn what_has_a_secret_in_it_is_not_offered() {
        let dictionaries = Dictionaries::default();
        let known = known(&dictionaries, &[]);
        let offer = dictionaries.offer(&known, b"<a>1</a>").unwrap();
        let expected = format!("match=\"/a/*\", id=\"{}\"", name(Id::of(b"<a>1</a>")));
        assert_eq!(offer, expected);
        for secret in [
            "<a><Security>x</Security></a>",
            "{\"a\": 1, \"password\": \"x\"}",
            "{\"session_id\": \"x\"}",
            "<a>Cookie: x</a>",
            "neither",
        ] {
            assert_eq!(dictionaries.offer(&known, secret.as_bytes()), None, "{secret}");
        }
        assert_eq!(dictionaries.lock().held.len(), 1);
    }

    #[test]
    fn a_dictionary_is_good_only_for_who_got_it() {
        let dictionaries = Dictionaries::default();
        let who = [("authorization", "Basic YTpi")];
        dictionaries.offer(&known(&dictionaries, &who), b"<a>1</a>").unwrap();
        let hash = Id::of(b"<a>1</a>");
        let ask = |uri: &str, target: &str, client: &str, lines: &[(&str, &str)]| {
            let (known, _) = dictionaries.look_up(&head(uri, lines), target, client);
            dictionaries.find(known.unwrap().context, hash).is_some()
        };
        assert!(ask("/b?q=1", "http://o", "127.0.0.1", &who));
        assert!(!ask("/b", "http://o", "127.0.0.1", &[]));
        assert!(!ask("/b", "http://o", "127.0.0.1", &[("authorization", "Basic YTpj")]));
        assert!(!ask("/b", "http://o", "127.0.0.2", &who));
        assert!(!ask("/b", "http://o:81", "127.0.0.1", &who));
        for other in ["x-remote-user", "cookie", "x-ssl-client-cert", "host", "x-group-name"] {
            assert!(!ask("/b", "http://o", "127.0.0.1", &[who[0], (other, "x")]), "{other}");
        }
        for other in OF_PROXIES {
            let lines = [who[0], ("x-forwarded-proto", "https"), (other, "x")];
            assert!(!ask("/b", "http://o", "127.0.0.1", &lines), "{other}");
            assert!(!ask("/b", "http://o", "127.0.0.1", &lines[..2]), "by a proxy or not");
        }
        assert!(!ask("/b?token=x", "http://o", "127.0.0.1", &who));
    }

    #[test]
    fn a_context_that_leaves_the_machine_in_the_clear_has_none() {
        let near =
            |client: &str, lines: &[(&str, &str)]| is_secure(&head("/", lines).headers, client);
        assert!(near("127.0.0.1", &[]) && near("::1", &[]) && near("::ffff:127.0.0.1", &[]));
        assert!(near("::1", &[("x-forwarded-proto", "https"), ("forwarded", "for=a;proto=https")]));
        assert!(!near("192.0.2.1", &[("x-forwarded-proto", "https")]));
        assert!(!near("::1", &[("x-forwarded-proto", "http")]));
        assert!(!near("::1", &[("x-forwarded-proto", "https, http")]));
        assert!(!near("::1", &[("forwarded", "for=a;proto=https, for=b; proto=\"http\"")]));
        assert!(!near("", &[]));
    }

    /// Fields that say that somebody stands between, by which a client may be told.
    const OF_PROXIES: [&str; 9] = [
        "via",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-real-ip",
        "cf-connecting-ip",
        "true-client-ip",
        "fastly-client-ip",
        "x-cluster-client-ip",
        "x-envoy-external-address",
    ];

    #[test]
    fn behind_a_proxy_only_its_word_makes_a_context_secure() {
        let near = |lines: &[(&str, &str)]| is_secure(&head("/", lines).headers, "::1");
        for field in OF_PROXIES {
            assert!(!near(&[(field, "x")]), "{field}");
            assert!(near(&[(field, "x"), ("x-forwarded-proto", "HTTPS")]), "{field}");
            assert!(near(&[(field, "x"), ("forwarded", "for=a; proto=https")]), "{field}");
        }
        assert!(!near(&[("forwarded", "for=a")]));
        // Who says it for one hop says nothing of the other.
        assert!(!near(&[("forwarded", "for=a, for=b;proto=https")]));
        assert!(near(&[("forwarded", "for=a;proto=https, for=b;proto=https")]));
        assert!(!near(&[("x-forwarded-proto", "https"), ("forwarded", "for=a;proto=http")]));
    }

    #[test]
    fn an_origins_own_dictionary_goes_before_ours() {
        let dictionaries = Dictionaries::default();
        let here = known(&dictionaries, &[]);
        let (plain, own) = (answer(&FRESH), answer(&[("use-as-dictionary", "match=\"/a*\"")]));
        dictionaries.hear(&here, &plain.headers);
        assert!(dictionaries.wants(&here, &plain, &content(1)));
        dictionaries.hear(&here, &own.headers);
        assert!(!dictionaries.wants(&here, &plain, &content(1)));
        let of = |target: &str, lines: &[(&str, &str)]| {
            dictionaries.look_up(&head("/a/1", lines), target, "127.0.0.1").0.unwrap()
        };
        assert!(dictionaries.wants(&of("http://p", &[]), &plain, &content(1)));
        // A client that names one which is not ours has it from the origin.
        let hash = ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:";
        let named = of("http://p", &[("available-dictionary", hash)]);
        assert!(!dictionaries.wants(&named, &plain, &content(1)));
        for number in 0..2 * MAX_ORIGINS {
            dictionaries.hear(&of(&format!("http://{number}"), &[]), &own.headers);
        }
        assert_eq!(dictionaries.lock().with_own.len(), MAX_ORIGINS);
    }

    #[test]
    fn pages_of_others_do_not_get_to_compare_lengths() {
        let permits = |request: &[(&str, &str)], allowed: &str| {
            let known = known(&Dictionaries::default(), request);
            known.permits(&answer(&[("access-control-allow-origin", allowed)]).headers)
        };
        let cross = ("sec-fetch-site", "cross-site");
        let cors = ("sec-fetch-mode", "cors");
        let origin = ("origin", "https://b.example");
        assert!(permits(&[], "") && permits(&[("sec-fetch-site", "same-origin"), cors], ""));
        assert!(permits(&[cross], "") && permits(&[cross, ("sec-fetch-mode", "navigate")], ""));
        assert!(permits(&[cross, cors, origin], "*"));
        assert!(permits(&[cross, cors, origin], "https://b.example"));
        assert!(!permits(&[cross, cors, origin], "https://c.example"));
        assert!(!permits(&[cross, cors], "*"));
        assert!(!permits(&[cross, ("sec-fetch-mode", "no-cors"), origin], "*"));
    }

    #[test]
    fn what_is_said_of_dictionaries_is_ignored_where_it_cannot_be_meant() {
        let dictionaries = Dictionaries::default();
        let hash = ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:";
        let ignored = |lines: &[(&str, &str)]| {
            let asked = head("/a", lines);
            let (known, ignored) = dictionaries.look_up(&asked, "http://o", "::1");
            assert!(known.unwrap().held.is_none());
            ignored.is_some()
        };
        let available = ("available-dictionary", hash);
        assert!(!ignored(&[]) && !ignored(&[("dictionary-id", "\"longwire-1\"")]));
        // The origin may know these.
        assert!(!ignored(&[available]) && !ignored(&[available, ("dictionary-id", "\"v1\"")]));
        assert!(ignored(&[available, ("dictionary-id", "\"longwire-00\"")]));
        assert!(ignored(&[available, ("dictionary-id", "v1")]));
        assert!(ignored(&[available, available]));
        assert!(ignored(&[("available-dictionary", ":AA==:")]));
    }

    #[test]
    fn dictionaries_are_bounded_and_those_in_use_stay() {
        let dictionaries = Dictionaries::default();
        let hold = |client: usize, number: usize| {
            let client = client.to_string();
            let known = known(&dictionaries, &[("cookie", &client)]);
            dictionaries.offer(&known, &content(number)).unwrap();
            (known.context, Id::of(&content(number)))
        };
        let (context, hash) = hold(0, 0);
        // A client that never uses any drives none of another's out.
        let other = hold(1, 0);
        for number in 1..100 {
            hold(0, number);
            assert!(dictionaries.find(context, hash).is_some());
        }
        assert_eq!(dictionaries.lock().held.len(), MAX_ALIKE + 1);
        assert!(dictionaries.find(other.0, other.1).is_some());
        for client in 2..2 * MAX_DICTIONARIES {
            hold(client, 0);
        }
        let state = dictionaries.lock();
        let bytes: usize = state.held.values().map(|held| held.kept.content().len()).sum();
        assert_eq!((state.held.len(), state.bytes), (MAX_DICTIONARIES, bytes));
        assert!(bytes <= MAX_BYTES);
    }

    #[test]
    fn offers_that_nobody_takes_up_become_rare() {
        let dictionaries = Dictionaries::default();
        let known = known(&dictionaries, &[]);
        let offered = |count: usize, content: &dyn Fn(usize) -> Vec<u8>| {
            let parts = answer(&FRESH);
            let offers = |number: &usize| {
                let content = content(*number);
                dictionaries.wants(&known, &parts, &content)
                    && dictionaries.offer(&known, &content).is_some()
            };
            (0..count).filter(offers).count()
        };
        // What is not offered, for there is a secret in it, does not count.
        let secret = |number| [content(number), b"<password>x</password>".to_vec()].concat();
        assert_eq!(offered(1000, &secret), 0);
        assert_eq!(offered(64, &content), 64);
        assert_eq!(offered(160, &content), 10);
        assert!(dictionaries.find(known.context, Id::of(&content(159))).is_some());
        assert_eq!(offered(10, &content), 10);
    }
}
