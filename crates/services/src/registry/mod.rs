//! A registry of services that knows their quality: one store with three faces, UDDI v3 over SOAP,
//! the resource directory of CoRE over CoAP and HTTP, and JSON over HTTP.
//!
//! What is published by one face is found by all: `model` is what is kept, `core` what may be
//! done with it, [`quality`] the ladder that makes measured latencies something to search for.

pub mod client;
mod config;
mod core;
mod directory;
mod document;
mod element;
mod find;
mod keys;
mod links;
mod model;
mod publishing;
pub mod quality;
mod refusal;
mod server;
mod store;
pub mod trial;
mod uddi;
mod users;

pub use config::Config;
pub use publishing::{Publishing, Quality};
pub use refusal::{Reason, Refusal};
pub use server::Server;
