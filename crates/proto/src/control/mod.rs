//! What the relays of a pair exchange between themselves, of no flow of a body: contents of
//! [`crate::exchange::Part::Control`], by kind.
//!
//! Any carrier with a control channel takes them. Kinds that a receiver does not know are ignored.
//!
//! | kind | content |
//! | --- | --- |
//! | 1 | [`Receipt`]: a message was received and decoded, and how long that took |
//! | 2 | [`Drained`]: how many of the carrier's requests a gateway that drains took |
//! | 3 | [`Keeping`]: about messages that both ends hold |
//! | 4 | [`Processor`]: how fast a side decodes, for a peer that asks |
//! | 5 | [`Urgent`]: how urgent an exchange is |
//! | 6 | [`Expires`]: how long an answer is of use |
//! | 16 | [`Hints`]: the fields of the interim response that follows |
//! | 17 | [`ClientEnded`]: a client's connection has ended |
//! | 18 | [`Allowed`]: what an edge may reach |

use crate::exchange::Part;

mod allowed;
mod drained;
mod expires;
mod hints;
mod keeping;
mod processor;
mod receipt;
mod urgent;

pub use allowed::Allowed;
pub use drained::Drained;
pub use expires::Expires;
pub use hints::{ClientEnded, Hints};
pub use keeping::Keeping;
pub use processor::Processor;
pub use receipt::Receipt;
pub use urgent::Urgent;

/// The exchange in whose order a part has its place: its own, or of a control part the one whose
/// parts behind it that is about. `None` for a part that waits for no exchange's, and for which
/// none of an exchange waits.
#[must_use]
pub fn order_of(part: &Part) -> Option<u64> {
    let Part::Control(kind, content) = part else { return part.exchange() };
    match *kind {
        Hints::KIND => Hints::decode(content).ok().map(|hints| hints.exchange),
        Expires::KIND => Expires::decode(content).ok().map(|expires| expires.exchange),
        Urgent::KIND => Urgent::decode(content).ok().map(|urgent| urgent.exchange),
        Keeping::KIND => match Keeping::decode(content).ok()? {
            Keeping::Principal { exchange, .. } | Keeping::Keep { exchange, .. } => Some(exchange),
            _ => None,
        },
        _ => None,
    }
}
