//! The event and result schema: the one place that serializes facts.

pub mod benchmark;
pub mod calendar;
pub mod calls;
pub mod campaign;
pub mod decision;
pub mod demo;
pub mod event;
pub mod fidelity;
pub mod figures;
pub mod machine;
pub mod net;
pub mod packets;
pub mod publication;
pub mod realtime;
pub mod result;
