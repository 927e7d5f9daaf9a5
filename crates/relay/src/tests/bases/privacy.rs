//! Who never meets whom, whatever a proxy in front calls them; and what nobody keeps.

use super::*;

/// Names by which proxies and services tell who asks, each of some product.
const WHO: [&str; 70] = [
    "authorization",
    "cookie",
    "x-forwarded-for",
    "forwarded",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "fastly-client-ip",
    "fly-client-ip",
    "do-connecting-ip",
    "x-appengine-user-ip",
    "x-azure-clientip",
    "x-envoy-external-address",
    "cloudfront-viewer-address",
    "x-originating-ip",
    "x-remote-addr",
    "wl-proxy-client-ip",
    "remote-user",
    "remote-groups",
    "x-remote-user",
    "x-forwarded-user",
    "x-forwarded-email",
    "x-forwarded-groups",
    "x-forwarded-preferred-username",
    "x-forwarded-client-cert",
    "x-auth-request-email",
    "x-auth-subject",
    "x-authentik-username",
    "x-webauth-user",
    "x-user-id",
    "x-user",
    "x-ssl-client-s-dn",
    "x-ssl-client-cn",
    "ssl_client_s_dn",
    "x-client-cert",
    "x-client-dn",
    "client-cert",
    "x-arr-clientcert",
    "x-amzn-oidc-data",
    "x-amzn-oidc-identity",
    "x-amzn-mtls-clientcert-subject",
    "x-goog-authenticated-user-email",
    "x-goog-iap-jwt-assertion",
    "x-ms-client-principal",
    "x-ms-client-principal-name",
    "cf-access-authenticated-user-email",
    "cf-access-jwt-assertion",
    "x-pomerium-claim-email",
    "x-pomerium-jwt-assertion",
    "tailscale-user-login",
    "teleport-jwt-assertion",
    "iv-user",
    "iv-creds",
    "sm_user",
    "sm_universalid",
    "osso-subscriber",
    "eppn",
    "x-consumer-username",
    "x-credential-identifier",
    "x-jwt-assertion",
    "x-scope-orgid",
    "x-msisdn",
    "x-tenant",
    "x-pin",
    "x-account",
    "x-api-key",
    "from",
    "x-of-some-product",
];

#[test]
fn whoever_a_proxy_in_front_tells_apart_are_two() {
    let requester = |fields: &[(&str, &str)]| {
        let Head::Request(request) = request("GET", fields) else { unreachable!() };
        requester(&"10.0.0.1".into(), &request)
    };
    for name in WHO {
        assert_ne!(requester(&[(name, "alice")]), requester(&[(name, "bob")]), "{name}");
        assert_ne!(requester(&[(name, "alice")]), requester(&[]), "{name}");
    }
    // What differs from one message to the next, or from one page to another, does not.
    let all = [
        ("accept", "text/xml"),
        ("content-length", "17"),
        ("content-type", "text/xml"),
        ("date", "today"),
        ("if-none-match", "1"),
        ("referer", "http://o/1"),
        ("sec-fetch-dest", "image"),
        ("soapaction", "urn:a"),
        ("traceparent", "00-17-17-01"),
        ("x-request-id", "17"),
        ("x-amzn-trace-id", "17"),
        ("x-b3-spanid", "17"),
        ("x-correlation-id", "17"),
        ("x-ms-client-request-id", "17"),
        ("x-requested-with", "XMLHttpRequest"),
    ];
    assert_eq!(requester(&all), requester(&[]));
}

#[test]
fn a_service_may_say_which_fields_tell_who_asks() {
    let Head::Request(request) = request("GET", &[("x-flow", "17")]) else { unreachable!() };
    let knows = Client { impersonal: vec!["X-Flow".to_owned()], ..Client::from("a") };
    let Head::Request(other) = super::request("GET", &[("x-flow", "18")]) else { unreachable!() };
    assert_eq!(requester(&knows, &request), requester(&knows, &other));
    assert_ne!(requester(&"a".into(), &request), requester(&"a".into(), &other));
}

#[test]
fn clients_of_a_proxy_in_front_never_share_a_base() {
    for name in WHO {
        let mut pair = Pair::new();
        for seed in 0..4 {
            pair.asks("proxy", &[(name, "alice")], &track(seed, ""), &track(seed, ""));
        }
        assert_eq!(pair.gateway.chosen().last(), Some(&"delta"), "{name}");
        pair.asks("proxy", &[(name, "bob")], &track(9, ""), &track(9, ""));
        assert_ne!(pair.gateway.chosen().last(), Some(&"delta"), "{name}");
        assert_ne!(pair.edge.chosen().last(), Some(&"delta"), "{name}");
    }
}

/// How another site has somebody's browser ask, or may.
const STRANGERS: [&[(&str, &str)]; 12] = [
    &[("sec-fetch-site", "cross-site")],
    &[("sec-fetch-site", "same-site")],
    &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")],
    &[("sec-fetch-site", "Cross-Site")],
    &[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
    &[("origin", "http://evil.example")],
    &[("origin", "null")],
    &[("origin", "http://origin.evil.example")],
    &[("referer", "http://evil.example/?http://origin/")],
    &[("referer", "http://origin@evil.example/")],
    &[("access-control-request-method", "PUT")],
    &[("cookie", "a=1"), ("user-agent", "Mozilla/5.0 (X11)")],
];

/// How the target's own pages and programs ask.
const OWN: [&[(&str, &str)]; 9] = [
    &[],
    &[("sec-fetch-site", "same-origin"), ("origin", "https://other.example")],
    &[("sec-fetch-site", "none")],
    &[("origin", "http://origin")],
    &[("origin", "https://ORIGIN:443")],
    &[("referer", "http://origin/page?x"), ("user-agent", "Mozilla/5.0"), ("cookie", "a=1")],
    &[("referer", "http://www.example/page"), ("x-forwarded-host", "www.example")],
    &[("referer", "http://www.example:8080/page"), ("longwire-host", "www.example:8080")],
    &[("user-agent", "Mozilla/4.0 (MS Web Services Client Protocol 4.0)"), ("cookie", "a=1")],
];

#[test]
fn another_site_is_known_by_what_browsers_say() {
    let cross_site = |fields: &[(&str, &str)]| {
        let Head::Request(request) = request("GET", fields) else { unreachable!() };
        is_cross_site(&request)
    };
    STRANGERS.iter().for_each(|fields| assert!(cross_site(fields), "{fields:?}"));
    OWN.iter().for_each(|fields| assert!(!cross_site(fields), "{fields:?}"));
}

#[test]
fn what_another_site_asks_for_has_no_base_is_none_and_is_not_coded() {
    let with = |fields: &[(&'static str, &'static str)]| {
        let mut all = fields.to_vec();
        if !fields.iter().any(|(name, _)| *name == "cookie") {
            all.push(("cookie", "a=1"));
        }
        all
    };
    for stranger in STRANGERS {
        let own = with(&[("sec-fetch-site", "same-origin")]);
        let mut pair = Pair::new();
        for seed in 0..4 {
            pair.asks("a", &own, &track(seed, ""), &track(seed, ""));
        }
        assert_eq!(pair.gateway.chosen().last(), Some(&"delta"));
        let kept = pair.bases(Role::Gateway).count();
        for seed in 20..24 {
            let sent = pair.asks("a", &with(stranger), &track(seed, ""), &track(seed, ""));
            assert!(sent[1] > track(seed, "").len(), "{stranger:?}");
            assert_eq!(pair.gateway.chosen().last(), Some(&"identity"), "{stranger:?}");
            assert_eq!(pair.edge.chosen().last(), Some(&"identity"), "{stranger:?}");
        }
        for role in [Role::Edge, Role::Gateway] {
            let texts: Vec<_> = pair.bases(role).map(|kept| kept.content().to_vec()).collect();
            assert!(!texts.contains(&track(20, "")), "{stranger:?}");
        }
        assert_eq!(pair.bases(Role::Gateway).count(), kept);
    }
}

#[test]
fn with_one_encoding_for_all_what_another_site_asks_for_goes_as_it_is() {
    for encoding in ["zstd:3", "deflate:9"] {
        let config =
            Config { encoding: Encoding::of(encoding).unwrap(), ..Config::new(Role::Edge, 0) };
        let mut pair = Pair::with(&config, None);
        pair.asks("a", &[], &track(1, ""), &track(1, ""));
        assert_eq!(pair.gateway.chosen().last(), Some(&encoding));
        let fields = [("sec-fetch-site", "cross-site"), ("cookie", "a=1")];
        // Of one length, a text that repeats a secret in it is no shorter than one that does not.
        let lengths: BTreeSet<_> = ["NL91ABNA0417164300", "NL91ABNA5926535897"]
            .iter()
            .map(|guess| {
                let answer = format!("iban NL91ABNA0417164300 and what was asked for: {guess}");
                pair.asks("a", &fields, &track(1, ""), answer.repeat(9).as_bytes())[1]
            })
            .collect();
        assert_eq!(lengths.len(), 1, "{encoding} {lengths:?}");
    }
}

#[test]
fn what_nobody_may_keep_is_neither_base_nor_sample() {
    for control in ["no-store", "max-age=0, Private", "private=\"set-cookie\"", "No-Store"] {
        let mut pair = Pair::new();
        pair.says = vec![("cache-control", control)];
        for seed in 0..60 {
            pair.asks("a", &[], &track(seed, ""), &track(seed, ""));
            pair.rests(1);
        }
        for (role, end) in [(Role::Edge, &pair.edge), (Role::Gateway, &pair.gateway)] {
            assert_eq!(pair.bases(role).count(), 0, "{control}");
            assert_eq!(end.relay.transfer.coding.dictionaries().count(), 0, "{control}");
            assert!(end.disk.is_empty(), "{control}");
            assert!(!end.chosen().contains(&"delta"), "{control}: {:?}", end.chosen());
        }
        // Those that may be kept are, beside them.
        pair.says = Vec::new();
        pair.media = "application/xml";
        pair.warms_up();
        assert_eq!(pair.gateway.chosen().last(), Some(&"delta"));
        assert_eq!(pair.edge.chosen().last(), Some(&"delta"));
    }
}

#[test]
fn a_request_says_for_both_messages_that_nobody_may_keep_them() {
    let mut pair = Pair::new();
    for seed in 0..6 {
        pair.asks("a", &[("cache-control", "no-store")], &track(seed, ""), &track(seed, ""));
    }
    for (role, end) in [(Role::Edge, &pair.edge), (Role::Gateway, &pair.gateway)] {
        assert_eq!(pair.bases(role).count(), 0);
        assert!(!end.chosen().contains(&"delta"));
    }
}
