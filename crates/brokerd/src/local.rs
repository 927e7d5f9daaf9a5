//! A client of a broker for programs that speak none of its protocols: over HTTP on a loopback
//! address, what is posted is published, and what comes of subscriptions is kept to be asked for.
//!
//! - `POST /messages` takes `{"topic": .., "payload": ..}`, and `content_type` if it has one; the
//!   answer is 202 when it waits to be published.
//! - `GET /inbox?after=N&limit=M` gives the `messages` behind number N, each with its `number` and
//!   `arrived_unix_s`, and whether there are `more`.
//! - `GET /status` says whether the broker has accepted the subscriptions, and what it `refused`.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::LocalSet;

use crate::client::{Event, Message, Settings, Taken, Target, Wish, publish, subscribe};
use crate::error::Error;

/// Most connections at once.
const MAX_CONNECTIONS: usize = 64;
/// How long a head may take, and how long a connection may be used.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
const MAX_LIFE: Duration = Duration::from_secs(60);
/// Longest content of a request, in bytes.
const MAX_CONTENT_BYTES: usize = 1 << 20;
/// Messages that wait to be published.
const MAX_WAITING: usize = 1000;
/// Messages that are kept, and bytes of their payloads and topics: beyond either the oldest goes.
const MAX_KEPT: usize = 100_000;
const MAX_KEPT_BYTES: usize = 64 << 20;
/// Messages in an answer, and without `limit`.
const MAX_LIMIT: usize = 1000;
/// What a publication that is posted may say.
const DRAFT_KEYS: [&str; 3] = ["topic", "payload", "content_type"];
/// Pause after an accept failed, and before a broker that was never there is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// What such a client does.
#[derive(Clone, Debug)]
pub struct LocalConfig {
    /// Where programs of this machine reach it: a loopback address.
    pub listen: SocketAddr,
    /// The broker.
    pub target: Target,
    /// How it is spoken to. To most brokers one that publishes and one that subscribes are two
    /// clients: the former has `-out` behind its identifier where there is one.
    pub settings: Settings,
    /// What is subscribed to; nothing without filters.
    pub wish: Wish,
    /// Quality of service of what is published.
    pub qos: i8,
    /// For how long a broker that was not there yet is tried.
    pub patience: Duration,
}

/// A bound one.
pub struct Local {
    config: LocalConfig,
    socket: TcpListener,
    address: SocketAddr,
}

/// What came, and what is known of the subscription.
#[derive(Default)]
struct Inbox {
    kept: VecDeque<(u64, f64, Message)>,
    kept_bytes: usize,
    /// Number of the last that came, from 1.
    last: u64,
    dropped: u64,
    is_subscribed: bool,
    refused: Vec<String>,
    unreadable: u64,
}

impl Inbox {
    fn take(&mut self, message: Message, arrived_unix_s: f64) {
        self.last += 1;
        self.kept_bytes += bytes_of(&message);
        self.kept.push_back((self.last, arrived_unix_s, message));
        while self.kept.len() > MAX_KEPT || self.kept_bytes > MAX_KEPT_BYTES {
            let Some((_, _, oldest)) = self.kept.pop_front() else { break };
            self.kept_bytes -= bytes_of(&oldest);
            self.dropped += 1;
        }
    }

    /// What came behind a number.
    fn page(&self, after: u64, limit: usize) -> Value {
        let behind = self.kept.partition_point(|(number, _, _)| *number <= after);
        let facts = |(number, arrived_unix_s, message): &(u64, f64, Message)| {
            let mut facts = message.facts();
            facts["number"] = json!(number);
            facts["arrived_unix_s"] = json!(arrived_unix_s);
            facts
        };
        let messages: Vec<Value> = self.kept.iter().skip(behind).take(limit).map(facts).collect();
        let more = self.kept.len() > behind + messages.len();
        json!({"messages": messages, "more": more, "dropped": self.dropped})
    }

    fn status(&self) -> Value {
        json!({
            "subscribed": self.is_subscribed, "refused": self.refused, "came": self.last,
            "dropped": self.dropped, "unreadable": self.unreadable,
        })
    }
}

fn bytes_of(message: &Message) -> usize {
    message.topic.len() + message.payload.len()
}

/// A publication as a program posts it.
fn read_draft(content: &[u8]) -> Result<Message, String> {
    let draft: Value = serde_json::from_slice(content).map_err(|error| error.to_string())?;
    let fields = draft.as_object().ok_or("it is no object")?;
    if let Some(other) = fields.keys().find(|key| !DRAFT_KEYS.contains(&key.as_str())) {
        let other: String = other.chars().take(40).flat_map(char::escape_debug).collect();
        return Err(format!("'{other}' is no field: there are {}", DRAFT_KEYS.join(", ")));
    }
    let text = |key: &str| match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("'{key}' is no text")),
    };
    let needed = |key: &str| text(key)?.ok_or_else(|| format!("'{key}' is missing"));
    let (topic, payload) = (needed("topic")?, needed("payload")?.into());
    Ok(Message { topic, payload, content_type: text("content_type")?, ..Message::default() })
}

impl Local {
    /// Binds the address.
    ///
    /// # Errors
    /// [`Error::Caller`] for one that is not of a loopback interface or that cannot be had.
    pub async fn bind(config: LocalConfig) -> Result<Self, Error> {
        let address = config.listen;
        if !address.ip().is_loopback() {
            return Err(Error::Caller(format!(
                "--listen {address} asks nobody who he is: only a loopback address may be given"
            )));
        }
        let socket = TcpListener::bind(address)
            .await
            .map_err(|error| Error::Caller(format!("cannot listen on {address}: {error}")))?;
        let address = socket.local_addr().unwrap_or(address);
        Ok(Self { config, socket, address })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `end`, or until the broker is lost for longer than the settings say.
    ///
    /// # Errors
    /// As [`publish`].
    pub async fn run(self, end: impl Future<Output = ()>) -> Result<(), Error> {
        let Self { config, socket, .. } = self;
        let inbox = Rc::new(RefCell::new(Inbox::default()));
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let publishing = publishing(&config, receiver);
        let subscribing = subscribing(&config, &inbox);
        let publisher = Rc::new(Publisher { sender, qos: config.qos });
        let serving = accept(socket, &inbox, &publisher);
        let all = async {
            tokio::select! {
                done = publishing => done,
                done = subscribing => done,
                () = serving => Ok(()),
                () = end => Ok(()),
            }
        };
        LocalSet::new().run_until(all).await
    }
}

/// Publishes what comes, from the first message on.
async fn publishing(
    config: &LocalConfig,
    mut waiting: mpsc::Receiver<Message>,
) -> Result<(), Error> {
    let mut settings = config.settings.clone();
    if !settings.client_id.is_empty() {
        settings.client_id += "-out";
    }
    // A client that fails at once has taken what it was given: who has nothing yet keeps nobody's.
    let Some(first) = waiting.recv().await else { return std::future::pending().await };
    let (sender, receiver) = mpsc::channel(1);
    let handing = async {
        let mut next = Some(first);
        while let Some(message) = next {
            if sender.send(message).await.is_err() {
                break;
            }
            next = waiting.recv().await;
        }
    };
    let (published, ()) = tokio::join!(publish(&config.target, &settings, receiver), handing);
    let published = published?;
    for failure in &published.failures {
        tracing::warn!(failure, "not published");
    }
    Ok(())
}

/// Subscribes, again while the broker has never been there.
async fn subscribing(config: &LocalConfig, inbox: &RefCell<Inbox>) -> Result<(), Error> {
    if config.wish.filters.is_empty() {
        inbox.borrow_mut().is_subscribed = true;
        return std::future::pending().await;
    }
    let began = tokio::time::Instant::now();
    loop {
        let mut take = |event: Event| {
            let mut inbox = inbox.borrow_mut();
            match event {
                Event::Subscribed(refused) => {
                    inbox.is_subscribed = true;
                    inbox.refused = refused;
                }
                Event::Message(message) => inbox.take(message, unix_s()),
                Event::Unreadable(why) => {
                    inbox.unreadable += 1;
                    tracing::warn!(why, "a message that cannot be read");
                }
            }
            Taken::More
        };
        let never = std::future::pending();
        let done = subscribe(&config.target, &config.settings, &config.wish, &mut take, never);
        match done.await {
            Err(Error::System(why))
                if !inbox.borrow().is_subscribed && began.elapsed() < config.patience =>
            {
                tracing::info!(why, "the broker is not there yet");
                // sleep: nobody tells when it is.
                tokio::time::sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}

fn unix_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Where posted messages go.
struct Publisher {
    sender: mpsc::Sender<Message>,
    qos: i8,
}

async fn accept(socket: TcpListener, inbox: &Rc<RefCell<Inbox>>, publisher: &Rc<Publisher>) {
    let seats = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        match socket.accept().await {
            Ok((stream, _)) => {
                // Who comes when all places are taken may come again.
                let Ok(seat) = seats.clone().try_acquire_owned() else { continue };
                let (inbox, publisher) = (inbox.clone(), publisher.clone());
                tokio::task::spawn_local(async move {
                    // What is left of it then has been used for long enough.
                    let _ = tokio::time::timeout(MAX_LIFE, serve(&inbox, &publisher, stream)).await;
                    drop(seat);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                // sleep: nobody is told when there are descriptors again.
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn serve(inbox: &RefCell<Inbox>, publisher: &Publisher, stream: TcpStream) {
    let service = service_fn(|request: Request<Incoming>| async move {
        Ok::<_, std::convert::Infallible>(answer(inbox, publisher, request).await)
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = served.await {
        tracing::debug!(%error, "a connection of a program broke");
    }
}

type Answer = Response<Full<Bytes>>;

async fn answer(
    inbox: &RefCell<Inbox>,
    publisher: &Publisher,
    request: Request<Incoming>,
) -> Answer {
    if let Err((status, why)) = proxy::admin::check_host(request.uri(), request.headers()) {
        return line(status, why);
    }
    match (request.method(), request.uri().path()) {
        (&Method::POST, "/messages") => post(publisher, request).await,
        (&Method::GET, "/inbox") => match page(request.uri().query().unwrap_or_default()) {
            Ok((after, limit)) => said(&inbox.borrow().page(after, limit)),
            Err(why) => line(StatusCode::BAD_REQUEST, &why),
        },
        (&Method::GET, "/status") => said(&inbox.borrow().status()),
        (_, "/messages" | "/inbox" | "/status") => {
            line(StatusCode::METHOD_NOT_ALLOWED, "POST /messages, GET /inbox and GET /status")
        }
        _ => line(StatusCode::NOT_FOUND, "there are /messages, /inbox and /status"),
    }
}

async fn post(publisher: &Publisher, request: Request<Incoming>) -> Answer {
    let content = match Limited::new(request.into_body(), MAX_CONTENT_BYTES).collect().await {
        Ok(content) => content.to_bytes(),
        Err(_) => {
            let why = format!("the content is over {MAX_CONTENT_BYTES} bytes, or broke off");
            return line(StatusCode::PAYLOAD_TOO_LARGE, &why);
        }
    };
    let message = match read_draft(&content) {
        Ok(message) => Message { qos: publisher.qos, ..message },
        Err(why) => return line(StatusCode::BAD_REQUEST, &why),
    };
    match publisher.sender.try_send(message) {
        Ok(()) => {
            let mut answer = said(&json!({}));
            *answer.status_mut() = StatusCode::ACCEPTED;
            answer
        }
        Err(_) => {
            let why = format!("{MAX_WAITING} messages wait already: try again later");
            line(StatusCode::SERVICE_UNAVAILABLE, &why)
        }
    }
}

/// `after` and `limit` of a query.
fn page(query: &str) -> Result<(u64, usize), String> {
    let (mut after, mut limit) = (0, MAX_LIMIT as u64);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let number = || value.parse().map_err(|_| format!("{name} is a whole number"));
        match name {
            "after" => after = number()?,
            "limit" => limit = number()?,
            _ => return Err("there are after and limit".to_owned()),
        }
    }
    if !(1..=MAX_LIMIT as u64).contains(&limit) {
        return Err(format!("limit is 1 to {MAX_LIMIT}"));
    }
    Ok((after, usize::try_from(limit).unwrap_or(MAX_LIMIT)))
}

fn said(value: &Value) -> Answer {
    typed(StatusCode::OK, "application/json", value.to_string())
}

fn line(status: StatusCode, why: &str) -> Answer {
    typed(status, "text/plain", format!("{}\n", why.trim_end()))
}

fn typed(status: StatusCode, kind: &'static str, text: String) -> Answer {
    let mut answer = Response::new(Full::from(text));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    // It is of the moment.
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(topic: &str, bytes: usize) -> Message {
        Message { topic: topic.to_owned(), payload: vec![b'x'; bytes].into(), ..Message::default() }
    }

    #[test]
    fn what_came_is_given_out_in_pages() {
        let mut inbox = Inbox::default();
        for number in 1..=5 {
            inbox.take(message(&format!("t{number}"), 1), f64::from(number));
        }
        let page = inbox.page(0, 2);
        assert_eq!(
            (page["more"].clone(), page["messages"][1]["number"].clone()),
            (true.into(), 2.into())
        );
        let page = inbox.page(2, 10);
        assert_eq!(page["messages"].as_array().unwrap().len(), 3);
        assert_eq!(
            (page["more"].clone(), page["messages"][0]["topic"].clone()),
            (false.into(), "t3".into())
        );
        assert_eq!(page["messages"][0]["arrived_unix_s"], 3.0);
        assert_eq!(inbox.page(5, 10)["messages"].as_array().unwrap().len(), 0);
    }

    #[test]
    fn the_oldest_goes_beyond_the_bound() {
        let mut inbox = Inbox::default();
        for _ in 0..4 {
            inbox.take(message("t", MAX_KEPT_BYTES / 3), 0.0);
        }
        assert_eq!((inbox.kept.len(), inbox.dropped, inbox.last), (2, 2, 4));
        assert_eq!(inbox.kept_bytes, 2 * (MAX_KEPT_BYTES / 3 + 1));
        assert_eq!(inbox.page(0, 10)["messages"][0]["number"], 3);
    }

    #[test]
    fn a_publication_is_read_and_what_is_wrong_is_named() {
        let read = read_draft(br#"{"topic": "a", "payload": "b", "content_type": null}"#).unwrap();
        assert_eq!(
            (read.topic.as_str(), &read.payload[..], read.content_type),
            ("a", &b"b"[..], None)
        );
        for (wrong, word) in [
            ("[]", "no object"),
            ("{", "EOF"),
            (r#"{"topic": "a"}"#, "'payload' is missing"),
            (r#"{"topic": 1, "payload": ""}"#, "'topic' is no text"),
            (r#"{"topic": "a", "payload": "", "qos": 1}"#, "'qos' is no field"),
        ] {
            let why = read_draft(wrong.as_bytes()).unwrap_err();
            assert!(why.contains(word) && !why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn a_query_is_numbers_within_bounds() {
        assert_eq!(page(""), Ok((0, MAX_LIMIT)));
        assert_eq!(page("after=7&limit=2"), Ok((7, 2)));
        for wrong in ["limit=0", "limit=1001", "after=-1", "x=1", "after"] {
            assert!(page(wrong).is_err(), "{wrong}");
        }
    }
}
