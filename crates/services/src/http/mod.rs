//! Header fields that hyper leaves to its users: content negotiation and media types.

mod accept;
mod media;
#[cfg(test)]
mod tests;

pub use accept::{Coding, accepts_media, choose_coding};
pub use media::MediaType;
