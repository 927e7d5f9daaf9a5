//! What is known of this side's message, and what follows from it: nothing is changed here.

use std::sync::Arc;

use codec::Options;
use codec::infoset::SchemaContext;
use decide::policy::Objective;

use crate::core::Core;
use crate::encoding::Service;
use crate::exchange::Exchange;
use crate::path::Path;

/// Tells the class of answers from that of the messages that they are to.
const ANSWER: u64 = 0x5bd1_e995_9e37_79b9;

/// An exchange with the path that it goes over, if there is one, and all that is shared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    pub(crate) core: &'a Core,
    pub(crate) path: Option<&'a Path>,
    pub(crate) one: &'a Exchange,
}

impl<'a> Known<'a> {
    /// What is set for the exchange's service.
    pub(super) fn service(&self) -> Option<&'a Service> {
        self.core.config.services.get(self.one.about.service?)
    }

    /// Name of the exchange's service, or its target.
    pub(super) fn service_name(&self) -> &'a str {
        self.service().map_or(&self.one.about.target, |service| &service.name)
    }

    /// What is wanted of the exchange's service.
    pub(super) fn objective(&self) -> Objective {
        self.service().map_or(Objective::Time, |service| service.objective)
    }

    /// Messages alike enough for one model: service, operation, media type, direction.
    pub(super) fn class(&self) -> u64 {
        let media = self.one.sending.media_type().unwrap_or_default();
        let direction = match self.recipient() {
            Some(_) => "to a client",
            None => self.core.config.sends.name(),
        };
        let parts = [self.service_name(), &self.one.about.operation, media, direction];
        let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
        // FNV-1a of 64 bits.
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
    }

    /// Answers that are alike: those to messages that are.
    pub(crate) fn answer_class(&self) -> u64 {
        (self.class() ^ ANSWER).wrapping_mul(0x100_0000_01b3)
    }

    /// What the messages of the exchange's service are made of, where their infoset is enough: with
    /// the schema that is named for it, else with what the peer sent.
    pub(super) fn schema_context(&self) -> Option<&'a Arc<SchemaContext>> {
        let own = self.service()?.infoset.as_ref()?;
        let adopted = || {
            let name = self.path.as_ref()?.texts.adopted.get(&self.one.about.service?)?;
            self.core.schemas.find(*name)
        };
        if own.name().is_some() { Some(own) } else { adopted().or(Some(own)) }
    }

    /// Whether an encoding is among those of the exchange's service.
    pub(super) fn may_go_in(&self, options: Options) -> bool {
        let only = self.service().and_then(|service| service.encodings.as_deref());
        only.unwrap_or(self.core.config.encoding.arms()).contains(&options)
    }
}
