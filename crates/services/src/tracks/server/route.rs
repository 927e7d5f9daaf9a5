//! From a request to its answer, without a socket in sight.

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response, StatusCode};

use super::site::Site;
use crate::server::answer::{PLAIN, finished, host, negotiated, plain, wrong_method};
use crate::server::{Document, soap};
use crate::tracks::FILE_COUNT;
use crate::tracks::soap::GET_TRACK;

/// What the service's page at `/` says.
const INDEX: &str = "\
Friendly-force tracks: 22 NFFI 1.3 messages.

GET  /rest/xml/N     message N (1 to 22) as XML
GET  /rest/json/N    the same elements as JSON
POST /soap           operation GetTrack, SOAP 1.1 or SOAP 1.2
GET  /soap?wsdl      its description
";

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
    let response = match host(request) {
        Err(line) => plain(StatusCode::BAD_REQUEST, line),
        Ok(host) => match resource(request) {
            None => plain(StatusCode::NOT_FOUND, "no such resource; see / for those that exist"),
            Some(resource) => respond(site, request, &resource, &host, body),
        },
    };
    finished(response, &request.method)
}

/// Whether the answer depends on the request's content.
pub(super) fn wants_body(request: &Parts) -> bool {
    request.method == Method::POST && matches!(resource(request), Some(Resource::Soap))
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
    let compression = site.settings.compression;
    let of_file = |form: Option<&Document>, media_type, accept| match form {
        None => {
            let line = format!("no such track; the numbers are 1 to {FILE_COUNT}");
            plain(StatusCode::NOT_FOUND, &line)
        }
        Some(form) => negotiated(compression, &request.headers, form, media_type, accept),
    };
    match resource {
        Resource::Index => {
            negotiated(compression, &request.headers, &Document::new(INDEX), PLAIN, "text/plain")
        }
        Resource::Wsdl => {
            let wsdl = crate::tracks::soap::wsdl(&format!("http://{host}/soap"));
            negotiated(
                compression,
                &request.headers,
                &Document::new(wsdl),
                "text/xml; charset=utf-8",
                "text/xml",
            )
        }
        Resource::Soap => {
            let find = |number, version| {
                let message = site.catalogue.soap(number, version);
                message.ok_or_else(|| format!("no track {number}"))
            };
            soap::answer(compression, (&request.headers, body), &GET_TRACK, find)
        }
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
