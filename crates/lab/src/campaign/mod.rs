//! Campaigns: an experiment described in one file, crossed into cells, measured in hundreds of
//! runs side by side, each on hosts of its own, and kept in a database.
//!
//! [`Plan`] is the file, checked; `order` puts its runs in a row; `throttle` says how many go at
//! once; `job` does one; `verdict` says whether the machine kept up; `store` keeps what came out.

mod csv;
mod facts;
mod job;
mod order;
mod plan;
mod progress;
mod results;
mod run;
mod server;
mod store;
mod throttle;
mod verdict;

pub use csv::export;
pub use plan::{Choice, Expected, Plan};
pub use progress::{Ended as ProgressEnd, Latest, Progress};
pub use results::{Results, has_results};
pub use run::{Ended, MAX_PARALLEL, Order, load, run};
