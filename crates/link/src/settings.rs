//! Settings: the keys of a link and their texts.

use crate::nearest::nearest;
use crate::queue::{MAX_QUEUE_BYTES, MAX_QUEUE_PACKETS};
use crate::units::{
    format_duration, format_rate, format_share, format_size, parse_duration, parse_rate,
    parse_share, parse_size,
};
use crate::{BurstLoss, ChannelConfig, Direction, Distribution, Error, LinkConfig, Outages, Trace};
use std::ops::RangeInclusive;
use std::time::Duration;

const RATE_BPS: RangeInclusive<u64> = 10..=100_000_000_000;
const MAX_DELAY: Duration = Duration::from_secs(3600);
/// RFC 791 §3.2: every module forwards 68 octets; the length field ends at 65,535.
const MTU_BYTES: RangeInclusive<u64> = 68..=65_535;

/// One key of a link's settings.
pub struct Key {
    /// The key, without a direction's prefix.
    pub name: &'static str,
    /// What is understood: range, units, an example.
    pub expected: &'static str,
    /// What it does, for help texts.
    pub about: &'static str,
    /// Answers nothing when it refuses the value.
    set: fn(&mut ChannelConfig, &str) -> Option<()>,
    get: fn(&ChannelConfig) -> String,
}

/// All keys, in the order of listings.
#[must_use]
pub fn keys() -> &'static [Key] {
    &KEYS
}

static KEYS: [Key; 17] = [
    Key {
        name: "rate",
        expected: "a rate from 10 bit/s to 100 Gbit/s (like 250 kbit/s) or none",
        about: "rate at which IP bytes are sent; replaces a trace",
        set: |config, value| {
            let rate_bps = optional(value, parse_rate)?;
            if rate_bps.is_some_and(|rate_bps| !RATE_BPS.contains(&rate_bps)) {
                return None;
            }
            config.rate_bps = rate_bps;
            if rate_bps.is_some() {
                config.trace = None;
            }
            Some(())
        },
        get: |config| or_none(config.rate_bps, format_rate),
    },
    Key {
        name: TRACE,
        expected: TRACE_EXPECTED,
        about: "recorded delivery times; replaces the rate",
        set: |config, value| (value == "none").then(|| config.trace = None),
        get: |config| config.trace.as_ref().map_or("none".to_owned(), |t| t.name().to_owned()),
    },
    Key {
        name: "delay",
        expected: "a duration from 0 ns to 1 h (like 550 ms)",
        about: "time from the last bit sent to arrival, one way",
        set: |config, value| duration(value).map(|delay| config.delay = delay),
        get: |config| format_duration(config.delay),
    },
    Key {
        name: "jitter",
        expected: "a duration from 0 ns to 1 h (like 20 ms)",
        about: "how much the delay varies: half its range, or its standard deviation",
        set: |config, value| duration(value).map(|jitter| config.jitter = jitter),
        get: |config| format_duration(config.jitter),
    },
    Key {
        name: "distribution",
        expected: "uniform, normal, pareto or paretonormal",
        about: "the shape of the jitter",
        set: |config, value| {
            let known = Distribution::ALL.into_iter().find(|known| known.name() == value)?;
            config.distribution = known;
            Some(())
        },
        get: |config| config.distribution.name().to_owned(),
    },
    Key {
        name: "jitter_correlation",
        expected: SHARE,
        about: "how much of a packet's jitter follows from that of the one before",
        set: |config, value| share(value).map(|c| config.jitter_correlation = c),
        get: |config| format_share(config.jitter_correlation),
    },
    Key {
        name: "loss",
        expected: SHARE,
        about: "share of packets lost, having used their airtime",
        set: |config, value| share(value).map(|loss| config.loss = loss),
        get: |config| format_share(config.loss),
    },
    Key {
        name: "loss_correlation",
        expected: SHARE,
        about: "probability that a packet has the fate of the one before; loss stays as it is",
        set: |config, value| share(value).map(|c| config.loss_correlation = c),
        get: |config| format_share(config.loss_correlation),
    },
    Key {
        name: "burst_loss",
        expected: "p and r, perhaps bad and good, each from 0 % to 100 %, p and r not both 0 % \
                   (like 'p=1 %, r=30 %, bad=100 %, good=0 %'), or none",
        about: "loss by Gilbert and Elliott: p, r to turn bad, good; bad, good lost in that state",
        set: |config, value| burst_loss(value).map(|burst| config.burst_loss = burst),
        get: |config| config.burst_loss.map_or("none".to_owned(), |b| format_burst_loss(&b)),
    },
    Key {
        name: "loss_first",
        expected: "true or false",
        about: "lose packets before queue and serialization, as netem does",
        set: |config, value| value.parse().ok().map(|first| config.loss_first = first),
        get: |config| config.loss_first.to_string(),
    },
    Key {
        name: "duplicate",
        expected: SHARE,
        about: "share of packets that arrive twice; the copy uses no airtime",
        set: |config, value| share(value).map(|duplicate| config.duplicate = duplicate),
        get: |config| format_share(config.duplicate),
    },
    Key {
        name: "corrupt",
        expected: SHARE,
        about: "share of packets in which one random bit is flipped",
        set: |config, value| share(value).map(|corrupt| config.corrupt = corrupt),
        get: |config| format_share(config.corrupt),
    },
    Key {
        name: "reorder",
        expected: SHARE,
        about: "share of packets that skip the delay; above 0 % jitter may change the order too",
        set: |config, value| share(value).map(|reorder| config.reorder = reorder),
        get: |config| format_share(config.reorder),
    },
    Key {
        name: "queue_packets",
        expected: "a number of packets from 0 to 100000 (like 1000) or none for 100000",
        about: "most packets waiting, the one being sent not counted",
        set: |config, value| {
            let limit = if value == "none" { MAX_QUEUE_PACKETS } else { value.parse().ok()? };
            (limit <= MAX_QUEUE_PACKETS).then(|| config.queue_packets = limit)
        },
        get: |config| match config.queue_packets {
            MAX_QUEUE_PACKETS => "none".to_owned(),
            limit => limit.to_string(),
        },
    },
    Key {
        name: "queue_bytes",
        expected: "a size from 0 B to 256 MiB (like 15 KB) or none for 256 MiB",
        about: "most bytes waiting, those being sent not counted",
        set: |config, value| {
            let limit = optional(value, parse_size)?.unwrap_or(MAX_QUEUE_BYTES);
            (limit <= MAX_QUEUE_BYTES).then(|| config.queue_bytes = limit)
        },
        get: |config| match config.queue_bytes {
            MAX_QUEUE_BYTES => "none".to_owned(),
            limit => format_size(limit),
        },
    },
    Key {
        name: "mtu",
        expected: "a size from 68 B to 65535 B (like 1500 B) or none",
        about: "larger packets are dropped",
        set: |config, value| {
            let mtu = optional(value, parse_size)?;
            if mtu.is_some_and(|mtu| !MTU_BYTES.contains(&mtu)) {
                return None;
            }
            config.mtu = mtu.and_then(|mtu| u32::try_from(mtu).ok());
            Some(())
        },
        get: |config| or_none(config.mtu.map(u64::from), |mtu| format!("{mtu} B")),
    },
    Key {
        name: OUTAGES,
        expected: crate::outage::EXPECTED,
        about: "when whatever is being sent is lost",
        set: |config, value| Outages::parse(value).ok().map(|outages| config.outages = outages),
        get: |config| config.outages.to_string(),
    },
];

const SHARE: &str = "a share from 0 % to 100 % (like 1 %)";
const OUTAGES: &str = "outages";
const TRACE: &str = "trace";
const TRACE_EXPECTED: &str =
    "a file with one time in whole milliseconds per 1500-byte delivery opportunity, or none";

impl LinkConfig {
    /// Sets one key from text: `delay` for both directions, `ab.delay` or `ba.delay` for one.
    /// A trace needs a file and is set with [`LinkConfig::set_reading`].
    ///
    /// # Errors
    /// [`Error::Unknown`] for a key that does not exist, [`Error::Setting`] for a value out of its
    /// range. The configuration is then as before. What keys contradict each other is found by
    /// [`LinkConfig::check`].
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), Error> {
        self.set_reading(key, value, |_| Err("no files are read here".to_owned()))
    }

    /// As [`LinkConfig::set`]; the value of `trace` is handed to `read`, which answers with the
    /// text of the trace (no more than [`MAX_TRACE_BYTES`](crate::MAX_TRACE_BYTES) and a byte) or
    /// why it cannot.
    ///
    /// # Errors
    /// Those of `set`, and [`Error::Trace`] when `read` fails or the text is no trace.
    pub fn set_reading(
        &mut self,
        key: &str,
        value: &str,
        read: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<(), Error> {
        let (directions, name) = split_key(key);
        let known = find(name)?;
        let value = value.trim();
        let trace = if known.name == TRACE && value != "none" {
            let text = read(value).map_err(|what| Error::Trace {
                name: value.to_owned(),
                line: None,
                what,
            })?;
            Some(Trace::parse(value, &text)?)
        } else {
            None
        };
        for direction in directions {
            let config = self.direction_mut(*direction);
            if let Some(trace) = &trace {
                config.rate_bps = None;
                config.trace = Some(trace.clone());
            } else {
                (known.set)(config, value).ok_or_else(|| refusal(known, key, value))?;
            }
        }
        Ok(())
    }

    /// Sets all of `key=value` texts, or none of them when one is refused or they contradict each
    /// other. Later ones win.
    ///
    /// # Errors
    /// Those of [`LinkConfig::set_reading`] and [`LinkConfig::check`], and [`Error::Value`] for a
    /// text without an equals sign.
    pub fn apply<S: AsRef<str>>(
        &mut self,
        assignments: &[S],
        read: impl Fn(&str) -> Result<String, String>,
    ) -> Result<(), Error> {
        let mut changed = self.clone();
        for assignment in assignments.iter().map(AsRef::as_ref) {
            let (key, value) = assignment.split_once('=').ok_or_else(|| Error::Value {
                value: assignment.to_owned(),
                expected: "a setting of the form key=value (like 'delay=250 ms')".to_owned(),
            })?;
            changed.set_reading(key.trim(), value, &read)?;
        }
        changed.check()?;
        *self = changed;
        Ok(())
    }

    /// All settings as texts that [`LinkConfig::set`] understands, the queue limits always among
    /// them: once where the directions agree, else with their prefixes.
    #[must_use]
    pub fn settings(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for key in keys() {
            let (ab, ba) = ((key.get)(&self.ab), (key.get)(&self.ba));
            if ab == ba {
                all.push((key.name.to_owned(), ab));
            } else {
                all.push((format!("ab.{}", key.name), ab));
                all.push((format!("ba.{}", key.name), ba));
            }
        }
        all
    }
}

impl ChannelConfig {
    /// All settings of one direction as texts, without prefix.
    #[must_use]
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        keys().iter().map(|key| (key.name, (key.get)(self))).collect()
    }
}

/// The directions that a key speaks of, and its name without them.
fn split_key(key: &str) -> (&'static [Direction], &str) {
    if let Some(name) = key.strip_prefix("ab.") {
        (&[Direction::Ab], name)
    } else if let Some(name) = key.strip_prefix("ba.") {
        (&[Direction::Ba], name)
    } else {
        (&Direction::BOTH, key)
    }
}

fn find(name: &str) -> Result<&'static Key, Error> {
    keys().iter().find(|key| key.name == name).ok_or_else(|| {
        let known: Vec<&'static str> = keys().iter().map(|key| key.name).collect();
        Error::Unknown {
            kind: "setting",
            name: name.to_owned(),
            nearest: nearest(name, &known),
            known,
        }
    })
}

fn refusal(known: &Key, key: &str, value: &str) -> Error {
    let (value, expected) = match Outages::parse(value) {
        // Outages are many in one value: the one to blame is named.
        Err(Error::Value { value, expected }) if known.name == OUTAGES => (value, expected),
        _ => (value.to_owned(), known.expected.to_owned()),
    };
    Error::Setting { key: key.to_owned(), value, expected }
}

/// The outer `None` is a refusal, the inner one says 'none'.
fn optional(value: &str, parse: fn(&str) -> Result<u64, Error>) -> Option<Option<u64>> {
    if value == "none" { Some(None) } else { parse(value).ok().map(Some) }
}

fn or_none(value: Option<u64>, format: fn(u64) -> String) -> String {
    value.map_or("none".to_owned(), format)
}

fn duration(value: &str) -> Option<Duration> {
    parse_duration(value).ok().filter(|duration| *duration <= MAX_DELAY)
}

fn share(value: &str) -> Option<f64> {
    parse_share(value).ok()
}

fn burst_loss(value: &str) -> Option<Option<BurstLoss>> {
    if value == "none" {
        return Some(None);
    }
    let (mut p, mut r, mut bad, mut good) = (None, None, None, None);
    for part in value.split(',') {
        let (name, value) = part.split_once('=')?;
        let slot = match name.trim() {
            "p" => &mut p,
            "r" => &mut r,
            "bad" => &mut bad,
            "good" => &mut good,
            _ => return None,
        };
        if slot.replace(share(value)?).is_some() {
            return None;
        }
    }
    let burst = BurstLoss { p: p?, r: r?, bad: bad.unwrap_or(1.0), good: good.unwrap_or(0.0) };
    (burst.p + burst.r > 0.0).then_some(Some(burst))
}

fn format_burst_loss(burst: &BurstLoss) -> String {
    let [p, r, bad, good] = [burst.p, burst.r, burst.bad, burst.good].map(format_share);
    format!("p={p}, r={r}, bad={bad}, good={good}")
}

#[cfg(test)]
mod tests;
