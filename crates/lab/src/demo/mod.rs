//! The demonstration: the same fetches over several emulated links, direct and through the pair,
//! all side by side, each on a pair of hosts of its own.

mod cell;
mod forward;
mod gate;
mod machine;
mod outside;
mod pair;
mod plan;
mod processes;
mod progress;
mod run;
mod scratch;
mod tally;

pub use plan::{About, NETWORKS, Plan, track_name, url_items};
pub use run::run;
