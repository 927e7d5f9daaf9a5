//! Reports of a campaign: a short table for the terminal and one self-contained HTML file.

mod advice;
mod cells;
mod figures;
mod flight_plot;
mod flights;
mod html;
mod networks;
mod references;
mod rows;
mod setting;
mod stages;
mod summary;
mod terminal;
mod view;

pub use html::html;
pub use terminal::table;
pub(crate) use view::describe;
