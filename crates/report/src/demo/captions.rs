//! What the report says about its plots and how they came about.

use std::collections::BTreeSet;

use record::demo::{Demo, Setting};

use super::rows::item_noun;

/// Under the plot of bytes.
pub(super) const BYTES_CAPTION: &str = "\
    IP bytes in both directions: requests, answers, acknowledgements, what was sent again, and \
    the connection's set-up, over both passes, divided by the answers that came. Counted by the \
    emulator.";

/// Under the plot of times by loss.
pub(super) const CURVE_CAPTION: &str = "\
    The same link with other losses in each direction, on pairs of hosts of their own. Drawn \
    through: medians; dashed: 95th percentiles. What was cut off took longer than shown. The \
    scale below is that of the square root.";

/// Under the plot of times.
pub(super) fn times_caption(demo: &Demo) -> String {
    let noun = item_noun(demo);
    let encoding = &demo.setting.bound_encoding;
    format!(
        "Each point is one {noun}, the upright bar and the figure at the right the median; \
         logarithmic, every network with a scale of its own. An arrow stands where a fetch was \
         cut off by the time budget: it took longer; a cross is a fetch that failed. The grey \
         band reaches from the smallest to the largest {noun}'s bound, dashed at the median: one \
         round trip and the airtime of its bytes in {encoding}, each by itself, \
         lost packets sent once more, 2d + 8(b + 36⌈b/1200⌉ + q + 36)/(R(1 − p)). \
         It is no law of nature: a delta of an earlier answer, or a better encoding, gets below."
    )
}

/// Under the plot of lateness.
pub(super) fn lateness_caption(demo: &Demo) -> String {
    let lateness = &demo.lateness;
    let ms = |us: u64| format!("{:.3} ms", us as f64 / 1000.0);
    let scheduling = if demo.setting.real_time {
        "with real-time priority"
    } else {
        "without real-time priority"
    };
    format!(
        "{} packets on all links at once, by one thread {scheduling}: half were late by at most \
         {}, 99 % by at most {}, 99.9 % by at most {}, the latest by {}, against the instant at \
         which the emulated link delivers them.",
        lateness.count,
        ms(lateness.p50_us),
        ms(lateness.p99_us),
        ms(lateness.p999_us),
        ms(lateness.max_us),
    )
}

/// How the figures came about.
pub(super) fn how(demo: &Demo) -> String {
    let Setting { carrier, encoding, budget_s, stagger_ms, seed, .. } = &demo.setting;
    let service = match &demo.setting.url {
        None => "the service on host b".to_string(),
        Some(url) => format!(
            "a plain TCP relay on host b, which leads to {url} outside of the emulated network"
        ),
    };
    let tcp = demo.cells.iter().flat_map(|cell| &cell.congestion_control);
    let tcp: BTreeSet<&str> = tcp.map(String::as_str).collect();
    let tcp = tcp.into_iter().collect::<Vec<_>>().join(" or ");
    format!(
        "Results of emulated links, with the kernel's TCP in real time; not of radios. Each \
         combination of network, service and way has a pair of hosts (network namespaces) of its \
         own, joined by an emulated link; all run side by side, started {stagger_ms} ms apart. \
         The client runs on host a and fetches one thing after another from {service}, on a \
         connection that is kept alive. 'Direct' is that without compression, 'direct with gzip' \
         the same with Accept-Encoding: gzip, 'longwire' the client of 'direct' with an edge \
         beside it and a gateway beside the service (encoding {encoding}, {carrier}). TCP over \
         the links is {tcp}, read back from the kernel at both ends. Everything is fetched once \
         to warm up and once measured, but on slow networks, where a short list of small and \
         middling things is fetched cold, in all three ways. The three ways of a row meet the \
         same chances: the losses of packets by number follow from the seed ({seed}). Fetches end \
         after {budget_s} s; what is unfinished then counts as longer than the time it had, what \
         failed as endless."
    )
}
