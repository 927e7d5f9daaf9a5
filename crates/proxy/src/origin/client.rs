//! One request to an origin, over a connection of the pool or a new one.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use proto::http1::Style;
use relay::{Cause, CauseKind};
use tokio::task::AbortHandle;

use super::body::{Lease, OriginBody};
use super::bound;
use super::coap::Asked as AskedOfCoap;
use super::connect::{ClientAt, Reach};
use super::pool::{Key, Owner, Pool};
use crate::fields;
use crate::flow::{AnyBody, Progress};
use crate::http1::{Asked, OnInterim, Shared, Talk, TalkStream, add_surplus};
use crate::pattern::{COAP, Target};

/// Largest head of an answer, in bytes; as much as may cross the link, and what is added to it.
const MAX_HEAD_BYTES: usize = proto::bhttp::MAX_HEAD_BYTES + 1024;

/// See the module.
pub(crate) struct Client {
    reach: Reach,
    pool: Pool,
    response_timeout: Duration,
}

/// A request on its way out.
pub(crate) struct Request<'a> {
    pub(crate) target: Target<'a>,
    pub(crate) client: ClientAt,
    pub(crate) message: http::Request<AnyBody>,
    /// Without a body, and harmless to repeat: it may go again when a connection of the pool turns
    /// out to be closed.
    pub(crate) repeatable: bool,
    /// When the request last moved: an origin's silence counts from there.
    pub(crate) progress: Progress,
    /// What is not left to the library.
    pub(crate) how: How,
}

/// How a request goes to its origin.
#[derive(Clone, Default)]
pub(crate) struct How {
    /// The client's connection, where the request is part of its authentication.
    pub(crate) owner: Option<Owner>,
    /// Case and order of the fields.
    pub(crate) style: Option<Style>,
    /// The path and query as they were sent, where the library's types cannot hold them.
    pub(crate) path: Option<Bytes>,
    /// What is done with interim answers.
    pub(crate) on_interim: Option<OnInterim>,
}

/// A connection to an origin.
pub(crate) struct Held {
    pub(crate) sender: SendRequest<AnyBody>,
    pub(crate) talk: Arc<Talk>,
    socket: Shared,
    task: Option<AbortHandle>,
}

impl Held {
    /// Whether it may serve another request: nothing has come on it since the last answer.
    pub(crate) fn is_fresh(&self) -> bool {
        !self.sender.is_closed() && !self.talk.is_tainted() && self.socket.is_quiet()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// The socket of a connection that is no longer one of HTTP.
    pub(crate) fn into_socket(mut self) -> Option<Shared> {
        self.task.take().map(|_| self.socket.clone())
    }
}

/// Without anybody who waits for it, a connection ends.
impl Drop for Held {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Why an attempt failed, and the request where nothing of it was sent.
type Failed = (Cause, Option<http::Request<AnyBody>>);

impl Client {
    pub(crate) fn new(reach: Reach, response_timeout: Duration) -> Self {
        Self { reach, pool: Pool::default(), response_timeout }
    }

    /// A bare connection, for CONNECT.
    pub(crate) async fn connect(
        &self,
        target: &Target<'_>,
        client: ClientAt,
    ) -> Result<Shared, Cause> {
        self.reach.connect(target, client).await
    }

    /// Whether a client may change to a protocol: by name, and never under a path of the allow list
    /// unasked, for inside another protocol any path may be asked for.
    pub(crate) fn check_upgrade(
        &self,
        target: &Target<'_>,
        client: ClientAt,
        protocol: &HeaderValue,
        listed: Option<&[String]>,
    ) -> Result<(), Cause> {
        let forbidden = |reason| Err(Cause { kind: CauseKind::Forbidden, reason });
        if fields::allowed_upgrade(protocol, listed).as_ref() != Some(protocol) {
            let shown = protocol.as_bytes().escape_ascii();
            let remedy = "name it in the service's upgrades";
            return forbidden(format!("nobody may change to '{shown}' there: {remedy}"));
        }
        let scope = self.reach.check(target, client)?;
        let anywhere = Target { path: None, ..target.clone() };
        // An entry that allows the host elsewhere than the path's does not allow it there.
        let everywhere = self.reach.check(&anywhere, client).is_ok_and(|other| other == scope);
        if listed.is_none() && !everywhere {
            let why = "inside another protocol any path may be asked for";
            let remedy = "allow the host without a path, or list the service's upgrades";
            return forbidden(format!("only a path is allowed there, and {why}: {remedy}"));
        }
        Ok(())
    }

    /// A client's connection has ended, and with it what is kept for it alone.
    pub(crate) fn client_ended(&self, owner: Owner) {
        self.pool.client_ended(owner);
    }

    /// Sends and waits for the head of the answer, which is among its extensions as it came. The
    /// body of an answer 101 is to be upgraded.
    pub(crate) async fn send(
        &self,
        request: Request<'_>,
    ) -> Result<http::Response<OriginBody>, Cause> {
        let Request { target, client, mut message, repeatable, progress, how } = request;
        if target.scheme == Some(COAP) {
            let sent = (message, progress, how.on_interim);
            return self.send_by_coap(&target, client, sent).await;
        }
        let scope = self.reach.check(&target, client)?;
        let key = Key {
            scheme: target.scheme.unwrap_or("http").to_owned(),
            host: target.host.to_ascii_lowercase(),
            port: target.port,
            scope,
            owner: how.owner,
        };
        tell_framing(&mut message);
        if let Some(held) = self.pool.take(&key) {
            let spare = repeatable.then(|| without_body(&message));
            match self.attempt(held, message, &key, &progress, &how).await? {
                Ok(response) => return Ok(response),
                // The origin closed the connection while it was idle.
                Err((cause, unsent)) => match unsent.or(spare) {
                    Some(again) => message = again,
                    None => return Err(cause),
                },
            }
        }
        let held = self.open(&target, client).await?;
        let result = self.attempt(held, message, &key, &progress, &how).await?;
        result.map_err(|(cause, _)| cause)
    }

    /// The same to an origin of CoAP.
    async fn send_by_coap(
        &self,
        target: &Target<'_>,
        client: ClientAt,
        (message, progress, on_interim): (http::Request<AnyBody>, Progress, Option<OnInterim>),
    ) -> Result<http::Response<OriginBody>, Cause> {
        let addresses = self.reach.datagrams(target, client).await?;
        let host = match target.host.contains(':') {
            true => format!("[{}]", target.host),
            false => target.host.to_owned(),
        };
        let uri = format!("{COAP}://{host}:{}{}", target.port, target.path.unwrap_or("/"));
        let patience = self.response_timeout;
        let asked =
            AskedOfCoap { uri, addresses, message, progress: &progress, patience, on_interim };
        Ok(self.reach.coap().send(asked).await?.map(OriginBody::of_other))
    }

    async fn open(&self, target: &Target<'_>, client: ClientAt) -> Result<Held, Cause> {
        let (stream, socket) = self.reach.open(target, client).await?;
        let talk = Arc::<Talk>::default();
        let stream = TalkStream::new(stream, Arc::clone(&talk));
        let (sender, connection) = http1::Builder::new()
            .max_header_size(MAX_HEAD_BYTES)
            .max_buf_size(MAX_HEAD_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| failure(&error, &talk))?;
        // Its errors show in the answer too.
        let task = tokio::spawn(connection.with_upgrades()).abort_handle();
        Ok(Held { sender, talk, socket, task: Some(task) })
    }

    async fn attempt(
        &self,
        mut held: Held,
        message: http::Request<AnyBody>,
        key: &Key,
        progress: &Progress,
        how: &How,
    ) -> Result<Result<http::Response<OriginBody>, Failed>, Cause> {
        let mut binds = bound::request_binds(message.headers());
        let offered: Vec<_> = message.headers().get_all(header::UPGRADE).iter().cloned().collect();
        held.talk.ask(Asked {
            method: Bytes::copy_from_slice(message.method().as_str().as_bytes()),
            style: how.style.clone(),
            target: how.path.clone(),
            on_interim: how.on_interim.clone(),
        });
        let talk = Arc::clone(&held.talk);
        let sender = &mut held.sender;
        let sending = async {
            if let Err(error) = sender.ready().await {
                return Err((failure(&error, &talk), Some(message)));
            }
            sender.try_send_request(message).await.map_err(|mut failed| {
                let unsent = failed.take_message();
                (failure(&failed.into_error(), &talk), unsent)
            })
        };
        let result = tokio::select! {
            result = sending => result,
            () = progress.stalled(self.response_timeout) => {
                let waited = self.response_timeout.as_secs_f64();
                let reason = format!("the origin did not answer within {waited} s");
                return Err(Cause { kind: CauseKind::OriginTimeout, reason });
            }
        };
        if let Ok(response) = &result
            && response.status() == http::StatusCode::SWITCHING_PROTOCOLS
            && !fields::changes_as_offered(&offered, response.headers())
        {
            let reason = "the origin changed to a protocol that nobody offered".to_owned();
            return Err(Cause { kind: CauseKind::OriginFailed, reason });
        }
        let mut result = result;
        if let Ok(response) = &mut result
            && let Some(head) = held.talk.take_head()
        {
            add_surplus(&head.surplus(), response.headers_mut())
                .map_err(|fault| Cause { kind: CauseKind::OriginFailed, reason: fault.reason })?;
            response.extensions_mut().insert(head);
        }
        Ok(result.map(|response: http::Response<Incoming>| {
            binds |= bound::answer_binds(response.headers());
            if binds && key.owner.is_none() {
                held.talk.taint();
            }
            let lease = Lease {
                pool: self.pool.clone(),
                key: key.clone(),
                held,
                progress: progress.clone(),
                patience: self.response_timeout,
            };
            let switches = response.status() == http::StatusCode::SWITCHING_PROTOCOLS;
            response.map(|incoming| OriginBody::new(incoming, lease, switches))
        }))
    }
}

/// A body of unknown length is chunked, whatever the method: the library leaves it out of those
/// that seldom have one.
fn tell_framing(message: &mut http::Request<AnyBody>) {
    let is_stated = message.headers().contains_key(header::CONTENT_LENGTH);
    let body = message.body();
    if !body.is_end_stream() && !is_stated && body.size_hint().exact().is_none() {
        let chunked = HeaderValue::from_static("chunked");
        message.headers_mut().insert(header::TRANSFER_ENCODING, chunked);
    }
}

/// The same head, with no body.
fn without_body(message: &http::Request<AnyBody>) -> http::Request<AnyBody> {
    let empty = Empty::new().map_err(|never| match never {}).boxed_unsync();
    let mut copy = http::Request::new(empty);
    *copy.method_mut() = message.method().clone();
    *copy.uri_mut() = message.uri().clone();
    *copy.headers_mut() = message.headers().clone();
    copy
}

/// What went wrong, in one line.
fn failure(error: &hyper::Error, talk: &Talk) -> Cause {
    let why =
        error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
    let reason = if let Some(fault) = talk.fault() {
        format!("the origin's answer is not HTTP/1: {fault}")
    } else if talk.is_tainted() && error.is_incomplete_message() {
        "the origin sent something that nobody had asked for".to_owned()
    } else if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        "the origin closed the connection before its answer was whole".to_owned()
    } else if error.is_parse() || error.is_parse_status() {
        format!("the origin's answer is not HTTP/1: {why}")
    } else {
        format!("the origin failed: {why}")
    };
    Cause { kind: CauseKind::OriginFailed, reason }
}
