//! What the server takes (MQTT 5 §3.2.2.3).

use super::super::id::Id;
use super::super::level::Qos;
use super::super::packet::{ConnAck, Filter, Publish};
use super::super::property::Properties;
use super::super::reason::Reason;
use super::super::topic;
use super::Failure;

/// What a CONNACK says of it; all that it does not say is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    /// MQTT 5 §3.2.2.3.3.
    pub(super) receive_maximum: u16,
    /// MQTT 5 §3.2.2.3.6.
    pub(super) max_packet_bytes: usize,
    /// MQTT 5 §3.2.2.3.8.
    pub(super) topic_alias_maximum: u16,
    max_qos: Qos,
    has_retain: bool,
    has_wildcards: bool,
    has_identifiers: bool,
    has_shared: bool,
}

impl Peer {
    /// Reads it.
    pub(super) fn new(connack: &ConnAck) -> Self {
        let properties = &connack.properties;
        let two = |id, default| {
            properties.number(id).map_or(default, |value| u16::try_from(value).unwrap_or(u16::MAX))
        };
        let has = |id| properties.number(id) != Some(0);
        let max_packet_bytes = properties.number(Id::MAXIMUM_PACKET_SIZE);
        Self {
            receive_maximum: two(Id::RECEIVE_MAXIMUM, u16::MAX),
            max_packet_bytes: max_packet_bytes
                .map_or(usize::MAX, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
            topic_alias_maximum: two(Id::TOPIC_ALIAS_MAXIMUM, 0),
            // MQTT 5 §3.2.2.3.4: 0, 1, or all where it is absent.
            max_qos: match properties.number(Id::MAXIMUM_QOS) {
                Some(0) => Qos::AtMostOnce,
                Some(_) => Qos::AtLeastOnce,
                None => Qos::ExactlyOnce,
            },
            has_retain: has(Id::RETAIN_AVAILABLE),
            has_wildcards: has(Id::WILDCARD_SUBSCRIPTION_AVAILABLE),
            has_identifiers: has(Id::SUBSCRIPTION_IDENTIFIERS_AVAILABLE),
            has_shared: has(Id::SHARED_SUBSCRIPTION_AVAILABLE),
        }
    }

    /// Whether it takes such a message (MQTT-3.2.2-11, MQTT-3.2.2-14).
    pub(super) fn takes(&self, publish: &Publish) -> Result<(), Failure> {
        if publish.qos > self.max_qos {
            return Err(Failure::Unsupported(Reason::QOS_NOT_SUPPORTED));
        }
        if publish.retain && !self.has_retain {
            return Err(Failure::Unsupported(Reason::RETAIN_NOT_SUPPORTED));
        }
        Ok(())
    }

    /// Whether it takes such subscriptions (MQTT 5 §3.2.2.3.11 to §3.2.2.3.13).
    pub(super) fn subscribes(
        &self,
        filters: &[Filter],
        properties: &Properties,
    ) -> Result<(), Failure> {
        if properties.has(Id::SUBSCRIPTION_IDENTIFIER) && !self.has_identifiers {
            let reason = Reason::SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED;
            return Err(Failure::Unsupported(reason));
        }
        for Filter { filter, .. } in filters {
            let parts = topic::parts(filter.as_bytes()).map_err(Failure::InvalidTopic)?;
            if parts.group.is_some() && !self.has_shared {
                return Err(Failure::Unsupported(Reason::SHARED_SUBSCRIPTIONS_NOT_SUPPORTED));
            }
            let has_wildcard = parts.filter.iter().any(|byte| matches!(byte, b'+' | b'#'));
            if has_wildcard && !self.has_wildcards {
                return Err(Failure::Unsupported(Reason::WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED));
            }
        }
        Ok(())
    }
}
