//! Wire formats and their machines: bytes and time in, actions out.
