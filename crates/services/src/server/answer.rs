//! What the services' answers have in common: codings, refusals, length.

use bytes::Bytes;
use http::header::{
    ALLOW, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, VARY,
};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, Method, Response, StatusCode, Version};

use super::{Compression, Document};
use crate::http::{Coding, accepts_media, choose_coding};

/// Media type of errors, of the index and of hints: text for a person.
pub(crate) const PLAIN: &str = "text/plain; charset=utf-8";

/// Adds to an answer what all of them have.
pub(crate) fn finished(mut response: Response<Bytes>, method: &Method) -> Response<Bytes> {
    let length = HeaderValue::from(response.body().len());
    response.headers_mut().insert(CONTENT_LENGTH, length);
    if method == Method::HEAD {
        // RFC 9110 §9.3.2: the fields of a GET, Content-Length among them, and no content.
        *response.body_mut() = Bytes::new();
    }
    response
}

/// An error or a hint for a person.
pub(crate) fn plain(status: StatusCode, line: &str) -> Response<Bytes> {
    with_type(status, PLAIN, format!("{line}\n").into())
}

/// An answer of one media type.
pub(crate) fn with_type(
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
pub(crate) fn document(
    compression: Compression,
    request: &HeaderMap,
    document: &Document,
    media_type: &'static str,
) -> Response<Bytes> {
    let coding = match compression {
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
    if compression == Compression::ByRequest {
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    response
}

/// A document in the one media type that it has, where the client takes that.
pub(crate) fn negotiated(
    compression: Compression,
    request: &HeaderMap,
    content: &Document,
    media_type: &'static str,
    essence: &str,
) -> Response<Bytes> {
    let mut response = if accepts_media(request, essence) {
        document(compression, request, content, media_type)
    } else {
        let line = format!("this is {essence} only; allow that in Accept");
        plain(StatusCode::NOT_ACCEPTABLE, &line)
    };
    let vary = match compression {
        Compression::ByRequest => "Accept, Accept-Encoding",
        Compression::Off | Compression::Forced => "Accept",
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static(vary));
    response
}

/// RFC 9110 §15.5.6, and §15.6.2 for a method that it does not define.
pub(crate) fn wrong_method(method: &Method, allowed: &'static str) -> Response<Bytes> {
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

/// The authority that the client asked: of an absolute target, else of `Host`, which HTTP/1.1
/// demands once (RFC 9112 §3.2).
pub(crate) fn host(request: &Parts) -> Result<String, &'static str> {
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
