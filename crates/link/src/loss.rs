//! Which packets the channel loses.

use crate::ChannelConfig;
use crate::random::{Dice, Purpose, Subject};

/// Loss in bursts by the model of Gilbert (1960) and Elliott (1963): a chain of two states, good
/// and bad, that takes one step per packet. A packet is lost by the state it meets; then the chain
/// may turn. It begins in the good state.
///
/// Mean loss is `(r·good + p·bad) / (p + r)`; with the default `bad` and `good`, bursts are `1/r`
/// packets long on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstLoss {
    /// Probability per packet of turning from good to bad, 0 to 1: Gilbert's P.
    pub p: f64,
    /// Probability per packet of turning from bad to good, 0 to 1: Gilbert's p, here r.
    pub r: f64,
    /// Share of packets lost in the bad state, 0 to 1: `1 - h`. By default 1.
    pub bad: f64,
    /// Share of packets lost in the good state, 0 to 1: `1 - k`. By default 0.
    pub good: f64,
}

/// The state that losses depend on.
#[derive(Clone, Copy, Default)]
pub(crate) struct LossProcess {
    in_bad_state: bool,
    /// Whether the packet before was lost by [`ChannelConfig::loss`]; none before the first.
    lost_before: Option<bool>,
}

impl LossProcess {
    /// Decides for the next packet, either kind of loss on its own.
    pub(crate) fn loses(&mut self, config: &ChannelConfig, dice: &Dice, subject: Subject) -> bool {
        let alone = self.repeat(config, dice, subject);
        let in_burst =
            config.burst_loss.as_ref().is_some_and(|burst| self.step(burst, dice, subject));
        alone || in_burst
    }

    /// The plain loss, with its correlation: a chain of two states whose share of losses is
    /// `loss` and whose autocorrelation at lag `k` is the correlation to the power of `k`.
    ///
    /// netem compares the share with a mixture of uniform numbers instead, and those gather around
    /// a half: at a correlation of 25 % it loses 0.2 % in place of 5 %.
    fn repeat(&mut self, config: &ChannelConfig, dice: &Dice, subject: Subject) -> bool {
        let fresh = dice.chance(subject, Purpose::Loss, config.loss);
        let repeats = dice.chance(subject, Purpose::LossRepeat, config.loss_correlation);
        // A share of nothing or all is certain, whatever was set before.
        let is_certain = config.loss <= 0.0 || config.loss >= 1.0;
        let lost = if repeats && !is_certain { self.lost_before.unwrap_or(fresh) } else { fresh };
        self.lost_before = Some(lost);
        lost
    }

    fn step(&mut self, burst: &BurstLoss, dice: &Dice, subject: Subject) -> bool {
        let (share, turn) =
            if self.in_bad_state { (burst.bad, burst.r) } else { (burst.good, burst.p) };
        self.in_bad_state ^= dice.chance(subject, Purpose::BurstTurn, turn);
        dice.chance(subject, Purpose::BurstLoss, share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction;

    fn losses(burst: BurstLoss, packets: u64) -> Vec<bool> {
        let config = ChannelConfig { burst_loss: Some(burst), ..ChannelConfig::default() };
        let (mut process, dice) = (LossProcess::default(), Dice::new(1, Direction::Ab));
        (0..packets)
            .map(|number| process.loses(&config, &dice, Subject { number, is_copy: false }))
            .collect()
    }

    #[test]
    fn a_full_correlation_repeats_and_certain_shares_stay_certain() {
        let mut config =
            ChannelConfig { loss: 0.5, loss_correlation: 1.0, ..ChannelConfig::default() };
        let (mut process, dice) = (LossProcess::default(), Dice::new(1, Direction::Ab));
        let mut run = |config: &ChannelConfig, from: u64| -> Vec<bool> {
            let subject = |number| Subject { number, is_copy: false };
            (from..from + 100).map(|n| process.loses(config, &dice, subject(n))).collect()
        };
        let first = run(&config, 0);
        assert!(first.iter().all(|lost| *lost == first[0]));
        config.loss = 1.0;
        assert!(run(&config, 100).iter().all(|lost| *lost));
        config.loss = 0.0;
        assert!(run(&config, 200).iter().all(|lost| !lost));
    }

    #[test]
    fn the_chain_alternates_when_turning_is_certain() {
        let burst = BurstLoss { p: 1.0, r: 1.0, bad: 1.0, good: 0.0 };
        assert_eq!(losses(burst, 6), [false, true, false, true, false, true]);
    }

    #[test]
    fn states_lose_by_their_own_share() {
        let stays_good = BurstLoss { p: 0.0, r: 1.0, bad: 1.0, good: 0.0 };
        assert!(losses(stays_good, 1_000).iter().all(|lost| !lost));
        let both_lose = BurstLoss { p: 0.5, r: 0.5, bad: 1.0, good: 1.0 };
        assert!(losses(both_lose, 1_000).iter().all(|lost| *lost));
    }

    #[test]
    fn bursts_last_as_long_as_the_bad_state() {
        let lost = losses(BurstLoss { p: 0.01, r: 0.25, bad: 1.0, good: 0.0 }, 400_000);
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let length = lost.iter().filter(|l| **l).count() as f64 / bursts as f64;
        // Geometric with mean 4 and deviation 3.46; about 3,850 bursts: 0.23 is four errors.
        assert!((length - 4.0).abs() < 0.23, "{length}");
    }
}
