//! Wills, which a gateway keeps as long as the session (MQTT-SN 1.2 §6.3, §6.4).

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use proto::mqttsn::{Qos, WillTopic};

use crate::ids::Protocol;
use crate::publication::{Grade, Publication};
use crate::session;

/// Retain, in what is kept.
const RETAIN: u8 = 0x80;

/// What is published when a client is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Will {
    pub(super) topic: Arc<str>,
    pub(super) message: Bytes,
    pub(super) grade: Grade,
    pub(super) retain: bool,
}

impl Will {
    /// One whose message is still to come. Level −1 has no meaning in it.
    pub(super) fn new(topic: &WillTopic<'_>) -> Self {
        let grade = grade(topic.qos);
        Self { topic: topic.topic.into(), message: Bytes::new(), grade, retain: topic.retain }
    }

    /// As the core has it: due as soon as the client is lost.
    pub(super) fn of_session(&self) -> session::Will {
        let mut publication =
            Publication::new(Protocol::MqttSn, self.topic.clone(), self.message.clone());
        (publication.grade, publication.retain) = (self.grade, self.retain);
        session::Will { publication, expiry: None, delay: Duration::ZERO }
    }

    /// As it is kept with the session.
    pub(super) fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(3 + self.topic.len() + self.message.len());
        out.put_u8(self.grade.get() | if self.retain { RETAIN } else { 0 });
        out.put_u16(u16::try_from(self.topic.len()).unwrap_or(0));
        out.put_slice(self.topic.as_bytes());
        out.put_slice(&self.message);
        out.freeze()
    }

    /// What was kept; `None` where that is no will.
    pub(super) fn decode(kept: &Bytes) -> Option<Self> {
        let (&[flags, high, low], rest) = kept.split_first_chunk::<3>()?;
        let (topic, message) = rest.split_at_checked(u16::from_be_bytes([high, low]).into())?;
        let topic = std::str::from_utf8(topic).ok()?.into();
        let grade = Grade::new(flags & !RETAIN)?;
        Some(Self { topic, message: kept.slice_ref(message), grade, retain: flags & RETAIN != 0 })
    }
}

/// The grade of a quality of service; −1 arrives at most once like 0 (MQTT-SN 1.2 §6.8).
pub(super) fn grade(qos: Qos) -> Grade {
    match qos {
        Qos::MinusOne | Qos::Zero => Grade::AtMostOnce,
        Qos::One => Grade::AtLeastOnce,
        Qos::Two => Grade::ExactlyOnce,
    }
}

/// The quality of service of a grade.
pub(super) fn qos(grade: Grade) -> Qos {
    match grade {
        Grade::AtMostOnce => Qos::Zero,
        Grade::AtLeastOnce => Qos::One,
        Grade::ExactlyOnce => Qos::Two,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_will_is_read_as_it_was_kept() {
        for (grade, retain) in [(Grade::AtMostOnce, false), (Grade::ExactlyOnce, true)] {
            let message = Bytes::from_static(b"gone");
            let will = Will { topic: "w/é".into(), message, grade, retain };
            assert_eq!(Will::decode(&will.encode()), Some(will));
        }
        for kept in [&b""[..], b"\x00\x00", b"\x03\x00\x00", b"\x00\x00\x02a", b"\x00\x00\x01\xff"]
        {
            assert_eq!(Will::decode(&Bytes::copy_from_slice(kept)), None);
        }
    }
}
