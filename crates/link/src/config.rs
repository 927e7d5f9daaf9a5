//! What a link is like.

use crate::units::{format_duration, format_share};
use crate::{BurstLoss, Distribution, Error, MAX_QUEUE_BYTES, Outages, Trace};
use std::time::Duration;

/// One of the two directions of a link between hosts a and b.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From a to b.
    Ab,
    /// From b to a.
    Ba,
}

impl Direction {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Ab, Self::Ba];

    /// The prefix in settings: `ab` or `ba`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ab => "ab",
            Self::Ba => "ba",
        }
    }
}

/// Packets that a queue holds where nothing else is said: netem's default.
pub(crate) const NETEM_QUEUE_PACKETS: u32 = 1_000;

/// One direction of a link. Its default changes nothing but that at most 1000 packets queue.
///
/// Values out of range (a share above 1, a queue above its bound) act as the nearest in range; only
/// texts are refused.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelConfig {
    /// Rate in bit/s, counting IP bytes; none for no limit.
    pub rate_bps: Option<u64>,
    /// Takes the place of the rate.
    pub trace: Option<Trace>,
    /// Time from the last bit sent to arrival.
    pub delay: Duration,
    /// How much the delay varies: half the range, or the standard deviation.
    pub jitter: Duration,
    /// The shape of the jitter.
    pub distribution: Distribution,
    /// How much of a packet's jitter follows from that of the packet before, 0 to 1: the
    /// autocorrelation at lag 1 of the normal numbers under the shape, which it leaves as it is. A
    /// copy counts as a packet; one that skips the delay does not.
    pub jitter_correlation: f64,
    /// Share of packets lost, 0 to 1.
    pub loss: f64,
    /// Autocorrelation at lag 1 of that loss, 0 to 1: with this probability a packet has the fate
    /// of the one before, else its own. The share lost stays as it is; losses in a row last
    /// `1 / ((1 - correlation) · (1 - loss))` packets on average.
    pub loss_correlation: f64,
    /// Loss in bursts, besides `loss`.
    pub burst_loss: Option<BurstLoss>,
    /// Lose packets before queue and serialization, as netem does; else they use their airtime.
    pub loss_first: bool,
    /// Share of packets that arrive twice, 0 to 1. The copy uses no airtime; delay and corruption
    /// are decided for it anew.
    pub duplicate: f64,
    /// Share of packets in which one random bit is flipped, 0 to 1.
    pub corrupt: f64,
    /// Share of packets that skip the delay, 0 to 1. Above 0, jitter too may change the order.
    pub reorder: f64,
    /// Most packets waiting, the one being sent not counted.
    pub queue_packets: u32,
    /// Most bytes waiting, those of the packet being sent not counted.
    pub queue_bytes: u64,
    /// Largest packet in IP bytes; none for no limit.
    pub mtu: Option<u32>,
    /// When nothing gets through.
    pub outages: Outages,
}

impl ChannelConfig {
    /// The default, in constants.
    pub(crate) const PLAIN: Self = Self {
        rate_bps: None,
        trace: None,
        delay: Duration::ZERO,
        jitter: Duration::ZERO,
        distribution: Distribution::Uniform,
        jitter_correlation: 0.0,
        loss: 0.0,
        loss_correlation: 0.0,
        burst_loss: None,
        loss_first: false,
        duplicate: 0.0,
        corrupt: 0.0,
        reorder: 0.0,
        queue_packets: NETEM_QUEUE_PACKETS,
        queue_bytes: MAX_QUEUE_BYTES,
        mtu: None,
        outages: Outages::NONE,
    };

    /// Checks what no setting can check alone.
    ///
    /// # Errors
    /// [`Error::Conflict`] for reordering without a delay to skip, or uniform jitter above the
    /// delay (which would pile up packets at no delay at all).
    pub fn check(&self) -> Result<(), Error> {
        let (delay, jitter) = (format_duration(self.delay), format_duration(self.jitter));
        let what = if self.reorder > 0.0 && self.delay.is_zero() {
            let share = format_share(self.reorder);
            format!("reorder = {share} needs a delay to skip: set delay above 0 or reorder to 0 %")
        } else if self.distribution == Distribution::Uniform && self.jitter > self.delay {
            format!(
                "jitter = {jitter} exceeds delay = {delay}: set jitter to at most the delay, or \
                 distribution to normal"
            )
        } else {
            return Ok(());
        };
        Err(Error::Conflict { what })
    }
}

impl Default for ChannelConfig {
    fn default() -> Self {
        Self::PLAIN
    }
}

/// Both directions of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkConfig {
    /// From a to b.
    pub ab: ChannelConfig,
    /// From b to a.
    pub ba: ChannelConfig,
}

impl LinkConfig {
    /// One direction.
    #[must_use]
    pub fn direction(&self, direction: Direction) -> &ChannelConfig {
        match direction {
            Direction::Ab => &self.ab,
            Direction::Ba => &self.ba,
        }
    }

    /// One direction, to change.
    pub fn direction_mut(&mut self, direction: Direction) -> &mut ChannelConfig {
        match direction {
            Direction::Ab => &mut self.ab,
            Direction::Ba => &mut self.ba,
        }
    }

    /// Checks both directions with [`ChannelConfig::check`].
    ///
    /// # Errors
    /// Its errors, naming the direction.
    pub fn check(&self) -> Result<(), Error> {
        for direction in Direction::BOTH {
            self.direction(direction).check().map_err(|error| Error::Conflict {
                what: format!("direction {}: {error}", direction.name()),
            })?;
        }
        Ok(())
    }
}
