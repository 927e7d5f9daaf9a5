//! Small answers: what the pair adds where the network costs nothing.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use record::benchmark::{Figures, Round, SmallResult};

use super::client::Connection;
use super::origin::Origin;
use super::processes::Pair;
use super::{Options, Setup, Trial};
use crate::machine::{cores, pin_this_thread};

const SETUPS: [Setup; 5] = [
    Setup { encoding: "identity", keys: false },
    Setup { encoding: "deflate", keys: false },
    Setup { encoding: "zstd", keys: false },
    Setup { encoding: "auto", keys: false },
    Setup { encoding: "auto", keys: true },
];
const BODY_BYTES: u64 = 10_240;
/// Enough to keep one core of servers busy.
const CONNECTIONS: usize = 16;
const WARM_UP_REQUESTS: usize = 200;

fn rounds(options: &Options) -> usize {
    if options.quick { 2 } else { 5 }
}

fn requests(options: &Options) -> usize {
    if options.quick { 500 } else { 4_000 }
}

fn together(options: &Options) -> Duration {
    Duration::from_millis(if options.quick { 500 } else { 2_000 })
}

/// Two ways in each round, at about 200 µs a request.
fn planned_round(options: &Options) -> Duration {
    let alone = Duration::from_micros(200) * u32::try_from(requests(options)).unwrap_or(u32::MAX);
    2 * (alone + together(options))
}

pub(super) fn planned(options: &Options) -> Duration {
    planned_round(options) * u32::try_from(rounds(options) * SETUPS.len()).unwrap_or(u32::MAX)
}

pub(super) fn measure(trial: &mut Trial, options: &Options) -> Result<()> {
    let cores = cores();
    // The client has a core of its own where there are two; all servers share another.
    let client = *cores.first().context("no core to run on")?;
    let servers = *cores.last().context("no core to run on")?;
    let origin = Origin::start(Some(servers))?;
    for setup in &SETUPS {
        match one_setup(trial, options, &origin, setup, client, servers) {
            Ok(result) => trial.result.small.push(result),
            Err(error) => trial.result.missed.push(format!("{}: {error:#}", setup.name())),
        }
    }
    Ok(())
}

fn one_setup(
    trial: &mut Trial,
    options: &Options,
    origin: &Origin,
    setup: &Setup,
    client: usize,
    servers: usize,
) -> Result<SmallResult> {
    let pair = Pair::start(&options.binary, setup, origin.address, Some(servers))?;
    let idle_bytes = pair.resident_bytes()?;
    let direct = Way { origin, pair: None, client };
    let through = Way { origin, pair: Some(&pair), client };
    let mut all = Vec::new();
    for number in 1..=rounds(options) {
        let what = format!("small answers, {}, round {number}", setup.name());
        trial.progress.step(&what, planned_round(options));
        let (direct, _) = direct.figures(options)?;
        let (pair, processor_us) = through.figures(options)?;
        all.push(Round { direct, pair, processor_us });
    }
    Ok(SmallResult {
        encoding: setup.encoding.to_string(),
        keys: setup.keys,
        body_bytes: BODY_BYTES,
        connections: CONNECTIONS,
        rounds: all,
        idle_bytes,
        peak_bytes: pair.peak_bytes()?,
    })
}

/// One way to the service.
struct Way<'a> {
    origin: &'a Origin,
    pair: Option<&'a Pair>,
    client: usize,
}

impl Way<'_> {
    /// What a client sees, and the pair's processor time for each request in microseconds.
    fn figures(&self, options: &Options) -> Result<(Figures, f64)> {
        let mut times_ns = self.on_the_client(|| self.alone(requests(options)))??;
        times_ns.sort_unstable();
        let rank = |per_cent: usize| {
            times_ns[(times_ns.len() * per_cent).div_ceil(100).max(1) - 1] as f64 / 1e3
        };
        let before = self.processor_time()?;
        let requests_per_s = self.on_the_client(|| self.at_once(together(options)))??;
        let used = self.processor_time()?.saturating_sub(before);
        let requests = requests_per_s * together(options).as_secs_f64();
        let figures = Figures { p50_us: rank(50), p99_us: rank(99), requests_per_s };
        Ok((figures, used.as_secs_f64() * 1e6 / requests.max(1.0)))
    }

    fn processor_time(&self) -> Result<Duration> {
        self.pair.map_or(Ok(Duration::ZERO), Pair::processor_time)
    }

    /// Runs on a thread of its own on the client's core.
    fn on_the_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let pinned = || {
            pin_this_thread(self.client);
            work()
        };
        let done = thread::scope(|scope| scope.spawn(pinned).join());
        done.map_err(|_| anyhow::anyhow!("a client panicked"))
    }

    fn connect(&self) -> Result<Connection> {
        Connection::open(self.origin.address, self.pair.map(Pair::address))
    }

    /// One request after another; how long each took.
    fn alone(&self, requests: usize) -> Result<Vec<u64>> {
        let mut connection = self.connect()?;
        for _ in 0..WARM_UP_REQUESTS {
            connection.get(BODY_BYTES)?;
        }
        let timed = |_| {
            let start = Instant::now();
            connection.get(BODY_BYTES)?;
            Ok(u64::try_from(start.elapsed().as_nanos())?)
        };
        (0..requests).map(timed).collect()
    }

    /// Several connections for a while; requests per second over all.
    fn at_once(&self, time: Duration) -> Result<f64> {
        let (stop, barrier) = (AtomicBool::new(false), Barrier::new(CONNECTIONS + 1));
        let ask = || {
            // Whoever fails to connect must not let the others wait.
            let connection = self.connect();
            barrier.wait();
            let (mut connection, mut count) = (connection?, 0_u64);
            while !stop.load(Ordering::Relaxed) {
                connection.get(BODY_BYTES)?;
                count += 1;
            }
            anyhow::Ok(count)
        };
        let (counts, elapsed) = thread::scope(|scope| {
            let all: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(ask)).collect();
            barrier.wait();
            let start = Instant::now();
            thread::sleep(time);
            stop.store(true, Ordering::Relaxed);
            let counts: Vec<_> = all.into_iter().map(|one| one.join()).collect();
            (counts, start.elapsed())
        });
        let mut sum = 0;
        for count in counts {
            sum += count.map_err(|_| anyhow::anyhow!("a client panicked"))??;
        }
        Ok(sum as f64 / elapsed.as_secs_f64())
    }
}
