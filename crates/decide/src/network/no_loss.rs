//! TCP without loss: slow start, then as much as the window lets out (NAM §2.2).

use super::{NetworkModel, Path};

/// The no-loss model of the data phase with an initial window of one packet, in the consistent
/// form: the paper's first branch gives 0 s for one packet and jumps where the second begins.
///
/// It knows no rate of the link: on a slow one it promises far too much.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLoss;

impl NetworkModel for NoLoss {
    fn seconds(&self, path: &Path, bytes: f64) -> f64 {
        let packets = path.packets(bytes);
        let rounds = path.most_window.log2().ceil();
        let exponential = rounds.exp2() + path.most_window - 1.0;
        if packets <= exponential {
            return path.rtt_s * (packets + 1.0).log2().ceil();
        }
        path.rtt_s * (rounds + 1.0 + ((packets - exponential) / path.most_window).ceil())
    }
}
