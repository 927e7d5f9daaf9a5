//! One exchange at the edge: a client's request, over the pair or directly, and its answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use proto::bhttp;
use proto::http1::{ResponseHead, STYLE_FIELD, Style};
use relay::{Cause, CauseKind, Head, Input};
use tokio::io::{AsyncRead, AsyncWrite};

use super::answer::{ClientBody, Refusal};
use super::hosted::{self, Hosted};
use super::reverse::{self, Reverse};
use super::standard::{Ask, Standard};
use super::target::Asked;
use super::who;
use crate::access::{Access, CountedStream, Way};
use crate::actor::{Handle, Message};
use crate::clock::{Clocks, Side, Stalled, Timed};
use crate::config::Fallback;
use crate::fields;
use crate::flow::{self, AnyBody, Progress, Pump, RelayBody, Stop, Watched};
use crate::front::Connection;
use crate::http1::{Line, OnInterim, Shared};
use crate::live::{Live, Services};
use crate::mailbox::{Arrived, Ended, Port, Receiver, Requester};
use crate::metrics::Metrics;
use crate::origin::{self, ClientAt, EXPECT_PATIENCE, How, Owner};
use crate::parting::Parting;
use crate::pattern::{Pattern, Target};
use crate::upstream::Upstream;

/// What all exchanges of an edge share.
pub(crate) struct Exchanges {
    /// None: everything goes to the standard gateway, or directly.
    pub(crate) pair: Option<Handle>,
    /// A gateway that is asked over WSP or CoAP; none beside a pair.
    pub(crate) standard: Option<Standard>,
    pub(crate) direct: origin::Client,
    pub(crate) upstream: Option<Upstream>,
    pub(crate) reverse: Reverse,
    pub(crate) fallback: Fallback,
    pub(crate) services: Services,
    pub(crate) pseudonym: String,
    /// Bound on silence before an answer.
    pub(crate) response_timeout: Duration,
    pub(crate) clocks: Clocks,
    pub(crate) parting: Parting,
    /// What nobody may reach.
    pub(crate) deny: Live<Vec<Pattern>>,
    pub(crate) metrics: Arc<Metrics>,
}

/// A request that is understood and may be served.
struct Admitted {
    asked: Asked,
    version: http::Version,
    upgrade: OnUpgrade,
    body: AnyBody,
    fallback: Fallback,
    /// Index of the service's settings.
    service: Option<usize>,
    /// Largest body, in bytes.
    max_body: Option<u64>,
    /// The client's connection.
    connection: Arc<Connection>,
    /// Its number, where the request belongs to an authentication of the connection.
    bound: Option<u64>,
    /// Who asks.
    client: relay::Client,
    /// The exchange's line in the log.
    access: Option<Access>,
}

/// How an exchange over the pair ended without an answer.
enum Failure {
    Refused(Refusal),
    /// Nothing was taken of the request: it may go directly.
    Untouched(Box<Admitted>, Refusal),
}

impl Exchanges {
    /// Serves one request; what goes wrong before the answer's head becomes an answer of our own.
    pub(crate) async fn serve(
        &self,
        request: Request<AnyBody>,
        connection: &Arc<Connection>,
    ) -> Response<ClientBody> {
        let wrapped = |response: Response<AnyBody>| {
            response.map(|body| ClientBody::new(body, Arc::clone(&connection.broken)))
        };
        let mut hosted = None;
        if self.upstream.is_none() {
            if let Some(links) = hosted::links(request.method(), request.uri()) {
                return wrapped(links);
            }
            hosted = Hosted::of(request.uri());
        }
        let timed = |body| Timed::new(body, Side::Client, self.clocks.idle).boxed_unsync();
        let admitted = self.admit(Access::count_request(request.map(timed)), connection);
        let asked = admitted.as_ref().ok().and_then(|one| reverse::Asked::of(&one.asked));
        let result = match admitted {
            Err(refusal) => Err(refusal),
            Ok(admitted) => match (&self.pair, &self.standard) {
                (None, None) => self.serve_directly(admitted).await,
                (None, Some(standard)) => self.serve_by_standard(standard, admitted).await,
                (Some(pair), _) => match self.serve_by_pair(pair, admitted).await {
                    Ok(response) => Ok(response),
                    Err(Failure::Untouched(admitted, refusal)) => {
                        let reason = refusal.reason;
                        tracing::debug!(reason, "falling back to a direct request");
                        self.serve_directly(*admitted).await
                    }
                    Err(Failure::Refused(refusal)) => Err(refusal),
                },
            },
        };
        let result = match (result, &self.upstream, &asked) {
            (Ok(response), Some(upstream), Some(asked)) => {
                Ok(self.reverse.rewrite(response, upstream, asked).await)
            }
            (result, ..) => result,
        };
        let mut response = result.unwrap_or_else(Refusal::into_response);
        if let Some(hosted) = hosted {
            hosted.rewrite(&mut response);
        }
        wrapped(response)
    }

    /// The way of requests, unless they take another.
    pub(super) fn way(&self) -> Way {
        match (&self.pair, &self.standard) {
            (Some(_), _) => Way::Pair,
            (None, Some(standard)) => standard.way(),
            (None, None) => Way::Direct,
        }
    }

    /// A client's connection has ended that may have authenticated itself.
    pub(crate) async fn ended(&self, connection: &Connection) {
        let connection = connection.number;
        self.direct.client_ended(Owner { edge: 0, connection });
        if let Some(pair) = &self.pair {
            pair.send(Message::Input(Input::ClientEnded { connection })).await;
        }
    }

    /// Scheme and authority that a request is for, and the index of its service's settings, if it
    /// is one that can be served.
    pub(crate) fn service(&self, parts: &Parts) -> Option<(String, Option<usize>)> {
        let asked = Asked::new(parts, self.upstream.as_ref(), true).ok()?;
        let target = asked.target().ok()?;
        let index = self.services.find(&target);
        Some((format!("{}://{}", asked.scheme, asked.authority), index))
    }

    /// Who asks, as far as fields that are set for this service and the connection tell.
    pub(crate) fn client(
        &self,
        headers: &HeaderMap,
        service: Option<usize>,
        connection: &Connection,
    ) -> relay::Client {
        let service = service.and_then(|index| self.services.get(index));
        who::asks(headers, service.as_deref(), connection)
    }

    /// Whether the origin of this service settles codings with the client itself.
    pub(crate) fn passes_accept_encoding(&self, service: Option<usize>) -> bool {
        let service = service.and_then(|index| self.services.get(index));
        service.is_some_and(|service| service.pass_accept_encoding)
    }

    /// Understands a request and finds what is set for its service.
    fn admit(
        &self,
        mut request: Request<AnyBody>,
        connection: &Arc<Connection>,
    ) -> Result<Admitted, Refusal> {
        let upgrade = hyper::upgrade::on(&mut request);
        let access = Access::of(&request);
        let (parts, body) = request.into_parts();
        let mut asked = Asked::new(&parts, self.upstream.as_ref(), body.is_end_stream())?;
        self.check_loop(&parts)?;
        if self.upstream.is_none() && Hosted::of(&parts.uri).is_some() {
            hosted::check_site(&parts.headers)?;
        }
        let target = asked.target()?;
        self.check_denied(&target)?;
        let index = self.services.find(&target);
        let service = index.and_then(|index| self.services.get(index));
        if let (Some(access), Some(service)) = (&access, &service) {
            access.service(&service.pattern);
        }
        // An Upgrade that is ignored is as if it were not there (RFC 9110 §7.8).
        let listed = service.as_ref().and_then(|service| service.upgrades.as_deref());
        let upgrade_to = asked.upgrade.take();
        let upgrade_to = upgrade_to.and_then(|one| fields::allowed_upgrade(&one, listed));
        if upgrade_to.is_some() && listed.is_none() {
            // Inside another protocol any path may be asked for.
            self.check_denied(&Target { path: None, ..asked.target()? })?;
        }
        asked.upgrade = upgrade_to;
        let fallback =
            service.as_ref().and_then(|service| service.fallback).unwrap_or(self.fallback);
        let max_body = service.as_ref().and_then(|service| service.max_body);
        if let (Some(most), Some(len)) = (max_body, fields::content_length(&parts.headers))
            && len > most
        {
            return Err(too_large(most));
        }
        let version = parts.version;
        let client = who::asks(&parts.headers, service.as_deref(), connection);
        let service = index;
        self.reverse.name_client(&mut asked.headers, &connection.client, asked.host.as_ref());
        let origin = format!("{}://{}", asked.scheme, asked.authority);
        if origin::request_binds(&asked.headers) {
            connection.bind(&origin);
        }
        let bound = connection.is_bound(&origin).then_some(connection.number);
        let connection = Arc::clone(connection);
        Ok(Admitted {
            asked,
            version,
            upgrade,
            body,
            fallback,
            service,
            max_body,
            connection,
            bound,
            client,
            access,
        })
    }

    fn check_denied(&self, target: &Target<'_>) -> Result<(), Refusal> {
        let deny = self.deny.get();
        let Some(pattern) = deny.iter().find(|pattern| pattern.may_mean(target)) else {
            return Ok(());
        };
        let (host, port) = (target.host, target.port);
        let reason = format!("'{host}' port {port} is denied at this edge (deny '{pattern}')");
        Err(Refusal { status: StatusCode::FORBIDDEN, error: "http_request_denied", reason })
    }

    fn check_loop(&self, parts: &Parts) -> Result<(), Refusal> {
        if fields::has_passed(&parts.headers, &self.pseudonym) {
            return Err(Refusal {
                status: StatusCode::LOOP_DETECTED,
                error: "proxy_loop_detected",
                reason: "the request came back to this edge (Via): a loop".to_owned(),
            });
        }
        Ok(())
    }

    async fn serve_by_pair(
        &self,
        pair: &Handle,
        mut admitted: Admitted,
    ) -> Result<Response<AnyBody>, Failure> {
        let target = admitted.asked.target().map_err(Failure::Refused)?;
        if pair.is_outside(&target) {
            let refusal = origin::outside(&target, origin::ALLOW_LIST).into();
            return Err(Failure::Refused(refusal));
        }
        let exact = self.is_exact(admitted.service);
        let mut head = admitted.asked.head(exact, admitted.bound).map_err(Failure::Refused)?;
        who::tell_host(&mut head, admitted.asked.host.as_ref().map(HeaderValue::as_bytes));
        let may_tunnel = admitted.asked.may_tunnel();
        let end = admitted.body.is_end_stream() && !may_tunnel;
        let other_way = admitted.fallback == Fallback::Direct;
        let requester = Requester { client: admitted.client.clone(), other_way };
        let (service, access) = (admitted.service, admitted.access.clone());
        let Port { mut receiver, sender } =
            pair.open(Head::Request(head), end, service, requester, access).await;
        let interims = Interims::of(&admitted);
        if end || may_tunnel {
            let arrived = self.final_head(&mut receiver, &Progress::new(), &interims).await;
            return match arrived {
                Ok(answer) if may_tunnel => {
                    self.answer_tunnel(admitted, &answer, Port { receiver, sender })
                }
                Ok(answer) => self.answer(&admitted, &answer, receiver),
                Err(ended) => Err(give_up(admitted, ended)),
            };
        }
        let progress = Progress::new();
        let body = std::mem::replace(&mut admitted.body, empty());
        let mut pump = Pump::new(Watched::new(body, progress.clone()), sender, admitted.max_body);
        let expects = admitted.asked.headers.contains_key(header::EXPECT);
        if expects {
            pump = pump.eager();
        }
        let arrived = tokio::select! {
            // An answer goes before a fault of the request.
            biased;
            arrived = self.final_head(&mut receiver, &progress, &interims) => arrived,
            stop = until_stopped(&mut pump) => {
                return Err(Failure::Refused(stopped(&mut pump, stop)));
            }
        };
        match arrived {
            Ok(answer) => {
                let unwanted = expects && pump.is_untouched();
                if !unwanted {
                    pump.insist();
                }
                let mut response = self.answer(&admitted, &answer, receiver)?;
                if unwanted {
                    // Whether the client sends its body now cannot be known.
                    let close = HeaderValue::from_static("close");
                    response.headers_mut().insert(header::CONNECTION, close);
                    return Ok(response);
                }
                let succeeded = response.status().is_success();
                tokio::spawn(upload(pump, admitted.connection, succeeded));
                Ok(response)
            }
            Err(ended) => match pump.into_untouched() {
                Some(body) => {
                    admitted.body = body.into_inner();
                    Err(give_up(admitted, ended))
                }
                None => Err(Failure::Refused(ended.cause.into())),
            },
        }
    }

    /// Waits for the final head, as long as the request moves or the origin may stay silent.
    async fn final_head(
        &self,
        receiver: &mut Receiver,
        progress: &Progress,
        interims: &Interims,
    ) -> Result<Answer, Ended> {
        let ended = |kind, reason| Ended { cause: Cause { kind, reason }, untouched: false };
        loop {
            tokio::select! {
                arrived = receiver.answer() => match arrived? {
                    Arrived::Interim(status, fields) => {
                        // An origin that says so is at work (RFC 2518 §10.1).
                        progress.touch();
                        interims.pass(status, &fields);
                    }
                    Arrived::Head(Head::Response(head), end) => return Ok(Answer { head, end }),
                    Arrived::Head(Head::Request(_) | Head::Opening(_) | Head::Message(_), _) => {
                        let reason = "a request came for an answer".to_owned();
                        return Err(ended(CauseKind::Corrupt, reason));
                    }
                },
                () = progress.stalled(self.response_timeout) => {
                    let waited = self.response_timeout.as_secs_f64();
                    let reason = format!("no answer came within {waited} s (response_timeout)");
                    let ended = ended(CauseKind::OriginTimeout, reason);
                    receiver.abort(ended.cause.clone());
                    return Err(ended);
                }
            }
        }
    }

    /// The answer of an origin, as it came over the link.
    fn answer(
        &self,
        admitted: &Admitted,
        answer: &Answer,
        mut receiver: Receiver,
    ) -> Result<Response<AnyBody>, Failure> {
        let (status, mut headers) = answer.parts().map_err(Failure::Refused)?;
        let without = admitted.asked.method == Method::HEAD
            || status == StatusCode::NO_CONTENT
            || status == StatusCode::NOT_MODIFIED;
        let length = fields::content_length(&headers).filter(|_| !without);
        if answer.end && !without && length.is_some_and(|length| length > 0) {
            let reason = "the gateway sent no body where Content-Length tells of one".to_owned();
            let cause = Cause { kind: CauseKind::Corrupt, reason };
            return Err(Failure::Refused(cause.into()));
        }
        let body = if answer.end {
            receiver.finish();
            empty()
        } else {
            RelayBody::new(receiver, length, true).boxed_unsync()
        };
        if let Some(style) = answer.style().filter(|_| self.is_exact(admitted.service)) {
            headers.extend(style);
        }
        Ok(self.response(status, headers, body))
    }

    /// The answer to CONNECT or Upgrade: a tunnel, or not.
    fn answer_tunnel(
        &self,
        admitted: Admitted,
        answer: &Answer,
        mut port: Port,
    ) -> Result<Response<AnyBody>, Failure> {
        let (status, mut headers) = answer.parts().map_err(Failure::Refused)?;
        let status = match &admitted.asked.upgrade {
            None if status.is_success() => StatusCode::OK,
            // See the gateway's part: a 200 with Upgrade stands for 101.
            Some(_) if status == StatusCode::OK && headers.contains_key(header::UPGRADE) => {
                headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
                StatusCode::SWITCHING_PROTOCOLS
            }
            _ => {
                port.sender.end(Vec::new());
                return self.answer(&admitted, answer, port.receiver);
            }
        };
        let Admitted { upgrade, connection, access, .. } = admitted;
        let parting = self.parting.clone();
        connection.line.become_tunnel();
        tokio::spawn(async move {
            let _alive = connection.alive.clone();
            match upgrade.await {
                Ok(stream) => {
                    let stream = CountedStream::new(TokioIo::new(stream), access);
                    let socket = &connection.socket;
                    let broken = CauseKind::ClientGone;
                    flow::tunnel(stream, socket, port, broken, parting).await;
                }
                // Dropping the port tells the relay.
                Err(error) => tracing::debug!(%error, "a client left before its tunnel began"),
            }
        });
        Ok(self.response(status, headers, empty()))
    }

    fn response(
        &self,
        status: StatusCode,
        mut headers: HeaderMap,
        body: AnyBody,
    ) -> Response<AnyBody> {
        fields::add_via(&mut headers, http::Version::HTTP_11, &self.pseudonym);
        let body = self.parting.bound(body, &headers).boxed_unsync();
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }

    /// To a gateway of whatever make.
    async fn serve_by_standard(
        &self,
        standard: &Standard,
        mut admitted: Admitted,
    ) -> Result<Response<AnyBody>, Refusal> {
        standard.check(&admitted.asked.method, admitted.asked.may_tunnel())?;
        let interims = Interims::of(&admitted);
        let body = std::mem::replace(&mut admitted.body, empty());
        let Admitted { asked, version, max_body, connection, .. } = admitted;
        let Asked { method, scheme, authority, path, mut headers, .. } = asked;
        if headers.remove(header::EXPECT).is_some() {
            // The body is taken whole before anything leaves.
            interims.pass(StatusCode::CONTINUE.as_u16(), &Vec::new());
        }
        fields::add_via(&mut headers, version, &self.pseudonym);
        let client = connection.client.clone();
        let ask = Ask { method, scheme, authority, path, headers, body, max_body, client };
        let (parts, body) = standard.ask(ask).await?.into_parts();
        Ok(self.response(parts.status, parts.headers, body))
    }

    /// Straight to the origin, as if there were no pair.
    async fn serve_directly(&self, mut admitted: Admitted) -> Result<Response<AnyBody>, Refusal> {
        self.metrics.count_direct();
        admitted.access.iter().for_each(Access::goes_directly);
        let target = admitted.asked.target()?;
        if admitted.asked.method == Method::CONNECT {
            let client = ClientAt::of(&admitted.connection.client);
            let socket = self.direct.connect(&target, client).await?;
            let client = self.tunnelled(admitted);
            tokio::spawn(client.splice(socket.clone(), socket));
            return Ok(self.response(StatusCode::OK, HeaderMap::new(), empty()));
        }
        let mut answer = self.ask_directly(&mut admitted).await?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            if admitted.asked.upgrade.is_none() {
                let kind = CauseKind::OriginFailed;
                let reason = "the origin changed protocols without being asked".to_owned();
                return Err(Cause { kind, reason }.into());
            }
            let theirs = hyper::upgrade::on(&mut answer);
            let (mut parts, body) = answer.into_parts();
            let Some(socket) = body.into_socket() else { return Err(no_socket()) };
            let client = self.tunnelled(admitted);
            tokio::spawn(async move {
                match theirs.await {
                    Ok(stream) => client.splice(TokioIo::new(stream), socket).await,
                    Err(error) => tracing::debug!(%error, "an origin left before its tunnel began"),
                }
            });
            let headers = std::mem::take(&mut parts.headers);
            return Ok(self.response(StatusCode::SWITCHING_PROTOCOLS, headers, empty()));
        }
        let (mut parts, body) = answer.into_parts();
        fields::remove_hop_by_hop(&mut parts.headers);
        if let Some(head) =
            parts.extensions.get::<ResponseHead>().filter(|_| self.is_exact(admitted.service))
        {
            let names = head.fields.iter().map(|field| field.name.clone()).collect();
            let style = Style { names, reason: Some(head.reason.clone()) };
            parts.headers.extend(style_field(&style));
        }
        let body = Timed::new(body, Side::Origin, self.clocks.of_answer(&parts));
        Ok(self.response(parts.status, parts.headers, body.boxed_unsync()))
    }

    fn tunnelled(&self, admitted: Admitted) -> Tunnelled {
        let Admitted { upgrade, connection, access, .. } = admitted;
        connection.line.become_tunnel();
        Tunnelled { upgrade, connection, access, parting: self.parting.clone() }
    }

    /// Asks the origin itself.
    async fn ask_directly(
        &self,
        admitted: &mut Admitted,
    ) -> Result<Response<origin::OriginBody>, Refusal> {
        let interims = Interims::of(admitted);
        let body = std::mem::replace(&mut admitted.body, empty());
        let Admitted { asked, version, max_body, bound, service, connection, .. } = &*admitted;
        let client = ClientAt::of(&connection.client);
        let target = asked.target()?;
        if let Some(protocol) = &asked.upgrade {
            let service = service.and_then(|index| self.services.get(index));
            let listed = service.as_ref().and_then(|service| service.upgrades.as_deref());
            self.direct.check_upgrade(&target, client, protocol, listed)?;
        }
        let repeatable = body.is_end_stream() && asked.method.is_idempotent();
        let most = usize::try_from(max_body.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let progress = Progress::new();
        let body = Limited::new(Watched::new(body, progress.clone()), most);
        let mut message = Request::new(body.boxed_unsync());
        *message.method_mut() = asked.method.clone();
        *message.uri_mut() = asked.path.parse().map_err(|_| bad_path(&asked.path))?;
        *message.headers_mut() = self.direct_headers(asked, *version);
        let expects = message.headers().contains_key(header::EXPECT);
        let names = || {
            let names = asked.sent_fields().iter().map(|field| field.name.clone());
            Style { names: names.collect(), reason: None }
        };
        let how = How {
            owner: bound.map(|connection| Owner { edge: 0, connection }),
            style: self.is_exact(*service).then(names),
            path: asked.raw_path.clone(),
            on_interim: Some(interims.on_interim(progress.clone())),
        };
        let request = origin::Request { target, client, message, repeatable, progress, how };
        let mut sending = std::pin::pin!(self.direct.send(request));
        if expects {
            match tokio::time::timeout(EXPECT_PATIENCE, &mut sending).await {
                Ok(answer) => return Ok(answer?),
                // The origin knows no such thing: the client is not kept waiting for it.
                Err(_) => interims.pass(StatusCode::CONTINUE.as_u16(), &Vec::new()),
            }
        }
        Ok(sending.await?)
    }

    /// Whether the case and the order of a service's fields, and its reasons, are kept.
    fn is_exact(&self, service: Option<usize>) -> bool {
        let service = service.and_then(|index| self.services.get(index));
        service.is_some_and(|service| service.exact_fields)
    }

    fn direct_headers(&self, asked: &Asked, version: http::Version) -> HeaderMap {
        let mut headers = asked.headers.clone();
        if let Ok(host) = HeaderValue::from_str(&asked.authority) {
            headers.insert(header::HOST, host);
        }
        // RFC 9110 §7.8 and §10.1.4: both must be listed in Connection.
        if let Some(protocol) = &asked.upgrade {
            headers.insert(header::UPGRADE, protocol.clone());
            headers.append(header::CONNECTION, HeaderValue::from_static("upgrade"));
        }
        if headers.contains_key(header::TE) {
            headers.append(header::CONNECTION, HeaderValue::from_static("te"));
        }
        fields::add_via(&mut headers, version, &self.pseudonym);
        headers
    }
}

/// The final head of an answer over the link.
struct Answer {
    head: bhttp::Response,
    end: bool,
}

impl Answer {
    fn parts(&self) -> Result<(StatusCode, HeaderMap), Refusal> {
        let corrupt = |reason| Cause { kind: CauseKind::Corrupt, reason };
        let status = StatusCode::from_u16(self.head.status)
            .map_err(|_| corrupt(format!("status {} is none", self.head.status)))?;
        let mut fields = self.head.fields.clone();
        fields::take(&mut fields, STYLE_FIELD);
        Ok((status, fields::to_headers(&fields)?))
    }

    /// How the head is written, if the gateway says so.
    fn style(&self) -> Option<HeaderMap> {
        let mut fields = self.head.fields.clone();
        let style = fields::take(&mut fields, STYLE_FIELD)?;
        Some(style_field(&Style::decode(&style, fields.iter().map(|(name, _)| &name[..]))))
    }
}

/// The style of a head for the client's connection, which takes it out again.
fn style_field(style: &Style) -> HeaderMap {
    let value = HeaderValue::from_maybe_shared(style.to_list()).ok();
    value.map(|value| (HeaderName::from_static(STYLE_FIELD), value)).into_iter().collect()
}

/// Where interim answers go: to clients that may get some (RFC 9110 §15.2).
struct Interims {
    line: Option<Arc<Line>>,
}

impl Interims {
    fn of(admitted: &Admitted) -> Self {
        let takes_interim = admitted.version != http::Version::HTTP_10;
        Self { line: takes_interim.then(|| Arc::clone(&admitted.connection.line)) }
    }

    fn pass(&self, status: u16, fields: &bhttp::Fields) {
        let Some(line) = &self.line else { return };
        let Ok(status) = StatusCode::from_u16(status) else { return };
        let reason = status.canonical_reason().unwrap_or_default();
        let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
        let Ok(mut headers) = fields::to_headers(fields) else { return };
        fields::remove_hop_by_hop(&mut headers);
        for (name, value) in &headers {
            head.extend_from_slice(name.as_ref());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        line.interim(&head);
    }

    /// For answers that come from an origin itself.
    fn on_interim(&self, progress: Progress) -> OnInterim {
        let interims = Self { line: self.line.clone() };
        Arc::new(move |head: &ResponseHead| {
            progress.touch();
            interims.pass(head.status, &fields::of_http1(&head.fields));
        })
    }
}

/// Carries the rest of a request whose answer has begun.
async fn upload(mut pump: Pump<Watched<AnyBody>>, connection: Arc<Connection>, succeeded: bool) {
    let _alive = connection.alive.clone();
    let Err(stop) = pump.run().await else { return };
    if succeeded && matches!(stop, Stop::Ended) {
        // The client has been told of a success of what did not arrive.
        connection.broken.store(true, Ordering::Relaxed);
        connection.socket.reset_on_close();
    }
    stopped(&mut pump, stop);
}

fn no_socket() -> Refusal {
    let reason = "the connection to the origin is gone".to_owned();
    Cause { kind: CauseKind::OriginFailed, reason }.into()
}

/// Resolves only when the request's body stops for a reason of its own.
async fn until_stopped(pump: &mut Pump<Watched<AnyBody>>) -> Stop {
    match pump.run().await {
        Ok(()) | Err(Stop::Ended) => std::future::pending().await,
        Err(stop) => stop,
    }
}

/// Tells the relay that a request's body will not be whole.
fn stopped(pump: &mut Pump<Watched<AnyBody>>, stop: Stop) -> Refusal {
    let (kind, reason) = match stop {
        Stop::Ended => (CauseKind::AnsweredEarly, "the exchange is over".to_owned()),
        Stop::Broken(error) if error.is::<Stalled>() => {
            let reason = error.to_string();
            pump.abort(Cause { kind: CauseKind::ClientGone, reason: reason.clone() });
            let (status, error) = (StatusCode::REQUEST_TIMEOUT, "http_request_error");
            return Refusal { status, error, reason };
        }
        Stop::Broken(error) => (CauseKind::ClientGone, format!("the client left: {error}")),
        Stop::TooLarge(most) => {
            let refusal = too_large(most);
            pump.abort(Cause { kind: CauseKind::BadRequest, reason: refusal.reason.clone() });
            return refusal;
        }
    };
    let cause = Cause { kind, reason };
    pump.abort(cause.clone());
    cause.into()
}

fn give_up(admitted: Admitted, ended: Ended) -> Failure {
    let Ended { cause, untouched } = ended;
    let direct = admitted.fallback == Fallback::Direct
        && untouched
        && cause.kind == CauseKind::GatewayUnreachable;
    if direct {
        Failure::Untouched(Box::new(admitted), cause.into())
    } else {
        Failure::Refused(cause.into())
    }
}

/// A client whose connection becomes a tunnel to an origin.
struct Tunnelled {
    upgrade: OnUpgrade,
    connection: Arc<Connection>,
    access: Option<Access>,
    parting: Parting,
}

impl Tunnelled {
    /// Carries bytes between the client and an origin until both have ended.
    async fn splice<S: AsyncRead + AsyncWrite + Unpin>(self, origin: S, socket: Shared) {
        let Self { upgrade, connection, access, parting } = self;
        let _alive = connection.alive.clone();
        let Ok(client) = upgrade.await else { return };
        let client = CountedStream::new(TokioIo::new(client), access);
        flow::splice(client, origin, [&connection.socket, &socket], parting).await;
    }
}

fn empty() -> AnyBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

fn too_large(most: u64) -> Refusal {
    let reason = format!("the body is over the limit of {most} bytes (max_body)");
    Refusal { status: StatusCode::PAYLOAD_TOO_LARGE, error: "http_request_error", reason }
}

fn bad_path(path: &str) -> Refusal {
    let reason = format!("'{path}' is no path");
    Refusal { status: StatusCode::BAD_REQUEST, error: "http_request_error", reason }
}
