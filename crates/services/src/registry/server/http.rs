//! Requests over HTTP/1.1: UDDI, JSON, and the resource directory.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ALLOW, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::super::directory::{self, Lookup};
use super::super::document::{self, Asked};
use super::super::element::Element;
use super::super::links;
use super::super::model::{Key, Kind};
use super::super::refusal::{Reason, Refusal};
use super::super::uddi::{self, Call, Set};
use super::pairs;
use super::route::{Does, Found, find};
use super::shared::Shared;
use crate::http::MediaType;
use crate::messaging::shown;
use crate::patient::Patient;

/// How long the head of a request may take, and a connection be idle.
const HEAD_PATIENCE: Duration = Duration::from_secs(60);
/// How long the content of a request may take.
const CONTENT_PATIENCE: Duration = Duration::from_secs(60);
/// How long nothing of an answer may leave.
const WRITE_PATIENCE: Duration = Duration::from_secs(60);
/// Largest head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Largest content of a request, in bytes: 256 entities of a few kilobytes.
const MAX_CONTENT_BYTES: usize = 1 << 20;

const JSON: &str = "application/json";
const LINKS: &str = "application/link-format";
const SOAP: &str = "text/xml; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// The description of all resources.
pub(super) const OPENAPI: &str = include_str!("../schemas/openapi.json");

type Answer = Response<Full<Bytes>>;

/// Serves the requests of one connection.
pub(super) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    shared: Arc<Shared>,
    mut stopping: watch::Receiver<bool>,
) {
    let service = service_fn(|request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(answer(&shared, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(Patient::new(stream, WRITE_PATIENCE)), service);
    let mut connection = std::pin::pin!(connection);
    let mut stopped = std::pin::pin!(super::ended(&mut stopping));
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

async fn answer(shared: &Shared, request: Request<Incoming>) -> Answer {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    let response = match find(parts.method.as_str(), path) {
        Found::Route(Does::Uddi(set), _) => soap(shared, set, &parts, body).await,
        Found::Route(does, id) => {
            let done = act(shared, does, id, &parts, body).await;
            done.unwrap_or_else(|refusal| refused(&refusal, None))
        }
        Found::OtherMethods(methods) => {
            let allow = methods.join(", ");
            let line = format!("{} has only {allow}", shown(path));
            refused(&Refusal::new(Reason::Method, line), Some(&allow))
        }
        Found::Nothing => {
            let line = format!(
                "no resource '{}' here; /openapi.json has those that there are",
                shown(path)
            );
            refused(&Refusal::new(Reason::NotFound, line), None)
        }
    };
    let (method, status) = (&parts.method, response.status().as_u16());
    tracing::debug!(%method, path, status, "answered");
    response
}

fn with_type(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

fn json_answer(status: StatusCode, value: &Value) -> Answer {
    with_type(status, JSON, format!("{value}\n"))
}

fn empty(status: StatusCode) -> Answer {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

/// A refusal: its line for a person.
fn refused(refusal: &Refusal, allow: Option<&str>) -> Answer {
    let status = StatusCode::from_u16(refusal.reason.status()).unwrap_or(StatusCode::BAD_REQUEST);
    let mut response = with_type(status, PLAIN, format!("{}\n", refusal.line));
    let headers = response.headers_mut();
    match refusal.reason {
        Reason::Busy => {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
        }
        Reason::AuthTokenRequired | Reason::AuthTokenExpired | Reason::UnknownUser => {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        _ => {}
    }
    if let Some(allow) = allow.and_then(|allow| HeaderValue::from_str(allow).ok()) {
        headers.insert(ALLOW, allow);
    }
    response
}

/// What a request does that is no message of SOAP; the answer.
async fn act(
    shared: &Shared,
    does: Does,
    id: &str,
    parts: &Parts,
    body: Incoming,
) -> Result<Answer, Refusal> {
    let query = pairs::of_query(parts.uri.query().unwrap_or_default());
    let key = directory::key(&pairs::decoded(id)?);
    Ok(match does {
        Does::LogIn => log_in(shared, &content(body).await?).await?,
        Does::LogOut => {
            shared.users.discard(shared.now(), &bearer(&parts.headers)?)?;
            empty(StatusCode::NO_CONTENT)
        }
        Does::List => {
            let asked = Asked::of(&query?)?;
            let list = shared.look(|core, now| document::list(core, now, &asked));
            json_answer(StatusCode::OK, &list)
        }
        Does::Publish => save(shared, parts, body, None).await?,
        Does::Replace => save(shared, parts, body, Some(key)).await?,
        Does::Show => show(shared, &key)?,
        Does::Renew => {
            let owner = publisher(shared, &parts.headers)?;
            shared.publish(&owner, |publication, _| publication.renew(&key, None)).await?;
            empty(StatusCode::NO_CONTENT)
        }
        Does::Remove => {
            let owner = publisher(shared, &parts.headers)?;
            let delete = shared.publish(&owner, |all, _| all.delete(Kind::Service, &key));
            delete.await?;
            empty(StatusCode::NO_CONTENT)
        }
        Does::About => about(shared),
        Does::OpenApi => with_type(StatusCode::OK, JSON, OPENAPI),
        Does::Wsdl(_) if parts.uri.query() == Some(uddi::LANGUAGE_QUERY) => {
            with_type(StatusCode::OK, SOAP, uddi::LANGUAGE_SCHEMA)
        }
        Does::Wsdl(set) => {
            let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
            let address = format!("http://{}{}", host.unwrap_or("localhost"), parts.uri.path());
            with_type(StatusCode::OK, SOAP, uddi::wsdl(set, &address))
        }
        Does::Register => register(shared, parts, &query?, body).await?,
        Does::Update => {
            let owner = publisher(shared, &parts.headers)?;
            let query = query?;
            if !content(body).await?.is_empty() {
                return Err(Refusal::malformed("an update has no content; register links anew"));
            }
            let update =
                shared.publish(&owner, |all, now| directory::update(all, now, &key, &query));
            update.await?;
            empty(StatusCode::NO_CONTENT)
        }
        Does::Unregister => {
            let owner = publisher(shared, &parts.headers)?;
            shared.publish(&owner, |all, _| all.delete(Kind::Service, &key)).await?;
            empty(StatusCode::NO_CONTENT)
        }
        Does::ShowLinks => {
            let links = shared.look(|core, now| {
                let entity = core.want(now, Kind::Service, &key)?;
                Ok(entity.service().map(directory::service_links).unwrap_or_default())
            })?;
            with_type(StatusCode::OK, LINKS, links::write(&links))
        }
        Does::LookUp(lookup) => look_up(shared, lookup, &query?)?,
        Does::WellKnown => with_type(StatusCode::OK, LINKS, links::write(&directory::own_links())),
        Does::Uddi(_) => empty(StatusCode::NOT_FOUND),
    })
}

fn look_up(shared: &Shared, lookup: Lookup, query: &directory::Pairs) -> Result<Answer, Refusal> {
    let found = shared.look(|core, now| directory::look_up(core, now, lookup, query))?;
    Ok(with_type(StatusCode::OK, LINKS, links::write(&found)))
}

fn about(shared: &Shared) -> Answer {
    let counts = shared
        .look(|core, _| [Kind::Business, Kind::Service, Kind::TModel].map(|kind| core.count(kind)));
    let [businesses, services, tmodels] = counts;
    let about = json!({
        "businesses": businesses,
        "services": services,
        "tmodels": tmodels,
        "token_life_s": shared.users.life().as_secs(),
    });
    json_answer(StatusCode::OK, &about)
}

fn show(shared: &Shared, key: &Key) -> Result<Answer, Refusal> {
    let shown = shared.look(|core, now| {
        let entity = core.want(now, Kind::Service, key)?;
        Ok(entity.service().map(|service| document::shown_service(entity, service, now)))
    })?;
    Ok(json_answer(StatusCode::OK, &shown.unwrap_or_default()))
}

async fn log_in(shared: &Shared, content: &[u8]) -> Result<Answer, Refusal> {
    let value: Value =
        serde_json::from_slice(content).map_err(|error| Refusal::malformed(error.to_string()))?;
    let text = |name: &str| {
        let text = value.get(name).and_then(Value::as_str);
        text.ok_or_else(|| Refusal::malformed(format!("{name} is missing, or no text")))
    };
    let (user, password) = (text("user")?, text("password")?);
    let token = shared.users.log_in(shared.now(), user, password).await?;
    let life = shared.users.life().as_secs();
    Ok(json_answer(StatusCode::CREATED, &json!({ "token": token, "expires_in_s": life })))
}

/// The token of a request (RFC 6750 §2.1).
fn bearer(headers: &HeaderMap) -> Result<String, Refusal> {
    let value = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = value
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    token.map(|(_, token)| token.trim().to_owned()).ok_or_else(|| {
        let line = "no token; POST user and password to /tokens, and send what comes as \
                    Authorization: Bearer";
        Refusal::new(Reason::AuthTokenRequired, line)
    })
}

fn publisher(shared: &Shared, headers: &HeaderMap) -> Result<Arc<str>, Refusal> {
    shared.users.of_token(shared.now(), &bearer(headers)?)
}

async fn save(
    shared: &Shared,
    parts: &Parts,
    body: Incoming,
    key: Option<Key>,
) -> Result<Answer, Refusal> {
    let owner = publisher(shared, &parts.headers)?;
    of_media(&parts.headers, JSON)?;
    let said = document::parse(&content(body).await?)?;
    let is_new = key.is_none();
    let key = shared.publish(&owner, |all, now| document::save(all, now, key, &said)).await?;
    let id = directory::id(&key);
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = json_answer(status, &json!({ "id": id }));
    if let Ok(location) = HeaderValue::from_str(&format!("/services/{id}")) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

async fn register(
    shared: &Shared,
    parts: &Parts,
    query: &directory::Pairs,
    body: Incoming,
) -> Result<Answer, Refusal> {
    let owner = publisher(shared, &parts.headers)?;
    of_media(&parts.headers, LINKS)?;
    let text = text(content(body).await?)?;
    let links = links::parse(&text).map_err(Refusal::malformed)?;
    let change =
        shared.publish(&owner, |all, now| directory::register(all, now, query, &links, None));
    let (key, _) = change.await?;
    let mut response = empty(StatusCode::CREATED);
    if let Ok(location) = HeaderValue::from_str(&format!("/rd/{}", directory::id(&key))) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

fn of_media(headers: &HeaderMap, wanted: &'static str) -> Result<(), Refusal> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let given = given.and_then(MediaType::parse).map(|media| media.essence);
    if given.as_deref() == Some(wanted) {
        return Ok(());
    }
    let given = given.unwrap_or_else(|| "nothing".to_owned());
    let line = format!("the content is {}; send {wanted}", shown(&given));
    Err(Refusal::new(Reason::MediaType, line))
}

/// Answers a message of SOAP.
async fn soap(shared: &Shared, set: Set, parts: &Parts, body: Incoming) -> Answer {
    let done = async {
        of_media(&parts.headers, "text/xml")?;
        let text = text(content(body).await?)?;
        let request = uddi::request(&text)?;
        Ok::<_, uddi::Fault>(call(shared, set, &request).await?)
    };
    match done.await {
        Ok(message) => with_type(StatusCode::OK, SOAP, uddi::response(&message)),
        // SOAP 1.1 §6.2 has this status for all faults.
        Err(fault) => match fault.http_only() {
            Some(refusal) => refused(refusal, None),
            None => with_type(StatusCode::INTERNAL_SERVER_ERROR, SOAP, uddi::fault(&fault)),
        },
    }
}

async fn call(shared: &Shared, set: Set, request: &Element) -> Result<uddi::Answer, Refusal> {
    let call = Call::of(&request.name)?;
    if !set.has(&request.name) {
        let line = format!("{} is of another API set; /openapi.json says where", request.name);
        return Err(Refusal::malformed(line));
    }
    let token = request.child("authInfo").map(|info| info.text.trim());
    match call {
        Call::Inquiry => shared.look(|core, now| uddi::inquire(core, now, request)),
        Call::GetAuthToken => {
            let of = |name: &str| request.attribute(name).unwrap_or_default();
            let token = shared.users.log_in(shared.now(), of("userID"), of("cred")).await?;
            Ok(uddi::token(&token))
        }
        Call::DiscardAuthToken => {
            shared.users.discard(shared.now(), token.unwrap_or_default())?;
            Ok(String::new())
        }
        Call::Publication => {
            let owner = shared.users.of_token(shared.now(), token.unwrap_or_default())?;
            shared.publish(&owner, |all, now| uddi::publish(all, now, request)).await
        }
    }
}

fn text(content: Bytes) -> Result<String, Refusal> {
    let content = String::from_utf8(content.into());
    content.map_err(|error| Refusal::malformed(format!("the content is not UTF-8: {error}")))
}

fn too_large() -> Refusal {
    let line = format!("the content is over {MAX_CONTENT_BYTES} bytes; send less at once");
    Refusal::new(Reason::MessageTooLarge, line)
}

/// The content of a request within its bounds.
async fn content(body: Incoming) -> Result<Bytes, Refusal> {
    if body.size_hint().lower() > MAX_CONTENT_BYTES as u64 {
        return Err(too_large());
    }
    let collected = Limited::new(body, MAX_CONTENT_BYTES).collect();
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
