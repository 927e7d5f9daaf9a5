//! Brokers that replicate publications, states and interest among each other, without one that the
//! others need (docs/mesh.md has the protocol).
//!
//! [`Mesh`] is a machine of its own: what clients here publish and subscribe to goes in, what came
//! from other members comes out as [`Output::Deliver`]. Each member has a log, in which each of its
//! publications that another wants, and each state, has a place. Publications go from their member
//! to those whose filters they fit, in the order of the log, and wait for who is away. Of states,
//! which are retained messages, the last one written counts, and any member gives them to any other
//! that has not come as far in their writer's log.
//!
//! **Drain rule.** After every [`Mesh::handle_input`] call [`Mesh::poll_output`] until it gives
//! `None`. What an [`Output::Keep`] says is to be written together with what the deliveries of the
//! same input lead to, before [`Input::Persisted`] says so.

mod adapter;
mod channel;
mod clock;
mod interest;
mod keeping;
mod linking;
mod machine;
mod peer;
mod receiving;
mod restoring;
mod sending;
mod states;
#[cfg(test)]
mod tests;
mod wire;

pub(crate) use adapter::Adapted;
pub use channel::Mac;
pub use machine::{Input, Member, MemberStatus, Mesh, Output, Progress, Settings};
