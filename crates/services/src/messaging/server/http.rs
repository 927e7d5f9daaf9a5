//! Requests of clients and of other nodes over HTTP/1.1.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::answer::{self, Content};
use super::documents::{self, Part, which};
use super::owner::Handle;
use super::route::{Does, Found, Schema, find};
use super::{Face, NODE_FIELD};
use crate::messaging::forms::{Form, MAX_DOCUMENT_BYTES, SCHEMA, too_large};
use crate::messaging::machine::{Input, Reply, Which};
use crate::messaging::message::{Draft, MESSAGE, Transfer};
use crate::messaging::receipt::{RECEIPT, Returning};
use crate::messaging::refusal::{Reason, Refusal, shown};
use crate::patient::Patient;

/// How long the head of a request may take, and a connection be idle.
const HEAD_PATIENCE: Duration = Duration::from_secs(60);
/// How long the content of a request may take: on the slowest link a long message needs minutes.
const CONTENT_PATIENCE: Duration = Duration::from_secs(300);
/// How long nothing of an answer may leave: its reader is gone or does not read.
const WRITE_PATIENCE: Duration = Duration::from_secs(300);
/// Largest head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// The schema of JSON.
pub(super) const JSON_SCHEMA: &str = include_str!("../schemas/messaging.json");
/// The schema of CBOR (RFC 8610).
pub(super) const CDDL: &str = include_str!("../schemas/messaging.cddl");
/// The description of all resources.
pub(super) const OPENAPI: &str = include_str!("../schemas/openapi.json");

/// Serves the requests of one connection.
pub(super) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    face: Face,
    handle: Handle,
    mut stopping: watch::Receiver<bool>,
) {
    let service = service_fn(|request| {
        let handle = handle.clone();
        async move { Ok::<_, Infallible>(answer(&handle, face, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(Patient::new(stream, WRITE_PATIENCE)), service);
    let mut connection = std::pin::pin!(connection);
    // An error means that the service is gone: the end as well.
    let mut stopped =
        std::pin::pin!(async { stopping.wait_for(|&stopping| stopping).await.is_ok() });
    let mut is_draining = false;
    let ended = loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => break ended,
            _ = stopped.as_mut(), if !is_draining => {
                is_draining = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection broke");
    }
}

async fn answer(handle: &Handle, face: Face, request: Request<Incoming>) -> Response<Content> {
    let (parts, body) = request.into_parts();
    let mut response = match find(face, &parts.method, parts.uri.path()) {
        Found::Route(does, id) => {
            let done = act(handle, does, id, &parts, body).await;
            done.unwrap_or_else(|refusal| answer::refusal(&refusal, None))
        }
        Found::OtherMethods(methods) => {
            let allow = methods.join(", ");
            let line = format!("{} has only {allow}", shown(parts.uri.path()));
            answer::refusal(&Refusal::new(Reason::Method, line), Some(&allow))
        }
        Found::Nothing => {
            let line = format!(
                "no resource '{}' here; /openapi.json has those that there are",
                shown(parts.uri.path())
            );
            answer::refusal(&Refusal::new(Reason::Unknown, line), None)
        }
    };
    let (method, target, status) = (&parts.method, &parts.uri, response.status().as_u16());
    tracing::debug!(%method, %target, status, "answered");
    if let Ok(node) = HeaderValue::from_str(&handle.node) {
        response.headers_mut().insert(NODE_FIELD, node);
    }
    response
}

/// What a request does; the answer.
async fn act(
    handle: &Handle,
    does: Does,
    id: &str,
    parts: &Parts,
    body: Incoming,
) -> Result<Response<Content>, Refusal> {
    let query = parts.uri.query().unwrap_or_default();
    let part = |is_inbox| Part::parse(query, is_inbox).map_err(Refusal::malformed);
    let id = id.to_owned();
    Ok(match does {
        Does::Submit => {
            let record = document(&MESSAGE, parts, body).await?;
            let draft = Box::new(Draft::of(record)?);
            match handle.input(|token| Input::Submit { token, draft }).await? {
                Reply::Accepted { id, is_new } => answer::accepted(&id, is_new),
                _ => answer::empty(StatusCode::NO_CONTENT),
            }
        }
        Does::Transfer => {
            let transfer = Transfer::of(document(&MESSAGE, parts, body).await?)?;
            handle.input(|token| Input::Transfer { token, transfer }).await?;
            answer::empty(StatusCode::NO_CONTENT)
        }
        Does::Receipt => {
            let returning = Returning::of(document(&RECEIPT, parts, body).await?)?;
            handle.input(|token| Input::Receipt { token, returning }).await?;
            answer::empty(StatusCode::NO_CONTENT)
        }
        Does::MarkRead => {
            let which = which(id, query)?;
            handle.input(|token| Input::MarkRead { token, which }).await?;
            answer::empty(StatusCode::NO_CONTENT)
        }
        Does::Remove => {
            let which = which(id, query)?;
            handle.input(|token| Input::Remove { token, which }).await?;
            answer::empty(StatusCode::NO_CONTENT)
        }
        Does::ListInbox => {
            let part = part(true)?;
            let list = handle.look(move |machine| documents::inbox(machine, &part)).await?;
            answer::json(StatusCode::OK, &list.document(documents::arrived))
        }
        Does::ListOutbox => {
            let part = part(false)?;
            let list = handle.look(move |machine| documents::outbox(machine, &part)).await?;
            answer::json(StatusCode::OK, &list.document(|entry| documents::outgoing(entry, false)))
        }
        Does::ShowArrived => arrived(handle, which(id, query)?, parts).await?,
        Does::ShowOutgoing => outgoing(handle, id).await?,
        Does::Subscribe => answer::events(handle.follow(after(parts)?).await?),
        Does::ShowNode => node(handle).await?,
        Does::Schema(schema) => described(schema),
    })
}

async fn arrived(
    handle: &Handle,
    which: Which,
    parts: &Parts,
) -> Result<Response<Content>, Refusal> {
    let form = Form::acceptable(&parts.headers)?;
    let found =
        handle.look(move |machine| machine.find_arrived(&which).map(|entry| entry.message.clone()));
    let message = found.await??;
    let bytes = form.encode(&MESSAGE, &message.record(&[], &[]))?;
    Ok(answer::with_type(StatusCode::OK, form.media_type(), bytes))
}

async fn outgoing(handle: &Handle, id: String) -> Result<Response<Content>, Refusal> {
    let missing =
        Refusal::new(Reason::Unknown, format!("no message '{}' in the outbox", shown(&id)));
    let found = handle.look(move |machine| machine.find_outgoing(&id).cloned());
    let entry = found.await?.ok_or(missing)?;
    Ok(answer::json(StatusCode::OK, &documents::outgoing(&entry, true)))
}

async fn node(handle: &Handle) -> Result<Response<Content>, Refusal> {
    let sizes = handle.look(|machine| machine.sizes()).await?;
    let mut about = (*handle.about).clone();
    if let Some(members) = about.as_object_mut() {
        for (name, value) in [
            ("inbox", sizes.inbox),
            ("outbox", sizes.outbox),
            ("receipts", sizes.receipts),
            ("waiting", sizes.waiting),
        ] {
            members.insert(name.to_owned(), value.into());
        }
    }
    Ok(answer::json(StatusCode::OK, &about))
}

fn described(schema: Schema) -> Response<Content> {
    let (media_type, text) = match schema {
        Schema::Xsd => ("application/xml", SCHEMA),
        Schema::Json => ("application/schema+json", JSON_SCHEMA),
        Schema::Cddl => ("text/plain; charset=utf-8", CDDL),
        Schema::OpenApi => ("application/json", OPENAPI),
    };
    answer::with_type(StatusCode::OK, media_type, text)
}

/// After which message of the inbox a subscriber begins: what it says itself, or its browser where
/// it comes back. Without both it gets what comes from now on.
fn after(parts: &Parts) -> Result<u64, Refusal> {
    let last = parts.headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let query = parts.uri.query().unwrap_or_default();
    let asked = query.split('&').find_map(|pair| pair.strip_prefix("after="));
    match last.or(asked) {
        None => Ok(u64::MAX),
        Some(text) => text.parse().map_err(|_| {
            Refusal::malformed(format!("after: '{}' is no number of a message", shown(text)))
        }),
    }
}

/// The document that a request has.
async fn document(
    layout: &crate::messaging::fields::Layout,
    parts: &Parts,
    body: Incoming,
) -> Result<crate::messaging::fields::Record, Refusal> {
    let form = Form::of_content(&parts.headers)?;
    form.decode(layout, &content(body).await?)
}

/// The content of a request within its bounds.
async fn content(body: Incoming) -> Result<Bytes, Refusal> {
    if body.size_hint().lower() > MAX_DOCUMENT_BYTES as u64 {
        return Err(too_large());
    }
    let collected = Limited::new(body, MAX_DOCUMENT_BYTES).collect();
    match tokio::time::timeout(CONTENT_PATIENCE, collected).await {
        Ok(Ok(content)) => Ok(content.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Refusal::malformed("the content ended early; send it whole")),
        Err(_) => {
            let line = format!("the content took over {CONTENT_PATIENCE:?}; send it sooner");
            Err(Refusal::new(Reason::Late, line))
        }
    }
}
