//! From a request to its answer, without a socket in sight.

use bytes::Bytes;
use http::header::{
    ALLOW, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, VARY,
};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, Method, Response, StatusCode, Version};

use super::site::Site;
use super::soap;
use crate::http::{Coding, accepts_media, choose_coding};
use crate::server::Compression;
use crate::tracks::{Document, FILE_COUNT};

/// What the service's page at `/` says.
const INDEX: &str = "\
Friendly-force tracks: 22 NFFI 1.3 messages.

GET  /rest/xml/N     message N (1 to 22) as XML
GET  /rest/json/N    the same elements as JSON
POST /soap           operation GetTrack, SOAP 1.1 or SOAP 1.2
GET  /soap?wsdl      its description
";

/// Media type of errors, of the index and of hints: text for a person.
pub(super) const PLAIN: &str = "text/plain; charset=utf-8";

/// What is at a path.
enum Resource {
    Index,
    Wsdl,
    Soap,
    Xml(usize),
    Json(usize),
}

/// Answers one request. `body` is what a POST to `/soap` carried, and empty for any other.
pub(super) fn answer(site: &Site, request: &Parts, body: &[u8]) -> Response<Bytes> {
    let mut response = match host(request) {
        Err(line) => plain(StatusCode::BAD_REQUEST, line),
        Ok(host) => match resource(request) {
            None => plain(StatusCode::NOT_FOUND, "no such resource; see / for those that exist"),
            Some(resource) => respond(site, request, &resource, &host, body),
        },
    };
    let length = HeaderValue::from(response.body().len());
    response.headers_mut().insert(CONTENT_LENGTH, length);
    if request.method == Method::HEAD {
        // RFC 9110 §9.3.2: the fields of a GET, Content-Length among them, and no content.
        *response.body_mut() = Bytes::new();
    }
    response
}

/// Whether the answer depends on the request's content.
pub(super) fn wants_body(request: &Parts) -> bool {
    request.method == Method::POST && matches!(resource(request), Some(Resource::Soap))
}

/// An error or a hint for a person.
pub(super) fn plain(status: StatusCode, line: &str) -> Response<Bytes> {
    with_type(status, PLAIN, format!("{line}\n").into())
}

/// An answer of one media type.
pub(super) fn with_type(
    status: StatusCode,
    media_type: &'static str,
    body: Bytes,
) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// A document, by default in the coding that the client likes best.
pub(super) fn document(
    site: &Site,
    request: &HeaderMap,
    document: &Document,
    media_type: &'static str,
) -> Response<Bytes> {
    let coding = match site.settings.compression {
        Compression::Off => Some(Coding::Identity),
        Compression::ByRequest => choose_coding(request),
        Compression::Forced => Some(Coding::Gzip),
    };
    let mut response = match coding {
        None => {
            let line = "only gzip and identity can be had; allow one of them in Accept-Encoding";
            plain(StatusCode::NOT_ACCEPTABLE, line)
        }
        Some(Coding::Identity) => with_type(StatusCode::OK, media_type, document.plain()),
        Some(Coding::Gzip) => with_type(StatusCode::OK, media_type, document.gzip()),
    };
    let headers = response.headers_mut();
    if coding == Some(Coding::Gzip) {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if site.settings.compression == Compression::ByRequest {
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    response
}

fn respond(
    site: &Site,
    request: &Parts,
    resource: &Resource,
    host: &str,
    body: &[u8],
) -> Response<Bytes> {
    let allowed = match resource {
        Resource::Soap => "POST",
        _ => "GET, HEAD",
    };
    if !allowed.split(", ").any(|method| method == request.method.as_str()) {
        return wrong_method(&request.method, allowed);
    }
    let of_file = |form: Option<&Document>, media_type, accept| match form {
        None => {
            let line = format!("no such track; the numbers are 1 to {FILE_COUNT}");
            plain(StatusCode::NOT_FOUND, &line)
        }
        Some(form) => negotiated(site, &request.headers, form, media_type, accept),
    };
    match resource {
        Resource::Index => {
            negotiated(site, &request.headers, &Document::new(INDEX), PLAIN, "text/plain")
        }
        Resource::Wsdl => {
            let wsdl = crate::tracks::soap::wsdl(&format!("http://{host}/soap"));
            negotiated(
                site,
                &request.headers,
                &Document::new(wsdl),
                "text/xml; charset=utf-8",
                "text/xml",
            )
        }
        Resource::Soap => soap::answer(site, &request.headers, body),
        Resource::Xml(number) => {
            let form = site.catalogue.xml(*number);
            of_file(form, "application/xml; charset=utf-8", "application/xml")
        }
        // RFC 8259 §11: JSON has no charset parameter.
        Resource::Json(number) => {
            of_file(site.catalogue.json(*number), "application/json", "application/json")
        }
    }
}

fn negotiated(
    site: &Site,
    request: &HeaderMap,
    content: &Document,
    media_type: &'static str,
    essence: &str,
) -> Response<Bytes> {
    let mut response = if accepts_media(request, essence) {
        document(site, request, content, media_type)
    } else {
        let line = format!("this is {essence} only; allow that in Accept");
        plain(StatusCode::NOT_ACCEPTABLE, &line)
    };
    let vary = match site.settings.compression {
        Compression::ByRequest => "Accept, Accept-Encoding",
        Compression::Off | Compression::Forced => "Accept",
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static(vary));
    response
}

/// RFC 9110 §15.5.6, and §15.6.2 for a method that it does not define.
fn wrong_method(method: &Method, allowed: &'static str) -> Response<Bytes> {
    const KNOWN: [&str; 9] =
        ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
    if !KNOWN.contains(&method.as_str()) {
        return plain(StatusCode::NOT_IMPLEMENTED, "no such method; see / for what there is");
    }
    let line = format!("not with this method; use {allowed}");
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, &line);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

fn resource(request: &Parts) -> Option<Resource> {
    let (path, query) = (request.uri.path(), request.uri.query());
    match (path, query) {
        ("/", _) => return Some(Resource::Index),
        ("/soap", Some(query)) if query.eq_ignore_ascii_case("wsdl") => {
            return Some(Resource::Wsdl);
        }
        ("/soap", _) => return Some(Resource::Soap),
        _ => {}
    }
    let number =
        |text: &str| text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
    if let Some(text) = path.strip_prefix("/rest/xml/") {
        return number(text).map(Resource::Xml);
    }
    path.strip_prefix("/rest/json/").and_then(number).map(Resource::Json)
}

/// The authority that the client asked: of an absolute target, else of `Host`, which HTTP/1.1
/// demands once (RFC 9112 §3.2).
fn host(request: &Parts) -> Result<String, &'static str> {
    let mut lines = request.headers.get_all(HOST).iter();
    let host = match (lines.next(), lines.next()) {
        (Some(_), Some(_)) => return Err("more than one Host; send one"),
        (Some(line), None) => {
            let text = line.to_str().ok().filter(|text| !text.is_empty());
            let authority = text.and_then(|text| text.parse::<Authority>().ok());
            Some(authority.ok_or("malformed Host; send the host and port of the URL")?)
        }
        (None, _) if request.version == Version::HTTP_11 => return Err("no Host; send one"),
        (None, _) => None,
    };
    let authority = request.uri.authority().cloned().or(host);
    Ok(authority.map_or_else(|| "localhost".to_owned(), |authority| authority.to_string()))
}
