//! A client of one CoAP server, or of a proxy: requests with bodies of any size, observations.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use proto::coap::uri::{Host, MAX_URI_BYTES, Scheme, Uri, Via};
use proto::coap::{Block, Code, Content, option};

use super::caller::{self, Caller, ROOM_BYTES};
use super::dial;
use super::dtls::keys;
use super::group;
use super::oscore::{ContextFile, Security};
use super::socket::{Peer, Socket};
use super::text;
use crate::Error;

/// How long a name may take to be resolved.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;
/// Sizes of blocks, in bytes (RFC 7959 §2.2).
const MIN_BLOCK_BYTES: usize = 16;
const MAX_BLOCK_BYTES: usize = 1024;
/// Longest entity tag, in bytes (RFC 7252 §5.10.6).
const MAX_ETAG_BYTES: usize = 8;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The method; the empty code is a ping.
    pub method: Code,
    /// Of what. Over a proxy the scheme may be any.
    pub url: String,
    /// `coap://HOST[:PORT]` of a proxy, or of another scheme that is spoken here.
    pub proxy: Option<String>,
    /// The only format that is taken.
    pub accept: Option<u16>,
    /// The format of the payload.
    pub content_format: Option<u16>,
    /// The body, of any size up to what blocks can number.
    pub payload: Vec<u8>,
    /// Tags of what is here already.
    pub etags: Vec<Vec<u8>>,
    /// Only if what is there has one of these tags; an empty one: if there is anything.
    pub if_match: Vec<Vec<u8>>,
    /// Only if there is nothing.
    pub if_none_match: bool,
    /// Notify of changes too (RFC 7641).
    pub observe: bool,
    /// Repeat the request until the server has it.
    pub is_confirmable: bool,
    /// Bytes of a block, both ways.
    pub block_bytes: Option<usize>,
    /// Bodies go in blocks that are not confirmed one by one, where the server knows these
    /// (RFC 9177).
    pub q_block: bool,
    /// The security context that all is protected with (OSCORE).
    pub oscore: Option<PathBuf>,
    /// Identity and key for DTLS (`coaps`).
    pub psk: Option<(String, String)>,
}

impl Default for Ask {
    fn default() -> Self {
        Self {
            method: Code::GET,
            url: String::new(),
            proxy: None,
            accept: None,
            content_format: None,
            payload: Vec::new(),
            etags: Vec::new(),
            if_match: Vec::new(),
            if_none_match: false,
            observe: false,
            is_confirmable: true,
            block_bytes: None,
            q_block: false,
            oscore: None,
            psk: None,
        }
    }
}

/// Whom a request is sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Server {
    scheme: Scheme,
    host: String,
    port: u16,
}

fn wrong(what: impl Into<String>) -> Error {
    Error::Caller(what.into())
}

fn parse(url: &str) -> Result<Uri<'_>, Error> {
    let shown = text::printable(url);
    let form = "a URL like 'coap://192.0.2.1/temperature?unit=c'";
    let uri = Uri::parse(url)
        .map_err(|error| wrong(format!("'{shown}' is no URL of CoAP ({error}): {form}")))?;
    Ok(uri)
}

impl Server {
    fn of(uri: &Uri<'_>) -> Result<Self, Error> {
        let host = match uri.host {
            Host::Name(name) => name.to_owned(),
            Host::Ip(ip) if is_group(ip) => {
                return Err(wrong(format!("'{ip}' is a group: name one server")));
            }
            Host::Ip(ip) => ip.to_string(),
        };
        Ok(Self { scheme: uri.scheme, host, port: uri.port })
    }

    fn is_stream(&self) -> bool {
        !matches!(self.scheme, Scheme::Coap | Scheme::Coaps)
    }

    /// The identity and the key for it, which `coaps` needs and the others have no use for.
    fn key_of(&self, psk: Option<&(String, String)>) -> Result<Option<keys::Pair>, Error> {
        let scheme = self.scheme;
        match (scheme == Scheme::Coaps, psk) {
            (true, Some((identity, key))) => keys::parse(identity, key).map(Some).map_err(wrong),
            (true, None) => {
                Err(wrong("coaps needs an identity and its key: give both (-u and -k)"))
            }
            (false, Some(_)) => {
                let what = format!(
                    "an identity and a key are for coaps, and this is {}: say 'coaps'",
                    scheme.name()
                );
                Err(wrong(what))
            }
            (false, None) => Ok(None),
        }
    }

    /// Who asks it, over the first of its addresses that there is a way to.
    async fn open(
        &self,
        mut security: Option<Security>,
        psk: Option<&keys::Pair>,
        offers_q_block: bool,
    ) -> Result<(Caller, SocketAddr), Error> {
        let Self { scheme, host, port } = self;
        let failed = || Error::system(format!("cannot reach '{host}' port {port}"));
        let resolving = tokio::net::lookup_host((host.as_str(), *port));
        let addresses = tokio::time::timeout(RESOLVE_TIMEOUT, resolving)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(failed())?;
        let mut last = io::Error::other("its name has no address");
        for address in addresses.filter(|address| !is_group(address.ip())).take(MAX_ADDRESSES) {
            let opened = match scheme {
                Scheme::Coap | Scheme::Coaps => Socket::client(address)
                    .await
                    .map(|socket| Caller::start(socket, security.take(), psk, offers_q_block)),
                _ => {
                    let stream = dial::open(*scheme, address, (host, *port)).await;
                    stream.map(|stream| Caller::over(stream, scheme.is_websocket()))
                }
            };
            match opened {
                Ok(caller) => return Ok((caller?, address)),
                Err(error) => last = error,
            }
        }
        Err(failed()(last))
    }
}

fn is_group(ip: IpAddr) -> bool {
    ip.to_canonical().is_multicast()
}

impl Ask {
    /// The request as a message, and who gets it.
    fn resolve(&self) -> Result<(Server, Content), Error> {
        let mut content = Content::new(self.method).with_payload(self.payload.clone());
        let server = match &self.proxy {
            None => {
                let uri = parse(&self.url)?;
                let put = |number, value: &[u8]| {
                    content.push(number, value);
                    Ok(())
                };
                let done = uri.options(Via::Origin, put);
                done.map_err(|error| wrong(format!("'{}': {error}", self.url)))?;
                Server::of(&uri)?
            }
            Some(proxy) => {
                self.check_proxied()?;
                content.push(option::PROXY_URI, self.url.as_bytes());
                Server::of(&parse(proxy)?)?
            }
        };
        self.put_options(&mut content)?;
        if server.is_stream() && !self.is_confirmable {
            let what = "a request without acknowledgement (--non) is one over UDP: over a stream \
                        all arrive (RFC 8323)";
            return Err(wrong(what));
        }
        if server.is_stream() && self.oscore.is_some() {
            let scheme = server.scheme.name();
            return Err(wrong(format!(
                "OSCORE goes over coap or coaps here, and this is {scheme}"
            )));
        }
        let not_with = [
            (server.is_stream(), server.scheme.name()),
            (self.oscore.is_some(), "OSCORE"),
            (self.observe, "observation, whose notifications have blocks of RFC 7959"),
        ];
        if let Some((_, what)) = not_with.iter().find(|(is_so, _)| *is_so && self.q_block) {
            return Err(wrong(format!(
                "blocks that are not confirmed (--q-block, RFC 9177) go over coap and coaps \
                 alone, and not with {what}"
            )));
        }
        Ok((server, content))
    }

    /// The request as a message, and the group that the URL names, if it does.
    fn resolve_group(&self) -> Result<Option<(SocketAddr, Content)>, Error> {
        if self.proxy.is_some() {
            return Ok(None);
        }
        let uri = parse(&self.url)?;
        let Host::Ip(ip) = uri.host else { return Ok(None) };
        if !is_group(ip) {
            return Ok(None);
        }
        // RFC 7252 §8.1: nothing that a reset or a session would have to follow.
        let is_plain = uri.scheme == Scheme::Coap && self.oscore.is_none() && self.psk.is_none();
        // RFC 9177 §4.8.
        let is_plain = is_plain && !self.q_block;
        let is_read = matches!(self.method, Code::GET | Code::FETCH) && !self.observe;
        if !is_plain || !is_read {
            let what = "a group is only asked to be read, over coap, without OSCORE, DTLS and \
                        --q-block";
            return Err(wrong(format!("'{ip}' is a group: {what}")));
        }
        let mut content = Content::new(self.method).with_payload(self.payload.clone());
        let put = |number, value: &[u8]| {
            content.push(number, value);
            Ok(())
        };
        let done = uri.options(Via::Origin, put);
        done.map_err(|error| wrong(format!("'{}': {error}", self.url)))?;
        self.put_options(&mut content)?;
        Ok(Some((SocketAddr::new(ip, uri.port), content)))
    }

    /// The proxy knows what the URL means; here it must only be one.
    fn check_proxied(&self) -> Result<(), Error> {
        let (url, most) = (&self.url, MAX_URI_BYTES);
        let is_url = url.contains("://") && url.bytes().all(|byte| byte.is_ascii_graphic());
        match (is_url, url.len() <= most) {
            (true, true) => Ok(()),
            (true, false) => Err(wrong(format!("the URL is over the limit of {most} bytes"))),
            (false, _) => Err(wrong(format!("'{}' is no URL", text::printable(url)))),
        }
    }

    fn put_options(&self, content: &mut Content) -> Result<(), Error> {
        for (number, tags) in [(option::ETAG, &self.etags), (option::IF_MATCH, &self.if_match)] {
            let least = usize::from(number == option::ETAG);
            for tag in tags {
                if !(least..=MAX_ETAG_BYTES).contains(&tag.len()) {
                    let most = MAX_ETAG_BYTES;
                    return Err(wrong(format!("a tag has {least} to {most} bytes, in hex")));
                }
                content.push(number, tag);
            }
        }
        if self.if_none_match {
            content.push(option::IF_NONE_MATCH, b"");
        }
        let formats =
            [(option::ACCEPT, self.accept), (option::CONTENT_FORMAT, self.content_format)];
        for (number, format) in formats {
            if let Some(format) = format {
                content.push_uint(number, format.into());
            }
        }
        if self.observe {
            content.push_uint(option::OBSERVE, 0);
        }
        let Some(bytes) = self.block_bytes else { return Ok(()) };
        let (least, most) = (MIN_BLOCK_BYTES, MAX_BLOCK_BYTES);
        if !bytes.is_power_of_two() || !(least..=most).contains(&bytes) {
            let what = format!("blocks of {bytes} bytes: a power of two from {least} to {most}");
            return Err(wrong(what));
        }
        let block = Block { num: 0, more: false, szx: Block::szx_for(bytes) };
        let value = block.encode().map_err(|error| wrong(error.to_string()))?;
        content.push(option::BLOCK1, value.as_slice());
        if self.method != Code::EMPTY {
            content.push(option::BLOCK2, value.as_slice());
        }
        Ok(())
    }
}

/// Answers to a request that a group was asked (RFC 7252 §8).
pub struct Gathering(group::Gathering);

impl Gathering {
    /// Asks the group that the URL names, over the interface with the address `on`, or over the one
    /// that the kernel chooses; `None` where it names no group. Errors: [`Error::Caller`] where a
    /// group cannot be asked so, another where nothing can be sent to it.
    pub async fn begin(ask: &Ask, on: Option<IpAddr>) -> Result<Option<Self>, Error> {
        let Some((group, content)) = ask.resolve_group()? else { return Ok(None) };
        group::Gathering::begin(&content, group, on).await.map(|begun| Some(Self(begun)))
    }

    /// The next answer, and whose it is. Errors: what the host says of the socket.
    pub async fn next(&mut self) -> io::Result<(SocketAddr, Response)> {
        let (from, content) = self.0.next().await?;
        Ok((from, Response::new(&content, false)))
    }
}

/// The URL of a server's links (RFC 6690 §4): where no path is said, the one that all have.
#[must_use]
pub fn links_url(url: &str) -> String {
    let Some(at) = url.find("://").map(|at| at + 3) else { return url.to_owned() };
    let (before, behind) = url.split_at(at);
    let end = behind.find(['/', '?']).unwrap_or(behind.len());
    let (authority, path) = behind.split_at(end);
    let path = path.strip_prefix('/').unwrap_or(path);
    match path.is_empty() || path.starts_with('?') {
        true => format!("{before}{authority}/.well-known/core{path}"),
        false => url.to_owned(),
    }
}

/// A response.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its code.
    pub code: Code,
    /// The names of its options, and their values as text.
    pub options: Vec<(String, String)>,
    /// Its whole body, or the first part of it.
    pub payload: Vec<u8>,
    /// None follows, nor a part of this one.
    pub is_last: bool,
}

impl Response {
    fn new(content: &Content, is_last: bool) -> Self {
        let options = text::options(content);
        Self { code: content.code, options, payload: content.payload.to_vec(), is_last }
    }
}

/// What comes of a request.
#[derive(Clone, Debug)]
pub enum Event {
    /// A response; of [`Client::open`], with the first part of its body.
    Response(Response),
    /// The next part of its body, and whether it is the last.
    Part(Vec<u8>, bool),
    /// There is room for so many bytes more of the request's body.
    Room(usize),
    /// A ping was answered.
    Alive,
    /// Nothing, or nothing more, and why.
    Failed(String),
}

impl From<caller::Event> for Event {
    fn from(event: caller::Event) -> Self {
        match event {
            caller::Event::Response(content, is_last) => {
                Self::Response(Response::new(&content, is_last))
            }
            caller::Event::Part(bytes, is_last) => Self::Part(bytes.to_vec(), is_last),
            caller::Event::Room(bytes) => Self::Room(bytes),
            caller::Event::Alive => Self::Alive,
            caller::Event::Failed(failure) => Self::Failed(failure.why()),
        }
    }
}

/// A client of one server.
pub struct Client {
    caller: Caller,
    peer: Peer,
    content: Content,
    is_confirmable: bool,
}

impl Client {
    /// One for what is asked. Errors: [`Error::Caller`] where it cannot be asked so, another where
    /// there is no way to the server.
    pub async fn connect(ask: &Ask) -> Result<Self, Error> {
        let (server, content) = ask.resolve()?;
        let psk = server.key_of(ask.psk.as_ref())?;
        let security = match &ask.oscore {
            Some(path) => Some(Security::client(ContextFile::read(path)?)?),
            None => None,
        };
        let (caller, address) = server.open(security, psk.as_ref(), ask.q_block).await?;
        let peer = Peer::server(address);
        Ok(Self { caller, peer, content, is_confirmable: ask.is_confirmable })
    }

    /// The server's address.
    #[must_use]
    pub fn server(&self) -> SocketAddr {
        self.peer.address
    }

    /// Ends in good order, behind the last [`Call`]: a server that is observed no more is told so.
    pub async fn close(self) {
        self.caller.close().await;
    }

    /// Asks.
    pub async fn ask(&self) -> Call {
        let content = self.content.clone();
        Call(self.caller.ask(self.peer, content, self.is_confirmable).await)
    }

    /// Asks, where bodies are never here as a whole: the answer is given out as it comes, behind
    /// its first 64 KiB, and the request's body, of which the payload is the beginning, goes on
    /// with [`Call::give`] if `has_more`. `size_bytes` is its whole length, where that is known,
    /// and goes with the first block (RFC 7959 §4). No observation, no ping, and blocks of RFC
    /// 7959 alone. At most 64 KiB of an answer that nobody has taken are here, or over a stream a
    /// message more.
    pub async fn open(&self, has_more: bool, size_bytes: Option<u32>) -> Call {
        let (mut content, is_confirmable) = (self.content.clone(), self.is_confirmable);
        if let Some(bytes) = size_bytes {
            content.push_uint(option::SIZE1, bytes);
        }
        let room_bytes = ROOM_BYTES;
        let asked = caller::Asked { content, is_confirmable, has_more, room_bytes };
        Call(self.caller.open(self.peer, asked).await)
    }
}

/// A request that is open; dropped, it is of no use any more.
pub struct Call(caller::Call);

impl Call {
    /// What comes next; `None` behind the last. Who asks has taken what came before.
    pub async fn next(&mut self) -> Option<Event> {
        self.0.next().await.map(Event::from)
    }

    /// What resolves when nothing has come of the server for so long, from now on.
    pub fn silence(&self, patience: Duration) -> impl Future<Output = ()> + use<> {
        self.0.silence(patience)
    }

    /// More of the request's body, for which there was room ([`Event::Room`]); the last part may
    /// be empty.
    pub async fn give(&self, bytes: Vec<u8>, is_last: bool) {
        self.0.give(bytes.into(), is_last).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(url: &str) -> Ask {
        Ask { url: url.to_owned(), ..Ask::default() }
    }

    #[test]
    fn a_url_becomes_options_and_a_server() {
        let (server, content) = ask("coap://a.example:61616/x//y?z=%20").resolve().unwrap();
        assert_eq!((&*server.host, server.port), ("a.example", 61616));
        let options: Vec<_> = content.options().collect();
        assert_eq!(
            options,
            [
                (option::URI_HOST, &b"a.example"[..]),
                (option::URI_PATH, b"x"),
                (option::URI_PATH, b""),
                (option::URI_PATH, b"y"),
                (option::URI_QUERY, b"z= "),
            ]
        );
        let (server, content) = ask("coap://[::1]/").resolve().unwrap();
        assert_eq!((&*server.host, server.port, content.options().count()), ("::1", 5683, 0));
        let (server, _) = ask("coaps+ws://a/").resolve().unwrap();
        assert_eq!((server.scheme, server.port), (Scheme::CoapsWs, 443));
        let error = Ask { is_confirmable: false, ..ask("coap+tcp://a") }.resolve().unwrap_err();
        assert!(error.to_string().contains("--non"), "{error}");
        for (url, why) in [
            ("http://a/", "is no URL of CoAP"),
            ("a/b", "is no URL of CoAP"),
            ("coap://224.0.1.187/", "is a group"),
        ] {
            let error = ask(url).resolve().unwrap_err();
            let line = error.to_string();
            assert!(matches!(error, Error::Caller(_)) && line.contains(why), "{line}");
            assert_eq!(line.lines().count(), 1, "{line}");
        }
    }

    #[test]
    fn a_group_is_only_read() {
        let of = |ask: Ask| ask.resolve_group();
        let (group, content) = of(ask("coap://224.0.1.187/.well-known/core")).unwrap().unwrap();
        assert_eq!(group, "224.0.1.187:5683".parse().unwrap());
        assert_eq!(content.all(option::URI_PATH).count(), 2);
        assert!(of(ask("coap://192.0.2.1/")).unwrap().is_none());
        assert!(of(ask("coap://a.example/")).unwrap().is_none());
        for wrong in [
            Ask { method: Code::PUT, ..ask("coap://224.0.1.187/x") },
            Ask { observe: true, ..ask("coap://[ff02::fd]/x") },
            ask("coap+tcp://224.0.1.187/x"),
        ] {
            assert!(matches!(of(wrong), Err(Error::Caller(_))));
        }
    }

    #[test]
    fn a_proxy_gets_the_url_as_it_is() {
        let proxy = Some("coap://[2001:db8::1]:5700".to_owned());
        let (server, content) =
            Ask { proxy: proxy.clone(), ..ask("http://a/b?c") }.resolve().unwrap();
        assert_eq!((&*server.host, server.port), ("2001:db8::1", 5700));
        let wanted = (option::PROXY_URI, &b"http://a/b?c"[..]);
        assert_eq!(content.options().collect::<Vec<_>>(), [wanted]);
        for url in ["a", "http://a b", &format!("http://{}", "a".repeat(MAX_URI_BYTES))] {
            assert!(Ask { proxy: proxy.clone(), ..ask(url) }.resolve().is_err(), "{url}");
        }
    }

    #[test]
    fn options_have_their_bounds() {
        let good = Ask {
            etags: vec![vec![1]],
            if_match: vec![vec![]],
            if_none_match: true,
            accept: Some(50),
            observe: true,
            block_bytes: Some(64),
            ..ask("coap://a")
        };
        let (_, content) = good.resolve().unwrap();
        assert_eq!(content.first(option::BLOCK2), Some(&[2][..]));
        assert_eq!(
            (content.uint(option::OBSERVE), content.uint(option::ACCEPT)),
            (Some(0), Some(50))
        );
        for bad in [
            Ask { etags: vec![vec![]], ..ask("coap://a") },
            Ask { if_match: vec![vec![0; 9]], ..ask("coap://a") },
            Ask { block_bytes: Some(8), ..ask("coap://a") },
            Ask { block_bytes: Some(100), ..ask("coap://a") },
            Ask { block_bytes: Some(2048), ..ask("coap://a") },
            Ask { q_block: true, ..ask("coap+tcp://a") },
            Ask { q_block: true, observe: true, ..ask("coap://a") },
            Ask { q_block: true, oscore: Some("file".into()), ..ask("coap://a") },
        ] {
            assert!(matches!(bad.resolve(), Err(Error::Caller(_))), "{bad:?}");
        }
    }

    #[test]
    fn links_are_where_all_servers_have_them() {
        for (url, links) in [
            ("coap://a", "coap://a/.well-known/core"),
            ("coap://a/", "coap://a/.well-known/core"),
            ("coap://a/?rt=x", "coap://a/.well-known/core?rt=x"),
            ("coap://a?rt=x", "coap://a/.well-known/core?rt=x"),
            ("coap://a/rd", "coap://a/rd"),
        ] {
            assert_eq!(links_url(url), links);
        }
    }
}
