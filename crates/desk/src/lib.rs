//! `longwire ui`: serves the pages and the API of `web` on a loopback address, and does what they
//! ask for with the laboratory. Labs and campaigns are processes of their own, which go on when
//! this one ends.

mod answer;
mod api;
mod asked;
mod body;
mod children;
mod error;
mod hub;
mod kept;
mod links;
mod pages;
mod problem;
mod requests;
mod results;
mod runs;
mod server;
mod sets;
mod shared;
mod stream;

use std::net::SocketAddr;
use std::path::PathBuf;

pub use error::{Error, Result};
pub use server::Desk;

/// How to serve.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address, which has to be a loopback one; port 0 for any that is free.
    pub listen: SocketAddr,
    /// The program that labs and campaigns are started with: this one.
    pub program: PathBuf,
    /// Its version.
    pub version: String,
    /// The folder of campaigns: a directory of results each.
    pub results: PathBuf,
    /// The folder of plans.
    pub scenarios: PathBuf,
}
