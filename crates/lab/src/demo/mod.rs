//! The demonstration: the same fetches over several emulated links, direct and through the pair,
//! all side by side, each on a pair of hosts of its own.

mod cell;
mod forward;
mod gate;
mod outside;
mod plan;
mod progress;
mod run;
mod tally;

pub use plan::{About, NETWORKS, Plan, track_name, url_items};
pub use run::run;
