//! Large bodies: every byte the same, memory bounded, how fast.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use record::benchmark::BodiesResult;

use super::client::Connection;
use super::origin::Origin;
use super::processes::Pair;
use super::{MAX_MEMORY_BYTES, Options, Setup, Trial};
use crate::machine::Accounts;

/// What is measured; the plain carrier with each encoding, and once with keys.
const SETUPS: [Setup; 5] = [
    Setup { encoding: "identity", keys: false },
    Setup { encoding: "deflate", keys: false },
    Setup { encoding: "zstd", keys: false },
    Setup { encoding: "auto", keys: false },
    Setup { encoding: "auto", keys: true },
];

#[derive(Clone, Copy)]
enum Direction {
    Answers,
    Requests,
}

impl Direction {
    const BOTH: [Self; 2] = [Self::Answers, Self::Requests];

    fn name(self) -> &'static str {
        match self {
            Self::Answers => "answers",
            Self::Requests => "requests",
        }
    }
}

impl Setup {
    /// A guess for the time that is left: what two cores carry through the whole chain.
    fn guessed_bytes_per_s(&self) -> f64 {
        match self.encoding {
            "identity" => 400e6,
            "deflate" => 110e6,
            _ => 220e6,
        }
    }

    fn planned(&self, options: &Options, at_once: usize) -> Duration {
        let bytes = options.body_bytes as f64 * at_once as f64;
        Duration::from_secs_f64(bytes / self.guessed_bytes_per_s() + 0.3)
    }
}

fn counts(options: &Options) -> [usize; 2] {
    [1, options.bodies_at_once]
}

pub(super) fn planned(options: &Options) -> Duration {
    let one = |setup: &Setup| -> Duration {
        counts(options).into_iter().map(|at_once| 2 * setup.planned(options, at_once)).sum()
    };
    SETUPS.iter().map(one).sum()
}

pub(super) fn measure(trial: &mut Trial, options: &Options) -> Result<()> {
    let origin = Origin::start(None)?;
    for setup in &SETUPS {
        for direction in Direction::BOTH {
            for at_once in counts(options) {
                let what = format!("{at_once} {} of {}", direction.name(), setup.name());
                trial.progress.step(&what, setup.planned(options, at_once));
                match one_run(trial, options, &origin, setup, direction, at_once) {
                    Ok(result) => judge(trial, &what, result),
                    Err(error) => trial.result.missed.push(format!("{what}: {error:#}")),
                }
            }
        }
    }
    Ok(())
}

fn judge(trial: &mut Trial, what: &str, result: BodiesResult) {
    for (side, peak_bytes) in
        [("edge", result.edge_peak_bytes), ("gateway", result.gateway_peak_bytes)]
    {
        if peak_bytes > MAX_MEMORY_BYTES {
            trial.result.missed.push(format!(
                "{what}: the {side} took {peak_bytes} B of memory, over {MAX_MEMORY_BYTES} B"
            ));
        }
    }
    trial.result.bodies.push(result);
}

fn one_run(
    trial: &mut Trial,
    options: &Options,
    origin: &Origin,
    setup: &Setup,
    direction: Direction,
    at_once: usize,
) -> Result<BodiesResult> {
    let pair = Pair::start(&options.binary, setup, origin.address, None)?;
    let (barrier, length) = (Barrier::new(at_once + 1), options.body_bytes);
    let carry = || {
        // Whoever fails to connect must not let the others wait.
        let connection = Connection::open(origin.address, Some(pair.address()));
        barrier.wait();
        match direction {
            Direction::Answers => connection?.get(length),
            Direction::Requests => connection?.post(length),
        }
    };
    let accounts = Accounts::read()?;
    let (outcomes, elapsed) = thread::scope(|scope| {
        let all: Vec<_> = (0..at_once).map(|_| scope.spawn(carry)).collect();
        barrier.wait();
        let start = Instant::now();
        let outcomes: Vec<_> = all.into_iter().map(|one| one.join()).collect();
        (outcomes, start.elapsed())
    });
    let busy = accounts.since()?;
    let mut same = 0;
    for outcome in outcomes {
        match outcome {
            Ok(Ok(())) => same += 1,
            Ok(Err(error)) => trial.result.missed.push(format!(
                "{} {}, {at_once} at once: {error:#}",
                setup.name(),
                direction.name()
            )),
            Err(_) => anyhow::bail!("a client panicked"),
        }
    }
    let [edge_peak_bytes, gateway_peak_bytes] = pair.peak_bytes()?;
    Ok(BodiesResult {
        encoding: setup.encoding.to_string(),
        keys: setup.keys,
        direction: direction.name().to_string(),
        at_once,
        body_bytes: length,
        elapsed_s: elapsed.as_secs_f64(),
        same,
        edge_peak_bytes,
        gateway_peak_bytes,
        bound_bytes: MAX_MEMORY_BYTES,
        busy,
    })
}
