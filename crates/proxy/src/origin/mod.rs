//! The client towards origins: who may be asked, connections kept for the next request, answers.

mod address;
mod body;
mod client;
mod connect;
mod pool;

pub use connect::{Resolve, SystemResolver};

pub(crate) use body::OriginBody;
pub(crate) use client::{Client, Request};
pub(crate) use connect::{Reach, Stream};
