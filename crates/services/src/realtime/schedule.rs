//! When a producer sends, and what: both from a number, so that they can be told beforehand.

use std::fmt::Write as _;
use std::time::Duration;

use super::entity::{MAX_ENTITIES, MAX_ID};
use super::request::NAMESPACE;
use super::statistics::whole;

/// Most messages a second.
pub const MAX_RATE_PER_S: f64 = 20_000.0;
/// Longest run.
pub const MAX_DURATION: Duration = Duration::from_secs(86_400);

/// An even schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    rate_per_s: f64,
    count: u64,
}

impl Schedule {
    /// So many messages a second for so long, one at least.
    ///
    /// # Errors
    /// A line for a rate or a duration out of range.
    pub fn new(rate_per_s: f64, duration: Duration) -> Result<Self, String> {
        if !(rate_per_s > 0.0 && rate_per_s <= MAX_RATE_PER_S) {
            return Err(format!("a rate of {rate_per_s}; choose above 0 up to {MAX_RATE_PER_S}"));
        }
        if duration.is_zero() || duration > MAX_DURATION {
            let seconds = duration.as_secs_f64();
            return Err(format!("{seconds} s; choose above 0 up to {} s", MAX_DURATION.as_secs()));
        }
        // The sum is below 2^53, so that it is exact.
        let count = whole((rate_per_s * duration.as_secs_f64()).ceil().max(1.0));
        Ok(Self { rate_per_s, count })
    }

    /// How many messages.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// When a message is due, in nanoseconds from the first, number 0.
    #[must_use]
    pub fn due_ns(&self, number: u64) -> u64 {
        whole((number as f64 * (1e9 / self.rate_per_s)).round())
    }
}

/// What the message of a number is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// The message's number, from 1 on.
    pub sequence: u64,
    /// T0 in nanoseconds of the consumer's clock; none is said where it is not known.
    pub sent_ns: Option<u64>,
    /// How many entities, 1 to [`MAX_ENTITIES`].
    pub entities: usize,
    /// The class that the header names, if one.
    pub class: Option<usize>,
    /// When it is so, in milliseconds since 1970.
    pub time_ms: u64,
}

impl Content {
    /// Appends the message in SOAP 1.1.
    pub fn write(&self, out: &mut String) {
        // Writing to a string does not fail.
        let _ = write!(
            out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\
             <s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\">"
        );
        if let Some(class) = self.class {
            let _ =
                write!(out, "<s:Header><Class xmlns=\"{NAMESPACE}\">{class}</Class></s:Header>");
        }
        let sequence = self.sequence;
        let _ =
            write!(out, "<s:Body><Process xmlns=\"{NAMESPACE}\"><sequence>{sequence}</sequence>");
        if let Some(sent_ns) = self.sent_ns {
            let _ = write!(out, "<sentNs>{sent_ns}</sentNs>");
        }
        let entities = u64::try_from(self.entities.min(MAX_ENTITIES)).unwrap_or(1);
        for at in 0..entities {
            let number = sequence.wrapping_mul(entities).wrapping_add(at);
            let id = number % u64::from(MAX_ID);
            // Each goes its way round a circle of a degree.
            let turn = (number % 360) as f64;
            let (north, east) = turn.to_radians().sin_cos();
            let _ = write!(
                out,
                "<entity><id>{id}</id><name>TRACK-{id:04}</name><kind>surface</kind>\
                 <latitudeDeg>{:.6}</latitudeDeg><longitudeDeg>{:.6}</longitudeDeg>\
                 <altitudeM>{:.1}</altitudeM><courseDeg>{turn:.1}</courseDeg>\
                 <speedMps>{:.1}</speedMps><timeMs>{}</timeMs></entity>",
                38.3 + north,
                -77.0 + east,
                (number % 100) as f64,
                8.0 + (number % 50) as f64 / 10.0,
                self.time_ms,
            );
        }
        out.push_str("</Process></s:Body></s:Envelope>");
    }
}

#[cfg(test)]
mod tests {
    use super::super::entity::Message;
    use super::super::request::read;
    use super::*;
    use crate::tracks::soap::Version;

    #[test]
    fn messages_are_due_at_even_times_without_drift() {
        let schedule = Schedule::new(3.0, Duration::from_secs(86_400)).unwrap();
        assert_eq!(schedule.count(), 259_200);
        assert_eq!(schedule.due_ns(0), 0);
        assert_eq!(schedule.due_ns(1), 333_333_333);
        assert_eq!(schedule.due_ns(3 * 86_400), 86_400_000_000_000);
        assert_eq!(Schedule::new(20.0, Duration::from_millis(1)).unwrap().count(), 1);
        for rate in [0.0, -1.0, f64::NAN, MAX_RATE_PER_S * 1.01] {
            assert!(Schedule::new(rate, Duration::from_secs(1)).is_err(), "{rate}");
        }
        assert!(Schedule::new(1.0, Duration::ZERO).is_err());
        assert!(Schedule::new(1.0, MAX_DURATION + Duration::from_secs(1)).is_err());
    }

    #[test]
    fn what_is_written_the_consumer_reads() {
        let mut message = Message::default();
        for (sequence, entities, class) in [(1, 1, None), (977, 5, Some(2)), (u64::MAX, 16, None)] {
            let content = Content {
                sequence,
                sent_ns: Some(123),
                entities,
                class,
                time_ms: 1_700_000_000_000,
            };
            let mut text = String::new();
            content.write(&mut text);
            let header = read(text.as_bytes(), Version::Soap11, &mut message).unwrap();
            assert_eq!((header, message.sequence, message.sent_ns), (class, sequence, 123));
            assert_eq!(message.entities().len(), entities);
        }
        assert_eq!(message.entities()[0].kind.as_str(), "surface");
    }
}
