//! Counters and gauges in the text format of Prometheus, fed by the relay's facts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coding::Link;
use decide::estimate::Transport;
use record::decision::Asked;
use record::event::Fact;
use relay::{CarrierId, Load};

use crate::access::Way;
use crate::carrier::quic::Seen;
use crate::socket::{self, Traffic};
use crate::store::{Requests, Store};

mod answers;
mod coap;
mod process;
mod services;
mod wsp;

use answers::Answers;
pub use process::Build;
use services::Services;

#[derive(Default)]
struct Totals {
    direct: u64,
    started: u64,
    finished: u64,
    left: u64,
    failed: BTreeMap<String, u64>,
    encodings: BTreeMap<String, u64>,
    limits: BTreeMap<String, u64>,
    refused: BTreeMap<String, u64>,
    ignored: BTreeMap<String, u64>,
    tried: BTreeMap<String, u64>,
    services: Services,
    wsp: wsp::Wsp,
    exchanges: BTreeMap<Way, Answers>,
    coap: coap::Totals,
    codec_s: f64,
    carriers: CarrierTotals,
    /// Retransmissions of carriers that are gone, and what they sent and received.
    retransmits: u64,
    traffic: [Traffic; 2],
}

/// What was counted of carriers.
#[derive(Default)]
struct CarrierTotals {
    up: u64,
    down: u64,
    stalled: u64,
    /// Bodies, by the kind of the carrier that they took where there were several.
    chosen: BTreeMap<String, u64>,
}

/// A connected carrier as metrics see it.
struct CarrierEntry {
    peer: String,
    transport: Watched,
}

/// Where the counters of a carrier's transport are.
enum Watched {
    /// A second descriptor of the socket, closed when the carrier ends.
    Socket(OwnedFd),
    /// Of a transport that is not the kernel's.
    Seen(Arc<Seen>),
}

impl Watched {
    fn transport(&self) -> io::Result<Transport> {
        match self {
            Self::Socket(socket) => socket::tcp_info(socket),
            Self::Seen(seen) => Ok(seen.transport()),
        }
    }

    /// Bytes sent and received; those of datagrams are counted as they pass.
    fn traffic(&self) -> io::Result<[Traffic; 2]> {
        match self {
            Self::Socket(socket) => socket::traffic(socket),
            Self::Seen(_) => Ok(Default::default()),
        }
    }
}

/// Where the bytes of carriers are; while it changes, they get on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnderWay {
    /// Segments sent, each counted once.
    segments: u64,
    /// Bytes that the other side's kernel has not acknowledged.
    pub(crate) left_bytes: u64,
}

/// What the process counts.
#[derive(Default)]
pub(crate) struct Metrics {
    build: Build,
    totals: Mutex<Totals>,
    /// Body bytes towards the carriers and from them, before coding.
    sent_body_bytes: AtomicU64,
    received_body_bytes: AtomicU64,
    carriers: Mutex<BTreeMap<CarrierId, CarrierEntry>>,
    /// Where requests are kept, if they are.
    requests: Requests,
}

impl Metrics {
    fn totals(&self) -> MutexGuard<'_, Totals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn carriers(&self) -> MutexGuard<'_, BTreeMap<CarrierId, CarrierEntry>> {
        self.carriers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn new(build: Build, store: Option<&Store>) -> Arc<Self> {
        let requests = store.map(Store::requests).unwrap_or_default();
        Arc::new(Self { build, requests, ..Self::default() })
    }

    /// Keeps what an exchange was for, beside its decisions.
    pub(crate) fn keep_request(&self, exchange: &str, asked: impl FnOnce() -> Asked) {
        self.requests.note(exchange, asked);
    }

    /// Counts body, as it passes the relay.
    pub(crate) fn count_body(&self, sent: bool, bytes: usize) {
        let counter = if sent { &self.sent_body_bytes } else { &self.received_body_bytes };
        counter.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts a request that went straight to its origin.
    pub(crate) fn count_direct(&self) {
        self.totals().direct += 1;
    }

    /// Counts a request of a WAP client.
    pub(crate) fn count_wsp_request(&self) {
        self.totals().wsp.requests += 1;
    }

    /// Counts a reply that leaves again.
    pub(crate) fn count_wsp_repeat(&self) {
        self.totals().wsp.repeats += 1;
    }

    /// Counts that a bound of the shell was reached.
    pub(crate) fn count_limit(&self, limit: &str) {
        *self.totals().limits.entry(limit.to_owned()).or_default() += 1;
    }

    /// Counts a datagram that came to a carrier's port or socket and is not read, with one of few
    /// reasons.
    pub(crate) fn count_refused(&self, why: &'static str) {
        *self.totals().refused.entry(why.to_owned()).or_default() += 1;
    }

    /// Counts an exchange, at its end, by how it went: what came, and when the answer began.
    pub(crate) fn count_exchange(&self, way: Way, status: Option<u16>, headed: Option<Duration>) {
        let mut totals = self.totals();
        totals.exchanges.entry(way).or_default().count(status, headed);
    }

    /// Sets what an endpoint of CoAP has counted so far: the one over DTLS, or that in the open.
    pub(crate) fn set_coap(&self, is_secure: bool, counts: proto::coap::machine::Counts) {
        let [open, secure] = &mut self.totals().coap.messages;
        *(if is_secure { secure } else { open }) = counts;
    }

    /// Adds what a connection of CoAP has counted since `before`.
    pub(crate) fn count_coap_stream(
        &self,
        before: proto::coap::stream::Counts,
        now: proto::coap::stream::Counts,
    ) {
        self.totals().coap.add_stream(before, now);
    }

    /// Counts a request of CoAP that was refused with this code, of which there are few.
    pub(crate) fn count_coap_refusal(&self, code: &str) {
        *self.totals().coap.refusals.entry(code.to_owned()).or_default() += 1;
    }

    /// Counts a fact.
    pub(crate) fn observe(&self, fact: &Fact) {
        let mut totals = self.totals();
        match fact {
            Fact::CarrierUp { .. } => totals.carriers.up += 1,
            Fact::CarrierDown { peer, .. } => totals.carriers.down += u64::from(!peer.is_empty()),
            Fact::CarrierStalled { .. } => totals.carriers.stalled += 1,
            Fact::Started { .. } => totals.started += 1,
            Fact::Chosen { exchange, encoding, decision, .. } => {
                *totals.encodings.entry(encoding.clone()).or_default() += 1;
                if let Some(decision) = decision {
                    if let Some(probe) = &decision.probe {
                        *totals.tried.entry(probe.clone()).or_default() += 1;
                    }
                    if let Some(route) = &decision.route {
                        *totals.carriers.chosen.entry(route.carrier.clone()).or_default() += 1;
                    }
                    totals.services.chosen(exchange, encoding, decision);
                }
            }
            Fact::Finished { carried, .. } => {
                totals.finished += 1;
                totals.codec_s += carried.codec_s;
            }
            Fact::Failed { cause, carried, .. } => {
                // A client that leaves, or gets its answer early, is no failure.
                match &cause[..] {
                    "client_gone" | "answered_early" => totals.left += 1,
                    cause => *totals.failed.entry(cause.to_owned()).or_default() += 1,
                }
                totals.codec_s += carried.codec_s;
            }
            Fact::Outcome { exchange, outcome, .. } => totals.services.came(exchange, outcome),
            Fact::Ignored { what, .. } => {
                *totals.ignored.entry(what.clone()).or_default() += 1;
            }
            Fact::LimitReached { limit, .. } => {
                *totals.limits.entry(limit.clone()).or_default() += 1;
            }
        }
    }

    /// Lists a carrier for as long as the guard lives.
    pub(crate) fn watch_carrier(
        self: &Arc<Self>,
        carrier: CarrierId,
        peer: &str,
        socket: OwnedFd,
    ) -> CarrierGuard {
        self.watch(carrier, peer, Watched::Socket(socket))
    }

    /// The same of a carrier whose transport is not the kernel's.
    pub(crate) fn watch_transport(
        self: &Arc<Self>,
        carrier: CarrierId,
        peer: &str,
        seen: Arc<Seen>,
    ) -> CarrierGuard {
        self.watch(carrier, peer, Watched::Seen(seen))
    }

    fn watch(self: &Arc<Self>, carrier: CarrierId, peer: &str, from: Watched) -> CarrierGuard {
        let entry = CarrierEntry { peer: peer.to_owned(), transport: from };
        self.carriers().insert(carrier, entry);
        CarrierGuard { metrics: Arc::clone(self), carrier }
    }

    /// A datagram of a carrier left for a socket, or came from one.
    pub(crate) fn count_datagram(&self, sent: bool, bytes: usize, address: SocketAddr) {
        /// Headers of UDP, and of IPv4 and IPv6.
        const UDP_BYTES: u64 = 8;
        const IP_BYTES: [u64; 2] = [20, 40];
        let ip_bytes = IP_BYTES[usize::from(address.ip().to_canonical().is_ipv6())];
        let traffic = &mut self.totals().traffic[usize::from(!sent)];
        traffic.bytes += bytes as u64;
        traffic.packet_bytes += bytes as u64 + UDP_BYTES + ip_bytes;
    }

    /// What the kernel knows of a carrier's connection.
    pub(crate) fn transport(&self, carrier: CarrierId) -> Option<Transport> {
        let carriers = self.carriers();
        carriers.get(&carrier)?.transport.transport().ok()
    }

    /// How far the kernel is with what it was given of a carrier, or of all.
    pub(crate) fn under_way(&self, only: Option<CarrierId>) -> UnderWay {
        let mut sum = UnderWay::default();
        for (id, entry) in &*self.carriers() {
            if only.is_none_or(|only| only == *id)
                && let Ok(info) = entry.transport.transport()
            {
                sum.segments += u64::from(info.segments_out.saturating_sub(info.retransmitted));
                sum.left_bytes += info.backlog_bytes;
            }
        }
        sum
    }

    /// The text that a scrape gets.
    pub(crate) fn render(&self, load: Load, links: &[Link]) -> String {
        let mut text = String::new();
        self.render_totals(&mut text);
        self.render_bytes(&mut text);
        self.render_carriers(&mut text);
        render_links(&mut text, links);
        let load = [
            ("open_exchanges", "Exchanges open.", load.exchanges),
            ("carriers", "Carriers connected.", load.carriers),
            ("queue_bytes", "Body bytes held in both directions.", load.held_bytes),
            ("codec_memory_bytes", "Memory reserved for codec contexts.", load.codec_bytes),
        ];
        for (name, help, value) in load {
            family(&mut text, name, "gauge", help);
            sample(&mut text, name, &[], value);
        }
        process::render(self.build, &mut text);
        text
    }

    fn render_totals(&self, text: &mut String) {
        let totals = self.totals();
        let plain = [
            ("exchanges_started_total", "Exchanges begun.", totals.started),
            ("exchanges_finished_total", "Exchanges ended well.", totals.finished),
            (
                "exchanges_left_total",
                "Exchanges that the client left before their end.",
                totals.left,
            ),
            ("direct_requests_total", "Requests that went without a gateway.", totals.direct),
            ("carriers_up_total", "Carriers that said HELLO.", totals.carriers.up),
            ("carriers_down_total", "Carriers that ended.", totals.carriers.down),
            ("carriers_stalled_total", "Carriers whose peer fell silent.", totals.carriers.stalled),
        ];
        for (name, help, value) in plain {
            family(text, name, "counter", help);
            sample(text, name, &[], value);
        }
        let labelled = [
            ("exchanges_failed_total", "Exchanges that failed.", "cause", &totals.failed),
            ("encodings_chosen_total", "Choices of encoding.", "encoding", &totals.encodings),
            (
                "carriers_chosen_total",
                "Bodies by the carrier that they took, where there were several.",
                "carrier",
                &totals.carriers.chosen,
            ),
            (
                "encodings_tried_total",
                "Encodings made beside the one chosen, only to learn from.",
                "encoding",
                &totals.tried,
            ),
            ("limits_reached_total", "Bounds that were reached.", "limit", &totals.limits),
            (
                "datagrams_refused_total",
                "Datagrams to carriers' ports that were not read.",
                "why",
                &totals.refused,
            ),
            ("ignored_total", "What peers said and was not used.", "what", &totals.ignored),
        ];
        for (name, help, label, values) in labelled {
            family(text, name, "counter", help);
            for (value, count) in values {
                sample(text, name, &[(label, value)], count);
            }
        }
        family(text, "codec_seconds_total", "counter", "Processor time of codecs.");
        sample(text, "codec_seconds_total", &[], totals.codec_s);
        totals.services.render(text);
        wsp::render(&totals.wsp, text);
        answers::render(&totals.exchanges, text);
        totals.coap.render(text);
    }

    /// Bytes are counted as they go: of what is open, what broke and what was refused too.
    fn render_bytes(&self, text: &mut String) {
        let mut traffic = self.totals().traffic;
        for entry in self.carriers().values() {
            add(&mut traffic, entry.transport.traffic().unwrap_or_default());
        }
        let [sent, received] = traffic;
        let body = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for (name, help, sent, received) in [
            (
                "body_bytes_total",
                "Body bytes to and from carriers before coding, by direction.",
                body(&self.sent_body_bytes),
                body(&self.received_body_bytes),
            ),
            (
                "wire_bytes_total",
                "Bytes that carriers wrote to sockets and read, with frames and what seals them.",
                sent.bytes,
                received.bytes,
            ),
            (
                "wire_packet_bytes_total",
                "The same on the network: with headers of TCP, UDP, IP, and what was sent again.",
                sent.packet_bytes,
                received.packet_bytes,
            ),
        ] {
            family(text, name, "counter", help);
            sample(text, name, &[("direction", "sent")], sent);
            sample(text, name, &[("direction", "received")], received);
        }
    }

    fn render_carriers(&self, text: &mut String) {
        let mut retransmits = self.totals().retransmits;
        let name = "carrier_rtt_seconds";
        family(text, name, "gauge", "Smoothed round trip of a carrier, as the kernel has it.");
        for (id, entry) in &*self.carriers() {
            if let Ok(info) = entry.transport.transport() {
                retransmits += u64::from(info.retransmitted);
                let id = id.0.to_string();
                let labels = [("peer", entry.peer.as_str()), ("carrier", &id)];
                sample(text, name, &labels, info.rtt.as_secs_f64());
            }
        }
        let name = "carrier_retransmits_total";
        family(text, name, "counter", "Segments of carriers sent again.");
        sample(text, name, &[], retransmits);
    }
}

/// A figure of a link.
type Figure = fn(&Link) -> f64;

/// What the decision goes by: each figure of each carrier's path, and what stands behind it.
fn render_links(text: &mut String, links: &[Link]) {
    let gauges: [(&str, &str, Figure); 4] = [
        (
            "link_rate_bytes_per_second",
            "Rate of the path to a carrier's peer, as it is believed to be.",
            |link| link.figures.rate_bps.value / 8.0,
        ),
        (
            "link_rtt_seconds",
            "Round trip of the path without queueing, as it is believed to be.",
            |link| link.figures.rtt_s.value,
        ),
        ("link_loss_ratio", "Share of packets that the path is believed to lose.", |link| {
            link.figures.loss.value
        }),
        ("link_queueing_seconds", "What packets waited in queues of late.", |link| {
            link.figures.queueing_s
        }),
    ];
    for (name, help, value) in gauges {
        family(text, name, "gauge", help);
        for link in links {
            let id = link.path.0.to_string();
            sample(text, name, &[("peer", &link.peer), ("carrier", &id)], value(link));
        }
    }
    let name = "link_observations";
    let help = "Observations that stand behind a figure, by weight; 0: it is only supposed.";
    family(text, name, "gauge", help);
    for link in links {
        let (id, figures) = (link.path.0.to_string(), &link.figures);
        // A queue is seen in the same round trips.
        let weights = [
            ("rate", figures.rate_bps.weight),
            ("rtt", figures.rtt_s.weight),
            ("loss", figures.loss.weight),
            ("queueing", figures.rtt_s.weight),
        ];
        for (figure, weight) in weights {
            let labels = [("peer", &link.peer[..]), ("carrier", &id), ("figure", figure)];
            sample(text, name, &labels, weight);
        }
    }
    let name = "link_changes_total";
    family(text, name, "counter", "How often the path turned out to be another than before.");
    for link in links {
        let id = link.path.0.to_string();
        sample(text, name, &[("peer", &link.peer), ("carrier", &id)], link.jumps);
    }
}

/// Takes a carrier off the list when dropped.
pub(crate) struct CarrierGuard {
    metrics: Arc<Metrics>,
    carrier: CarrierId,
}

impl Drop for CarrierGuard {
    fn drop(&mut self) {
        let entry = self.metrics.carriers().remove(&self.carrier);
        let Some(CarrierEntry { transport, .. }) = entry else { return };
        let (info, traffic) = (transport.transport(), transport.traffic());
        let mut totals = self.metrics.totals();
        totals.retransmits += info.map_or(0, |info| u64::from(info.retransmitted));
        add(&mut totals.traffic, traffic.unwrap_or_default());
    }
}

fn add(sum: &mut [Traffic; 2], more: [Traffic; 2]) {
    for (sum, more) in sum.iter_mut().zip(more) {
        sum.bytes += more.bytes;
        sum.packet_bytes += more.packet_bytes;
    }
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "# HELP longwire_{name} {help}\n# TYPE longwire_{name} {kind}");
}

fn sample(text: &mut String, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
    write_sample(text, &format!("longwire_{name}"), labels, value);
}

/// A sample whose name is whole.
fn write_sample(
    text: &mut String,
    name: &str,
    labels: &[(&str, &str)],
    value: impl std::fmt::Display,
) {
    let labels: Vec<String> =
        labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escape(value))).collect();
    let braces =
        if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
    let _ = writeln!(text, "{name}{braces} {value}");
}

/// Label values escape backslash, quote and line feed (Prometheus text format 0.0.4).
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use record::decision::{Figure as Reported, Link as Figures};
    use record::event::Carried;

    use super::*;

    #[test]
    fn facts_become_samples_with_their_labels() {
        let metrics = Metrics::default();
        let failed = |cause: &str| Fact::Failed {
            exchange: String::new(),
            cause: cause.to_owned(),
            reason: String::new(),
            elapsed_s: 0.1,
            status: 0,
            carried: Carried::default(),
        };
        metrics.observe(&failed("forbidden"));
        metrics.observe(&failed("forbidden"));
        metrics.observe(&failed("odd \"name\""));
        let text = metrics.render(Load { exchanges: 3, ..Load::default() }, &[]);
        assert!(text.contains("longwire_exchanges_failed_total{cause=\"forbidden\"} 2\n"));
        assert!(text.contains("{cause=\"odd \\\"name\\\"\"} 1\n"), "{text}");
        assert!(text.contains("# TYPE longwire_open_exchanges gauge\n"));
        assert!(text.contains("longwire_open_exchanges 3\n"));
    }
    #[test]
    fn what_is_believed_of_a_link_stands_beside_what_is_behind_it() {
        let figure = |value, weight| Reported { value, weight };
        let figures = Figures {
            rate_bps: figure(250_000.0, 3.5),
            rtt_s: figure(0.55, 8.0),
            loss: figure(0.001, 0.0),
            queueing_s: 0.25,
            window_packets: 10.0,
        };
        let (path, peer) = (coding::PathId(7), "gate \"1\"".to_owned());
        let link = Link { path, peer, figures, jumps: 2 };
        let text = Metrics::default().render(Load::default(), &[link]);
        for (name, more, value) in [
            ("rate_bytes_per_second", "", "31250"),
            ("rtt_seconds", "", "0.55"),
            ("loss_ratio", "", "0.001"),
            ("queueing_seconds", "", "0.25"),
            ("observations", ",figure=\"rate\"", "3.5"),
            ("observations", ",figure=\"loss\"", "0"),
            ("changes_total", "", "2"),
        ] {
            let labels = format!("peer=\"gate \\\"1\\\"\",carrier=\"7\"{more}");
            let sample = format!("longwire_link_{name}{{{labels}}} {value}\n");
            assert!(text.contains(&sample), "{sample}{text}");
        }
    }
}
