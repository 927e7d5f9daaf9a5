//! The command line of longwire.
fn main() {}
