//! Requests to a broker, over a connection that is kept while it can be.

use std::sync::Arc;
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
use crate::error::Error;
use crate::moving::{Clock, Moving, on_the_way};

/// Longest body of an answer, in bytes.
const MAX_BODY_BYTES: usize = 16 << 20;
/// How long a broker may take while nothing moves, besides the time that the request may be on the
/// way: its answer may wait for its store.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came of a request.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Bytes,
}

/// A connection, and when bytes last moved over it.
struct Connection {
    /// Where to it leads, and whether over TLS.
    to: (bool, String),
    sender: SendRequest<Full<Bytes>>,
    clock: Arc<Clock>,
}

/// A client of HTTP.
pub(super) struct Http<'a> {
    target: &'a Target,
    patience: Duration,
    /// A connection that may be used again.
    kept: Option<Connection>,
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
        Self { target, patience: PATIENCE, kept: None, has_connected: false }
    }

    /// Refuses what is reached without TLS where the broker is reached over it: the broker may name
    /// such a place, and what goes there could be read on the way.
    ///
    /// # Errors
    /// What it has named.
    pub(super) fn check(&self, url: &str) -> Result<(), Error> {
        let is_plain = UrlParts::of(url).is_some_and(|place| !place.is_secure);
        if !is_plain || self.target.layers.tls.is_none() {
            return Ok(());
        }
        let text = format!(
            "{}: the broker names {url}, which is without TLS: ask whoever runs it for an address \
             of https, or reach it by wsn://",
            self.target.address
        );
        Err(Error::System(text))
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
        self.check(url).map_err(|error| error.to_string())?;
        self.ask(url, body).await
    }

    async fn ask(&mut self, url: &str, body: Bytes) -> Result<Answer, String> {
        let place = UrlParts::of(url).ok_or_else(|| format!("{url} is no address of HTTP"))?;
        let mut request = Request::post(&place.path)
            .header(header::HOST, &place.address)
            .header(header::CONTENT_TYPE, CONTENT_TYPE)
            .header("SOAPAction", SOAP_ACTION);
        // Who the client is, is told to nobody but the broker.
        let is_broker = place.is_secure == self.target.layers.tls.is_some()
            && place.address == self.target.address;
        if is_broker && let Some(user) = &self.target.user {
            let password = self.target.password.as_deref().unwrap_or_default();
            let credentials = STANDARD.encode([user.as_bytes(), b":", password].concat());
            request = request.header(header::AUTHORIZATION, format!("Basic {credentials}"));
        }
        let patience = self.patience + on_the_way(body.len());
        let request = request.body(Full::from(body)).map_err(|error| error.to_string())?;
        let to = (place.is_secure, place.address.clone());
        let mut kept = self.kept.take().filter(|kept| kept.to == to);
        if let Some(used) = &mut kept
            && used.sender.ready().await.is_err()
        {
            kept = None;
        }
        let mut connection = match kept {
            Some(kept) => kept,
            None => self.connect(&place).await?,
        };
        self.has_connected = true;
        let clock = connection.clock.clone();
        let answered = clock.watch(patience, async {
            let answer = connection.sender.send_request(request).await;
            let answer = answer.map_err(|error| error.to_string())?;
            let status = answer.status().as_u16();
            let body = Limited::new(answer.into_body(), MAX_BODY_BYTES).collect().await;
            let body = body.map_err(|error| format!("its answer: {error}"))?.to_bytes();
            Ok(Answer { status, body })
        });
        let answered = answered.await;
        let answer = answered.unwrap_or_else(|| {
            Err(format!("nothing moves for {} s, and no answer is there", patience.as_secs()))
        })?;
        self.kept = Some(connection);
        Ok(answer)
    }

    async fn connect(&self, place: &UrlParts) -> Result<Connection, String> {
        let of_target = &self.target.layers;
        let layers = Layers {
            tls: place.is_secure.then(|| of_target.tls.clone().unwrap_or_default()),
            websocket: None,
            proxy: of_target.proxy.clone(),
        };
        let stream = dial::open(&place.address, &place.host, &place.address, &layers);
        let late = |_| format!("no connection within {} s", self.patience.as_secs());
        let stream = tokio::time::timeout(self.patience, stream).await.map_err(late)?;
        let stream = Moving::new(stream.map_err(|error| error.to_string())?);
        let clock = stream.clock();
        let made = handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        let (sender, connection) = made;
        // It ends with the sender, or with the process.
        tokio::spawn(connection);
        Ok(Connection { to: (place.is_secure, place.address.clone()), sender, clock })
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;
    use crate::client::Identity;

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
    fn target(scheme: &str, at: SocketAddr) -> Target {
        Target::parse(&format!("{scheme}://ann@{at}"), Identity::default()).unwrap()
    }

    #[tokio::test]
    async fn what_is_reached_by_tls_is_reached_by_nothing_else() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let target = target("wsns", at);
        let mut http = Http::new(&target);
        for url in [format!("http://{at}/x"), format!("HTTP://{at}/x")] {
            let error = http.check(&url).unwrap_err().to_string();
            assert!(error.contains("without TLS"), "{error}");
            let error = http.post(&url, Bytes::new()).await.unwrap_err();
            assert!(error.contains("without TLS"), "{error}");
        }
        http.check(&format!("https://{at}/x")).unwrap();
        // Nothing has come.
        tokio::select! {
            biased;
            accepted = listener.accept() => panic!("{accepted:?}"),
            () = std::future::ready(()) => {}
        }
    }

    #[tokio::test]
    async fn an_answer_takes_as_long_as_it_moves() {
        const PAUSE: Duration = Duration::from_millis(400);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = target("wsn", listener.local_addr().unwrap());
        let mut http = Http::new(&target);
        http.patience = Duration::from_secs(2);
        let url = http.url();
        let serving = async {
            for count in [10, 1] {
                let (mut stream, _) = listener.accept().await.unwrap();
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {count}0\r\n\r\n");
                stream.write_all(head.as_bytes()).await.unwrap();
                for _ in 0..count {
                    // sleep: how long an answer may take is what is tested.
                    tokio::time::sleep(PAUSE).await;
                    stream.write_all(b"0123456789").await.unwrap();
                }
                if count == 10 {
                    continue;
                }
                // The next answer never comes whole.
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx").await.unwrap();
                return stream;
            }
            panic!("it ends above");
        };
        let asking = async {
            let answer = http.post(&url, Bytes::from_static(b"x")).await.unwrap();
            assert_eq!(answer.body.len(), 100);
            http.kept = None;
            http.post(&url, Bytes::from_static(b"x")).await.unwrap();
            http.kept = None;
            http.post(&url, Bytes::from_static(b"x")).await.unwrap_err()
        };
        let (_stream, error) = tokio::join!(serving, asking);
        assert!(error.contains("nothing moves for 2 s"), "{error}");
    }
}
