//! The kernel's own emulator, netem: a direction of a link in its terms (linux/pkt_sched.h).

use std::io;

use link::{ChannelConfig, Distribution};

use super::host::Host;
use super::message::Request;
use super::netlink::Netlink;
use super::netns::{Namespace, on_fresh_thread};
use crate::error::{Doing, Error, Result};

/// `TC_H_ROOT`: in the place of an interface's own discipline.
const TC_H_ROOT: u32 = u32::MAX;
const LOOPBACK: u32 = 1;

// TCA_NETEM_*: the attributes behind the fixed part.
const DELAY_DIST: u16 = 2;
const REORDER: u16 = 3;
const CORRUPT: u16 = 4;
const LOSS: u16 = 5;
const RATE_KIND: u16 = 6;
const RATE64_KIND: u16 = 8;
const LATENCY64: u16 = 10;
const JITTER64: u16 = 11;
const PRNG_SEED: u16 = 14;
/// `NETEM_LOSS_GE`, inside of `TCA_NETEM_LOSS`: the model of Gilbert and Elliott.
const LOSS_GILBERT_ELLIOTT: u16 = 2;

/// Length of `struct tc_netem_qopt`.
const FIXED_BYTES: usize = 24;
/// Times in the fixed part count in units of 64 ns, as the kernel's schedulers do.
const TICK_NS_LOG2: u32 = 6;
/// netem counts the Ethernet header, a link counts IP bytes.
const FRAME_OVERHEAD_BYTES: i32 = -14;
/// Entries of a table of delays: as many as tc's tables have, and within one attribute.
const TABLE_ENTRIES: u16 = 4096;
/// `NETEM_DIST_SCALE`: what stands for one `jitter` in a table.
const TABLE_SCALE: f64 = 8192.0;
/// Tables hold half the offset and netem is told twice the jitter: the widest offset here is 6.2
/// times the jitter, and an entry reaches but to 4.
const TABLE_SHRINK: u64 = 2;
/// netem draws an even jitter from a range of 32 bits of nanoseconds.
const MAX_JITTER_NS: u128 = 2_000_000_000;

/// What netem is to be told of one direction.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Netem {
    fixed: [u8; FIXED_BYTES],
    attributes: Vec<(u16, Vec<u8>)>,
}

impl Netem {
    /// A direction of a link in netem's terms; kernels before 6.6 choose their own seed.
    ///
    /// # Errors
    /// [`Error::Caller`] for a setting that netem does not have or means otherwise.
    pub(crate) fn new(config: &ChannelConfig, seed: u64) -> Result<Self> {
        if let Some(what) = unfit(config) {
            return Err(Error::Caller(what));
        }
        let delay_ns = u64::try_from(config.delay.as_nanos()).unwrap_or(u64::MAX);
        let jitter_ns = u64::try_from(config.jitter.as_nanos()).unwrap_or(u64::MAX);
        let table = (jitter_ns > 0).then(|| table(config.distribution)).flatten();
        let sigma_ns = if table.is_some() { jitter_ns * TABLE_SHRINK } else { jitter_ns };
        let reorders = config.reorder > 0.0;
        let mut attributes = vec![
            (LATENCY64, delay_ns.to_ne_bytes().to_vec()),
            (JITTER64, sigma_ns.to_ne_bytes().to_vec()),
            (PRNG_SEED, seed.to_ne_bytes().to_vec()),
        ];
        let mut add = |wanted: bool, kind: u16, words: &[u32]| {
            if wanted {
                attributes.push((kind, bytes(words)));
            }
        };
        // A probability, then a correlation.
        add(reorders, REORDER, &[probability(config.reorder), 0]);
        add(config.corrupt > 0.0, CORRUPT, &[probability(config.corrupt), 0]);
        if let Some(burst) = config.burst_loss {
            // struct nlattr, then tc_netem_gemodel: p, r, h, 1 - k; h is kept in the bad state.
            let model = [burst.p, burst.r, 1.0 - burst.bad, burst.good].map(probability);
            let header = [20_u16.to_ne_bytes(), LOSS_GILBERT_ELLIOTT.to_ne_bytes()].concat();
            attributes.push((LOSS, [header, bytes(&model)].concat()));
        }
        if let Some(rate_bps) = config.rate_bps {
            attributes.extend(rate(rate_bps));
        }
        attributes.extend(table.map(|table| (DELAY_DIST, table)));
        // struct tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter. With a gap of one,
        // each packet skips the delay with the probability of reordering.
        let fixed = [
            ticks(delay_ns),
            config.queue_packets,
            probability(config.loss),
            u32::from(reorders),
            probability(config.duplicate),
            ticks(sigma_ns),
        ];
        let mut words = [0; FIXED_BYTES];
        words.copy_from_slice(&bytes(&fixed));
        Ok(Self { fixed: words, attributes })
    }
}

impl Netlink {
    /// Puts netem in the place of an interface's queue, or changes it, with what it holds kept.
    pub(crate) fn set_netem(&self, index: u32, netem: &Netem) -> io::Result<()> {
        self.exchange(request(index, netem), |_| ())
    }
}

impl Host {
    /// Has the kernel emulate what this host sends over its interface.
    pub(crate) fn emulate(&self, netem: &Netem) -> Result<()> {
        let doing = || format!("have netem emulate what host {} sends", self.side.name());
        self.netlink.set_netem(self.interface, netem).doing(doing)
    }
}

/// Whether the kernel has netem: tried in a namespace that is thrown away.
///
/// # Errors
/// When no namespace can be made; the inner one is the kernel's refusal.
pub(crate) fn try_netem() -> Result<io::Result<()>> {
    on_fresh_thread(|| {
        Namespace::enter_new()?;
        let netem = Netem::new(&ChannelConfig::default(), 0)?;
        Ok(Netlink::open().and_then(|netlink| netlink.set_netem(LOOPBACK, &netem)))
    })
}

fn request(index: u32, netem: &Netem) -> Request {
    // struct tcmsg: family, padding, index, handle, parent, info.
    let mut fixed = [0; 20];
    fixed[4..8].copy_from_slice(&index.to_ne_bytes());
    fixed[12..16].copy_from_slice(&TC_H_ROOT.to_ne_bytes());
    let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    let mut request = Request::new(libc::RTM_NEWQDISC, flags, &fixed);
    request.text(libc::TCA_KIND, "netem");
    let options = request.open(libc::TCA_OPTIONS);
    request.raw(&netem.fixed);
    for (kind, value) in &netem.attributes {
        request.attribute(*kind, value);
    }
    request.close(options);
    request
}

/// What netem cannot do of this, in one line.
fn unfit(config: &ChannelConfig) -> Option<String> {
    let loses = config.loss > 0.0 || config.burst_loss.is_some();
    let both = config.loss > 0.0 && config.burst_loss.is_some();
    let rate_in_bits = config.rate_bps.is_some_and(|rate_bps| rate_bps % 8 != 0);
    let correlation = "its correlation changes what it correlates: set it to 0 %";
    let cases = [
        (config.trace.is_some(), "trace", "it has none: set a rate"),
        (config.outages != link::Outages::NONE, "outages", "it has none: set them to none"),
        (config.jitter_correlation > 0.0, "jitter_correlation", correlation),
        (config.loss_correlation > 0.0, "loss_correlation", correlation),
        (both, "burst_loss", "it has one kind of loss at a time: set loss to 0 %"),
        (
            loses && !config.loss_first,
            "loss_first",
            "it loses packets before they use the link: set loss_first to true, or loss to 0 %",
        ),
        (
            config.queue_bytes < link::MAX_QUEUE_BYTES,
            "queue_bytes",
            "its queue counts packets: set queue_bytes to none and queue_packets to a number",
        ),
        (config.queue_packets == 0, "queue_packets", "it would lose everything: give 1 or more"),
        (rate_in_bits, "rate", "it counts whole bytes a second: give a multiple of 8 bit/s"),
        (config.jitter.as_nanos() > MAX_JITTER_NS, "jitter", "at most 2 s"),
    ];
    let (_, key, why) = cases.into_iter().find(|(is_unfit, _, _)| *is_unfit)?;
    let settings = config.settings();
    let value = settings.iter().find(|(known, _)| *known == key).map_or("", |(_, value)| value);
    Some(format!("netem cannot do {key} = {value}: {why}; or use --emulator ferry"))
}

/// The rate, in bytes a second, twice when it does not fit into 32 bits.
fn rate(rate_bps: u64) -> impl Iterator<Item = (u16, Vec<u8>)> {
    let per_second = rate_bps / 8;
    let (low, wide) = u32::try_from(per_second).map_or((u32::MAX, true), |low| (low, false));
    // struct tc_netem_rate: rate, packet_overhead, cell_size, cell_overhead.
    let fixed = bytes(&[low, FRAME_OVERHEAD_BYTES.cast_unsigned(), 0, 0]);
    let rate64 = wide.then(|| (RATE64_KIND, per_second.to_ne_bytes().to_vec()));
    [(RATE_KIND, fixed)].into_iter().chain(rate64)
}

/// The offsets of a shape by rising quantile; none for the even one, which netem has by itself.
fn table(distribution: Distribution) -> Option<Vec<u8>> {
    if distribution == Distribution::Uniform {
        return None;
    }
    #[allow(clippy::cast_possible_truncation, reason = "clamped to the type's range")]
    let entry = |index: u16| {
        let share = (f64::from(index) + 0.5) / f64::from(TABLE_ENTRIES);
        let offset = distribution.quantile(share) * TABLE_SCALE / TABLE_SHRINK as f64;
        let offset = offset.round().clamp(f64::from(i16::MIN), f64::from(i16::MAX));
        (offset as i16).to_ne_bytes()
    };
    Some((0..TABLE_ENTRIES).flat_map(entry).collect())
}

/// A share as netem reads it: all ones for one.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to u32::MAX")]
fn probability(share: f64) -> u32 {
    (share.clamp(0.0, 1.0) * f64::from(u32::MAX)).round() as u32
}

fn ticks(nanos: u64) -> u32 {
    u32::try_from(nanos >> TICK_NS_LOG2).unwrap_or(u32::MAX)
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[cfg(test)]
mod tests;
