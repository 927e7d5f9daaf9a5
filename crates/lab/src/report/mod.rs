//! Reports of a demonstration: a table for the terminal and one self-contained HTML file.

mod bound;
mod captions;
mod figures;
mod format;
mod html;
mod plot_bytes;
mod plot_lateness;
mod plot_times;
mod remarks;
mod rows;
mod summary;
mod svg;
mod tables;
mod terminal;
#[cfg(test)]
mod tests;

pub use bound::bound_s;
pub(crate) use format::day;
pub use html::html;
pub use terminal::table;
