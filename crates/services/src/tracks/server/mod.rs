//! The service as a server: `longwire serve tracks`.

mod listen;
mod route;
mod soap;
#[cfg(test)]
mod tests;

pub use listen::{Config, Server};
