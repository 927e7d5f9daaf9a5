//! Formats as rows of the table of codecs: each is one adapter to what a module gives.

pub(crate) mod dictionary;
pub(crate) mod exi;
mod schema;
mod whole;

pub use schema::CompiledSchema;
