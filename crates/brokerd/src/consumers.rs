//! Requests of WS-Notification to consumers.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use broker::{Post, Posted};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::SendRequest;
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use proxy::dial::{Layers, Stream, Tls};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::config::Config;
use crate::moving::{Clock, Moving, on_the_way};

/// Longest body of an answer that is read, in bytes.
const MAX_BODY_BYTES: usize = 4 << 20;
/// How long a consumer may take while nothing moves, besides the time that the request may be on
/// the way.
const POST_PATIENCE: Duration = Duration::from_secs(30);
/// Connections that are kept between requests, to all consumers and to one, and for how long. One
/// has as many at once as notifications are on their way to it.
const MAX_KEPT: usize = 256;
const MAX_KEPT_PLACE: usize = 16;
const KEPT_FOR: Duration = Duration::from_secs(30);

/// Makes a request to a consumer, and tells what came of it.
pub(crate) async fn post(post: Post, consumers: Rc<Consumers>) -> Posted {
    let (id, url) = (post.id, post.url.clone());
    match make(post, &consumers).await {
        Ok((status, body)) => Posted { id, status: Some(status), body },
        Err(error) => {
            tracing::info!(url, %error, "a consumer was not reached");
            Posted { id, status: None, body: Bytes::new() }
        }
    }
}

async fn make(post: Post, consumers: &Rc<Consumers>) -> io::Result<(u16, Bytes)> {
    let uri: hyper::Uri = post.url.parse().map_err(broken)?;
    let place = ConsumerPlace::of(&uri)?;
    let request = || {
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let host = uri.authority().map_or(place.host.as_str(), |authority| authority.as_str());
        let mut request = Request::post(target)
            .header(header::HOST, host)
            .header(header::CONTENT_TYPE, &post.content_type);
        if let Some(action) = &post.soap_action {
            request = request.header("SOAPAction", action);
        }
        request.body(Full::<Bytes>::from(post.body.clone())).map_err(broken)
    };
    let patience = POST_PATIENCE + on_the_way(post.body.len());
    if let Some(mut kept) = consumers.take(&place)
        && kept.sender.ready().await.is_ok()
    {
        match kept.ask(request()?, patience).await {
            Ok(answer) => {
                consumers.keep(place, kept);
                return Ok(answer);
            }
            // A consumer may end a connection at the moment that it is used again: what became of
            // the request is not known, and it is made again, as it would be later.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => return Err(error),
        }
    }
    let mut connection = Connection::open(consumers, &place).await?;
    let answer = connection.ask(request()?, patience).await?;
    consumers.keep(place, connection);
    Ok(answer)
}

fn broken(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}

fn late(patience: Duration) -> io::Error {
    let what = format!("nothing moves for {} s", patience.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, what)
}

/// Where a connection leads.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ConsumerPlace {
    is_secure: bool,
    host: String,
    port: u16,
}

impl ConsumerPlace {
    fn of(uri: &hyper::Uri) -> io::Result<Self> {
        let is_secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(io::Error::other("its address is neither of http nor of https")),
        };
        let host = uri.host().ok_or_else(|| io::Error::other("no host in its address"))?;
        let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        Ok(Self { is_secure, host: host.to_owned(), port })
    }
}

/// A connection to a consumer.
#[derive(Debug)]
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    clock: Arc<Clock>,
    /// What moves its bytes, which ends with it.
    driving: JoinHandle<Result<(), hyper::Error>>,
    /// When it was last kept.
    since: Instant,
}

impl Connection {
    async fn open(consumers: &Consumers, place: &ConsumerPlace) -> io::Result<Self> {
        let stream = consumers.dial(place);
        let stream = tokio::time::timeout(POST_PATIENCE, stream).await;
        let stream = Moving::new(stream.map_err(|_| late(POST_PATIENCE))??);
        let clock = stream.clock();
        let made = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = made.map_err(broken)?;
        let driving = tokio::task::spawn_local(connection);
        Ok(Self { sender, clock, driving, since: Instant::now() })
    }

    /// Makes a request. An error of the kind `ConnectionAborted` came before any answer.
    async fn ask(
        &mut self,
        request: Request<Full<Bytes>>,
        patience: Duration,
    ) -> io::Result<(u16, Bytes)> {
        let clock = self.clock.clone();
        let answered = async {
            let answer = self.sender.send_request(request).await.map_err(|error| {
                io::Error::new(io::ErrorKind::ConnectionAborted, error.to_string())
            })?;
            let status = answer.status().as_u16();
            let body = Limited::new(answer.into_body(), MAX_BODY_BYTES).collect().await;
            // The status says all that matters; over what broke off nothing more comes.
            Ok((status, body.map(|body| body.to_bytes()).unwrap_or_default()))
        };
        clock.watch(patience, answered).await.unwrap_or_else(|| Err(late(patience)))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driving.abort();
    }
}

/// Whom the broker makes requests to: whoever subscribes names an address that he may not be able
/// to reach himself.
#[derive(Debug, Default)]
pub(crate) struct Consumers {
    /// Hosts: a name or an address, `*.domain`, or `*`. None: loopback addresses alone.
    hosts: Vec<String>,
    /// Authorities that vouch for those of https, in PEM; none: the system's.
    authorities: Option<PathBuf>,
    /// Connections for the next request to a place: over a thin link a new one costs more than a
    /// notification.
    // bound: MAX_KEPT.
    kept: RefCell<Vec<(ConsumerPlace, Connection)>>,
}

impl Consumers {
    /// Those that a configuration allows.
    pub(crate) fn of(config: &Config) -> Self {
        let broker = &config.broker;
        let authorities = broker.wsn_authorities.clone();
        let kept = RefCell::default();
        Self { hosts: broker.wsn_consumers.clone(), authorities, kept }
    }

    /// A connection that is kept for a place, if there is one that nobody uses: the last one, so
    /// that those which are not needed end.
    fn take(&self, place: &ConsumerPlace) -> Option<Connection> {
        let mut kept = self.kept.borrow_mut();
        let at = kept.iter().rposition(|(of, _)| of == place)?;
        Some(kept.remove(at).1)
    }

    /// Keeps a connection for a while, if it goes on and there is room.
    fn keep(self: &Rc<Self>, place: ConsumerPlace, mut connection: Connection) {
        let mut kept = self.kept.borrow_mut();
        let same = kept.iter().filter(|(of, _)| *of == place).count();
        if connection.sender.is_closed() || kept.len() >= MAX_KEPT || same >= MAX_KEPT_PLACE {
            return;
        }
        let since = Instant::now();
        connection.since = since;
        kept.push((place, connection));
        let consumers = self.clone();
        tokio::task::spawn_local(async move {
            tokio::time::sleep(KEPT_FOR).await;
            // One that was used meanwhile has another time.
            consumers.kept.borrow_mut().retain(|(_, connection)| connection.since != since);
        });
    }

    /// A connection to a host that is allowed: by name, or as each of its addresses is loopback.
    async fn dial(&self, place: &ConsumerPlace) -> io::Result<Stream> {
        let ConsumerPlace { is_secure, host, port } = place;
        let (is_secure, port) = (*is_secure, *port);
        let bare = host.trim_matches(['[', ']']);
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host((bare, port)).await?.collect();
        let is_named = self.hosts.iter().any(|allowed| fits(allowed, bare));
        let is_own = |ip: IpAddr| ip.to_canonical().is_loopback();
        if !is_named && !addresses.iter().all(|address| is_own(address.ip())) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("{host} is no consumer that may be reached: add it to wsn_consumers"),
            ));
        }
        let authorities = self.authorities.clone();
        let tls = Tls { protocol: Some(b"http/1.1"), authorities, identity: None };
        let layers = Layers { tls: is_secure.then_some(tls), ..Layers::default() };
        let mut last = io::Error::other(format!("{host} has no address"));
        // It was these that were looked at: the name may have others next time.
        for address in addresses {
            match proxy::dial::open(&address.to_string(), bare, host, &layers).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

fn fits(allowed: &str, host: &str) -> bool {
    match allowed.strip_prefix("*.") {
        _ if allowed == "*" => true,
        Some(domain) => {
            host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.') && rest.len() > 1)
        }
        None => allowed.eq_ignore_ascii_case(host),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn consumers_are_named_by_host_domain_or_all() {
        for (allowed, host, is_fine) in [
            ("*", "a.example", true),
            ("a.example", "A.example", true),
            ("*.example", "a.example", true),
            ("*.example", "example", false),
            ("*.example", ".example", false),
            ("*.example", "badexample", false),
            ("10.0.0.1", "10.0.0.2", false),
        ] {
            assert_eq!(fits(allowed, host), is_fine, "{allowed} {host}");
        }
    }

    fn to(address: SocketAddr) -> Post {
        Post {
            id: 1,
            url: format!("http://{address}/consumer"),
            content_type: "text/xml".to_owned(),
            soap_action: None,
            body: Bytes::from_static(b"<a/>"),
        }
    }

    /// Reads a request to its end, and answers it.
    async fn answer(stream: &mut TcpStream, more: &str) {
        let mut text = Vec::new();
        while !text.ends_with(b"<a/>") {
            let mut piece = [0; 512];
            let count = stream.read(&mut piece).await.unwrap();
            assert!(count > 0, "the request is whole");
            text.extend_from_slice(&piece[..count]);
        }
        let head = format!("HTTP/1.1 202 Accepted\r\n{more}content-length: 0\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
    }

    async fn local<T>(of: impl Future<Output = T>) -> T {
        tokio::task::LocalSet::new().run_until(of).await
    }

    #[tokio::test]
    async fn one_connection_serves_request_after_request() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let consumers = Rc::new(Consumers::default());
        let asking = async {
            for _ in 0..3 {
                assert_eq!(post(to(address), consumers.clone()).await.status, Some(202));
            }
            assert_eq!(consumers.kept.borrow().len(), 1);
        };
        let serving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            for _ in 0..3 {
                answer(&mut stream, "").await;
            }
            stream
        };
        local(async { tokio::join!(asking, serving) }).await;
    }

    #[tokio::test]
    async fn a_connection_that_the_consumer_has_ended_is_made_again() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let consumers = Rc::new(Consumers::default());
        let asking = async {
            for _ in 0..3 {
                assert_eq!(post(to(address), consumers.clone()).await.status, Some(202));
            }
            assert_eq!(consumers.kept.borrow().len(), 0, "it has said that it ends");
        };
        let serving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            answer(&mut stream, "").await;
            // It reads the next request, and goes without an answer.
            let mut piece = [0; 16];
            let _ = stream.read(&mut piece).await.unwrap();
            drop(stream);
            for more in ["connection: close\r\n", "connection: close\r\n"] {
                let (mut stream, _) = listener.accept().await.unwrap();
                answer(&mut stream, more).await;
            }
        };
        local(async { tokio::join!(asking, serving) }).await;
    }
}
