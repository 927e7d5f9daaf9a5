//! Who may ask what of the interface: it changes the machine, often as root, and every page that a
//! browser shows can send requests to it.
//!
//! Three questions in this order. Is the request meant for us? A name that leads to loopback from
//! elsewhere (DNS rebinding) is in Host, and nowhere else. Does a person who may use this interface
//! ask? A token says so, which other users of the machine do not have. Did a page of ours ask for a
//! change? Fetch metadata and Origin say where it comes from, and a form of another site cannot
//! send JSON.

use std::net::IpAddr;

/// What the interface knows of itself.
#[derive(Clone)]
pub struct Policy {
    /// The port that it listens on.
    pub port: u16,
    /// What a person has who may use it.
    pub token: String,
}

/// The parts of a request's head that matter here; a field that was sent twice is in none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head<'a> {
    /// The method.
    pub method: &'a str,
    /// The field Host, or the authority of the target.
    pub host: Option<&'a str>,
    /// The field Origin.
    pub origin: Option<&'a str>,
    /// The field Sec-Fetch-Site.
    pub fetch_site: Option<&'a str>,
    /// The field Content-Type.
    pub content_type: Option<&'a str>,
    /// The field Cookie.
    pub cookie: Option<&'a str>,
    /// The field Authorization.
    pub authorization: Option<&'a str>,
    /// The parameter `token` of the address.
    pub token: Option<&'a str>,
}

/// What to do with a request that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// Answer it.
    Answer,
    /// The token is in the address: give it as a cookie, and send the browser to the same address
    /// without it.
    Exchange,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// One line for whoever asked.
    pub detail: &'static str,
}

const MISDIRECTED: Refusal = Refusal {
    status: 421,
    detail: "this host is not served here: ask by 127.0.0.1, localhost or [::1] with the port \
             that longwire ui printed",
};
const UNKNOWN: Refusal = Refusal {
    status: 401,
    detail: "the token is missing or of an earlier start: open the address that longwire ui \
             printed, or send it as Authorization: Bearer",
};
const CROSS_SITE: Refusal = Refusal {
    status: 403,
    detail: "a page of another site asked for this: only pages of this interface may change \
             something",
};
const NO_JSON: Refusal = Refusal {
    status: 415,
    detail: "a change is asked for in JSON: Content-Type: application/json",
};

impl Policy {
    /// What becomes of a request.
    ///
    /// # Errors
    /// The refusal to be sent.
    pub fn admit(&self, head: &Head<'_>) -> Result<Admitted, Refusal> {
        if !head.host.is_some_and(|host| self.is_ours(host)) {
            return Err(MISDIRECTED);
        }
        let is_reading = matches!(head.method, "GET" | "HEAD");
        if let (true, Some(token)) = (is_reading, head.token) {
            return if self.knows(token) { Ok(Admitted::Exchange) } else { Err(UNKNOWN) };
        }
        if !self.presented(head).any(|token| self.knows(token)) {
            return Err(UNKNOWN);
        }
        if is_reading {
            return Ok(Admitted::Answer);
        }
        let is_own_page = head.fetch_site.is_none_or(|site| site == "same-origin")
            && head.origin.is_none_or(|origin| {
                origin.strip_prefix("http://").is_some_and(|host| self.is_ours(host))
            });
        if !is_own_page {
            return Err(CROSS_SITE);
        }
        let kind = head.content_type.map(|kind| kind.split(';').next().unwrap_or("").trim());
        if !kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
            return Err(NO_JSON);
        }
        Ok(Admitted::Answer)
    }

    /// The name of the cookie: browsers keep those of all ports of a host together.
    #[must_use]
    pub fn cookie_name(&self) -> String {
        format!("longwire-ui-{}", self.port)
    }

    /// The field Set-Cookie that gives the token to the browser (RFC 6265 §4.1).
    #[must_use]
    pub fn set_cookie(&self) -> String {
        format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie_name(), self.token)
    }

    fn is_ours(&self, authority: &str) -> bool {
        let name = match authority.rsplit_once(':') {
            Some((name, port)) if port.parse() == Ok(self.port) => name,
            _ if self.port == 80 => authority,
            _ => return false,
        };
        let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
        name.eq_ignore_ascii_case("localhost")
            || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    fn presented<'a>(&self, head: &Head<'a>) -> impl Iterator<Item = &'a str> {
        let name = self.cookie_name();
        let cookies = head.cookie.into_iter().flat_map(|all| all.split(';'));
        let ours = cookies.filter_map(move |one| {
            one.trim_start().split_once('=').filter(|(key, _)| *key == name).map(|(_, value)| value)
        });
        ours.chain(head.authorization.and_then(|value| value.strip_prefix("Bearer ")))
    }

    /// Compares all bytes, whichever is the first that differs.
    fn knows(&self, token: &str) -> bool {
        let (ours, theirs) = (self.token.as_bytes(), token.trim().as_bytes());
        let differing = ours.iter().zip(theirs).fold(0, |all, (one, other)| all | (one ^ other));
        !ours.is_empty() && ours.len() == theirs.len() && differing == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn policy() -> Policy {
        Policy { port: 7780, token: TOKEN.to_string() }
    }

    fn head() -> Head<'static> {
        Head {
            method: "POST",
            host: Some("127.0.0.1:7780"),
            content_type: Some("application/json"),
            cookie: Some("other=1; longwire-ui-7780=0123456789abcdef"),
            ..Head::default()
        }
    }

    fn status(head: Head<'_>) -> Result<Admitted, u16> {
        policy().admit(&head).map_err(|refusal| refusal.status)
    }

    #[test]
    fn only_names_of_this_machine_with_our_port_are_meant_for_us() {
        for host in
            ["127.0.0.1:7780", "localhost:7780", "LOCALHOST:7780", "[::1]:7780", "127.0.0.9:7780"]
        {
            assert_eq!(status(Head { host: Some(host), ..head() }), Ok(Admitted::Answer), "{host}");
        }
        for host in [
            "attacker.example:7780",
            "127.0.0.1",
            "127.0.0.1:7781",
            "localhost.attacker.example:7780",
            "127.0.0.1.attacker.example:7780",
            "0.0.0.0:7780",
            "user@127.0.0.1:7780",
            "127.0.0.1:7780, attacker.example",
            "",
        ] {
            assert_eq!(status(Head { host: Some(host), ..head() }), Err(421), "{host}");
        }
        assert_eq!(status(Head { host: None, ..head() }), Err(421));
    }

    #[test]
    fn who_has_no_token_may_not_even_look() {
        for method in ["GET", "POST", "DELETE"] {
            let bare = Head { method, cookie: None, ..head() };
            assert_eq!(status(bare), Err(401));
            let stale = "longwire-ui-7780=0123456789abcdee";
            assert_eq!(status(Head { cookie: Some(stale), ..bare }), Err(401));
            let of_other_port = "longwire-ui-7781=0123456789abcdef";
            assert_eq!(status(Head { cookie: Some(of_other_port), ..bare }), Err(401));
            let bearer = Some("Bearer 0123456789abcdef");
            assert_eq!(status(Head { authorization: bearer, ..bare }), Ok(Admitted::Answer));
            let basic = Some("Basic 0123456789abcdef");
            assert_eq!(status(Head { authorization: basic, ..bare }), Err(401));
        }
        let nobody = Policy { port: 7780, token: String::new() };
        let empty = Head { cookie: Some("longwire-ui-7780="), ..head() };
        assert_eq!(nobody.admit(&empty).map_err(|refusal| refusal.status), Err(401));
    }

    #[test]
    fn a_token_in_the_address_of_a_page_becomes_a_cookie() {
        let page = Head { method: "GET", cookie: None, token: Some(TOKEN), ..head() };
        assert_eq!(status(page), Ok(Admitted::Exchange));
        assert_eq!(status(Head { token: Some("0123"), ..page }), Err(401));
        // Addresses end up in logs: for a change there is no such way.
        assert_eq!(status(Head { method: "POST", ..page }), Err(401));
        let cookie = policy().set_cookie();
        assert!(cookie.starts_with("longwire-ui-7780=0123456789abcdef; HttpOnly; SameSite=Strict"));
    }

    #[test]
    fn only_our_own_pages_and_programs_change_something() {
        for site in ["cross-site", "same-site", "none"] {
            assert_eq!(status(Head { fetch_site: Some(site), ..head() }), Err(403), "{site}");
        }
        for origin in ["null", "http://attacker.example", "https://127.0.0.1:7780", "http://[::1]"]
        {
            assert_eq!(status(Head { origin: Some(origin), ..head() }), Err(403), "{origin}");
        }
        let own = Head {
            fetch_site: Some("same-origin"),
            origin: Some("http://127.0.0.1:7780"),
            ..head()
        };
        assert_eq!(status(own), Ok(Admitted::Answer));
        for kind in [None, Some("text/plain"), Some("application/x-www-form-urlencoded")] {
            assert_eq!(status(Head { content_type: kind, ..own }), Err(415), "{kind:?}");
        }
        let kind = Some("Application/JSON; charset=utf-8");
        assert_eq!(status(Head { content_type: kind, ..own }), Ok(Admitted::Answer));
    }
}
