//! What of a target a log may hold: everything but what proves who asks. Rather too much is cut
//! than too little.

use codec::secrets::says_so;

/// Stands for what was cut.
const CUT: &str = "[cut]";
/// Longest target that a log holds, in bytes; enough to find a request again.
const MAX_TARGET_BYTES: usize = 1024;
/// Parts of names whose values may prove who asks, beside those that say so to anybody.
const PROVING: [&str; 12] = [
    "auth",
    "cookie",
    "token",
    "session",
    "secret",
    "credential",
    "pass",
    "signature",
    "assertion",
    "ticket",
    "saml",
    "otp",
];
/// The same as last word of a name: within others they are common.
const PROVING_ENDS: [&str; 6] = ["key", "code", "sig", "pin", "nonce", "hmac"];
/// A value without a name, or under an innocent one, that is this long and looks drawn at random
/// proves who asks as well as a password.
const RANDOM_BYTES: usize = 24;

/// A request's target without its secrets: passwords and users, values of parameters that prove who
/// asks, and segments of the path behind such a name.
pub(crate) fn cut(target: &str) -> String {
    let (rest, query) = match target.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (target, None),
    };
    let (scheme, rest) = match rest.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, rest),
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let mut out = String::with_capacity(target.len());
    if let Some(scheme) = scheme {
        out.extend([scheme, "://"]);
    }
    match authority.rsplit_once('@') {
        Some((_, host)) => out.extend([CUT, "@", host]),
        None => out.push_str(authority),
    }
    cut_path(path, &mut out);
    if let Some(query) = query {
        out.push('?');
        cut_parameters(query, &mut out);
    }
    bounded(out)
}

fn bounded(mut target: String) -> String {
    if target.len() > MAX_TARGET_BYTES {
        let mut end = MAX_TARGET_BYTES;
        while !target.is_char_boundary(end) {
            end -= 1;
        }
        target.truncate(end);
        target.push_str("...");
    }
    target
}

fn cut_path(path: &str, out: &mut String) {
    let mut secret = false;
    for (at, segment) in path.split('/').enumerate() {
        if at > 0 {
            out.push('/');
        }
        // Parameters of a segment (RFC 3986 §3.3), such as ;jsessionid=.
        let (name, parameters) = match segment.split_once(';') {
            Some((name, parameters)) => (name, Some(parameters)),
            None => (segment, None),
        };
        let cuts = (secret && !name.is_empty()) || is_random(name) || is_token(name);
        out.push_str(if cuts { CUT } else { name });
        secret = proves(name);
        if let Some(parameters) = parameters {
            out.push(';');
            cut_parameters(parameters, out);
        }
    }
}

fn cut_parameters(parameters: &str, out: &mut String) {
    let mut rest = parameters;
    loop {
        let end = rest.find(['&', ';']).unwrap_or(rest.len());
        let (parameter, behind) = rest.split_at(end);
        match parameter.split_once('=') {
            Some((name, value)) => {
                let cuts = proves(name) || is_random(value) || is_token(value);
                let name = if is_random(name) || is_token(name) { CUT } else { name };
                out.extend([name, "=", if cuts && !value.is_empty() { CUT } else { value }]);
            }
            None if is_random(parameter) || is_token(parameter) => out.push_str(CUT),
            None => out.push_str(parameter),
        }
        let mut behind = behind.chars();
        match behind.next() {
            Some(joint) => out.push(joint),
            None => return,
        }
        rest = behind.as_str();
    }
}

/// Whether what stands under a name may prove who asks.
fn proves(name: &str) -> bool {
    // A name with an escape may be any.
    if name.contains('%') {
        return true;
    }
    let name = name.to_ascii_lowercase();
    PROVING.iter().any(|part| name.contains(part))
        || PROVING_ENDS.iter().any(|part| name.ends_with(part))
        || says_so(&name)
}

/// A JSON Web Token, or another three parts of base64 (RFC 7515 §3.1: they begin like this).
fn is_token(value: &str) -> bool {
    value.contains("eyJ")
}

/// Letters and digits mixed, of some length, without a word's or an identifier's marks in between.
fn is_random(value: &str) -> bool {
    let longest = value.split(|c: char| !(c.is_ascii_alphanumeric() || "+/=_%~".contains(c)));
    longest.max_by_key(|part| part.len()).is_some_and(|part| {
        let digits = part.bytes().filter(u8::is_ascii_digit).count();
        let letters = part.bytes().filter(u8::is_ascii_alphabetic).count();
        part.len() >= RANDOM_BYTES && digits > 1 && letters > 1
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_tells_a_request_stays_and_what_proves_who_asks_goes() {
        for (target, expected) in [
            ("http://a.example:81/x/7?y=1&z", "http://a.example:81/x/7?y=1&z"),
            ("a.example:443", "a.example:443"),
            ("*", "*"),
            ("/x", "/x"),
            ("http://a", "http://a"),
            ("http://user:pw@a/x", "http://[cut]@a/x"),
            ("http://u@x@a?q=1", "http://[cut]@a?q=1"),
            ("/x?token=abc&y=2", "/x?token=[cut]&y=2"),
            ("/x?y=2;api_key=abc", "/x?y=2;api_key=[cut]"),
            ("/x?X-Amz-Signature=0af&X-Amz-Date=2026", "/x?X-Amz-Signature=[cut]&X-Amz-Date=2026"),
            ("/cb?code=1&state=2", "/cb?code=[cut]&state=2"),
            ("/x?%74oken=abc", "/x?%74oken=[cut]"),
            ("/x;jsessionid=7/y", "/x;jsessionid=[cut]/y"),
            ("/reset-password/ab12/go", "/reset-password/[cut]/go"),
            ("/x?abcdefgh12345678abcdefgh", "/x?[cut]"),
            ("/s/abcdefgh12345678abcdefgh", "/s/[cut]"),
            ("/x?id=eyJhbGciOiJub25lIn0.e30.", "/x?id=[cut]"),
            ("/x/0b0f8f3e-2f0e-4d2e-9a55-1f3d0c2b7a11", "/x/0b0f8f3e-2f0e-4d2e-9a55-1f3d0c2b7a11"),
            ("/x?password=", "/x?password="),
        ] {
            assert_eq!(cut(target), expected, "{target}");
        }
        let long = cut(&format!("/{}", "a/".repeat(MAX_TARGET_BYTES)));
        assert!(long.len() == MAX_TARGET_BYTES + 3 && long.ends_with("..."));
    }

    proptest! {
        /// Wherever it stands, a secret under its name is never in what is logged.
        #[test]
        fn no_secret_gets_through(
            before in "[a-z0-9/?&;=%.@:~ -]{0,40}",
            name in "(token|Api-Key|PASSWORD|sessionid|auth|client_secret|sig|code)",
            after in "([&;][a-z0-9/?&;=%.@:~ -]{0,40})?",
        ) {
            let secret = "S3CR3T";
            let target = format!("http://a/x?{before}&{name}={secret}{after}");
            prop_assert!(!cut(&target).contains(secret), "{}", cut(&target));
            let target = format!("http://{before}:{secret}@a/x");
            let authority = !before.contains('/') && !before.contains('?');
            prop_assert!(!authority || !cut(&target).contains(secret), "{}", cut(&target));
        }
    }
}
