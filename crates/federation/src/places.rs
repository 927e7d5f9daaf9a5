//! Parts of a profile with the lines where they stand, before it is known whether they fit.

use broker::FederationFlow;

use crate::profile::{Partner, Revoked, Signature};

/// Where parts of a profile stand, in the order of the file.
#[derive(Default)]
pub(crate) struct Places {
    pub(crate) partners: Vec<(usize, Partner)>,
    pub(crate) flows: Vec<(usize, FederationFlow)>,
    pub(crate) topic_ids: Vec<(usize, u64, String)>,
    pub(crate) revoked: Vec<(usize, Revoked)>,
    pub(crate) signatures: Vec<(usize, Signature)>,
}
