//! The service as a server: `longwire serve tracks`.

#[cfg(test)]
mod parameters;
mod route;
mod site;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;

use crate::Error;
use crate::server::{Server, Settings};
use site::Site;

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address and port to listen at; port 0 takes any free one.
    pub listen: SocketAddr,
    /// Seed of the files.
    pub seed: u64,
    /// TCP congestion control; the system's own when none.
    pub congestion: Option<String>,
    /// Parameters of each connection and answer.
    pub settings: Settings,
}

impl Config {
    /// Listens and makes the files. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Caller`] when a setting is out of its range, the address cannot be had or the
    /// congestion control not be set.
    pub fn bind(self) -> Result<Server, Error> {
        let site = Arc::new(Site::new(self.seed, self.settings));
        Server::bind(self.listen, self.congestion, site)
    }
}
