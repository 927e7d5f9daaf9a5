//! The real-time study (RT-SOA): the five profiles side by side, with and without contention, and
//! experiments that show what threads with priorities must be protected from.

mod inversion;
mod load;
mod plan;
mod program;
mod study;
mod trap;

pub use plan::Plan;
pub use study::{Ended, Order, load, run};
pub use trap::{Seen, Trap, spring};
