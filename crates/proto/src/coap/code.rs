//! Codes of requests, responses and signals (RFC 7252 §12.1).

use core::fmt;

/// A code: a class of three bits and a detail of five (RFC 7252 §3). Shown as `c.dd`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub u8);

/// The registered codes with the names that the registry has for them.
const NAMES: [(Code, &str); 43] = [
    (Code::EMPTY, "Empty"),
    (Code::GET, "GET"),
    (Code::POST, "POST"),
    (Code::PUT, "PUT"),
    (Code::DELETE, "DELETE"),
    (Code::FETCH, "FETCH"),
    (Code::PATCH, "PATCH"),
    (Code::IPATCH, "iPATCH"),
    (Code::CREATED, "Created"),
    (Code::DELETED, "Deleted"),
    (Code::VALID, "Valid"),
    (Code::CHANGED, "Changed"),
    (Code::CONTENT, "Content"),
    (Code::CONTINUE, "Continue"),
    (Code::BAD_REQUEST, "Bad Request"),
    (Code::UNAUTHORIZED, "Unauthorized"),
    (Code::BAD_OPTION, "Bad Option"),
    (Code::FORBIDDEN, "Forbidden"),
    (Code::NOT_FOUND, "Not Found"),
    (Code::METHOD_NOT_ALLOWED, "Method Not Allowed"),
    (Code::NOT_ACCEPTABLE, "Not Acceptable"),
    (Code::REQUEST_ENTITY_INCOMPLETE, "Request Entity Incomplete"),
    (Code::CONFLICT, "Conflict"),
    (Code::PRECONDITION_FAILED, "Precondition Failed"),
    (Code::REQUEST_ENTITY_TOO_LARGE, "Request Entity Too Large"),
    (Code::UNSUPPORTED_CONTENT_FORMAT, "Unsupported Content-Format"),
    (Code::UNPROCESSABLE_ENTITY, "Unprocessable Entity"),
    (Code::TOO_MANY_REQUESTS, "Too Many Requests"),
    (Code::INTERNAL_SERVER_ERROR, "Internal Server Error"),
    (Code::NOT_IMPLEMENTED, "Not Implemented"),
    (Code::BAD_GATEWAY, "Bad Gateway"),
    (Code::SERVICE_UNAVAILABLE, "Service Unavailable"),
    (Code::GATEWAY_TIMEOUT, "Gateway Timeout"),
    (Code::PROXYING_NOT_SUPPORTED, "Proxying Not Supported"),
    (Code::HOP_LIMIT_REACHED, "Hop Limit Reached"),
    (Code::CSM, "CSM"),
    (Code::PING, "Ping"),
    (Code::PONG, "Pong"),
    (Code::RELEASE, "Release"),
    (Code::ABORT, "Abort"),
    // Names of classes stand for codes that nobody has registered.
    (Code::new(2, 0), "Success"),
    (Code::new(4, 31), "Client Error"),
    (Code::new(5, 31), "Server Error"),
];

impl Code {
    /// An empty message (RFC 7252 §4.1).
    pub const EMPTY: Self = Self::new(0, 0);
    /// RFC 7252 §5.8.1.
    pub const GET: Self = Self::new(0, 1);
    /// RFC 7252 §5.8.2.
    pub const POST: Self = Self::new(0, 2);
    /// RFC 7252 §5.8.3.
    pub const PUT: Self = Self::new(0, 3);
    /// RFC 7252 §5.8.4.
    pub const DELETE: Self = Self::new(0, 4);
    /// RFC 8132 §2.
    pub const FETCH: Self = Self::new(0, 5);
    /// RFC 8132 §3.
    pub const PATCH: Self = Self::new(0, 6);
    /// RFC 8132 §3.
    pub const IPATCH: Self = Self::new(0, 7);
    /// RFC 7252 §5.9.1.1.
    pub const CREATED: Self = Self::new(2, 1);
    /// RFC 7252 §5.9.1.2.
    pub const DELETED: Self = Self::new(2, 2);
    /// RFC 7252 §5.9.1.3.
    pub const VALID: Self = Self::new(2, 3);
    /// RFC 7252 §5.9.1.4.
    pub const CHANGED: Self = Self::new(2, 4);
    /// RFC 7252 §5.9.1.5.
    pub const CONTENT: Self = Self::new(2, 5);
    /// RFC 7959 §2.9.1.
    pub const CONTINUE: Self = Self::new(2, 31);
    /// RFC 7252 §5.9.2.1.
    pub const BAD_REQUEST: Self = Self::new(4, 0);
    /// RFC 7252 §5.9.2.2.
    pub const UNAUTHORIZED: Self = Self::new(4, 1);
    /// RFC 7252 §5.9.2.3.
    pub const BAD_OPTION: Self = Self::new(4, 2);
    /// RFC 7252 §5.9.2.4.
    pub const FORBIDDEN: Self = Self::new(4, 3);
    /// RFC 7252 §5.9.2.5.
    pub const NOT_FOUND: Self = Self::new(4, 4);
    /// RFC 7252 §5.9.2.6.
    pub const METHOD_NOT_ALLOWED: Self = Self::new(4, 5);
    /// RFC 7252 §5.9.2.7.
    pub const NOT_ACCEPTABLE: Self = Self::new(4, 6);
    /// RFC 7959 §2.9.2.
    pub const REQUEST_ENTITY_INCOMPLETE: Self = Self::new(4, 8);
    /// RFC 8132 §3.4.
    pub const CONFLICT: Self = Self::new(4, 9);
    /// RFC 7252 §5.9.2.8.
    pub const PRECONDITION_FAILED: Self = Self::new(4, 12);
    /// RFC 7252 §5.9.2.9, RFC 7959 §2.9.3.
    pub const REQUEST_ENTITY_TOO_LARGE: Self = Self::new(4, 13);
    /// RFC 7252 §5.9.2.10.
    pub const UNSUPPORTED_CONTENT_FORMAT: Self = Self::new(4, 15);
    /// RFC 8132 §3.4.
    pub const UNPROCESSABLE_ENTITY: Self = Self::new(4, 22);
    /// RFC 8516 §3.
    pub const TOO_MANY_REQUESTS: Self = Self::new(4, 29);
    /// RFC 7252 §5.9.3.1.
    pub const INTERNAL_SERVER_ERROR: Self = Self::new(5, 0);
    /// RFC 7252 §5.9.3.2.
    pub const NOT_IMPLEMENTED: Self = Self::new(5, 1);
    /// RFC 7252 §5.9.3.3.
    pub const BAD_GATEWAY: Self = Self::new(5, 2);
    /// RFC 7252 §5.9.3.4.
    pub const SERVICE_UNAVAILABLE: Self = Self::new(5, 3);
    /// RFC 7252 §5.9.3.5.
    pub const GATEWAY_TIMEOUT: Self = Self::new(5, 4);
    /// RFC 7252 §5.9.3.6.
    pub const PROXYING_NOT_SUPPORTED: Self = Self::new(5, 5);
    /// RFC 8768 §3.
    pub const HOP_LIMIT_REACHED: Self = Self::new(5, 8);
    /// Capabilities and settings (RFC 8323 §5.3).
    pub const CSM: Self = Self::new(7, 1);
    /// RFC 8323 §5.4.
    pub const PING: Self = Self::new(7, 2);
    /// RFC 8323 §5.4.
    pub const PONG: Self = Self::new(7, 3);
    /// RFC 8323 §5.5.
    pub const RELEASE: Self = Self::new(7, 4);
    /// RFC 8323 §5.6.
    pub const ABORT: Self = Self::new(7, 5);

    /// The code `class`.`detail`; bits beyond three and five are left out.
    #[must_use]
    pub const fn new(class: u8, detail: u8) -> Self {
        Self((class & 7) << 5 | (detail & 0x1f))
    }

    /// 0 to 7.
    #[must_use]
    pub const fn class(self) -> u8 {
        self.0 >> 5
    }

    /// 0 to 31.
    #[must_use]
    pub const fn detail(self) -> u8 {
        self.0 & 0x1f
    }

    /// Whether this is a method, registered or not.
    #[must_use]
    pub const fn is_request(self) -> bool {
        self.class() == 0 && self.detail() != 0
    }

    /// Whether this is a response's, registered or not (RFC 7252 §12.1.2: classes 2, 4 and 5).
    #[must_use]
    pub const fn is_response(self) -> bool {
        matches!(self.class(), 2 | 4 | 5)
    }

    /// Whether this is 2.xx.
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.class() == 2
    }

    /// Whether this is 7.xx, which only reliable transports have (RFC 8323 §5).
    #[must_use]
    pub const fn is_signal(self) -> bool {
        self.class() == 7
    }

    /// Whether a request with this method asks for no change (RFC 7252 §5.1, RFC 8132 §2).
    #[must_use]
    pub const fn is_safe(self) -> bool {
        matches!(self, Self::GET | Self::FETCH)
    }

    /// Whether a method may be repeated without harm (RFC 7252 §5.1, RFC 8132 §3).
    #[must_use]
    pub const fn is_idempotent(self) -> bool {
        matches!(self, Self::GET | Self::FETCH | Self::PUT | Self::DELETE | Self::IPATCH)
    }

    /// The registered name; of a response that is not registered the name of its class
    /// (RFC 7252 §5.9: it is treated as the generic one); else `None`.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let find = |code: Self| NAMES.iter().find(|(other, _)| *other == code).map(|row| row.1);
        find(self).or_else(|| match self.class() {
            2 => find(Self::new(2, 0)),
            4 | 5 => find(Self::new(self.class(), 31)),
            _ => None,
        })
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.class(), self.detail())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
