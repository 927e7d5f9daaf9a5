use http::request::Parts;
use http::{Request, Response};

use super::held::{MAX_ALIKE, MAX_BYTES, MAX_DICTIONARIES, MAX_ORIGINS};
use super::*;
use crate::edgeless::reader::in_words_of_the_pair;

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

/// What is known of a request for `target` from a client at this address, and why what it says is
/// ignored.
fn look_up(
    dictionaries: &Dictionaries,
    head: &Parts,
    target: &str,
    address: &str,
) -> (Option<Known>, Option<&'static str>) {
    let (client, request) = (Client::from(address), in_words_of_the_pair(head, target));
    let reader = Reader::new(&head.headers, &request);
    dictionaries.look_up((&head.headers, &request), (address, &client), &reader)
}

fn known(dictionaries: &Dictionaries, lines: &[(&str, &str)]) -> Known {
    let (known, _) = look_up(dictionaries, &head("/a/1", lines), "http://o", "127.0.0.1");
    known.unwrap()
}

fn now() -> Instant {
    Instant::now()
}

fn content(number: usize) -> Vec<u8> {
    format!("<a>{number}</a>{}", " ".repeat(MIN_CONTENT_BYTES)).into_bytes()
}

const FRESH: [(&str, &str); 2] =
    [("content-type", "text/xml"), ("cache-control", "public, max-age=60")];

fn kept(content: &[u8]) -> Arc<Kept> {
    Arc::new(Kept::new(content))
}

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
        |lines: &[(&str, &str)]| dictionaries.wants(now(), &known, &answer(lines), &content(1));
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
    assert!(!dictionaries.wants(now(), &known, &parts, &content(1)[..MIN_CONTENT_BYTES - 1]));
    assert!(!dictionaries.wants(now(), &known, &parts, &vec![b' '; MAX_CONTENT_BYTES + 1]));
}

#[test]
fn what_is_offered_is_held_and_named_by_its_hash() {
    let dictionaries = Dictionaries::default();
    let known = known(&dictionaries, &[]);
    let offer = dictionaries.offer(&known, kept(b"<a>1</a>")).unwrap();
    let expected = format!("match=\"/a/*\", id=\"{}\"", name(Id::of(b"<a>1</a>")));
    assert_eq!(offer, expected);
    assert_eq!(dictionaries.lock().held.len(), 1);
}

#[test]
fn a_dictionary_is_good_only_for_who_got_it() {
    let dictionaries = Dictionaries::default();
    let who = [("authorization", "Basic YTpi")];
    dictionaries.offer(&known(&dictionaries, &who), kept(b"<a>1</a>")).unwrap();
    let hash = Id::of(b"<a>1</a>");
    let ask = |uri: &str, target: &str, client: &str, lines: &[(&str, &str)]| {
        let (known, _) = look_up(&dictionaries, &head(uri, lines), target, client);
        known.is_some_and(|known| dictionaries.lock().find(known.context, hash).is_some())
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
    let near = |client: &str, lines: &[(&str, &str)]| is_secure(&head("/", lines).headers, client);
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
    let (here, start) = (known(&dictionaries, &[]), Instant::now());
    let (plain, own) =
        (answer(&FRESH), answer(&[FRESH[1], ("use-as-dictionary", "match=\"/a*\"")]));
    let wants = |known: &Known, later_s: u64| {
        let now = start + Duration::from_secs(later_s);
        dictionaries.wants(now, known, &plain, &content(1))
    };
    dictionaries.hear(start, &here, &plain);
    assert!(wants(&here, 0));
    dictionaries.hear(start, &here, &own);
    assert!(!wants(&here, 0) && !wants(&here, 59));
    // By then no client uses it any more.
    assert!(wants(&here, 60));
    let of = |target: &str, lines: &[(&str, &str)]| {
        look_up(&dictionaries, &head("/a/1", lines), target, "127.0.0.1").0.unwrap()
    };
    assert!(wants(&of("http://p", &[]), 0));
    // A client that names one which is not ours has it from the origin.
    let hash = ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:";
    let named = of("http://p", &[("available-dictionary", hash)]);
    assert!(!wants(&named, 0));
    for number in 0..2 * MAX_ORIGINS {
        dictionaries.hear(start, &of(&format!("http://{number}"), &[]), &own);
    }
    assert_eq!(dictionaries.lock().with_own.len(), MAX_ORIGINS);
    dictionaries.hear(start + Duration::from_secs(60), &here, &own);
    assert_eq!(dictionaries.lock().with_own.len(), 1);
}

#[test]
fn an_offer_counts_if_a_client_takes_it_up_and_for_as_long() {
    let offer = ("use-as-dictionary", "match=\"/a*\"");
    let lasts = |lines: &[(&str, &str)]| own_offer(&answer(lines)).map(|lasts| lasts.as_secs());
    assert_eq!(lasts(&[offer, ("cache-control", "private, max-age=60"), ("age", "20")]), Some(40));
    assert_eq!(lasts(&[offer]), Some(UNTOLD_OWN.as_secs()));
    assert_eq!(lasts(&[offer, ("cache-control", "max-age=99999999")]), Some(MAX_OWN.as_secs()));
    // Lines of one field are one list.
    assert_eq!(lasts(&[("use-as-dictionary", "id=\"x\""), offer]), Some(3600));
    for control in ["no-store", "no-cache, max-age=60", "max-age=0", "max-age=x"] {
        assert_eq!(lasts(&[offer, ("cache-control", control)]), None, "{control}");
    }
    for offer in ["", "x", "match=/a", "id=\"x\"", "match=\"/a\", type=other"] {
        assert_eq!(lasts(&[("use-as-dictionary", offer)]), None, "{offer}");
    }
    for status in [206, 304, 404, 500] {
        let mut parts = answer(&[offer]);
        parts.status = StatusCode::from_u16(status).unwrap();
        assert_eq!(own_offer(&parts), None, "{status}");
    }
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
    // Who sees the link sees the length of what another site sends somebody to as well.
    assert!(!permits(&[cross], "") && !permits(&[cross, ("sec-fetch-mode", "navigate")], ""));
    assert!(permits(&[("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")], ""));
    assert!(!permits(&[("cookie", "a=1"), ("user-agent", "Mozilla/5.0")], ""));
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
        let (known, ignored) = look_up(&dictionaries, &asked, "http://o", "::1");
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
        dictionaries.offer(&known, kept(&content(number))).unwrap();
        (known.context, Id::of(&content(number)))
    };
    let (context, hash) = hold(0, 0);
    // A client that never uses any drives none of another's out.
    let other = hold(1, 0);
    for number in 1..100 {
        hold(0, number);
        assert!(dictionaries.lock().find(context, hash).is_some());
    }
    assert_eq!(dictionaries.lock().held.len(), MAX_ALIKE + 1);
    assert!(dictionaries.lock().find(other.0, other.1).is_some());
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
    let parts = answer(&FRESH);
    let wants = |number| dictionaries.wants(now(), &known, &parts, &content(number));
    let offered = |count: usize| {
        let offers = |number: &usize| {
            wants(*number) && dictionaries.offer(&known, kept(&content(*number))).is_some()
        };
        (0..count).filter(offers).count()
    };
    // What is not offered, for there is a secret in it, does not count.
    assert!((0..1000).all(wants));
    assert_eq!(offered(64), 64);
    assert_eq!(offered(160), 10);
    assert!(dictionaries.lock().find(known.context, Id::of(&content(159))).is_some());
    assert_eq!(offered(10), 10);
}
