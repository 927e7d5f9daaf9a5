//! `http` URLs: whom to connect to and what to ask there.

use std::fmt;

use http::Uri;
use http::uri::Authority;

use crate::Error;

/// Longest URL taken, in bytes.
const MAX_URL_BYTES: usize = 8192;

/// A parsed `http` URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    authority: Authority,
    path: String,
}

impl Target {
    /// Parses an `http` URL with a host, such as `http://host:8080/path?query`.
    ///
    /// # Errors
    /// [`Error::Caller`] naming what is wrong and the remedy.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refuse = |why: &str| {
            let shown: String = text.chars().take(200).collect();
            Error::Caller(format!("'{shown}' {why}; give one like http://host:8080/path"))
        };
        if text.len() > MAX_URL_BYTES {
            return Err(refuse(&format!("is longer than {MAX_URL_BYTES} bytes")));
        }
        let uri: Uri = text.parse().map_err(|error| refuse(&format!("is no URL ({error})")))?;
        if uri.scheme_str() != Some("http") {
            return Err(refuse("is no http URL"));
        }
        let authority = uri.authority().cloned().ok_or_else(|| refuse("names no host"))?;
        if authority.host().is_empty() {
            return Err(refuse("names no host"));
        }
        if authority.as_str().contains('@') {
            // RFC 9110 §4.2.4: user information is not for http URLs.
            return Err(refuse("carries user information"));
        }
        let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
        if authority.port_u16().is_none() && !matches!(port, "" | ":") {
            return Err(refuse("has a port beyond 65535"));
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self { authority, path: path.to_owned() })
    }

    /// A resource below this URL: `suffix` begins with `/`.
    #[must_use]
    pub fn join(&self, suffix: &str) -> Self {
        let path = format!("{}{suffix}", self.path.trim_end_matches('/'));
        Self { authority: self.authority.clone(), path }
    }

    /// Host without brackets, as a resolver takes it.
    #[must_use]
    pub fn host(&self) -> &str {
        self.authority.host().trim_start_matches('[').trim_end_matches(']')
    }

    /// Port; 80 when the URL has none.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(80)
    }

    /// The value of `Host`.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// Path and query: the request's target in origin form (RFC 9112 §3.2.1).
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for Target {
    /// The absolute form (RFC 9112 §3.2.2).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
    }
}
