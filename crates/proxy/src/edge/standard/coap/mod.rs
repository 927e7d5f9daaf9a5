//! A forward proxy of CoAP: each request is one exchange, in blocks where it does not fit a
//! datagram (RFC 7252, RFC 7959).
//!
//! - here: one request, its clocks, and what the machine's failures mean;
//! - `http`: what of HTTP is what of CoAP, as pure functions (RFC 8075).
//!
//! What is between this and the network is `crate::coap::caller`: another transport is another
//! way to open one ([`open`]).

mod http;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ::http::Method;
use proto::coap::machine::Reason;

use super::super::answer::Refusal;
use super::line::{Carrying, Kept};
use super::{Answer, Whole, bad, broken, full, silent};
use crate::coap::caller::{Caller, Event, Failure, Watch};
use crate::coap::socket::{Peer, Socket};
use crate::config::StandardGateway;
use crate::flow::Progress;
use crate::metrics::Metrics;

pub(super) use proto::coap::MAX_BODY_BYTES;

/// How long an exchange may take with all its blocks, however well they move: 1 MiB passes in that
/// time at 2.4 kbit/s.
const MAX_EXCHANGE_TIME: Duration = Duration::from_secs(3600);

/// Whether a method can be said in CoAP (RFC 8075 §5, RFC 8132).
pub(super) fn knows(method: &Method) -> bool {
    http::code_of(method).is_some()
}

/// A line to the proxy.
struct Line {
    caller: Caller,
    peer: Peer,
    /// Of the path: when something last came from there.
    progress: Progress,
}

impl Carrying for Line {
    fn is_open(&self) -> bool {
        self.caller.is_open()
    }
}

/// The way to the proxy.
pub(super) struct Path {
    line: Kept<Line>,
    rate_bps: Option<u64>,
    metrics: Arc<Metrics>,
}

impl Path {
    pub(super) fn new(gateway: &Arc<StandardGateway>, metrics: &Arc<Metrics>) -> Self {
        let (line, rate_bps) = (Kept::new(gateway), gateway.rate_bps);
        Self { line, rate_bps, metrics: Arc::clone(metrics) }
    }

    /// Asks; the answer, and the names of fields that did not go along.
    pub(super) async fn ask(
        &self,
        whole: Whole,
        patience: Duration,
    ) -> Result<(Answer, Vec<String>), Refusal> {
        let http::Asked { content, dropped } = http::request(&whole)?;
        let (rate_bps, metrics) = (self.rate_bps, Arc::clone(&self.metrics));
        let line = self.line.get(async move |address| open(address, rate_bps, metrics).await);
        let line = line.await?;
        line.progress.touch();
        let mut call = line.caller.ask(line.peer, content, true).await;
        let event = tokio::select! {
            event = call.next() => event,
            () = line.progress.stalled(patience) => {
                self.line.doubt(&line).await;
                let (url, waited) = (self.line.url(), patience.as_secs_f64());
                let what = format!("nothing came from the gateway {url} within {waited} s");
                return Err(silent(format!("{what} (response_timeout)")));
            }
            () = tokio::time::sleep(MAX_EXCHANGE_TIME) => {
                let (url, waited) = (self.line.url(), MAX_EXCHANGE_TIME.as_secs());
                let what = format!("the exchange with the gateway {url} was not over");
                return Err(silent(format!("{what} within {waited} s")));
            }
        };
        match event {
            Some(Event::Response(content, _)) => Ok((http::answer(&whole, &content)?, dropped)),
            Some(Event::Failed(failure)) => {
                if matches!(failure, Failure::Reason(Reason::TimedOut)) {
                    self.line.doubt(&line).await;
                }
                Err(self.refusal(&failure))
            }
            Some(Event::Alive | Event::Part(..) | Event::Room(_)) | None => {
                Err(silent(format!("the line to the gateway {} broke", self.line.url())))
            }
        }
    }

    fn refusal(&self, failure: &Failure) -> Refusal {
        let (url, why) = (self.line.url(), failure.why());
        let what = format!("the gateway {url}: {why}");
        match failure {
            Failure::Network(_) | Failure::Reason(Reason::TimedOut | Reason::NoAnswer) => {
                silent(what)
            }
            Failure::Reason(Reason::Full) => full(what),
            Failure::Reason(Reason::Misuse) => bad(what),
            Failure::Reason(
                Reason::Reset
                | Reason::BadAnswer
                | Reason::TooLarge
                | Reason::Changed
                | Reason::Closed
                | Reason::Aged
                | Reason::Unprotected(_)
                | Reason::Unverified,
            ) => broken(what),
        }
    }
}

/// Opens a line over UDP.
async fn open(
    address: SocketAddr,
    rate_bps: Option<u64>,
    metrics: Arc<Metrics>,
) -> io::Result<Line> {
    let socket = Socket::client(address).await?;
    let progress = Progress::new();
    let moved = progress.clone();
    let watch: Watch = Arc::new(move |sent, bytes| {
        metrics.count_datagram(sent, bytes, address);
        if !sent {
            moved.touch();
        }
    });
    let caller = Caller::watched(socket, watch).map_err(io::Error::other)?;
    caller.set_rate_bps(rate_bps).await;
    Ok(Line { caller, peer: Peer::server(address), progress })
}
