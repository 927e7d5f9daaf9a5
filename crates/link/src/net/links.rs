//! Which nodes hear each other at a time, and how well.

use super::Scenario;
use crate::losses::{Losses, NodeId};
use std::time::Duration;

/// Two nodes of which one hears the other on a channel at a rate of its radios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Place of the channel in [`Scenario::media`].
    pub medium: usize,
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// Signal over noise, in dB.
    pub snr_db: f64,
    /// Place of the rate that is chosen, 0 for the fastest.
    pub rate_place: usize,
    /// bit/s.
    pub rate_bps: u64,
}

/// Links of all channels at a time, by channel, sender and receiver: pairs whose signal is good for
/// the slowest rate at least.
pub(super) fn links(scenario: &Scenario, losses: &[Losses], at: Duration) -> Vec<Link> {
    let mut links = Vec::new();
    for (medium, (net, losses)) in scenario.media.iter().zip(losses).enumerate() {
        let radio = &net.config.radio;
        let noise_dbm = radio.noise_dbm();
        let members: Vec<_> = scenario.members(medium).collect();
        for (from, sender) in &members {
            for (to, _) in members.iter().filter(|(to, _)| to.id != from.id) {
                let Some(loss_db) = losses.loss_db(at, from.id, to.id) else { continue };
                let snr_db = sender.power_dbm - loss_db - noise_dbm;
                let rate_place = radio.rate_for(snr_db);
                let Some(chosen) = radio.rates.get(rate_place) else { continue };
                if snr_db >= chosen.from_db {
                    let (from, to, rate_bps) = (from.id, to.id, chosen.rate_bps);
                    links.push(Link { medium, from, to, snr_db, rate_place, rate_bps });
                }
            }
        }
    }
    links
}
