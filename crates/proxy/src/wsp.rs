//! A client of connectionless WSP: one request at a gateway, with copies where datagrams get lost.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Uri;
use proto::wsp::client::{Client, Failure, Input, Output};
use proto::wsp::headers::{self, Encoder, Rules};
use proto::wsp::packet::{Method, Pdu};
use proto::wsp::{MAX_PDU_BYTES, status};
use tokio::net::UdpSocket;

use crate::{Error, random_instance, socket};

/// Most bytes of a datagram over UDP.
const MAX_DATAGRAM_BYTES: usize = 65_535;
/// What a body without a content type is (RFC 9110 §8.3).
const BINARY: &str = "application/octet-stream";
/// The number of the only request.
const KEY: u64 = 1;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Ask {
    /// As HTTP names it: GET, POST and the like.
    pub method: String,
    /// `http://` or `https://`.
    pub url: String,
    /// Names and values, the content type with them.
    pub fields: Vec<(String, String)>,
    /// Only of a method that has one.
    pub body: Vec<u8>,
    /// Copies may leave though the method is not safe: the gateway carries none out twice.
    pub repeats: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Of HTTP.
    pub status: u16,
    /// Names and values, the content type first.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
    /// How often the request left.
    pub copies: u32,
    /// Bytes of its datagram.
    pub request_bytes: usize,
    /// Bytes of the reply's datagram.
    pub answer_bytes: usize,
    /// From the first copy to the reply.
    pub elapsed: Duration,
}

/// Asks a gateway, `HOST:PORT`, and waits for its reply; `None`: none came within `timeout`, or
/// all copies had left.
///
/// # Errors
/// A request that cannot be made is the caller's, a reply that cannot be read the peer's.
pub async fn ask(gateway: &str, ask: &Ask, timeout: Duration) -> Result<Option<Answer>, Error> {
    let (method, pdu) = encode(ask)?;
    let form = "HOST:PORT, like 'localhost:9200'";
    let wrong = |why: &dyn std::fmt::Display| {
        Error::Caller(format!("gateway '{gateway}' cannot be found ({why}): give {form}"))
    };
    let looking = tokio::time::timeout(timeout, tokio::net::lookup_host(gateway));
    let Ok(found) = looking.await else { return Ok(None) };
    let peer = found.map_err(|error| wrong(&error))?.next();
    let peer = peer.ok_or_else(|| wrong(&"its name has no address"))?;
    let line = Line::new(peer, random_instance()?).await?;
    let again = method.is_safe() || ask.repeats;
    let asking = line.ask(Input::Request { key: KEY, peer, pdu, again });
    tokio::time::timeout(timeout, asking).await.unwrap_or(Ok(None))
}

/// The PDU of a request, without its transaction id.
fn encode(ask: &Ask) -> Result<(Method, Bytes), Error> {
    let Ask { method, url, fields, body, .. } = ask;
    let known = Method::of_name(method.as_bytes());
    let known = known.ok_or_else(|| {
        let names = Method::ALL.map(Method::name).join(", ");
        Error::Caller(format!("method '{method}': one of {names}"))
    })?;
    let uri: Option<Uri> = url.parse().ok();
    let is_whole =
        |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
    if !uri.is_some_and(|uri| is_whole(&uri)) {
        let form = "a whole URL, like 'http://tracks.example/soap'";
        return Err(Error::Caller(format!("'{url}' is no URL to ask for: give {form}")));
    }
    let is_media = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("content-type");
    let (rules, mut headers) = (Rules::DEFAULT, Vec::new());
    if known.has_body() {
        let media = fields.iter().find(is_media).map_or(BINARY, |(_, value)| value);
        headers::encode_content_type(rules, media.as_bytes(), &mut headers)
            .map_err(|error| Error::Caller(format!("content type '{media}': {error}")))?;
    }
    let mut encoder = Encoder::new(rules, &mut headers);
    for (name, value) in fields.iter().filter(|field| !is_media(field)) {
        encoder
            .put(name, value.as_bytes())
            .map_err(|error| Error::Caller(format!("field '{name}': {error}")))?;
    }
    let pdu = Pdu::Request { method: known, uri: url.as_bytes(), headers: &headers, body };
    let mut room = vec![0; MAX_PDU_BYTES];
    let len = pdu.encode(&mut room).map_err(|error| {
        let why = "WSP without a session has no more than a datagram";
        Error::Caller(format!("the request cannot be sent: {error}: {why}"))
    })?;
    room.truncate(len);
    Ok((known, room.into()))
}

/// A socket towards a gateway, and the machine behind it.
struct Line {
    socket: UdpSocket,
    peer: SocketAddr,
    machine: Client,
    epoch: Instant,
    wake_at: Option<Duration>,
    /// When the first copy left.
    first: Option<Instant>,
    copies: u32,
    request_bytes: usize,
}

impl Line {
    async fn new(peer: SocketAddr, seed: u64) -> Result<Self, Error> {
        let any = match peer {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let doing = || Error::system(format!("reach the gateway at {peer}"));
        let socket = UdpSocket::bind(any).await.map_err(doing())?;
        socket.connect(peer).await.map_err(doing())?;
        socket::let_fragment(&socket).map_err(doing())?;
        let (machine, epoch) = (Client::new(seed), Instant::now());
        let (wake_at, first, copies, request_bytes) = (None, None, 0, 0);
        Ok(Self { socket, peer, machine, epoch, wake_at, first, copies, request_bytes })
    }

    async fn ask(mut self, request: Input) -> Result<Option<Answer>, Error> {
        let mut buffer = vec![0; MAX_DATAGRAM_BYTES];
        let mut input = request;
        loop {
            if let Some(done) = self.handle(input).await? {
                return done.map_or(Ok(None), |pdu| self.read(&pdu).map(Some));
            }
            let due = self.wake_at.take().map(|at| (self.epoch + at).into());
            let wake = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            input = tokio::select! {
                received = self.socket.recv(&mut buffer) => {
                    let len = received.map_err(self.unreachable())?;
                    let datagram = Bytes::copy_from_slice(buffer.get(..len).unwrap_or_default());
                    Input::Datagram { peer: self.peer, datagram }
                }
                () = wake => Input::Wake,
            };
        }
    }

    /// Hands an input in and does what comes out; what came of the request, once that is known.
    async fn handle(&mut self, input: Input) -> Result<Option<Option<Bytes>>, Error> {
        self.machine.handle_input(self.epoch.elapsed(), input);
        let mut done = None;
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Transmit { datagram, .. } => {
                    self.first.get_or_insert_with(Instant::now);
                    self.copies += 1;
                    self.request_bytes = datagram.len();
                    self.socket.send(&datagram).await.map_err(self.unreachable())?;
                }
                Output::Reply { pdu, .. } => done = Some(Some(pdu)),
                Output::Failed { failure: Failure::Invalid(error), .. } => {
                    return Err(Error::Caller(format!("the request cannot be sent: {error}")));
                }
                Output::Failed { .. } => done = Some(None),
                Output::Push { .. } => {}
                Output::WakeAt(at) => self.wake_at = Some(at),
            }
        }
        Ok(done)
    }

    fn unreachable(&self) -> impl FnOnce(std::io::Error) -> Error + use<> {
        Error::system(format!("reach the gateway at {}", self.peer))
    }

    fn read(&self, pdu: &Bytes) -> Result<Answer, Error> {
        let wrong = |why: &dyn std::fmt::Display| {
            Error::Peer(format!("the reply of {} cannot be read: {why}", self.peer))
        };
        let decoded = Pdu::decode(pdu).map_err(|error| wrong(&error))?;
        let Pdu::Reply { status, headers, body } = decoded else {
            return Err(wrong(&"it is none"));
        };
        let status = status::to_http(status).ok_or_else(|| wrong(&"its status is none of HTTP"))?;
        let rules = Rules { body_bytes: Some(body.len() as u64), ..Rules::DEFAULT };
        let decoded = headers::decode_with_content_type(rules, headers);
        let decoded = decoded.map_err(|error| wrong(&error))?;
        let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
        let fields = decoded.fields.into_iter().map(|field| (field.name, text(field.value)));
        Ok(Answer {
            status,
            fields: fields.collect(),
            body: pdu.slice(pdu.len() - body.len()..),
            copies: self.copies,
            request_bytes: self.request_bytes,
            // The transaction id stands before it.
            answer_bytes: pdu.len() + 1,
            elapsed: self.first.map_or(Duration::ZERO, |first| first.elapsed()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask_for(method: &str, url: &str) -> Ask {
        let fields = vec![
            ("Accept".to_owned(), "*/*".to_owned()),
            ("content-type".to_owned(), "text/xml".to_owned()),
        ];
        let (method, url) = (method.to_owned(), url.to_owned());
        Ask { method, url, fields, body: Vec::new(), repeats: false }
    }

    #[test]
    fn a_request_is_a_pdu() {
        let (method, pdu) = encode(&ask_for("GET", "http://a/")).unwrap();
        assert_eq!((method, &pdu[..]), (Method::Get, &b"\x40\x09http://a/\x80\x80"[..]));
        let ask = Ask { body: b"<a/>".to_vec(), ..ask_for("POST", "http://a/") };
        let (method, pdu) = encode(&ask).unwrap();
        assert_eq!(
            (method, &pdu[..]),
            (Method::Post, &b"\x60\x09\x03http://a/\xa8\x80\x80<a/>"[..])
        );
    }

    #[test]
    fn what_cannot_be_asked_is_said_in_one_line() {
        let over = Ask { body: vec![0; 70_000], ..ask_for("POST", "http://a/") };
        let in_get = Ask { body: vec![0], ..ask_for("GET", "http://a/") };
        for ask in [
            ask_for("CONNECT", "http://a/"),
            ask_for("GET", "a"),
            ask_for("GET", "ftp://a/"),
            over,
            in_get,
        ] {
            let error = encode(&ask).unwrap_err();
            assert!(matches!(error, Error::Caller(_)) && !error.to_string().contains('\n'));
        }
    }
}
