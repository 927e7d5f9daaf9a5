//! What is kept of messages for later ones: bases of deltas, dictionaries, schemas; and what of it
//! outlives the process.

pub(crate) mod bases;
pub(crate) mod dictionaries;
pub(crate) mod held;
pub(crate) mod lasting;
pub(crate) mod pending;
pub(crate) mod requester;
pub(crate) mod schemas;
