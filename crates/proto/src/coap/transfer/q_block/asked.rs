//! Which blocks of a response a request asks for (RFC 9177 §4.4).

use std::collections::BTreeSet;

use super::{MAX_PAYLOADS, set_of};
use crate::coap::{Block, Content, option};

/// What blocks of a response are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    All,
    /// The sets before this block have come, and the next may leave.
    Behind(u32),
    /// These, in order.
    Blocks(Vec<u32>),
}

impl Asked {
    /// What the options of a request say, with the size of blocks (RFC 9177 §4.4). `None`: what no
    /// client may say.
    pub(super) fn of(content: &Content) -> Option<(Self, u8)> {
        let all = content.all(option::Q_BLOCK2).map(|value| Block::decode(value, false));
        let blocks = all.collect::<Result<Vec<_>, _>>().ok()?;
        let first = blocks.first()?;
        let is_ascending = blocks.is_sorted_by(|one, next| one.num < next.num);
        if !is_ascending || blocks.iter().any(|block| block.szx != first.szx) {
            return None;
        }
        let is_first_of_set = first.num.is_multiple_of(MAX_PAYLOADS);
        let asked = match (first.num, first.more) {
            (0, true) => Self::All,
            (num, true) if is_first_of_set && blocks.len() == 1 => Self::Behind(num),
            _ => {
                let to = |block: &Block| match block.more {
                    true => (set_of(block.num) + 1) * MAX_PAYLOADS,
                    false => block.num + 1,
                };
                let each = blocks.iter().flat_map(|block| block.num..to(block));
                // Each once, and no more than a set.
                let each: BTreeSet<u32> = each.collect();
                let most = usize::try_from(MAX_PAYLOADS).unwrap_or(usize::MAX);
                Self::Blocks(each.into_iter().take(most).collect())
            }
        };
        Some((asked, first.szx))
    }
}
