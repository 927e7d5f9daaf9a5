//! The service as a server: `longwire serve benchmark`.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response, StatusCode};

use super::methods::{self, Methods};
use super::{Answers, Form, RUN_QUERY};
use crate::Error;
use crate::server::answer::{PLAIN, finished, host, negotiated, plain, wrong_method};
use crate::server::{self, Document, Server, Settings, soap};
use crate::tracks::soap::Version;

/// What the service's page at `/` says.
const INDEX: &str = "\
Answers of the 22 TPC-H queries.

GET  /q/N            answer of query N (1 to 22) as compact XML
GET  /q/N/FORM       the same as compact, pretty or soap
POST /soap           operation RunQuery with a number, SOAP 1.1
POST /methods        nop, getString, getIntArray, setString, setIntArray, SOAP 1.1
                     as XML, WBXML, CBOR or EXI
GET  /methods?wsdl   their description
";

/// Settings of a server.
#[derive(Debug)]
pub struct Config {
    /// Address and port to listen at; port 0 takes any free one.
    pub listen: SocketAddr,
    /// What it answers.
    pub answers: Answers,
    /// TCP congestion control; the system's own when none.
    pub congestion: Option<String>,
    /// Parameters of each connection and answer.
    pub settings: Settings,
}

impl Config {
    /// Listens. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Caller`] when a setting is out of its range, the address cannot be had or the
    /// congestion control not be set.
    pub fn bind(self) -> Result<Server, Error> {
        let (answers, settings) = (self.answers, self.settings);
        let site = Site { answers, methods: Methods::new(), settings };
        Server::bind(self.listen, self.congestion, Arc::new(site))
    }
}

/// The answers and how to serve them.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) answers: Answers,
    pub(super) methods: Methods,
    pub(super) settings: Settings,
}

/// What is at a path.
enum Resource {
    Index,
    Soap,
    Methods,
    Wsdl,
    Answer(Form, usize),
}

impl server::Site for Site {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn wants_body(&self, request: &Parts) -> bool {
        let resource = resource(request);
        request.method == Method::POST
            && matches!(resource, Some(Resource::Soap | Resource::Methods))
    }

    fn answer(&self, request: &Parts, body: &[u8]) -> Response<Bytes> {
        let response = match (host(request), resource(request)) {
            (Err(line), _) => plain(StatusCode::BAD_REQUEST, line),
            (Ok(_), None) => {
                plain(StatusCode::NOT_FOUND, "no such resource; see / for those that exist")
            }
            (Ok(host), Some(resource)) => self.respond(request, &resource, &host, body),
        };
        finished(response, &request.method)
    }
}

impl Site {
    fn respond(
        &self,
        request: &Parts,
        resource: &Resource,
        host: &str,
        body: &[u8],
    ) -> Response<Bytes> {
        let allowed = match resource {
            Resource::Soap | Resource::Methods => "POST",
            Resource::Index | Resource::Wsdl | Resource::Answer(..) => "GET, HEAD",
        };
        if !allowed.split(", ").any(|method| method == request.method.as_str()) {
            return wrong_method(&request.method, allowed);
        }
        let (headers, compression) = (&request.headers, self.settings.compression);
        match resource {
            Resource::Index => {
                negotiated(compression, headers, &Document::new(INDEX), PLAIN, "text/plain")
            }
            Resource::Soap => {
                let find = |number, version| match version {
                    Version::Soap11 => self.answers.get(Form::Soap, number),
                    Version::Soap12 => Err("answers are SOAP 1.1; ask in that".to_owned()),
                };
                soap::answer(compression, (headers, body), &RUN_QUERY, find)
            }
            Resource::Methods => self.methods.answer(headers, body),
            Resource::Wsdl => {
                let wsdl = Document::new(methods::wsdl(&format!("http://{host}/methods")));
                negotiated(compression, headers, &wsdl, "text/xml; charset=utf-8", "text/xml")
            }
            Resource::Answer(form, number) => match self.answers.get(*form, *number) {
                Err(line) => plain(StatusCode::NOT_FOUND, &line),
                Ok(document) => {
                    let media_type = match form {
                        Form::Compact | Form::Pretty => "application/xml; charset=utf-8",
                        Form::Soap => "text/xml; charset=utf-8",
                    };
                    negotiated(compression, headers, document, media_type, form.media_type())
                }
            },
        }
    }
}

fn resource(request: &Parts) -> Option<Resource> {
    let path = request.uri.path();
    match path {
        "/" => return Some(Resource::Index),
        "/soap" => return Some(Resource::Soap),
        "/methods" => {
            let wants_wsdl = request.uri.query().is_some_and(|q| q.eq_ignore_ascii_case("wsdl"));
            return Some(if wants_wsdl { Resource::Wsdl } else { Resource::Methods });
        }
        _ => {}
    }
    let rest = path.strip_prefix("/q/")?;
    let (number, form) = rest.split_once('/').unwrap_or((rest, Form::Compact.name()));
    let form = Form::ALL.into_iter().find(|known| known.name() == form)?;
    let number = number.parse().ok().filter(|_| number.bytes().all(|b| b.is_ascii_digit()))?;
    Some(Resource::Answer(form, number))
}
