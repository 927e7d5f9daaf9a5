//! The laboratory: hosts as network namespaces, joined by emulated links.
//!
//! [`Lab`] builds pairs of hosts; the ferry, one real-time thread, moves their packets through the
//! models of the `link` crate and records how late each one was. [`session`] keeps a lab that
//! other processes enter (`longwire lab`), [`ping`](mod@ping) measures its round trip; [`doctor`]
//! says what a machine offers for all this. [`demo`] runs the pair over many links at once. [`net`]
//! has hosts with several interfaces, on media that many share, and studies of scenarios of radio
//! nets. [`calls`] is the WAP study, [`realtime`] that of real-time services.

pub mod calls;
pub mod campaign;
pub mod demo;
pub mod doctor;
mod error;
mod experiment;
mod ferry;
mod lab;
pub mod namespace;
pub mod net;
pub mod ping;
mod processor;
pub mod realtime;
pub mod scenario;
pub mod session;
pub mod sets;
mod signals;

pub use error::{Error, Result};
pub use ferry::RealTime;
pub use lab::{DirectionReport, Lab, Link, LinkReport, LinkSpec, MAX_RECORD_PACKETS, Options};
pub use namespace::{
    CONGESTION_CONTROL, Device, Host, INTERFACE, Privilege, Side, TcpSettings, TcpSocket, acquire,
    within,
};
