//! The client towards origins: who may be asked, connections kept for the next request, answers.

mod address;
mod body;
mod bound;
mod client;
mod coap;
mod connect;
mod failures;
mod pool;

pub use connect::{Resolve, SystemResolver};

pub(crate) use body::OriginBody;
/// How long an origin that ignores Expect is waited for before the body flows anyway: a little
/// longer than clients wait that know of such origins (RFC 9110 §10.1.1), for these send by
/// themselves after a second, and must not get word at that moment.
pub(crate) const EXPECT_PATIENCE: std::time::Duration = std::time::Duration::from_millis(1100);

pub(crate) use bound::{answer_binds, request_binds};
pub(crate) use client::{Client, How, Request};
pub(crate) use coap::Coap;
pub(crate) use connect::{ALLOW_LIST, ClientAt, Reach, Rule, Stream, outside};
pub(crate) use pool::Owner;
