//! A gateway's listener for clients of CoAP: a forward proxy to what is allowed, and with an
//! upstream a reverse proxy (RFC 7252 §5.7, §10.1).
//!
//! Origins are asked by the same client as for edges, so that what is allowed is the same, names
//! resolved included. Who asks is known by his address alone: unless the listener is one of this
//! machine only, an address has to be borne out before more goes to it than came (RFC 9175 §2.4),
//! and before anything is changed for it. Until then it has one of a few places of its own, so that
//! forged addresses take none of those that others need.

mod capped;
mod flows;
mod groups;
mod observe;
mod streams;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderValue};
use http::{Method, Request, Response, Uri};
use http_body::Body;
use http_body_util::{BodyExt as _, Full};
use proto::coap::machine::{Counts, Input, Output};
use proto::coap::transfer::MAX_WHOLE_BYTES;
use proto::coap::{Code, Content, MAX_BODY_BYTES, option};
use relay::{Cause, CauseKind};
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;

use self::observe::{Events, Observers};
use super::door::Door;
use crate::access::{Access, Way};
use crate::clock::{Clocks, Side, Timed};
use crate::coap::dtls::Layer;
use crate::coap::dtls::keys::Keys;
use crate::coap::endpoint::{Application, Command, Endpoint, channel};
use crate::coap::http::{self as mapping, Asked, Refusal, Wanted, refuse};
use crate::coap::oscore::Security;
use crate::coap::shares::{SharePlace, Shares};
use crate::coap::socket::{Peer, Socket};
use crate::coap::tags::Tags;
use crate::config::{CoapListener, CoapsListener};
use crate::flow::{AnyBody, BoxError, Progress, Watched};
use crate::live::Services;
use crate::metrics::Metrics;
use crate::origin::{self, Client, ClientAt, How};
use crate::parting::Parting;
use crate::pattern::Target;
use crate::rarely::Rarely;
use crate::upstream::{Upstream, host_and_port};
use crate::{Error, Handed, descriptors, fields, run};

use capped::Capped;
use flows::{Begun as Flowing, Flows, Way as Back};
use groups::Group;
use streams::{MAX_CONNECTIONS, Streams};

/// Requests that are answered at once, of all clients: each has a task and perhaps a connection.
const MAX_OPEN: usize = 128;
/// Those of clients who have not shown that they have their address, besides. Who finds no place
/// there shows it, and has one among the others.
const MAX_STRANGERS: usize = 16;
/// Bytes of the bodies of these: as many as the pair's bodies may take by default, four times.
const MAX_HELD_BYTES: usize = 32 << 20;
/// Bytes of a request that is not here as a whole: its beginning, and what its origin has not
/// taken.
const MAX_OPENED_BYTES: u64 = 2 * MAX_WHOLE_BYTES as u64;
/// What is longer is answered before its end is here, and goes on as the client asks for it.
const MAX_FIRST_BYTES: usize = 64 << 10;
/// And what has begun and has not ended by then.
const MAX_FIRST_WAIT: Duration = Duration::from_secs(2);
/// How long an answer may take: the machine gives a request up 10 s later.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(230);
/// After so many seconds what is full may have room again.
const RETRY_AFTER_S: u32 = 2;
/// How metrics call these bounds.
const FULL: &str = "coap_requests";
const FULL_OF_BYTES: &str = "coap_bytes";

/// A listener that is bound.
pub(crate) struct Listener {
    socket: UdpSocket,
    /// Over TCP at the same port (RFC 8323); and whether there is anything for those who come: what
    /// goes over a connection is not protected.
    streams: TcpListener,
    takes_streams: bool,
    /// For requests that name no origin.
    pub(super) upstream: Option<Upstream>,
    local: SocketAddr,
    security: Option<Security>,
    /// Over DTLS: the keys of its clients.
    keys: Option<Keys>,
    /// The groups that it belongs to.
    groups: Vec<Group>,
}

impl Listener {
    /// A port in use is the caller's error, as is a security context in use.
    pub(crate) async fn bind(handed: &mut Handed, config: &CoapListener) -> Result<Self, Error> {
        descriptors::prepare("connections of clients of CoAP", MAX_CONNECTIONS);
        let security = match &config.oscore[..] {
            [] => None,
            files => Some(Security::server(files.to_vec(), !config.is_open)?),
        };
        let takes_streams = security.is_none() || config.is_open;
        let at = ("coap", config.listen);
        let listener = Self::at(handed, at, takes_streams, security, None).await?;
        let groups = config
            .groups
            .iter()
            .map(|group| Group::join(group, &listener.socket, is_challenging(listener.local)));
        let groups = groups.collect::<Result<_, _>>()?;
        Ok(Self { upstream: config.upstream.clone(), groups, ..listener })
    }

    /// One over DTLS.
    pub(crate) async fn bind_secure(
        handed: &mut Handed,
        config: &CoapsListener,
    ) -> Result<Self, Error> {
        let keys = Some(config.keys.clone());
        let listener = Self::at(handed, ("coaps", config.listen), false, None, keys).await?;
        Ok(Self { upstream: config.upstream.clone(), ..listener })
    }

    async fn at(
        handed: &mut Handed,
        (name, listen): (&str, SocketAddr),
        takes_streams: bool,
        security: Option<Security>,
        keys: Option<Keys>,
    ) -> Result<Self, Error> {
        let streams = run::bind(handed, name, listen).await?;
        let local = streams.local_addr().map_err(Error::system("ask for the bound address"))?;
        let socket = run::take_datagrams(handed, name, local).await?;
        let (upstream, groups) = (None, Vec::new());
        Ok(Self { socket, streams, takes_streams, upstream, local, security, keys, groups })
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// What accepts connections, and what serves clients over UDP until `parting` is said and what
    /// is open has its answer. A connection serves itself until then.
    pub(crate) fn serve(
        self,
        server: Server,
        mut parting: Parting,
        alive: mpsc::Sender<()>,
    ) -> Result<(impl Future<Output = ()> + Send, impl Future<Output = ()> + Send), Error> {
        let Self { socket, streams, takes_streams, local, security, keys, groups, .. } = self;
        let socket = Socket::server(socket).map_err(Error::system("set up the socket of CoAP"))?;
        let is_secure = keys.is_some();
        // The cookie of DTLS has borne out the address.
        let endpoint = Endpoint::new(socket, !is_secure && is_challenging(local))?;
        let endpoint = endpoint.taking_bodies();
        let mut endpoint = endpoint.answering_q_block()?;
        if let Some(security) = security {
            endpoint = endpoint.secured(security);
        }
        if let Some(keys) = keys {
            endpoint = endpoint.over(|began| Layer::server(began, keys))?;
        }
        let (commands, receiver) = channel();
        let (shares, strangers) = (Shares::new(MAX_OPEN), Shares::new(MAX_STRANGERS));
        let (metrics, idle_timeout) = (Arc::clone(&server.metrics), server.clocks.idle);
        let server = Arc::new(server);
        let ends = (parting.clone(), alive.clone());
        let places = Flows::places();
        let all = (Arc::clone(&shares), Arc::clone(&places));
        let over_tcp = Streams::new(Arc::clone(&server), all, ends, idle_timeout);
        let serving = Serving {
            server,
            shares: Arc::clone(&shares),
            strangers: Arc::clone(&strangers),
            observers: Observers::default(),
            flows: Flows::new(Arc::clone(&places)),
            commands: commands.clone(),
            metrics,
            is_secure,
            counts: Counts::default(),
            full: Rarely::default(),
            refused: Rarely::default(),
        };
        let serve = async move {
            let _alive = alive;
            // They end with this.
            let mut members = JoinSet::new();
            groups.into_iter().for_each(|group| drop(members.spawn(group.serve())));
            let end = async {
                parting.said().await;
                all_answered(&[shares, strangers], &places).await;
                let _ = commands.send(Command::End).await;
            };
            let _ = tokio::join!(endpoint.run(receiver, serving), end);
        };
        let accept = async move {
            match takes_streams {
                true => over_tcp.accept(streams).await,
                false => Door::refuse(streams).await,
            }
        };
        Ok((accept, serve))
    }
}

/// Resolves when nothing is open, nor goes on at length, as what was open may.
async fn all_answered(open: &[Arc<Shares>], places: &Arc<Shares>) {
    for shares in open {
        shares.idle().await;
    }
    places.idle().await;
}

/// Whether who asks has to show that it has its address.
fn is_challenging(local: SocketAddr) -> bool {
    !local.ip().to_canonical().is_loopback()
}

/// What is done with requests as they come.
struct Serving {
    server: Arc<Server>,
    shares: Arc<Shares>,
    strangers: Arc<Shares>,
    observers: Observers,
    flows: Flows,
    commands: mpsc::Sender<Command>,
    metrics: Arc<Metrics>,
    is_secure: bool,
    counts: Counts,
    full: Rarely,
    refused: Rarely,
}

impl Application for Serving {
    fn take(&mut self, output: Output<Peer>, is_known: bool) -> Option<Input<Peer>> {
        if let Output::Ended { exchange } = output {
            self.observers.ended(exchange);
            return None;
        }
        if let Output::Flow(flow) = output {
            self.flows.take(flow);
            return None;
        }
        let (exchange, peer, content, has_more) = match output {
            Output::Request { exchange, peer, content } => (exchange, peer, content, false),
            Output::Opened { exchange, peer, content } => (exchange, peer, content, true),
            // Nothing is asked here.
            _ => return None,
        };
        let from = peer.address.ip().to_canonical();
        let shares = if is_known { &self.shares } else { &self.strangers };
        let Some(place) = shares.take(from) else {
            if !is_known {
                return Some(Input::Challenge { exchange });
            }
            self.metrics.count_limit(FULL);
            if let Some(times) = self.full.note(Instant::now()) {
                let what = "refused requests of CoAP: too many are open";
                tracing::warn!(times, most = MAX_OPEN, newest = %from, "{what}");
            }
            let content = Content::new(Code::SERVICE_UNAVAILABLE);
            let content = content.with_uint(option::MAX_AGE, RETRY_AFTER_S);
            return Some(Input::Respond { exchange, content });
        };
        // What no origin is asked for takes neither a task nor a turn of this one.
        let body = || {
            let back = Back::Datagrams(self.commands.clone());
            has_more.then(|| self.flows.body(exchange, back, content.payload.clone()))
        };
        let begun = match self.server.begin(from, &content, body) {
            Ok(content) => return Some(Input::Respond { exchange, content }),
            Err(begun) => begun,
        };
        let (server, commands) = (Arc::clone(&self.server), self.commands.clone());
        let flows = self.flows.clone();
        let observes = observe::wants(&content).then(|| self.observers.shares(from)).flatten();
        let is_observing = observes.is_some();
        let places = (place, observes);
        let request = (exchange, is_known, begun);
        let task = tokio::spawn(respond(server, (commands, flows), places, request));
        if is_observing {
            self.observers.began(exchange, task.abort_handle());
        }
        None
    }

    fn counted(&mut self, counts: Counts) {
        if counts == self.counts {
            return;
        }
        let refused = |counts: &Counts| counts.malformed + counts.unsupported + counts.refused;
        let is_worse = refused(&counts) > refused(&self.counts);
        self.counts = counts;
        self.metrics.set_coap(self.is_secure, counts);
        if is_worse && self.refused.note(Instant::now()).is_some() {
            let Counts { malformed, unsupported, refused, .. } = counts;
            let what = "messages of CoAP so far that were no requests to be answered";
            tracing::warn!(malformed, unsupported, refused, "{what}");
        }
    }
}

/// Answers a request, with its number.
async fn respond(
    server: Arc<Server>,
    (commands, flows): (mpsc::Sender<Command>, Flows),
    (place, observes): (SharePlace, Option<SharePlace>),
    (exchange, is_known, begun): (u64, bool, Box<Begun>),
) {
    let from = begun.from;
    match server.carry_out(begun, observes.is_some()).await {
        Answer::Whole(content) => {
            let _ = commands.send(Command::Input(Input::Respond { exchange, content })).await;
        }
        Answer::Flowing(flowing) => {
            let whose = (exchange, from, is_known);
            let full = || server.full();
            flow(whose, (commands, flows), (place, observes), *flowing, full).await;
        }
        Answer::Events(events) => {
            // It lasts: it has a place of its own.
            drop(place);
            events.follow(exchange, commands).await;
            drop(observes);
        }
    }
}

/// Answers a request at length, for who is known to be at this address; who is not gets nothing
/// that lasts, and is asked to show that he is.
async fn flow(
    (exchange, from, is_known): (u64, IpAddr, bool),
    (commands, flows): (mpsc::Sender<Command>, Flows),
    until_then: (SharePlace, Option<SharePlace>),
    flowing: Flowing,
    full: impl FnOnce() -> Content,
) {
    let place = if is_known { flows.place(from) } else { None };
    let input = match place {
        Some(_lasts) => {
            drop(until_then);
            return flows.follow(exchange, Back::Datagrams(commands), flowing).await;
        }
        None if is_known => Input::Respond { exchange, content: full() },
        None => Input::Challenge { exchange },
    };
    let _ = commands.send(Command::Input(input)).await;
}

/// A request for which an origin is to be asked.
struct Begun {
    from: IpAddr,
    code: Code,
    asked: Box<Asked>,
    client: ClientAt,
    request: Request<AnyBody>,
    access: Access,
}

/// What comes of a request.
enum Answer {
    Whole(Content),
    /// It is long, and goes on as its client asks for it.
    Flowing(Box<Flowing>),
    /// What it asks for goes on coming.
    Events(Box<Events>),
}

/// What answers requests.
pub(crate) struct Server {
    client: Client,
    upstream: Option<Upstream>,
    services: Services,
    pseudonym: String,
    clocks: Clocks,
    tags: Mutex<Tags>,
    held: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

impl Server {
    /// One that asks origins by `client`.
    pub(crate) fn new(
        client: Client,
        upstream: Option<Upstream>,
        services: Services,
        (pseudonym, clocks): (String, Clocks),
        metrics: Arc<Metrics>,
    ) -> Self {
        let held = Arc::new(Semaphore::new(MAX_HELD_BYTES));
        let tags = Mutex::default();
        Self { client, upstream, services, pseudonym, clocks, tags, held, metrics }
    }

    fn tags(&self) -> MutexGuard<'_, Tags> {
        self.tags.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to a request, where no origin is asked for it; otherwise `body` is that of the
    /// request, where it is not whole.
    fn begin(
        &self,
        from: IpAddr,
        content: &Content,
        body: impl FnOnce() -> Option<AnyBody>,
    ) -> Result<Content, Box<Begun>> {
        let wanted = mapping::ask(content, self.upstream.as_ref(), &self.tags());
        let name = from.to_string();
        let mut request = outline(content, wanted.as_ref().ok());
        if let Ok(Wanted::Origin(_)) = &wanted
            && let Some(body) = body()
        {
            *request.body_mut() = body;
        }
        let access = Access::begin(&self.metrics, Way::Coap, &name, &mut request);
        match wanted {
            Err(refusal) => Ok(self.refuse(&access, &refusal)),
            Ok(Wanted::Links(links)) => {
                let body = Full::new(links.payload.clone());
                drop(access.answered(Response::new(body)));
                Ok(links)
            }
            Ok(Wanted::Origin(asked)) => {
                let (code, client) = (content.code, ClientAt::of(&name));
                Err(Box::new(Begun { from, code, asked, client, request, access }))
            }
        }
    }

    fn refuse(&self, access: &Access, refusal: &Refusal) -> Content {
        let status = mapping::status_of(refusal.code).as_u16();
        access.refused(status, error_of(refusal.code), &refusal.reason);
        self.metrics.count_coap_refusal(&refusal.code.to_string());
        refusal.content()
    }

    /// The answer to a request of who does not observe.
    async fn answer(
        &self,
        from: IpAddr,
        content: Content,
        body: impl FnOnce() -> Option<AnyBody>,
    ) -> Answer {
        match self.begin(from, &content, body) {
            Ok(content) => Answer::Whole(content),
            Err(begun) => self.carry_out(begun, false).await,
        }
    }

    /// The answer where there is no place for a long one.
    fn full(&self) -> Content {
        self.metrics.count_limit(FULL);
        let content = Content::new(Code::SERVICE_UNAVAILABLE);
        content.with_uint(option::MAX_AGE, RETRY_AFTER_S)
    }

    /// `observes`: there is a place for what goes on coming.
    async fn carry_out(&self, begun: Box<Begun>, observes: bool) -> Answer {
        let Begun { code, asked, client, request, access, .. } = *begun;
        let progress = Progress::new();
        let is_whole = request.body().size_hint().exact().is_some();
        let sent = (request, &progress);
        let forwarding = self.forward((code, observes), &asked, client, sent, &access);
        let late = async {
            match is_whole {
                // sleep: the client's machine gives the request up by time.
                true => tokio::time::sleep(MAX_ANSWER_TIME).await,
                // That of each block begins anew.
                false => progress.stalled(MAX_ANSWER_TIME).await,
            }
        };
        let result = tokio::select! {
            result = forwarding => result,
            () = late => Err(refuse(Code::GATEWAY_TIMEOUT, "the answer took too long")),
        };
        result.unwrap_or_else(|refusal| Answer::Whole(self.refuse(&access, &refusal)))
    }

    /// Asks the origin.
    async fn forward(
        &self,
        (code, observes): (Code, bool),
        asked: &Asked,
        client: ClientAt,
        (request, progress): (Request<AnyBody>, &Progress),
        access: &Access,
    ) -> Result<Answer, Refusal> {
        let target = target(asked)?;
        let service = self.services.find(&target).and_then(|index| self.services.get(index));
        let size = request.body().size_hint();
        let bytes = size.exact().unwrap_or(MAX_OPENED_BYTES);
        let too_large = || {
            let reason = "the body is over the limit of its service (max_body)";
            refuse(Code::REQUEST_ENTITY_TOO_LARGE, reason)
        };
        let most = service.as_ref().and_then(|service| service.max_body).unwrap_or(u64::MAX);
        if let Some(service) = &service {
            access.service(&service.pattern);
        }
        if size.lower() > most {
            return Err(too_large());
        }
        let _held = self.hold(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        let repeatable = size.exact() == Some(0) && asked.method.is_idempotent();
        let passed = Arc::<AtomicBool>::default();
        let request = request.map(|body| Capped::new(body, most, &passed).boxed_unsync());
        let mut message = self.message(asked, request, progress)?;
        if observes {
            observe::ask(message.headers_mut());
        }
        let how = How::default();
        let progress = progress.clone();
        let request = origin::Request { target, client, message, repeatable, progress, how };
        let is_proxied = asked.target.is_proxied;
        let response = self.client.send(request).await.map_err(|cause| {
            match passed.load(Ordering::Relaxed) {
                true => too_large(),
                false => of_cause(cause, is_proxied),
            }
        })?;
        let (mut head, body) = access.clone().answered(response).into_parts();
        fields::remove_hop_by_hop(&mut head.headers);
        let media = head.headers.get(header::CONTENT_TYPE);
        if observes && head.status.is_success() && observe::is_stream(media) {
            let body = Timed::new(body, Side::Origin, self.clocks.of_answer(&head));
            return Ok(Answer::Events(Box::new(Events::of(body.boxed_unsync()))));
        }
        if media.is_some_and(|media| relay::is_endless(media.as_bytes())) {
            return Err(refuse(Code::BAD_GATEWAY, "the origin's answer has no end"));
        }
        let body = Timed::new(body, Side::Origin, self.clocks.of_answer(&head));
        // Why an origin refuses is short, or of no use.
        let Read { bytes, rest, held } = self.read(body, head.status.is_success()).await?;
        let mut content = mapping::answer(code, asked, &head, bytes, &mut self.tags())?;
        let rest = rest.filter(|_| !content.payload.is_empty());
        // Blocks are put together by their tag (RFC 7959 §2.4), and what is not here may have to be
        // fetched once more: other bytes with the same weak tag would be taken for these.
        let is_weak = |tag: &HeaderValue| tag.as_bytes().starts_with(b"W/");
        if rest.is_some() && head.headers.get(header::ETAG).is_some_and(is_weak) {
            content.remove(option::ETAG);
        }
        Ok(match rest {
            Some(rest) => Answer::Flowing(Box::new(Flowing { content, rest, held })),
            None => Answer::Whole(content),
        })
    }

    /// The request as it leaves.
    fn message(
        &self,
        asked: &Asked,
        request: Request<AnyBody>,
        progress: &Progress,
    ) -> Result<Request<AnyBody>, Refusal> {
        let bad = |what: &str| refuse(Code::BAD_REQUEST, format!("{what} that HTTP cannot say"));
        let request = Access::count_request(request);
        let mut message = request.map(|body| Watched::new(body, progress.clone()).boxed_unsync());
        *message.uri_mut() = asked.target.path.parse().map_err(|_| bad("a path"))?;
        let headers = message.headers_mut();
        headers.clone_from(&asked.headers);
        let host = HeaderValue::try_from(&asked.target.authority).map_err(|_| bad("a host"))?;
        headers.insert(header::HOST, host);
        // RFC 9110 §7.6.3: by which protocol it came.
        let via = HeaderValue::try_from(format!("coap/1 {}", self.pseudonym));
        headers.insert(header::VIA, via.map_err(|_| bad("a name"))?);
        Ok(message)
    }

    /// Room for so many bytes, for as long as it is kept.
    fn hold(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let count = u32::try_from(bytes).unwrap_or(u32::MAX);
        Arc::clone(&self.held).try_acquire_many_owned(count).map_err(|_| {
            self.metrics.count_limit(FULL_OF_BYTES);
            refuse(Code::SERVICE_UNAVAILABLE, "no room for bodies of more requests")
        })
    }

    /// A whole body, or the beginning of one that `may_go_on`.
    async fn read<B>(&self, mut body: B, may_go_on: bool) -> Result<Read, Refusal>
    where
        B: Body<Data = Bytes, Error = BoxError> + Send + Unpin + 'static,
    {
        let too_large = || {
            let reason = format!("the answer is over the limit of {MAX_BODY_BYTES} bytes");
            refuse(Code::BAD_GATEWAY, reason)
        };
        if !may_go_on && body.size_hint().lower() > MAX_BODY_BYTES as u64 {
            return Err(too_large());
        }
        let (mut bytes, mut held) = (BytesMut::new(), self.hold(0)?);
        let mut begun_at = None;
        loop {
            let until = begun_at.filter(|_| may_go_on).map(|at: Instant| at + MAX_FIRST_WAIT);
            let is_long = may_go_on && bytes.len() > MAX_FIRST_BYTES;
            let frame = tokio::select! {
                biased;
                () = until_then(until), if !is_long => None,
                () = std::future::ready(()), if is_long => None,
                frame = body.frame() => Some(frame),
            };
            let Some(frame) = frame else {
                let (bytes, rest) = (bytes.freeze(), Some(body.boxed_unsync()));
                return Ok(Read { bytes, rest, held });
            };
            let Some(frame) = frame else {
                return Ok(Read { bytes: bytes.freeze(), rest: None, held });
            };
            let broken =
                |error| refuse(Code::BAD_GATEWAY, format!("the answer broke off: {error}"));
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            if !may_go_on && bytes.len() + data.len() > MAX_BODY_BYTES {
                return Err(too_large());
            }
            held.merge(self.hold(data.len())?);
            bytes.extend_from_slice(&data);
            begun_at = begun_at.or_else(|| (!data.is_empty()).then(Instant::now));
        }
    }
}

/// What was read of an answer's body.
struct Read {
    bytes: Bytes,
    /// Where that is not all of it.
    rest: Option<AnyBody>,
    /// The room that it has.
    held: OwnedSemaphorePermit,
}

async fn until_then(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

/// What the log says of a request, with its body.
fn outline(content: &Content, wanted: Option<&Wanted>) -> Request<AnyBody> {
    let body = Full::new(content.payload.clone()).map_err(|never| match never {});
    let (method, target) = match wanted {
        Some(Wanted::Origin(asked)) => {
            let to = &asked.target;
            (asked.method.clone(), format!("{}://{}{}", to.scheme, to.authority, to.path))
        }
        _ => {
            let name = content.code.name().unwrap_or_default();
            let method = Method::from_bytes(name.as_bytes()).unwrap_or_default();
            (method, mapping::shown(content))
        }
    };
    let mut request = Request::new(body.boxed_unsync());
    *request.method_mut() = method;
    *request.uri_mut() = target.parse().unwrap_or_else(|_| Uri::from_static("/"));
    request
}

fn target(asked: &Asked) -> Result<Target<'_>, Refusal> {
    let to = &asked.target;
    let (host, port) = host_and_port(&to.authority, &to.scheme)
        .filter(|(host, _)| !host.is_empty())
        .ok_or_else(|| refuse(Code::BAD_REQUEST, "the URI has no host and port"))?;
    Ok(Target { scheme: Some(&to.scheme), host, port, path: Some(&to.path) })
}

/// What a client hears of an origin that was not reached.
fn of_cause(cause: Cause, is_proxied: bool) -> Refusal {
    let code = match cause.kind {
        // RFC 7252 §5.10.2: of what it is unwilling to ask for too.
        CauseKind::Forbidden if is_proxied => Code::PROXYING_NOT_SUPPORTED,
        CauseKind::Forbidden => Code::FORBIDDEN,
        CauseKind::OriginTimeout | CauseKind::Expired => Code::GATEWAY_TIMEOUT,
        CauseKind::Limit | CauseKind::Superseded | CauseKind::ShuttingDown => {
            Code::SERVICE_UNAVAILABLE
        }
        CauseKind::BadRequest => Code::BAD_REQUEST,
        _ => Code::BAD_GATEWAY,
    };
    refuse(code, cause.reason)
}

/// Error type of RFC 9209 §2.3, for the log.
fn error_of(code: Code) -> &'static str {
    match code {
        Code::PROXYING_NOT_SUPPORTED | Code::FORBIDDEN | Code::NOT_FOUND => "http_request_denied",
        Code::SERVICE_UNAVAILABLE => "connection_limit_reached",
        Code::GATEWAY_TIMEOUT => "http_response_timeout",
        Code::BAD_GATEWAY => "http_protocol_error",
        _ => "http_request_error",
    }
}
