//! What any server of ours has around its service: settings, timers, and how it reads and writes.

mod activity;
mod pieces;
mod settings;
#[cfg(test)]
mod tests;
mod watch;
mod watched;

pub(crate) use activity::Activity;
pub(crate) use pieces::Pieces;
pub use settings::{Chunking, Compression, Settings, Timeouts};
pub(crate) use watch::Watch;
pub(crate) use watched::Watched;
