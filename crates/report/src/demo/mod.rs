//! Reports of a demonstration: a table for the terminal and one self-contained HTML file.

mod captions;
mod curve;
mod figures;
mod html;
mod plot_bytes;
mod plot_curve;
pub(crate) mod plot_lateness;
mod plot_times;
mod remarks;
mod rows;
mod summary;
mod tables;
mod terminal;
#[cfg(test)]
mod tests;
mod urgent;

pub use html::html;
pub use terminal::table;
