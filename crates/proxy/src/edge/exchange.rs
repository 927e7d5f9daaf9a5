//! One exchange at the edge: a client's request, over the pair or directly, and its answer.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use http::header::{self, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use proto::bhttp;
use relay::{Cause, CauseKind, Head};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::answer::{ClientBody, Refusal};
use super::target::Asked;
use super::who;
use crate::access::{Access, CountedStream};
use crate::actor::Handle;
use crate::config::{Fallback, Service};
use crate::fields;
use crate::flow::{self, AnyBody, Progress, Pump, RelayBody, Stop, Watched};
use crate::front::Connection;
use crate::mailbox::{Ended, Port, Receiver};
use crate::metrics::Metrics;
use crate::origin;
use crate::upstream::Upstream;

/// What all exchanges of an edge share.
pub(crate) struct Exchanges {
    /// None: everything goes directly.
    pub(crate) pair: Option<Handle>,
    pub(crate) direct: origin::Client,
    pub(crate) upstream: Option<Upstream>,
    pub(crate) fallback: Fallback,
    pub(crate) services: Vec<Service>,
    pub(crate) pseudonym: String,
    /// Bound on silence before an answer.
    pub(crate) response_timeout: Duration,
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
    /// Held while a tunnel runs, for the connection's task has ended by then.
    alive: mpsc::Sender<()>,
    /// Who asks, and which host.
    client: relay::Client,
    host: Option<HeaderValue>,
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
        broken: Arc<AtomicBool>,
        connection: &Connection,
    ) -> Response<ClientBody> {
        let result = match self.admit(Access::count_request(request), connection) {
            Err(refusal) => Err(refusal),
            Ok(admitted) => match &self.pair {
                None => self.serve_directly(admitted).await,
                Some(pair) => match self.serve_by_pair(pair, admitted).await {
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
        let response = result.unwrap_or_else(Refusal::into_response);
        response.map(|body| ClientBody::new(body, broken))
    }

    /// Scheme and authority that a request is for, and the index of its service's settings, if it
    /// is one that can be served.
    pub(crate) fn service(&self, parts: &Parts) -> Option<(String, Option<usize>)> {
        let asked = Asked::new(parts, self.upstream.as_ref(), true).ok()?;
        let target = asked.target().ok()?;
        let index = self.services.iter().position(|service| service.pattern.matches(&target));
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
        who::asks(headers, service, connection)
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
        connection: &Connection,
    ) -> Result<Admitted, Refusal> {
        let upgrade = hyper::upgrade::on(&mut request);
        let access = Access::of(&request);
        let (parts, body) = request.into_parts();
        let asked = Asked::new(&parts, self.upstream.as_ref(), body.is_end_stream())?;
        self.check_loop(&parts)?;
        let target = asked.target()?;
        let index = self.services.iter().position(|service| service.pattern.matches(&target));
        let service = index.and_then(|index| self.services.get(index));
        if let (Some(access), Some(service)) = (&access, service) {
            access.service(&service.pattern);
        }
        let fallback = service.and_then(|service| service.fallback).unwrap_or(self.fallback);
        let max_body = service.and_then(|service| service.max_body);
        if let (Some(most), Some(len)) = (max_body, fields::content_length(&parts.headers))
            && len > most
        {
            return Err(too_large(most));
        }
        let version = parts.version;
        let client = who::asks(&parts.headers, service, connection);
        let host = parts.headers.get(header::HOST).cloned();
        let (alive, service) = (connection.alive.clone(), index);
        Ok(Admitted {
            asked,
            version,
            upgrade,
            body,
            fallback,
            service,
            max_body,
            alive,
            client,
            access,
            host,
        })
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
        let mut head = admitted.asked.head().map_err(Failure::Refused)?;
        who::tell_host(&mut head, admitted.host.as_ref().map(HeaderValue::as_bytes));
        let may_tunnel = admitted.asked.may_tunnel();
        let end = admitted.body.is_end_stream() && !may_tunnel;
        let (service, client) = (admitted.service, admitted.client.clone());
        let access = admitted.access.clone();
        let Port { mut receiver, sender } =
            pair.open(Head::Request(head), end, service, client, access).await;
        if end || may_tunnel {
            let arrived = self.final_head(&mut receiver, &Progress::new()).await;
            return match arrived {
                Ok(answer) if may_tunnel => {
                    self.answer_tunnel(admitted, &answer, Port { receiver, sender })
                }
                Ok(answer) => self.answer(&admitted.asked.method, &answer, receiver),
                Err(ended) => Err(give_up(admitted, ended)),
            };
        }
        let progress = Progress::new();
        let body = Watched::new(admitted.body, progress.clone());
        let mut pump = Pump::new(body, sender, admitted.max_body);
        let arrived = tokio::select! {
            // An answer goes before a fault of the request.
            biased;
            arrived = self.final_head(&mut receiver, &progress) => arrived,
            stop = until_stopped(&mut pump) => {
                return Err(Failure::Refused(stopped(&mut pump, stop)));
            }
        };
        match arrived {
            Ok(answer) => {
                tokio::spawn(async move {
                    let _alive = admitted.alive;
                    if let Err(stop) = pump.run().await {
                        stopped(&mut pump, stop);
                    }
                });
                self.answer(&admitted.asked.method, &answer, receiver)
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
    ) -> Result<Answer, Ended> {
        let ended = |kind, reason| Ended { cause: Cause { kind, reason }, untouched: false };
        tokio::select! {
            arrived = receiver.answer() => {
                let (head, end) = arrived?;
                match head {
                    Head::Response(head) => Ok(Answer { head, end }),
                    Head::Request(_) => {
                        let reason = "a request came for an answer".to_owned();
                        Err(ended(CauseKind::Corrupt, reason))
                    }
                }
            }
            () = progress.stalled(self.response_timeout) => {
                let waited = self.response_timeout.as_secs_f64();
                let reason = format!("no answer came within {waited} s (response_timeout)");
                let ended = ended(CauseKind::OriginTimeout, reason);
                receiver.abort(ended.cause.clone());
                Err(ended)
            }
        }
    }

    /// The answer of an origin, as it came over the link.
    fn answer(
        &self,
        method: &Method,
        answer: &Answer,
        mut receiver: Receiver,
    ) -> Result<Response<AnyBody>, Failure> {
        let (status, headers) = answer.parts().map_err(Failure::Refused)?;
        let length = fields::content_length(&headers);
        let without = *method == Method::HEAD
            || status == StatusCode::NO_CONTENT
            || status == StatusCode::NOT_MODIFIED;
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
                return self.answer(&admitted.asked.method, answer, port.receiver);
            }
        };
        let Admitted { upgrade, alive, access, .. } = admitted;
        tokio::spawn(async move {
            let _alive = alive;
            match upgrade.await {
                Ok(stream) => {
                    let stream = CountedStream::new(TokioIo::new(stream), access);
                    flow::tunnel(stream, port, CauseKind::ClientGone).await;
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
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }

    /// Straight to the origin, as if there were no pair.
    async fn serve_directly(&self, admitted: Admitted) -> Result<Response<AnyBody>, Refusal> {
        self.metrics.count_direct();
        let Admitted { asked, version, upgrade, body, max_body, alive, access, .. } = admitted;
        if let Some(access) = &access {
            access.goes_directly();
        }
        let target = asked.target()?;
        if asked.method == Method::CONNECT {
            let stream = self.direct.connect(&target).await?;
            tokio::spawn(splice(upgrade, stream, alive, access));
            return Ok(self.response(StatusCode::OK, HeaderMap::new(), empty()));
        }
        let repeatable = body.is_end_stream() && asked.method.is_idempotent();
        let most = usize::try_from(max_body.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let progress = Progress::new();
        let body = Limited::new(Watched::new(body, progress.clone()), most);
        let mut message = Request::new(body.boxed_unsync());
        *message.method_mut() = asked.method.clone();
        *message.uri_mut() = asked.path.parse().map_err(|_| bad_path(&asked.path))?;
        *message.headers_mut() = self.direct_headers(&asked, version);
        let request = origin::Request { target, message, repeatable, progress };
        let mut answer = self.direct.send(request).await?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let theirs = hyper::upgrade::on(&mut answer);
            tokio::spawn(async move {
                match theirs.await {
                    Ok(stream) => splice(upgrade, TokioIo::new(stream), alive, access).await,
                    Err(error) => tracing::debug!(%error, "an origin left before its tunnel began"),
                }
            });
            let headers = std::mem::take(answer.headers_mut());
            return Ok(self.response(StatusCode::SWITCHING_PROTOCOLS, headers, empty()));
        }
        let (mut parts, body) = answer.into_parts();
        fields::remove_hop_by_hop(&mut parts.headers);
        let body = body.map_err(Into::into).boxed_unsync();
        Ok(self.response(parts.status, parts.headers, body))
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
        Ok((status, fields::to_headers(&self.head.fields)?))
    }
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

/// Carries bytes between a client and an origin until both have ended.
async fn splice<S>(
    client: OnUpgrade,
    mut origin: S,
    alive: mpsc::Sender<()>,
    access: Option<Access>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let _alive = alive;
    let Ok(client) = client.await else { return };
    let mut client = CountedStream::new(TokioIo::new(client), access);
    if let Err(error) = tokio::io::copy_bidirectional(&mut client, &mut origin).await {
        tracing::debug!(%error, "a tunnel broke");
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
