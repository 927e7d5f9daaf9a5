//! One exchange at the gateway: the request as it came over the link, to the origin; the answer
//! back.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use codec::secrets::is_readable;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use proto::bhttp;
use proto::exchange::MAX_BLOCK_BYTES;
use proto::http1::{CONNECTION_FIELD, ResponseHead, STYLE_FIELD, Style, escape_target};
use relay::{Cause, CauseKind, Head};

use crate::clock::{Clocks, Side, Stalled, Timed};
use crate::config::Service;
use crate::edgeless::Accepted;
use crate::fields;
use crate::flow::{self, AnyBody, BoxError, Pump, RelayBody, Stop, Watched};
use crate::http1::OnInterim;
use crate::live::Services;
use crate::mailbox::{Port, Sender};
use crate::origin::{Client, ClientAt, EXPECT_PATIENCE, How, OriginBody, Owner, Request};
use crate::parting::Parting;
use crate::pattern::{COAP, Target};
use crate::signature;
use crate::upstream::host_and_port;

/// What all exchanges of a gateway share.
pub(crate) struct Origins {
    pub(crate) client: Client,
    pub(crate) services: Services,
    pub(crate) pseudonym: String,
    pub(crate) clocks: Clocks,
    pub(crate) parting: Parting,
}

/// A request's head, understood.
struct Asked {
    method: Method,
    scheme: String,
    authority: String,
    /// With what a URI must not hold escaped.
    path: String,
    /// As it came, where that is something else.
    raw_path: Option<Bytes>,
    headers: HeaderMap,
    /// Protocol that the client asks to change to.
    upgrade: Option<HeaderValue>,
    /// Another site asks.
    cross_site: bool,
    /// How the fields were written, where the edge says so.
    style: Option<Style>,
    /// The edge's number of the client's connection, where the request belongs to it.
    connection: Option<u64>,
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
            Head::Request(request) => understand(request, end),
            Head::Response(_) | Head::Message(_) => {
                Err(bad_request("a response came for a request".to_owned()))
            }
            Head::Opening(_) => Err(bad_request("only HTTP is served here".to_owned())),
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
                Ok(target) => self.client.connect(&target, ClientAt::Elsewhere).await,
                Err(cause) => Err(cause),
            };
            match connected {
                Ok(socket) => {
                    port.sender.head(response(StatusCode::OK, &HeaderMap::new()), false);
                    let broken = CauseKind::OriginFailed;
                    let parting = self.parting.clone();
                    flow::tunnel(socket.clone(), &socket, port, broken, parting).await;
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
                    switch(answer, Port { receiver, sender }, self.parting.clone()).await;
                }
                _ => sender.abort(failed("the origin changed protocols without being asked")),
            },
            Ok(mut answer) => {
                // What a client sends behind a request to change protocols, it sends to nobody.
                if let Some(mut receiver) = receiver {
                    receiver.has_all();
                }
                if self.knows_no_length(&asked, &answer) {
                    answer.headers_mut().remove(header::CONTENT_LENGTH);
                }
                let exact = self.settings(&asked).is_some_and(|service| service.exact_fields);
                self.give_back(answer, sender, exact).await;
            }
        }
    }

    /// What is set for the service of a request.
    fn settings(&self, asked: &Asked) -> Option<Arc<Service>> {
        let target = asked.target().ok()?;
        self.services.get(self.service(&target)?)
    }

    fn service(&self, target: &Target<'_>) -> Option<usize> {
        self.services.find(target)
    }

    /// Whether an answer tells a length without a body (RFC 9110 §8.6) that may be another where
    /// the body goes with it, since its infoset is enough.
    fn knows_no_length(&self, asked: &Asked, answer: &http::Response<OriginBody>) -> bool {
        if asked.method != Method::HEAD && answer.status() != StatusCode::NOT_MODIFIED {
            return false;
        }
        let is_infoset = self.settings(asked).is_some_and(|service| service.infoset);
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
        if let Some(protocol) = &asked.upgrade {
            let service = self.settings(asked);
            let listed = service.as_ref().and_then(|service| service.upgrades.as_deref());
            self.client.check_upgrade(&target, ClientAt::Elsewhere, protocol, listed)?;
        }
        let service = self.service(&target);
        if let Some(service) = service {
            sender.service(service);
        }
        let service = service.and_then(|index| self.services.get(index));
        if let (Some(access), Some(service)) = (sender.access(), &service) {
            access.service(&service.pattern);
        }
        let bodyless = body.is_end_stream();
        let mut message = http::Request::new(body);
        *message.method_mut() = asked.method.clone();
        *message.uri_mut() =
            asked.path.parse().map_err(|_| bad_request(format!("'{}' is no path", asked.path)))?;
        *message.headers_mut() = self.headers(asked, service.as_deref())?;
        let expects = asked
            .headers
            .get(header::EXPECT)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        let (watch, moved) = (sender.watch(), progress.clone());
        let on_interim: OnInterim = Arc::new(move |head: &ResponseHead| {
            // An origin that says so is at work (RFC 2518 §10.1).
            moved.touch();
            watch.interim(head.status, fields::of_http1(&head.fields));
        });
        let edge = sender.exchange().map_or(0, |exchange| exchange.instance);
        let how = How {
            owner: asked.connection.map(|connection| Owner { edge, connection }),
            style: asked.style.clone(),
            path: asked.raw_path.clone(),
            on_interim: Some(on_interim),
        };
        let repeatable = bodyless && asked.method.is_idempotent();
        let client = ClientAt::Elsewhere;
        let request = Request { target, client, message, repeatable, progress, how };
        let mut sending = std::pin::pin!(self.client.send(request));
        if expects {
            match tokio::time::timeout(EXPECT_PATIENCE, &mut sending).await {
                Ok(answer) => return answer,
                Err(_) => sender.watch().interim(StatusCode::CONTINUE.as_u16(), Vec::new()),
            }
        }
        sending.await
    }

    /// Hands the origin's answer to the relay.
    async fn give_back(&self, answer: http::Response<OriginBody>, mut sender: Sender, exact: bool) {
        let (mut parts, body) = answer.into_parts();
        if !(200..600).contains(&parts.status.as_u16()) {
            let status = parts.status.as_u16();
            return sender
                .abort(failed(&format!("the origin's status {status} is not 200 to 599")));
        }
        fields::remove_hop_by_hop(&mut parts.headers);
        let end = body.is_end_stream();
        let sent = parts.extensions.get::<ResponseHead>().filter(|_| exact);
        let head = sent.map_or_else(
            || response(parts.status, &parts.headers),
            |sent| response_as_sent(parts.status, &parts.headers, sent),
        );
        let succeeded = parts.status.is_success();
        if end && succeeded && body.is_deaf() {
            return sender.abort(failed("the origin answered before it had the whole request"));
        }
        sender.head(head, end);
        if end {
            return;
        }
        let patience = self.clocks.of_answer(&parts);
        let body = Timed::new(Deaf { body, succeeded }, Side::Origin, patience);
        let body = self.parting.bound(body, &parts.headers);
        let mut pump = Pump::new(body, sender, None);
        if let Err(Stop::Broken(error)) = pump.run().await {
            let cause = if error.is::<Stalled>() {
                Cause { kind: CauseKind::OriginTimeout, reason: error.to_string() }
            } else {
                failed(&format!("the origin broke off amid its answer: {error}"))
            };
            pump.abort(cause);
        }
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
        let pass = pass || asked.cross_site;
        let is_free = !headers.contains_key(header::RANGE) && !signature::covers_coding(&headers);
        if !pass && is_free && !accepted.forbids_identity() {
            // What is encoded with a dictionary that the client has from the origin is short
            // already.
            let has_dictionary = headers.contains_key(proto::dictionary::AVAILABLE_FIELD);
            headers.insert(header::ACCEPT_ENCODING, accepted.for_origin(has_dictionary));
        }
        fields::add_via(&mut headers, http::Version::HTTP_11, &self.pseudonym);
        Ok(headers)
    }
}

/// Checks what came over the link as if a client had sent it here.
fn understand(mut request: bhttp::Request, end: bool) -> Result<Asked, Cause> {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    let method = Method::from_bytes(&request.method)
        .map_err(|_| bad_request(format!("'{}' is no method", text(&request.method))))?;
    let scheme = text(&request.scheme);
    if method != Method::CONNECT && !matches!(&scheme[..], "http" | "https" | COAP) {
        return Err(bad_request(format!("scheme '{scheme}': one of http, https, coap")));
    }
    check_path(&method, &request.path)?;
    let style = fields::take(&mut request.fields, STYLE_FIELD);
    let connection = fields::take(&mut request.fields, CONNECTION_FIELD);
    let connection = connection.and_then(|hex| {
        u64::from_str_radix(std::str::from_utf8(&hex).unwrap_or_default(), 16).ok()
    });
    let style = style.map(|style| {
        let mut style = Style::decode(&style, request.fields.iter().map(|(name, _)| &name[..]));
        // RFC 9110 §7.2: it comes first.
        style.names.insert(0, Bytes::from_static(b"Host"));
        style
    });
    let mut headers = fields::to_headers(&request.fields)?;
    check_length(&headers, end)?;
    // The edge leaves Upgrade there for this purpose alone.
    let upgrade = headers.remove(header::UPGRADE);
    let cross_site = relay::is_cross_site(&request);
    let authority = text(&request.authority);
    let path = String::from_utf8_lossy(&escape_target(&request.path)).into_owned();
    let raw_path = Some(request.path).filter(|raw| *raw != path.as_bytes());
    Ok(Asked {
        method,
        scheme,
        authority,
        path,
        raw_path,
        headers,
        upgrade,
        cross_site,
        style,
        connection,
    })
}

/// A path begins with a slash (RFC 9110 §4.2.1): a whole URL in its place would be asked for at
/// another host than the one that is allowed (RFC 9112 §3.2.2).
fn check_path(method: &Method, path: &[u8]) -> Result<(), Cause> {
    let is_right = match path {
        b"" => *method == Method::CONNECT,
        b"*" => *method == Method::OPTIONS,
        [b'/', ..] => *method != Method::CONNECT,
        _ => false,
    };
    if is_right && path.iter().all(|byte| *byte > b' ' && *byte != 0x7f && *byte != b'#') {
        return Ok(());
    }
    let shown = path[..path.len().min(60)].escape_ascii();
    Err(bad_request(format!("'{shown}' is no path: one begins with a slash")))
}

/// The length that a head tells goes with what follows it, or the origin would take the next
/// request for a body.
fn check_length(headers: &HeaderMap, end: bool) -> Result<(), Cause> {
    let lengths: Vec<_> = headers.get_all(header::CONTENT_LENGTH).iter().collect();
    let [value] = lengths[..] else {
        return match lengths.len() {
            0 => Ok(()),
            _ => Err(bad_request("the request has two lengths".to_owned())),
        };
    };
    let digits = value.as_bytes().iter().all(u8::is_ascii_digit);
    match fields::content_length(headers).filter(|_| digits) {
        Some(length) if length > 0 && end => {
            Err(bad_request(format!("the request ends before {length} bytes of body")))
        }
        Some(_) => Ok(()),
        None => Err(bad_request("the request's Content-Length is no length".to_owned())),
    }
}

/// The body of an answer that is no success after all where the origin did not take the request to
/// its end.
struct Deaf {
    body: OriginBody,
    succeeded: bool,
}

impl http_body::Body for Deaf {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() && self.succeeded && self.body.is_deaf() {
            let why = "it stopped taking the request before its end";
            return Poll::Ready(Some(Err(why.into())));
        }
        Poll::Ready(frame)
    }
}

/// Carries what follows a change of protocols. The link's head says 200, as binary HTTP has no
/// final 101 (RFC 9292 §3.5.1), with Upgrade, which no other answer has.
async fn switch(mut answer: http::Response<OriginBody>, mut port: Port, parting: Parting) {
    let upgrading = hyper::upgrade::on(&mut answer);
    let protocol = answer.headers().get(header::UPGRADE).cloned();
    let (mut parts, body) = answer.into_parts();
    let Some(socket) = body.into_socket() else {
        return port.sender.abort(failed("the connection to the origin is gone"));
    };
    fields::remove_hop_by_hop(&mut parts.headers);
    if let Some(protocol) = protocol {
        parts.headers.insert(header::UPGRADE, protocol);
    }
    match upgrading.await {
        Ok(stream) => {
            port.sender.head(response(StatusCode::OK, &parts.headers), false);
            let (stream, broken) = (TokioIo::new(stream), CauseKind::OriginFailed);
            flow::tunnel(stream, &socket, port, broken, parting).await;
        }
        Err(error) => port.sender.abort(failed(&format!("changing protocols: {error}"))),
    }
}

fn response(status: StatusCode, headers: &HeaderMap) -> Head {
    let fields = fields::to_fields(headers);
    Head::Response(bhttp::Response { status: status.as_u16(), fields })
}

/// The same with the case and the order of its fields, and with its reason.
fn response_as_sent(status: StatusCode, headers: &HeaderMap, sent: &ResponseHead) -> Head {
    let (mut fields, mut style) = fields::to_fields_as_sent(headers, &sent.fields);
    let is_usual = status.canonical_reason().is_some_and(|usual| sent.reason == usual);
    style.reason = Some(sent.reason.clone()).filter(|_| !is_usual);
    fields.push((STYLE_FIELD.into(), style.encode()));
    Head::Response(bhttp::Response { status: status.as_u16(), fields })
}

fn bad_request(reason: String) -> Cause {
    Cause { kind: CauseKind::BadRequest, reason }
}

fn failed(reason: &str) -> Cause {
    Cause { kind: CauseKind::OriginFailed, reason: reason.to_owned() }
}
