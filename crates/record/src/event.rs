//! What happened, in the words that logs, metrics, results and learned models all read.
//!
//! Times are seconds since the process started; sizes are bytes.

use serde::{Deserialize, Serialize};

use crate::decision::{Decision, Direction, Outcome};

/// One fact, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Seconds since the process started.
    pub at_s: f64,
    /// The fact.
    #[serde(flatten)]
    pub fact: Fact,
}

/// What an exchange carried, both ways.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Carried {
    /// Body bytes towards the carrier, before coding.
    pub sent_body_bytes: u64,
    /// The same after coding, with frames and heads.
    pub sent_wire_bytes: u64,
    /// Body bytes from the carrier, after decoding.
    pub received_body_bytes: u64,
    /// The same before decoding, with frames and heads.
    pub received_wire_bytes: u64,
    /// Processor seconds spent in codecs on this side.
    pub codec_s: f64,
    /// Codec of the body that came from the carrier; none where no head came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_encoding: Option<String>,
}

/// What can happen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Fact {
    /// A carrier said HELLO.
    CarrierUp {
        /// Name of the peer.
        peer: String,
        /// Protocol version agreed.
        version: u64,
    },
    /// A carrier ended.
    CarrierDown {
        /// Name of the peer, empty when it never said HELLO.
        peer: String,
        /// One line.
        reason: String,
        /// One of the sides had said that it would end, or has another.
        #[serde(default)]
        orderly: bool,
    },
    /// Nothing came over a carrier though it should have: another is dialled beside it.
    CarrierStalled {
        /// Name of the peer.
        peer: String,
        /// How long it has been silent, seconds.
        silent_s: f64,
    },
    /// An exchange began.
    Started {
        /// Its id as both ends print it, hexadecimal.
        exchange: String,
        /// Method.
        method: String,
        /// Scheme and authority; never the query, which may hold secrets.
        target: String,
    },
    /// An encoding was chosen for one direction of an exchange.
    Chosen {
        /// Its id as both ends print it, hexadecimal.
        exchange: String,
        /// Which message of the exchange.
        direction: Direction,
        /// `zstd:3` and the like.
        encoding: String,
        /// Why, in a few words.
        reason: String,
        /// What was known and expected, where models were asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decision: Option<Box<Decision>>,
    },
    /// What came of a choice: the peer has told that the message is received and decoded.
    Outcome {
        /// Its id as both ends print it, hexadecimal.
        exchange: String,
        /// Which message of the exchange.
        direction: Direction,
        /// What was expected, what was measured, and the difference.
        #[serde(flatten)]
        outcome: Outcome,
    },
    /// What a peer said was not used.
    Ignored {
        /// What it was.
        what: String,
        /// Why, in one line.
        reason: String,
    },
    /// An exchange ended well.
    Finished {
        /// Its id as both ends print it, hexadecimal.
        exchange: String,
        /// Status of the response.
        status: u16,
        /// From its beginning, seconds.
        elapsed_s: f64,
        /// What it carried.
        #[serde(flatten)]
        carried: Carried,
    },
    /// An exchange ended otherwise.
    Failed {
        /// Its id as both ends print it, hexadecimal.
        exchange: String,
        /// Kind of cause.
        cause: String,
        /// One line.
        reason: String,
        /// From its beginning, seconds.
        elapsed_s: f64,
        /// Status of the response; 0 where none had come.
        #[serde(default)]
        status: u16,
        /// What it carried until then.
        #[serde(flatten)]
        carried: Carried,
    },
    /// A named bound was reached.
    LimitReached {
        /// Which bound.
        limit: String,
        /// What was done about it.
        consequence: String,
    },
}
