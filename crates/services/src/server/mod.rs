//! What any server of ours has around its service: settings, timers, and how it reads and writes.

mod activity;
pub(crate) mod answer;
pub(crate) mod connection;
mod document;
mod listen;
mod pieces;
mod settings;
mod site;
pub(crate) mod soap;
#[cfg(test)]
mod tests;
mod watch;
mod watched;

pub(crate) use activity::Activity;
pub use document::Document;
pub use listen::Server;
pub(crate) use pieces::Pieces;
pub use settings::{Chunking, Compression, Settings, Timeouts};
pub(crate) use site::Site;
pub(crate) use watch::Watch;
pub(crate) use watched::Watched;
