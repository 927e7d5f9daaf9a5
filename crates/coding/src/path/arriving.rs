//! What messages that come over a path show of it, for those that are to come.

use std::time::Duration;

use decide::network;

use super::Path;

/// Bytes of a message behind its first piece that tell a rate: fewer may have waited for nothing
/// but one another.
const MIN_BYTES: u64 = 16 * 1024;
/// Share of a slower message in what is believed: a window may have held it back.
const SLOWER_SHARE: f64 = 0.1;
/// Packets that a peer which has sent nothing for a while lets out at once (RFC 6928).
const START_WINDOW: f64 = 10.0;
/// Packets of which the losses are told, before they count for more than another carrier's.
const MIN_WEIGHT: f64 = 20.0;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arriving {
    /// Bit/s at which messages came.
    rate_bps: Option<f64>,
}

impl Arriving {
    /// So many bytes of a message came behind its first piece, in that time.
    pub(crate) fn saw(&mut self, bytes: u64, spread: Duration) {
        if bytes < MIN_BYTES || spread.is_zero() {
            return;
        }
        let bps = 8.0 * bytes as f64 / spread.as_secs_f64();
        let before = self.rate_bps.unwrap_or(bps);
        let slower = before + (bps - before) * SLOWER_SHARE;
        self.rate_bps = Some(bps.max(slower));
    }
}

impl Path {
    /// What is believed of the way out, where other carriers to the same peer have seen more of
    /// the link below both.
    pub(crate) fn with_others<'a>(
        &self,
        own: network::Path,
        others: impl Iterator<Item = &'a Self> + Clone,
    ) -> network::Path {
        let mut path = own;
        let known = |path: &Self| path.estimate().loss().weight;
        if known(self) < MIN_WEIGHT {
            let best = others.clone().max_by(|a, b| known(a).total_cmp(&known(b)));
            if let Some(best) = best.filter(|best| known(best) > known(self)) {
                path.loss = best.estimate().loss().value;
            }
        }
        if !path.measured {
            let rate = |path: &Self| path.estimate().rate_bps();
            let mut rates = others.map(rate).filter(|rate| rate.weight > 0.0);
            path.rate_bps = rates.next().map_or(path.rate_bps, |rate| rate.value);
        }
        path.bounded()
    }

    /// The way in, as far as it is another than the way out.
    pub(crate) fn inwards<'a>(
        &'a self,
        out: network::Path,
        others: impl Iterator<Item = &'a Self> + Clone,
    ) -> network::Path {
        let all = || std::iter::once(self).chain(others.clone());
        let rate_bps = all().find_map(|path| path.measured.arriving.rate_bps);
        let loss = all().find_map(|path| path.estimate().incoming_loss());
        network::Path {
            rate_bps: rate_bps.unwrap_or(out.rate_bps),
            loss: loss.unwrap_or(out.loss),
            start_window: if out.repairs { out.start_window } else { START_WINDOW },
            backlog_bytes: 0.0,
            ..out
        }
        .bounded()
    }
}

#[cfg(test)]
mod tests {
    use decide::estimate::{Estimate, Transport};

    use super::*;
    use crate::api::Abilities;
    use crate::ids::PathId;

    const MS: Duration = Duration::from_millis(1);

    fn path(number: u64, kind: &'static str) -> Path {
        let estimate = Estimate::new(1e6, 100 * MS, None);
        let id = PathId(number);
        Path::new(id, ("peer".to_owned(), kind, 1), Abilities::default(), estimate, None)
    }

    fn counters(segments_out: u32, retransmitted: u32) -> Transport {
        Transport { rtt: 100 * MS, segments_out, retransmitted, ..Transport::default() }
    }

    #[test]
    fn what_one_carrier_has_seen_of_the_link_counts_for_another_that_has_not() {
        let (mut seen, fresh) = (path(1, "burst"), path(2, "stream"));
        seen.measured.transport(counters(10, 0));
        seen.measured.transport(counters(1010, 200));
        let own = fresh.estimate().path();
        let with = fresh.with_others(own, [&seen].into_iter());
        assert!((0.15..0.25).contains(&with.loss) && own.loss < 0.02, "{with:?}");
        // What it has seen itself is better.
        let mut known = path(3, "stream");
        known.measured.transport(counters(10, 0));
        known.measured.transport(counters(1010, 0));
        let own = known.estimate().path();
        assert_eq!(known.with_others(own, [&seen].into_iter()).loss, own.loss);
    }

    #[test]
    fn the_way_in_is_as_messages_came_and_as_the_transport_tells() {
        let mut slow = path(1, "burst");
        let out = slow.estimate().path();
        assert_eq!(slow.inwards(out, std::iter::empty()).rate_bps, out.rate_bps);
        // Too short to tell, and long enough.
        slow.measured.arriving.saw(1000, MS);
        assert_eq!(slow.inwards(out, std::iter::empty()).rate_bps, out.rate_bps);
        slow.measured.arriving.saw(125_000, 1000 * MS);
        let counted = Transport { incoming_loss_ppm: Some(200_000), ..counters(10, 0) };
        slow.measured.transport(counted);
        let inwards = slow.inwards(out, std::iter::empty());
        assert!((inwards.rate_bps - 1e6).abs() < 1.0 && (inwards.loss - 0.2).abs() < 1e-9);
        // The next was held back: that says little.
        slow.measured.arriving.saw(125_000, 10_000 * MS);
        let held_back = slow.inwards(out, std::iter::empty());
        assert!((0.9e6..1e6).contains(&held_back.rate_bps), "{held_back:?}");
        // Another carrier goes over the same link.
        let other = path(2, "stream");
        let inwards = other.inwards(other.estimate().path(), [&slow].into_iter());
        assert!((inwards.loss - 0.2).abs() < 1e-9, "{inwards:?}");
    }
}
