//! One request to an origin, over a connection of the pool or a new one.

use std::error::Error as _;
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use relay::{Cause, CauseKind};
use tokio::net::TcpStream;

use super::body::{Lease, OriginBody};
use super::connect::Reach;
use super::pool::{Key, Pool};
use crate::flow::{AnyBody, Progress};
use crate::pattern::Target;

/// Largest head of an answer, in bytes; as much as may cross the link.
const MAX_HEAD_BYTES: usize = proto::bhttp::MAX_HEAD_BYTES;
/// Most fields of an answer.
const MAX_FIELDS: usize = proto::bhttp::MAX_FIELDS;

/// See the module.
pub(crate) struct Client {
    reach: Reach,
    pool: Pool,
    response_timeout: Duration,
}

/// A request on its way out.
pub(crate) struct Request<'a> {
    pub(crate) target: Target<'a>,
    pub(crate) message: http::Request<AnyBody>,
    /// Without a body, and harmless to repeat: it may go again when a connection of the pool turns
    /// out to be closed.
    pub(crate) repeatable: bool,
    /// When the request last moved: an origin's silence counts from there.
    pub(crate) progress: Progress,
}

type Failed = (hyper::Error, Option<http::Request<AnyBody>>);

impl Client {
    pub(crate) fn new(reach: Reach, response_timeout: Duration) -> Self {
        Self { reach, pool: Pool::default(), response_timeout }
    }

    /// A bare connection, for CONNECT.
    pub(crate) async fn connect(&self, target: &Target<'_>) -> Result<TcpStream, Cause> {
        self.reach.connect(target).await
    }

    /// Sends and waits for the head of the answer. The body of an answer 101 is to be upgraded.
    pub(crate) async fn send(
        &self,
        request: Request<'_>,
    ) -> Result<http::Response<OriginBody>, Cause> {
        let Request { target, mut message, repeatable, progress } = request;
        let anywhere = self.reach.check(&target)?;
        let scheme = target.scheme.unwrap_or("http").to_owned();
        let key = (scheme, target.host.to_ascii_lowercase(), target.port, anywhere);
        if let Some(sender) = self.pool.take(&key) {
            let spare = repeatable.then(|| without_body(&message));
            match self.attempt(sender, message, &key, &progress).await? {
                Ok(response) => return Ok(response),
                // The origin closed the connection while it was idle.
                Err((error, unsent)) => match unsent.or(spare) {
                    Some(again) => message = again,
                    None => return Err(failure(&error)),
                },
            }
        }
        let stream = self.reach.open(&target).await?;
        let (sender, connection) = http1::Builder::new()
            .max_header_size(MAX_HEAD_BYTES)
            .max_headers(MAX_FIELDS)
            .max_buf_size(MAX_HEAD_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| failure(&error))?;
        // Ends with the connection; its errors show in the answer too.
        tokio::spawn(connection.with_upgrades());
        let result = self.attempt(sender, message, &key, &progress).await?;
        result.map_err(|(error, _)| failure(&error))
    }

    async fn attempt(
        &self,
        mut sender: SendRequest<AnyBody>,
        message: http::Request<AnyBody>,
        key: &Key,
        progress: &Progress,
    ) -> Result<Result<http::Response<OriginBody>, Failed>, Cause> {
        let sending = async {
            if let Err(error) = sender.ready().await {
                return Err((error, Some(message)));
            }
            sender.try_send_request(message).await.map_err(|mut failed| {
                let unsent = failed.take_message();
                (failed.into_error(), unsent)
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
        let lease = || Lease { pool: self.pool.clone(), key: key.clone(), sender };
        Ok(result.map(|response: http::Response<Incoming>| {
            response.map(|incoming| OriginBody::new(incoming, lease()))
        }))
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

/// What hyper says, in one line.
pub(crate) fn failure(error: &hyper::Error) -> Cause {
    let why =
        error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
    let reason = if error.is_incomplete_message() {
        "the origin closed the connection before its answer was whole".to_owned()
    } else if error.is_parse() || error.is_parse_status() {
        format!("the origin's answer is not HTTP/1: {why}")
    } else {
        format!("the origin failed: {why}")
    };
    Cause { kind: CauseKind::OriginFailed, reason }
}
