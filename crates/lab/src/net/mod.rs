//! Nets of many hosts: topologies, what moves on them, workloads, and studies of scenarios.
//!
//! A [`Topology`] is hosts with several interfaces each, on media that many share and on plain
//! links; its ferry moves their packets and records what was in the air. A scenario of radio nets
//! becomes one, with path losses and routes that change as its nodes move; a workload runs on it;
//! a [study](study::run) is many such runs, side by side.

mod air;
mod http;
mod movement;
mod run;
pub mod study;
mod topology;
mod workload;

pub use air::{AirEntries, To, Transmission};
pub use topology::{
    HostRoute, HostSpec, MAX_HOSTS, MAX_INTERFACES, SegmentKind, SegmentSpec, Topology,
    TopologySpec,
};
pub use workload::command::HostCommand;

pub use crate::ferry::net::{Charge, LossChange};
