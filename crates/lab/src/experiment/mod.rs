//! What the demonstration and campaigns share: processes on hosts, the pair between them, and what
//! the machine is.

pub(crate) mod live;
pub(crate) mod machine;
pub(crate) mod pair;
pub(crate) mod processes;
pub(crate) mod scratch;
