//! Labs that other processes enter: `longwire lab up` keeps one, the other commands find it.
//!
//! Each user has a directory of locks and control sockets. Who holds a lab's lock owns the lab; a
//! lock that nobody holds was left by a process that was killed, and the next `up` removes what it
//! names.

mod client;
mod detach;
mod directory;
mod emulated;
mod kernel;
mod protocol;
mod serve;
mod trace;

pub use client::{Listing, await_listener, config, down, enter, list, set, status};
pub use detach::{fall_silent, leave_terminal};
pub use emulated::Emulator;
pub use serve::{Session, Up};
pub use trace::{read_trace, with_absolute_path};
