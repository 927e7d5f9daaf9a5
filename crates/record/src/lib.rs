//! The event and result schema: the one place that serializes facts.

pub mod event;
pub mod result;
