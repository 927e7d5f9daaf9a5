//! One line for each exchange, at its end, and the counts that go with it.
//!
//! Several see an exchange: the listener its client, the relay its bytes on the carrier, the client
//! of origins how it ended. Each notes here what it knows; when the last of them lets go, the line
//! is written. So there is exactly one, however the exchange ended.

mod counting;
mod secrets;
mod trace;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use coding::ExchangeId;
use http::{Method, Request, Response, header};
use proto::http1::Fault;
use record::decision::{Asked, Direction};
use record::event::{Carried, Fact};
use relay::{CauseKind, Head};

use crate::flow::AnyBody;
use crate::metrics::Metrics;

pub(crate) use counting::{Counted, CountedStream};

/// The way that an exchange goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// Over the link, in a carrier.
    Pair,
    /// Straight to its origin, without a gateway.
    Direct,
    /// From a client without an edge.
    Edgeless,
    /// From a client of CoAP; at an edge, over CoAP to a forward proxy.
    Coap,
    /// At an edge, over WSP to a WAP gateway.
    Wsp,
}

impl Way {
    /// Every way.
    pub(crate) const ALL: [Self; 5] =
        [Self::Pair, Self::Direct, Self::Edgeless, Self::Coap, Self::Wsp];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pair => "pair",
            Self::Direct => "direct",
            Self::Edgeless => "edgeless",
            Self::Coap => "coap",
            Self::Wsp => "wsp",
        }
    }
}

/// Why an exchange has no answer of an origin, on the answer in its place.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) error: &'static str,
    pub(crate) reason: String,
}

/// The fields of an exchange's line in the access log.
#[derive(Debug)]
struct Fields {
    exchange: Option<String>,
    method: String,
    target: String,
    service: Option<String>,
    way: Way,
    status: Option<u16>,
    request_encoding: Option<String>,
    answer_encoding: Option<String>,
    carried: Option<Carried>,
    /// None: it ended well.
    cause: Option<String>,
    reason: Option<String>,
    /// From the request to the answer's head.
    headed: Option<Duration>,
    /// It went directly though there is a gateway.
    fell_back: bool,
    /// The trace that its client named.
    trace: Option<String>,
}

/// See the module.
struct Shared {
    metrics: Arc<Metrics>,
    started: Instant,
    /// Address of the client; at a gateway the name of the edge.
    client: String,
    /// The request came over a carrier.
    at_gateway: bool,
    from_client_bytes: AtomicU64,
    to_client_bytes: AtomicU64,
    fields: Mutex<Fields>,
}

/// A hand on an exchange's line.
#[derive(Clone)]
pub(crate) struct Access(Arc<Shared>);

impl Access {
    fn new(metrics: &Arc<Metrics>, client: &str, at_gateway: bool, fields: Fields) -> Self {
        Self(Arc::new(Shared {
            metrics: Arc::clone(metrics),
            started: Instant::now(),
            client: client.to_owned(),
            at_gateway,
            from_client_bytes: AtomicU64::new(0),
            to_client_bytes: AtomicU64::new(0),
            fields: Mutex::new(fields),
        }))
    }

    /// A client's request has come; the line goes along with it.
    pub(crate) fn begin<B>(
        metrics: &Arc<Metrics>,
        way: Way,
        client: &str,
        request: &mut Request<B>,
    ) -> Self {
        let mut target = request.uri().to_string();
        // In origin form (RFC 9112 §3.2.1) the host stands elsewhere.
        if request.uri().authority().is_none()
            && let Some(host) = request.headers().get(header::HOST)
        {
            target.insert_str(0, &format!("http://{}", String::from_utf8_lossy(host.as_bytes())));
        }
        let mut fields = Fields::new(request.method().to_string(), &target, way);
        let values = request.headers().get_all(trace::FIELD).iter();
        fields.trace = trace::id(values.map(http::HeaderValue::as_bytes));
        let access = Self::new(metrics, client, false, fields);
        request.extensions_mut().insert(access.clone());
        access
    }

    /// An edge's request has come.
    pub(crate) fn at_gateway(
        metrics: &Arc<Metrics>,
        edge: &str,
        id: ExchangeId,
        head: &Head,
    ) -> Self {
        let (method, target) = match head {
            Head::Request(request) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let (scheme, path) = (text(&request.scheme), text(&request.path));
                let authority = text(&request.authority);
                let joint = if scheme.is_empty() { "" } else { "://" };
                (text(&request.method), format!("{scheme}{joint}{authority}{path}"))
            }
            Head::Response(_) | Head::Opening(_) | Head::Message(_) => {
                (String::new(), String::new())
            }
        };
        let mut fields = Fields::new(method, &target, Way::Pair);
        fields.trace = of_head(head);
        fields.exchange = Some(id.to_string());
        Self::new(metrics, edge, true, fields)
    }

    /// The line that goes along with a request.
    pub(crate) fn of<B>(request: &Request<B>) -> Option<Self> {
        request.extensions().get().cloned()
    }

    /// The request's body, counted.
    pub(crate) fn count_request(request: Request<AnyBody>) -> Request<AnyBody> {
        use http_body_util::BodyExt as _;
        let access = Self::of(&request);
        request.map(|body| Counted::request(body, access).boxed_unsync())
    }

    fn fields(&self) -> MutexGuard<'_, Fields> {
        self.0.fields.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose settings count.
    pub(crate) fn service(&self, service: &impl ToString) {
        self.fields().service = Some(service.to_string());
    }

    /// It goes straight to its origin: what came of it over the pair counts no more.
    pub(crate) fn goes_directly(&self) {
        let mut fields = self.fields();
        if fields.way == Way::Pair {
            (fields.way, fields.fell_back) = (Way::Direct, true);
            (fields.exchange, fields.cause, fields.reason, fields.carried) =
                (None, None, None, None);
        }
    }

    /// The actor's name for it.
    pub(crate) fn named(&self, id: &str) {
        self.fields().exchange = Some(id.to_owned());
    }

    /// Without an edge: what the answer's content is coded in.
    pub(crate) fn coded(&self, exchange: &str, encoding: &str) {
        let mut fields = self.fields();
        fields.exchange = Some(exchange.to_owned());
        fields.answer_encoding = Some(encoding.to_owned());
    }

    /// What the relay says of it.
    pub(crate) fn fact(&self, fact: &Fact) {
        let mut fields = self.fields();
        match fact {
            Fact::Chosen { direction: Direction::Request, encoding, .. } => {
                fields.request_encoding = Some(encoding.clone());
            }
            Fact::Chosen { direction: Direction::Response, encoding, .. } => {
                fields.answer_encoding = Some(encoding.clone());
            }
            Fact::Finished { status, carried, .. } => {
                self.ended(&mut fields, *status, carried);
            }
            Fact::Failed { cause, reason, status, carried, .. } => {
                self.ended(&mut fields, *status, carried);
                // The rest of a request that was not wanted is no failure.
                if cause != CauseKind::AnsweredEarly.name() {
                    fields.cause = Some(cause.clone());
                    fields.reason = Some(reason.clone());
                }
            }
            _ => {}
        }
    }

    fn ended(&self, fields: &mut Fields, status: u16, carried: &Carried) {
        if status != 0 {
            // The client's status may be another: 101 crosses the link as 200.
            fields.status.get_or_insert(status);
        }
        if let Some(encoding) = &carried.received_encoding {
            let encoded_as = match self.0.at_gateway {
                true => &mut fields.request_encoding,
                false => &mut fields.answer_encoding,
            };
            *encoded_as = Some(encoding.clone());
        }
        fields.carried = Some(carried.clone());
    }

    /// The answer's head is there: what follows is counted.
    pub(crate) fn answered<B: http_body::Body>(self, answer: Response<B>) -> Response<Counted<B>> {
        let mut fields = self.fields();
        fields.status = Some(answer.status().as_u16());
        if let Some(refused) = answer.extensions().get::<Refused>() {
            fields.cause.get_or_insert_with(|| refused.error.to_owned());
            fields.reason.get_or_insert_with(|| refused.reason.clone());
        }
        drop(fields);
        self.headed();
        answer.map(|body| Counted::answer(body, Some(self)))
    }

    /// An answer of our own: with which status, of which type the error is, and why.
    pub(crate) fn refused(&self, status: u16, error: &str, reason: &str) {
        let mut fields = self.fields();
        fields.status = Some(status);
        fields.cause = Some(error.to_owned());
        fields.reason = Some(reason.to_owned());
        drop(fields);
        self.headed();
    }

    /// The answer's head is there.
    pub(crate) fn headed(&self) {
        let elapsed = self.0.started.elapsed();
        self.fields().headed.get_or_insert(elapsed);
    }

    fn count(&self, towards_client: bool, bytes: u64) {
        let counter = match towards_client {
            true => &self.0.to_client_bytes,
            false => &self.0.from_client_bytes,
        };
        counter.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The answer broke off.
    fn broke_off(&self) {
        self.fields().cause.get_or_insert_with(|| CauseKind::OriginFailed.name().to_owned());
    }

    /// The client wanted no more of the answer.
    fn left_early(&self) {
        let mut fields = self.fields();
        let has_body = fields.method != Method::HEAD.as_str()
            && !matches!(fields.status, Some(100..=199 | 204 | 304));
        if has_body {
            fields.cause.get_or_insert_with(|| CauseKind::ClientGone.name().to_owned());
        }
    }
}

/// The trace that an edge's request belongs to.
fn of_head(head: &Head) -> Option<String> {
    let Head::Request(request) = head else { return None };
    let all = request.fields.iter();
    let named = all.filter(|(name, _)| name.eq_ignore_ascii_case(trace::FIELD.as_bytes()));
    trace::id(named.map(|(_, value)| &value[..]))
}

/// What a client sent is no request; it is told so.
pub(crate) fn unreadable(metrics: &Arc<Metrics>, way: Way, client: &str, fault: &Fault) {
    let mut fields = Fields::new(String::new(), "", way);
    fields.status = Some(fault.status);
    fields.cause = Some(CauseKind::BadRequest.name().to_owned());
    fields.reason = Some(fault.reason.clone());
    drop(Access::new(metrics, client, false, fields));
}

impl Fields {
    fn new(method: String, target: &str, way: Way) -> Self {
        Self {
            exchange: None,
            method,
            target: secrets::cut(target),
            service: None,
            way,
            status: None,
            request_encoding: None,
            answer_encoding: None,
            carried: None,
            cause: None,
            reason: None,
            headed: None,
            fell_back: false,
            trace: None,
        }
    }

    /// Whether somebody has to look after it: not where a client left, or asked for what it may not
    /// have, nor where this side ends.
    fn is_failure(&self) -> bool {
        // That a gateway is away, or a bound reached, is told once, not with each request.
        const CLIENTS: [&str; 11] = [
            "client_gone",
            "gateway_unreachable",
            "limit",
            "connection_limit_reached",
            "forbidden",
            "bad_request",
            "shutting_down",
            "http_request_error",
            "http_request_denied",
            "proxy_loop_detected",
            "connection_refused",
        ];
        self.cause.as_deref().is_some_and(|cause| !CLIENTS.contains(&cause))
    }
}

/// Seconds to a tenth of a millisecond.
fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e4).round() / 1e4
}

/// Writes the line at a level of its own: each level is a place in the code.
macro_rules! line {
    ($level:ident, $client:expr, $fields:expr, $bytes:expr, $wire:expr, $duration:expr) => {
        tracing::$level!(
            client = *$client,
            method = $fields.method,
            target = $fields.target,
            service = $fields.service,
            status = $fields.status,
            way = $fields.way.name(),
            fell_back = $fields.fell_back.then_some(true),
            request_bytes = $bytes.0,
            answer_bytes = $bytes.1,
            request_wire_bytes = $wire.map(|wire: (u64, u64)| wire.0),
            answer_wire_bytes = $wire.map(|wire| wire.1),
            request_encoding = $fields.request_encoding,
            answer_encoding = $fields.answer_encoding,
            duration_s = seconds($duration),
            cause = $fields.cause.as_deref().unwrap_or("ok"),
            reason = $fields.reason,
            exchange = $fields.exchange,
            trace = $fields.trace,
            "exchange"
        )
    };
}

impl Drop for Shared {
    fn drop(&mut self) {
        let Self { metrics, started, client, at_gateway, .. } = self;
        let (from, to) = (*self.from_client_bytes.get_mut(), *self.to_client_bytes.get_mut());
        let fields = &*self.fields.get_mut().unwrap_or_else(PoisonError::into_inner);
        let wire = match (&fields.carried, fields.way) {
            (Some(carried), _) if *at_gateway => {
                Some((carried.received_wire_bytes, carried.sent_wire_bytes))
            }
            (Some(carried), _) => Some((carried.sent_wire_bytes, carried.received_wire_bytes)),
            // The link is that to the client.
            (None, Way::Edgeless) => Some((from, to)),
            (None, _) => None,
        };
        // At a gateway the origin stands where the client does at an edge.
        let bytes = match &fields.carried {
            Some(carried) if *at_gateway => (carried.received_body_bytes, carried.sent_body_bytes),
            _ => (from, to),
        };
        metrics.count_exchange(fields.way, fields.status, fields.headed);
        if let Some(exchange) = &fields.exchange {
            metrics.keep_request(exchange, || Asked {
                method: fields.method.clone(),
                target: fields.target.clone(),
                status: fields.status,
                client: client.clone(),
                trace: fields.trace.clone(),
            });
        }
        let duration = started.elapsed();
        match fields.is_failure() {
            true => line!(warn, client, fields, bytes, wire, duration),
            false => line!(info, client, fields, bytes, wire, duration),
        }
    }
}
