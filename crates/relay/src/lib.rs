//! The pair itself as a pure machine: request → decide → codec → proto → output.

mod api;

pub use api::{
    CarrierId, Cause, CauseKind, ExchangeId, Head, Input, Output, Work, WorkDirection,
};
