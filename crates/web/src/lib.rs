//! The web interface without its shell: pages and assets, the table of routes, who may ask what,
//! and the ring of events, all as functions of facts.

pub mod admission;
pub mod assets;
pub mod cells;
pub mod events;
pub mod page;
pub mod pages;
pub mod plot;
pub mod routes;
pub mod sample;
pub mod stats;
