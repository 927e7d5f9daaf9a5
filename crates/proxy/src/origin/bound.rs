//! Authentication that holds for a connection, not for a request (RFC 4559, [MS-NTHT]): whose it
//! is, nobody else's requests may go over it.

use http::header::{self, HeaderMap, HeaderName};

/// Schemes that authenticate the connection, in lower case.
const SCHEMES: [&str; 4] = ["ntlm", "negotiate", "kerberos", "nego2"];
/// By this a server says that a connection stays authenticated, or not.
const PERSISTENT_AUTH: HeaderName = HeaderName::from_static("persistent-auth");
const AUTHENTICATION_INFO: HeaderName = HeaderName::from_static("authentication-info");

/// Whether a request authenticates its connection.
pub(crate) fn request_binds(headers: &HeaderMap) -> bool {
    names_scheme(headers, &header::AUTHORIZATION)
        || names_scheme(headers, &header::PROXY_AUTHORIZATION)
}

/// Whether an answer is a step of such an authentication.
pub(crate) fn answer_binds(headers: &HeaderMap) -> bool {
    headers.contains_key(PERSISTENT_AUTH)
        || [&header::WWW_AUTHENTICATE, &header::PROXY_AUTHENTICATE, &AUTHENTICATION_INFO]
            .into_iter()
            .any(|name| names_scheme(headers, name))
}

/// Whether a field holds a challenge or credentials of such a scheme. Challenges are a list
/// (RFC 9110 §11.6.1), whose parameters may look like schemes: then a connection is kept apart for
/// nothing.
fn names_scheme(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.get_all(name).iter().any(|value| {
        value.as_bytes().split(|byte| *byte == b',').any(|member| {
            let member = member.trim_ascii();
            let word = member.split(u8::is_ascii_whitespace).next().unwrap_or_default();
            SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme.as_bytes()))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_that_bind_a_connection_are_known_wherever_they_stand() {
        let with = |name: HeaderName, value: &'static str| {
            HeaderMap::from_iter([(name, header::HeaderValue::from_static(value))])
        };
        for value in ["NTLM TlRMTVNTUAAB", "negotiate YII=", "Kerberos x", "Nego2"] {
            assert!(request_binds(&with(header::AUTHORIZATION, value)), "{value}");
        }
        for value in ["Basic eDp5", "Bearer ntlm", "Digest username=\"ntlm\"", "NTLMv9"] {
            assert!(!request_binds(&with(header::AUTHORIZATION, value)), "{value}");
        }
        for value in ["NTLM", "Basic realm=\"a\", Negotiate", "Negotiate,NTLM"] {
            assert!(answer_binds(&with(header::WWW_AUTHENTICATE, value)), "{value}");
        }
        assert!(answer_binds(&with(PERSISTENT_AUTH, "true")));
        assert!(!answer_binds(&with(header::WWW_AUTHENTICATE, "Basic realm=\"x\"")));
    }
}
