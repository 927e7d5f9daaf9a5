//! The pair itself as a pure machine: request → decide → codec → proto → output.
//!
//! One [`Relay`] is an edge or a gateway. It does no work of its own: blocks to encode or decode go
//! out as [`Output::Job`], bytes as [`Output::Transmit`], and time and chance come in.
//!
//! **Drain rule.** After every [`Relay::handle_input`] call [`Relay::poll_output`] until it gives
//! `None`, and do what it says in that order. The last [`Output::WakeAt`] stands until replaced.

mod api;
mod carriers;
mod config;
mod core;
mod dialer;
mod edge;
mod exchanges;

mod gateway;
mod handling;
mod http;
mod ids;
mod kind;
mod opening;
mod outcomes;
mod places;
mod queues;
mod relay;
mod shares;
#[cfg(test)]
mod tests;
mod timers;
mod transfer;

pub use api::{Cause, CauseKind, DialFailure, Head, Input, Known, Output};
pub use config::{Config, INITIAL_CREDIT_BYTES, LOCAL_WINDOW_BYTES};
pub use handling::{Handling, Overflow};
pub use http::is_endless;
pub use http::privacy::{
    Client, HOST_FIELD, forbids_keeping, is_cross_site, is_of_proxy, tells_who,
};
pub use http::requester::requester;
pub use ids::{CarrierId, CarrierKind};
pub use proto::control::Allowed;
pub use proto::exchange::Role;
pub use relay::{Load, Relay};
