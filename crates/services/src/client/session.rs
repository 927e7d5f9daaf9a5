//! The exchanges of one client, and the connection that lasts from one to the next.

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, HOST, HeaderValue, USER_AGENT};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use record::result::Exchange;
use tokio::time::{Instant, timeout_at};

use super::connection::Connection;
use super::content::Content;
use super::{Answer, Config, Item};

/// One client's exchanges, in order.
pub(super) struct Session<'a> {
    config: &'a Config,
    start: Instant,
    budget_end: Option<Instant>,
    connection: Option<Connection>,
    congestion: Option<String>,
    /// Of connections that are closed.
    retransmits: u64,
    /// Opened for the exchange under way.
    opened: u32,
}

/// How far an exchange came: what is known of it even when it is cut off.
#[derive(Default)]
struct Reached {
    status: Option<u16>,
    body_bytes: u64,
    end: Option<Instant>,
}

impl<'a> Session<'a> {
    pub(super) fn new(config: &'a Config, start: Instant, budget_end: Option<Instant>) -> Self {
        let (connection, congestion) = (None, None);
        Self { config, start, budget_end, connection, congestion, retransmits: 0, opened: 0 }
    }

    /// Congestion control of the last connection, and all segments sent again.
    pub(super) fn finish(mut self) -> (Option<String>, u64) {
        self.close();
        (self.congestion.take(), self.retransmits)
    }

    /// One exchange, with a connection before it where one is needed.
    pub(super) async fn exchange(&mut self, item: &Item) -> Exchange {
        let begin = Instant::now();
        let mut exchange = Exchange {
            name: item.name.clone(),
            start_s: (begin - self.start).as_secs_f64(),
            elapsed_s: 0.0,
            body_bytes: 0,
            status: None,
            error: None,
            censored: true,
            connections: 0,
        };
        if self.budget_end.is_some_and(|end| end <= begin) {
            return exchange;
        }
        if self.config.new_connection {
            self.close();
        }
        let timeout = begin + self.config.timeout;
        let deadline = self.budget_end.map_or(timeout, |end| end.min(timeout));
        let mut reached = Reached::default();
        self.opened = 0;
        let outcome = timeout_at(deadline, self.ask(item, &mut reached)).await;
        let end = reached.end.unwrap_or_else(Instant::now);
        exchange.elapsed_s = (end - begin).as_secs_f64();
        exchange.status = reached.status;
        exchange.body_bytes = reached.body_bytes;
        exchange.connections = self.opened;
        if let Ok(outcome) = outcome {
            exchange.censored = false;
            let checked = outcome.and_then(|answer| (item.check)(&answer));
            exchange.error = checked.err();
        }
        if reached.end.is_none() || self.config.new_connection {
            // Whatever is under way there is not ours to wait for.
            self.close();
        }
        exchange
    }

    /// Sends and reads the whole answer; the error is one line.
    async fn ask(&mut self, item: &Item, reached: &mut Reached) -> Result<Answer, String> {
        let response = self.send(item).await?;
        let (head, mut body) = response.into_parts();
        reached.status = Some(head.status.as_u16());
        let mut content = Content::new(&head.headers, item.keep)?;
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|error| format!("the answer broke off: {}", cause(&error)))?;
            if let Some(piece) = frame.data_ref() {
                content.push(piece)?;
            }
        }
        reached.end = Some(Instant::now());
        let tally = content.finish()?;
        reached.body_bytes = tally.bytes;
        Ok(Answer { status: head.status, headers: head.headers, content: tally.kept })
    }

    /// Sends the request and awaits the answer's head.
    ///
    /// On a connection that was kept alive the server may have hung up just then. It is tried once
    /// more, on a new connection, when nothing was sent or the method is idempotent, and in no
    /// other case (RFC 9110 §9.2.2).
    async fn send(&mut self, item: &Item) -> Result<Response<Incoming>, String> {
        loop {
            let kept = self.connect(item).await?;
            let Some(connection) = &mut self.connection else {
                return Err("no connection".into());
            };
            let request = request(item, self.config)?;
            let mut failure = match connection.sender.try_send_request(request).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            self.close();
            let unsent = failure.take_message().is_some();
            let error = failure.into_error();
            let again = unsent || (item.method.is_idempotent() && !error.is_parse());
            if !(kept && again) {
                return Err(format!("no answer: {}", cause(&error)));
            }
        }
    }

    /// Makes sure of a connection; true when it is one that was kept alive.
    async fn connect(&mut self, item: &Item) -> Result<bool, String> {
        let peer = self.config.proxy.as_ref().unwrap_or(&item.target);
        if let Some(connection) = &mut self.connection {
            if connection.is_usable(peer).await {
                return Ok(true);
            }
            self.close();
        }
        let connection = Connection::open(peer, self.config.congestion.as_deref()).await?;
        self.opened += 1;
        self.congestion = connection.congestion();
        self.connection = Some(connection);
        Ok(false)
    }

    fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.retransmits += connection.retransmits();
        }
    }
}

fn request(item: &Item, config: &Config) -> Result<Request<Full<Bytes>>, String> {
    let target = match config.proxy {
        Some(_) => item.target.to_string(),
        None => item.target.path().to_owned(),
    };
    let mut request = Request::new(Full::new(item.body.clone()));
    *request.method_mut() = item.method.clone();
    let uri = target.parse().map_err(|error| format!("'{target}' is no request target: {error}"));
    *request.uri_mut() = uri?;
    let host = HeaderValue::from_str(item.target.authority());
    let headers = request.headers_mut();
    headers.insert(HOST, host.map_err(|error| format!("the host is no field value: {error}"))?);
    let agent = concat!("longwire/", env!("CARGO_PKG_VERSION"));
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    if config.gzip {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.extend(item.headers.clone());
    Ok(request)
}

/// An error with what caused it, on one line.
fn cause(error: &hyper::Error) -> String {
    let mut line = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        line = format!("{line}: {error}");
        source = error.source();
    }
    line.replace(['\r', '\n'], " ")
}
