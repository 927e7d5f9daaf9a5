//! EXI against streams, schemas and programs of others.

#[path = "../infoset/mod.rs"]
mod infoset;
