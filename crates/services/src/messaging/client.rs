//! A client of a node: gives it messages, reads its inbox and outbox.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::forms::Form;
use super::message::{Draft, MESSAGE};
use super::refusal::shown;
use super::server::NODE_FIELD;
use crate::Error;
use crate::client::Target;

/// Longest answer that is read, in bytes: a thousand of the longest messages.
const MAX_ANSWER_BYTES: usize = 256 << 20;
/// Longest line of an event, in bytes: more than the longest message takes.
const MAX_LINE_BYTES: usize = 2 << 20;
/// How long a subscription may be silent: nodes give a sign of life each 15 s.
const SILENCE_PATIENCE: Duration = Duration::from_secs(60);

/// A client of one node.
#[derive(Clone, Debug)]
pub struct Client {
    /// The node's URL.
    pub url: Target,
    /// How long an answer may take.
    pub timeout: Duration,
}

/// A message that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Its id.
    pub id: String,
    /// Whether the node did not have it before.
    pub is_new: bool,
}

impl Client {
    /// Gives a message to the node, in a form.
    ///
    /// # Errors
    /// [`Error::Caller`] where a field is out of its bounds, [`Error::Peer`] where the node refuses
    /// it or does not answer.
    pub async fn send(&self, draft: &Draft, form: Form) -> Result<Accepted, Error> {
        draft.check().map_err(|refusal| Error::Caller(refusal.line))?;
        let bytes = form.encode(&MESSAGE, &draft.record());
        let bytes = bytes.map_err(|refusal| Error::Caller(refusal.line))?;
        let (status, answer) =
            self.ask(Method::POST, "/messages", Some(form.media_type()), bytes.into()).await?;
        let id = json(&answer)?["id"].as_str().map(str::to_owned);
        let id = id.ok_or_else(|| Error::Peer("the answer has no id".to_owned()))?;
        Ok(Accepted { id, is_new: status == 201 })
    }

    /// Reads a resource of the node, such as `/inbox`.
    ///
    /// # Errors
    /// [`Error::Peer`] where the node refuses it or does not answer.
    pub async fn get(&self, path: &str) -> Result<Value, Error> {
        json(&self.ask(Method::GET, path, None, Bytes::new()).await?.1)
    }

    /// Says that a message of the inbox was read; its originator where several gave the id.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn mark_read(&self, id: &str, originator: Option<&str>) -> Result<(), Error> {
        let path = format!("/inbox/{}/read{}", checked(id)?, query(originator)?);
        self.ask(Method::POST, &path, None, Bytes::new()).await.map(drop)
    }

    /// Says that a message of the inbox was read where it is still there; whether it was.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn mark_read_if_there(
        &self,
        id: &str,
        originator: Option<&str>,
    ) -> Result<bool, Error> {
        let path = format!("/inbox/{}/read{}", checked(id)?, query(originator)?);
        let exchange = async {
            let response = self.open(Method::POST, &path, None, Bytes::new()).await?;
            let is_of_node = response.headers().contains_key(NODE_FIELD);
            if is_of_node && response.status() == StatusCode::NOT_FOUND {
                return Ok(false);
            }
            self.accepted(response).await.map(|_| true)
        };
        timeout(self.timeout, exchange).await.map_err(|_| self.late())?
    }

    /// What became of a message.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn status(&self, id: &str) -> Result<Value, Error> {
        self.get(&format!("/outbox/{}", checked(id)?)).await
    }

    /// Takes a message out of the inbox.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn remove(&self, id: &str, originator: Option<&str>) -> Result<(), Error> {
        let path = format!("/inbox/{}{}", checked(id)?, query(originator)?);
        self.ask(Method::DELETE, &path, None, Bytes::new()).await.map(drop)
    }

    /// Messages of the inbox with numbers above `after` as they come, until `each` says that it is
    /// enough, or the node ends.
    ///
    /// # Errors
    /// [`Error::Peer`] where the node refuses it, does not answer or falls silent.
    pub async fn follow(
        &self,
        after: u64,
        mut each: impl FnMut(Value) -> bool,
    ) -> Result<(), Error> {
        let path = format!("/events?after={after}");
        let opening = self.open(Method::GET, &path, None, Bytes::new());
        let response = timeout(self.timeout, opening).await.map_err(|_| self.late())??;
        let response = self.accepted(response).await?;
        let (mut body, mut kept) = (response.into_body(), Vec::new());
        let mut is_message = false;
        loop {
            let silent = |_| Error::Peer("the node fell silent; try again".to_owned());
            let frame = timeout(SILENCE_PATIENCE, body.frame()).await.map_err(silent)?;
            let Some(frame) = frame else { return Ok(()) };
            let broken = |error| Error::Peer(format!("the node went away: {error}"));
            let Ok(piece) = frame.map_err(broken)?.into_data() else { continue };
            kept.extend_from_slice(&piece);
            while let Some(end) = kept.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = kept.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                let line = line.trim_end();
                if let Some(kind) = line.strip_prefix("event: ") {
                    is_message = kind == "message";
                } else if let Some(data) = line.strip_prefix("data: ").filter(|_| is_message)
                    && !each(json(data.as_bytes())?)
                {
                    return Ok(());
                }
            }
            if kept.len() > MAX_LINE_BYTES {
                return Err(Error::Limit(format!("an event is over {MAX_LINE_BYTES} bytes")));
            }
        }
    }

    /// One request; the status of a success, and its content.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        media_type: Option<&'static str>,
        content: Bytes,
    ) -> Result<(u16, Bytes), Error> {
        let exchange = async {
            let response = self.open(method, path, media_type, content).await?;
            let response = self.accepted(response).await?;
            Ok((response.status().as_u16(), read(response).await?))
        };
        timeout(self.timeout, exchange).await.map_err(|_| self.late())?
    }

    async fn open(
        &self,
        method: Method,
        path: &str,
        media_type: Option<&'static str>,
        content: Bytes,
    ) -> Result<Response<Incoming>, Error> {
        let (host, port) = (self.url.host(), self.url.port());
        let unreachable = |error| {
            let remedy = "start it (longwire serve messaging), or name another with --node";
            Error::Peer(format!("cannot connect to {host}:{port}: {error}; {remedy}"))
        };
        let stream = TcpStream::connect((host, port)).await.map_err(unreachable)?;
        let broken = |error: hyper::Error| Error::Peer(format!("no answer: {error}"));
        let (mut sender, driver) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        // Its errors reach whoever waits for the answer; it ends with the connection.
        tokio::spawn(async move {
            let _ = driver.await;
        });
        let target = self.url.join(path);
        let mut request = Request::builder().method(method).uri(target.path());
        request = request.header(HOST, target.authority()).header(ACCEPT, "*/*");
        if let Some(media_type) = media_type {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
        let request = request.body(Full::new(content));
        let request = request.map_err(|error| Error::Caller(format!("'{path}': {error}")))?;
        sender.send_request(request).await.map_err(broken)
    }

    /// Refuses an answer that is none of a node's, or no success.
    async fn accepted(&self, response: Response<Incoming>) -> Result<Response<Incoming>, Error> {
        let field = response.headers().get(NODE_FIELD).cloned();
        let Some(field) = field else {
            let (url, status) = (&self.url, response.status());
            return Err(Error::Peer(format!("{url} is no node of messaging: status {status}")));
        };
        if response.status().is_success() {
            return Ok(response);
        }
        let node = String::from_utf8_lossy(field.as_bytes()).into_owned();
        let content = read(response).await?;
        let line: String = String::from_utf8_lossy(&content).trim().replace(['\r', '\n'], " ");
        let line: String = line.chars().filter(|one| !one.is_control()).collect();
        Err(Error::Peer(format!("node '{}' refuses it: {line}", shown(&node))))
    }

    fn late(&self) -> Error {
        Error::Peer(format!("{} gives no answer within {:?}", self.url, self.timeout))
    }
}

async fn read(response: Response<Incoming>) -> Result<Bytes, Error> {
    let content = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
    let content = content.map_err(|error| Error::Peer(format!("the answer broke off: {error}")))?;
    Ok(content.to_bytes())
}

fn json(bytes: &[u8]) -> Result<Value, Error> {
    let broken = |error| Error::Peer(format!("the answer is no JSON: {error}"));
    serde_json::from_slice(bytes).map_err(broken)
}

/// An id that can stand in a path.
fn checked(id: &str) -> Result<&str, Error> {
    match super::fields::is_token(id) {
        true => Ok(id),
        false => Err(Error::Caller(format!("'{}' is no id of a message", shown(id)))),
    }
}

/// What names an originator in a query.
fn query(originator: Option<&str>) -> Result<String, Error> {
    let named = originator.map(|name| match super::fields::is_token(name) {
        true => Ok(format!("?originator={name}")),
        false => Err(Error::Caller(format!("'{}' is no name of a node", shown(name)))),
    });
    Ok(named.transpose()?.unwrap_or_default())
}
