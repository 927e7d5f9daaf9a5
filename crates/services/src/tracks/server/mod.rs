//! The service as a server: `longwire serve tracks`.

mod connection;
mod listen;
#[cfg(test)]
mod parameters;
mod route;
mod site;
mod soap;
#[cfg(test)]
mod tests;

pub use listen::{Config, Server};
