//! Other nodes over CoAP and UDP (RFC 7252): one socket for requests that come and that go. The
//! machine is that of `proto`; bodies of any size go in blocks.
//!
//! What the answer's payload begins with is the node's name, by which who asks knows that a node
//! has answered, and which; of a refusal its line follows.

mod clients;
pub(super) mod stream;
mod uploads;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use proto::coap::machine::{Input, MAX_AMPLIFICATION, MAX_OBSERVATIONS, Output, Settings};
use proto::coap::transfer::Transfers;
use proto::coap::{Code, Content, format, option};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot, watch};

use super::owner::Handle;
use crate::Error;
use crate::messaging::forms::Form;
use crate::messaging::machine::{self, Sent};
use crate::messaging::message::{Precedence, Transfer};
use crate::messaging::receipt::Returning;
use crate::messaging::refusal::{Reason, Refusal, shown};
use uploads::Uploads;

/// Largest datagram that is read, in bytes.
const MAX_DATAGRAM_BYTES: usize = 64 * 1024;
/// Most requests that wait for the task.
const MAX_CALLS: usize = 256;
/// Longest content that goes in one datagram, in bytes.
const LONG_BYTES: usize = 1024;
/// Pause after a socket could not be read.
const RECEIVE_PAUSE: Duration = Duration::from_millis(10);
/// Between name and line of a refusal.
const BETWEEN: &str = ": ";

/// A request to a node.
struct Call {
    peer: SocketAddr,
    content: Content,
    is_confirmable: bool,
    precedence: Precedence,
    time: Time,
    tell: oneshot::Sender<Answered>,
}

/// How long a request may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    pub(super) within: Duration,
    /// Whether that is less than requests usually have, as a message is valid no longer: that no
    /// answer comes says nothing of the node.
    pub(super) is_cut: bool,
}

/// What comes of a request: an answer, or none and why.
type Answered = Result<Content, Lost>;

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Lost {
    /// None came in time.
    Late,
    /// There is no room for it here.
    Full,
    /// Nobody is there, or what came is no answer.
    Broken(String),
}

impl Lost {
    fn line(self) -> String {
        match self {
            Self::Late => "no answer in time".to_owned(),
            Self::Full => "too many requests are under way".to_owned(),
            Self::Broken(line) => line,
        }
    }

    /// What it says of a node. That no answer comes to something which is not repeated, is long or
    /// had little time says nothing: it may be lost, or have taken too long.
    fn judged(self, is_telling: bool) -> Sent {
        match self {
            Self::Late if is_telling => Sent::Failed(self.line()),
            Self::Late | Self::Full => Sent::NotNow(self.line()),
            Self::Broken(line) => Sent::Failed(line),
        }
    }
}

/// A way to the task.
#[derive(Clone, Debug)]
pub(super) struct Caller(mpsc::Sender<Call>);

/// Whom a socket serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serves {
    /// Clients of this node.
    Clients,
    /// Other nodes.
    Nodes,
}

/// A socket of CoAP that is bound.
pub(super) struct Face {
    serves: Serves,
    /// Whether who asks is to show that it has its address before it changes or observes anything.
    is_challenging: bool,
    socket: UdpSocket,
    calls: mpsc::Receiver<Call>,
    seed: [u64; 2],
}

/// Binds the socket.
pub(super) async fn bind(
    address: SocketAddr,
    serves: Serves,
) -> Result<(Face, Caller, SocketAddr), Error> {
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
    let (sender, calls) = mpsc::channel(MAX_CALLS);
    // Nodes are answered with little; a client may have the whole inbox sent somewhere.
    let is_challenging = serves == Serves::Clients && !address.ip().is_loopback();
    let seed = [word(high), word(low)];
    Ok((Face { serves, is_challenging, socket, calls, seed }, Caller(sender), address))
}

impl Caller {
    /// Gives bytes to a node; what came of it.
    pub(super) async fn deliver(
        &self,
        node: &str,
        peer: SocketAddr,
        path: &str,
        (form, bytes): (Form, Bytes),
        (is_confirmable, precedence, time): (bool, Precedence, Time),
    ) -> Sent {
        let is_long = bytes.len() > LONG_BYTES;
        // Of what goes in blocks one that is lost would be the end of all.
        let is_confirmable = is_confirmable || is_long;
        let content = posted(path, form, bytes);
        let (tell, answer) = oneshot::channel();
        let call = Call { peer, content, is_confirmable, precedence, time, tell };
        if self.0.send(call).await.is_err() {
            return Sent::Failed("this node stops".to_owned());
        }
        match answer.await {
            Ok(Ok(content)) => outcome(node, &content),
            Ok(Err(lost)) => lost.judged(is_confirmable && !is_long && !time.is_cut),
            Err(_) => Sent::Failed("this node stops".to_owned()),
        }
    }
}

/// A request that gives bytes to a node.
pub(super) fn posted(path: &str, form: Form, bytes: Bytes) -> Content {
    Content::new(Code::POST)
        .with(option::URI_PATH, path.trim_start_matches('/').as_bytes())
        .with_uint(option::CONTENT_FORMAT, number(form).into())
        .with_payload(bytes)
}

/// What an answer means.
fn outcome(node: &str, content: &Content) -> Sent {
    let (code, text) = (content.code, String::from_utf8_lossy(&content.payload));
    let (name, line) = text.split_once(BETWEEN).unwrap_or((&text, ""));
    let coded = format!("{}.{:02}", code.class(), code.detail());
    if name != node {
        return Sent::Failed(format!("{coded} of somebody else: {}", shown(&text)));
    }
    let one_line = || line.replace(['\r', '\n'], " ");
    match code {
        _ if code.is_success() => Sent::Taken,
        Code::HOP_LIMIT_REACHED => Sent::Loop(one_line()),
        Code::REQUEST_ENTITY_INCOMPLETE | Code::TOO_MANY_REQUESTS => {
            Sent::NotNow(format!("{coded}: {}", shown(line)))
        }
        _ if code.class() == 4 => Sent::Refused(one_line()),
        _ => Sent::NotNow(format!("{coded}: {}", shown(line))),
    }
}

/// Why a request of the endpoint's has no answer.
fn lost(reason: proto::coap::machine::Reason) -> Lost {
    use proto::coap::machine::Reason as Why;
    match reason {
        Why::TimedOut | Why::NoAnswer => Lost::Late,
        Why::Full => Lost::Full,
        other => Lost::Broken(format!("no answer: {other:?}")),
    }
}

/// The format of a form (RFC 7252 §12.3, RFC 8949 §9.6).
fn number(form: Form) -> u16 {
    match form {
        Form::Json => format::JSON,
        Form::Xml => format::XML,
        Form::Cbor => format::CBOR,
        Form::Exi => format::EXI,
    }
}

/// The code that says a refusal.
fn code(reason: Reason) -> Code {
    match reason {
        Reason::Malformed => Code::BAD_REQUEST,
        Reason::Forged => Code::FORBIDDEN,
        Reason::Unknown => Code::NOT_FOUND,
        Reason::Method => Code::METHOD_NOT_ALLOWED,
        Reason::NotAcceptable => Code::NOT_ACCEPTABLE,
        Reason::Late => Code::REQUEST_ENTITY_INCOMPLETE,
        Reason::Conflict => Code::CONFLICT,
        Reason::TooLarge => Code::REQUEST_ENTITY_TOO_LARGE,
        Reason::Unsupported => Code::UNSUPPORTED_CONTENT_FORMAT,
        Reason::Expired => Code::UNPROCESSABLE_ENTITY,
        Reason::Full | Reason::Early => Code::SERVICE_UNAVAILABLE,
        Reason::Loop => Code::HOP_LIMIT_REACHED,
    }
}

/// The task that owns the endpoint.
struct Task {
    serves: Serves,
    /// Exchanges by which the inbox is observed.
    observers: BTreeSet<u64>,
    socket: UdpSocket,
    transfers: Transfers<SocketAddr>,
    began: Instant,
    wake_at: Option<Duration>,
    handle: Handle,
    /// Who waits for answers, and until when.
    waiting: BTreeMap<u64, (Duration, oneshot::Sender<Answered>)>,
    last_request: u64,
    uploads: Uploads<Content>,
    answered: mpsc::Sender<(u64, Content)>,
}

impl Face {
    /// Serves nodes and makes requests until it is to stop.
    pub(super) async fn run(self, handle: Handle, mut stopping: watch::Receiver<bool>) {
        let Self { serves, is_challenging, socket, mut calls, seed } = self;
        // An answer of a node has no more than MAX_AMPLIFICATION times the bytes of its request, so
        // that nobody is flooded with those that another asks for in his name.
        let settings = Settings { seed, is_challenging, rate_bps: None };
        let (answered, mut answers) = mpsc::channel(MAX_CALLS);
        let mut inbox = handle.watch_inbox();
        let mut task = Task {
            serves,
            observers: BTreeSet::new(),
            socket,
            transfers: Transfers::new(&settings),
            began: Instant::now(),
            wake_at: None,
            handle,
            waiting: BTreeMap::new(),
            last_request: 0,
            uploads: Uploads::default(),
            answered,
        };
        let mut room = vec![0; MAX_DATAGRAM_BYTES];
        loop {
            let due = task.due();
            let wake = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            // None before the others: a peer that floods the socket keeps no answer waiting.
            tokio::select! {
                true = super::ended(&mut stopping) => return,
                Some((exchange, content)) = answers.recv() => task.respond(exchange, content),
                Ok(()) = inbox.changed() => task.tell_observers(),
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
                Some(call) = calls.recv() => task.call(call),
                () = wake => task.expire(),
            }
        }
    }
}

impl Task {
    fn due(&self) -> Option<Instant> {
        let waits = self.waiting.values().map(|(until, _)| *until);
        let due = waits.chain(self.wake_at).min()?;
        Some(self.began + due)
    }

    fn call(&mut self, call: Call) {
        self.last_request += 1;
        let request = self.last_request;
        let until = self.began.elapsed() + call.time.within;
        self.waiting.insert(request, (until, call.tell));
        let Call { peer, content, is_confirmable, precedence, .. } = call;
        if content.payload.len() > LONG_BYTES {
            self.uploads.push(peer, precedence, request, content);
            return self.input(Input::Wake);
        }
        self.input(match is_confirmable {
            true => Input::Request { request, peer, content, is_confirmable },
            // One that is lost would keep all others to the node waiting for a second a byte
            // (RFC 7252 §4.7). How many leave at once is bounded by the machine's window.
            false => Input::Unpaced { request, peer, content },
        });
    }

    /// An answer; with Observe it begins what ends with [`Output::Ended`].
    fn respond(&mut self, exchange: u64, content: Content) {
        if content.first(option::OBSERVE).is_some() {
            if self.observers.len() >= MAX_OBSERVATIONS {
                self.observers.pop_first();
            }
            self.observers.insert(exchange);
        }
        self.input(Input::Respond { exchange, content });
    }

    /// The inbox has changed.
    fn tell_observers(&mut self) {
        let content = clients::observed(self.handle.inbox_extent());
        for exchange in self.observers.clone() {
            self.input(Input::Notify { exchange, content: content.clone() });
        }
    }

    /// Requests that took too long are of no use any more.
    fn expire(&mut self) {
        let now = self.began.elapsed();
        let over = self.waiting.extract_if(.., |_, (until, _)| *until <= now);
        let over: Vec<_> = over.collect();
        for (request, (_, tell)) in over {
            let _ = tell.send(Err(Lost::Late));
            self.uploads.end(request);
            self.input(Input::Cancel { request });
        }
        self.input(Input::Wake);
    }

    fn input(&mut self, input: Input<SocketAddr>) {
        self.step(input);
        while let Some((peer, request, content)) = self.uploads.next() {
            self.step(Input::Request { request, peer, content, is_confirmable: true });
        }
    }

    fn step(&mut self, input: Input<SocketAddr>) {
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
                Output::Request { exchange, content, .. } => {
                    let (handle, answered) = (self.handle.clone(), self.answered.clone());
                    let serves = self.serves;
                    tokio::spawn(async move {
                        let room = MAX_AMPLIFICATION * content.payload.len();
                        let content = match serves {
                            Serves::Clients => clients::answer(&handle, &content).await,
                            Serves::Nodes => answer(&handle, &content, room).await,
                        };
                        let _ = answered.send((exchange, content)).await;
                    });
                }
                Output::Response { request, content, .. } => self.tell(request, Ok(content)),
                Output::Failed { request, reason } => self.tell(request, Err(lost(reason))),
                Output::Ended { exchange } => drop(self.observers.remove(&exchange)),
                // Bodies are whole here.
                Output::Flow(_) | Output::Opened { .. } => {}
                Output::Suppressed { .. } | Output::Alive { .. } => {}
                Output::WakeAt(at) => self.wake_at = Some(at),
            }
        }
    }

    fn tell(&mut self, request: u64, answer: Answered) {
        self.uploads.end(request);
        if let Some((_, tell)) = self.waiting.remove(&request) {
            let _ = tell.send(answer);
        }
    }
}

/// The answer to a request of another node, with a payload of `room` bytes at most where that has
/// the name of this node at all.
async fn answer(handle: &Handle, request: &Content, room: usize) -> Content {
    let done = take(handle, request).await;
    let node: &Arc<str> = &handle.node;
    match done {
        Ok(()) => Content::new(Code::CHANGED).with_payload(node.as_bytes().to_vec()),
        Err(refusal) => {
            let line = cut(format!("{node}{BETWEEN}{refusal}"), room.max(node.len()));
            Content::new(code(refusal.reason)).with_payload(line.into_bytes())
        }
    }
}

/// A line that has so many bytes at most.
fn cut(mut line: String, room: usize) -> String {
    line.truncate(line.floor_char_boundary(room));
    line
}

async fn take(handle: &Handle, request: &Content) -> Result<(), Refusal> {
    let path: Vec<&[u8]> = request.all(option::URI_PATH).collect();
    let is_transfer = match path[..] {
        [b"transfers"] => true,
        [b"receipts"] => false,
        _ => return Err(Refusal::new(Reason::Unknown, "there are /transfers and /receipts")),
    };
    if request.code != Code::POST {
        return Err(Refusal::new(Reason::Method, "only POST"));
    }
    let form = form_of(request)?;
    let done = if is_transfer {
        let transfer = Transfer::decode(form, &request.payload)?;
        handle.input(|token| machine::Input::Transfer { token, transfer }).await
    } else {
        let returning = Returning::decode(form, &request.payload)?;
        handle.input(|token| machine::Input::Receipt { token, returning }).await
    };
    done.map(drop)
}

/// The form of a request's content.
fn form_of(request: &Content) -> Result<Form, Refusal> {
    let given = request.uint(option::CONTENT_FORMAT);
    let form = Form::ALL.into_iter().find(|form| Some(number(*form).into()) == given);
    form.ok_or_else(|| {
        let line = "the Content-Format is none of 50 (JSON), 41 (XML), 60 (CBOR), 47 (EXI)";
        Refusal::new(Reason::Unsupported, line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_node_itself_takes_or_refuses() {
        let of = |code, payload: &str| {
            outcome("b", &Content::new(code).with_payload(payload.as_bytes().to_vec()))
        };
        assert_eq!(of(Code::CHANGED, "b"), Sent::Taken);
        for code in [Code::BAD_REQUEST, Code::FORBIDDEN] {
            assert_eq!(of(code, "b: why"), Sent::Refused("why".to_owned()));
        }
        assert_eq!(of(Code::HOP_LIMIT_REACHED, "b: why"), Sent::Loop("why".to_owned()));
        for (code, payload) in [
            (Code::CHANGED, ""),
            (Code::CHANGED, "c"),
            (Code::NOT_FOUND, ""),
            (Code::NOT_FOUND, "c: why"),
        ] {
            assert!(matches!(of(code, payload), Sent::Failed(_)), "{code:?} {payload}");
        }
        for (code, payload) in
            [(Code::SERVICE_UNAVAILABLE, "b: full"), (Code::REQUEST_ENTITY_INCOMPLETE, "b: late")]
        {
            assert!(matches!(of(code, payload), Sent::NotNow(_)), "{code:?} {payload}");
        }
    }

    #[test]
    fn what_is_not_repeated_says_nothing_of_a_node_when_no_answer_comes() {
        for (lost, is_telling, fails) in [
            (Lost::Late, true, true),
            (Lost::Late, false, false),
            (Lost::Full, true, false),
            (Lost::Broken("Reset".to_owned()), false, true),
        ] {
            let judged = lost.clone().judged(is_telling);
            assert_eq!(matches!(judged, Sent::Failed(_)), fails, "{lost:?}");
            assert_eq!(matches!(judged, Sent::NotNow(_)), !fails, "{lost:?}");
        }
    }

    #[test]
    fn a_line_is_cut_between_characters() {
        for (room, left) in [(100, "b: aß"), (6, "b: aß"), (5, "b: a"), (1, "b"), (0, "")] {
            assert_eq!(cut("b: aß".to_owned(), room), left);
        }
    }

    #[test]
    fn a_code_says_what_the_status_of_http_says() {
        for reason in [
            Reason::Malformed,
            Reason::Forged,
            Reason::Unknown,
            Reason::Method,
            Reason::NotAcceptable,
            Reason::Late,
            Reason::Conflict,
            Reason::TooLarge,
            Reason::Unsupported,
            Reason::Expired,
            Reason::Full,
            Reason::Early,
            Reason::Loop,
        ] {
            let status = Refusal::new(reason, "").status();
            let code = code(reason);
            assert_eq!(u16::from(code.class()) * 100 + u16::from(code.detail()), status);
        }
    }
}
