//! A WAP gateway over connectionless WSP: each request is one datagram, each answer another.
//!
//! - here: one request, with WBXML where that is set;
//! - `caller`: the task with the socket and the machine, for all requests;
//! - `http`: what of HTTP is what of WSP, as pure functions.

mod caller;
mod http;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ::http::{Method, header};
use proto::wsp::client::Failure;
use proto::wsp::packet;

use super::super::answer::Refusal;
use super::line::Kept;
use super::{Answer, Whole, broken, full, silent, too_large};
use crate::config::StandardGateway;
use crate::metrics::Metrics;
use crate::wbxml;
use caller::{Caller, Failed};

pub(super) use http::MAX_BODY_BYTES;

/// Whether WSP has this method (WAP-230 table 34).
pub(super) fn knows(method: &Method) -> bool {
    packet::Method::of_name(method.as_str().as_bytes()).is_some()
}

/// The way to the gateway.
pub(super) struct Path {
    line: Kept<Caller>,
    repeats: bool,
    wbxml: bool,
    rate_bps: Option<u64>,
    metrics: Arc<Metrics>,
}

impl Path {
    pub(super) fn new(
        gateway: &Arc<StandardGateway>,
        repeats: bool,
        wbxml: bool,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let (line, rate_bps) = (Kept::new(gateway), gateway.rate_bps);
        Self { line, repeats, wbxml, rate_bps, metrics: Arc::clone(metrics) }
    }

    /// Asks; copies of the request leave where that does no harm, and no more than the machine's
    /// bound.
    pub(super) async fn ask(&self, whole: Whole, patience: Duration) -> Result<Answer, Refusal> {
        let again = self.repeats || whole.method.is_idempotent();
        let whole = if self.wbxml { to_wbxml(whole).await? } else { whole };
        let pdu = http::request(&whole)?;
        let (rate_bps, metrics) = (self.rate_bps, Arc::clone(&self.metrics));
        let open = async move |address: SocketAddr| {
            let watch = move |sent, bytes| metrics.count_datagram(sent, bytes, address);
            Caller::open(address, rate_bps, Box::new(watch)).await
        };
        let line = self.line.get(open).await?;
        let asking = line.ask(pdu, again);
        let reply = match tokio::time::timeout(patience, asking).await {
            Ok(reply) => reply,
            Err(_) => Err(Failed::Late(patience)),
        };
        let reply = match reply {
            Ok(reply) => reply,
            Err(failed) => {
                self.line.doubt(&line).await;
                return Err(self.refusal(failed, again));
            }
        };
        let answer = http::answer(&reply, whole.method == Method::HEAD)?;
        if self.wbxml { of_wbxml(answer).await } else { Ok(answer) }
    }

    fn refusal(&self, failed: Failed, again: bool) -> Refusal {
        let url = self.line.url();
        // Without copies one lost datagram is all that it takes.
        let once = match again {
            true => "",
            false => {
                "; it was sent once, for the gateway may carry out copies of it \
                      (wsp_repeat)"
            }
        };
        match failed {
            Failed::Machine(Failure::Unanswered) => silent(format!(
                "no answer came from the gateway {url}, and whether the request was carried out \
                 is not known{once}"
            )),
            Failed::Machine(Failure::Full) => {
                full(format!("too much is open to the gateway {url}"))
            }
            Failed::Machine(Failure::Invalid(error)) => {
                too_large(format!("the request cannot be sent by wsp: {error}"))
            }
            Failed::Network(why) => silent(format!("the gateway {url} is not there: {why}")),
            Failed::Late(patience) => {
                let waited = patience.as_secs_f64();
                let what = format!("no answer came from the gateway {url} within {waited} s");
                silent(format!("{what} (response_timeout){once}"))
            }
        }
    }
}

/// The request with its XML as WBXML, where that may be changed and is shorter so.
async fn to_wbxml(mut whole: Whole) -> Result<Whole, Refusal> {
    let has_xml = wbxml::is_changeable_xml(&whole.headers);
    let mut is_wbxml = false;
    if has_xml && !whole.body.is_empty() && whole.body.len() <= wbxml::MAX_XML_BYTES {
        let body = whole.body.clone();
        // What is no XML is the origin's to refuse.
        if let Ok(shorter) = worked(move || wbxml::from_xml(&body)).await?
            && shorter.len() < whole.body.len()
        {
            (whole.body, is_wbxml) = (shorter.into(), true);
        }
    }
    wbxml::ask_for(&mut whole.headers, is_wbxml);
    Ok(whole)
}

/// The answer with WBXML as XML.
async fn of_wbxml(mut answer: Answer) -> Result<Answer, Refusal> {
    if !wbxml::is_wbxml(&answer.headers) {
        return Ok(answer);
    }
    let mut document = Vec::new();
    if !answer.body.is_empty() {
        let body = answer.body.clone();
        let wrong = |error| broken(format!("the gateway's answer is no WBXML: {error}"));
        document = worked(move || wbxml::to_xml(&body, &[])).await?.map_err(wrong)?;
    }
    wbxml::mark_xml(&mut answer.headers, &document);
    answer.headers.remove(header::CONTENT_LENGTH);
    answer.body = document.into();
    Ok(answer)
}

/// Runs what takes a processor's time beside what waits. As many run at once as requests have
/// places.
async fn worked<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, codec::Error> + Send + 'static,
) -> Result<Result<T, codec::Error>, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| broken("a fault of ours in the translation of WBXML".to_owned()))
}
