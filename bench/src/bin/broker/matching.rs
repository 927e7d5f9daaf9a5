//! What it takes to find whom a publication is for, without any connection.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use broker::{ClientKey, ConnectionId, Core, Grade, Opening, Protocol, Settings, Subscription};

/// Sessions, and subscriptions of each.
pub(crate) const SESSIONS: usize = 10_000;
const SUBSCRIPTIONS: usize = 10;
/// Sessions that a publication leads to.
const HITS: usize = 50;
/// Lookups of a round.
const LOOKUPS: usize = 20_000;
/// Topics that are asked for again and again.
const KNOWN: usize = 100;

/// Times of one lookup, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matching {
    /// Of topics that have not been asked for.
    pub(crate) new_ns: f64,
    /// Of topics that were.
    pub(crate) known_ns: f64,
}

/// Looks for the subscribers of topics that 50 of 10,000 sessions want, among 100,000
/// subscriptions. Each round gives the times of both kinds.
pub(crate) fn matching(rounds: usize) -> Result<Vec<Matching>> {
    let mut core = core()?;
    let subscriptions = core.sizes().subscriptions;
    if subscriptions != SESSIONS * SUBSCRIPTIONS {
        bail!("{subscriptions} subscriptions, not {SUBSCRIPTIONS} of each session");
    }
    let mut topics = (0_u64..).map(topic);
    let mut all = Vec::new();
    for _ in 0..rounds {
        let new: Vec<Arc<str>> = topics.by_ref().take(LOOKUPS).collect();
        let new_ns = time(&mut core, &new, LOOKUPS)?;
        let known_ns = time(&mut core, &new[..KNOWN], LOOKUPS)?;
        all.push(Matching { new_ns, known_ns });
    }
    Ok(all)
}

/// Topics whose third level nobody has named: `new` ones are asked for once each.
fn topic(number: u64) -> Arc<str> {
    format!("nato/unit{}/{number}/position", number % (SESSIONS / HITS) as u64).into()
}

/// Each session wants the positions of one of 200 units, with 49 others, and nine topics of its
/// own.
fn core() -> Result<Core> {
    let mut core = Core::new(Settings { max_sessions: SESSIONS, ..Settings::default() });
    for number in 0..SESSIONS {
        let name = format!("session{number}").into();
        let opening = Opening {
            client: ClientKey { protocol: Protocol::Mqtt, name },
            connection: ConnectionId(number as u64 + 1),
            user: None,
            clean: true,
            expiry: Duration::ZERO,
            window: u16::MAX,
            will: None,
        };
        let id = core.open(Duration::ZERO, opening).ok().context("no session")?.session;
        let unit = number % (SESSIONS / HITS);
        let mut filters = vec![format!("nato/unit{unit}/+/position")];
        filters.extend((1..SUBSCRIPTIONS).map(|own| match own % 3 {
            0 => format!("nato/session{number}/{own}/#"),
            1 => format!("nato/session{number}/+/{own}"),
            _ => format!("nato/session{number}/{own}/orders"),
        }));
        for filter in filters {
            let wanted = Subscription::new(filter, Grade::AtLeastOnce);
            core.subscribe(Duration::ZERO, id, wanted).ok().context("no subscription")?;
        }
    }
    Ok(core)
}

fn time(core: &mut Core, topics: &[Arc<str>], lookups: usize) -> Result<f64> {
    let began = Instant::now();
    let mut hits = 0;
    for topic in topics.iter().cycle().take(lookups) {
        hits += core.subscribers(black_box(topic));
    }
    let elapsed = began.elapsed();
    if hits != lookups * HITS {
        bail!("{hits} subscribers were found, not {HITS} for each of {lookups} publications");
    }
    Ok(elapsed.as_secs_f64() * 1e9 / lookups as f64)
}
