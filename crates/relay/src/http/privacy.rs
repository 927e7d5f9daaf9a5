//! What lengths may reveal, and to whom: the rules, in one place for the pair and for clients
//! without an edge.
//!
//! A length shows what a message has in common with what it was coded with. So it has to be known
//! who asks ([`tells_who`]), whether it is another site that asks by somebody's browser
//! ([`is_cross_site`]), what nobody may keep ([`forbids_keeping`]), and where a stranger's text and
//! a secret can meet in one message ([`may_meet`]), whose length is padded ([`crate::padding`]).

use proto::bhttp;

use codec::secrets::says_so;

/// Fields and parameters whose name has any of these say who asks. Others may have it too: then one
/// principal is taken for several, which costs nothing but bytes.
const WHO_NAMES: [&str; 7] = ["auth", "cookie", "token", "key", "session", "secret", "credential"];

/// Fields whose name has any of these come from a proxy in front of this one, and tell of clients
/// behind it.
const PROXY_NAMES: [&str; 32] = [
    "forwarded",
    "real-ip",
    "client-ip",
    "clientip",
    "connecting-ip",
    "viewer-address",
    "remote-",
    "remote_",
    "original-host",
    "original-for",
    "external-address",
    "cdn-loop",
    "front-end-https",
    "x-scheme",
    "url-scheme",
    // RFC 9440, and what was there before it.
    "client-cert",
    "clientcert",
    "client-dn",
    "client-s-dn",
    "ssl-client",
    "ssl_client",
    "client-verify",
    // Proxies that know who asks: of Google, Amazon, Microsoft, Cloudflare and others.
    "authenticated-",
    "auth-request",
    "authentik",
    "webauth",
    "amzn-oidc",
    "ms-client-principal",
    "jwt-assertion",
    "pomerium",
    "tailscale-",
    "x-user-id",
];

/// Fields that do not say who asks, whatever their value: of HTTP itself (RFC 9110, 9111, 9842),
/// of WebDAV and OData, and of browsers. Any other field is taken to say it: nobody knows the names
/// of all proxies, and a name too few gives one client's messages to another.
const IMPERSONAL: [&str; 59] = [
    "available-dictionary",
    "b3",
    "baggage",
    "cache-control",
    "connection",
    "dataserviceversion",
    "date",
    "depth",
    "destination",
    "device-memory",
    "dictionary-id",
    "digest",
    "dnt",
    "downlink",
    "dpr",
    "ect",
    "expect",
    "if",
    "keep-alive",
    "last-event-id",
    "longwire-host",
    "longwire-profile",
    "longwire-style",
    "max-forwards",
    "maxdataserviceversion",
    "mime-version",
    "minorversion",
    "newrelic",
    "odata-maxversion",
    "odata-version",
    "origin",
    "overwrite",
    "pragma",
    "prefer",
    "priority",
    "purpose",
    "range",
    "referer",
    "request-range",
    "rtt",
    "save-data",
    "soapaction",
    "te",
    "timeout",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "upgrade-insecure-requests",
    "via",
    "viewport-width",
    "warning",
    "width",
    "x-date",
    "x-http-method-override",
    "x-method-override",
    "x-purpose",
    "x-requested-with",
];

/// The same, by how the name begins.
const IMPERSONAL_BEGINNINGS: [&str; 6] = ["accept", "content-", "if-", "sec-", "want-", "repr-"];

/// The same, of names that differ from one message to the next: what traces and counts them.
const OF_ONE_MESSAGE: [&str; 25] = [
    "request-id",
    "requestid",
    "request_id",
    "correlation",
    "trace",
    "spanid",
    "span-id",
    "x-b3-",
    "timestamp",
    "nonce",
    "datadog-parent",
    "datadog-sampling",
    "x-instana-",
    "request-start",
    "queue-start",
    "cf-ray",
    "amz-cf-id",
    "amz-date",
    "amz-content-sha256",
    "message-id",
    "messageid",
    "sequence",
    "log-id",
    "attempt",
    "retry",
];

/// Bytes of a name that are looked at; a longer one says who asks.
const MAX_NAME_BYTES: usize = 128;

/// Between the two sides alone: the host that a client asked, where the request goes to another and
/// it would else be taken for another site's ([`is_cross_site`]).
pub const HOST_FIELD: &str = "longwire-host";

/// A client, as far as the shell knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// Its address, and what an operator has named besides.
    pub name: String,
    /// Fields that say nothing of who asks, besides those that are known not to.
    pub impersonal: Vec<String>,
}

impl From<String> for Client {
    fn from(name: String) -> Self {
        Self { name, ..Self::default() }
    }
}

impl From<&str> for Client {
    fn from(name: &str) -> Self {
        name.to_owned().into()
    }
}

/// What the lengths of an exchange's messages may reveal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Guard {
    /// Another site asks: nothing of it is coded or kept, and it teaches nothing. Its lengths tell
    /// what they would without the pair.
    pub(crate) cross_site: bool,
    /// Nobody may keep any of it.
    pub(crate) marked: bool,
    /// A stranger's text and a secret may meet in it.
    pub(crate) padded: bool,
}

impl Guard {
    /// By the head of a request.
    pub(crate) fn of(request: &bhttp::Request) -> Self {
        Self {
            cross_site: is_cross_site(request),
            marked: forbids_keeping(&request.fields),
            padded: may_meet(&request.fields),
        }
    }
}

/// Whether another site asks by somebody's browser (Fetch, `Sec-Fetch-Site`; RFC 6454 §7), or one
/// that cannot be distinguished from that: `Sec-Fetch-Site` is neither `same-origin` nor `none`;
/// without it, `Origin` or `Referer` is of another host than the target, a browser asks for leave
/// (`Access-Control-Request-*`), or it shows a credential and says nothing of where from.
#[must_use]
pub fn is_cross_site(request: &bhttp::Request) -> bool {
    let fields = &request.fields;
    if has(fields, |name| name.starts_with("access-control-request-")) {
        return true;
    }
    let mut sites = values(fields, "sec-fetch-site").peekable();
    if sites.peek().is_some() {
        return !sites.all(|site| matches!(site.trim_ascii(), b"same-origin" | b"none"));
    }
    let own = hosts(request);
    let is_own = |url: &[u8]| host_of(url).is_some_and(|asks| own.contains(&asks));
    let mut reported = values(fields, "origin").chain(values(fields, "referer")).peekable();
    if reported.peek().is_some() {
        return !reported.all(is_own);
    }
    // A page of another site can leave both out of what it has somebody's browser ask.
    let says_who =
        |name: &str| tells_who(name.as_bytes()) && !matches!(name, "host" | "user-agent");
    is_browser(fields) && has(fields, says_who)
}

/// The names of the target, as its clients may know it.
fn hosts(request: &bhttp::Request) -> Vec<Vec<u8>> {
    let named = ["host", HOST_FIELD, "x-forwarded-host"];
    let reported = named.iter().flat_map(|name| values(&request.fields, name));
    let listed = reported.flat_map(|value| value.split(|byte| *byte == b','));
    listed.chain([&request.authority[..]]).map(plain_host).collect()
}

/// Host and port of a URL, or of an origin; none for what is neither, like `null`.
fn host_of(url: &[u8]) -> Option<Vec<u8>> {
    let url = url.trim_ascii();
    let at = url.windows(3).position(|three| three == b"://")?;
    let rest = url.get(at + 3..)?;
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    let authority = rest.get(..end.unwrap_or(rest.len()))?;
    // Nothing but a host and port may stand there (RFC 9110 §10.1.3).
    (!authority.contains(&b'@')).then(|| plain_host(authority))
}

/// In small letters, without the ports that need not be said.
fn plain_host(authority: &[u8]) -> Vec<u8> {
    let host = authority.trim_ascii().to_ascii_lowercase();
    let port = host.iter().rposition(|byte| *byte == b':');
    let usual = port.filter(|&at| matches!(&host[at..], b":80" | b":443" | b":"));
    host[..usual.unwrap_or(host.len())].to_vec()
}

/// Whether a browser asks, by what only those send, or nearly only those.
fn is_browser(fields: &bhttp::Fields) -> bool {
    let agents = || values(fields, "user-agent").map(<[u8]>::to_ascii_lowercase);
    let program = b"ms web services client protocol";
    // The proxies of .NET's web services call themselves a browser.
    let is_one = |agent: Vec<u8>| {
        agent.starts_with(b"mozilla/") && !agent.windows(program.len()).any(|part| part == program)
    };
    let marks = |name: &str| {
        name.starts_with("sec-") && !name.starts_with("sec-websocket-") || name == "dnt"
    };
    has(fields, |name| marks(name) || name == "upgrade-insecure-requests") || agents().any(is_one)
}

/// Whether the text of a stranger and somebody's secret may meet in a message of this request's
/// exchange: a browser asks, which does what any page says, or a proxy asks for several clients.
pub(crate) fn may_meet(fields: &bhttp::Fields) -> bool {
    is_browser(fields)
        || has(fields, |name| {
            name == "origin" || is_of_proxy(name) || name.starts_with("access-control-")
        })
}

/// Whether `Cache-Control`, or another that is for some caches alone (RFC 9213), lets nobody keep
/// any of the message, or only its reader: `no-store`, `private`.
#[must_use]
pub fn forbids_keeping(fields: &bhttp::Fields) -> bool {
    let lines = fields.iter().filter(|(name, _)| {
        let name = name.to_ascii_lowercase();
        name.ends_with(b"cache-control") || name == b"surrogate-control"
    });
    let directives = lines.flat_map(|(_, value)| value.split(|byte| matches!(byte, b',' | b';')));
    directives.into_iter().any(|directive| {
        let name = directive.split(|byte| *byte == b'=').next().unwrap_or_default();
        let name = name.trim_ascii();
        name.eq_ignore_ascii_case(b"no-store") || name.eq_ignore_ascii_case(b"private")
    })
}

/// Whether a field of this name, in small letters, comes from a proxy that tells of its clients.
#[must_use]
pub fn is_of_proxy(name: &str) -> bool {
    PROXY_NAMES.iter().any(|part| name.contains(part))
}

/// Whether a field of this name may say who asks: all but those that are known not to.
#[must_use]
pub fn tells_who(name: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    let beginnings = || IMPERSONAL_BEGINNINGS.iter().any(|part| name.starts_with(part));
    let of_one_message = || OF_ONE_MESSAGE.iter().any(|part| name.contains(part));
    proves(name.as_bytes())
        || name.len() > MAX_NAME_BYTES
        || !(IMPERSONAL.contains(&name.as_str()) || beginnings() || of_one_message())
}

/// Whether a field or a parameter of this name may prove who asks.
pub(crate) fn proves(name: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    // A name with an escape may be any.
    WHO_NAMES.iter().any(|part| name.contains(part)) || name.contains('%') || says_so(&name)
}

fn has(fields: &bhttp::Fields, is_meant: impl Fn(&str) -> bool) -> bool {
    let mut names = fields.iter().map(|(name, _)| String::from_utf8_lossy(name));
    names.any(|name| is_meant(&name.to_ascii_lowercase()))
}

fn values<'a>(fields: &'a bhttp::Fields, named: &'a str) -> impl Iterator<Item = &'a [u8]> + Clone {
    let of_name = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(named.as_bytes()));
    of_name.map(|(_, value)| &value[..])
}
