//! What a relay's deadlines are for: three for each exchange, three for each carrier, one for
//! each kind of carrier, and one, at most.

use coding::ExchangeId;

use crate::ids::{CarrierId, CarrierKind};

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// An exchange that waits for a carrier, an outcome or a query.
    Exchange(ExchangeId),
    /// An exchange through which nothing may pass any more.
    Still(ExchangeId),
    /// An exchange whose answer is of no use any more.
    Expiry(ExchangeId),
    /// A carrier that has not said HELLO.
    Carrier(CarrierId),
    /// A look at whether a carrier's peer still answers.
    Pulse(CarrierId),
    /// A carrier's machine.
    Machine(CarrierId),
    /// The next dial of a kind.
    Dial(CarrierKind),
    /// Gateway: after a shutdown, edges had time to hear of it.
    Linger,
}
