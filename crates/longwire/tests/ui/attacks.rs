//! What pages of other sites, other users and other machines may try.

use super::serving::{Ui, longwire};

/// A request as the interface's own page sends it, with one field replaced or, when empty, left
/// out.
fn with(ui: &Ui, line: &str, name: &str, value: &str) -> u16 {
    let cookie = format!("longwire-ui-{}={}", ui.host.rsplit_once(':').unwrap().1, ui.token);
    let origin = format!("http://{}", ui.host);
    let own = [
        ("Host", ui.host.as_str()),
        ("Cookie", &cookie),
        ("Origin", &origin),
        ("Sec-Fetch-Site", "same-origin"),
        ("Content-Type", "application/json"),
    ];
    let fields: Vec<(&str, &str)> = own
        .into_iter()
        .map(|(key, usual)| if key == name { (key, value) } else { (key, usual) })
        .filter(|(_, value)| !value.is_empty())
        .collect();
    ui.ask(line, &fields, "{}").status
}

#[test]
fn a_name_that_leads_here_from_elsewhere_is_not_served() {
    let ui = Ui::start();
    let port = ui.host.rsplit_once(':').unwrap().1.to_string();
    for line in ["GET /", "GET /api/v1/links", "POST /api/v1/links"] {
        for host in ["attacker.example", "127.0.0.1", "127.0.0.1:1", ""] {
            let status = with(&ui, line, "Host", host);
            // Without Host a request is no HTTP/1.1 at all.
            assert!(status == 421 || (host.is_empty() && status == 400), "{line} {host}: {status}");
        }
        let host = format!("attacker.example:{port}");
        assert_eq!(with(&ui, line, "Host", &host), 421);
        let host = format!("localhost:{port}");
        assert_ne!(with(&ui, line, "Host", &host), 421);
    }
}

#[test]
fn who_does_not_have_the_token_sees_and_changes_nothing() {
    let ui = Ui::start();
    for line in [
        "GET /",
        "GET /links/x",
        "GET /api/v1/links",
        "GET /api/v1/events?topics=link:x",
        "POST /api/v1/links",
        "DELETE /api/v1/links/x",
        "GET /api/v1/openapi.json",
    ] {
        assert_eq!(with(&ui, line, "Cookie", ""), 401, "{line}");
        let port = ui.host.rsplit_once(':').unwrap().1;
        let stale = format!("longwire-ui-{port}=00000000000000000000000000000000");
        assert_eq!(with(&ui, line, "Cookie", &stale), 401, "{line}");
    }
    let answer = ui.ask("GET /?token=0000", &[("Host", &ui.host)], "");
    assert_eq!(answer.status, 401);
    assert!(answer.body.contains("open the address that longwire ui printed"));
}

#[test]
fn the_token_leaves_the_address_at_once() {
    let ui = Ui::start();
    let line = format!("GET /links/x?token={}&y=1", ui.token);
    let answer = ui.ask(&line, &[("Host", &ui.host)], "");
    assert_eq!(answer.status, 303);
    assert!(answer.head.contains("location: /links/x?y=1\r\n"), "{}", answer.head);
    assert!(answer.head.contains("HttpOnly; SameSite=Strict; Path=/"), "{}", answer.head);
    // A path that looks like another host stays a path of this one.
    let line = format!("GET //attacker.example/?token={}", ui.token);
    let answer = ui.ask(&line, &[("Host", &ui.host)], "");
    assert!(answer.status != 303 || answer.head.contains("location: /attacker.example/\r\n"));
}

#[test]
fn pages_of_other_sites_change_nothing() {
    let ui = Ui::start();
    for line in ["POST /api/v1/links", "DELETE /api/v1/links/x", "PUT /api/v1/sets/x"] {
        assert_eq!(with(&ui, line, "Origin", "http://attacker.example"), 403, "{line}");
        assert_eq!(with(&ui, line, "Origin", "null"), 403, "{line}");
        for site in ["cross-site", "same-site", "none"] {
            assert_eq!(with(&ui, line, "Sec-Fetch-Site", site), 403, "{line}");
        }
        // What a form can send.
        for kind in ["", "text/plain", "application/x-www-form-urlencoded"] {
            assert_eq!(with(&ui, line, "Content-Type", kind), 415, "{line}");
        }
        assert_eq!(with(&ui, line, "", ""), 422, "{line}: our own page is heard");
    }
    // An image or a link asks by GET, which changes nothing.
    assert_eq!(with(&ui, "GET /api/v1/links/x/settings", "", ""), 405);
    assert_eq!(with(&ui, "POST /", "", ""), 405);
}

#[test]
fn each_answer_keeps_other_sites_out_of_the_page() {
    let ui = Ui::start();
    let bearer = format!("Bearer {}", ui.token);
    let fields = [("Host", ui.host.as_str()), ("Authorization", &bearer)];
    for path in ["/", "/nothing", "/api/v1/presets", "/api/v1/nothing", "/links/%3Cb%3E"] {
        let answer = ui.ask(&format!("GET {path}"), &fields, "");
        for field in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cross-origin-resource-policy: same-origin",
            "cross-origin-opener-policy: same-origin",
            "cache-control: no-store",
        ] {
            assert!(answer.head.contains(field), "{path}: {field}");
        }
        assert!(!answer.body.contains("<b>"), "{path}");
    }
}

#[test]
fn files_of_the_machine_are_not_named_over_the_network() {
    let ui = Ui::start();
    let ask = |method: &str, path: &str, body: &str| ui.api(method, path, body);
    let answer = ask("POST", "/links/x/settings", r#"{"settings": {"trace": "/etc/passwd"}}"#);
    assert_eq!(answer.status, 422);
    assert!(answer.body.contains("command line only"), "{}", answer.body);
    for name in ["..%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fpasswd", ".."] {
        let answer = ask("GET", &format!("/sets/{name}"), "");
        assert_eq!(answer.status, 404, "{name}: {}", answer.body);
        assert!(!answer.body.contains("root:"), "{name}");
        let answer = ask("PUT", &format!("/sets/{name}"), r#"{"from": "x"}"#);
        assert_eq!(answer.status, 422, "{name}: {}", answer.body);
    }
    for path in ["/assets/../Cargo.toml", "/assets/%2e%2e/x", "/../../etc/passwd"] {
        let bearer = format!("Bearer {}", ui.token);
        let fields = [("Host", ui.host.as_str()), ("Authorization", &bearer)];
        assert_eq!(ui.ask(&format!("GET {path}"), &fields, "").status, 404, "{path}");
    }
}

#[test]
fn bodies_that_are_too_long_or_no_json_are_refused_in_a_line() {
    let ui = Ui::start();
    let answer = ui.api("POST", "/links", "{");
    assert_eq!(answer.status, 400);
    assert!(answer.head.contains("application/problem+json"));
    let answer = ui.api("POST", "/links", r#"{"name": "--help", "link": "los"}"#);
    assert_eq!(answer.status, 422);
    assert!(answer.body.contains("is no name"), "{}", answer.body);
    let answer = ui.api("POST", "/links", r#"{"name": "x", "link": "loss"}"#);
    assert!(answer.body.contains("did you mean 'los'"), "{}", answer.body);
    let answer = ui.api("GET", "/events?topics=nothing", "");
    assert_eq!(answer.status, 422, "{}", answer.body);
}

#[test]
fn only_a_loopback_address_is_listened_on() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let output = longwire().args(["ui", "--listen", address]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(why.contains("ssh -L"), "{why}");
    }
}

#[test]
fn the_description_of_the_api_is_what_is_served() {
    let ui = Ui::start();
    let answer = ui.api("GET", "/openapi.json", "");
    let described: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    for (path, methods) in described["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let path = path.trim_start_matches("/api/v1").replace(['{', '}'], "");
            if path == "/doctor" || path == "/events" {
                continue;
            }
            let answer = ui.api(&method.to_uppercase(), &path, "{}");
            assert_ne!(answer.status, 405, "{method} {path}");
            assert!(!answer.body.contains("no such path"), "{method} {path}");
        }
    }
}
