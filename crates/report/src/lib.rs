//! What came out of measurements, for people: statistics, pictures, pages.
//!
//! Everything here is a function from facts of `record` to numbers or text: no file is opened and
//! no clock is read, so that a report can be made again from stored results at any time.

pub mod analysis;
mod bound;
pub mod calls;
pub mod campaign;
pub mod demo;
mod format;
pub mod net;
pub mod realtime;
mod study;
pub mod svg;
mod text;

pub use bound::{LinkFigures, bound_s, link_bound_s};
pub use text::escaped;
