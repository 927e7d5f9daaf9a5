//! One emulated link or radio channel, as a pure state machine.
//!
//! Each direction of a link is a [`Channel`]. A packet goes through
//!
//! 1. the **queue**: limited in packets and in bytes, tail drop. The packet being serialized has
//!    left the queue and counts against neither limit;
//! 2. **serialization** at the rate (or by a delivery [`Trace`]), counting IP bytes, exact over any
//!    length of run: what a packet leaves of a nanosecond is carried over to the next one;
//! 3. **loss, duplication, corruption**: a lost packet has used its airtime, as on a radio. An
//!    outage loses what is being sent meanwhile. A copy made by duplication uses no airtime;
//! 4. **delay and jitter**, which keep the order of packets unless reordering is asked for;
//! 5. **delivery**.
//!
//! Nothing here knows sockets, clocks or files. Time is a [`Duration`](std::time::Duration) since
//! an epoch that the caller chose (outages and traces count from that same epoch), chance is a
//! seed: the same seed, configuration and inputs give the same outputs.
//!
//! # The drain rule
//!
//! After every [`Channel::handle_input`] the caller calls [`Channel::poll_output`] until it answers
//! [`Output::WakeAt`] or [`Output::Idle`], and hands in [`Input::Wake`] no earlier than the time
//! asked for. Waking late changes nothing but lateness: every `due` is the scheduled instant.
//!
//! ```
//! use longwire_link::{Channel, Direction, Input, LinkConfig, Output};
//! use std::time::Duration;
//!
//! let mut link = LinkConfig::preset("satcom")?;
//! link.set("ab.rate", "9.6 kbit/s")?;
//! let mut channel = Channel::new(link.ab, 7, Direction::Ab);
//!
//! channel.handle_input(Duration::ZERO, Input::Packet(vec![0_u8; 1200]));
//! let mut arrived = None;
//! loop {
//!     match channel.poll_output() {
//!         Output::Deliver { due, packet } => arrived = Some((due, packet.len())),
//!         Output::Drop { .. } => {}
//!         Output::WakeAt(at) => channel.handle_input(at, Input::Wake),
//!         Output::Idle => break,
//!     }
//! }
//! // 1200 bytes take one second at 9600 bit/s, then travel for 550 ms.
//! assert_eq!(arrived, Some((Duration::from_millis(1550), 1200)));
//! # Ok::<(), longwire_link::Error>(())
//! ```

mod channel;
mod config;
mod delay_line;
pub mod eel;
mod error;
pub mod geo;
mod jitter;
mod loss;
pub mod losses;
pub mod medium;
mod nearest;
pub mod net;
mod normal;
mod outage;
mod packet;
pub mod prediction;
mod presets;
pub mod propagation;
mod queue;
mod random;
mod serializer;
mod settings;
mod stats;
pub mod terrain;
mod trace;
pub mod tracks;
pub mod units;

pub use channel::{Channel, Input, MAX_DROP_REPORTS, Output};
pub use config::{ChannelConfig, Direction, LinkConfig};
pub use delay_line::{MAX_IN_FLIGHT_BYTES, MAX_IN_FLIGHT_PACKETS};
pub use error::Error;
pub use jitter::Distribution;
pub use loss::BurstLoss;
pub use medium::Medium;
pub use nearest::nearest;
pub use outage::{MAX_OUTAGE_CYCLES, MAX_OUTAGE_WINDOWS, Outages};
pub use packet::Packet;
pub use presets::{Preset, presets};
pub use queue::{MAX_QUEUE_BYTES, MAX_QUEUE_PACKETS};
pub use settings::{Key, keys};
pub use stats::{Count, DropReason, Stats};
pub use trace::{MAX_TRACE_BYTES, MAX_TRACE_OPPORTUNITIES, OPPORTUNITY_BYTES, Trace};
