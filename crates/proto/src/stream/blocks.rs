//! How long the blocks that are being sent are so far, for the padding behind them.

use std::collections::BTreeMap;

use super::packet::{MIN_PADDING_BYTES, data_len};
use crate::exchange::{Data, Part};

/// Bytes on the carrier of the blocks that are being sent, by exchange: for carriers that send
/// these frames.
#[derive(Debug, Default)]
pub struct Blocks(BTreeMap<u64, usize>);

impl Blocks {
    /// Bytes of padding that have to follow a piece ([`super::Frame::Padding`]).
    #[must_use]
    pub fn padding(&self, data: &Data) -> Option<usize> {
        let before = self.0.get(&data.exchange).copied().unwrap_or(0);
        let bytes = before + data_len(data);
        data.padding.map(|padding| padding.behind(bytes, MIN_PADDING_BYTES))
    }

    /// Bytes of padding that have to follow a part.
    #[must_use]
    pub fn padding_of(&self, part: &Part) -> usize {
        match part {
            Part::Data(data) => self.padding(data).unwrap_or(0),
            _ => 0,
        }
    }

    /// A part is sent: bytes of padding that follow it.
    pub fn sends(&mut self, part: &Part) -> Option<usize> {
        match part {
            Part::Head(head) => self.forget(head.exchange),
            Part::Abort(abort) => self.forget(abort.exchange),
            Part::Data(data) => {
                let padding = self.padding(data);
                let before = self.0.remove(&data.exchange).unwrap_or(0);
                if data.block_end.is_none() {
                    self.0.insert(data.exchange, before + data_len(data));
                }
                return padding;
            }
            _ => {}
        }
        None
    }

    /// An exchange is over.
    pub fn forget(&mut self, exchange: u64) {
        self.0.remove(&exchange);
    }
}
