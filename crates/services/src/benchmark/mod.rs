//! The benchmark service of NAM: the answers of the 22 TPC-H queries, one per request, as XML in
//! two forms and as SOAP. They come from files that the user has made, or are generated with the
//! same shapes. Beside them are the methods of the WAP study ([`methods`]).

mod answers;
pub mod client;
mod generate;
pub mod methods;
pub mod server;
#[cfg(test)]
mod tests;

pub use answers::Answers;

use crate::tracks::soap::Operation;

/// How many queries TPC-H has.
pub const QUERY_COUNT: usize = 22;

/// Seed of the generated answers when none is asked for.
pub const DEFAULT_SEED: u64 = 22;

/// Takes the number of a query, gives its answer.
pub const RUN_QUERY: Operation = Operation {
    namespace: "urn:longwire:benchmark:1",
    name: "RunQuery",
    action: "urn:longwire:benchmark:1#RunQuery",
    thing: "query",
    last: QUERY_COUNT,
};

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// XML without white space between elements.
    Compact,
    /// XML with an element a line.
    Pretty,
    /// A SOAP 1.1 envelope with an element a line, each with its type.
    Soap,
}

impl Form {
    /// All.
    pub const ALL: [Self; 3] = [Self::Compact, Self::Pretty, Self::Soap];

    /// The name in paths, in names of files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Compact => "compact",
            Self::Pretty => "pretty",
            Self::Soap => "soap",
        }
    }

    /// Media type of the answers, without parameters.
    fn media_type(self) -> &'static str {
        match self {
            Self::Compact | Self::Pretty => "application/xml",
            Self::Soap => "text/xml",
        }
    }
}

/// Queries by the size of their answers, as NAM has them; at scale 1, as SOAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Up to 1 KB.
    Small,
    /// Up to 1 MB.
    Medium,
    /// 1 to 10 MB.
    Large,
    /// 10 to 50 MB.
    Huge,
    /// All but the huge ones, in the order of their numbers.
    Mixed,
}

impl Class {
    /// All.
    pub const ALL: [Self; 5] = [Self::Small, Self::Medium, Self::Large, Self::Huge, Self::Mixed];

    /// The name in plans and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
            Self::Huge => "huge",
            Self::Mixed => "mixed",
        }
    }

    /// The class of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Numbers of its queries, in order.
    #[must_use]
    pub fn queries(self) -> &'static [usize] {
        match self {
            Self::Small => &[5, 6, 8, 12, 14, 15, 17, 19],
            Self::Medium => &[1, 2, 4, 7, 9, 11, 13, 18, 20, 21, 22],
            Self::Large => &[3, 16],
            Self::Huge => &[10],
            Self::Mixed => {
                &[1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22]
            }
        }
    }

    /// Mean bytes of its answers at scale 1 as SOAP, roughly: to reckon with beforehand.
    #[must_use]
    pub fn mean_bytes(self) -> f64 {
        match self {
            Self::Small => 600.0,
            Self::Medium => 50_000.0,
            Self::Large => 3_600_000.0,
            Self::Huge => 21_000_000.0,
            Self::Mixed => 370_000.0,
        }
    }
}
