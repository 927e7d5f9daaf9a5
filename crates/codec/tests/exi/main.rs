//! EXI against streams, schemas and programs of others.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // Tests.

#[path = "../infoset/mod.rs"]
mod infoset;
