//! HTTP of WS-Notification: requests that come.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use broker::{Answer, Asked, Input};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::moving::{NoBody, collect};
use crate::owner::Owner;

/// Longest body of a request or an answer, in bytes.
const MAX_BODY_BYTES: usize = 4 << 20;
/// How long the head of a request may take.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
/// How long a body may take until it comes, and the broker's answer, which may wait for the store.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);

/// Serves the requests of one connection, which is over TLS or not.
pub(crate) async fn run(
    owner: &Rc<Owner>,
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    is_secure: bool,
    peer: SocketAddr,
) {
    let service = service_fn(|request| {
        let owner = owner.clone();
        async move { answer(&owner, is_secure, request).await }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = served.await {
        tracing::debug!(%peer, %error, "a connection of HTTP broke");
    }
}

async fn answer(
    owner: &Rc<Owner>,
    is_secure: bool,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, hyper::http::Error> {
    let plain = |status: StatusCode, what: &str| {
        Response::builder()
            .status(status)
            .header(header::CONTENT_TYPE, "text/plain")
            .body(Full::from(format!("{what}\n")))
    };
    let is_get = request.method() == Method::GET;
    if !is_get && request.method() != Method::POST {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and POST");
    }
    let field = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let Ok(user) = owner.user(field(header::AUTHORIZATION)).await else {
        return Response::builder()
            .status(StatusCode::UNAUTHORIZED)
            .header(header::WWW_AUTHENTICATE, "Basic realm=\"longwire\"")
            .body(Full::default());
    };
    let content_type = field(header::CONTENT_TYPE).map(str::to_owned);
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str()).to_owned();
    let body = match collect(request.into_body(), MAX_BODY_BYTES, ANSWER_PATIENCE).await {
        Ok(body) => body,
        Err(NoBody::TooLong) => {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, "the body is over 4 MiB");
        }
        Err(NoBody::TooSlow) => {
            return plain(StatusCode::REQUEST_TIMEOUT, "the body comes below 256 bytes a second");
        }
    };
    let (id, answered) = owner.expect_answer();
    owner.input(Input::Asked(Asked { id, is_get, is_secure, target, content_type, body, user }));
    match tokio::time::timeout(ANSWER_PATIENCE, answered).await {
        Ok(Ok(answer)) => response(answer),
        _ => {
            owner.forget_answer(id);
            plain(StatusCode::SERVICE_UNAVAILABLE, "the store cannot be written")
        }
    }
}

fn response(answer: Answer) -> Result<Response<Full<Bytes>>, hyper::http::Error> {
    let mut response = Response::builder().status(answer.status);
    if let Some(content_type) = &answer.content_type {
        response = response.header(header::CONTENT_TYPE, content_type);
    }
    response.body(Full::from(answer.body))
}
