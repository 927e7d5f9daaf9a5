//! Real-time services (RT-SOA): a consumer of SOAP messages on plain threads, and a producer.
//!
//! A producer sends messages of entities on schedule. The consumer's engine, one thread, reads them
//! and hands each over to the queue of its class (T1); the worker of that class stores its entities
//! (T2). Five [profiles](profile::Profile) say which of runtime, engine and workers are real-time.
//! On the way from a connection to the table nothing allocates, logs, or takes a lock that does not
//! lend priority; samples go to room that is there before, and are written after the run.
//!
//! Pure are [`admission`], [`class`], [`entity`], [`http`], [`profile`], [`request`], [`schedule`]
//! and [`statistics`]; they have time as an argument.

pub mod admission;
pub mod answer;
pub mod class;
pub mod clock;
mod connection;
pub mod consumer;
pub mod engine;
pub mod entity;
pub mod http;
pub mod line;
pub mod lock;
pub mod producer;
pub mod profile;
pub mod queue;
pub mod request;
pub mod results;
pub mod rights;
pub mod schedule;
pub mod signals;
pub mod statistics;
#[cfg(test)]
mod tests;
mod worker;
mod wsdl;

pub use worker::Job;
pub use wsdl::wsdl;
