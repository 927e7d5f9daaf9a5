//! From a request to its answer: admission first, then assets, pages and the API.

use http::header::{self, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde_json::Value;
use web::admission::{Admitted, Head};
use web::page;
use web::routes::BASE;

use crate::answer::Answer;
use crate::asked::Asked;
use crate::body::Content;
use crate::problem::{Problem, Result};
use crate::shared::Shared;
use crate::{api, pages};

/// Largest body of a request.
const MAX_REQUEST_BYTES: usize = 4 << 20;

pub(crate) async fn answer(shared: &Shared, request: Request<Incoming>) -> Response<Content> {
    let is_api = request.uri().path().starts_with(BASE);
    let answer = admitted(shared, request).await.unwrap_or_else(|problem| {
        if is_api { Answer::problem(&problem) } else { Answer::refusal(&problem) }
    });
    answer.into_response()
}

async fn admitted(shared: &Shared, request: Request<Incoming>) -> Result<Answer> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_string();
    let query = page::query(head.uri.query().unwrap_or_default());
    match admit(shared, &head, &query)? {
        Admitted::Exchange => return Ok(exchange(shared, &path, &query)),
        Admitted::Answer => {}
    }
    if let Some(asset) = web::assets::find(&path) {
        return Ok(Answer::asset(asset));
    }
    let is_reading = [Method::GET, Method::HEAD].contains(&head.method);
    let body = if is_reading { Value::Null } else { read(body).await? };
    let last_event = single(&head.headers, "last-event-id").map(str::to_string);
    let asked = Asked { method: head.method, path, query, last_event, body };
    if asked.path.starts_with(BASE) {
        return api::answer(shared, &asked).await;
    }
    if !is_reading {
        let detail = "pages are only read: changes go to /api/v1";
        return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail));
    }
    pages::page(shared, &asked).await
}

fn admit(
    shared: &Shared,
    head: &http::request::Parts,
    query: &[(String, String)],
) -> Result<Admitted> {
    let field = |name: &str| single(&head.headers, name);
    // The target's authority counts too (RFC 9112 §3.2.2); two that differ are none of ours.
    let (host, target) = (field("host"), head.uri.authority().map(|one| one.as_str()));
    let agree = target.is_none() || host.is_none() || host == target;
    let head = Head {
        method: head.method.as_str(),
        host: host.or(target).filter(|_| agree),
        origin: present(&head.headers, "origin"),
        fetch_site: present(&head.headers, "sec-fetch-site"),
        content_type: field("content-type"),
        cookie: field("cookie"),
        authorization: field("authorization"),
        token: page::parameter(query, "token"),
    };
    shared.policy.admit(&head).map_err(|refusal| {
        let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::FORBIDDEN);
        Problem::new(status, refusal.detail)
    })
}

/// The token goes into a cookie and out of the address.
fn exchange(shared: &Shared, path: &str, query: &[(String, String)]) -> Answer {
    let rest = query.iter().filter(|(key, _)| key != "token");
    let rest: Vec<String> = rest
        .map(|(key, value)| format!("{}={}", page::encoded(key), page::encoded(value)))
        .collect();
    // One slash: two would be the address of another host.
    let mut to = format!("/{}", path.trim_start_matches('/'));
    if !rest.is_empty() {
        to = format!("{to}?{}", rest.join("&"));
    }
    let mut answer = Answer::new(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "");
    let fields = [(header::LOCATION, to), (header::SET_COOKIE, shared.policy.set_cookie())];
    for (name, value) in fields {
        if let Ok(value) = HeaderValue::from_str(&value) {
            answer.extra.push((name, value));
        }
    }
    answer
}

/// A field that was sent once.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?;
    if all.next().is_some() { None } else { first.to_str().ok() }
}

/// A field that must not be there with another value: one that cannot be read is another.
fn present<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.contains_key(name).then(|| single(headers, name).unwrap_or("?"))
}

/// The body of a change: JSON.
async fn read(body: Incoming) -> Result<Value> {
    let whole = Limited::new(body, MAX_REQUEST_BYTES).collect().await.map_err(|_| {
        let detail = format!("the body is longer than {MAX_REQUEST_BYTES} B, or broke off");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    })?;
    let bytes = whole.to_bytes();
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, format!("no JSON: {error}")))
}
