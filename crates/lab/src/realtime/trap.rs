//! The three traps of priority queues: each sprung with its protection, and without.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use services::Error;
use services::client::Target;
use services::realtime::admission::USUAL_SHARE_PERMILLE;
use services::realtime::consumer::{Config, Consumer, Outcome};
use services::realtime::lock::Inheritance;
use services::realtime::producer::{self, Progress};
use services::realtime::profile::{Priorities, Profile};
use services::realtime::rights::pin_this_thread;
use services::realtime::schedule::Schedule;
use services::realtime::statistics::{Series, Summary};

use super::inversion;

/// How often the lock is waited for.
const ROUNDS: usize = 5;
/// Real-time priority of producers: below all of the consumer.
const PRODUCER: i32 = 5;
/// Processor time of a message of the lower classes.
const WORK_NS: u64 = 1_000_000;

/// One of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// An urgent thread waits for who holds its lock, and for all who run in that one's place.
    Inversion,
    /// A worker with the engine's priority: urgent messages wait before they are handed over.
    Starvation,
    /// Threads that fill a core are all stopped by the kernel.
    Throttling,
}

impl Trap {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Inversion, Self::Starvation, Self::Throttling];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inversion => "inversion",
            Self::Starvation => "starvation",
            Self::Throttling => "throttling",
        }
    }

    /// What protects from it.
    #[must_use]
    pub fn protection(self) -> &'static str {
        match self {
            Self::Inversion => "locks that lend priority",
            Self::Starvation => "the engine above all workers but the first",
            Self::Throttling => "admission of 90 % of a core",
        }
    }

    /// What is measured.
    #[must_use]
    pub fn measured(self) -> &'static str {
        match self {
            Self::Inversion => "longest wait of the urgent thread for the lock",
            Self::Starvation => "p99 of T1-T0 of class 0",
            Self::Throttling => "max of T2-T0 of class 0",
        }
    }
}

/// What was seen in one of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// What is measured, in microseconds.
    pub figure_us: f64,
    /// T2-T1 of class 0, where messages were sent.
    pub internal: Option<Summary>,
    /// T1-T0.
    pub before: Option<Summary>,
    /// T2-T0.
    pub whole: Option<Summary>,
    /// Messages of all classes that were accepted, and that were refused.
    pub accepted: u64,
    /// Messages refused, by a full queue or the share.
    pub refused: u64,
}

/// Springs a trap on a core, for `duration` where messages are sent; producers keep to another core
/// where there is one.
///
/// # Errors
/// [`Error::Caller`] where real time is not permitted: without it there is nothing to see.
pub fn spring(
    trap: Trap,
    is_protected: bool,
    core: usize,
    duration: Duration,
) -> Result<Seen, Error> {
    match trap {
        Trap::Inversion => {
            let inheritance = match is_protected {
                true => Inheritance::Inherit,
                false => Inheritance::None,
            };
            let mut longest_ns = 0;
            for _ in 0..ROUNDS {
                longest_ns = longest_ns.max(inversion::wait_ns(core, inheritance)?);
            }
            Ok(Seen { figure_us: longest_ns as f64 / 1000.0, ..Seen::default() })
        }
        Trap::Starvation => {
            let usual = Priorities::default();
            let [first, ..] = usual.workers;
            let workers = match is_protected {
                true => usual.workers,
                // The lowest worker at the engine's, those between above it.
                false => [first, usual.engine + 5, usual.engine, 1, 1, 1, 1, 1],
            };
            let config = Config {
                priorities: Priorities { workers, ..usual },
                share_permille: Some(USUAL_SHARE_PERMILLE),
                ..config(core)
            };
            // 82 % of the core: what is seen is the order alone.
            let loads = [(0, 20.0, 1), (1, 300.0, 1), (2, 520.0, 4)];
            let seen = load(&config, &loads, duration)?;
            let before = seen.before.as_ref();
            Ok(Seen { figure_us: before.map_or(0.0, |before| before.p99_us), ..seen })
        }
        Trap::Throttling => {
            let share_permille = is_protected.then_some(USUAL_SHARE_PERMILLE);
            let config = Config { share_permille, ..config(core) };
            // 142 % of the core.
            let loads = [(0, 20.0, 1), (1, 400.0, 1), (2, 1000.0, 4)];
            let seen = with_ordinary(core, || load(&config, &loads, duration))?;
            let whole = seen.whole.as_ref();
            Ok(Seen { figure_us: whole.map_or(0.0, |whole| whole.max_us), ..seen })
        }
    }
}

fn config(core: usize) -> Config {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let profile = Profile::ALL[0];
    let mut config = Config::new(listen, profile);
    config.core = Some(core);
    config.classes = 3;
    config.work_ns[1..3].fill(WORK_NS);
    config
}

/// Something ordinary wants the core too: the kernel throttles for the sake of such.
fn with_ordinary<T>(core: usize, run: impl FnOnce() -> T) -> T {
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let ordinary = thread::spawn(move || {
        // Where it cannot be pinned, neither can the consumer, which says so.
        let _ = pin_this_thread(core);
        while !over.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    });
    let out = run();
    is_over.store(true, Ordering::Relaxed);
    let _ = ordinary.join();
    out
}

/// Sends to a consumer: class, messages a second, connections.
fn load(config: &Config, loads: &[(usize, f64, usize)], duration: Duration) -> Result<Seen, Error> {
    let consumer = Consumer::start(config)?;
    if let Some(why) = consumer.granted().iter().find_map(|one| one.refused.clone()) {
        consumer.stop()?;
        return Err(Error::Caller(format!("nothing to see without real time: {why}")));
    }
    let address = consumer.address();
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let other = (0..cores).find(|other| Some(*other) != config.core);
    let producers: Vec<_> = loads
        .iter()
        .map(|(class, rate_per_s, connections)| {
            let url = Target::parse(&format!("http://{address}/consumer/{class}"))?;
            let schedule = Schedule::new(*rate_per_s, duration).map_err(Error::Caller)?;
            let config = producer::Config {
                url,
                schedule,
                entities: 1,
                class: None,
                urgency: None,
                connections: *connections,
                timeout: Duration::from_secs(10),
                priority: Some(PRODUCER),
                core: other,
                is_same_clock: false,
            };
            Ok(thread::spawn(move || {
                producer::produce(&config, &Progress::default(), &AtomicBool::new(false))
            }))
        })
        .collect::<Result<_, Error>>()?;
    let mut failed = None;
    for producer in producers {
        match producer.join() {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => failed = Some(error),
            Err(_) => failed = Some(Error::Peer("a producer ended by a panic".to_owned())),
        }
    }
    let outcome = consumer.stop()?;
    match failed {
        Some(error) => Err(error),
        None => Ok(seen(&outcome)),
    }
}

fn seen(outcome: &Outcome) -> Seen {
    let first = outcome.classes.first().map(|class| class.samples.as_slice());
    let series = Series::of(first.unwrap_or_default(), 0);
    let all = |count: fn(&services::realtime::consumer::ClassOutcome) -> u64| {
        outcome.classes.iter().map(count).sum()
    };
    Seen {
        figure_us: 0.0,
        internal: series.internal,
        before: series.before,
        whole: series.whole,
        accepted: all(|class| class.accepted),
        refused: all(|class| class.refused_full + class.refused_over_share),
    }
}
