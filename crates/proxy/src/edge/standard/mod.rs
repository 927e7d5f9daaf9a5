//! Requests to a gateway that is asked as anybody's software would ask it, each whole in one
//! transaction of WSP or one exchange of CoAP: no pair, no carrier.
//!
//! - here: what may be asked so, bounds and clocks;
//! - `room`: the shares of clients in these bounds;
//! - `line`: the line to the gateway, opened anew where it broke;
//! - `wsp`, `coap`: the shells around both machines, and what of HTTP each can say.

mod coap;
mod line;
mod room;
mod wsp;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap};
use http::{Method, Response, StatusCode};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use relay::{Cause, CauseKind};

use super::answer::Refusal;
use crate::access::Way;
use crate::clock::Stalled;
use crate::config::{StandardGateway, StandardKind};
use crate::flow::AnyBody;
use crate::metrics::Metrics;
use crate::rarely::Rarely;
use crate::seats::Source;
use room::{Room, Share};

/// How metrics call the bounds.
const FULL: &str = "gateway_requests";
const FULL_OF_BYTES: &str = "gateway_bytes";

/// A request, before its body is here. Its fields are those that leave this hop.
pub(super) struct Ask {
    pub(super) method: Method,
    pub(super) scheme: String,
    pub(super) authority: String,
    /// Path and query; `*` for the server as a whole.
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: AnyBody,
    /// Largest body, in bytes, as its service has it.
    pub(super) max_body: Option<u64>,
    /// Address of the client.
    pub(super) client: String,
}

/// A whole request.
struct Whole {
    method: Method,
    scheme: String,
    authority: String,
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Whole {
    /// Its absolute URI.
    fn uri(&self) -> String {
        let Self { scheme, authority, path, .. } = self;
        // RFC 9112 §3.2.4: the whole server is meant where there is no path.
        let path = if path == "*" { "" } else { path };
        format!("{scheme}://{authority}{path}")
    }
}

/// A whole answer; its fields are those that leave this hop.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// See the module.
pub(crate) struct Standard {
    gateway: Arc<StandardGateway>,
    way: Asking,
    response_timeout: Duration,
    places: Arc<Room>,
    bytes: Arc<Room>,
    dropped: Rarely,
    metrics: Arc<Metrics>,
}

enum Asking {
    Wsp(wsp::Path),
    Coap(coap::Path),
}

impl Standard {
    /// Nothing is opened before the first request.
    pub(crate) fn new(
        gateway: StandardGateway,
        response_timeout: Duration,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let gateway = Arc::new(gateway);
        let way = match gateway.kind {
            StandardKind::Wsp { repeats, wbxml } => {
                Asking::Wsp(wsp::Path::new(&gateway, repeats, wbxml, metrics))
            }
            StandardKind::Coap => Asking::Coap(coap::Path::new(&gateway, metrics)),
        };
        Self {
            way,
            response_timeout,
            places: Room::new(gateway.max_open),
            bytes: Room::new(gateway.body_bytes),
            dropped: Rarely::default(),
            metrics: Arc::clone(metrics),
            gateway,
        }
    }

    /// What logs and metrics call the way.
    pub(crate) fn way(&self) -> Way {
        match self.way {
            Asking::Wsp(_) => Way::Wsp,
            Asking::Coap(_) => Way::Coap,
        }
    }

    /// Why a request cannot go this way, as far as its head tells.
    pub(super) fn check(&self, method: &Method, may_tunnel: bool) -> Result<(), Refusal> {
        let name = self.gateway.kind.name();
        if may_tunnel {
            let what = "makes no tunnel: CONNECT and Upgrade need a gateway of longwire's own";
            return Err(cannot(format!("the way by {name} {what}")));
        }
        let is_known = match self.way {
            Asking::Wsp(_) => wsp::knows(method),
            Asking::Coap(_) => coap::knows(method),
        };
        match is_known {
            true => Ok(()),
            false => Err(cannot(format!("{method} cannot be said by {name}"))),
        }
    }

    /// Asks, and returns the whole answer of the gateway.
    pub(super) async fn ask(&self, ask: Ask) -> Result<Response<AnyBody>, Refusal> {
        let source = Source::of_text(&ask.client);
        let place = self.places.take(source, 1).ok_or_else(|| {
            self.metrics.count_limit(FULL);
            let most = self.places.most();
            let what =
                "requests are open to the gateway (max_exchanges), or too many of this client";
            full(format!("{most} {what}"))
        })?;
        let Ask { method, scheme, authority, path, headers, body, max_body, .. } = ask;
        let (body, held) = self.read(body, max_body, source).await?;
        let is_head = method == Method::HEAD;
        let whole = Whole { method, scheme, authority, path, headers, body };
        let answer = match &self.way {
            Asking::Wsp(path) => path.ask(whole, self.response_timeout).await?,
            Asking::Coap(path) => {
                let (answer, dropped) = path.ask(whole, self.response_timeout).await?;
                self.tell_dropped(&dropped);
                answer
            }
        };
        drop(held);
        Ok(response(answer, is_head, place))
    }

    /// A whole body, as far as it can be sent, and the room that it has.
    async fn read(
        &self,
        mut body: AnyBody,
        max_body: Option<u64>,
        source: Source,
    ) -> Result<(Bytes, Share), Refusal> {
        let most = match self.way {
            Asking::Wsp(_) => wsp::MAX_BODY_BYTES,
            Asking::Coap(_) => coap::MAX_BODY_BYTES,
        };
        let of_service = max_body.and_then(|most| usize::try_from(most).ok());
        let (most, why) = match of_service {
            Some(less) if less < most => (less, "max_body".to_owned()),
            _ => (most, format!("what goes by {}", self.gateway.kind.name())),
        };
        let over = || too_large(format!("the body is over the limit of {most} bytes ({why})"));
        if body.size_hint().lower() > most as u64 {
            return Err(over());
        }
        let no_room = || {
            self.metrics.count_limit(FULL_OF_BYTES);
            full("no room for bodies of more requests (body_memory)".to_owned())
        };
        let mut held = self.bytes.take(source, 0).ok_or_else(no_room)?;
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| match error.is::<Stalled>() {
                true => Refusal {
                    status: StatusCode::REQUEST_TIMEOUT,
                    error: "http_request_error",
                    reason: error.to_string(),
                },
                false => {
                    let reason = format!("the client left: {error}");
                    Cause { kind: CauseKind::ClientGone, reason }.into()
                }
            })?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > most {
                return Err(over());
            }
            if !held.grow(data.len()) {
                return Err(no_room());
            }
            bytes.extend_from_slice(&data);
        }
        Ok((bytes.freeze(), held))
    }

    /// Which fields did not go, now and then: their names alone.
    fn tell_dropped(&self, names: &[String]) {
        if names.is_empty() {
            return;
        }
        let names = names.join(", ");
        let what = "fields that CoAP cannot carry were left out (docs/foreign.md)";
        match self.dropped.note(Instant::now()) {
            Some(times) => tracing::info!(times, fields = names, "{what}"),
            None => tracing::debug!(fields = names, "{what}"),
        }
    }
}

/// The answer as the client gets it; the place is free when it has it.
fn response(answer: Answer, is_head: bool, place: Share) -> Response<AnyBody> {
    let Answer { status, mut headers, body } = answer;
    let without = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if without {
        headers.remove(header::CONTENT_LENGTH);
    } else if !is_head || (!body.is_empty() && !headers.contains_key(header::CONTENT_LENGTH)) {
        headers.insert(header::CONTENT_LENGTH, body.len().into());
    }
    let body = if without || is_head { Bytes::new() } else { body };
    let body = Full::new(body).map_err(|never| match never {}).map_frame(move |frame| {
        let _open = &place;
        frame
    });
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// What this way cannot say.
fn cannot(reason: String) -> Refusal {
    Refusal { status: StatusCode::NOT_IMPLEMENTED, error: "http_request_error", reason }
}

fn too_large(reason: String) -> Refusal {
    Refusal { status: StatusCode::PAYLOAD_TOO_LARGE, error: "http_request_error", reason }
}

fn bad(reason: String) -> Refusal {
    Refusal { status: StatusCode::BAD_REQUEST, error: "http_request_error", reason }
}

fn full(reason: String) -> Refusal {
    Cause { kind: CauseKind::Limit, reason }.into()
}

/// The gateway is not there, or nobody knows what became of the request.
fn silent(reason: String) -> Refusal {
    Cause { kind: CauseKind::GatewayUnreachable, reason }.into()
}

/// The gateway's answer is none.
fn broken(reason: String) -> Refusal {
    Cause { kind: CauseKind::OriginFailed, reason }.into()
}
