//! Requests and answers of HTTP, for protocols that go over it. The shell does the rest of HTTP.

use std::sync::Arc;

use bytes::Bytes;

/// A request that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The shell's number of it, which the answer has.
    pub id: u64,
    /// It is a GET; else a POST.
    pub is_get: bool,
    /// It came over TLS: so are the addresses that its answer names.
    pub is_secure: bool,
    /// Path and query.
    pub target: String,
    /// The media type of the body.
    pub content_type: Option<String>,
    /// The body.
    pub body: Bytes,
    /// The user that its sender has shown to be.
    pub user: Option<Arc<str>>,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Which request.
    pub id: u64,
    /// The status.
    pub status: u16,
    /// The media type of the body, if there is one.
    pub content_type: Option<String>,
    /// The body.
    pub body: Bytes,
}

/// A request that is to be made by POST; what comes of it is a [`Posted`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// Its number.
    pub id: u64,
    /// Where to.
    pub url: String,
    /// The media type of the body.
    pub content_type: String,
    /// The value of the field SOAPAction, with its quotes (SOAP 1.1 §6.1.1).
    pub soap_action: Option<String>,
    /// The body.
    pub body: Bytes,
}

/// What came of a [`Post`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// Which.
    pub id: u64,
    /// The status of the answer; `None`: there was none.
    pub status: Option<u16>,
    /// The body of the answer, as far as it is of a bounded length.
    pub body: Bytes,
}
