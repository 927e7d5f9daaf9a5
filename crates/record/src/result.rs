//! Results of measurements: what the measuring clients print and the reports read.
//!
//! Times are in seconds as measured by the client, sizes in bytes.

use serde::{Deserialize, Serialize};

/// One exchange of a measuring client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// What was asked for, as a person would name it ("track 7").
    pub name: String,
    /// Start, in seconds since the client started.
    pub start_s: f64,
    /// From before the first byte of the request to after the last of the answer. With `censored`
    /// it is the time after which the client gave up.
    pub elapsed_s: f64,
    /// Bytes of the answer's content as the service made it (after removing content coding).
    pub body_bytes: u64,
    /// HTTP status; none when no answer came.
    pub status: Option<u16>,
    /// Why it failed, in one line; none when it succeeded.
    pub error: Option<String>,
    /// The time budget ended before the answer was whole.
    pub censored: bool,
    /// TCP connections opened for it: 0 when one that was kept alive did, 1 otherwise, also when
    /// the server had closed that one or the request was sent again.
    #[serde(default)]
    pub connections: u32,
}

impl Exchange {
    /// Whether a whole, valid answer came.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.error.is_none() && !self.censored
    }
}

/// What `longwire fetch` did and saw: one client, one service, one way of asking.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fetch {
    /// The service asked, as given.
    pub url: String,
    /// `soap`, `rest-xml`, `rest-json` or `url`.
    pub api: String,
    /// The proxy in between, if any.
    pub proxy: Option<String>,
    /// The client offered `Accept-Encoding: gzip`.
    pub gzip: bool,
    /// Each exchange had a connection of its own.
    pub new_connection: bool,
    /// Congestion control, read back from the client's socket.
    pub congestion_control: Option<String>,
    /// The client's start, from which `start_s` counts, on the machine's monotonic clock
    /// (`CLOCK_MONOTONIC`), in seconds: what matches exchanges with a record of packets.
    #[serde(default)]
    pub started_monotonic_s: f64,
    /// How long the client's threads, ready to run, waited for a processor from its start to its
    /// end, in seconds; none where the system does not tell.
    #[serde(default)]
    pub processor_wait_s: Option<f64>,
    /// Segments the client's own sockets sent again.
    pub retransmits: u64,
    /// The first pass, not counted.
    pub warm_up: Vec<Exchange>,
    /// The second pass.
    pub measured: Vec<Exchange>,
    /// Over the successful exchanges of `measured`; none when there is none.
    pub summary: Option<Summary>,
    /// Exchanges of `measured` that failed.
    pub errors: usize,
    /// Exchanges of `measured` cut off by the time budget or never begun because of it.
    pub censored: usize,
}

/// Order statistics of a series of seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many values.
    pub count: usize,
    /// Arithmetic mean.
    pub mean_s: f64,
    /// Least.
    pub min_s: f64,
    /// Half are at most this.
    pub median_s: f64,
    /// Nine in ten are at most this.
    pub p90_s: f64,
    /// 99 in 100 are at most this.
    pub p99_s: f64,
    /// Greatest.
    pub max_s: f64,
}

impl Summary {
    /// Order statistics by the nearest-rank method; `None` for an empty series.
    #[must_use]
    pub fn of(seconds: &[f64]) -> Option<Self> {
        let mut sorted = seconds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min_s, max_s) = (*sorted.first()?, *sorted.last()?);
        let mean_s = sorted.iter().sum::<f64>() / sorted.len() as f64;
        let rank = |per_cent: usize| {
            let at = (sorted.len() * per_cent).div_ceil(100).max(1) - 1;
            sorted[at]
        };
        Some(Self {
            count: sorted.len(),
            mean_s,
            min_s,
            median_s: rank(50),
            p90_s: rank(90),
            p99_s: rank(99),
            max_s,
        })
    }
}

/// One call of a method by the measuring client of the WAP study, split as that has it: what
/// writing and parsing SOAP takes, and what the call takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Writing the request.
    pub write_s: f64,
    /// From before its first byte left to after the last of the answer.
    pub call_s: f64,
    /// Parsing the answer.
    pub parse_s: f64,
    /// Bytes of the request's body.
    pub request_bytes: u64,
    /// Bytes of the answer's body.
    pub answer_bytes: u64,
    /// Datagrams of the request that left, copies and blocks counted; 1 over HTTP, 0 where no
    /// answer came.
    pub sent: u32,
    /// Why it failed, in one line; none when it succeeded.
    pub error: Option<String>,
}

/// Calls of one method, one after another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// The service asked, as given.
    pub url: String,
    /// The method: `nop`, `getString` or `getIntArray`.
    pub method: String,
    /// Characters of the string, or numbers of the array; none where there is neither.
    pub size: Option<u32>,
    /// The form of messages: `xml`, `wbxml`, `cbor` or `exi`.
    pub form: String,
    /// What they went over: `http`, `wsp` or `coap`.
    pub over: String,
    /// The proxy in between, if any.
    pub proxy: Option<String>,
    /// Each call over HTTP had a connection of its own.
    pub new_connection: bool,
    /// How many times slower than the machine's processor that for writing and parsing was made.
    #[serde(default)]
    pub slowdown: Option<u32>,
    /// How many of `measured` failed.
    pub errors: usize,
    /// How many more were asked for and not made, since so many in a row had failed.
    #[serde(default)]
    pub not_made: usize,
    /// Writing and parsing, of the calls that succeeded; none when none did.
    pub t_soap: Option<Summary>,
    /// The call itself.
    pub t_call: Option<Summary>,
    /// Both.
    pub t_inv: Option<Summary>,
    /// The calls, in their order.
    pub measured: Vec<Call>,
}

/// What one direction of an emulated link carried and how truly: part of every result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Packets offered by the sender.
    pub packets_in: u64,
    /// Their IP bytes: what a result calls 'bytes on the wire'.
    pub bytes_in: u64,
    /// Packets delivered.
    pub packets_out: u64,
    /// Their IP bytes.
    pub bytes_out: u64,
    /// Dropped, by reason (`queue`, `loss`, `outage`, `mtu`), zero counts left out.
    pub dropped: std::collections::BTreeMap<String, u64>,
    /// Greatest queue seen, in bytes.
    pub queue_peak_bytes: u64,
}

/// How late the ferry wrote packets against their due time: the truth of an emulated result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Packets measured.
    pub count: u64,
    /// Half were at most this late, in microseconds.
    pub p50_us: u64,
    /// 99 in 100.
    pub p99_us: u64,
    /// 999 in 1000.
    pub p999_us: u64,
    /// The latest.
    pub max_us: u64,
    /// Histogram: (upper edge in microseconds, packets), empty bins left out.
    pub bins: Vec<(u64, u64)>,
}
