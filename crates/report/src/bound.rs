//! The least time that a link allows.

use record::demo::{Item, Network};

/// Content of one packet that the bound counts with, and what a packet has besides, in bytes: IP
/// and UDP headers and eight bytes of a protocol of its own.
const PACKET_CONTENT_BYTES: u64 = 1200;
const PACKET_OVERHEAD_BYTES: u64 = 36;

/// What of a link the bound counts with.
#[derive(Clone, Copy, Debug)]
pub struct LinkFigures {
    /// Rate towards the client in bit/s; none for no limit.
    pub rate_bps: Option<u64>,
    /// Delay in one direction, of the slower one.
    pub delay_s: f64,
    /// Share of packets lost, 0 to 1.
    pub loss: f64,
}

/// Seconds that an exchange with these bytes of content takes at the least over a link: one round
/// trip, and the airtime of the answer's packets and of a request in one packet, lost packets sent
/// once more. No protocol is faster that sends these bytes; better encodings may be.
#[must_use]
pub fn link_bound_s(link: LinkFigures, answer_bytes: u64, request_bytes: u64) -> f64 {
    let packets = answer_bytes.div_ceil(PACKET_CONTENT_BYTES);
    let overhead_bytes = PACKET_OVERHEAD_BYTES * (packets + 1);
    let bits = 8.0 * (answer_bytes + request_bytes + overhead_bytes) as f64;
    let airtime_s =
        link.rate_bps.map_or(0.0, |rate_bps| bits / (rate_bps as f64 * (1.0 - link.loss)));
    2.0 * link.delay_s + airtime_s
}

/// [`link_bound_s`] of one thing of a demonstration, in the best encoding so far.
#[must_use]
pub fn bound_s(network: &Network, item: &Item) -> f64 {
    let Network { rate_bps, delay_s, loss, .. } = *network;
    let link = LinkFigures { rate_bps, delay_s, loss };
    link_bound_s(link, item.encoded_body_bytes, item.encoded_request_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (rate, delay, loss) and the bound for the best known 76, 224 and 798 bytes of 1.8, 8.5 and
    /// 43 KB of tracks, to as many digits as the model's table gives.
    #[test]
    fn it_agrees_with_the_table_of_the_model() {
        let table: [(u64, f64, f64, [f64; 3], f64); 5] = [
            (250_000, 0.55, 0.0, [1.105, 1.109, 1.128], 0.0005),
            (2_000_000, 0.005, 0.0, [0.011, 0.011, 0.013], 0.0005),
            (2_000_000, 0.1, 0.01, [0.201, 0.201, 0.204], 0.0005),
            (2_000_000, 0.1, 0.05, [0.201, 0.201, 0.204], 0.0005),
            (9_600, 0.1, 0.01, [0.325, 0.449, 0.93], 0.005),
        ];
        for (rate_bps, delay_s, loss, expected, tolerance_s) in table {
            let network = Network {
                name: String::new(),
                source: String::new(),
                settings: Vec::new(),
                rate_bps: Some(rate_bps),
                delay_s,
                loss,
                cold: false,
                items: Vec::new(),
            };
            for (bytes, expected_s) in [76, 224, 798].into_iter().zip(expected) {
                let found = bound_s(&network, &item(bytes, 0));
                assert!((found - expected_s).abs() <= tolerance_s, "{rate_bps}: {found}");
            }
        }
    }

    #[test]
    fn every_packet_and_the_request_take_airtime() {
        let network = Network {
            name: String::new(),
            source: String::new(),
            settings: Vec::new(),
            rate_bps: Some(8_000),
            delay_s: 0.0,
            loss: 0.5,
            cold: false,
            items: Vec::new(),
        };
        // 1201 bytes in two packets, 100 in the request's, at 500 B/s of good packets.
        assert_eq!(bound_s(&network, &item(1201, 100)), (1201.0 + 100.0 + 3.0 * 36.0) / 500.0);
        let unlimited = Network { rate_bps: None, delay_s: 0.25, ..network };
        assert_eq!(bound_s(&unlimited, &item(5000, 0)), 0.5);
    }

    fn item(encoded_body_bytes: u64, encoded_request_bytes: u64) -> Item {
        Item { name: String::new(), body_bytes: 0, encoded_body_bytes, encoded_request_bytes }
    }
}
