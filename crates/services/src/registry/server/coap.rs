//! The resource directory over CoAP and UDP (RFC 9176, RFC 7252), with lookups that are observed
//! (RFC 7641). The machine is that of `proto`; bodies of any size go in blocks.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use proto::coap::machine::{Input, Output, Settings};
use proto::coap::transfer::Transfers;
use proto::coap::{Code, Content, format, option};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};

use super::super::directory::{self, Lookup};
use super::super::links;
use super::super::model::Kind;
use super::super::refusal::{Reason, Refusal};
use super::pairs;
use super::shared::Shared;
use crate::Error;

/// Largest datagram that is read, in bytes.
const MAX_DATAGRAM_BYTES: usize = 64 * 1024;
/// Largest document of links, in bytes.
const MAX_LINKS_BYTES: usize = 64 * 1024;
/// Answers that wait for the task.
const MAX_ANSWERS: usize = 256;
/// Observations at once.
const MAX_OBSERVED: usize = 256;
/// Between two looks at what is observed: each is a lookup anew.
const MIN_PAUSE: Duration = Duration::from_millis(200);
/// Pause after a socket could not be read.
const RECEIVE_PAUSE: Duration = Duration::from_millis(10);
/// How long a lookup is believed, in seconds.
const AGE_S: u32 = 60;

/// A socket of CoAP that is bound.
pub(super) struct Face {
    socket: UdpSocket,
    seed: [u64; 2],
    /// Whether addresses must be borne out (RFC 9175 §2.3).
    is_challenging: bool,
}

/// Binds the socket.
pub(super) async fn bind(address: SocketAddr) -> Result<(Face, SocketAddr), Error> {
    let refused = |error: std::io::Error| {
        let remedy = "choose another address or port (0: any)";
        Error::Caller(format!("cannot listen on {address} (UDP): {error}; {remedy}"))
    };
    let socket = UdpSocket::bind(address).await.map_err(refused)?;
    let address = socket.local_addr().map_err(refused)?;
    let mut bytes = [0; 16];
    let no_chance = |_| Error::Caller("the system has no random numbers".to_owned());
    SystemRandom::new().fill(&mut bytes).map_err(no_chance)?;
    let (high, low) = bytes.split_at(8);
    let word = |half: &[u8]| half.iter().fold(0, |word: u64, byte| word << 8 | u64::from(*byte));
    // Nobody is on the way to this machine's own addresses.
    let is_challenging = !address.ip().is_loopback();
    Ok((Face { socket, seed: [word(high), word(low)], is_challenging }, address))
}

/// A lookup that is observed.
struct Observed {
    lookup: Lookup,
    query: Vec<(String, String)>,
    /// What was sent last.
    payload: String,
}

/// The task that owns the endpoint.
struct Task {
    socket: UdpSocket,
    transfers: Transfers<SocketAddr>,
    began: Instant,
    wake_at: Option<Duration>,
    shared: Arc<Shared>,
    observed: BTreeMap<u64, Observed>,
    answered: mpsc::Sender<(u64, Content)>,
    /// When what is observed may be looked at again, if something has changed.
    look_at: Option<Instant>,
}

impl Face {
    /// Serves until it is to stop.
    pub(super) async fn run(self, shared: Arc<Shared>, mut stopping: watch::Receiver<bool>) {
        // An address that is not borne out gets no long answer and changes nothing.
        let Self { seed, is_challenging, .. } = self;
        let settings = Settings { seed, is_challenging, rate_bps: None };
        let (answered, mut answers) = mpsc::channel(MAX_ANSWERS);
        let mut changes = shared.changes();
        let mut task = Task {
            socket: self.socket,
            transfers: Transfers::new(&settings),
            began: Instant::now(),
            wake_at: None,
            shared,
            observed: BTreeMap::new(),
            answered,
            look_at: None,
        };
        let mut room = vec![0; MAX_DATAGRAM_BYTES];
        loop {
            let due = task.wake_at.map(|at| task.began + at);
            let due = due.into_iter().chain(task.look_at).min();
            let wake = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                true = super::ended(&mut stopping) => return,
                Some((exchange, content)) = answers.recv() => {
                    task.input(Input::Respond { exchange, content });
                }
                came = task.socket.recv_from(&mut room) => match came {
                    Ok((length, peer)) => {
                        let bytes = Bytes::copy_from_slice(room.get(..length).unwrap_or_default());
                        task.input(Input::Datagram { peer, bytes, is_group: false });
                    }
                    // Such as that nothing listens where a datagram went.
                    Err(error) => {
                        tracing::debug!(%error, "receiving failed");
                        tokio::time::sleep(RECEIVE_PAUSE).await;
                    }
                },
                Ok(()) = changes.changed() => {
                    task.look_at.get_or_insert(Instant::now() + MIN_PAUSE);
                }
                () = wake => {
                    task.look();
                    task.input(Input::Wake);
                }
            }
        }
    }
}

impl Task {
    fn input(&mut self, input: Input<SocketAddr>) {
        self.wake_at = self.wake_at.filter(|at| *at > self.began.elapsed());
        self.transfers.handle_input(self.began.elapsed(), input);
        while let Some(output) = self.transfers.poll_output() {
            match output {
                Output::Datagram { peer, bytes } => {
                    // One that does not leave is lost, as any other may be.
                    if let Err(error) = self.socket.try_send_to(&bytes, peer) {
                        tracing::debug!(%peer, %error, "sending failed");
                    }
                }
                Output::Request { exchange, peer, content, .. } => {
                    self.request(exchange, peer, content);
                }
                Output::Ended { exchange } => {
                    self.observed.remove(&exchange);
                }
                Output::WakeAt(at) => self.wake_at = Some(at),
                Output::Response { .. }
                | Output::Flow(_)
                | Output::Opened { .. }
                | Output::Failed { .. }
                | Output::Suppressed { .. }
                | Output::Alive { .. } => {}
            }
        }
        self.make_room();
    }

    fn request(&mut self, exchange: u64, peer: SocketAddr, content: Content) {
        let (shared, answered) = (self.shared.clone(), self.answered.clone());
        if content.uint(option::OBSERVE) == Some(0)
            && content.code == Code::GET
            && let Some(lookup) = lookup_of(&content)
            && let Ok(query) = query(&content)
            && let Ok(payload) = found(&shared, lookup, &query)
        {
            let content = linked(payload.clone()).with_uint(option::OBSERVE, 0);
            self.observed.insert(exchange, Observed { lookup, query, payload });
            tokio::spawn(async move { answered.send((exchange, content)).await });
            return;
        }
        tokio::spawn(async move {
            let content = answer(&shared, peer, &content).await;
            let _ = answered.send((exchange, content)).await;
        });
    }

    /// Beyond the bound the oldest ends, and is told so: it may be one that the endpoint did not
    /// agree to, of which nothing is heard any more.
    fn make_room(&mut self) {
        while self.observed.len() > MAX_OBSERVED {
            let Some((exchange, _)) = self.observed.pop_first() else { return };
            let content = Content::new(Code::SERVICE_UNAVAILABLE);
            self.input(Input::Notify { exchange, content });
        }
    }

    /// Looks everything up again that is observed, and tells what has changed.
    fn look(&mut self) {
        if self.look_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        self.look_at = None;
        let mut changed = Vec::new();
        for (exchange, observed) in &mut self.observed {
            let Ok(payload) = found(&self.shared, observed.lookup, &observed.query) else {
                continue;
            };
            if payload != observed.payload {
                observed.payload.clone_from(&payload);
                changed.push((*exchange, linked(payload)));
            }
        }
        for (exchange, content) in changed {
            self.input(Input::Notify { exchange, content });
        }
    }
}

fn linked(payload: String) -> Content {
    Content::new(Code::CONTENT)
        .with_uint(option::CONTENT_FORMAT, format::LINK_FORMAT.into())
        .with_uint(option::MAX_AGE, AGE_S)
        .with_payload(payload)
}

/// The segments of a path; an empty one at the end does not count.
fn path(request: &Content) -> Vec<String> {
    let segments = request.all(option::URI_PATH).map(|one| String::from_utf8_lossy(one).into());
    let mut segments: Vec<String> = segments.collect();
    if segments.last().is_some_and(String::is_empty) {
        segments.pop();
    }
    segments
}

fn lookup_of(request: &Content) -> Option<Lookup> {
    match path(request).iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["rd-lookup", "ep"] => Some(Lookup::Endpoints),
        ["rd-lookup", "res"] => Some(Lookup::Resources),
        _ => None,
    }
}

fn query(request: &Content) -> Result<Vec<(String, String)>, Refusal> {
    request.all(option::URI_QUERY).map(pairs::of_option).collect()
}

fn found(shared: &Shared, lookup: Lookup, query: &[(String, String)]) -> Result<String, Refusal> {
    let found = shared.look(|core, now| directory::look_up(core, now, lookup, query))?;
    Ok(links::write(&found))
}

/// The code that says a refusal (RFC 7252 §5.9, RFC 8132 §8).
pub(super) fn code(reason: Reason) -> Code {
    match reason.status() {
        401 => Code::UNAUTHORIZED,
        403 => Code::FORBIDDEN,
        404 => Code::NOT_FOUND,
        405 => Code::METHOD_NOT_ALLOWED,
        408 => Code::REQUEST_ENTITY_INCOMPLETE,
        409 => Code::CONFLICT,
        413 => Code::REQUEST_ENTITY_TOO_LARGE,
        415 => Code::UNSUPPORTED_CONTENT_FORMAT,
        500 => Code::INTERNAL_SERVER_ERROR,
        503 => Code::SERVICE_UNAVAILABLE,
        _ => Code::BAD_REQUEST,
    }
}

async fn answer(shared: &Shared, peer: SocketAddr, request: &Content) -> Content {
    let done = act(shared, peer, request).await;
    done.unwrap_or_else(|refusal| {
        Content::new(code(refusal.reason)).with_payload(refusal.line.into_bytes())
    })
}

async fn act(shared: &Shared, peer: SocketAddr, request: &Content) -> Result<Content, Refusal> {
    let (path, query) = (path(request), query(request)?);
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let method = || Refusal::new(Reason::Method, "not with this method here");
    if let Some(lookup) = lookup_of(request) {
        return match request.code {
            Code::GET => found(shared, lookup, &query).map(linked),
            _ => Err(method()),
        };
    }
    match (&path[..], request.code) {
        ([".well-known", "core"], Code::GET) => {
            let mut own = directory::own_links();
            own.retain(|link| query.iter().all(|term| directory::is_of(link, term)));
            Ok(linked(links::write(&own)))
        }
        (["rd"], Code::POST) => register(shared, peer, request, &query).await,
        (["rd", id], Code::GET) => {
            let key = directory::key(id);
            let links = shared.look(|core, now| {
                let entity = core.want(now, Kind::Service, &key)?;
                Ok(entity.service().map(directory::service_links).unwrap_or_default())
            })?;
            Ok(linked(links::write(&links)))
        }
        (["rd", id], Code::POST) => {
            if !request.payload.is_empty() {
                return Err(Refusal::malformed("an update has no payload; register links anew"));
            }
            let (key, owner) = (directory::key(id), publisher(shared)?);
            let update =
                shared.publish(owner, |all, now| directory::update(all, now, &key, &query));
            update.await.map(|()| Content::new(Code::CHANGED))
        }
        (["rd", id], Code::DELETE) => {
            let (key, owner) = (directory::key(id), publisher(shared)?);
            shared.publish(owner, |all, _| all.delete(Kind::Service, &key)).await?;
            Ok(Content::new(Code::DELETED))
        }
        ([".well-known", "core"] | ["rd"] | ["rd", _], _) => Err(method()),
        _ => {
            let line = "there are /rd, /rd-lookup/ep, /rd-lookup/res and /.well-known/core";
            Err(Refusal::new(Reason::NotFound, line))
        }
    }
}

async fn register(
    shared: &Shared,
    peer: SocketAddr,
    request: &Content,
    query: &[(String, String)],
) -> Result<Content, Refusal> {
    let owner = publisher(shared)?;
    if request.uint(option::CONTENT_FORMAT).is_some_and(|of| of != u32::from(format::LINK_FORMAT)) {
        let line = "links are in application/link-format (40)";
        return Err(Refusal::new(Reason::MediaType, line));
    }
    if request.payload.len() > MAX_LINKS_BYTES {
        let line = format!("over {MAX_LINKS_BYTES} bytes of links; register fewer");
        return Err(Refusal::new(Reason::MessageTooLarge, line));
    }
    let text = std::str::from_utf8(&request.payload);
    let text = text.map_err(|error| Refusal::malformed(format!("links in UTF-8: {error}")))?;
    let links = links::parse(text).map_err(Refusal::malformed)?;
    let source = format!("coap://{peer}");
    let change = shared
        .publish(owner, |all, now| directory::register(all, now, query, &links, Some(&source)));
    let (key, _) = change.await?;
    Ok(Content::new(Code::CREATED)
        .with(option::LOCATION_PATH, b"rd")
        .with(option::LOCATION_PATH, directory::id(&key).as_bytes()))
}

fn publisher(shared: &Shared) -> Result<&Arc<str>, Refusal> {
    shared.coap_publisher.as_ref().ok_or_else(|| {
        let line = "nobody may register over CoAP here; set coap_publisher, or register over HTTP";
        Refusal::new(Reason::UserMismatch, line)
    })
}
