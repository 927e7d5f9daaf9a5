//! The military messaging service of IST-150: an instance on every node, which takes messages of
//! its clients, delivers them to the nodes of their addressees, and keeps what was delivered to it.
//!
//! [`Message`] and [`Receipt`] are what nodes tell each other, [`Form`] how that is written, and
//! [`machine`] what a node does.

pub mod client;
mod config;
mod fields;
mod forms;
pub mod machine;
mod message;
mod receipt;
mod refusal;
mod server;
mod signing;
mod store;
pub(crate) mod time;

pub use config::{Config, Peer, Way};
pub(crate) use fields::is_token;
pub use forms::Form;
pub(crate) use message::{
    DELIVERIES, FREE_TEXT, MAX_ADDRESSEES, MAX_VALIDITY_S, PRECEDENCES, RECEIPTS,
};
pub use message::{Delivery, Draft, Message, Precedence, Transfer, Wanted};
pub use receipt::{Outcome, Receipt, Returning};
pub(crate) use refusal::shown;
pub use refusal::{Reason, Refusal};
pub use server::{Server, Size, short_message, sizes};
pub use signing::Keys;
