//! A client of registries: publishes services, keeps their leases, and finds those of others by
//! kind and measured quality, in JSON of ours or by UDDI v3 of anybody's.

#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::model::Service;
use super::publishing::{Publishing, Quality};
use super::quality::{Determinism, Facts, Rung, Wanted, rank};
use super::uddi;
use crate::Error;
use crate::client::Target;
use crate::messaging::shown;

/// Longest answer that is read, in bytes.
const MAX_ANSWER_BYTES: usize = 16 << 20;
/// Most services whose details are asked for at once by UDDI.
const MAX_DETAILS: usize = 100;

/// By what a registry is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// JSON over HTTP: the URL is that of the registry.
    Json,
    /// UDDI v3: the URL is that of its inquiry.
    Uddi,
}

/// A client of one registry.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its URL.
    pub url: Target,
    /// How long an answer may take.
    pub timeout: Duration,
}

/// What is looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The kind of service; any when none.
    pub kind: Option<String>,
    /// The quality; any when none.
    pub wanted: Option<Wanted>,
    /// Most services.
    pub limit: usize,
}

/// A service that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its id at the registry.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// What was measured of it, as it says.
    pub facts: Option<Facts>,
    /// How long the registry keeps it from now on; for ever when none.
    pub expires_in: Option<Duration>,
}

impl Offer {
    /// As JSON: the quality with the names of [`Quality`].
    #[must_use]
    pub fn json(&self) -> Value {
        let quality = self.facts.as_ref().map(Quality::of);
        json!({
            "id": self.id,
            "name": self.name,
            "url": self.url,
            "quality": quality.and_then(|quality| serde_json::to_value(quality).ok()),
            "expires_in_s": self.expires_in.map(|left| left.as_secs()),
        })
    }
}

/// Puts the best first.
pub fn sort(offers: &mut [Offer], wanted: Option<Wanted>) {
    let grade = wanted.map_or(Determinism::Soft, |wanted| wanted.grade);
    offers.sort_by(|one, other| {
        let by = |offer: &Offer| rank(offer.facts.as_ref(), grade);
        by(one).cmp(&by(other)).then_with(|| one.id.cmp(&other.id))
    });
}

impl Client {
    /// Gets a token.
    ///
    /// # Errors
    /// [`Error::Peer`] where the registry refuses it or does not answer.
    pub async fn log_in(&self, user: &str, password: &str) -> Result<String, Error> {
        let asked = json!({ "user": user, "password": password }).to_string();
        let answer = self.ask(Method::POST, "/tokens", None, Some(("application/json", asked)));
        let answer = json_of(&answer.await?)?;
        let token = answer["token"].as_str().map(str::to_owned);
        token.ok_or_else(|| Error::Peer("the answer has no token".to_owned()))
    }

    /// Publishes a service; its id.
    ///
    /// # Errors
    /// As [`Client::log_in`].
    pub async fn publish(&self, token: &str, service: &Publishing) -> Result<String, Error> {
        let body = Some(("application/json", document(service)?));
        let answer = self.ask(Method::POST, "/services", Some(token), body).await?;
        let id = json_of(&answer)?["id"].as_str().map(str::to_owned);
        id.ok_or_else(|| Error::Peer("the answer has no id".to_owned()))
    }

    /// Publishes a service anew that is there, such as with another quality.
    ///
    /// # Errors
    /// As [`Client::log_in`].
    pub async fn replace(&self, token: &str, id: &str, service: &Publishing) -> Result<(), Error> {
        let body = Some(("application/json", document(service)?));
        self.ask(Method::PUT, &format!("/services/{}", checked(id)?), Some(token), body)
            .await
            .map(drop)
    }

    /// Begins the lease of a service again.
    ///
    /// # Errors
    /// As [`Client::log_in`].
    pub async fn renew(&self, token: &str, id: &str) -> Result<(), Error> {
        let path = format!("/services/{}/lease", checked(id)?);
        self.ask(Method::POST, &path, Some(token), None).await.map(drop)
    }

    /// Takes a service out.
    ///
    /// # Errors
    /// As [`Client::log_in`].
    pub async fn remove(&self, token: &str, id: &str) -> Result<(), Error> {
        let path = format!("/services/{}", checked(id)?);
        self.ask(Method::DELETE, &path, Some(token), None).await.map(drop)
    }

    /// Services that are what is looked for, the best first.
    ///
    /// # Errors
    /// As [`Client::log_in`], and [`Error::Caller`] for a bound below the ladder, which UDDI cannot
    /// be asked for.
    pub async fn find(&self, api: Api, search: &Search) -> Result<Vec<Offer>, Error> {
        let mut offers = match api {
            Api::Json => self.find_by_json(search).await?,
            Api::Uddi => self.find_by_uddi(search).await?,
        };
        sort(&mut offers, search.wanted);
        offers.truncate(search.limit);
        Ok(offers)
    }

    async fn find_by_json(&self, search: &Search) -> Result<Vec<Offer>, Error> {
        let mut path = format!("/services?limit={}", search.limit.clamp(1, 1000));
        if let Some(kind) = &search.kind {
            path.push_str("&kind=");
            path.push_str(&encoded(kind));
        }
        if let Some(Wanted { max_us, grade }) = search.wanted {
            path.push_str(&format!("&max_latency_us={max_us}&determinism={}", grade.name()));
        }
        let answer = json_of(&self.ask(Method::GET, &path, None, None).await?)?;
        let all = answer["services"].as_array();
        let all = all.ok_or_else(|| Error::Peer("the answer has no services".to_owned()))?;
        all.iter().map(offer_of).collect()
    }

    async fn find_by_uddi(&self, search: &Search) -> Result<Vec<Offer>, Error> {
        let rung = match search.wanted {
            None => None,
            Some(Wanted { max_us, grade }) => {
                let rung = Rung::within(grade, max_us).ok_or_else(|| {
                    let lowest = super::quality::RUNGS_US[0];
                    let line = format!("{max_us} us is below the ladder, which begins at {lowest}");
                    Error::Caller(format!("{line}; ask a registry of longwire in JSON"))
                })?;
                Some(rung)
            }
        };
        let query = uddi::find_service(search.kind.as_deref(), rung, search.limit);
        let list = self.call(query).await?;
        let keys: Vec<String> = uddi::service_keys(&list);
        let mut offers = Vec::new();
        for keys in keys.chunks(MAX_DETAILS) {
            let detail = self.call(uddi::get_service_detail(keys)).await?;
            offers.extend(
                uddi::services_of(&detail)
                    .iter()
                    .filter_map(|(key, service)| offer_of_service(key, service)),
            );
        }
        // What it says that it measured counts more than the rung that it is on.
        offers.retain(|offer| match (&offer.facts, search.wanted) {
            (Some(facts), Some(wanted)) => wanted.holds(facts),
            _ => true,
        });
        Ok(offers)
    }

    /// One call of UDDI.
    async fn call(&self, message: String) -> Result<super::element::Element, Error> {
        let body = Some(("text/xml; charset=utf-8", uddi::response(&message)));
        let (status, answer) = self.exchange(Method::POST, "", None, body).await?;
        let text = String::from_utf8_lossy(&answer);
        let peer = |line: String| Error::Peer(line);
        uddi::answer(&text).map_err(|line| peer(format!("status {status}: {line}")))
    }

    /// One request; the content of a success.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        token: Option<&str>,
        body: Option<(&'static str, String)>,
    ) -> Result<Bytes, Error> {
        let (status, content) = self.exchange(method, path, token, body).await?;
        if (200..300).contains(&status) {
            return Ok(content);
        }
        let line = String::from_utf8_lossy(&content).trim().replace(['\r', '\n'], " ");
        let line: String = line.chars().take(500).collect();
        Err(Error::Peer(format!("the registry refuses it with {status}: {line}")))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        token: Option<&str>,
        body: Option<(&'static str, String)>,
    ) -> Result<(u16, Bytes), Error> {
        let exchange = self.exchange_in_time(method, path, token, body);
        timeout(self.timeout, exchange).await.map_err(|_| {
            let within = self.timeout.as_millis();
            Error::Peer(format!("no answer of {} within {within} ms", self.url.authority()))
        })?
    }

    async fn exchange_in_time(
        &self,
        method: Method,
        path: &str,
        token: Option<&str>,
        body: Option<(&'static str, String)>,
    ) -> Result<(u16, Bytes), Error> {
        let (host, port) = (self.url.host(), self.url.port());
        let unreachable = |error| {
            Error::Peer(format!("cannot connect to the registry at {host}:{port}: {error}"))
        };
        let stream = TcpStream::connect((host, port)).await.map_err(unreachable)?;
        let _ = stream.set_nodelay(true);
        let broken = |error: hyper::Error| Error::Peer(format!("the registry went away: {error}"));
        let opened = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = opened.map_err(broken)?;
        // Its errors reach whoever waits for the answer.
        let driver = tokio::spawn(async move { drop(connection.await) });
        let request = self.request(method, path, token, body)?;
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status().as_u16();
        let content = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
        driver.abort();
        let content = content.map_err(|error| {
            Error::Peer(format!(
                "the answer broke off or is over {MAX_ANSWER_BYTES} bytes: {error}"
            ))
        })?;
        Ok((status, content.to_bytes()))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        token: Option<&str>,
        body: Option<(&'static str, String)>,
    ) -> Result<Request<Full<Bytes>>, Error> {
        let wrong = |what: String| Error::Caller(format!("cannot ask: {what}"));
        let target = match path {
            "" => self.url.path().to_owned(),
            path => self.url.join(path).path().to_owned(),
        };
        let (media, body) = body.unzip();
        let mut request = Request::new(Full::new(Bytes::from(body.unwrap_or_default())));
        *request.method_mut() = method;
        *request.uri_mut() = target.parse().map_err(|_| wrong(format!("target '{target}'")))?;
        let headers = request.headers_mut();
        let host = HeaderValue::from_str(self.url.authority());
        headers.insert(HOST, host.map_err(|error| wrong(error.to_string()))?);
        if let Some(media) = media {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
        }
        if media.is_some_and(|media| media.starts_with("text/xml")) {
            // SOAP 1.1 §6.1.1: the intent is in the message.
            headers.insert("soapaction", HeaderValue::from_static("\"\""));
        }
        if let Some(token) = token {
            let value = HeaderValue::from_str(&format!("Bearer {token}"));
            headers.insert(AUTHORIZATION, value.map_err(|error| wrong(error.to_string()))?);
        }
        Ok(request)
    }
}

fn document(service: &Publishing) -> Result<String, Error> {
    serde_json::to_string(service).map_err(|error| Error::Caller(error.to_string()))
}

/// An id within a path.
fn checked(id: &str) -> Result<&str, Error> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:_".contains(&byte);
    if !id.is_empty() && id.len() <= 255 && id.bytes().all(is_plain) {
        return Ok(id);
    }
    Err(Error::Caller(format!("'{}' is no id of a service", shown(id))))
}

/// A value within a query (RFC 3986 §2.1).
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn json_of(bytes: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(bytes)
        .map_err(|error| Error::Peer(format!("the answer is no JSON: {error}")))
}

fn offer_of(value: &Value) -> Result<Offer, Error> {
    let text = |name: &str| {
        let text = value[name].as_str().map(str::to_owned);
        text.ok_or_else(|| Error::Peer(format!("a service has no {name}")))
    };
    let quality = value.get("quality").filter(|quality| !quality.is_null());
    let facts = quality.map(|quality| {
        let quality: Quality =
            serde_json::from_value(quality.clone()).map_err(|error| error.to_string())?;
        quality.facts()
    });
    let facts = facts.transpose().map_err(|what| Error::Peer(format!("quality: {what}")))?;
    Ok(Offer {
        id: text("id")?,
        name: text("name")?,
        url: text("url")?,
        facts,
        expires_in: value["expires_in_s"].as_u64().map(Duration::from_secs),
    })
}

fn offer_of_service(key: &str, service: &Service) -> Option<Offer> {
    let url = service.bindings.iter().find_map(|binding| binding.address())?;
    Some(Offer {
        id: key.to_owned(),
        name: service.names.first().map(|name| name.text.clone()).unwrap_or_default(),
        url: url.to_owned(),
        facts: service.facts.clone(),
        expires_in: None,
    })
}
