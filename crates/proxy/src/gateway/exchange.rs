//! One exchange at the gateway: the request as it came over the link, to the origin; the answer
//! back.

use std::sync::Arc;
use std::time::Duration;

use codec::secrets::is_readable;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use proto::bhttp;
use proto::stream::MAX_BLOCK_BYTES;
use relay::{Cause, CauseKind, Head};

use crate::config::Service;
use crate::fields;
use crate::flow::{self, AnyBody, Pump, RelayBody, Stop, Watched};
use crate::mailbox::{Port, Sender};
use crate::origin::{Client, OriginBody, Request};
use crate::pattern::Target;
use crate::plain::Accepted;
use crate::upstream::host_and_port;

/// How long an origin that ignores Expect is waited for before the body flows anyway (RFC 9110
/// §10.1.1 asks clients not to wait for ever).
const EXPECT_PATIENCE: Duration = Duration::from_secs(30);

/// What all exchanges of a gateway share.
pub(crate) struct Origins {
    pub(crate) client: Client,
    pub(crate) services: Vec<Service>,
    pub(crate) pseudonym: String,
}

/// A request's head, understood.
struct Asked {
    method: Method,
    scheme: String,
    authority: String,
    path: String,
    headers: HeaderMap,
    /// Protocol that the client asks to change to.
    upgrade: Option<HeaderValue>,
    /// Another site asks.
    foreign: bool,
}

impl Asked {
    fn target(&self) -> Result<Target<'_>, Cause> {
        let connect = self.method == Method::CONNECT;
        let (host, port) = host_and_port(&self.authority, &self.scheme)
            .filter(|(host, _)| !host.is_empty() && !self.authority.contains('@'))
            .ok_or_else(|| bad_request(format!("'{}' is no host and port", self.authority)))?;
        let scheme = (!connect).then_some(self.scheme.as_str());
        let path = (!connect).then_some(self.path.as_str());
        Ok(Target { scheme, host, port, path })
    }
}

impl Origins {
    /// Serves a request to its end, or until the relay gives it up.
    pub(crate) async fn serve(self: Arc<Self>, head: Head, end: bool, mut port: Port) {
        let asked = match head {
            Head::Request(request) => understand(&request),
            Head::Response(_) => Err(bad_request("a response came for a request".to_owned())),
        };
        let asked = match asked.and_then(|asked| self.check_loop(asked)) {
            Ok(asked) => asked,
            Err(cause) => return port.sender.abort(cause),
        };
        let watch = port.sender.watch();
        tokio::select! {
            // Dropping the rest closes the connection to the origin.
            _ = watch.aborted() => {}
            () = self.forward(asked, end, port) => {}
        }
    }

    fn check_loop(&self, asked: Asked) -> Result<Asked, Cause> {
        if fields::has_passed(&asked.headers, &self.pseudonym) {
            let reason = "the request came back to this gateway (Via): a loop".to_owned();
            return Err(bad_request(reason));
        }
        Ok(asked)
    }

    async fn forward(&self, asked: Asked, end: bool, mut port: Port) {
        if asked.method == Method::CONNECT {
            let connected = match asked.target() {
                Ok(target) => self.client.connect(&target).await,
                Err(cause) => Err(cause),
            };
            match connected {
                Ok(stream) => {
                    port.sender.head(response(StatusCode::OK, &HeaderMap::new()), false);
                    flow::tunnel(stream, port, CauseKind::OriginFailed).await;
                }
                Err(cause) => port.sender.abort(cause),
            }
            return;
        }
        let asks_upgrade = asked.upgrade.is_some();
        let Port { receiver, mut sender } = port;
        let (body, progress, receiver) = if end || asks_upgrade {
            let empty: AnyBody = Empty::new().map_err(|never| match never {}).boxed_unsync();
            (empty, flow::Progress::new(), Some(receiver))
        } else {
            let length = fields::content_length(&asked.headers);
            let progress = flow::Progress::new();
            let body = RelayBody::new(receiver, length, false);
            (Watched::new(body, progress.clone()).boxed_unsync(), progress, None)
        };
        let answer = self.ask(&asked, body, progress, &sender).await;
        match answer {
            Err(cause) => sender.abort(cause),
            Ok(answer) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => match receiver {
                Some(receiver) if asks_upgrade => {
                    switch(answer, Port { receiver, sender }).await;
                }
                _ => sender.abort(failed("the origin changed protocols without being asked")),
            },
            Ok(mut answer) => {
                if self.knows_no_length(&asked, &answer) {
                    answer.headers_mut().remove(header::CONTENT_LENGTH);
                }
                give_back(answer, sender).await;
            }
        }
    }

    fn service(&self, target: &Target<'_>) -> Option<usize> {
        self.services.iter().position(|service| service.pattern.matches(target))
    }

    /// Whether an answer tells a length without a body (RFC 9110 §8.6) that may be another where
    /// the body goes with it, since its infoset is enough.
    fn knows_no_length(&self, asked: &Asked, answer: &http::Response<OriginBody>) -> bool {
        if asked.method != Method::HEAD && answer.status() != StatusCode::NOT_MODIFIED {
            return false;
        }
        let service = asked.target().ok().and_then(|target| self.service(&target));
        let service = service.and_then(|index| self.services.get(index));
        let is_infoset = service.is_some_and(|service| service.infoset);
        let length = fields::content_length(answer.headers());
        let headers = answer.headers();
        let media = headers.get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok());
        // What is longer, coded, or neither XML nor JSON goes byte for byte.
        is_infoset
            && length.is_some_and(|length| length <= MAX_BLOCK_BYTES as u64)
            && !headers.contains_key(header::CONTENT_ENCODING)
            && media.is_none_or(is_readable)
    }

    /// Sends the request and waits for the final head of the answer.
    async fn ask(
        &self,
        asked: &Asked,
        body: AnyBody,
        progress: flow::Progress,
        sender: &Sender,
    ) -> Result<http::Response<OriginBody>, Cause> {
        let target = asked.target()?;
        let service = self.service(&target);
        if let Some(service) = service {
            sender.service(service);
        }
        let service = service.and_then(|index| self.services.get(index));
        if let (Some(access), Some(service)) = (sender.access(), service) {
            access.service(&service.pattern);
        }
        let bodyless = body.is_end_stream();
        let mut message = http::Request::new(body);
        *message.method_mut() = asked.method.clone();
        *message.uri_mut() =
            asked.path.parse().map_err(|_| bad_request(format!("'{}' is no path", asked.path)))?;
        *message.headers_mut() = self.headers(asked, service)?;
        let expects = asked
            .headers
            .get(header::EXPECT)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        let interim = sender.watch();
        hyper::ext::on_informational(&mut message, move |response| {
            let status = response.status();
            if status != StatusCode::SWITCHING_PROTOCOLS {
                interim.interim(status.as_u16());
            }
        });
        let repeatable = bodyless && asked.method.is_idempotent();
        let sending = self.client.send(Request { target, message, repeatable, progress });
        let mut sending = std::pin::pin!(sending);
        if expects {
            match tokio::time::timeout(EXPECT_PATIENCE, &mut sending).await {
                Ok(answer) => return answer,
                Err(_) => sender.watch().interim(StatusCode::CONTINUE.as_u16()),
            }
        }
        sending.await
    }

    /// The fields that the origin gets.
    fn headers(&self, asked: &Asked, service: Option<&Service>) -> Result<HeaderMap, Cause> {
        let mut headers = asked.headers.clone();
        let trailers = fields::tokens(&headers, &header::TE).any(|token| token == "trailers");
        fields::remove_hop_by_hop(&mut headers);
        let host = HeaderValue::from_str(&asked.authority)
            .map_err(|_| bad_request(format!("'{}' is no host", asked.authority)))?;
        headers.insert(header::HOST, host);
        // RFC 9110 §7.8 and §10.1.4: both must be listed in Connection.
        if let Some(protocol) = &asked.upgrade {
            headers.insert(header::UPGRADE, protocol.clone());
            headers.append(header::CONNECTION, HeaderValue::from_static("upgrade"));
        }
        if trailers {
            headers.insert(header::TE, HeaderValue::from_static("trailers"));
            headers.append(header::CONNECTION, HeaderValue::from_static("te"));
        }
        let pass = service.is_some_and(|service| service.pass_accept_encoding);
        let accepted = Accepted::of(&headers);
        // What another site asks for has the lengths that it would have without the pair.
        let pass = pass || asked.foreign;
        if !pass && !headers.contains_key(header::RANGE) && !accepted.forbids_identity() {
            // What is told by a dictionary that the client has from the origin is short already.
            let has_dictionary = headers.contains_key(proto::dictionary::AVAILABLE_FIELD);
            headers.insert(header::ACCEPT_ENCODING, accepted.for_origin(has_dictionary));
        }
        fields::add_via(&mut headers, http::Version::HTTP_11, &self.pseudonym);
        Ok(headers)
    }
}

/// Checks what came over the link as if a client had sent it here.
fn understand(request: &bhttp::Request) -> Result<Asked, Cause> {
    let text = |bytes: &bytes::Bytes| String::from_utf8_lossy(bytes).into_owned();
    let method = Method::from_bytes(&request.method)
        .map_err(|_| bad_request(format!("'{}' is no method", text(&request.method))))?;
    let scheme = text(&request.scheme);
    if method != Method::CONNECT && scheme != "http" && scheme != "https" {
        return Err(bad_request(format!("scheme '{scheme}': one of http, https")));
    }
    let mut headers = fields::to_headers(&request.fields)?;
    // The edge leaves Upgrade there for this purpose alone.
    let upgrade = headers.remove(header::UPGRADE);
    let (authority, path) = (text(&request.authority), text(&request.path));
    let foreign = relay::is_foreign(request);
    Ok(Asked { method, scheme, authority, path, headers, upgrade, foreign })
}

/// Hands the origin's answer to the relay.
async fn give_back(answer: http::Response<OriginBody>, mut sender: Sender) {
    let (mut parts, body) = answer.into_parts();
    if !(200..600).contains(&parts.status.as_u16()) {
        let status = parts.status.as_u16();
        return sender.abort(failed(&format!("the origin's status {status} is not 200 to 599")));
    }
    fields::remove_hop_by_hop(&mut parts.headers);
    let end = body.is_end_stream();
    sender.head(response(parts.status, &parts.headers), end);
    if end {
        return;
    }
    let mut pump = Pump::new(body, sender, None);
    if let Err(Stop::Broken(error)) = pump.run().await {
        let reason = format!("the origin broke off amid its answer: {error}");
        pump.abort(Cause { kind: CauseKind::OriginFailed, reason });
    }
}

/// Carries what follows a change of protocols. The link's head says 200, as binary HTTP has no
/// final 101 (RFC 9292 §3.5.1), with Upgrade, which no other answer has.
async fn switch(mut answer: http::Response<OriginBody>, mut port: Port) {
    let upgrading = hyper::upgrade::on(&mut answer);
    let protocol = answer.headers().get(header::UPGRADE).cloned();
    let (mut parts, _) = answer.into_parts();
    fields::remove_hop_by_hop(&mut parts.headers);
    if let Some(protocol) = protocol {
        parts.headers.insert(header::UPGRADE, protocol);
    }
    match upgrading.await {
        Ok(stream) => {
            port.sender.head(response(StatusCode::OK, &parts.headers), false);
            flow::tunnel(TokioIo::new(stream), port, CauseKind::OriginFailed).await;
        }
        Err(error) => port.sender.abort(failed(&format!("changing protocols: {error}"))),
    }
}

fn response(status: StatusCode, headers: &HeaderMap) -> Head {
    let fields = fields::to_fields(headers);
    Head::Response(bhttp::Response { status: status.as_u16(), fields })
}

fn bad_request(reason: String) -> Cause {
    Cause { kind: CauseKind::BadRequest, reason }
}

fn failed(reason: &str) -> Cause {
    Cause { kind: CauseKind::OriginFailed, reason: reason.to_owned() }
}
