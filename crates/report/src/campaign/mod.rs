//! Reports of a campaign: a short table for the terminal and one self-contained HTML file.

mod advice;
mod carriers;
mod cells;
mod facts;
mod figures;
mod flight_plot;
mod flights;
mod gains;
mod html;
mod networks;
mod references;
mod rows;
mod setting;
mod stages;
mod summary;
mod terminal;
mod view;

pub use facts::{facts, reasons};
pub use flights::drawing;
pub use html::html;
pub use terminal::table;
pub(crate) use view::describe;
