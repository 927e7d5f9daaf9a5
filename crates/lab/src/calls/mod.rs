//! The WAP study: the methods of `serve benchmark`, called by `fetch methods` over links and in
//! ways that a file names. Each link and way has hosts and servers of its own and leaves a file.

mod cell;
mod plan;
mod run;
#[cfg(test)]
mod tests;

pub use plan::{MAX_CALLS, Plan};
pub use run::{Ended, MAX_JOBS, Order, load, run};
