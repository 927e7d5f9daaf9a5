//! In which form messages cross: a machine that knows no HTTP and no carrier. Of what
//! crosses it knows the contents of control parts, and how long a block may be.
//!
//! An exchange has two messages: this side sends one and the peer the other. Of each the machine is
//! told what is known ([`About`](api::About), [`Message`](api::Message)) and handed the body; it
//! hands back blocks, and the bodies of what came.
//!
//! ```text
//!              Message, Body, End            Block, Settled
//!   exchange ─────────────────────► sending ─────────────────► path
//!            ◄───────────────────── receiving ◄───────────────
//!              Body, Received                Piece, Expect
//!                         │  ▲
//!                     Job ▼  │ Done      (a worker's thread)
//! ```
//!
//! `sending` chooses an encoding (the policy is a contextual bandit of [`decide`]), tries it on the
//! first block, and revises it at the ends of blocks; it encodes against messages and dictionaries
//! that both ends hold. What both hold is agreed with control messages, which `peer` writes and
//! reads. `core` is what all share: the policy and what is learned, the memory of codecs.
//!
//! **Drain rule.** After every [`Coding::handle_input`] call [`Coding::poll_output`] until it gives
//! `None`, and do what it says in that order. [`Coding::wake_at`] says when
//! [`Input::Wake`](api::Input::Wake) is due.

pub mod api;
mod bounds;
mod config;
mod core;
mod encoding;
mod exchange;
mod ids;
pub mod job;
mod kept;
mod links;
mod machine;
mod path;
mod peer;
mod receiving;
pub mod recipient;
mod reported;
mod sending;
mod speeds;
#[cfg(test)]
mod tests;
mod times;

pub use bounds::{BLOCK_PAUSE, MAX_PRINCIPALS};
pub use config::Config;
pub use encoding::{Encoding, Service};
pub use exchange::receiving::MAX_CONTEXTS;
pub use ids::{ExchangeId, PathId};
pub use kept::lasting::Secret;
pub use links::{Link, figures};
pub use machine::Coding;
pub use speeds::{Speeds, name_of_model};
