//! What was decided about a body, with what was expected of each encoding, and what came of it: the
//! facts that history is made of.
//!
//! Seconds and bytes; every number is finite.

use serde::{Deserialize, Serialize};

/// Which body of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Edge to gateway.
    Request,
    /// Gateway to edge.
    Response,
}

impl Direction {
    /// As it is printed and stored.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
        }
    }
}

/// Parts of a body's time, and its length on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// Encoded bytes.
    pub bytes: u64,
    /// Encoding.
    pub encode_s: f64,
    /// The network.
    pub network_s: f64,
    /// Decoding.
    pub decode_s: f64,
    /// Waiting for an encoder, beside the processor time that encoding takes.
    #[serde(default, skip_serializing_if = "is_none")]
    pub wait_s: f64,
}

/// A time that most bodies have none of.
fn is_none(seconds: &f64) -> bool {
    *seconds == 0.0
}

impl Parts {
    /// All of it, in seconds.
    #[must_use]
    pub fn total_s(&self) -> f64 {
        self.wait_s + self.encode_s + self.network_s + self.decode_s
    }
}

/// An encoding that was allowed, and what it would give.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// `zstd:3` and the like.
    pub encoding: String,
    /// What was expected of it.
    #[serde(flatten)]
    pub expected: Parts,
}

/// An encoding that was not allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forbidden {
    /// `zstd:3` and the like.
    pub encoding: String,
    /// Why, in a few words.
    pub why: String,
}

/// A figure and how many observations, by weight, stand behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The estimate.
    pub value: f64,
    /// 0: nobody has measured.
    pub weight: f64,
}

/// What was believed of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Bit/s.
    pub rate_bps: Figure,
    /// Round trip without queueing.
    pub rtt_s: Figure,
    /// Share of packets lost.
    pub loss: Figure,
    /// What packets waited in queues of late.
    pub queueing_s: f64,
    /// Packets that could leave at once; 0 where nobody told.
    #[serde(default)]
    pub window_packets: f64,
}

/// What a body was encoded against, that both sides held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Base {
    /// A message before it.
    Message {
        /// SHA-256 of what was kept of it, hexadecimal.
        sha256: String,
    },
    /// A dictionary that made itself.
    Dictionary {
        /// SHA-256 of its bytes, hexadecimal.
        sha256: String,
        /// Those of its service and principal so far, with it: 1 is the first.
        version: u32,
    },
}

/// The choice for one body, with what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Scheme and authority, or the pattern of the service.
    pub service: String,
    /// Who decodes the body: the other side's name. None for a client without an edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Class of the message, hexadecimal.
    pub class: String,
    /// Media type without parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Bytes of the body, known or expected.
    pub body_bytes: u64,
    /// Share that a fast coder leaves of the body's head.
    pub head_share: f64,
    /// `time`, `bytes` or `deadline 2 s`.
    pub objective: String,
    /// What was expected of the encoding chosen.
    pub expected: Parts,
    /// Every encoding that was allowed.
    pub candidates: Vec<Candidate>,
    /// Those that were not.
    pub forbidden: Vec<Forbidden>,
    /// What was believed of the link.
    pub link: Link,
    /// A probe: another encoding, made only to learn from.
    #[serde(rename = "shadow", default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<String>,
    /// What the body was encoded against, where its encoding has such a thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
    /// The body went to an edgeless client, which reports nothing: in its outcome decoding took
    /// what was expected of it, and all of it was there when the kernel said so.
    #[serde(rename = "foreign", default, skip_serializing_if = "std::ops::Not::not")]
    pub edgeless: bool,
    /// Why it went by its carrier, where there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Route>,
}

/// The carrier of an exchange, chosen among several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Route {
    /// Its kind: `stream` and the like.
    pub carrier: String,
    /// Why, in a few words.
    pub reason: String,
    /// Every carrier that was up, had room and was able.
    pub candidates: Vec<RouteCandidate>,
}

/// A carrier that an exchange could have taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouteCandidate {
    /// Its kind.
    pub carrier: String,
    /// How long the request and its answer were expected to take by it, in seconds.
    pub expected_s: f64,
}

/// Where the difference between what was measured and what was expected comes from, in seconds. The
/// four add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Split {
    /// Encoding, with the waiting for it, took longer: on the sender's side.
    pub encode_s: f64,
    /// Decoding took longer: on the receiver's side.
    pub decode_s: f64,
    /// The network took longer for the bytes that there were.
    pub network_s: f64,
    /// There were more bytes.
    pub size_s: f64,
}

/// A revision: from some byte of a body on it was encoded otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// Bytes of the body before it.
    pub at_bytes: u64,
    /// `zstd:3` and the like.
    pub encoding: String,
    /// Why, in a few words.
    pub reason: String,
}

/// What came of a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The encoding that the body went in.
    pub encoding: String,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// What had been expected of it.
    pub expected: Parts,
    /// What was measured.
    pub actual: Parts,
    /// Their difference.
    pub split: Split,
    /// How it went on where it did not go as it began.
    #[serde(rename = "turns", default, skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<Revision>,
}

/// The request of an exchange, as its line in the log has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// GET and the like.
    pub method: String,
    /// Without what may prove who asks.
    pub target: String,
    /// Of the answer; none where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Address of the client; at a gateway the name of the edge.
    pub client: String,
    /// Id of the trace that its client named (W3C Trace Context), 32 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// A decision as history has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When it was made, seconds since 1970.
    pub unix_s: f64,
    /// Its id as both ends print it, hexadecimal.
    pub exchange: String,
    /// Which body.
    pub direction: Direction,
    /// `zstd:3` and the like.
    pub encoding: String,
    /// Why, in a few words.
    pub reason: String,
    /// What was known and expected; none where no model was asked.
    pub decision: Option<Decision>,
    /// What came of it; none until the peer has told.
    pub outcome: Option<Outcome>,
    /// What it was for; none until the exchange has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Asked>,
}

/// The network is not taken for more than so many times off, either way: one outage says little of
/// what other encodings would have met.
const MAX_NETWORK_RATIO: f64 = 100.0;

impl Outcome {
    /// Seconds that another encoding would have taken, as far as can be told: its own expected
    /// times and bytes, on a network as much slower or faster as it turned out to be.
    #[must_use]
    pub fn hindsight_s(&self, other: &Parts) -> f64 {
        let modelled = self.actual.network_s - self.split.network_s;
        let ratio = if modelled > 0.0 { self.actual.network_s / modelled } else { 1.0 };
        let ratio = ratio.clamp(1.0 / MAX_NETWORK_RATIO, MAX_NETWORK_RATIO);
        let network_s = other.network_s * ratio;
        other.wait_s + other.encode_s + network_s + other.decode_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(bytes: u64, encode_s: f64, network_s: f64, decode_s: f64) -> Parts {
        Parts { bytes, encode_s, network_s, decode_s, wait_s: 0.0 }
    }

    #[test]
    fn hindsight_knows_how_slow_the_network_was() {
        // 2 s for the bytes that there were, where the model says 1 s.
        let outcome = Outcome {
            encoding: "zstd:3".into(),
            body_bytes: 10_000,
            expected: parts(2000, 0.1, 0.8, 0.1),
            actual: parts(2500, 0.1, 2.0, 0.1),
            split: Split { network_s: 1.0, size_s: 0.2, ..Split::default() },
            revisions: Vec::new(),
        };
        let plain = outcome.hindsight_s(&parts(10_000, 0.0, 4.0, 0.0));
        assert!((plain - 8.0).abs() < 1e-9, "{plain}");
        let waits = Parts { wait_s: 0.5, ..parts(10_000, 0.0, 4.0, 0.0) };
        assert!((outcome.hindsight_s(&waits) - plain - 0.5).abs() < 1e-9);
        let odd = Outcome { split: Split { network_s: 5.0, ..Split::default() }, ..outcome };
        assert!((odd.hindsight_s(&parts(1, 1.0, 1.0, 1.0)) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn facts_come_back_from_their_text() {
        let decision = Decision {
            service: "http://tracks.example".into(),
            peer: None,
            class: "00000000000000ff".into(),
            content_type: None,
            body_bytes: 10_000,
            head_share: 0.25,
            objective: "time".into(),
            expected: parts(2000, 0.1, 0.8, 0.1),
            candidates: vec![Candidate {
                encoding: "identity".into(),
                expected: parts(10_000, 0.0, 4.0, 0.0),
            }],
            forbidden: vec![Forbidden {
                encoding: "xmill:9".into(),
                why: "the peer does not decode it".into(),
            }],
            link: Link { rate_bps: Figure { value: 2e6, weight: 3.0 }, ..Link::default() },
            probe: None,
            base: Some(Base::Dictionary { sha256: "ab".repeat(32), version: 2 }),
            edgeless: false,
            route: None,
        };
        let text = serde_json::to_string(&decision).unwrap();
        assert_eq!(serde_json::from_str::<Decision>(&text).unwrap(), decision);
        assert!(text.contains(r#""encoding":"identity","bytes":10000"#), "{text}");
    }
}
