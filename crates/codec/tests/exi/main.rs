//! EXI against streams, schemas and programs of others.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // Tests.

mod data;
mod foreign;
mod generated;
#[path = "../infoset/mod.rs"]
mod infoset;
mod kept;
mod options;
mod peer;
mod peer_options;
mod round_trip;
