//! Names of carriers and of their kinds.

/// A connection to the other relay, named by the shell; never used twice. A gateway's are numbered
/// in the order in which they said HELLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CarrierId(pub u64);

/// A kind of carrier: index in [`crate::Config::kinds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CarrierKind(pub usize);

impl CarrierKind {
    /// The first, where there is one kind only.
    pub const FIRST: Self = Self(0);
}
