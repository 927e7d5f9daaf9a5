//! `longwire ui` from the outside: by requests that a person, a program or an attacker sends, and
//! in a real browser on real labs. Where there is no chromium, or no right to make namespaces, the
//! tests that need them say so and pass; in continuous integration a browser has to be there.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

mod attacks;
mod campaigns;
mod form;
mod links;
mod serving;
