//! The pages, each a function of what it shows.

pub mod campaign;
pub mod cell;
pub mod compare;
pub mod link;
pub mod links;
pub mod results;
pub mod runs;
mod topology;
