//! Requests to a broker, over a connection that is kept while it can be.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use broker::wsn_client::{CONTENT_TYPE, SOAP_ACTION};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use proxy::dial::{self, Layers};

use crate::address::authority;
use crate::client::Target;

/// Longest body of an answer, in bytes.
const MAX_BODY_BYTES: usize = 16 << 20;
/// How long a broker may take for all of an answer, which may wait for its store.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came of a request.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Bytes,
}

/// A client of HTTP.
pub(super) struct Http<'a> {
    target: &'a Target,
    /// A connection that may be used again, and where to it leads.
    kept: Option<(String, SendRequest<Full<Bytes>>)>,
    /// Somebody was there once: what fails then is tried again.
    pub(super) has_connected: bool,
}

/// Where a request goes.
struct UrlParts {
    is_secure: bool,
    host: String,
    address: String,
    path: String,
}

impl UrlParts {
    fn of(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let (is_secure, port) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (false, 80),
            "https" => (true, 443),
            _ => return None,
        };
        let (rest, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let (host, address) = authority(rest, port)?;
        let path = path.split('#').next().unwrap_or("/").to_owned();
        Some(Self { is_secure, host, address, path })
    }
}

impl<'a> Http<'a> {
    pub(super) fn new(target: &'a Target) -> Self {
        Self { target, kept: None, has_connected: false }
    }

    /// Where the broker is.
    pub(super) fn url(&self) -> String {
        let scheme = if self.target.layers.tls.is_some() { "https" } else { "http" };
        let path = if self.target.path.is_empty() { "/" } else { &self.target.path };
        format!("{scheme}://{}{path}", self.target.address)
    }

    /// Makes a request: to the broker, or to what it has named.
    ///
    /// # Errors
    /// Why there is no answer, in words.
    pub(super) async fn post(&mut self, url: &str, body: Bytes) -> Result<Answer, String> {
        let asked = tokio::time::timeout(PATIENCE, self.ask(url, body)).await;
        asked.unwrap_or_else(|_| Err(format!("no answer within {} s", PATIENCE.as_secs())))
    }

    async fn ask(&mut self, url: &str, body: Bytes) -> Result<Answer, String> {
        let place = UrlParts::of(url).ok_or_else(|| format!("{url} is no address of HTTP"))?;
        let mut request = Request::post(&place.path)
            .header(header::HOST, &place.address)
            .header(header::CONTENT_TYPE, CONTENT_TYPE)
            .header("SOAPAction", SOAP_ACTION);
        // Who the client is, is told to nobody but the broker.
        if place.address == self.target.address
            && let Some(user) = &self.target.user
        {
            let password = self.target.password.as_deref().unwrap_or_default();
            let credentials = STANDARD.encode([user.as_bytes(), b":", password].concat());
            request = request.header(header::AUTHORIZATION, format!("Basic {credentials}"));
        }
        let request = request.body(Full::from(body)).map_err(|error| error.to_string())?;
        let kept = self.kept.take().filter(|(address, _)| *address == place.address);
        let mut sender = None;
        if let Some((_, mut used)) = kept
            && used.ready().await.is_ok()
        {
            sender = Some(used);
        }
        let mut sender = match sender {
            Some(sender) => sender,
            None => self.connect(&place).await?,
        };
        self.has_connected = true;
        let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), MAX_BODY_BYTES).collect().await;
        let body = body.map_err(|error| format!("its answer: {error}"))?.to_bytes();
        self.kept = Some((place.address, sender));
        Ok(Answer { status, body })
    }

    async fn connect(&self, place: &UrlParts) -> Result<SendRequest<Full<Bytes>>, String> {
        let of_target = &self.target.layers;
        let layers = Layers {
            tls: place.is_secure.then(|| of_target.tls.clone().unwrap_or_default()),
            websocket: None,
            proxy: of_target.proxy.clone(),
        };
        let stream = dial::open(&place.address, &place.host, &place.address, &layers).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let made = handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        let (sender, connection) = made;
        // It ends with the sender, or with the process.
        tokio::spawn(connection);
        Ok(sender)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_of_urls() {
        for (url, is_secure, address, path) in [
            ("http://a.example", false, "a.example:80", "/"),
            ("HTTPS://a.example/x?y#z", true, "a.example:443", "/x?y"),
            ("http://[::1]:8080/s/7", false, "[::1]:8080", "/s/7"),
        ] {
            let place = UrlParts::of(url).unwrap();
            let is = (place.is_secure, place.address.as_str(), place.path.as_str());
            assert_eq!(is, (is_secure, address, path), "{url}");
        }
        for url in ["a.example", "ftp://a", "http://", "http://a:x/"] {
            assert!(UrlParts::of(url).is_none(), "{url}");
        }
    }
}
