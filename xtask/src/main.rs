//! Rules of the house, checked.
fn main() {}
