//! Tests with vectors that were made by hand from the clauses named.

mod headers;
mod machines;
mod packet;
mod transactions;
