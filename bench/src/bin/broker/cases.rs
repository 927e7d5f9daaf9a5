//! What is measured, in which order.

use std::time::Duration;

use anyhow::Result;
use longwire_bench::progress::Progress;

use crate::bulk;
use crate::load::{self, Case};
use crate::matching::{SESSIONS, matching};
use crate::report::{Bound, Row};
use crate::servers::{Kind, Server, Setup};

/// Publications a second where times are measured; fewer where each goes to fifty.
const PACED_PER_S: u32 = 1000;
const PACED_TO_MANY_PER_S: u32 = 100;
/// Retained messages, and messages of a queue.
const RETAINED: usize = 50_000;
const QUEUED: usize = 20_000;
const MEGABYTE: f64 = 1e6;

/// A part that can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Deliveries a second, processor time and memory.
    Throughput,
    /// How long a publication takes.
    Latency,
    /// Sessions that outlive the process.
    Durable,
    /// Retained messages, queues, connections.
    Bulk,
    /// Finding subscribers.
    Matching,
}

impl Part {
    /// All of them, with what they are called.
    pub(crate) const ALL: [(Self, &'static str); 5] = [
        (Self::Throughput, "throughput"),
        (Self::Latency, "latency"),
        (Self::Durable, "durable"),
        (Self::Bulk, "bulk"),
        (Self::Matching, "matching"),
    ];
}

/// How much is measured.
pub(crate) struct Plan {
    pub(crate) setup: Setup,
    pub(crate) parts: Vec<Part>,
    /// Which brokers.
    pub(crate) kinds: Vec<Kind>,
    /// Measure only cases whose name has this.
    pub(crate) only: Option<String>,
    pub(crate) rounds: u32,
    pub(crate) lasts: Duration,
}

/// Measures all of a plan.
pub(crate) fn run(plan: &Plan) -> Result<Vec<Row>> {
    let has = |part| plan.parts.contains(&part);
    let count = |durable| {
        let all = cases(durable);
        u32::try_from(all.iter().filter(|case| plan.wants(case)).count()).unwrap_or(u32::MAX)
    };
    let (live, durable) = (count(false), count(true));
    let each = plan.lasts + Duration::from_millis(400);
    let turns = plan.rounds * if plan.kinds.len() > 1 { 2 } else { 1 };
    let mut steps = 0;
    steps += if has(Part::Throughput) { live } else { 0 };
    steps += if has(Part::Latency) { live } else { 0 };
    steps += if has(Part::Durable) { durable } else { 0 };
    let bulk = if has(Part::Bulk) { Duration::from_secs(20) } else { Duration::ZERO };
    let mut progress = Progress::new(each * turns * steps + bulk);
    let mut rows = Vec::new();
    let mut peaks = Row::new("resident, greatest under load".to_owned(), "MB", Bound::AtMost(32.0));
    if has(Part::Throughput) {
        rows.push(idle(plan)?);
    }
    for case in cases(false).into_iter().filter(|case| plan.wants(case)) {
        if has(Part::Throughput) {
            rows.extend(throughput(plan, case, &mut progress, each, &mut peaks)?);
        }
        if has(Part::Latency) {
            rows.extend(latency(plan, case, &mut progress, each)?);
        }
    }
    if !peaks.values[0].is_empty() {
        rows.push(peaks);
    }
    for case in cases(true).into_iter().filter(|case| plan.wants(case) && has(Part::Durable)) {
        let mut unused = Row::new(String::new(), "", Bound::Shown);
        rows.extend(throughput(plan, case, &mut progress, each, &mut unused)?);
    }
    if has(Part::Bulk) {
        progress.step("many at once", bulk);
        rows.extend(many(plan)?);
    }
    if has(Part::Matching) {
        progress.step("matching", Duration::ZERO);
        rows.extend(found(plan)?);
    }
    progress.finish();
    Ok(rows)
}

impl Plan {
    fn wants(&self, case: &Case) -> bool {
        self.only.as_ref().is_none_or(|only| name(case).contains(only))
    }
}

/// All of one kind.
fn cases(durable: bool) -> Vec<Case> {
    let mut all = Vec::new();
    for (publishers, subscribers) in [(1, 1), (1, 50), (50, 1)] {
        for qos in if durable { 1..=1 } else { 0..=1 } {
            for payload_bytes in [16, 1024] {
                all.push(Case { publishers, subscribers, qos, payload_bytes, durable });
            }
        }
    }
    all
}

fn name(case: &Case) -> String {
    let Case { publishers, subscribers, qos, payload_bytes, durable } = case;
    let size = if *payload_bytes < 1024 { "16 B" } else { "1 KB" };
    let durable = if *durable { " durable" } else { "" };
    format!("{publishers}→{subscribers} QoS {qos} {size}{durable}")
}

fn idle(plan: &Plan) -> Result<Row> {
    let mut row = Row::new("resident, idle".to_owned(), "MB", Bound::AtMost(12.0));
    for kind in &plan.kinds {
        let server = Server::start(&plan.setup, *kind, false)?;
        row.add(*kind, server.resident_bytes()? as f64 / MEGABYTE);
    }
    Ok(row)
}

fn servers(plan: &Plan, durable: bool) -> Result<Vec<Server>> {
    plan.kinds.iter().map(|kind| Server::start(&plan.setup, *kind, durable)).collect()
}

fn throughput(
    plan: &Plan,
    case: Case,
    progress: &mut Progress,
    each: Duration,
    peaks: &mut Row,
) -> Result<[Row; 2]> {
    let name = name(&case);
    let mut per_s = Row::new(name.clone(), "deliveries/s", Bound::TimesAtLeast(1.0));
    let bound = if case.qos == 0 { Bound::AtMost(10.0) } else { Bound::Shown };
    let mut processor = Row::new(name.clone(), "µs of processor each", bound);
    let servers = servers(plan, case.durable)?;
    for round in 1..=plan.rounds {
        for server in &servers {
            progress.step(&format!("{name}, {}, round {round}", server.kind.name()), each);
            let result = load::throughput(server, case, plan.lasts)?;
            per_s.add(server.kind, result.per_s);
            processor.add(server.kind, result.processor_us);
        }
    }
    for server in &servers {
        let peak = server.peak_bytes()? as f64 / MEGABYTE;
        let most = &mut peaks.values[server.kind as usize];
        *most = vec![most.first().copied().unwrap_or(0.0).max(peak)];
    }
    Ok([per_s, processor])
}

fn latency(plan: &Plan, case: Case, progress: &mut Progress, each: Duration) -> Result<[Row; 2]> {
    let rate = if case.subscribers > 1 { PACED_TO_MANY_PER_S } else { PACED_PER_S };
    let name = format!("{} at {rate}/s", name(&case));
    let mut p50 = Row::new(name.clone(), "µs p50", Bound::TimesAtMost(1.25));
    let mut p99 = Row::new(name.clone(), "µs p99", Bound::TimesAtMost(1.0));
    let servers = servers(plan, case.durable)?;
    for round in 1..=plan.rounds {
        for server in &servers {
            progress.step(&format!("{name}, {}, round {round}", server.kind.name()), each);
            let result = load::latency(server, case, rate, plan.lasts)?;
            p50.add(server.kind, result.p50_us);
            p99.add(server.kind, result.p99_us);
        }
    }
    Ok([p50, p99])
}

fn many(plan: &Plan) -> Result<Vec<Row>> {
    let kept = |what: &str, most: Bound| {
        [
            Row::new(format!("{what}: published"), "s", Bound::Shown),
            Row::new(format!("{what}: all arrive within"), "s", most),
            Row::new(format!("{what}: memory of each"), "B", Bound::Shown),
        ]
    };
    let mut retained = kept("50,000 retained", Bound::TimesAtMost(1.0));
    let mut queued = kept("20,000 queued, in order", Bound::TimesAtMost(1.0));
    let mut durable = kept("20,000 queued in the store, in order", Bound::Shown);
    let text = format!("{SESSIONS} connections, a subscription each: memory of one");
    let mut connections = Row::new(text, "B", Bound::AtMost(1200.0));
    let add = |rows: &mut [Row; 3], kind, result: bulk::Kept| {
        let values = [result.publish_s, result.arrive_s, result.bytes_each];
        for (row, value) in rows.iter_mut().zip(values) {
            row.add(kind, value);
        }
    };
    for kind in &plan.kinds {
        let server = Server::start(&plan.setup, *kind, false)?;
        add(&mut retained, *kind, bulk::retained(&server, RETAINED)?);
        let server = Server::start(&plan.setup, *kind, false)?;
        add(&mut queued, *kind, bulk::queued(&server, QUEUED)?);
        let server = Server::start(&plan.setup, *kind, true)?;
        add(&mut durable, *kind, bulk::queued(&server, QUEUED)?);
        let server = Server::start(&plan.setup, *kind, false)?;
        connections.add(*kind, bulk::connections(&server, SESSIONS)?);
    }
    let rows = retained.into_iter().chain(queued).chain(durable);
    Ok(rows.chain([connections]).collect())
}

fn found(plan: &Plan) -> Result<Vec<Row>> {
    let what = "matching, 50 hits of 100,000 subscriptions";
    let mut new = Row::new(format!("{what}, new topics"), "ns", Bound::AtMost(500.0));
    let mut known = Row::new(format!("{what}, known topics"), "ns", Bound::AtMost(500.0));
    for one in matching(plan.rounds as usize)? {
        new.add(Kind::Longwire, one.new_ns);
        known.add(Kind::Longwire, one.known_ns);
    }
    Ok(vec![new, known])
}
